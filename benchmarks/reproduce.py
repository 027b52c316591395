"""A paper's experiment on its simulated robot, its tables beside ours.

Run from the top of the project: python benchmarks/reproduce.py brunot2019
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from dynident.core.progress import progress_on_stderr

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
NAMES = ("brunot2019", "ardiani2024")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--reduced", action="store_true", help="shorter, printed only")
    chosen = parser.parse_args()
    run = import_module(f"dynident_papers.{chosen.name}").run
    with progress_on_stderr() as progress:
        text = run(progress=progress, reduced=chosen.reduced).text()
    if not chosen.reduced:
        (FIGURES / f"{chosen.name}.md").write_text(f"```text\n{text}```\n")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
