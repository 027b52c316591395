"""Errors and parameters on measured logs, beside published figures.

Run from the top of the project: python benchmarks/truth.py
"""

from __future__ import annotations

import sys

import numpy as np
from common import EMPS, FIGURES, TX40, markdown
from logs import HALVES, LWR4, LWR4_MISSING, lwr4_logs

import dynident as di
from dynident.report.fit import Fit
from dynident.study.study import LogSection
from dynident_papers import published

SLOW = (0.050, 0.050, 0.075, 0.072, 0.056, 0.122)


def tx40(prepare: dict, logs: tuple[LogSection, ...] | None = None, **identify: object) -> Fit:
    study = di.read_study(TX40 / "study.toml")
    return di.run_study(
        study.model_copy(
            update={
                "prepare": study.prepare.model_copy(update={"bandwidth": 10.0, **prepare}),
                "identify": study.identify.model_copy(update=identify),
                "log": logs or study.log,
            }
        )
    )


def table(header: list[str], rows: list[list[str]]) -> str:
    return "\n".join(markdown(header, rows)) + "\n"


def overall(figures: tuple, rows: str) -> float:
    return next(f.overall_percent for f in figures if f.rows == rows)


def tx40_errors() -> str:
    rows = []
    for label, drop in (("slow rows dropped", SLOW), ("all rows", 0.0)):
        for method, prior in (
            ("ols", None),
            ("wls", None),
            ("irls", None),
            ("pc-idim-ls", "none"),
            ("pc-idim-ls", "nominal"),
        ):
            fit = tx40({"drop_below": drop}, method=method, prior=prior)
            beta = dict(zip(fit.base.names, fit.estimate.beta, strict=True))
            rows.append(
                [
                    label,
                    method + (f", prior {prior}" if prior else ""),
                    f"{overall(fit.identification, 'fitted'):.2f}",
                    f"{overall(fit.identification, 'all samples'):.2f}",
                    f"{beta['fc1']:.2f}",
                    "yes" if fit.consistent else "no",
                ]
            )
    header = ["rows", "method", "fitted [%]", "all samples [%]", "fc1 [Nm]", "consistent"]
    return table(header, rows)


def tx40_parameters() -> str:
    fit = tx40({"drop_below": SLOW}, method="wls")
    names = [name.removesuffix("R") for name in fit.base.names]
    listed = published.build_published_sums(names) @ fit.estimate.beta
    ours = dict(zip(names, listed, strict=True))
    std = dict(zip(names, fit.estimate.covariance.std, strict=True))
    table_of_the_log = published.read_tx40_table(TX40 / "TX40_bp_5.csv")
    rows = [
        [name, f"{ours[name]:.4g}", f"{std[name]:.2g}", f"{wls.value:.7g}", f"{wls.std:.2g}"]
        for name, (_, wls) in table_of_the_log.items()
        if wls.percent < 10.0
    ]
    return table(["parameter", "WLS", "std", "published", "its std"], rows)


def tx40_split() -> str:
    study = di.read_study(TX40 / "study.toml")
    (log,) = study.log
    logs = (
        log.model_copy(update={"rows": HALVES[0]}),
        log.model_copy(update={"rows": HALVES[1], "use": "validate"}),
    )
    rows = []
    for bandwidth in (5.0, 10.0, 20.0, 50.0):
        for method, prior in (("wls", None), ("pc-idim-ls", "nominal")):
            row = [f"{bandwidth:g}", method]
            for lowpass in (25.0, 100.0):
                fit = tx40(
                    {"bandwidth": bandwidth, "drop_below": 0.0},
                    logs,
                    method=method,
                    prior=prior,
                    lowpass_hz=lowpass,
                )
                row.append(f"{overall(fit.validation[0].entries, 'all samples'):.1f}")
            rows.append(row)
    rows.append(["25 Hz position filter", "figaroh 1.0.2, its best", "14.2", "21.0"])
    return table(["bandwidth [Hz]", "method", "below 25 Hz [%]", "below 100 Hz [%]"], rows)


def tx40_essential() -> str:
    rows = []
    for rule in ("ratio", "torque-range", "f-test"):
        fit = tx40({"drop_below": SLOW}, method="wls", essential=rule)
        test = fit.settings["essential_f_test"]
        rows.append(
            [
                rule,
                f"{len(fit.essential or ())} of {fit.base.count}",
                f"{overall(fit.identification, 'fitted'):.2f}",
                f"{test['statistic']:.2f} ({test['distribution']}), p = {test['p_value']:.2g}",
            ]
        )
    return table(["rule", "kept", "fitted [%]", "F-test against the full model"], rows)


