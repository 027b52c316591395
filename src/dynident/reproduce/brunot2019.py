"""Output error methods for robot identification (Brunot et al. 2019) on the TX40 twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from dynident.base import BaseParameters, base_parameters
from dynident.errors import ComputationError
from dynident.estimators import ESTIMATORS, Estimate
from dynident.estimators.auxiliary import Simulation, auxiliary_model, simulated_figures
from dynident.estimators.output_error import POSITION, TORQUE, error_sigma, linearised
from dynident.factors import System
from dynident.inertia import Array
from dynident.problem import Problem
from dynident.recording.prepare import prepare
from dynident.reproduce.experiment import (
    VELOCITY,
    Experiment,
    bandwidth_controller,
    disturbance,
    encoders,
    run_experiment,
    tx40_reference,
    twin_controller,
)
from dynident.reproduce.twin import FRICTION, Twin, load_twin
from dynident.rows import ROWS
from dynident.simulation.controller import Controller, pid
from dynident.statistics import TestResult, autocorrelation, f_test

METHODS = ("ols", "clie", "cloe", "didim")
KINDS = ("all", "decimated")
BANDWIDTH = 10.0
"""omega_dyn: filters at 50 and 20 Hz [Hz]."""
LAGS = 50
SHARP = 0.001
"""Width of the plant's sign of the velocity, as a share of the joint's largest speed."""
DISTURBANCE, CUTOFF = 0.10, 50.0
"""Random joint torques: share of the torque's rms, and corner frequency [Hz]."""
SEED = 1

Progress = Callable[[str, float], None]

