"""The survey's tables beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dynident.core.inertia import find_smallest_eigenvalue, to_com
from dynident_papers.picture import Panel
from dynident_papers.published import (
    ZHANG,
    ZHANG_ERRORS,
    ZHANG_LEVELS,
    ZHANG_MODELS,
    ZHANG_NAMES,
    ZHANG_POSITIONS,
    ZHANG_STRIBECK,
    ZHANG_STRIBECK_ERRORS,
    ZHANG_STRIBECK_NAMES,
    ZHANG_STRIBECK_TORQUES,
    ZHANG_TIMES,
    ZHANG_TORQUES,
)
from dynident_papers.report import Table, describe_machine, format_digits
from dynident_papers.zhang2018.estimated import (
    LOOPED,
    MEMORY,
    Errors,
    Results,
    grade_error,
    list_link_parameters,
)
from dynident_papers.zhang2018.instance import METHOD, MODELS, SEARCH, Instance
from dynident_papers.zhang2018.simulated import JOINT, RATE

NAMES = {
    "ols": "pseudo-inverse",
    "kf": "Kalman",
    "rls": "forgetting",
    "gradient": "descent",
    "ga": "genetic algorithm",
    "pf": "particle filter",
    "iv": "of the reference",
    "idim-iv": "IDIM-IV",
}
"""What the survey calls our methods."""
ERRORS_ARE = (
    "J_e = e_d + e_f + e_T + e_T-Std. e_d compares standard parameters, most of which no motion "
    "determines; e_b is ours: the median error of the inertial base parameters, which it does. "
    "Bodies whose mass is zero to rounding have no centre of mass in e_d."
)
RANGED = (
    "Within a fifth of the set values, for (25), without a prior; begun at values that are off by "
    "up to a fifth. ga and pf search base parameters: before they are repaired to links that can "
    "be, their standard set is that of smallest norm."
)
TORQUES_ARE = "Mean and std: of the error of joint 3's torque, without the noise [Nm]."
SHOWN = ("ols", "kf", "rls", "pc-idim-ls", "gradient", "ga", "pf")
"""Columns of Table 5."""


def tabulate_results(found: Results, timed: bool = False) -> tuple[Table, ...]:
    """Those of all results, with computing times where it was timed."""
    instance = (tabulate_friction_models(found.instance),) if found.instance.fitted else ()
    return (
        tabulate_set_values(found),
        tabulate_joint_three(found),
        tabulate_curved_joint(found),
        *tabulate_parameter_errors("Table 8", found.clean, found.noisy, ZHANG_ERRORS, timed),
        *tabulate_parameter_errors(
            "Table 9, Stribeck friction",
            found.clean_stribeck,
            found.noisy_stribeck,
            ZHANG_STRIBECK_ERRORS,
            timed,
        ),
        *tabulate_parameter_errors(
            "Table 8, searches as the survey's",
            found.ranged,
            found.noisy_ranged,
            ZHANG_ERRORS,
            False,
            (RANGED,),
        ),
        tabulate_noisy_positions(found),
        tabulate_tracking(found),
        tabulate_levels(found),
        *instance,
    )


def describe_method(method: str) -> str:
    """Our name, and the survey's where it differs."""
    return f"{method} ({NAMES[method]})" if method in NAMES else method


def list_joint_parameters(found: Results, estimate: Errors) -> list[float]:
    """Joint 3's parameters in the order of Table 5."""
    phi, drives = found.arm.idim.split(estimate.theta)
    places = [found.arm.idim.names.index(f"{s}{JOINT + 1}") for s in ("fc", "fv")]
    friction = [float(drives[place - found.arm.idim.inertial]) for place in places]
    return [*list_link_parameters(phi[JOINT]).tolist(), *friction]


def tabulate_set_values(found: Results) -> Table:
    """Joint 3's body as published, and the nearest that can be."""
    bodies = [found.arm.published.nominal[JOINT], found.arm.robot.nominal[JOINT]]
    rows = [
        (name, *(f"{value:.4f}" for value in values))
        for name, *values in zip(ZHANG_NAMES, *(list_link_parameters(body) for body in bodies))
    ]
    inertia = [np.linalg.eigvalsh(to_com(body)[2])[0] for body in bodies]
    rows.append(("smallest eigenvalue of the inertia", *(f"{v:.4f}" for v in inertia)))
    pseudo = [float(find_smallest_eigenvalue(body)) for body in bodies]
    rows.append(("smallest eigenvalue of the pseudo-inertia", *(f"{v:.4f}" for v in pseudo)))
    note = "The published inertia is indefinite: no body has it. Set values are the nearest."
    header = ("joint 3", "published", "set here")
    return Table("Table 5, set values", header, tuple(rows), (note,))


