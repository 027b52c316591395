"""What decided models leave of held-out logs when all torques are read some milliseconds earlier.

Such shifts are within what loggers do. A model that hangs on them hangs on the noise of a choice.
Run from the top of the project: python benchmarks/decide_shifts.py
"""

from __future__ import annotations

from common import FIGURES, markdown
from decide import held_out, list_studies, with_given

from dynident.study.run import run_study
from dynident.study.study import LogSection, Study

SHIFTS = (-4, -2, 0, 2, 4, 6, 8, 12)
"""Of the torques against the motion [ms]."""


def shift(study: Study, milliseconds: float) -> Study:
    """A study all of whose logs have their torques so much later, which is undone."""
    logs = [
        LogSection.model_validate(
            own.model_dump(exclude_none=True, exclude_unset=True) | {"delay": 1e-3 * milliseconds}
        )
        for own in study.log
    ]
    return study.model_copy(update={"log": tuple(logs)})


def main() -> None:
    """Write docs/figures/decide_shifts.md."""
    rows = []
    for name, (study, lowpass) in list_studies().items():
        fits = [run_study(with_given(shift(study, ms), lowpass)) for ms in SHIFTS]
        rows.append([name, *(f"{held_out(fit):.2f}" for fit in fits)])
        print(*rows[-1], flush=True)
    text = markdown(["held out [%], shifted by [ms]", *(f"{ms}" for ms in SHIFTS)], rows)
    lines = ["Made by `python benchmarks/decide_shifts.py`.", "", *text]
    (FIGURES / "decide_shifts.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
