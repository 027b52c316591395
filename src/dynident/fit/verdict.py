"""Whether a result can be trusted, with reasons."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.core.words import format_rough
from dynident.diagnosis.examine import Finding
from dynident.diagnosis.signs import NUMBERS, STILL, Sign
from dynident.diagnosis.thresholds import LEAST_MOTION, QUIET

TRUSTED, DOUBTFUL, REFUTED = STATES = ("trusted", "doubtful", "refuted")
"""From best to worst."""
ANYWAY = "anyway=True, on the command line --anyway"
"""What makes something of a refuted result."""
LIGHT = 0.05
"""Share of a robot's weight, or of that on a limb's lever, that the noise of force sensors is."""
BAD, POOR = 50.0, 25.0
"""Errors of a joint above which a model is refuted, or doubtful [%]."""
GROWN, SMALL = 2.0, 1.0
"""Held-out error over the fitted one from which a model is doubtful, the least that counts [%]."""
FINE = 10.0
"""Error below which nothing is refuted [%]."""
LARGE = 0.05
"""Share of its drive's effort limit below which what is left of a joint refutes nothing."""
NEGATIVE = -3.0
"""Friction and rotors below so many standard deviations are negative."""
FAR_MASS = 5.0
"""Times the mass in the file, or its reciprocal, from which a link that logs tell is doubtful."""
HARMLESS = 0.1
"""Share of a signal up to which what is wrong with it decides nothing."""
RESTING, WORSE = 0.05, 1.5
"""Share of a joint's rows at standstill, and times the error of those in motion, from which its
friction is that of neither."""
MOST_TIMES = 5.0
"""Times its drive's effort limit from which a torque is in another unit, or on another side."""
TOLD = 0.5
"""Share of the combinations of parameters below which a log tells too little for a model."""
ROWS_EACH = 2
"""Rows for each combination of parameters below which errors are too small to tell anything."""
NOTABLE = 0.1
"""Share of a joint's torque from which Coulomb friction of the wrong sign is not a small error."""
CONTRADICTED = 1.5
"""Error under the constraints over that without them from which the data refute them."""


@dataclass(frozen=True)
class Reason:
    """Why a result is not simply trusted."""

    state: str
    """What it makes of the result: ``trusted`` where it changes too little to decide anything."""
    words: str
    size: float = 0.0
    """What it changes, as a share of a torque, of what a drive can do, or of a motion; of what is
    left out, the share of a log."""
    advice: str = ""
    """The one thing to do about it; empty where the words say it."""


ONE_LOG = (
    "on the evidence of one log, in which a wrong torque unit, encoder zero, rate or load would go "
    "unnoticed: give a held-out log"
)
"""What trust in a result rests on that no second log was asked about."""
SEVERAL_LOGS = (
    "on the evidence of logs that agree; the same wrong torque unit, gain or encoder zero in all "
    "of them would go unnoticed: compare with a known mass"
)
"""The same of several logs."""
CHECK_LOG = "run dynident doctor (map qref, if logged): it tries units, gains, signs and clocks"
CHECK_FRICTION = "compare friction models with dynident compare, and run dynident doctor on the log"
ALIKE = "compare load, temperature and speeds of the logs, and fit them together if these agree"
CHECK_LAW = "check that joint's gains, limits and targets, and whether anything touched it"
EXCITE = "log a motion designed by dynident excite"
"""What there is to do."""


@dataclass(frozen=True)
class Verdict:
    """What can be made of a result."""

    state: str
    """``"trusted"``, ``"doubtful"`` or ``"refuted"``."""
    reasons: tuple[Reason, ...]
    """The gravest first; of what is trusted none."""
    reserve: str = ""
    """What is not known even so."""
    remarks: tuple[str, ...] = ()
    """What changes too little to decide anything."""

    @property
    def words(self) -> str:
        """One line."""
        if self.reasons:
            return f"{self.state}: {'; '.join(reason.words for reason in self.reasons)}"
        return f"{self.state} {self.reserve}".rstrip()


def reach_verdict(
    reasons: Sequence[Reason], logs: int, expected_percent: float | None = None
) -> Verdict:
    """The gravest of some reasons, from so many logs, held-out ones included.

    Of one log the reserve says what error of torques is expected along others; None of positions.
    """
    ordered = sorted(reasons, key=lambda reason: (-STATES.index(reason.state), -reason.size))
    state = ordered[0].state if ordered else TRUSTED
    told = tuple(reason for reason in ordered if reason.state != TRUSTED)
    remarks = tuple(reason.words for reason in ordered[len(told) :])
    reserve = ONE_LOG if logs == 1 else SEVERAL_LOGS
    if logs == 1 and expected_percent is not None and np.isfinite(expected_percent):
        reserve += f"; the expected error on similar motions is {expected_percent:.2g} %"
    return Verdict(state, told, reserve, remarks)


