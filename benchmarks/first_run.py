"""How long a first run waits for compilation: whole processes from an empty cache, then again.

    python benchmarks/first_run.py [--runs 3] [--before FOLDER] [--only emps tx40]

`identify` of the examples, each run a process of its own: with an empty cache of compiled
functions, then with what that one left. `--before` is another checkout, whose runs alternate with
ours. Seconds of the process and of its processors; medians. Writes docs/figures/first_run.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import FIGURES, ROOT, markdown

EXAMPLES = ("emps", "tx40", "quadruped", "z1", "go2", "so101")


def run_once(source: Path, example: str, cache: str) -> tuple[float, float]:
    """Seconds of one process, and of its processors."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(source / "src")}
    study = str(ROOT / "examples" / example / "study.toml")
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        argv = [sys.executable, "-m", "dynident", "identify", study, "-o", f"{out}/o"]
        subprocess.run(argv, env=environment, check=True, capture_output=True)
    taken = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return taken, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--only", nargs="*", choices=EXAMPLES, default=EXAMPLES)
    asked = parser.parse_args()
    places = {"now": ROOT} if asked.before is None else {"before": asked.before, "now": ROOT}
    rows = []
    for example in asked.only:
        laps: dict[str, list[tuple[float, ...]]] = {name: [] for name in places}
        for _ in range(asked.runs):
            for name, place in places.items():
                with tempfile.TemporaryDirectory() as cache:
                    first = run_once(place, example, cache)
                    laps[name].append((*first, *run_once(place, example, cache)))
        for name, found in laps.items():
            middle = [f"{statistics.median(each):.1f}" for each in zip(*found, strict=True)]
            rows.append([example, name, *middle])
    header = ["example", "", "first [s]", "processors [s]", "again [s]", "processors [s]"]
    FIGURES.joinpath("first_run.md").write_text(
        "\n".join(
            [
                f"{platform.machine()}, {os.cpu_count()} cores, Python "
                f"{platform.python_version()}; medians of {asked.runs}.",
                "",
                *markdown(header, rows),
                "",
            ]
        )
    )


if __name__ == "__main__":
    main()
