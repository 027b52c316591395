"""Two masses and a spring, from the motor's positions and torques, frequency by frequency.

Of a motor at theta and a link at q (Spong 1987), other joints at rest, the motor's torque is

    tau = (Ia s^2 + fv s) theta + fc sign(dtheta) + H(s) theta,
    H = (K + D s) Z / (K + D s + Z),    Z = M s^2 + G,

with M the inertia of what moves with the joint and G the slope of gravity's torque. H is largest
at the antiresonance ``sqrt(K / M)``, where the motor stands and the link swings; torque over motion
is smallest at the resonance, ``sqrt(K (1 / M + 1 / Ia))``. Both errors, of positions and torques,
are known by what periods differ by, so that the sum of squares is that of maximum likelihood with
errors in both (Pintelon and Schoukens 2012).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.core.words import format_entry, format_number, format_table
from dynident.filters.harmonics import Complex, differentiate_harmonics, sum_harmonics
from dynident.recording.periods import HIGHEST, PeriodError
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.resonance.multisine import refuse_wrong_band

NAMES = ("Ia", "fv", "fc", "M", "G", "c", "T")
"""Rotor, friction, the link's inertia, gravity's slope; compliance 1/K, and D/K."""
UNITS = ("kg m^2", "Nm s/rad", "Nm", "kg m^2", "Nm/rad", "rad/Nm", "s")
UNLIKE = 3.0
"""Misfit from which a joint is not two masses, whatever tells it from one."""
NORMAL = 1.96
"""Of a 95 % interval."""
SURE = 1e-4
"""Chance below which a stiff joint is taken not to give such a difference."""
STARTS, DAMPED = 40, 0.03
"""Antiresonances that the search begins at, and the damping ratio there."""
ABOVE = 5.0
"""Standard deviations of its noise by which the motor moves at a line that counts."""
WIDER = 2.0
"""Times the top of the band up to which the speed counts, whose sign friction has."""
BEYOND = 2.0
"""Times the top of the band up to which an antiresonance is sought."""
PAST = 1.25
"""Times the antiresonance up to which the motor is shaken at the least."""
WANTED = 1.5
"""The same of a motion that is asked for."""
NEAR = 3.0
"""Standard deviations of a speed from zero within which its sign is left open."""
ROUNDS = 8
"""In which weights of one mass follow its impedance."""

REPEATING = (
    "a spring is told by the mean of periods: give the motion's own period [s], cut what does not "
    "repeat with rows, or log a motion that repeats, as dynident resonance --shake designs it"
)


@dataclass(frozen=True)
class Resonance:
    """What the motor's side of a joint tells of a spring behind it.

    Attributes
    ----------
    log, joint : str
        Their names.
    lines : int
        Frequencies that count.
    values, std : ndarray, shape (7,)
        Of `NAMES`, and their standard errors [kg m^2, Nm s/rad, Nm, kg m^2, Nm/rad, rad/Nm, s].
    stiffness, damping : tuple of 2 float
        K and D, and their standard errors [Nm/rad, Nm s/rad].
    interval : tuple of 2 float
        Of the compliance 1/K, 95 %; all, where chance may make the difference: a link of no
        inertia, which no log excludes, may be behind any spring [rad/Nm].
    antiresonance, resonance : float
        [Hz]
    misfit, stiff_misfit : float
        Squared error over what noise makes of it, one by expectation: of two masses, and of one.
    chance : float
        That of so much less error with a spring if there were none.
    """

    log: str
    joint: str
    lines: int
    values: Array
    std: Array
    stiffness: tuple[float, float]
    damping: tuple[float, float]
    interval: tuple[float, float]
    antiresonance: float
    resonance: float
    misfit: float
    stiff_misfit: float
    chance: float

    @property
    def supported(self) -> bool:
        """Whether the log tells the spring from a stiff joint."""
        return self.chance < SURE and self.interval[0] > 0.0 and self.misfit < UNLIKE

    @property
    def words(self) -> str:
        """The answer in a sentence."""
        if not self.supported:
            return f"{self.joint}: the log does not tell the spring from a stiff joint"
        return (
            f"{self.joint}: spring of {self.stiffness[0]:.4g} ± {self.stiffness[1]:.2g} Nm/rad, "
            f"damping {self.damping[0]:.3g} ± {self.damping[1]:.2g} Nm s/rad, antiresonance "
            f"{self.antiresonance:.3g} Hz, resonance {self.resonance:.3g} Hz"
        )

    @property
    def summary(self) -> str:
        """The answer and its values, as text."""
        fit = f"{self.misfit:.3g} times the noise, {self.stiff_misfit:.3g} of one mass"
        lines = [*format_entry("log", self.log), *format_entry("spring", self.words)]
        lines += [*format_entry("misfit", f"{fit}, of {self.lines} lines"), ""]
        columns = [
            ("value", [format_number(value) for value in self.values]),
            ("std", [format_number(value, 2) for value in self.std]),
            ("unit", list(UNITS)),
        ]
        return "\n".join([*lines, *format_table("parameter", NAMES, columns)])

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        known = asdict(self)
        pairs = zip(NAMES, known.pop("values").tolist(), known.pop("std").tolist(), strict=True)
        parameters = [{"name": name, "value": value, "std": std} for name, value, std in pairs]
        return {**known, "told": self.supported, "words": self.words, "parameters": parameters}


@dataclass(frozen=True)
class HarmonicLines:
    """A motor's mean harmonics at some frequencies, and the noise of these means."""

    s: Complex
    """``i omega`` [rad/s]"""
    q: Complex
    tau: Complex
    sign: Complex
    open: Complex
    """Units of torque at samples so near to a reversal that noise may turn the sign, shape (lines,
    samples)."""
    noise: tuple[float, float, complex]
    """Variances of q and tau, and their covariance, which is complex."""

    def divide_by_noise(self, error: Complex, impedance: Complex) -> Complex:
        """Errors of torques, by what noise of positions and torques makes of them."""
        of_q, of_tau, both = self.noise
        variance = of_tau + np.abs(impedance) ** 2 * of_q
        return np.asarray(error / np.sqrt(variance - 2.0 * np.real(np.conj(both) * impedance)))


