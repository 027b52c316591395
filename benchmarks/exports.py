"""Identified models at work elsewhere: how long their C code takes, how well engines replay logs.

C code is timed by a loop in C over random states, beside our batched kernel and Pinocchio's `rnea`
from Python. Replays are of the last third of each log by the model of the first two, in MuJoCo and
in Pinocchio. Writes docs/figures/exports.md.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pinocchio as pin
from common import FIGURES, ROOT, markdown, timed
from encoder import CASES, STUDY, Case

sys.path.insert(0, str(ROOT / "tests"))
from robots import bodies, pin_q, states, urdf

import dynident as di
from dynident.cli import run
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.idim import build_idim
from dynident.dynamics.whole import WholeModel
from dynident.engines import ENGINES
from dynident.export.c_code import c_code
from dynident.export.controller import ControllerModel
from dynident.export.pinocchio import build_pinocchio_model
from dynident.report.replays import combine_joint_rms
from dynident.study.replay import replay

ROBOTS = {
    "Panda, 7 joints": ("panda", ("panda_finger_joint1", "panda_finger_joint2")),
    "UR5, 6 joints": ("ur5", ()),
    "TX40, 6 joints": ("tx40", ()),
}
SAMPLES, RUNS = 1000, 9
HARNESS = """#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>
{code}
int main(int argc, char **argv)
{{
    static double q[{samples}][{n}], dq[{samples}][{n}], ddq[{samples}][{n}], tau[{samples}][{n}];
    double sum = 0.0;
    FILE *file = fopen(argv[argc - 1], "rb");
    if (!file || fread(q, sizeof q, 1, file) + fread(dq, sizeof dq, 1, file)
        + fread(ddq, sizeof ddq, 1, file) != 3) return 1;
    for (int run = 0; run <= {runs}; ++run) {{
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int k = 0; k < {samples}; ++k) {{
            robot_inverse_dynamics(q[k], dq[k], ddq[k], tau[k]);
            sum += tau[k][0];
        }}
        clock_gettime(CLOCK_MONOTONIC, &b);
        if (run) printf("%.3f\\n",
            ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / {samples});
    }}
    return sum == 0.5;
}}
"""


def code_time(model: WholeModel, folder: Path) -> float:
    """Median nanoseconds of a call of a model's C code."""
    n = model.idim.robot.n
    text = HARNESS.format(code=c_code(model, "robot"), samples=SAMPLES, n=n, runs=RUNS)
    source, program, data = folder / "timed.c", folder / "timed", folder / "states.bin"
    source.write_text(text)
    data.write_bytes(b"".join(each.tobytes() for each in states(model.idim.robot, SAMPLES)))
    subprocess.run(["cc", "-std=c99", "-O2", "-o", str(program), str(source), "-lm"], check=True)
    told = subprocess.run([str(program), str(data)], check=True, capture_output=True, text=True)
    return float(np.median([float(line) for line in told.stdout.split()]))


def one_by_one(model: pin.Model, data: pin.Data, q: list[Array], dq: Array, ddq: Array) -> None:
    """Pinocchio's inverse dynamics of each state."""
    for a, b, c in zip(q, dq, ddq, strict=True):
        pin.rnea(model, data, a, b, c)


def call_each(function: Callable[..., Array], q: Array, dq: Array, ddq: Array) -> None:
    """A function of each state."""
    for a, b, c in zip(q, dq, ddq, strict=True):
        function(a, b, c)


def code_rows(folder: Path) -> list[list[str]]:
    """C code, our kernel and Pinocchio, robot by robot."""
    rows = []
    for words, (name, locked) in ROBOTS.items():
        robot = di.load_robot(urdf(name), locked=dict.fromkeys(locked, 0.0))
        idim = build_idim(robot)
        theta = idim.join(bodies(robot.n), np.linspace(0.5, 1.5, len(idim.drives)))
        model = WholeModel(idim, theta)
        q, dq, ddq = states(robot, SAMPLES)
        there = build_pinocchio_model(model).model
        data = there.createData()
        at = [pin_q(there, each) for each in q]

        actions = (
            partial(model.inverse_dynamics, q, dq, ddq),
            partial(one_by_one, there, data, at, dq, ddq),
        )
        code = code_time(model, folder)
        others = [1e9 * timed(action, RUNS) / SAMPLES for action in actions]
        calls = (model.inverse_dynamics, ControllerModel(model).inverse_dynamics)
        others += [1e9 * timed(partial(call_each, f, q, dq, ddq), RUNS) / SAMPLES for f in calls]
        size = c_code(model).count("\n")
        rows.append([words, f"{code:.0f}", *(f"{each:.0f}" for each in others), str(size)])
    return rows


def replay_rows(case: Case, folder: Path) -> list[list[str]]:
    """The last third of a log in each engine, by what the first two tell."""
    lines = case.log.read_text().splitlines()
    samples = len(lines) - 1
    cut = 2 * samples // 3
    path, last = folder / "study.toml", folder / "last.csv"
    path.write_text(
        STUDY.format(
            robot=case.robot, log=case.log, cut=cut, samples=samples, kp=list(case.kp),
            kd=list(case.kd), links="prior", friction="",
        )
    )  # fmt: skip
    last.write_text("\n".join([lines[0], *lines[cut + 1 :]]) + "\n")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert run(["identify", str(path), "-o", str(folder / "out"), "--no-report"]) == 0
    stored = di.read_result(folder / "out" / "result.json")
    rows = []
    for engine in ENGINES:
        try:
            found = replay(stored, [str(last)], engine)
        except InputError as error:
            print(f"{case.name}: {engine} is left out ({error})")
            continue
        assert found.theirs is not None
        assert found.apart is not None
        assert found.nominal is not None
        milli = [
            combine_joint_rms(rms) for rms in (found.ours, found.theirs, found.apart, found.nominal)
        ]
        notes = "; ".join(found.notes)
        share = 100.0 * (milli[1] / milli[0] - 1.0)
        figures = [f"{1e3 * value:.2f}" for value in milli]
        rows.append([case.name.split(",")[0], engine, *figures[:2], f"{share:+.1f} %", *figures[2:],
                     notes])  # fmt: skip
    return rows


def main() -> None:
    """Measure and write the page."""
    lines = ["# Exports", "", "Made by `benchmarks/exports.py`."]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if shutil.which("cc"):
            header = ["robot", "C code [ns]", "our kernel, a batch [ns]",
                      "Pinocchio's `rnea` from Python [ns]",
                      "`fit.inverse_dynamics`, one state [ns]",
                      "`controller_model` [ns]", "lines of C"]  # fmt: skip
            lines += ["", "## Inverse dynamics", "", *markdown(header, code_rows(folder))]
            lines += [
                "",
                f"Medians of {RUNS} runs over {SAMPLES} random states, `cc -O2`, one core; rotors "
                "and friction are in, but for `rnea`.",
            ]
        rows = [row for case in CASES if case.log.is_file() for row in replay_rows(case, folder)]
    header = ["log", "engine", "ours [mrad]", "engine's [mrad]", "more", "apart [mrad]",
              "file as it is [mrad]", "notes"]  # fmt: skip
    lines += ["", "## Replays", "", *markdown(header, rows)]
    lines += [
        "",
        "Root mean square of the positions of all joints, free simulations of the last third of "
        "each log from its first sample; the first two thirds are fitted.",
    ]
    print("\n".join(lines))
    (FIGURES / "exports.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
