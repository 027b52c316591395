"""The zoo made again: the fits that the package carries, with their notices and licences.

Each entry is what `dynident identify STUDY` makes of the study that it names. Writes
`src/dynident/zoo` and `docs/figures/zoo.md`:

    python benchmarks/zoo.py [NAME …]
"""

from __future__ import annotations

import argparse
import lzma

from common import FIGURES, ROOT, markdown

import dynident as di
from dynident.core.plain import to_json
from dynident.fit.json import serialise_result
from dynident.fit.zoo import FOLDER, ZOO, ZooEntry, find_zoo_entry, tabulate_zoo

LICENCES = "LICENSE-*"


def write_entry(entry: ZooEntry) -> None:
    """The fit, in one line and packed, and what has to go with it."""
    fit = di.run_study(di.read_study(ROOT / entry.study))
    text = to_json(serialise_result(fit, FOLDER), indent=None)
    packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    folder = (ROOT / entry.study).parent
    papers = [folder / "NOTICE", *sorted(folder.glob(LICENCES))]
    FOLDER.mkdir(exist_ok=True)
    entry.result.write_bytes(packed)
    notice = f"\n{'-' * 78}\n\n".join(paper.read_text(encoding="utf-8") for paper in papers)
    (FOLDER / f"{entry.name}.txt").write_text(notice, encoding="utf-8")
    print(f"{entry.name}: {len(packed) / 1000:.0f} kB, {fit.verdict.state}")


def build_table() -> list[str]:
    """The page of the table."""
    header = ["name", "robot", "joints", "method", "held out", "verdict", "source", "licence"]
    rows = [
        [f"`{row.name}`", row.robot, str(row.joints), f"`{row.method}`", row.held_out, row.verdict,
         row.source, row.licence]
        for row in tabulate_zoo()
    ]  # fmt: skip
    return ["Made by `benchmarks/zoo.py`.", "", *markdown(header, rows), ""]


def main() -> None:
    """Make entries again, all or some, and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    for name in parser.parse_args().names or ZOO:
        write_entry(find_zoo_entry(name))
    page = FIGURES / "zoo.md"
    page.write_text("\n".join(build_table()), encoding="utf-8")
    print(f"written to {page}")


if __name__ == "__main__":
    main()
