"""MJCF files as elements: includes put in place, classes of defaults, the compiler's settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pinocchio as pin
from lxml import etree

from dynident.core.arrays import Array
from dynident.core.errors import InputError, refuse_unknown
from dynident.robot.model import HUGE
from dynident.robot.rotations import turn_z_to
from dynident.robot.urdf import parse_xml

MOST_BYTES = 1 << 27
"""Of a file that is read: no robot's model is larger."""
ACTUATORS = (
    "general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle",
    "adhesion", "orientation", "pid", "dcmotor",
)  # fmt: skip
ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")
FLAGS = {"true": True, "false": False, "enable": True, "disable": False}


@dataclass(frozen=True, eq=False)
class MjcfElement:
    """An element as it stands in its file."""

    tag: str
    own: Mapping[str, str]
    """Its attributes, without what classes add."""
    children: tuple[MjcfElement, ...]
    """Those of included files in the place of ``<include>``."""
    file: Path
    line: int
    index: int
    """Its number among the file's elements, by their start tags."""

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"{self.file}, line {self.line}"

    @property
    def name(self) -> str:
        """What a message calls it."""
        return f"<{self.tag}>" if "name" not in self.own else f"{self.tag} {self.own['name']!r}"

    def every(self, *tags: str) -> Iterator[MjcfElement]:
        """Children with one of the tags."""
        return (child for child in self.children if child.tag in tags)

    def inside(self, *tags: str) -> Iterator[MjcfElement]:
        """Elements at any depth with one of the tags."""
        for child in self.children:
            if child.tag in tags:
                yield child
            yield from child.inside(*tags)


@dataclass(frozen=True)
class Attributes:
    """An element's attributes over those of its class."""

    element: MjcfElement
    values: Mapping[str, str]

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def text(self, key: str, default: str = "") -> str:
        """A word."""
        return self.values.get(key, default)

    def shown(self, key: str) -> str:
        """The attribute in its place, for messages."""
        of_class = "" if key in self.element.own else " (of its class)"
        tag = self.element.tag
        return f'{self.element.place}: <{tag} {key}="{self.values[key]}">{of_class}'

    def numbers(self, key: str, most: int, least: int | None = None) -> list[float]:
        """The numbers of an attribute, as many as it has."""
        least = most if least is None else least
        try:
            found = [float(word) for word in self.values[key].split()]
        except ValueError:
            found = []
        if not least <= len(found) <= most or not all(abs(value) < HUGE for value in found):
            count = str(most) if least == most else f"{least} to {most}"
            raise InputError(f"{self.shown(key)} should hold {count} finite numbers")
        return found

    def number(self, key: str, default: float = 0.0) -> float:
        """A number, or what it is without."""
        return self.numbers(key, 1)[0] if key in self.values else default

    def vector(self, key: str, default: Sequence[float]) -> Array:
        """A vector of as many numbers as its default has."""
        return np.array(self.numbers(key, len(default)) if key in self.values else default)

    def flag(self, key: str, default: bool) -> bool:
        """Yes or no."""
        if key not in self.values:
            return default
        if self.values[key] not in FLAGS:
            raise InputError(f"{self.shown(key)} should be true or false")
        return FLAGS[self.values[key]]

    def limited(self, key: str, limited: str, automatic: bool) -> tuple[float, float]:
        """A range that counts, or minus and plus infinity."""
        word = self.text(limited, "auto")
        lower, upper = self.numbers(key, 2) if key in self.values else (0.0, 0.0)
        given = automatic and (lower, upper) != (0.0, 0.0)
        if not (given if word == "auto" else self.flag(limited, False)):
            return -np.inf, np.inf
        if lower >= upper:
            raise InputError(f"{self.element.place}: {self.element.name} has an empty {key}")
        return lower, upper


@dataclass(frozen=True)
class Compiler:
    """What ``<compiler>`` says of angles and inertia; later ones over earlier ones."""

    degrees: bool = True
    automatic: bool = True
    """`degrees`, `automatic`: the unit of angles; whether a range alone makes a limit."""
    euler: str = "xyz"
    """Axes of Euler angles; small letters turn with the frame."""
    from_geoms: str = "auto"
    """``"auto"``, ``"true"`` or ``"false"``. Which bodies have the inertia of their geoms."""
    groups: tuple[float, float] = (0.0, 5.0)
    """Groups of geoms that count."""
    least_mass: float = 0.0
    least_inertia: float = 0.0
    total_mass: float = -1.0
    """`least_mass`, `least_inertia`, `total_mass`: bounds of each body, and what all weigh where it
    is positive [kg, kg m^2]."""
    balance: bool = False
    """Whether moments that no body has become their mean."""

    def angle(self, value: float) -> float:
        """An angle of the file [rad]."""
        return float(np.deg2rad(value)) if self.degrees else value