PUBLISHED = """
zz1r Izz1R  1.24 1.45  1.25 .32  1.22 .24  1.25 .32  1.25 1.52  1.22 2.69  1.25 1.23
fv1  fv1    8.00 .91   7.96 .28  8.18 .12  7.99 .28  7.96 .91   8.18 1.39  7.99 .75
fc1  fc1    7.34 2.66  7.21 .87  6.34 .37  7.11 .89  7.21 2.84  6.34 4.22  7.11 2.36
xx2r Ixx2R  -.48 3.28  -.47 .97  -.42 .55  -.48 .98  -.47 3.72  -.42 5.95  -.48 3.06
xz2r Ixz2R  -.16 5.40  -.16 1.85 -.17 .72  -.15 1.89 -.16 6.82  -.17 7.92  -.15 6.01
zz2r Izz2R  1.09 1.29  1.09 .29  1.08 .18  1.09 .30  1.09 1.37  1.08 2.05  1.09 1.12
mx2r mx2R   2.21 3.01  2.24 .94  2.43 .73  2.22 .95  2.24 4.05  2.43 8.57  2.22 3.32
fv2  fv2    5.50 1.45  5.47 .35  5.68 .22  5.45 .35  5.47 1.55  5.68 2.66  5.45 1.24
fc2  fc2    8.24 2.26  8.35 .53  7.40 .28  8.35 .53  8.35 2.36  7.40 3.38  8.35 1.85
xx3r Ixx3R  .13 10.6   .13 2.07  .18 1.31  .13 2.10  .13 11.1   .18 14.5   .13 8.97
zz3r Izz3R  .11 9.57   .12 1.81  .11 1.59  .11 1.89  .12 10.3   .11 17.8   .11 8.47
my3r my3R   -.60 2.52  -.59 .44  -.53 .60  -.59 .44  -.59 2.70  -.53 6.38  -.59 2.11
ia3  Ia3    .09 9.39   .09 1.94  .09 1.62  .09 1.94  .09 11.1   .09 17.7   .09 8.61
fv3  fv3    1.93 2.05  1.94 .31  1.93 .46  1.94 .31  1.94 2.14  1.93 4.51  1.94 1.58
fc3  fc3    6.48 2.06  6.47 .31  5.80 .31  6.47 .32  6.47 2.19  5.79 3.22  6.47 1.59
mx4  mx4    -.02 35.1  -.03 3.40 .01 12.4  -.03 3.50 -.03 26.9  .01 124    -.03 18.8
ia4  Ia4    .03 9.10   .03 1.08  .03 1.38  .03 1.09  .03 9.33   .03 12.8   .03 7.78
fv4  fv4    1.09 1.62  1.11 .19  1.15 .28  1.11 .19  1.11 1.81  1.15 2.52  1.11 1.48
fc4  fc4    2.57 2.46  2.44 .31  2.17 .54  2.42 .31  2.44 2.97  2.17 5.00  2.42 2.43
my5r my5R   -.03 15.2  -.04 1.81 -.06 1.31 -.03 1.85 -.04 14.5  -.06 13.7  -.03 11.0
ia5  Ia5    .04 10.6   .04 1.35  .05 1.29  .04 1.38  .04 12.1   .05 15.4   .04 9.78
fv5  fv5    1.79 2.33  1.82 .24  1.92 .34  1.82 .25  1.82 2.33  1.92 4.20  1.82 1.84
fc5  fc5    3.07 3.59  3.01 .39  2.26 .48  2.99 .39  3.01 3.72  2.26 6.00  2.99 2.92
ia6  Iam6   .01 13.3   .01 2.06  .01 1.78  .01 2.08  .01 20.2   .01 20.9   .01 18.7
fv6  fv6    .65 1.85   .66 .20   .67 .23   .65 .21   .66 2.07   .67 2.85   .65 1.59
fc6  fc6    .30 32.9   .18 5.92  .04 24.4  .25 4.18  .18 19.5   .042 315   .25 11.6
fvm6 fvm6   .61 1.97   .60 .22   .57 .46   .60 .22   .60 2.19   .57 5.66   .60 1.67
fcm6 fcm6   1.90 4.40  1.94 .46  1.95 .78  1.92 .46  1.94 4.50  1.96 9.84  1.92 3.44
"""
"""Tables 1 and 4: the paper's name and ours; value and relative standard deviation [%] of LS,
CLIE, CLOE, DIDIM without decimation, then of CLIE, CLOE, DIDIM with it."""
FIGURES = {
    ("all", "clie"): (2.26e4, 19.3, 1172.0, "23 min", 0.017, 6.97),
    ("all", "cloe"): (9.85, 2.6e-3, 3845.0, "23 min", 0.017, 10.7),
    ("all", "didim"): (2.23e4, 19.1, 1166.0, "1 min", 0.013, 6.95),
    ("decimated", "clie"): (1589.0, 1.3, 1178.0, "23 min", None, None),
    ("decimated", "cloe"): (1.34, 1.74e-4, 7622.0, "23 min", None, None),
    ("decimated", "didim"): (1571.0, 1.3, 1165.0, "1 min", None, None),
}
"""Tables 2, 3 and 5: mu_max, mu_min, condition, computing time, position and torque error [%]."""
COLUMNS = tuple(
    [("decimated", "ols"), *(("all", m) for m in METHODS[1:])]
    + [("decimated", m) for m in METHODS[1:]]
)
"""What the pairs of numbers in `PUBLISHED` are of. LS is decimated in both tables."""
LINES = [line.split() for line in PUBLISHED.split("\n") if line]
PAPER_NAMES, NAMES = (tuple(line[k] for line in LINES) for k in (0, 1))
VALUES = {c: np.array([float(x[2 + 2 * k]) for x in LINES]) for k, c in enumerate(COLUMNS)}
STD = {c: np.array([float(x[3 + 2 * k]) for x in LINES]) for k, c in enumerate(COLUMNS)}
COULOMB = tuple(k for k, name in enumerate(NAMES) if name.startswith("fc"))


def paper_sums() -> Array:
    """What the paper lists of our parameters, shape (28, 28).

    Drive 6 turns with joints 5 and 6; the paper's ia5, fv5 and fv6 are those of all that
    resists the joint: ``Ia5 + Iam6``, ``fv5 + fvm6``, ``fv6 + fvm6``.
    """
    sums = np.eye(len(NAMES))
    for joint, motor in (("Ia5", "Iam6"), ("fv5", "fvm6"), ("fv6", "fvm6")):
        sums[NAMES.index(joint), NAMES.index(motor)] = 1.0
    return sums


@dataclass(frozen=True)
class Scale:
    """How long and how finely the experiment is made.

    Attributes
    ----------
    duration, rate : float
        [s], [Hz]
    control : float
        Rate of the controller and of the estimators' integration [Hz].
    sharpness : int
        Integration steps of the plant in a control period.
    width : float
        Of the estimators' sign of the velocity, as a share of the joint's largest speed.
    """

    duration: float
    rate: float
    control: float
    sharpness: int
    width: float


