"""Whether logs show what a search by hand finds better than what they decide.

Run from the top of the project: python benchmarks/decide_limits.py

The search of `decide.py` looks at the held-out part. Its best choice is tried without that here: on
five blocks of the fitted part, each left out in turn, by the error that measures what is held out.
"""

from __future__ import annotations

import numpy as np
from common import FIGURES, markdown
from decide import held_out, list_studies, search, with_given
from logs import LWR4

from dynident.core.errors import DynidentError
from dynident.decide.decision import NOTHING
from dynident.study.run import run_study
from dynident.study.study import Study, load_study_robot, read_study_recordings

BLOCKS = 5
MARGIN = 1.03
"""A choice by hand is looked at where its held-out error is by so much smaller."""


def leave_block_out(study: Study, block: int) -> Study:
    """A study that fits its first log without a block, and holds that out."""
    log = study.log[0]
    recording = read_study_recordings(study, load_study_robot(study))[0]
    first = 0 if log.rows is None else log.rows[0]
    ends = first + np.linspace(0, len(recording.q), BLOCKS + 1).round().astype(int)
    start, stop = int(ends[block]), int(ends[block + 1])
    around = ((first, start), (stop, int(ends[-1])))
    kept = tuple((a, b) for a, b in around if a < b)
    rest = log.model_copy(update={"keep": kept, "name": "rest"})
    left = log.model_copy(update={"rows": (start, stop), "use": "validate", "name": "block"})
    return study.model_copy(update={"log": (rest, left)})


def measure_blocks(study: Study, lowpass: float) -> np.ndarray:
    """Errors of a stated choice on the blocks, each left out in turn; NaN where it has none [%]."""
    found = []
    for block in range(BLOCKS):
        own = with_given(leave_block_out(study, block), lowpass, decide=NOTHING)
        try:
            found.append(held_out(run_study(own)))
        except DynidentError as error:
            print(f"block {block}: {error}", flush=True)
            found.append(np.nan)
    return np.array(found)


def main() -> None:
    """Both choices of each log on blocks of the fitted part, and on what is held out."""
    lines = []
    for name, (own, lowpass) in list_studies().items():
        if sum(log.use == "identify" for log in own.log) > 1:
            continue
        decided = run_study(with_given(own, lowpass))
        best, what, by_hand = search(own, lowpass)
        if MARGIN * best > held_out(decided):
            continue
        assert isinstance(decided.study, Study)
        stated, other = measure_blocks(decided.study, lowpass), measure_blocks(by_hand, lowpass)
        both = np.isfinite(stated) & np.isfinite(other)
        gain = (stated - other)[both]
        error = float(np.std(gain, ddof=1) / np.sqrt(len(gain)))
        lines.append(
            [
                name,
                what,
                f"{len(gain)} of {BLOCKS}",
                f"{np.mean(stated[both]):.2f}",
                f"{np.mean(other[both]):.2f}",
                f"{np.mean(gain):.2f} ± {error:.2f}",
                f"{held_out(decided):.2f}",
                f"{best:.2f}",
            ]
        )
        print(*lines[-1], flush=True)
    header = [
        "log",
        "by hand",
        "blocks that both fit",
        "left out: decided %",
        "by hand %",
        "less by",
        "held out: decided %",
        "by hand %",
    ]
    text = "\n".join(
        ["Made by `python benchmarks/decide_limits.py`.", "", *markdown(header, lines)]
    )
    if LWR4.is_dir():
        (FIGURES / "decide_limits.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