def list_error_reasons(
    rows: str,
    names: Sequence[str],
    errors: Sequence[float],
    nominal: Sequence[float] = (),
    left: Sequence[float] | Array = (),
    spared: int = 0,
) -> list[Reason]:
    """Joints that the model explains badly, or worse than the robot file does.

    What is left counts by what the drive can do. Next to nothing of it may be noise, or friction
    that no model has, and decides nothing; nor does a rest no larger than that of the joints that
    are explained well, unless it is most of the torque. Little of it refutes nothing.

    Parameters
    ----------
    rows : str
        Whose errors they are: ``fitted rows``, or a held-out log.
    errors, nominal : sequence of float
        Of the model and of the robot file's inertials [%].
    left : sequence of float
        What is left of the torques, as shares of the drives' effort limits.
    spared : int
        How many of the first are not named where little is left: a floating base's wrench.
    """
    found = []
    unknown = np.full(len(errors), np.inf)
    known, shares = (given if len(given) else unknown for given in (nominal, left))
    well = [share for error, share in zip(errors, shares, strict=True) if error <= POOR]
    usual = max((share for share in well if np.isfinite(share)), default=0.0)
    for k, (name, error, file, share) in enumerate(zip(names, errors, known, shares, strict=True)):
        if not error > POOR or (k < spared and share < LIGHT):  # also where there is no torque
            continue
        words, size = f"{name}: error {error:.0f} % on {rows}", error / 100.0
        if np.isfinite(share):
            words, size = f"{words}, {100.0 * share:.2g} % of its limit", share
        if well and (share < QUIET or (share <= usual and error <= BAD)):
            found.append(Reason(TRUSTED, words, size))
            continue
        worse = error > file
        words += f", the robot file's inertials {file:.0f} %" if worse else ""
        refutes = share >= LARGE and (worse or error > BAD)
        advice = CHECK_LOG if worse else CHECK_FRICTION
        found.append(Reason(REFUTED if refutes else DOUBTFUL, words, size, advice))
    return found


def list_held_out_reasons(log: str, error: float, fitted: float) -> list[Reason]:
    """A held-out log that the model explains much worse than the fitted ones."""
    if error > max(SMALL, GROWN * fitted):
        words = f"error {format_rough(error)} % on held-out {log}, {fitted:.2g} % on the fitted"
        return [Reason(DOUBTFUL, words, error / 100.0, ALIKE)]
    return []


def list_contradiction_reasons(error: float, free: float) -> list[Reason]:
    """Constraints that make the error much larger.

    `error`, `free`: overall, under the constraints and without them [%].
    """
    if error > CONTRADICTED * free and error > FINE:
        words = (
            f"no physically consistent model explains the log: error {error:.0f} %, without "
            f"constraints {free:.0f} %"
        )
        return [Reason(REFUTED, words, advice=CHECK_LOG)]
    if error > max(SMALL, GROWN * free):
        words = (
            f"constraints or prior contradict the log: error {format_rough(error)} %, without "
            f"them {format_rough(free)} %"
        )
        advice = "correct or leave out the constraints that act, or the prior"
        return [Reason(DOUBTFUL, words, advice=advice)]
    return []


def list_negative_drive_reasons(
    names: Sequence[str], values: Sequence[float] | Array, std: Sequence[float] | Array
) -> list[Reason]:
    """Drives that give energy away, as unconstrained methods may find them.

    `names`: of rotor inertias and frictions that have to be positive.
    """
    found = [
        name for name, value, s in zip(names, values, std, strict=True) if value < NEGATIVE * s
    ]
    if not found:
        return []
    advice = "use a constrained method such as pc-idim-ls, or log a richer motion"
    return [Reason(DOUBTFUL, f"{', '.join(found)}: clearly negative", advice=advice)]


def list_excitation_reasons(rank: int, count: int, rows: int, motion: float) -> list[Reason]:
    """Logs that leave most of the model to what was known before.

    Parameters
    ----------
    rank, count : int
        Combinations of parameters that the logs excite, and all of them.
    rows : int
        That were fitted.
    motion : float
        The farthest that anything moves [rad or m].
    """
    found = []
    if motion < LEAST_MOTION:
        words = f"nothing moves by more than {1e3 * LEAST_MOTION:g} mrad or mm"
        found.append(Reason(REFUTED, words, advice=EXCITE))
    if rows < ROWS_EACH * count:
        words = f"there are only {rows} rows for {count} combinations of parameters"
        found.append(Reason(DOUBTFUL, words, advice="log longer, or raise the bandwidth"))
    if rank < TOLD * count:
        words = f"the logs determine only {rank} of {count} combinations of parameters"
        found.append(Reason(DOUBTFUL, words, advice=EXCITE))
    return found


