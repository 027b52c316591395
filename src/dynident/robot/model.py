"""The robot: a frozen tree of joints and bodies with what the file says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.core.errors import InputError
from dynident.core.plain import ADDED
from dynident.robot.drives import Drives

GRAVITY = (0.0, 0.0, -9.81)
HUGE = 1e9
"""No length, mass, inertia or acceleration of a robot is larger."""
TINY = 1e-15
"""No mass is smaller, but none [kg]."""
Equations = Literal["full", "joints", "base", "null-space"]
EQUATIONS: tuple[Equations, ...] = ("full", "joints", "base", "null-space")
"""Of motion, that a log states: base wrench and joint torques; one of both; or what is free of the
contacts' wrenches."""
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")
WRENCH_ROWS = tuple((part, "N" if part[0] == "f" else "Nm") for part in WRENCH)
"""Components of a wrench."""
Unknown = Literal["bias", "orientation"]
"""Of a sensor of forces, that can be estimated."""
LAW = "law_delay"
"""Name, among sensors, of what says how late a stated law of the drives has its targets."""
HYSTERESIS = tuple(f"Kh{end}" for end in "abcdef")
"""Torques of the bristles of a spring's hysteresis, where they slip."""
MOST_JOINTS = 100
"""Moving joints: the regressor's columns grow with them, and what it takes with their cube."""


@dataclass(frozen=True)
class Joint:
    """One joint and the body that it moves."""

    name: str
    link: str
    """`name`, `link`: the joint, and the link that it moves."""
    kind: Literal["revolute", "prismatic"]
    """A continuous joint is revolute without limits."""
    parent: int
    """1-based number of the joint that moves the parent body; 0 is the base."""
    rotation: Array
    translation: Array
    """`rotation`, `translation`: placement of the joint frame in the parent's frame at q = 0 [m],
    shapes (3, 3) and (3,)."""
    axis: Array
    """Unit axis in the joint frame, shape (3,)."""
    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf
    """`lower`, `upper`, `velocity`, `effort`: limits, infinite where the file states none [rad or
    m, 1/s, Nm or N]."""
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    """`damping`, `friction`, `armature`: the file's own values, for comparison only: viscous,
    Coulomb, and the rotor's inertia as the joint sees it."""
    kp: float = 0.0
    kd: float = 0.0
    """`kp`, `kd`: of the law ``kp (qref - q) - kd dq`` that the file gives the joint's drive, 0
    where it gives none."""


@dataclass(frozen=True)
class Contact:
    """A frame of the robot on which the world acts: a foot, a hand, a plate under the base."""

    name: str
    """As the columns of logs have it: ``fx_<name>``."""
    frame: str
    """The link of the robot file whose frame it is."""
    body: int
    """Number of the joint that moves it; 0 is the base."""
    rotation: Array
    translation: Array
    """`rotation`, `translation`: placement in the body's frame of this one, turned by `rpy` [m],
    shapes (3, 3) and (3,)."""
    surface: bool = True
    """Whether it bears moments (six components), and is not a point (three)."""
    axes: Literal["frame", "world"] = "frame"
    """In which its wrench is logged, always about the frame's origin."""
    bias: Array = field(default_factory=lambda: np.zeros(6))
    """Shape (6,). What its sensor reads unloaded: force and moment [N, Nm]."""
    sign: Literal[1, -1] = 1
    """-1 where the log has what acts on the world."""
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """How its sensor is turned in the frame: roll, pitch, yaw [rad]."""
    estimate: tuple[Unknown, ...] = ()
    """``"bias"``, ``"orientation"``. What of its sensor is not known, and estimated beside the
    bodies: what `bias` misses, and a small turn of its axes."""
    radius: float = 0.0
    """Of a ball about its origin, as feet are, which touches at its lowest point [m]: of contacts
    whose wrench nothing measures."""

    @property
    def components(self) -> int:
        """Of its wrench: 6, or 3 of a point."""
        return 6 if self.surface else 3


