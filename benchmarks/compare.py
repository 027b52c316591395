"""Friction models on measured logs, by what they were not fitted to.

Run from the top of the project: python benchmarks/compare.py

With ``--against FOLDER``, the `src` of another checkout, it prints the processor time that both
take for the default methods and models on some of the logs, by turns, and their ratio.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import EMPS, FIGURES, ROOT, TX40, markdown
from logs import LWR4, LWR4_MISSING

from dynident.fit.comparison import Candidate, Comparison
from dynident.study.compare import MODELS, compare
from dynident.study.study import read_study

KR300 = ROOT / ".." / "shared" / "data" / "kr300"
KR300_STUDY = """
[robot]
file = "kr300.toml"

[prepare]
bandwidth = 5.0

[[log]]
files = ["kr300_A.csv"]
rows = [450, 2051]

[[log]]
files = ["kr300_B.csv"]
rows = [450, 2051]
use = "validate"
"""
"""While it moves, its gas spring unknown."""
LWR4_STUDY = """
[robot]
file = "kuka_lwr4.urdf"

[prepare]
bandwidth = 10.0

[[log]]
files = ["measurements_1.npz"]
columns = { time = "times", q = "positions_*", tau = "torques_*" }

[[log]]
files = ["measurements_3.npz"]
columns = { time = "times", q = "positions_*", tau = "torques_*" }
use = "validate"
"""


PAIRED = ("KR300 A → B", "UR10, split", "TX40, halves", "LWR4+ 1 → 3")
"""Of `decide.list_studies`; what is held out is a log of their own."""


def take_time(name: str) -> float:
    """Processor time of a comparison on one of the logs, once all is compiled [s]."""
    from decide import list_studies

    study, _ = list_studies()[name]
    compare(study, ["wls", "pc-idim-ls"], ["coulomb-viscous", "load"], 3)
    started = time.process_time()
    compare(study)
    return time.process_time() - started


def measure_against(folder: str) -> None:
    """Both checkouts by turns, each in a process of its own."""
    for name in PAIRED:
        taken = []
        for source in (folder, str(ROOT / "src")):
            environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
            command = [sys.executable, __file__, "--time", name]
            run = subprocess.run(command, env=environment, capture_output=True, check=True)
            taken.append(float(run.stdout.split()[-1]))
        before, after = taken
        print(f"{name}: {before:.1f} s, {after:.1f} s, ratio {after / before:.2f}", flush=True)


def compared(study: Path) -> Comparison:
    return compare(read_study(study), ["pc-idim-ls"], MODELS)


def beside(folder: Path, text: str) -> Comparison:
    """The same of a study of a robot and logs in a folder that is not written to."""
    with tempfile.TemporaryDirectory() as made:
        for name in sorted(path.name for path in folder.iterdir()):
            (Path(made) / name).symlink_to((folder / name).resolve())
        study = Path(made) / "study.toml"
        study.write_text(text)
        return compared(study)


def cell(found: Candidate | None) -> str:
    if found is None:
        return "-"
    error, std = found.held_out.percent()
    mark = "" if found.verdict == "trusted" else f", {found.verdict}"
    return f"{error:.2f} ± {std:.2f}{mark}"


def row(name: str, found: Comparison) -> list[str]:
    by = {each.friction: each for each in found.candidates}
    return [
        name,
        *(cell(by.get(model)) for model in MODELS),
        f"`{found.recommendations[0].friction}`",
    ]


def main() -> None:
    rows = [row("TX40", compared(TX40 / "study.toml")), row("EMPS", compared(EMPS / "study.toml"))]
    if KR300.is_dir():
        rows.append(row("KR300", beside(KR300, KR300_STUDY)))
    if LWR4.is_dir():
        rows.append(row("LWR4+", beside(LWR4, LWR4_STUDY)))
    lines = markdown(["log", *(f"`{model}`" for model in MODELS), "taken"], rows)
    if not LWR4.is_dir():
        lines += ["", LWR4_MISSING]
    (FIGURES / "compare.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--against", folder]:
            measure_against(folder)
        case ["--time", name]:
            print(take_time(name))
        case _:
            main()
