"""Sound logs of robots that no threshold was chosen on: what the doctor says of them, wrongly.

Thirty robots, made by MuJoCo and Pinocchio (`tests/sound_logs.py`). Of each the doctor looks at a
log alone and beside another one, as `dynident doctor` does and as every identification does. Writes
docs/figures/doctor_sound.md:

    python benchmarks/doctor_sound.py [--robots WORD …] [--jobs COUNT]

Words are parts of the names of robots; with them nothing is written.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

os.environ.setdefault("OMP_NUM_THREADS", "1")

from common import FIGURES, ROOT, markdown

sys.path.insert(0, str(ROOT / "tests"))

import sound_logs

from dynident.diagnosis.examine import examine
from dynident.diagnosis.scene import take_scene
from dynident.diagnosis.signs import STILL, find_signs
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.instants.squares import average_errors
from dynident.recording.prepare import prepare

WAYS = (("doctor", True), ("identify", False))


@dataclass(frozen=True)
class Said:
    """What was said of a robot's logs, and how well a model explains the first."""

    name: str
    joints: int
    samples: int
    error: float
    """Of least squares, mean of the joints [%]."""
    findings: tuple[str, ...]
    """In words, of all ways to look."""
    signs: tuple[str, ...]
    """Of the signals."""


def look(name: str) -> Said:
    """All that is said of a robot's logs."""
    kind = sound_logs.kinds()[name]
    robot = kind.make()
    base = base_parameters(build_idim(robot))
    logs = sound_logs.make_logs(name)
    ready = [prepare(log) for log in logs]
    findings = []
    for way, thorough in WAYS:
        for held in ([], ready[1:]):
            for each in examine(base, ready[:1], held, thorough=thorough):
                beside = "beside another" if held else "alone"
                findings += [f"{way}, {beside}: {f.found} ({f.gain})" for f in each]
    signs = [sign.what for sign in find_signs(robot, ready[0]) if sign.kind != STILL]
    error = 100.0 * average_errors(take_scene(base, ready[0]).problem.free_errors())
    return Said(name, robot.n, len(logs[0].q), error, tuple(findings), tuple(signs))


def page(every: list[Said]) -> Iterator[str]:
    """The whole page, line by line."""
    wrong = [each for each in every if each.findings]
    noted = [each for each in every if each.signs]
    kinds = sound_logs.kinds()
    yield from (
        "# Sound logs",
        "",
        "Made by `benchmarks/doctor_sound.py`: logs of robots that no threshold was chosen on, by "
        "MuJoCo (a loop of stiff drives, with its friction) and Pinocchio (inverse dynamics, with "
        "friction of Stribeck). Bodies differ from the file's by up to "
        f"{100 * sound_logs.MASSES:.0f} %, every third robot carries a tool that the file has not; "
        "rotors, friction, noise and steps of sensors are drawn. The doctor looks at each log "
        "alone and beside another one, as `dynident doctor` does and as `identify` does.",
        "",
        f"- with a finding: {len(wrong)} of {len(every)}",
        f"- with a sign of the signals: {len(noted)} of {len(every)}",
        "",
    )
    yield from markdown(
        ["robot", "joints", "by", "rate [Hz]", "samples", "motion", "tool", "error [%]", "said"],
        [
            [
                each.name, str(each.joints), kinds[each.name].engine, f"{kinds[each.name].rate:g}",
                str(each.samples), kinds[each.name].motion, f"{kinds[each.name].tool:g}",
                f"{each.error:.3g}", "; ".join((*each.findings, *each.signs)) or "nothing",
            ]
            for each in every
        ],
    )  # fmt: skip


def main() -> None:
    """Measure, and write the page where all was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--robots", nargs="+", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    names = [n for n in sound_logs.kinds() if not given.robots or any(w in n for w in given.robots)]
    every = []
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        for said in pool.map(look, names):
            every.append(said)
            print(said.name, *said.findings, *said.signs, sep="; ", flush=True)
    text = "\n".join(page(every)) + "\n"
    if given.robots:
        sys.stdout.write(text)
    else:
        (FIGURES / "doctor_sound.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
