"""What an MJCF's actuators do to single joints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.robot.mjcf_document import ACTUATORS, Attributes, MjcfDocument, MjcfElement

DIRECT = ("joint", "jointinparent")
"""Attributes that name one joint; of a hinge or a slide they say the same."""


@dataclass(frozen=True)
class Actuator:
    """What the actuators of a joint do to it."""

    gear: float
    """Of the actuator, where there is one alone: its turns for one of the joint."""
    effort: float
    """What they can give at most, infinite where one is not bounded [Nm or N]."""
    kp: float
    kd: float
    """`kp`, `kd`: of the position law ``kp (qref - q) - kd dq`` that they follow; 0 where they
    follow none [Nm/rad or N/m, and the same per second]."""

    def beside(self, other: Actuator) -> Actuator:
        """Both at once."""
        return Actuator(1.0, self.effort + other.effort, self.kp + other.kp, self.kd + other.kd)


def read_actuators(document: MjcfDocument) -> dict[str, Actuator]:
    """What acts on single joints, by the joint's name."""
    found: dict[str, Actuator] = {}
    for section in document.sections("actuator"):
        for element in section.every(*ACTUATORS):
            joint = next((element.own[key] for key in DIRECT if key in element.own), "")
            if joint:
                own = _read_actuator(document, element)
                found[joint] = found[joint].beside(own) if joint in found else own
    return found


def _read_actuator(document: MjcfDocument, element: MjcfElement) -> Actuator:
    """One actuator: ``force = gain ctrl + bias[1] length + bias[2] speed``, times its gear.

    Whatever their tags say, all kinds set the numbers of one and the same law, a class those
    that an element starts from.
    """
    values: dict[str, str] = {}
    gain, bias, law = 1.0, [0.0, 0.0, 0.0], "none"
    for layer in document.layers(element, "main", *ACTUATORS):
        values.update(layer.own)
        own = Attributes(layer, layer.own)
        if layer.tag == "general":
            gain = own.numbers("gainprm", 10, 1)[0] if "gainprm" in own else gain
            stated = own.numbers("biasprm", 10, 1) if "biasprm" in own else []
            bias = [*stated[:3], *bias[len(stated[:3]) :]]
            law = own.text("biastype", law)
            if own.text("gaintype", "fixed") != "fixed" or own.text("dyntype") == "integrator":
                law = "other"
        elif layer.tag == "motor":
            gain, law = 1.0, "none"
        elif layer.tag == "position":
            gain, law = own.number("kp", gain), "affine"
            bias[1] = -gain
            bias[2] = -own.number("kv", -bias[2])
            bias[2] = own.number("dampratio", bias[2])
        elif layer.tag == "velocity":
            gain, law = own.number("kv", gain), "affine"
            bias = [0.0, 0.0, -gain]
        else:
            law = "other"
    own = Attributes(element, values)
    turns = own.numbers("gear", 6, 1)[0] if "gear" in own else 1.0
    gear = abs(turns)
    automatic = document.compiler.automatic
    force = max(map(abs, own.limited("forcerange", "forcelimited", automatic)))
    if law == "none":
        force = min(force, abs(gain) * max(map(abs, own.limited("ctrlrange", "ctrllimited", True))))
    # a positive number stands for a damping ratio, which depends on the mass
    follows = law == "affine" and gain > 0.0 and bias[1] == -gain and bias[2] <= 0.0
    kp, kd = (gear**2 * gain, -(gear**2) * bias[2]) if follows else (0.0, 0.0)
    return Actuator(turns or 1.0, gear * force if np.isfinite(force) else np.inf, kp, kd)
