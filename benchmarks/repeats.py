"""Two logs of one measured robot: how often their parameters agree within the intervals.

Each log is fitted by itself, as given. The differences of the base parameters over their standard
errors have a median size of 0.67 and 95 % of them are within 1.96 where error bars hold. Run from
the top of the project: python benchmarks/repeats.py
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from common import FIGURES, markdown
from decide import list_studies, lwr4
from logs import LWR4

from dynident.core.arrays import Array, Booleans
from dynident.decide.decision import NOTHING
from dynident.report.fit import Fit
from dynident.study.run import run_study
from dynident.study.study import Study

BARS = ("sandwich", "bartlett", "hac", "blocks", "clustered")
"""Covariances that are compared, of `wls`."""


def list_pairs() -> dict[str, Study]:
    """Studies whose two logs are fitted apart."""
    found = {name: study for name, (study, _) in list_studies().items() if len(study.log) == 2}
    if LWR4.is_dir():
        found.pop("LWR4+ 1 → 3", None)
        pairs = ((1, 2), (1, 3), (2, 3))
        found |= {f"LWR4+ {a} and {b}": lwr4((a,), b) for a, b in pairs}
    return found


def fit_apart(study: Study, method: str, covariance: str | None) -> Iterator[Fit]:
    """Each log of a study by itself; nothing is decided."""
    options = {"method": method, "covariance": covariance, "decide": NOTHING, "doctor": False}
    identify = study.identify.model_copy(update=options)
    for log in study.log:
        own = [log.model_copy(update={"use": "identify"})]
        yield run_study(study.model_copy(update={"log": own, "identify": identify}))


def measure_differences(
    study: Study, method: str, covariance: str | None
) -> tuple[Array, Booleans]:
    """Differences over their standard errors, and which are those of friction."""
    one, other = fit_apart(study, method, covariance)
    std = [fit.estimate.covariance.std for fit in (one, other)]
    base, idim = one.base, one.base.idim
    rubs = [k >= idim.inertial and idim.parameters[k].symbol != "Ia" for k in base.kept]
    return np.abs(one.estimate.beta - other.estimate.beta) / np.hypot(*std), np.array(rubs)


def main() -> None:
    ways: list[tuple[str, str, str | None]] = [(f"`{bars}`", "wls", bars) for bars in BARS]
    ways += [("`pc-idim-ls`, `hac`", "pc-idim-ls", "hac"), ("`pc-idim-ls`", "pc-idim-ls", None)]
    rows = []
    for name, study in list_pairs().items():
        cells = []
        for _, method, covariance in ways:
            sizes, rubs = measure_differences(study, method, covariance)
            inside = sizes <= 1.96
            shares = (100.0 * float(np.mean(inside[own])) for own in (~rubs, rubs))
            cells.append(f"{' / '.join(f'{s:.0f}' for s in shares)} ({np.median(sizes):.2f})")
        rows.append([name, str(len(sizes)), *cells])
        print(*rows[-1], flush=True)
    lines = [
        "Two logs of one robot, or two parts of a log, fitted apart: per cent of the differences "
        "of base parameters within 1.96 of their standard errors, of bodies and rotors / of "
        "friction, and the median of their sizes, which is 0.67 where error bars hold. Friction of "
        "drives that warm up is not the same in both. `wls` by the covariances of [choosing a "
        "method](../choosing-a-method.md#which-covariance), and the default method by `hac` and by "
        "what it takes of itself.",
        "",
        *markdown(["logs", "parameters", *(label for label, *_ in ways)], rows),
    ]
    (FIGURES / "repeats.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
