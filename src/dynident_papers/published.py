"""Published numbers that ours stand beside, each stated here and nowhere else.

Papers are those of ``docs/theory/references.md``. Parameters bear our names without the R of
regrouped ones (``Izz1``, ``Iam6``); where a drive is coupled, published tables list sums over the
joints (`build_published_sums`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array


class Published(NamedTuple):
    """A value with its relative standard deviation."""

    value: float
    percent: float
    """Relative standard deviation [%]."""

    @property
    def std(self) -> float:
        """Standard deviation in the unit of the value."""
        return abs(self.value) * self.percent / 100.0


Column = tuple[str, str]
"""Rows that are fitted, "all" or "decimated", and the name of the method."""

# ---- brunot2019

BRUNOT_COLUMNS: tuple[Column, ...] = (
    ("decimated", "ols"),
    *(("all", method) for method in ("clie", "cloe", "didim")),
    *(("decimated", method) for method in ("clie", "cloe", "didim")),
)
"""The columns of Tables 1 and 4; LS, which both tables refer to, is decimated."""
_TABLES_1_AND_4 = """
Izz1 zz1r 1.24 1.45  1.25 .32  1.22 .24  1.25 .32  1.25 1.52  1.22 2.69  1.25 1.23
fv1  fv1  8.00 .91   7.96 .28  8.18 .12  7.99 .28  7.96 .91   8.18 1.39  7.99 .75
fc1  fc1  7.34 2.66  7.21 .87  6.34 .37  7.11 .89  7.21 2.84  6.34 4.22  7.11 2.36
Ixx2 xx2r -.48 3.28  -.47 .97  -.42 .55  -.48 .98  -.47 3.72  -.42 5.95  -.48 3.06
Ixz2 xz2r -.16 5.40  -.16 1.85 -.17 .72  -.15 1.89 -.16 6.82  -.17 7.92  -.15 6.01
Izz2 zz2r 1.09 1.29  1.09 .29  1.08 .18  1.09 .30  1.09 1.37  1.08 2.05  1.09 1.12
mx2  mx2r 2.21 3.01  2.24 .94  2.43 .73  2.22 .95  2.24 4.05  2.43 8.57  2.22 3.32
fv2  fv2  5.50 1.45  5.47 .35  5.68 .22  5.45 .35  5.47 1.55  5.68 2.66  5.45 1.24
fc2  fc2  8.24 2.26  8.35 .53  7.40 .28  8.35 .53  8.35 2.36  7.40 3.38  8.35 1.85
Ixx3 xx3r .13 10.6   .13 2.07  .18 1.31  .13 2.10  .13 11.1   .18 14.5   .13 8.97
Izz3 zz3r .11 9.57   .12 1.81  .11 1.59  .11 1.89  .12 10.3   .11 17.8   .11 8.47
my3  my3r -.60 2.52  -.59 .44  -.53 .60  -.59 .44  -.59 2.70  -.53 6.38  -.59 2.11
Ia3  ia3  .09 9.39   .09 1.94  .09 1.62  .09 1.94  .09 11.1   .09 17.7   .09 8.61
fv3  fv3  1.93 2.05  1.94 .31  1.93 .46  1.94 .31  1.94 2.14  1.93 4.51  1.94 1.58
fc3  fc3  6.48 2.06  6.47 .31  5.80 .31  6.47 .32  6.47 2.19  5.79 3.22  6.47 1.59
mx4  mx4  -.02 35.1  -.03 3.40 .01 12.4  -.03 3.50 -.03 26.9  .01 124    -.03 18.8
Ia4  ia4  .03 9.10   .03 1.08  .03 1.38  .03 1.09  .03 9.33   .03 12.8   .03 7.78
fv4  fv4  1.09 1.62  1.11 .19  1.15 .28  1.11 .19  1.11 1.81  1.15 2.52  1.11 1.48
fc4  fc4  2.57 2.46  2.44 .31  2.17 .54  2.42 .31  2.44 2.97  2.17 5.00  2.42 2.43
my5  my5r -.03 15.2  -.04 1.81 -.06 1.31 -.03 1.85 -.04 14.5  -.06 13.7  -.03 11.0
Ia5  ia5  .04 10.6   .04 1.35  .05 1.29  .04 1.38  .04 12.1   .05 15.4   .04 9.78
fv5  fv5  1.79 2.33  1.82 .24  1.92 .34  1.82 .25  1.82 2.33  1.92 4.20  1.82 1.84
fc5  fc5  3.07 3.59  3.01 .39  2.26 .48  2.99 .39  3.01 3.72  2.26 6.00  2.99 2.92
Iam6 ia6  .01 13.3   .01 2.06  .01 1.78  .01 2.08  .01 20.2   .01 20.9   .01 18.7
fv6  fv6  .65 1.85   .66 .20   .67 .23   .65 .21   .66 2.07   .67 2.85   .65 1.59
fc6  fc6  .30 32.9   .18 5.92  .04 24.4  .25 4.18  .18 19.5   .042 315   .25 11.6
fvm6 fvm6 .61 1.97   .60 .22   .57 .46   .60 .22   .60 2.19   .57 5.66   .60 1.67
fcm6 fcm6 1.90 4.40  1.94 .46  1.95 .78  1.92 .46  1.94 4.50  1.96 9.84  1.92 3.44
"""
_LINES = [line.split() for line in _TABLES_1_AND_4.strip().split("\n")]
BRUNOT_NAMES = {line[0]: line[1] for line in _LINES}
"""The 28 essential parameters: our name, and how Table 1 writes it."""
BRUNOT: dict[Column, dict[str, Published]] = {
    column: {line[0]: Published(float(line[2 + 2 * k]), float(line[3 + 2 * k])) for line in _LINES}
    for k, column in enumerate(BRUNOT_COLUMNS)
}
"""Tables 1 and 4 of brunot2019: each column's estimates, in the order of the tables."""
BRUNOT_SINGULAR: dict[Column, tuple[float, float, float]] = {
    ("all", "clie"): (2.26e4, 19.3, 1172.0),
    ("all", "cloe"): (9.85, 2.6e-3, 3845.0),
    ("all", "didim"): (2.23e4, 19.1, 1166.0),
    ("decimated", "clie"): (1589.0, 1.3, 1178.0),
    ("decimated", "cloe"): (1.34, 1.74e-4, 7622.0),
    ("decimated", "didim"): (1571.0, 1.3, 1165.0),
}
"""Tables 2 and 5 of brunot2019: mu_max, mu_min, conditioning number."""
BRUNOT_TIMES = {"clie": "23 min", "cloe": "23 min", "didim": "1 min"}
"""Tables 2 and 5 of brunot2019."""
BRUNOT_ERRORS = {"clie": (0.017, 6.97), "cloe": (0.017, 10.7), "didim": (0.013, 6.95)}
"""Table 3 of brunot2019: mean error of the position and of the torque, all samples fitted [%]."""
BRUNOT_SAMPLES = {"all": 34500, "decimated": 276}
"""Rows of a joint (brunot2019, 5.2)."""

