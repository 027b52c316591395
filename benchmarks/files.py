"""What a model file holds of identified friction: errors on measured held-out logs.

Run from the top of the project: python benchmarks/files.py

Files have viscous and Coulomb friction, armature and (some) offsets. Beside the complete model as
it is decided stand these, with what `fit.simulable` gives them, and without any stand-in for the
friction that has no place there. Writes docs/figures/files.md.
"""

from __future__ import annotations

import numpy as np
from common import FIGURES, markdown
from decide import list_studies, with_given
from scipy.signal import butter, filtfilt

from dynident.core.arrays import Array
from dynident.dynamics.whole import WholeModel
from dynident.export.stand_in import follow_log
from dynident.export.terms import sort_joint_terms
from dynident.friction.names import split_friction_names
from dynident.regression.generalised import GeneralisedSamples, generalise_samples
from dynident.report.fit import Fit
from dynident.study.run import run_study
from dynident.study.study import Study, read_study_samples


def list_models(fit: Fit) -> list[WholeModel]:
    """The complete model, the content of a file, and the same without a stand-in."""
    bare = fit.model.theta.copy()
    bare[[fit.model.idim.names.index(name) for name in sort_joint_terms(fit.model).left]] = 0.0
    return [fit.model, fit.simulable[0], WholeModel(fit.model.idim, bare)]


def measure_error(model: WholeModel, log: GeneralisedSamples, hz: float) -> float:
    """Share of the low-passed torques of a log that a model does not explain [%]."""
    b, a = butter(4, hz, fs=log.rate)

    def smooth(values: Array) -> Array:
        return np.asarray(filtfilt(b, a, values, axis=0))

    stretches = follow_log(model, log, most=len(log.q))
    idim, theta = model.idim, model.theta
    predicted = np.vstack(
        [idim.torque(theta, q, dq, ddq, conditions=met) for q, dq, ddq, met in stretches]
    )
    measured = np.vstack([log.tau[start:stop] for start, stop in log.segments])
    left = smooth(measured - predicted)
    return float(100.0 * np.linalg.norm(left) / np.linalg.norm(smooth(measured)))


def row(name: str, study: Study, hz: float) -> list[str]:
    """One log."""
    fit = run_study(with_given(study, hz))
    (held,) = (
        generalise_samples(fit.idim, read_study_samples(log, fit.robot, study.prepare))
        for log in study.log
        if log.use == "validate"
    )
    models = list_models(fit)
    same = models[0] is models[1]
    errors = [f"{measure_error(model, held, hz):.2f}" for model in models]
    laws = "; ".join(dict.fromkeys(split_friction_names(fit.idim.friction)))
    return [name, laws, *(errors if not same else [errors[0], errors[0], "–"])]


def main() -> None:
    """Measure and write the page."""
    header = ["log", "friction as decided", "complete model %", "in a file %", "no stand-in %"]
    rows = [row(name, study, hz) for name, (study, hz) in list_studies().items()]
    text = "\n".join(["Made by `python benchmarks/files.py`.", "", *markdown(header, rows), ""])
    (FIGURES / "files.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
