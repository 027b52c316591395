"""A paper's experiment, its tables beside ours, with computing times.

Run from the top of the project: python benchmarks/reproduce.py brunot2019
"""

from __future__ import annotations

import argparse
import sys

from common import FIGURES

from dynident.cli.progress import show_progress
from dynident_papers import REPRODUCTIONS
from dynident_papers.picture import draw_panels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=REPRODUCTIONS)
    parser.add_argument("--reduced", action="store_true", help="shorter, printed only")
    chosen = parser.parse_args()
    with show_progress() as progress:
        found = REPRODUCTIONS[chosen.name](progress=progress, reduced=chosen.reduced, timed=True)
    text = found.text()
    if not chosen.reduced:
        (FIGURES / f"{chosen.name}.md").write_text(f"```text\n{text}```\n")
        (FIGURES / f"{chosen.name}.png").write_bytes(draw_panels(found.panels))
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