# ---- ardiani2024


def _parse_columns(methods: Sequence[tuple[str, ...]], text: str) -> dict[str, tuple[float, ...]]:
    """A table as printed, by method; methods that share a column have it twice in the paper."""
    rows = [[float(cell) for cell in line.split()] for line in text.strip().split("\n")]
    pairs = zip(methods, zip(*rows, strict=True), strict=True)
    return {method: column for same, column in pairs for method in same}


_FREE_AND_CONSTRAINED = (
    ("wls", "pc-idim-ls"),
    ("idim-iv", "pc-idim-iv"),
    ("didim", "pc-didim"),
)
_MISLED = (("idim-iv",), ("pc-idim-iv",), ("pc-didim",))
ARDIANI: dict[str, dict[str, tuple[float, ...]]] = {
    "I": _parse_columns(
        _FREE_AND_CONSTRAINED,
        """
        5.2 5.4 5.5
        5.0 5.3 5.3
        5.0 5.1 5.1
        5.6 5.7 5.8
        7.2 7.2 7.2
        7.1 7.5 7.5
        """,
    ),
    "II": _parse_columns(
        _FREE_AND_CONSTRAINED,
        """
        6.1 6.4 6.4
        6.3 6.8 6.8
        6.7 7.0 7.1
        """,
    ),
    "III": _parse_columns(
        _FREE_AND_CONSTRAINED,
        """
        25.3 6.1 6.1
        24.7 5.9 6.0
        25.2 6.0 6.1
        25.8 5.9 5.9
        27.5 8.0 8.0
        28.0 8.1 8.2
        """,
    ),
    "IV": _parse_columns(
        _FREE_AND_CONSTRAINED,
        """
        26.4 7.1 7.2
        26.5 7.6 7.6
        27.8 7.9 8.0
        """,
    ),
    "V": _parse_columns(
        _MISLED,
        """
        6.1 5.9 32.9
        6.3 5.8 33.5
        5.9 5.5 31.9
        6.4 6.2 32.7
        7.9 7.6 34.4
        8.1 7.9 35.0
        """,
    ),
    "VI": _parse_columns(
        _MISLED,
        """
        7.1 6.8 45.7
        7.7 7.2 46.0
        8.1 7.5 45.1
        """,
    ),
}
"""Tables I to VI of ardiani2024: relative errors by method, a joint or a trajectory a row [%].

The lower halves of I to IV, the constrained methods, repeat the upper ones.
"""
ARDIANI_ITERATIONS = {
    "1": {"idim-iv": "5", "didim": "5", "pc-idim-iv": "5", "pc-didim": "5"},
    "2": {"idim-iv": "7", "pc-idim-iv": "7", "pc-didim": "6"},
    "4": {"idim-iv": "5", "didim": "fails", "pc-idim-iv": "5", "pc-didim": "5"},
}
"""Simulations until convergence, by scenario (ardiani2024, IV-B, IV-C, IV-E)."""
ARDIANI_BAND_ITERATIONS = 5
"""Of PC-IDIM-IV and PC-DIDIM in problem (47), which is feasible (ardiani2024, IV-D)."""
ARDIANI_STRIBECK_ERROR = 12.0
"""Relative errors with a Stribeck effect (ardiani2024, IV-F) [%]."""
ARDIANI_RESTRICTED = 1e-8
"""g_IV above which constraints are overly restrictive (ardiani2024, III-H)."""
ARDIANI_SECONDS = {"idim-iv": 25, "didim": 25, "pc-idim-iv": 40, "pc-didim": 40}
"""Computing times (ardiani2024, IV-B) [s]."""
ARDIANI_SIMULATION = 5
"""Of that, one simulation of a trajectory of 8 s (ardiani2024, IV-B) [s]."""

