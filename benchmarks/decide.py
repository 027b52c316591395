"""What the logs decide against what was given and the best of a search by hand, on measured logs.

Run from the top of the project: python benchmarks/decide.py
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pinocchio as pin
from common import FIGURES, ROOT, TX40, markdown
from logs import HALVES, LWR4

import dynident as di
from dynident.core.errors import DynidentError
from dynident.decide.decision import NOTHING
from dynident.report.fit import Fit
from dynident.study.run import run_study
from dynident.study.study import Study

DATA = ROOT / ".." / "shared" / "data"
FRICTIONS = (
    "coulomb-viscous",
    "cube-root",
    "load",
    "cube-root + load",
    "coulomb-viscous + dahl-spectrum",
)
SHAPED = ("stribeck", "stribeck-load", "tanh-sech")
"""Likewise, whose shapes are searched: with the assumed bandwidth and all rows alone."""
GATES = (0.0, 0.02, 0.05)
"""Speeds below which rows are left out in the search by hand [rad/s]."""
BANDWIDTHS = (None, 2.5)
TORQUES = {"time": "times", "q": "positions_*", "tau": "torques_*"}


def log(path: Path, rows: tuple[int, int] | None, use: str, **keys: object) -> dict[str, Any]:
    """A log, or some rows of it."""
    own = {} if rows is None else {"rows": rows}
    return {"files": [str(path)], "use": use, **own, **keys}


def study(robot: dict[str, Any], *logs: dict[str, Any]) -> Study:
    """A study that leaves everything open."""
    return Study.model_validate({"robot": robot, "log": logs})


def lwr4(fitted: tuple[int, ...], held_out: int) -> Study:
    """The LWR4+ fitted to some of its logs, and measured on another."""
    logs = [(k, "identify") for k in fitted] + [(held_out, "validate")]
    paths = [(LWR4 / f"measurements_{k}.npz", use) for k, use in logs]
    robot = {"file": str(LWR4 / "kuka_lwr4.urdf")}
    return study(robot, *(log(path, None, use, columns=TORQUES) for path, use in paths))


def split(robot: dict[str, Any], path: Path, count: int, **keys: object) -> Study:
    """A log whose first three fifths are fitted, and the rest is held out."""
    cut = int(0.6 * count)
    first, rest = (0, cut), (cut, count)
    return study(robot, log(path, first, "identify", **keys), log(path, rest, "validate", **keys))


def tx40() -> Study:
    """The first half of the TX40's log, and the second."""
    given = di.read_study(TX40 / "study.toml")
    own = given.log[0].model_dump(exclude_none=True)
    halves = zip(HALVES, ("identify", "validate"), strict=True)
    logs = ({**own, "rows": rows, "use": use, "name": use} for rows, use in halves)
    return study({"file": given.robot.file}, *logs)


def kr300() -> Study:
    """Log A of the KR300 while it moves, and log B."""
    folder = DATA / "kr300"
    uses = {"A": "identify", "B": "validate"}
    logs = (log(folder / f"kr300_{k}.csv", (450, 2051), use) for k, use in uses.items())
    return study({"file": str(folder / "kr300.toml")}, *logs)


def tiago() -> Study:
    """Three fifths of TIAGo's log, and the rest."""
    still = ("head_1_joint", "head_2_joint", "wheel_left_joint", "wheel_right_joint")
    folder = DATA / "tiago"
    robot = {"file": str(folder / "tiago.urdf"), "locked": dict.fromkeys(still, 0.0)}
    return split(robot, folder / "tiago.csv", 5348)


def described(name: str) -> str | None:
    """A file of the package example-robot-data, where it is installed."""
    relative = Path("share/example-robot-data/robots") / name
    places = (folder / relative for folder in Path(pin.__file__).parents)
    return next((str(place) for place in places if place.is_file()), None)


def list_studies() -> dict[str, tuple[Study, float]]:
    """What is measured, and the low-pass of its figures [Hz]."""
    found = {"TX40, halves": (tx40(), 10.0)}
    if LWR4.is_dir():
        found["LWR4+ 1 → 3"] = lwr4((1,), 3), 6.0
        found["LWR4+ 2+3 → 1"] = lwr4((2, 3), 1), 6.0
        found["KR300 A → B"] = kr300(), 10.0
        found["TIAGo, split"] = tiago(), 5.0
    arm = described("ur_description/urdf/ur10_robot.urdf")
    if LWR4.is_dir() and arm is not None:
        found["UR10, split"] = split({"file": arm}, DATA / "unisa" / "ur10.csv", 2294), 5.0
    panda = described("panda_description/urdf/panda.urdf")
    if LWR4.is_dir() and panda is not None:
        still = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
        columns = {"q": "q_joint*", "tau": "tau_joint*"}
        robot = {"file": panda, "locked": still}
        path = DATA / "unisa" / "panda.csv"
        found["Panda, split"] = split(robot, path, 484, columns=columns), 5.0
    return found


def with_given(own: Study, lowpass: float, **keys: object) -> Study:
    """A study with options of the identification, without a bootstrap and the doctor."""
    update = {"lowpass_hz": lowpass, "bootstrap": 0, "doctor": False, **keys}
    return own.model_copy(update={"identify": own.identify.model_copy(update=update)})


def held_out(fit: Fit) -> float:
    """Error on all samples of the held-out log [%]."""
    return fit.validation[0].entries[1].overall_percent


def search(given: Study, lowpass: float) -> tuple[float, str, Study]:
    """The smallest held-out error of all combinations, which looks at what it is judged by.

    With the combination in words, and the study that states it.
    """
    tried = [*itertools.product(BANDWIDTHS, GATES, FRICTIONS)]
    tried += [(None, 0.0, friction) for friction in SHAPED]
    best, what, found = float("inf"), "", given
    for hz, gate, friction in tried:
        prepare = given.prepare.model_copy(update={"bandwidth": hz, "drop_below": gate})
        robot = given.robot.model_copy(update={"friction": friction})
        own = given.model_copy(update={"prepare": prepare, "robot": robot})
        try:
            error = held_out(run_study(with_given(own, lowpass, decide=NOTHING)))
        except DynidentError:
            continue
        if error < best:
            best, found = error, own
            what = f"{friction}, {hz or 'assumed'} Hz, gate {gate:g} rad/s"
    return best, what, found


def main() -> None:
    rows = []
    for name, (own, lowpass) in list_studies().items():
        run_study(with_given(own, lowpass))  # compiled
        started = time.process_time()
        given = held_out(run_study(with_given(own, lowpass, decide=NOTHING)))
        between = time.process_time()
        fit = run_study(with_given(own, lowpass))
        ended = time.process_time()
        best, what, _ = search(own, lowpass)
        paid = ", ".join(
            dict.fromkeys(
                each["what"] for each in fit.settings["decided"] if each["gain_percent"] > 0.0
            )
        )
        rows.append(
            [
                name,
                f"{given:.2f}",
                f"**{held_out(fit):.2f}**",
                f"{best:.2f}",
                paid or "-",
                what,
                f"{between - started:.2f}",
                f"{ended - between:.2f}",
            ]
        )
        print(*rows[-1], flush=True)
    header = ["log", "as given %", "decided %", "best by hand %", "what paid", "by hand",
              "as given, processor s",
              "decided, processor s"]  # fmt: skip
    lines = markdown(header, rows)
    if not LWR4.is_dir():
        lines += ["", "The logs of other robots than the TX40 were not there."]
    (FIGURES / "decide.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
