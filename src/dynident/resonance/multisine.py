"""A multisine of one joint on top of a designed trajectory, as wide as the limits let it be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.excitation.design import Design, DesignTask, SearchClock, prove_trajectory
from dynident.excitation.excite import Excitation
from dynident.excitation.trajectories import Harmonics, TrajectoryFamily, build_ramp

RAMP = 1.0
"""From rest and to rest, where the trajectory that was designed has no ramps [s]."""
NARROWER, STEPS = 0.8, 40
"""Share of the multisine that is tried next, and how often."""


def shake(
    plan: Excitation, joint: int, band: tuple[float, float], own: float = 0.5, others: float = 0.0
) -> Design:
    """A designed trajectory that reaches the resonance of a joint's link on its spring.

    Lines of equal accelerations, of the trajectory's own period, with phases that keep peaks low
    (Schroeder 1970), are added to shares of what was designed. The proof is of the sum, under the
    limits of the plan.

    >>> options = {"starts": 1, "iterations": 5, "collision": False}
    >>> plan = di.excite(robot, duration=2.0, harmonics=2, **options)
    >>> shaken = di.shake(plan, 0, (2.0, 40.0))
    >>> reference = shaken.trajectory.reference(1000.0, periods=10)

    Parameters
    ----------
    plan : Excitation
        Of a Fourier series.
    joint : int
        From 0.
    band : (float, float)
        Of the lines [Hz].
    own, others : float
        Shares of the designed motion that the joint and the others keep: for
        `dynident.find_resonance` others stand.

    Raises
    ------
    InputError
        When the trajectory does not repeat, has to begin where it was told to, or the band has no
        line above its own.
    ComputationError
        When no multisine keeps the limits beside what is kept of the motion.
    """
    refuse_wrong_band(band)
    task, family = plan.design.task, plan.trajectory.family
    main = family.parts[family.main]
    if not isinstance(main, Harmonics):
        raise InputError(f"trajectory {family.kind!r} does not repeat; shake a fourier series")
    if task.start is not None:
        raise InputError("a trajectory that begins at initial cannot be shaken; leave that out")
    first, last = (int(hz * main.period + end) for hz, end in zip(band, (1.0 - 1e-9, 1e-9)))
    numbers = np.arange(first, last + 1)
    numbers = numbers[2.0 * np.pi * numbers / main.period > 1.001 * main.omega.max()]
    if not len(numbers):
        raise InputError(
            f"no line above the trajectory's own is from {band[0]:g} to {band[1]:g} Hz"
        )
    lines, k = 2.0 * np.pi * numbers / main.period, np.arange(len(numbers))
    omega, phase = np.append(main.omega, lines), np.pi * k * (k + 1) / len(k)
    known = main.mix @ plan.trajectory.C
    share = np.where(np.arange(known.shape[1]) == joint, own, others)
    C, waves = np.zeros((2, 1 + 2 * len(omega), len(share)))
    count = len(main.omega)
    C[0], C[1 : 1 + count] = known[0], share * known[1 : 1 + count]
    C[1 + len(omega) : 1 + len(omega) + count] = share * known[1 + count :]
    waves[1 + count : 1 + len(omega), joint] = np.cos(phase) / lines**2
    waves[1 + len(omega) + count :, joint] = np.sin(phase) / lines**2
    ramp = RAMP if family.main == 0 else family.parts[0].stop - family.parts[0].start
    whole = Harmonics(main.period, omega, np.eye(len(C)))
    ends = [build_ramp(whole, 0.0, -ramp, 0.0)]
    ends += [build_ramp(whole, main.period, main.period, main.period + ramp)]
    shaken = TrajectoryFamily(
        "fourier", (ends[0], whole, ends[1]), np.ones(len(C)), main.period, main=1
    )
    return widen(replace(task, family=shaken, redraw=None, drawn=None), C, waves, joint, lines)


def widen(task: DesignTask, C: Array, waves: Array, joint: int, lines: Array) -> Design:
    """The widest multisine beside a motion, of unit accelerations, that is proved to be kept."""
    limits = task.limits
    room = 0.5 * (limits.upper[joint] - limits.lower[joint]) / np.sum(lines**-2)
    most = min(room, limits.speed[joint] / np.sum(1.0 / lines))
    for size in most * NARROWER ** np.arange(STEPS):
        trajectory = task.along(C + size * waves)
        proof = prove_trajectory(task, trajectory, SearchClock())
        if proof.ok:
            return Design(task, trajectory, task.value(trajectory), proof, (), "shaken")
    raise ComputationError(
        f"no multisine of {task.names[joint]} keeps the limits beside this motion; keep a smaller "
        "share of it (own, others), or a narrower band"
    )


def refuse_wrong_band(band: tuple[float, float]) -> None:
    """Refuse what is not a band of frequencies."""
    low, high = band
    if not 0.0 <= low < high < np.inf:
        raise InputError(f"a band has its lower end first, and not {low:g} to {high:g} Hz")
