"""Times and memory, side by side in one run.

Run from the top of the project: python benchmarks/speed.py [--figaroh PYTHON]
where PYTHON is the interpreter of an environment with figaroh 1.0.2.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
from common import FIGURES, ROOT, TX40, timed

RUNS = 9
ONE_CORE = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
ONE_CORE.pop("PYTHONDONTWRITEBYTECODE", None)  # start-up is measured with compiled modules


def identify_tx40(method: str, decide: str) -> dict:
    """Median time of a whole identification in this process, with its stages."""
    import dynident as di

    study = di.read_study(TX40 / "study.toml")
    section = study.identify.model_copy(
        update={"method": method, "decide": decide, "doctor": decide == "all"}
    )
    study = study.model_copy(update={"identify": section})
    results = [di.run_study(study) for _ in range(RUNS + 1)][1:]
    stages = {k: median(r.timings[k] for r in results) for k in results[0].timings}
    return {"stages": stages, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def regressor() -> dict:
    """Microseconds a sample: ours, with friction columns, and a loop over Pinocchio."""
    import pinocchio as pin

    from dynident.dynamics.columns import fill_rows
    from dynident.dynamics.idim import build_idim
    from dynident.robot import load_robot

    path = TX40 / "tx40_mdh_modified.urdf"
    idim = build_idim(load_robot(path))
    packing = idim.packing(range(len(idim.parameters)))
    samples = 45000
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, samples, 6))
    out = np.empty((1024, packing.width))

    def ours() -> None:
        for a in range(0, samples, 1024):
            b = min(a + 1024, samples)
            fill_rows(idim, packing, q[a:b], dq[a:b], ddq[a:b], out[: b - a])

    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()

    def theirs() -> None:
        for k in range(samples):
            pin.computeJointTorqueRegressor(model, data, q[k], dq[k], ddq[k])

    phi = idim.robot.nominal
    from dynident.dynamics import compute_mass_matrix, evaluate_inverse_dynamics

    def rnea() -> None:
        for k in range(samples):
            pin.rnea(model, data, q[k], dq[k], ddq[k])

    def crba() -> None:
        for k in range(samples):
            pin.crba(model, data, q[k])

    scale = 1e6 / samples
    return {
        "regressor, 6 joints, all 84 columns": (
            timed(ours, RUNS) * scale,
            timed(theirs, 3) * scale,
        ),
        "inverse dynamics": (
            timed(lambda: evaluate_inverse_dynamics(idim.tree, phi, q, dq, ddq), RUNS) * scale,
            timed(rnea, 3) * scale,
        ),
        "mass matrix": (
            timed(lambda: compute_mass_matrix(idim.tree, phi, q), RUNS) * scale,
            timed(crba, 3) * scale,
        ),
    }


FITS: dict[str, Callable[[], dict]] = {
    f"{method}, {words}": partial(identify_tx40, method, decide)
    for words, decide in (("as given", "nothing"), ("decided, examined", "all"))
    for method in ("wls", "pc-idim-ls")
}
PARTS: dict[str, Callable[[], dict]] = {**FITS, "regressor": regressor}
STAGES = {
    "reading": ("robot", "logs"),
    "decisions": ("decisions",),
    "rows and factors": ("base parameters", "rows"),
    "estimate": ("estimate",),
    "validation": ("validation",),
    "doctor": ("doctor",),
}


def child(part: str) -> dict:
    """One part in a process of its own, on one core's worth of BLAS threads."""
    done = subprocess.run(
        [sys.executable, __file__, "--part", part],
        capture_output=True,
        text=True,
        check=True,
        env=ONE_CORE,
    )
    return json.loads(done.stdout)


def whole(command: list[str], runs: int = 7) -> float:
    """Median seconds of a whole process."""

    def run() -> None:
        subprocess.run(command, check=True, capture_output=True, env=ONE_CORE)

    return timed(run, runs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--figaroh")
    parser.add_argument("--part", choices=PARTS)
    arguments = parser.parse_args()
    if arguments.part:
        sys.stdout.write(json.dumps(PARTS[arguments.part]()))
        return

    fits = {name: child(name) for name in FITS}
    lines = [
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy "
        f"{np.__version__}; one BLAS thread; medians of {RUNS} runs after import and "
        "compilation.\n",
        "### The TX40 log, 45000 x 6 at 5 kHz, from the files to the result\n",
        f"| | total [s] | {' | '.join(STAGES)} | peak memory [MB] |",
        "|---" * (len(STAGES) + 3) + "|",
    ]
    for name, fit in fits.items():
        taken = fit["stages"]
        cells = [f"{sum(taken.get(k, 0.0) for k in parts):.3f}" for parts in STAGES.values()]
        lines.append(
            f"| dynident {name} | **{taken['total']:.3f}** | {' | '.join(cells)} "
            f"| {fit['peak_mb']:.0f} |"
        )
    if arguments.figaroh:
        done = subprocess.run(
            [arguments.figaroh, str(ROOT / "benchmarks" / "figaroh_tx40.py"), "5"],
            capture_output=True,
            text=True,
            check=True,
            env=ONE_CORE,
        )
        other = json.loads(done.stdout[done.stdout.index("{") :])
        seconds = median(other["seconds"])
        lines.append(
            f"| figaroh 1.0.2, least squares | {seconds:.3f} {'| ' * len(STAGES)}"
            f"| {other['peak_mb']:.0f} |"
        )
        ratio = seconds / fits["wls, as given"]["stages"]["total"]
        ratio_pc = seconds / fits["pc-idim-ls, as given"]["stages"]["total"]
        lines.append(
            f"\nfigaroh takes {ratio:.1f} times as long as our least squares and {ratio_pc:.1f} "
            "times as long as our physically consistent fit; ours include the errors on all "
            "samples of the model and of the robot file, the statistics and the reading.\n"
        )
    lines += [
        "\n### Kernels\n",
        "| | dynident [µs a sample] | loop over Pinocchio from Python [µs] | ratio |",
        "|---|---|---|---|",
    ]
    for name, (ours, theirs) in child("regressor").items():
        lines.append(f"| {name} | {ours:.2f} | {theirs:.2f} | {theirs / ours:.1f} |")
    python = sys.executable
    everything = "import dynident as di; [getattr(di, name) for name in di.__all__]"
    lines += [
        "\n### Start\n",
        "| whole process | seconds |",
        "|---|---|",
        f"| `python -c pass` | {whole([python, '-c', 'pass']):.2f} |",
        f"| `import dynident` with every public name | {whole([python, '-c', everything]):.2f} |",
        f"| `dynident --help` | {whole([python, '-m', 'dynident', '--help']):.2f} |",
        "| `dynident identify --help` | "
        f"{whole([python, '-m', 'dynident', 'identify', '--help']):.2f} |",
    ]
    study = str(TX40 / "study.toml")
    lines.append(
        f"| `dynident identify examples/tx40/study.toml` | "
        f"{whole([python, '-m', 'dynident', 'identify', study]):.2f} |"
    )
    text = "\n".join(lines) + "\n"
    (FIGURES / "speed.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