@dataclass(frozen=True)
class MjcfDocument:
    """An MJCF with all that it includes."""

    path: Path
    """The main file."""
    root: MjcfElement
    includes: Mapping[tuple[Path, int], Path] = field(default_factory=dict)
    """Which file stands in the place of an ``<include>``, by its file and index."""

    def sections(self, tag: str) -> Iterator[MjcfElement]:
        """Sections of the file with that tag, in their order."""
        return self.root.every(tag)

    @cached_property
    def classes(self) -> dict[str, tuple[MjcfElement, ...]]:
        """Elements of defaults by class, those that it inherits first."""
        found: dict[str, tuple[MjcfElement, ...]] = {"main": ()}
        for section in self.sections("default"):
            found["main"] += tuple(each for each in section.children if each.tag != "default")
        for section in self.sections("default"):
            if section.own.get("class", "main") != "main":
                raise InputError(f"{section.place}: the outermost <default> is class 'main'")
            self._add_classes(section, "main", found)
        return found

    def _add_classes(
        self, section: MjcfElement, parent: str, found: dict[str, tuple[MjcfElement, ...]]
    ) -> None:
        for each in section.every("default"):
            name = each.own.get("class", "")
            if not name:
                raise InputError(f"{each.place}: a <default> inside another needs a class")
            if name in found:
                raise InputError(f"{each.place}: there is a default class {name!r} already")
            found[name] = found[parent] + tuple(c for c in each.children if c.tag != "default")
            self._add_classes(each, name, found)

    def layers(self, element: MjcfElement, childclass: str, *tags: str) -> tuple[MjcfElement, ...]:
        """The defaults with one of the tags that an element has, and itself last."""
        name = element.own.get("class", childclass)
        self.known_class(name, element)
        return (*(each for each in self.classes[name] if each.tag in tags), element)

    def known_class(self, name: str, element: MjcfElement) -> None:
        """Refuse classes that there are not."""
        refuse_unknown(name, self.classes, f"{element.place}: there is no default class {name!r}")

    def attributes(
        self, element: MjcfElement, childclass: str = "main", kind: str | None = None
    ) -> Attributes:
        """An element's attributes over those of its class, or of `childclass` where it names none.

        `kind` is what defaults call such elements, where not by their tag.
        """
        values: dict[str, str] = {}
        for layer in self.layers(element, childclass, kind or element.tag):
            if any(key in layer.own for key in ORIENTATIONS[1:]):
                values = {key: text for key, text in values.items() if key not in ORIENTATIONS}
            values.update(layer.own)
        return Attributes(element, values)

    @cached_property
    def compiler(self) -> Compiler:
        """The settings of the compiler."""
        values: dict[str, str] = {}
        for section in self.sections("compiler"):
            values.update(section.own)
            last = section
        if not values:
            return Compiler()
        own = Attributes(last, values)
        for key, choices in (
            ("angle", ("degree", "radian")),
            ("inertiafromgeom", ("auto", "true", "false")),
            ("coordinate", ("local",)),
        ):
            if own.text(key, choices[0]) not in choices:
                raise InputError(f"{own.shown(key)} should be {' or '.join(choices)}")
        euler = own.text("eulerseq", "xyz")
        if len(euler) != 3 or not set(euler) <= set("xyzXYZ"):
            raise InputError(f"{own.shown('eulerseq')} should be three of x, y, z, X, Y, Z")
        low, high = own.vector("inertiagrouprange", (0.0, 5.0))
        return Compiler(
            degrees=own.text("angle", "degree") == "degree",
            automatic=own.flag("autolimits", True),
            euler=euler,
            from_geoms=own.text("inertiafromgeom", "auto"),
            groups=(float(low), float(high)),
            least_mass=own.number("boundmass"),
            least_inertia=own.number("boundinertia"),
            balance=own.flag("balanceinertia", False),
            total_mass=own.number("settotalmass", -1.0),
        )

    def rotation(self, own: Attributes) -> Array:
        """The orientation of an element's frame, shape (3, 3)."""
        given = [key for key in ORIENTATIONS if key in own]
        if len([key for key in given if key in own.element.own]) > 1:
            raise InputError(
                f"{own.element.place}: {own.element.name} has several orientations: "
                f"{', '.join(given)}"
            )
        if not given:
            return np.eye(3)
        key = given[-1]
        values = np.array(own.numbers(key, {"quat": 4, "axisangle": 4, "xyaxes": 6}.get(key, 3)))
        if key == "euler":
            rotation = np.eye(3)
            for letter, value in zip(self.compiler.euler, values, strict=True):
                axis = np.eye(3)["xyz".index(letter.lower())]
                step = make_axis_rotation(axis, self.compiler.angle(float(value)))
                rotation = rotation @ step if letter.islower() else step @ rotation
            return rotation
        if key == "quat":
            return np.array(pin.Quaternion(*normalise_direction(values, own, key)).matrix())
        if key == "axisangle":
            axis = normalise_direction(values[:3], own, key)
            return make_axis_rotation(axis, self.compiler.angle(float(values[3])))
        if key == "zaxis":
            return turn_z_to(normalise_direction(values, own, key))
        x = normalise_direction(values[:3], own, key)
        y = normalise_direction(values[3:] - x * (x @ values[3:]), own, key)
        return np.column_stack([x, y, np.cross(x, y)])

    def placement(self, own: Attributes) -> pin.SE3:
        """An element's frame in the one around it."""
        return pin.SE3(self.rotation(own), own.vector("pos", (0.0, 0.0, 0.0)))