def find_resonance(
    log: Recording, joint: int, band: tuple[float, float], period: float | Literal["found"]
) -> Resonance:
    """Stiffness and damping of a joint's spring from its motor alone.

    >>> print(di.find_resonance(shaken, 1, (2.0, 50.0), 2.0).words)
    joint 2: spring of ... Nm/rad, damping ... Nm s/rad, antiresonance 16 Hz, resonance 22.6 Hz

    Parameters
    ----------
    log : Recording
        Of several periods, in which this joint is shaken and the others stand.
    joint : int
        From 0.
    band : (float, float)
        Frequencies that count, in which the motor is shaken [Hz].
    period : float or "found"
        [s]

    Raises
    ------
    InputError
        When the log does not repeat, or fewer lines than parameters are excited.
    ComputationError
        If there seems to be a spring whose antiresonance is above the excited band.
    """
    from scipy.optimize import least_squares  # a quarter of a second that few runs need

    if joint not in range(log.q.shape[1]):
        raise InputError(f"{log.name}: has {log.q.shape[1]} joints, from 0, and no joint {joint!r}")
    name = log.joints[joint] if log.joints else f"joint {joint + 1}"
    lines = collect_lines(log, joint, band, period)
    start = search_start(lines, 2.0 * np.pi * np.array(band))
    size = np.maximum(np.abs(start), np.finfo(float).tiny)
    size[4] = start[3] * np.abs(lines.s[0]) ** 2  # gravity, of which nothing is known yet

    def residual(x: Array) -> Array:
        found = evaluate_error(lines, x * size)
        return np.concatenate([found.real, found.imag])

    best = least_squares(residual, start / size, jac="3-point", x_scale="jac", xtol=1e-12)
    lacking = 2 * len(lines.s) - len(NAMES) - lines.open.shape[1]
    misfit, stiff = 4.0 * best.cost / lacking, fit_stiff(lines)
    J = np.asarray(best.jac, dtype=float)
    inverse = np.linalg.pinv(J.T @ J) * 0.5 * max(1.0, misfit)
    values = best.x * size
    covariance = inverse * np.outer(size, size)
    std = np.sqrt(np.diag(covariance))
    rotor, _, _, inertia, _, c, T = values
    gradient = np.array([-T / c**2, 1.0 / c])  # of D = T / c by c and T
    damping = float(np.sqrt(gradient @ covariance[5:, 5:] @ gradient))
    fall = (2.0 * stiff - 4.0 * best.cost) / max(1.0, misfit)
    chance = float(special.chdtrc(3, max(fall, 0.0)))
    wide = NORMAL * float(std[5]) if chance < SURE else np.inf
    found = Resonance(
        log.name, name, len(lines.s), values, std,
        (float(1.0 / c), float(std[5] / c**2)), (float(T / c), damping),
        (float(c - wide), float(c + wide)),
        float(np.sqrt(abs(1.0 / (c * inertia))) / (2.0 * np.pi)),
        float(np.sqrt(abs((1.0 / inertia + 1.0 / rotor) / c)) / (2.0 * np.pi)),
        float(misfit), float(2.0 * stiff / (lacking + 3)), chance,
    )  # fmt: skip
    if found.supported:
        refuse_beyond_lines(found, band[0], float(np.abs(lines.s[-1])) / (2.0 * np.pi))
    return found