def list_rough_log_reasons(logs: Sequence[str], rejected: bool) -> list[Reason]:
    """Logs whose positions no filter smooths, where the data contradict what bodies can be.

    Parameters
    ----------
    logs : sequence of str
        Those whose positions' cutoff is at or above the Nyquist frequency.
    rejected : bool
        Whether the data contradict the active constraints.
    """
    if not logs or not rejected:
        return []
    words = (
        f"{', '.join(logs)}: positions are not filtered, and the data contradict the constraints, "
        "as noise in accelerations makes them; lower the bandwidth"
    )
    return [Reason(DOUBTFUL, words)]


def list_instrument_reasons(first_stage_f: float, least: float) -> list[Reason]:
    """Instruments that tell too little of some combination of parameters.

    Parameters
    ----------
    first_stage_f : float
        Of the weakest combination.
    least : float
        Below which it is weak.
    """
    if first_stage_f >= least:
        return []
    words = (
        f"weak instruments (first-stage F {first_stage_f:.1f}, below {least:g}): part of the bias "
        "that they should remove remains, and confidence intervals are too narrow"
    )
    return [Reason(DOUBTFUL, words, advice="fit by pc-idim-ls, or log a richer reference")]


def list_standstill_reasons(
    names: Sequence[str], shares: Array, times: Array, speeds: Array
) -> list[Reason]:
    """Joints whose rows at standstill, many, are explained far worse than those in motion.

    There friction is anything up to what Coulomb friction is in motion, and pulls that down.

    Parameters
    ----------
    shares, times : ndarray, shape (n,)
        How many of a joint's rows are at standstill, and how many times the error of those in
        motion they have; NaN where there are none.
    speeds : ndarray, shape (n,)
        Below which a joint stands [rad/s or m/s].
    """
    found = (shares >= RESTING) & (times >= WORSE)
    if not np.any(found):
        return []
    least, most = np.min(times[found]), np.max(times[found])
    size = f"{most:.2g}" if most - least < 0.05 else f"{least:.2g} to {most:.2g}"
    whose = ", ".join(name for name, own in zip(names, found, strict=True) if own)
    below = ", ".join(f"{speed:.2g}" for speed in speeds)
    words = (
        f"{100.0 * np.max(shares[found]):.0f} % of the rows of {whose} are at standstill, with "
        f"{size} times the error of those in motion: Coulomb friction comes out too small; leave "
        f"them out with drop_below = [{below}]"
    )
    return [Reason(DOUBTFUL, words)]


def list_limit_reasons(log: str, peaks: Array, limits: Array) -> list[Reason]:
    """Torques that most drives with a known limit cannot have.

    Parameters
    ----------
    peaks, limits : ndarray, shape (n,)
        Of the torques and of the drives' efforts, zero or infinite where none is known [Nm or N].
    """
    known = np.isfinite(limits) & (limits > 0.0)
    times = peaks[known] / limits[known]
    if not np.any(known) or np.median(times) <= MOST_TIMES:
        return []
    words = (
        f"the torques reach {np.min(times):.3g} to {np.max(times):.3g} times their effort limits: "
        "check their unit, gains and side"
    )
    return [Reason(DOUBTFUL, f"{log}: {words}")]


def list_sign_reasons(log: str, joints: Sequence[str], signs: Sequence[Sign]) -> list[Reason]:
    """What the signals of a log show, the same of several joints once.

    `joints`: all of the robot's.
    """
    alike: dict[str, list[tuple[Sign, str]]] = {}
    longest = sorted(joints, key=len, reverse=True)
    names = re.compile("|".join(rf"(?<!\w){re.escape(joint)}(?!\w)" for joint in longest))
    for sign in signs:
        if sign.kind == STILL:
            continue
        own = names.search(sign.what)
        said = sign.what if own is None else names.sub("", sign.what, count=1)
        alike.setdefault(NUMBERS.sub("", said), []).append((sign, own[0] if own else ""))
    found = []
    for every in alike.values():
        (first, _), *others = sorted(every, key=lambda told: -told[0].size)
        like = ", ".join(dict.fromkeys(joint for _, joint in others))
        words = f"{log}: {first.what}{f' (likewise {like})' if like else ''}"
        found.append(Reason(DOUBTFUL if first.size > HARMLESS else TRUSTED, words, first.size))
    return found


def list_finding_reasons(findings: Sequence[Finding]) -> list[Reason]:
    """Logs that another reading explains better: what explains errors goes before them."""
    return [
        Reason(
            REFUTED if f.before > FINE and not f.quiet else DOUBTFUL,
            f"{f.log}: {f.found}",
            1.0 + f.before / 100.0,
            f.remedy,
        )
        for f in findings
    ]