def read_document(path: Path) -> MjcfDocument:
    """Read an MJCF and all that it includes."""
    includes: dict[tuple[Path, int], Path] = {}
    seen = {path.resolve()}
    root = _read_file(path, path, seen, includes)
    if root.tag == "robot":
        raise InputError(f"{root.place}: is a URDF; give it a name that ends in .urdf")
    if root.tag != "mujoco":
        raise InputError(f"{root.place}: expected <mujoco>, found <{root.tag}>")
    return MjcfDocument(path, root, includes)


def _read_file(
    path: Path, main: Path, seen: set[Path], includes: dict[tuple[Path, int], Path]
) -> MjcfElement:
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path}: has {path.stat().st_size} bytes, which no robot's model has")
    root = parse_xml(path).getroot()
    numbers = {node: index for index, node in enumerate(root.iter(etree.Element))}

    def element(node: etree._Element) -> MjcfElement:
        children: list[MjcfElement] = []
        for child in node.iterchildren(etree.Element):
            if child.tag != "include":
                children.append(element(child))
                continue
            file = _find_included_file(child, path, main, seen)
            includes[path, numbers[child]] = file
            children += _read_file(file, main, seen, includes).children
        own = {str(key): str(text) for key, text in node.attrib.items()}
        line: int = node.sourceline  # type: ignore[assignment]  # the stubs leave it open
        return MjcfElement(str(node.tag), own, tuple(children), path, line, numbers[node])

    return element(root)


def _find_included_file(node: etree._Element, path: Path, main: Path, seen: set[Path]) -> Path:
    """The file that is included: as seen from the main file, or else from the including one."""
    place, name = f"{path}, line {node.sourceline}", node.get("file")
    if not name:
        raise InputError(f"{place}: <include> names no file")
    if len(node):
        raise InputError(f"{place}: <include> has children; they belong into {name}")
    files = [folder / name for folder in dict.fromkeys((main.parent, path.parent))]
    file = next((each for each in files if os.path.isfile(each)), None)  # False of odd names
    if file is None:
        raise InputError(f"{place}: there is no file {files[0]}")
    if file.resolve() in seen:
        raise InputError(f"{place}: {file} is included already")
    seen.add(file.resolve())
    return file


def normalise_direction(vector: Array, own: Attributes, key: str) -> Array:
    """A vector's direction."""
    size = float(np.linalg.norm(vector))
    if size < 1e-14:
        raise InputError(f"{own.shown(key)} has no direction")
    return np.asarray(vector / size)


def make_axis_rotation(axis: Array, angle: float) -> Array:
    """Rotation about a unit axis, shape (3, 3)."""
    return np.array(pin.AngleAxis(angle, axis).matrix())