def refuse_beyond_lines(found: Resonance, bottom: float, top: float) -> None:
    """Refuse a spring of which the lines up to the top have but the side below [Hz]."""
    if PAST * found.antiresonance <= top:
        return
    near = found.antiresonance < BEYOND * top
    swings = f"about {found.antiresonance:.3g}" if near else f"more than {BEYOND * top:.3g}"
    wanted = WANTED * min(found.antiresonance, BEYOND * top)
    raise ComputationError(
        f"{found.log}: {found.joint} seems to have an antiresonance of {swings} Hz, and is shaken "
        f"up to {top:.3g} Hz; a multisine from {bottom:.3g} to {wanted:.3g} Hz identifies its "
        f"spring, logged at {wanted / HIGHEST:.0f} Hz or more"
    )


def collect_lines(
    log: Recording, joint: int, band: tuple[float, float], period: float | Literal["found"]
) -> HarmonicLines:
    """Mean harmonics of a joint's motor in a band, at which it moves by more than noise."""
    refuse_wrong_band(band)
    if band[1] >= 0.5 * log.rate:
        raise InputError(
            f"{log.name}: the band ends at {band[1]:g} Hz, and samples at {log.rate:g} Hz tell "
            f"what is below {0.5 * log.rate:g} Hz"
        )
    own = [each[:, [joint]] for each in (log.q, log.tau)]
    top = min(WIDER * band[1], HIGHEST * log.rate)
    motor = Recording(log.name, log.rate, own[0], own[1])  # noise of what stands does not repeat
    try:
        samples = prepare(motor, band[1] / 3.0, position_hz=top, period=period)
    except PeriodError as error:
        raise InputError(f"{error.fact}; {REPEATING}") from error
    known = samples.averaging
    assert known is not None
    q, tau = known.q[:, :, 0], known.tau[:, :, 0]
    count, periods = min(q.shape[1], tau.shape[1]), known.periods
    hz = np.arange(count) / known.period
    inside = (band[0] <= hz) & (hz <= band[1])
    off, torn = (each[:, :count] - each.mean(axis=0)[:count] for each in (q, tau))
    share = 1.0 / ((periods - 1) * periods * max(int(np.sum(inside)), 1))
    of_q, of_tau = (float(np.sum(np.abs(x[:, inside]) ** 2) * share) for x in (off, torn))
    both = complex(np.sum((torn * np.conj(off))[:, inside]) * share)
    excited = np.abs(q.mean(axis=0)[:count]) > ABOVE * np.sqrt(of_q)
    if np.sum(excited & inside) <= len(NAMES):
        raise InputError(
            f"{log.name}: joint {joint + 1} moves at {np.sum(excited & inside)} lines from "
            f"{band[0]:g} to {band[1]:g} Hz; a spring needs at least {len(NAMES) + 1}"
        )
    # friction is sampled, and folded, as the torques of the log are, which have as many lines
    grid = max(2 * count, round((known.tau.shape[1] - 1) / HIGHEST))
    moved = np.where(excited, q.mean(axis=0)[:count], 0.0)[:, None]
    speed = sum_harmonics(differentiate_harmonics(moved, known.period), grid)[:, 0]
    sign = (np.fft.rfft(np.sign(speed)) / grid)[:count]
    s, some = 2j * np.pi * hz, excited & inside
    blur = np.sqrt(2.0 * of_q * np.sum(np.abs(s) ** 2))  # of speeds, in time
    near = np.flatnonzero(np.abs(speed) < NEAR * blur)
    turns = np.exp(-np.outer(s[some], near / grid * known.period)) / grid
    mean_q, mean_tau = (each.mean(axis=0)[:count][some] for each in (q, tau))
    return HarmonicLines(s[some], mean_q, mean_tau, sign[some], turns, (of_q, of_tau, both))