# ---- the TX40 of both papers

CONDITION = 200
"""Of the regressor of 60 base parameters (brunot2019, 5.1; ardiani2024, IV-A)."""
BANDWIDTHS = (10.0, 10.0, 10.0, 20.0, 20.0, 20.0)
"""Of the position loops (ardiani2024, IV-A) [Hz]."""
JOINT_SUMS = {"Ia5": "Iam6", "fv5": "fvm6", "fv6": "fvm6"}
"""Published under the joint's name: the joint's own value and that of the drive beside it."""
TX40_MASSES = (8.61, 4.85, 4.07, 3.62, 1.02, 0.2)
"""Of a plausible set of standard parameters, from the notes of the measured log [kg]."""
# The fifth is a published base parameter (.0468) and so contains the rotor of drive 6.
TX40_ROTORS = {
    "Ia1": 0.362, "Ia2": 0.362, "Ia3": 0.0988, "Ia4": 0.0313, "Ia5": 0.0363, "Iam6": 0.0105,
}  # fmt: skip
"""Rotor inertias stated with the measured log (figaroh-examples, Apache-2.0) [kg m^2]."""


def build_published_sums(names: Sequence[str]) -> Array:
    """What published tables list in place of our base parameters.

    Parameters
    ----------
    names : sequence of str
        Of the parameters, with the R of regrouped ones or without.

    Returns
    -------
    ndarray, shape (len(names), len(names))
        Times our values, it is the values of the tables under the same names: drive 6 turns
        with joints 5 and 6, and fv5 is that of all that resists joint 5 (see `JOINT_SUMS`).
    """
    plain = [name.removesuffix("R") for name in names]
    sums = np.eye(len(plain))
    for joint, drive in JOINT_SUMS.items():
        if joint in plain and drive in plain:
            sums[plain.index(joint), plain.index(drive)] = 1.0
    return sums