FULL = Scale(6.9, 5000.0, 5000.0, 4, 0.003)
"""The paper's 34500 samples."""
SIDE = Scale(6.9, 1000.0, 5000.0, 4, 0.003)
"""Of the settings beside it."""
REDUCED = Scale(3.0, 1000.0, 2000.0, 10, 0.01)


@dataclass(frozen=True)
class Setting:
    """One case: what the actual robot does and the estimators do not know, or the reverse.

    Attributes
    ----------
    label : str
    plant_width, width : float
        Shares of the largest speed over which the sign turns: the robot's, and the
        estimators' where it is not that of the `Scale`.
    stribeck : float
        Excess of friction at standstill, as a share of fc.
    feed_forward : float
        Share of fc that the robot's controller adds in the direction of the reference.
    kp : float
        The robot's position gains over those assumed.
    integral : float
        Integral time of the robot's controller; infinite for none [s].
    designed : bool
        With gains for 10 and 20 Hz instead of the twin's.
    essential : bool
        Whether only the 28 parameters differ from zero.
    disturbance : float
        See `DISTURBANCE`.
    log_noise : float
        White noise of the logged torque, as a share of its rms.
    """

    label: str
    plant_width: float = SHARP
    width: float | None = None
    stribeck: float = 0.0
    feed_forward: float = 0.0
    kp: float = 1.0
    integral: float = np.inf
    designed: bool = False
    essential: bool = True
    disturbance: float = DISTURBANCE
    log_noise: float = 0.0


MAIN = Setting("random torques on the joints")
MATCHED = Setting("none, sign turns within 1 %", plant_width=0.01, width=0.01)
FEED_FORWARD = Setting("Coulomb feed-forward of 12 %", feed_forward=0.12)
MISMATCHES = (
    MATCHED,
    Setting("sign within 0.1 %, assumed 1 %", width=0.01),
    Setting("sign within 0.1 %, assumed 3 %", width=0.03),
    Setting("sign within 3 %, assumed 1 %", plant_width=0.03, width=0.01),
    Setting("Stribeck effect of +30 %", stribeck=0.3),
    Setting("Stribeck effect of -30 %", stribeck=-0.3),
    Setting("the same +30 %, gains 10/20 Hz", stribeck=0.3, designed=True),
    Setting("position gains 10 % lower", kp=0.9),
    Setting("integral action of 3 s", integral=3.0),
    FEED_FORWARD,
)
"""For Table 6."""
NOISES = (
    MAIN,
    Setting("white noise of the logged torque", disturbance=0.0, log_noise=0.3),
    Setting("as above, all 60 parameters act", essential=False),
)
"""For Table 8."""


@dataclass(frozen=True)
class Case:
    """A setting that was simulated, ready to be estimated.

    Attributes
    ----------
    problem, full : Problem
        On the 28 parameters, and on all base parameters.
    simulation : Simulation
    truth : ndarray, shape (28,)
    """

    problem: Problem = field(repr=False)
    full: Problem = field(repr=False)
    simulation: Simulation
    truth: Array


@dataclass(frozen=True)
class Answer:
    """An estimate in the paper's terms.

    Attributes
    ----------
    estimate : Estimate
    value, std, robust : ndarray, shape (28,)
        As the paper sums them (`paper_sums`); standard deviations by the paper's formula,
        eq. (10) and (32), and by the estimate's own covariance.
    inside : ndarray, shape (n,)
        Share of the first `LAGS` autocorrelations of the residual within ``2 / sqrt(N)``.
    position, torque : float
        Mean over the joints of Table 3's figures [%]; not a number of LS.
    """

    estimate: Estimate = field(repr=False)
    value: Array
    std: Array
    robust: Array
    inside: Array
    position: float
    torque: float


@dataclass(frozen=True)
class Results:
    """All that the tables are made of.

    Attributes
    ----------
    twin : Twin
    scale : Scale
    main : Case
    answers : dict of (kind of rows, method) to Answer or str
        A method that fails leaves its reason.
    mismatches : tuple of (Setting, dict of method to estimate or str)
    noises : tuple of (Setting, TestResult, dict of (kind, method) to Answer or str)
        With the F-test that the parameters left out are zero.
    """

    twin: Twin
    scale: Scale
    main: Case
    answers: dict[tuple[str, str], Answer | str]
    mismatches: tuple[tuple[Setting, dict[str, Array | str]], ...]
    noises: tuple[tuple[Setting, TestResult, dict[tuple[str, str], Answer | str]], ...]