def evaluate_error(lines: HarmonicLines, values: Array) -> Complex:
    """What two masses leave of the torques, over its noise."""
    rotor, viscous, coulomb, inertia, gravity, c, T = values
    load = inertia * lines.s**2 + gravity
    impedance = rotor * lines.s**2 + viscous * lines.s
    impedance = impedance + load / (1.0 + load * c / (1.0 + T * lines.s))
    error = lines.tau - impedance * lines.q - coulomb * lines.sign
    error = lines.divide_by_noise(error, impedance)
    return error - project_open(lines, error, impedance)


def project_open(lines: HarmonicLines, error: Complex, impedance: Complex) -> Complex:
    """What torques of any size at the open samples make of errors over their noise."""
    X = lines.divide_by_noise(lines.open.T, impedance).T
    real, y = np.vstack([X.real, X.imag]), np.concatenate([error.real, error.imag])
    return np.asarray(X @ np.linalg.lstsq(real, y, rcond=None)[0])


def solve_weighted(
    lines: HarmonicLines, columns: Complex, impedance: Complex
) -> tuple[Array, Complex]:
    """The best values of what torques are linear in, at weights of an impedance; what is left."""
    X = lines.divide_by_noise(np.hstack([columns, lines.open]).T, impedance).T
    y = lines.divide_by_noise(lines.tau, impedance)
    real = np.vstack([X.real, X.imag])
    values, *_ = np.linalg.lstsq(real, np.concatenate([y.real, y.imag]), rcond=None)
    return values, y - X @ values


def search_start(lines: HarmonicLines, band: Array) -> Array:
    """The best of some antiresonances, at each of which all else is linear."""
    impedance, s = lines.tau / lines.q, lines.s
    found, least = np.zeros(len(NAMES)), np.inf
    for w in np.geomspace(band[0], BEYOND * band[1], STARTS):
        T = 2.0 * DAMPED / w
        link = s**2 / (1.0 + s**2 / w**2 / (1.0 + T * s))
        columns = [s**2 * lines.q, s * lines.q, lines.sign, link * lines.q]
        found_here, rest = solve_weighted(lines, np.column_stack(columns), impedance)
        values = found_here[:4]
        error = float(np.sum(np.abs(rest) ** 2))
        if error < least and values[3] > 0.0:
            least = error
            found = np.array([*values, 0.0, 1.0 / (values[3] * w**2), T])
    if not np.any(found):
        raise InputError("no link behind a spring explains the motion of this motor")
    return found


def fit_stiff(lines: HarmonicLines) -> float:
    """The squared error of one mass."""
    s, rest = lines.s, np.zeros(0, dtype=complex)
    columns = np.column_stack([s**2 * lines.q, s * lines.q, lines.sign, lines.q])
    impedance = lines.tau / lines.q
    for _ in range(ROUNDS):
        values, rest = solve_weighted(lines, columns, impedance)
        impedance = values[0] * s**2 + values[1] * s + values[3]
    return float(np.sum(np.abs(rest) ** 2))