class TableRow(NamedTuple):
    """A base parameter of the tables that come with the TX40's log."""

    ols: Published
    wls: Published
    """`ols`, `wls`: by ordinary and by weighted least squares; friction and rotors of joints 5 and
    6 are sums (`JOINT_SUMS`)."""


def read_tx40_table(path: Path) -> dict[str, TableRow]:
    """The rows of ``TX40_bp_5.csv`` (60 base parameters) or ``TX40_ep_5.csv`` (25 essential).

    Both lie in ``examples/tx40`` and were identified from the log that lies there, with a
    regressor whose joint 6 never accelerates.

    Returns
    -------
    dict of str to TableRow
        By our names; Coulomb friction is fs there, fc here.
    """
    table = {}
    for line in path.read_text().splitlines():
        regrouping, *cells = line.rsplit(",", 4)
        name = regrouping.split(" ")[0].replace("fs", "fc")
        ols, ols_percent, wls, wls_percent = map(float, cells)
        table[name] = TableRow(Published(ols, ols_percent), Published(wls, wls_percent))
    return table


# ---- EMPS

EMPS = {"Ia1R": 95.1089, "fv1": 203.5034, "fc1": 20.3935, "off1": -3.1648}
"""Mass, friction and offset of the slide (EMPS) [kg, N s/m, N]."""

# ---- zhang2018