@dataclass(frozen=True)
class Gauge:
    """A sensor in the chain, which adds rows of its own behind the equations of motion."""

    kind: str
    """Name in `SENSED` of `dynamics/limbs.py`, which says what its rows are of the model."""
    name: str
    """Of its signal in logs, and of its rows' groups."""
    parts: tuple[tuple[str, str], ...]
    """What each of its rows is called behind the name, and its unit."""
    place: int
    """The joint that it is at, or the limb that it holds, from 0."""
    terms: tuple[str, ...] = ()
    """What is not known of the spring, or of the sensor, that stands in its row: names in `TERMS`
    of `dynamics/springs.py`."""
    slips: tuple[float, ...] = field(default=(), metadata=ADDED)
    """Deflections by which the bristles of a spring's hysteresis slip [rad or m]."""

    def without_bristles(self) -> Gauge:
        """Of the same spring without hysteresis."""
        return replace(self, terms=tuple(t for t in self.terms if t not in HYSTERESIS), slips=())

    @property
    def key(self) -> str:
        """Where a study says that it is there, as one leaves it out."""
        return "link out of [[robot.drive]]" if self.terms else "sensor out of [robot]"

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns in logs."""
        return tuple(f"{part}_{self.name}".lstrip("_") for part, _ in self.parts)

    @property
    def signal(self) -> str:
        """What these are called together."""
        return self.name if self.columns == (self.name,) else f"wrench_{self.name}"


@dataclass(frozen=True)
class KinematicLoop:
    """What closes a kinematic chain: two frames that meet, or a joint that follows another."""

    name: str
    kind: str
    """Name in `KINDS` of `robot/linkage.py`: what of the frames meets; ``joint``, a coupling."""
    passive: tuple[str, ...]
    """Joints without a drive, whose positions the loop gives."""
    bodies: tuple[int, int]
    """1-based numbers of the joints that move the frames; 0 is the base. Of a coupling the joint
    that follows, and that which leads."""
    rotations: Array
    translations: Array
    """`rotations`, `translations`: placements of the frames in the bodies' [m], shapes (2, 3, 3)
    and (2, 3)."""
    polynomial: tuple[float, ...] = ()
    """Of a coupling: ``q_follows = sum_k polynomial[k] q_leads^k``."""


@dataclass(frozen=True)
class Robot:
    """A tree of rigid bodies on a fixed or free-flying base.

    Bodies are the base link (only when floating, number 0) and then each joint's link
    in joint order. What is fixed to a body is part of it.

    >>> robot.joint_names
    ('shoulder', 'elbow')

    Attributes
    ----------
    name : str
    joints : tuple of Joint
        Parents come before children.
    floating : bool
        Whether the base moves freely (a free-flyer, 6 velocities before the joints').
    base_link : str
    gravity : ndarray, shape (3,)
        In the base frame (world frame when floating) [m/s^2].
    nominal : ndarray, shape (bodies, 10)
        The file's inertial parameters; rows of zeros where it has none.
    drives : Drives
    locked : mapping of str to float
        Joints of the file that are fixed at a value and not among `joints`; their links are
        part of the body that carries them [rad or m].
    source : Path or None
        The file it came from (the URDF or the MJCF where there is one).
    warnings : tuple of str
    contacts : tuple of Contact
        Where the world acts on it.
    carrier : Robot or None
        The whole robot, of a limb that was cut off: its logs are those of the carrier.
    seat : Contact or None
        Where the limb's base is on the carrier.
    limbs : tuple of Robot
        Limbs beyond force/torque sensors in the chain, whose wrenches are fitted, too: the
        `carrier` of each is this robot. `nominal` has their `parts` after the bodies.
    gauges : tuple of Gauge
        Other sensors in the chain.
    loops : tuple of KinematicLoop
        What closes chains of the tree.
    assembled : tuple of float
        Positions of all joints with which the loops are closed; none without [rad or m].
    """

    name: str
    joints: tuple[Joint, ...]
    nominal: Array
    drives: Drives
    floating: bool = False
    base_link: str = "base"
    gravity: Array = field(default_factory=lambda: np.array(GRAVITY))
    locked: Mapping[str, float] = field(default_factory=dict)
    source: Path | None = None
    warnings: tuple[str, ...] = ()
    contacts: tuple[Contact, ...] = ()
    carrier: Robot | None = None
    seat: Contact | None = None
    limbs: tuple[Robot, ...] = ()
    gauges: tuple[Gauge, ...] = ()
    loops: tuple[KinematicLoop, ...] = field(default=(), metadata=ADDED)
    assembled: tuple[float, ...] = field(default=(), metadata=ADDED)

    def __repr__(self) -> str:
        """One line, for a prompt."""
        base = " on a floating base" if self.floating else ""
        return f"<Robot {self.name}: {self.n} joints{base} ({', '.join(self.joint_names)})>"

    @property
    def identity(self) -> dict[str, Any]:
        """Which robot it is, in the words of result.json."""
        return {"name": self.name, "joints": list(self.joint_names), "dof": self.dof}

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.joints)

    @property
    def dof(self) -> int:
        """Number of velocities: 6 of a floating base, and one a joint."""
        return self.n + 6 * self.floating

    @property
    def equations(self) -> int:
        """Number of rows an instant: one a velocity, then those of sensors in the chain."""
        return self.dof + sum(len(gauge.parts) for gauge, _ in self.sensed)

    @property
    def sensed(self) -> tuple[tuple[Gauge, slice], ...]:
        """Sensors in the chain, and where their rows are."""
        wrenches = (limb.contacts[0].name for limb in self.limbs)
        held = (Gauge("wrench", name, WRENCH_ROWS, k) for k, name in enumerate(wrenches))
        every = (*held, *self.gauges)
        stops = accumulate((len(gauge.parts) for gauge in every), initial=self.dof)
        return tuple((gauge, slice(*ends)) for gauge, ends in zip(every, pairwise(stops)))

    @property
    def sprung_rows(self) -> tuple[tuple[int, int], ...]:
        """Rows of links' encoders beyond a spring, and the rows of their joints."""
        first = self.dof - self.n
        return tuple(
            (rows.start, first + gauge.place)
            for gauge, rows in self.sensed
            if "offs" in gauge.terms
        )

    def refuse_loops(self, what: str) -> None:
        """Refuse closed chains, of which `what` knows nothing."""
        if self.loops:
            raise InputError(
                f"{self.name}: {what} needs a tree, but the robot has a closed chain "
                f"({', '.join(loop.name for loop in self.loops)}); see docs/loops.md for what does"
            )

    @property
    def passive(self) -> Booleans:
        """Which joints have no drive, as loops give their positions, shape (n,)."""
        given = {name for loop in self.loops for name in loop.passive}
        return np.array([name in given for name in self.joint_names], dtype=bool)

    @property
    def driven(self) -> list[int]:
        """Joints with a drive, from 0: the others have no signals of their own."""
        return [j for j, passive in enumerate(self.passive) if not passive]

    @property
    def bodies(self) -> int:
        """Number of bodies that velocities move: the base's where it floats, and one a joint."""
        return self.n + self.floating

    @property
    def parts(self) -> tuple[Robot, ...]:
        """Limbs whose base is a part of a body: a body more, which moves with the whole."""
        return tuple(limb for limb in self.limbs if limb.base_link in self.links[self.bodies :])

    @property
    def bare(self) -> Robot:
        """The robot without sensors in its chain."""
        if not self.sensed:
            return self
        return replace(self, limbs=(), gauges=(), nominal=self.nominal[: self.bodies])

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, in order."""
        return tuple(joint.name for joint in self.joints)

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the bodies: the base's first when floating, `parts` last."""
        moved = tuple(joint.link for joint in self.joints)
        own = (self.base_link, *moved) if self.floating else moved
        return (*own, *(limb.base_link for limb in self.limbs if limb.base_link not in own))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The number that each body's parameters carry: 0 for the base link."""
        first = int(not self.floating)
        return tuple(range(first, first + len(self.links)))

    def list_carriers(self, body: int) -> list[int]:
        """The joint of a body, from 0, and those that carry it, down to the base; of -1 none."""
        return [] if body < 0 else [body, *self.list_carriers(self.joints[body].parent - 1)]

    def body_index(self, number: int) -> int:
        """Place among the bodies of the one that joint `number` moves, or of a floating base."""
        return number if self.floating else number - 1

    @property
    def reach(self) -> float:
        """Length of the longest chain of joints, slides drawn out within their limits [m]."""
        far = [0.0]
        for joint in self.joints:
            length = float(np.linalg.norm(joint.translation))
            if joint.kind == "prismatic":
                length += float(np.max(np.abs(np.clip([joint.lower, joint.upper], -2.0, 2.0))))
            far.append(far[joint.parent] + length)
        return max(far)

    @property
    def has_nominal(self) -> bool:
        """Whether the file states inertials for at least one body."""
        return bool(np.any(self.nominal[:, 0] > 0.0))