def tabulate_joint_three(found: Results) -> Table:
    """Table 5: the estimates of joint 3 without noise."""
    methods = [method for method in SHOWN if method in found.clean]
    columns = [list_joint_parameters(found, found.clean[method]) for method in methods]
    rows = [
        (name, format_digits(ZHANG["ols"][k]), *(format_digits(column[k]) for column in columns))
        for k, name in enumerate(ZHANG_NAMES)
    ]
    errors = {m: found.clean[m].joint_torque for m in methods}
    rows += list_torque_rows(ZHANG_TORQUES["ols"], errors)
    header = ("joint 3", "survey's\npseudo-inv.", *methods)
    notes = (
        "Methods of base parameters have the standard set of smallest norm, as the pseudo-inverse "
        f"of rows without rank has. {TORQUES_ARE}",
    )
    return Table("Table 5, estimates without noise", header, tuple(rows), notes)


def list_torque_rows(
    survey: Sequence[float], errors: Mapping[str, tuple[float, float]]
) -> list[tuple[str, ...]]:
    """The last two rows of Tables 5 and 6: mean and standard deviation of the torque error."""
    return [
        (name, format_error(survey[k]), *(format_error(own[k]) for own in errors.values()))
        for k, name in enumerate(("mean", "std"))
    ]


def tabulate_curved_joint(found: Results) -> Table:
    """Table 6: nonlinear friction of joint 3 without noise."""
    place = found.clean_stribeck
    columns = {method: each.friction_values[:, JOINT] for method, each in place.items()}
    rows = [
        (
            name,
            format_digits(ZHANG_STRIBECK["set"][k]),
            format_digits(ZHANG_STRIBECK["ekf"][k]),
            *(format_digits(float(values[k])) for values in columns.values()),
        )
        for k, name in enumerate(ZHANG_STRIBECK_NAMES)
    ]
    errors = {m: each.joint_torque for m, each in place.items()}
    rows += [
        (name, "", *cells)
        for name, *cells in list_torque_rows(ZHANG_STRIBECK_TORQUES["ekf"], errors)
    ]
    header = ("joint 3", "set", "survey's\nekf", *columns)
    note = f"forgetting is (24): ekf with a memory of {MEMORY:g} s. {TORQUES_ARE}"
    return Table("Table 6, Stribeck friction without noise", header, tuple(rows), (note,))


def tabulate_parameter_errors(
    title: str,
    clean: Mapping[str, Errors],
    noisy: Mapping[str, Errors],
    survey: Mapping[str, tuple[float, ...]],
    timed: bool,
    notes: tuple[str, ...] = (ERRORS_ARE,),
) -> list[Table]:
    """Tables 8 and 9: errors without and with noise of the torque."""
    tables: list[Table] = []
    parts = (("a", "without noise", clean), ("b", "with torque noise", noisy))
    for k, (letter, words, found) in enumerate(parts):
        if not found:
            continue
        rows = []
        for method, own in found.items():
            ours = (own.inertial, own.friction, own.torque, own.torque_std, own.overall)
            row = [describe_method(method), *map(format_error, ours), format_error(own.base)]
            published = [format_error(v) for v in survey.get(method, ())]
            theirs = [*published[5 * k : 5 * k + 5], ""]
            if found is noisy:
                row += ["", f"{1e3 * own.seconds:.0f} ms" if timed else ""]
                if method in clean:
                    before = clean[method].overall
                    row[-2] = format_error((own.overall - before) / before)
                theirs += [*published[10:], ZHANG_TIMES.get(method, "")]
            rows.append(tuple(row))
            if published:
                rows.append(("  survey", *theirs))
        header = ["", "e_d", "e_f", "e_T", "e_T-Std", "J_e", "e_b"]
        if found is noisy:
            header += ["ΔJ_e", "time"]
        number, *rest = title.split(", ")
        name = ", ".join([f"{number}{letter}", *rest, f"errors {words}"])
        own_notes = () if tables else notes
        if found is noisy and timed:
            own_notes += (f"Times: ours are the processor's, of one solve; {describe_machine()}.",)
        tables.append(Table(name, tuple(header), tuple(rows), own_notes))
    return tables