ZHANG_NAMES = ("m", "X", "Y", "Z", "I11", "I12", "I13", "I22", "I23", "I33", "Fc", "beta")
"""Rows of Table 5: mass, centre of mass, inertia, friction of joint 3."""
ZHANG: dict[str, tuple[float, ...]] = _parse_columns(
    (("set",), ("ols",), ("kf",), ("rls",), ("gradient",), ("ga",), ("pf",)),
    """
25.6083 17.7803 17.7782 17.7793 24.5913 24.5699 24.5250
0.0938 -0.1811 -0.1807 -0.1809 0.0672 0.0994 0.1208
0.1383 -0.1121 -0.1140 -0.1132 0.1107 0.1657 0.1384
0.1164 0.0085 0.0082 0.0083 0.0970 0.1159 0.1148
0.1706 3.3342 3.3206 3.3262 0.1287 0.1783 0.2189
-0.1498 0.5166 0.5146 0.5151 -0.2175 -0.1258 -0.1829
0.2140 0.6943 0.6915 0.6928 0.1790 0.1615 0.2486
0.3493 -3.5211 -3.5359 -3.5298 0.4161 0.2925 0.4160
-0.1320 -0.2403 -0.2808 -0.2641 -0.1994 -0.0933 -0.1646
0.2363 -0.3693 -0.3691 -0.3693 0.3062 0.3046 0.3063
50.0000 50.0000 49.7802 49.8704 50.2227 50.2716 50.4040
40.0000 40.0000 40.0250 40.0161 39.7539 39.6028 39.8216
""",
)
"""Table 5 of zhang2018, by method; its gradient descent is ``gradient``."""
ZHANG_TORQUES: dict[str, tuple[float, ...]] = _parse_columns(
    (("ols",), ("kf",), ("rls",), ("gradient",), ("ga",), ("pf",)),
    """
-0.0001 -0.0066 0.0323 0.2568 0.2725 0.0029
0.0001 0.2903 0.2210 0.6332 0.8545 0.8825
""",
)
"""Table 5: mean and standard deviation of joint 3's torque error [Nm]."""
ZHANG_ERRORS: dict[str, tuple[float, ...]] = _parse_columns(
    (("ols",), ("kf",), ("rls",), ("gradient",), ("ga",), ("pf",)),
    """
279.8642 256.6049 255.1294 0.3839 0.8657 0.6336
0.0000 0.0135 0.0080 0.0032 0.0061 0.0185
0.0000 0.0000 0.0001 0.0001 0.0006 0.0001
0.0000 0.0007 0.0005 0.0006 0.0012 0.0010
279.8642 256.6191 255.1380 0.3879 0.8736 0.6532
289.2396 261.2449 260.0939 0.9258 1.0587 0.9754
0.0585 0.0289 0.0314 0.1136 0.1147 0.1258
0.0016 0.0005 0.0005 0.0013 0.0008 0.0010
0.0219 0.0203 0.0203 0.0203 0.0209 0.0204
289.3216 261.2945 260.1460 1.0610 1.1951 1.1225
0.0338 0.0182 0.0196 1.7352 0.3680 0.7184
""",
)
"""Table 8 of zhang2018: e_d, e_f, e_T, e_T-Std and J_e, without and then with noise; Delta J_e."""
ZHANG_STRIBECK_NAMES = ("Fc", "Fs", "qs", "beta")
"""Rows of friction in Table 6."""
ZHANG_STRIBECK: dict[str, tuple[float, ...]] = _parse_columns(
    (("set",), ("ekf",), ("forgetting",), ("gradient",), ("ga",), ("pf",)),
    """
50 51.7727 52.183 50.625 49.9266 50.2767
60 52.1061 52.2013 60 59.8052 60.0016
0.1 5.5823 6.3761 0.08 0.1142 0.0996
40 38.2327 38.1439 39.8125 39.8125 39.7704
""",
)
"""Friction of joint 3 in Table 6 of zhang2018."""
ZHANG_STRIBECK_TORQUES: dict[str, tuple[float, ...]] = _parse_columns(
    (("ekf",), ("forgetting",), ("gradient",), ("ga",), ("pf",)),
    """
0.0355 0.0314 2.8462 -0.0209 0.0062
1.9688 1.9705 1.2125 0.6137 0.2182
""",
)
"""Table 6: mean and standard deviation of joint 3's torque error [Nm]."""
ZHANG_STRIBECK_ERRORS: dict[str, tuple[float, ...]] = _parse_columns(
    (("ekf",), ("forgetting",), ("gradient",), ("ga",), ("pf",)),
    """
71.7454 72.6643 0.2243 0.8152 0.7340
3.0663 3.4116 0.0681 0.0376 0.0182
0.0001 0.0001 0.0014 0.0001 0.0001
0.0061 0.0060 0.0019 0.0013 0.0007
74.8180 76.0820 0.2956 0.8541 0.7530
74.0046 74.4194 0.8248 0.8351 0.8438
48.4565 54.6694 0.1287 0.1776 0.1493
0.0004 0.0004 0.0005 0.0008 0.0006
0.0212 0.0211 0.0197 0.0207 0.0197
122.4827 129.1102 0.9737 1.0343 1.0135
0.6371 0.6970 2.2936 0.2110 0.3459
""",
)
"""Table 9 of zhang2018, in the order of `ZHANG_ERRORS`."""
ZHANG_LEVELS = {
    "ols": "C A A C A",
    "kf": "C A A C A",
    "ekf": "C B A C B",
    "rls": "C B A C B",
    "gradient": "B A A A C",
    "ga": "B A A A B",
    "pf": "B A A A B",
}
"""Table 11 of zhang2018: e_d, e_f, e_T, J_e and Delta J_e; `rls` stands for its forgetting."""
ZHANG_TIMES = {"ols": "< 1 s", "gradient": "30 min", "ga": "> 1 h", "pf": "30 min"}
"""Section 6.3 of zhang2018."""
ZHANG_POSITIONS = {"ols": (411.5920, 1911.7927, 3.6449), "idim-iv": (412.3433, 446.4756, 0.0828)}
"""Table 10 of zhang2018: J_e with and without a filter, and Delta J_e."""
ZHANG_MODELS = {
    7: (0.4478, 44.7068),
    8: (0.0469, 30.8389),
    9: (0.4509, 44.417),
    4: (0.4085, 19.1073),
    5: (2.7903, 51.8087),
    6: (1.2232, 25.5865),
}
"""Table 12 of zhang2018: mean and standard deviation of torque errors, by equation [Nm]."""
