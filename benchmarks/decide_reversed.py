"""What the logs decide where those of `decide.py` that are held out there are fitted instead.

Run from the top of the project: python benchmarks/decide_reversed.py
"""

from __future__ import annotations

from unittest.mock import patch

import decide
from common import FIGURES, markdown
from logs import LWR4

from dynident.decide.decision import NOTHING, Decision
from dynident.study.run import run_study
from dynident.study.study import Study

LWR4_WAYS = ((3, 1), (3, 2), (2, 1), (2, 3), (1, 2))
"""Logs of the LWR4+, fitted and held out."""


def reverse(study: Study) -> Study:
    """A study of two logs whose uses are exchanged."""
    other = {"identify": "validate", "validate": "identify"}
    logs = tuple(log.model_copy(update={"use": other[log.use]}) for log in study.log)
    return study.model_copy(update={"log": logs})


def list_studies() -> dict[str, tuple[Study, float]]:
    """What is measured, and the low-pass of its figures [Hz]."""
    found = {}
    for name, (study, lowpass) in decide.list_studies().items():
        if "LWR4+" not in name:
            found[f"{name}, the other way"] = reverse(study), lowpass
    if LWR4.is_dir():
        for fitted, held_out in LWR4_WAYS:
            found[f"LWR4+ {fitted} → {held_out}"] = decide.lwr4((fitted,), held_out), 6.0
    return found


def take_weight(found: Decision, *given: object) -> Decision:
    """A weight of the prior as rows that were left out ask for it."""
    return found


def main() -> None:
    lines = []
    for name, (study, lowpass) in list_studies().items():
        given = run_study(decide.with_given(study, lowpass, decide=NOTHING))
        fit = run_study(decide.with_given(study, lowpass))
        with patch("dynident.study.decide.confirm_weight", take_weight):
            taken = run_study(decide.with_given(study, lowpass))
        paid = [each["what"] for each in fit.settings["decided"] if each["gain_percent"] > 0.0]
        errors = decide.held_out(given), decide.held_out(fit), decide.held_out(taken)
        shown = [f"{error:.2f}" for error in errors]
        if errors[1] < errors[0]:
            shown[1] = f"**{shown[1]}**"
        lines.append([name, *shown, ", ".join(dict.fromkeys(paid)) or "-", fit.verdict.state])
        print(*lines[-1], flush=True)
    unasked = "weight of the prior unconfirmed %"
    table = markdown(["log", "as given %", "decided %", unasked, "what paid", "verdict"], lines)
    text = ["Made by `python benchmarks/decide_reversed.py`.", "", *table]
    (FIGURES / "decide_reversed.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