def emps() -> str:
    robot = di.load_robot(EMPS / "emps.toml")
    columns = {"time": "t", "q": ["qm"], "current": ["vir"]}
    log = di.read_log(EMPS / "DATA_EMPS.mat", robot, columns=columns)
    rows = []
    for method in ("ols", "pc-idim-ls"):
        fit = di.identify(di.Problem(robot, di.prepare(log, bandwidth=20.0)), method)
        values = fit.estimate.beta
        std = fit.estimate.covariance.std
        cells = [f"{v:.4g} ± {1.96 * s:.2g}" for v, s in zip(values, std, strict=True)]
        rows.append([method, *cells, f"{overall(fit.identification, 'fitted'):.2f}"])
    rows.append(["published", *(f"{value:.4f}" for value in published.EMPS.values()), ""])
    return table(["method", "M (m1 + Ia1)", *fit.base.names[1:], "fitted [%]"], rows)


def lwr4() -> str:
    robot, samples = lwr4_logs()
    trials = (((1,), 3), ((1, 2), 3), ((2, 3), 1), ((1,), 2))
    cases: tuple[tuple[str, str, dict, bool], ...] = (
        ("ols, all base parameters", "ols", {}, True),
        ("ols, essential (ratio)", "ols", {"essential": "ratio"}, True),
        ("wls", "wls", {}, True),
        ("constraints alone", "pc-idim-ls", {"prior": "none"}, True),
        ("constraints alone, no Ia", "pc-idim-ls", {"prior": "none"}, False),
        ("**constraints and prior (the default)**", "pc-idim-ls", {}, True),
        ("constraints and prior, no Ia", "pc-idim-ls", {}, False),
    )
    rows: list[list[str]] = []
    nominal: list[str] = []
    for label, method, options, rotor in cases:
        row = [label]
        for train, test in trials:
            problem = di.Problem(robot, [samples[k] for k in train], rotor=rotor)
            fit = di.identify(
                problem, method, lowpass_hz=6.0, validation=[samples[test]], **options
            )
            row.append(f"{overall(fit.validation[0].entries, 'all samples'):.2f}")
            if len(nominal) < len(trials):
                nominal.append(f"{overall(fit.validation[0].nominal, 'all samples'):.2f}")
        rows.append(row)
    rows.insert(0, ["the robot file (URDF)", *nominal])
    rows += [
        ["FloBaRoID, SDP", "7.73", "6.02", "2.86", "2.80"],
        ["least squares in another program", "13.6", "12.3", "2.78", "2.72"],
        ["LMI fit in another program", "6.08", "5.30", "2.99", "2.74"],
        ["the same with a weak URDF prior", "5.64", "4.99", "", ""],
    ]
    return table(["method", "1 to 3 [%]", "1 + 2 to 3 [%]", "2 + 3 to 1 [%]", "1 to 2 [%]"], rows)


def main() -> None:
    parts = [
        "### TX40: fitted log\n\nRelative torque error, bandwidth 10 Hz; all samples below "
        "20 Hz.\n",
        tx40_errors(),
        "\n### TX40: parameters\n\nWeighted least squares, slow rows dropped, beside the published "
        "values of this log whose relative standard deviation is below 10 %. Sums over the coupled "
        "wrist as published.\n",
        tx40_parameters(),
        "\n### TX40: essential parameters\n\n",
        tx40_essential(),
        "\n### TX40: first half to fit, second half held out\n\nRows "
        f"{' and '.join(f'{start}-{stop}' for start, stop in HALVES)}, all samples. What the "
        "position filter (5 times the bandwidth) lets through decides the error at 100 Hz.\n",
        tx40_split(),
        "\n### EMPS\n\n",
        emps(),
    ]
    if LWR4.is_dir():
        parts += [
            "\n### LWR4+: held-out logs\n\nRelative error of all samples below 6 Hz, default "
            "settings; trained on the logs before *to*, tested on the one after.\n",
            lwr4(),
        ]
    else:
        parts.append(f"\n{LWR4_MISSING}\n")
    text = "\n".join(parts)
    (FIGURES / "truth.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    np.set_printoptions(precision=4)
    main()