def tabulate_noisy_positions(found: Results) -> Table:
    """Table 10: noise of the positions too, filtered or not."""
    rows: list[tuple[str, ...]] = []
    for method in ("ols", "iv", *LOOPED):
        pair = [found.positions.get((method, own)) for own in (True, False)]
        filtered, raw = list_kind(pair, "overall")
        cells = [format_digits(v) for v in (filtered, raw, (raw - filtered) / filtered)]
        cells += [format_digits(v) for kind in ("base", "friction") for v in list_kind(pair, kind)]
        rows.append((describe_method(method), *cells))
        if method in ZHANG_POSITIONS:
            told = [format_digits(v) for v in ZHANG_POSITIONS[method]]
            rows.append(("  survey", *told, *[""] * 4))
    header = ["", "J_e,\nfiltered", "not", "ΔJ_e"]
    header += [cell for kind in ("e_b", "e_f") for cell in (f"{kind},\nfiltered", "not")]
    note = (
        "J_e of standard sets of smallest norm is mostly e_d, which where a mass comes out near "
        "zero says little; e_b and e_f are of parameters that the motion determines."
    )
    return Table("Table 10, noise of positions and torques", tuple(header), tuple(rows), (note,))


def list_kind(errors: Sequence[Errors | None], kind: str) -> list[float]:
    """One kind of error of several estimates; NaN of those that do not exist."""
    return [math.nan if each is None else getattr(each, kind) for each in errors]


def tabulate_tracking(found: Results) -> Table:
    """Figure 4 in numbers."""
    rows = []
    for each in found.tracked:
        last = {m: format_digits(float(values[-1])) for m, values in each.found.items()}
        for method in each.found:
            cells = (
                format_digits(float(each.truth[-1])),
                last[method],
                format_digits(each.error(method)),
            )
            rows.append((f"{each.shape}, {describe_method(method)}", *cells))
    header = ("beta_3 [Nm s/rad]", "true at the end", "found there", "rms, second half")
    return Table("Figure 4, viscous friction that grows by half", header, tuple(rows))


def draw_figures(found: Results) -> tuple[tuple[Panel, ...], ...]:
    """Figure 2, the trajectories; 4, the viscous friction that changes, and what follows it."""
    q = found.reference.q
    return (
        tuple(
            Panel(
                f"Figure 2, joints {k + 1} to {k + 3}",
                "time [s]",
                "position [rad]",
                np.arange(len(q)) / RATE,
                {f"joint {j + 1}": q[:, j] for j in range(k, k + 3)},
            )
            for k in (0, 3)
        ),
        tuple(
            Panel(
                f"Figure 4, {each.shape}",
                "time [s]",
                "beta_3 [Nm s/rad]",
                each.time,
                {"true": each.truth, **{describe_method(m): v for m, v in each.found.items()}},
                # at first little is known of it
                shown=(0.7 * float(each.truth.min()), 1.3 * float(each.truth.max())),
            )
            for each in found.tracked
        ),
    )


def tabulate_levels(found: Results) -> Table:
    """Table 11, by the survey's own limits."""
    rows = []
    for method, before in found.clean.items():
        if method not in found.noisy:
            continue
        change = (found.noisy[method].overall - before.overall) / before.overall
        values = {"e_d": before.inertial, "e_f": before.friction, "e_T": before.torque}
        values |= {"J_e": before.overall, "ΔJ_e": change}
        rows.append(
            (describe_method(method), *(grade_error(kind, value) for kind, value in values.items()))
        )
        if method in ZHANG_LEVELS:
            rows.append(("  survey", *ZHANG_LEVELS[method].split()))
    header = ("", "e_d", "e_f", "e_T", "J_e", "ΔJ_e")
    return Table("Table 11, levels", header, tuple(rows))


def tabulate_friction_models(found: Instance) -> Table:
    """Table 12: what friction models leave of the torques of a measured arm."""
    rows = []
    for friction, equation in MODELS.items():
        own = found.fitted.get((friction, METHOD))
        if own is None:
            continue
        cells = [f"{value:.3g}" for value in ZHANG_MODELS[equation]]
        cells += [f"{own.mean:.2g}" if abs(own.mean) > 1e-6 else "0", f"{own.std:.3f}"]
        cells += [f"{own.relative:.4f}", f"{own.relative_std:.4f}", str(own.parameters)]
        rows.append((f"({equation}) {friction}", *cells))
    header = (
        "errors [Nm]",
        "survey:\nmean",
        "std",
        "TX40:\nmean",
        "std",
        "e_T",
        "e_T-Std",
        "unknowns",
    )
    notes = [
        f"By {METHOD}, of all joints' fitted rows, slow ones included. Offsets leave no mean "
        "error. Another robot, with a tenth of the torques: what compares is the order."
    ]
    notes += [
        f"{describe_method(SEARCH)}, the survey's method, leaves {own.std:.3f} Nm of "
        f"({MODELS[friction]})."
        for (friction, method), own in found.fitted.items()
        if method == SEARCH
    ]
    return Table("Table 12, friction models on a measured log", header, tuple(rows), tuple(notes))


def format_error(value: float) -> str:
    """Three digits; what is rounding is zero."""
    return "0" if abs(value) < 1e-6 else format_digits(value)
