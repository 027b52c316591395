"""What speaks against a result: the figures, limits and findings that the verdict weighs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.core.arrays import Array
from dynident.core.factors import Factors, System
from dynident.diagnosis.examine import Finding
from dynident.diagnosis.scene import TINY, measure_unexplained_effort
from dynident.diagnosis.thresholds import (
    ASTRAY_SHARE,
    LOST_SHARE,
    MUCH_WORSE,
    NO_BETTER,
    SMALL_SHARE,
    SMOOTHED,
    SMOOTHED_SURE,
    STRETCHES,
    UNEVEN_TIME,
    UNLIKE,
)
from dynident.estimators.closed_loop import SimulatedFigure, choose_judged_error
from dynident.estimators.estimate import Estimate
from dynident.estimators.instrumental import LEAST_F
from dynident.fit.facts import LogFacts
from dynident.fit.figures import FitFigure, score_fitted_rows
from dynident.fit.followers import (
    JointFollower,
    fit_followers,
    measure_followers,
    measure_log_motion,
)
from dynident.fit.result import ValidationFigures
from dynident.fit.verdict import (
    ALIKE,
    CHECK_LAW,
    CONTRADICTED,
    DOUBTFUL,
    FAR_MASS,
    FINE,
    GROWN,
    NOTABLE,
    REFUTED,
    Reason,
    list_contradiction_reasons,
    list_error_reasons,
    list_excitation_reasons,
    list_finding_reasons,
    list_held_out_reasons,
    list_instrument_reasons,
    list_negative_drive_reasons,
    list_rough_log_reasons,
    list_standstill_reasons,
)
from dynident.recording.prepare import Samples
from dynident.regression.generalised import has_only_joint_torques
from dynident.regression.problem import NO_TORQUE, Problem
from dynident.regression.rests import find_standstill_speeds, rests_long
from dynident.regression.spectra import measure_smoothing
from dynident.robot.drives import find_moving_joints
from dynident.robot.model import Robot


def list_torque_reasons(
    problem: Problem,
    found: Estimate,
    system: System,
    logs: Sequence[LogFacts],
    findings: Sequence[Finding],
    fitted: Sequence[FitFigure],
    nominal: Sequence[FitFigure],
    held_out: Sequence[ValidationFigures],
    rest: bool = True,
) -> list[Reason]:
    """All that speaks against a result that explains torques.

    Parameters
    ----------
    logs : sequence of LogFacts
        Those that were fitted.
    system : System
        Weighted rows of the base parameters that were estimated.
    fitted, nominal : sequence of FitFigure
        Errors of the model and of the robot file, first of the fitted rows.
    rest : bool
        Whether rows at standstill count; not where the logs decided whether they are fitted, nor
        where the rows are gone.
    """
    every = list_finding_reasons(findings)
    told = {reason.words for reason in every}  # what a log has lost is a finding, too
    every += [reason for log in logs for reason in log.reasons if reason.words not in told]
    count = sum(len(error) for error in found.residuals.error) or problem.factors.rows
    motion = max(log.motion for log in logs)
    kept = list(range(problem.base.count) if found.essential is None else found.essential.kept)
    every += list_excitation_reasons(system.condition()[1], len(kept), count, motion)
    rough = [log.name for log in logs if log.rough]
    held_back = found.restriction
    every += list_rough_log_reasons(
        rough, bool(held_back and held_back.rejected and held_back.by_data)
    )
    beta = np.zeros(problem.base.count)
    beta[kept] = system.solve()
    free = score_fitted_rows(problem.factors, beta)
    if found.instruments is not None and found.instruments.overidentified:
        every += list_instrument_reasons(found.instruments.first_stage_f, LEAST_F)
    error = fitted[0].overall_percent
    rows = "all samples" if problem.robot.floating else "fitted rows"
    every += list_figure_reasons(problem.robot, rows, fitted, nominal)
    every += list_contradiction_reasons(error, free.overall_percent)
    for figures in held_out:
        every += list_figure_reasons(problem.robot, figures.log, figures.entries, figures.nominal)
        every += list_held_out_reasons(figures.log, figures.entries[0].overall_percent, error)
    return [
        *every,
        *list_drive_reasons(problem, found),
        *list_reversed_friction_reasons(problem, found, beta, fitted[0], free),
        *list_body_reasons(problem.robot, found),
        *(list_rest_friction_reasons(problem, found) if rest else ()),
    ]


def expect_percent(factors: Factors, found: Estimate, percent: float) -> float:
    """Error along other motions of the kind that was fitted [%].

    ``sqrt(e^2 + sum tr(X Sigma X^T) / sum y^T y)``: the error e of the fit, which the parameters
    make as small as they can there, and what the covariance says that they err by.
    """
    X = factors.stacked[0][:, :-1]
    spread = float(np.sum((X @ found.covariance.matrix) * X))
    torque = float(np.sum(factors.squared_torques))
    return float(np.hypot(percent, 100.0 * np.sqrt(max(spread, 0.0) / max(torque, TINY))))


def list_smoothing_reasons(problem: Problem, theta: Array) -> list[Reason]:
    """Torques of joints that have too little of what bodies ask for where these move quickly."""
    plain = all(has_only_joint_torques(problem.robot, log) for log in problem.samples)
    if not plain or any(log.rests is not None for log in problem.samples):
        return []
    found = measure_smoothing(problem.idim, theta, problem.samples)
    if found is None or found.share + SMOOTHED_SURE * found.error > SMOOTHED:
        return []
    words = (
        f"torques contain {100.0 * found.share:.0f} ± {100.0 * found.error:.0f} % of the "
        f"rigid-body torque from {found.low:.2g} to {2.0 * found.low:.2g} Hz: they were smoothed"
    )
    advice = "log unfiltered torques, or filter positions in the same way"
    return [Reason(DOUBTFUL, words, advice=advice)]


def list_figure_reasons(
    robot: Robot, rows: str, figures: Sequence[FitFigure], nominal: Sequence[FitFigure]
) -> list[Reason]:
    """Joints that the model explains badly on some rows, or worse than the robot file does."""
    # of a floating robot's joints the fitted rows have what its contacts leave of the torques
    told = int(robot.floating and len(figures) > 1)
    own = figures[told]
    # links' encoders are judged by positions, as evidence of springs
    judged = np.setdiff1d(np.arange(len(own.joints)), [row for row, _ in robot.sprung_rows])
    file = np.array(list_joint_percents(*nominal[told : told + 1]))
    return list_error_reasons(
        rows,
        [own.joints[k].name for k in judged],
        np.array(list_joint_percents(own))[judged],
        file[judged] if len(file) else (),
        measure_residual_shares(robot, own)[judged],
        spared=6 * robot.floating,  # a small rest of the base's wrench is noise of force sensors
    )


def list_rest_friction_reasons(problem: Problem, found: Estimate) -> list[Reason]:
    """Coulomb friction that is fitted to rows at standstill, too."""
    idim, n, rest = problem.idim, problem.robot.n, found.residuals
    rub = [c.turns for c in idim.drive_columns if c.parameter.symbol.startswith("fc")]
    if not rub:
        return []
    speeds = np.max([find_standstill_speeds(log) for log in problem.samples], axis=0)
    drives = problem.robot.drives
    moving = []
    for k, log in enumerate(problem.samples):
        each = zip(rest.sample, rest.log, strict=True)
        asked = np.unique(np.concatenate([own[of == k] for own, of in each]))
        moves = find_moving_joints(log.dq[asked][:, log.joint_rows], tuple(speeds), drives)
        moving.append((asked, moves))
    shares, times = np.zeros(n), np.full(n, np.nan)
    for j in np.flatnonzero(np.any(rub, axis=0)):
        g = problem.robot.dof - n + j
        still = np.zeros(len(rest.error[g]), dtype=bool)
        for k, (asked, moves) in enumerate(moving):
            here = rest.log[g] == k
            still[here] = ~moves[np.searchsorted(asked, rest.sample[g][here]), j]
        if 0 < np.sum(still) < len(still):
            squares = rest.error[g] ** 2
            shares[j] = np.mean(still)
            times[j] = np.sqrt(np.mean(squares[still]) / np.mean(squares[~still]))
    return list_standstill_reasons(problem.robot.joint_names, shares, times, speeds)


def list_body_reasons(robot: Robot, found: Estimate) -> list[Reason]:
    """Links whose mass the log puts far from that of the robot file."""
    far = [own for own in found.disbelieved if max(own.mass, 1.0 / own.mass) >= FAR_MASS]
    told = [
        f"{robot.links[own.body]} has {own.mass * robot.nominal[own.body, 0]:.3g} kg, in the file "
        f"{robot.nominal[own.body, 0]:.3g} kg"
        for own in far
    ]
    advice = "check the file's masses, and that it is this robot's"
    return [Reason(DOUBTFUL, ", ".join(told), advice=advice)] if told else []


def list_drive_reasons(problem: Problem, found: Estimate) -> list[Reason]:
    """Rotors and friction that no drive can have."""
    base, idim = problem.base, problem.idim
    own = [
        k
        for k, place in enumerate(base.kept)
        if idim.positive[place] and place >= idim.inertial and not np.any(base.K[k])
    ]
    names = [base.names[k] for k in own]
    return list_negative_drive_reasons(names, found.beta[own], found.covariance.std[own])


def list_reversed_friction_reasons(
    problem: Problem, found: Estimate, beta: Array, own: FitFigure, free: FitFigure
) -> list[Reason]:
    """Joints that Coulomb friction drives in the free minimum `beta`, as constraints forbid."""
    base, robot, idim, words = problem.base, problem.robot, problem.idim, list[str]()
    if found.restriction is None or not found.restriction.rejected:
        return []
    for value, place, K in zip(beta, base.kept, base.K, strict=True):
        coulomb = idim.parameters[place].symbol.startswith("fc") and idim.positive[place]
        if not coulomb or np.any(K):
            continue
        column = idim.drive_columns[place - idim.inertial]
        for j in np.flatnonzero(column.turns):
            error, then = (each.joints[robot.dof - robot.n + j] for each in (own, free))
            small, large = then.relative_percent, error.relative_percent
            torque = 100.0 * error.rmse / max(large, TINY)
            if -value > NOTABLE * torque and large > max(FINE, CONTRADICTED * small):
                words.append(f"{value:.2g} on {error.name} ({small:.0f} instead of {large:.0f} %)")
    if not words:
        return []
    told = (
        f"without constraints Coulomb friction would be {', '.join(words)}: "
        "compensation of friction is missing in the torques, or counted twice"
    )
    advice = "log the motors' whole torques, with what the controller adds against friction"
    return [Reason(DOUBTFUL, told, advice=advice)]


def list_position_reasons(
    problem: Problem,
    found: Estimate,
    findings: Sequence[Finding],
    fitted: Sequence[SimulatedFigure],
    held_out: Sequence[ValidationFigures],
    others: Sequence[Samples] = (),
) -> list[Reason]:
    """What speaks against drives that were fitted to positions.

    `fitted`, `held_out`: errors of free simulations of the problem's logs, and of `others`.
    """
    every = [Reason(REFUTED, f"{each.log}: {each.found}", advice=each.remedy) for each in findings]
    if found.fitted is not None:
        own_logs = zip(problem.samples, found.fitted.hindered, strict=False)
        gone = {
            f"{each.words}, left out": (each.stop - each.start) / len(log.measured)
            for log, stretches in own_logs
            for each in stretches
        }
        every += [Reason(DOUBTFUL, words, gone.get(words, 0.0)) for words in found.fitted.doubts]
    # a joint that friction holds for long is off by what it is, whatever its motion
    names, logs = problem.robot.joint_names, problem.samples
    moving = [log for log in logs if not rests_long(log)]
    lags = fit_followers(moving) if moving and all(log.qref is not None for log in moving) else ()
    own = [choose_judged_error(each.free).rms for each in fitted]
    known = np.sqrt(np.mean(np.square(own), axis=0))
    for log, rms in zip(logs, own, strict=True):
        every += () if rests_long(log) else list_astray_reasons(log, names, rms, lags)
    every += list_stretch_reasons(logs, names, found)
    overall = float(np.sqrt(np.mean(known**2)))
    for other, figures in zip(others, held_out, strict=True):
        rms = choose_judged_error(figures.free).rms
        every += () if rests_long(other) else list_astray_reasons(other, names, rms, lags)
        error = float(np.sqrt(np.mean(rms**2)))
        if error > GROWN * overall:
            words = f"{1e3 * error:.2g} mrad on held-out {figures.log}, {1e3 * overall:.2g} fitted"
            size = error / float(np.sqrt(np.mean(measure_log_motion(other) ** 2)))
            every.append(Reason(DOUBTFUL, words, size, ALIKE))
        every += () if rests_long(other) else list_grown_reasons(other, names, rms, known)
    if found.limits:  # which say what a log does not tell, and change no motion
        advice = "excite those joints differently, or state known values"
        every.append(Reason(DOUBTFUL, f"limited by {', '.join(found.limits)}", advice=advice))
    return every


def list_astray_reasons(
    log: Samples, names: Sequence[str], rms: Array, lags: Sequence[JointFollower]
) -> list[Reason]:
    """Joints whose simulated positions err by much of their motion, or more than without a robot.

    `rms`, shape (n,): errors of the free simulation [rad or m]. `lags`: of the fitted logs; empty
    where these have no targets.
    """
    size = measure_log_motion(log)
    share, times = rms / size, np.zeros(len(rms))
    if lags and log.qref is not None:
        plain = measure_followers(lags, log)
        times = np.where(share > SMALL_SHARE, rms / np.maximum(plain, TINY), 0.0)
    astray = share > ASTRAY_SHARE
    found = []
    for joints, bad, most, told in (
        (astray, share, LOST_SHARE, "{share:.0f} % of its motion"),
        (~astray & (times > NO_BETTER), times, MUCH_WORSE,
         "{times:.3g} times the error of a second-order lag behind its target"),
    ):  # fmt: skip
        if not np.any(joints):
            continue
        first, *others = sorted(np.flatnonzero(joints).tolist(), key=lambda j: -float(bad[j]))
        words = f"{names[first]}: simulated {1e3 * rms[first]:.3g} mrad off on {log.name}, " + (
            told.format(share=100.0 * share[first], times=times[first])
        )
        like = f" (likewise {', '.join(names[j] for j in others)})" if others else ""
        state = REFUTED if bad[first] > most else DOUBTFUL
        found.append(Reason(state, words + like, float(share[first]), CHECK_LAW))
    return found


def list_stretch_reasons(
    logs: Sequence[Samples], names: Sequence[str], found: Estimate
) -> list[Reason]:
    """Joints whose errors are much larger in one stretch of a log than in the others."""
    reasons, rest = [], found.residuals
    for k, log in enumerate(logs):
        size = measure_log_motion(log)
        if rests_long(log):
            continue
        for j, (name, moved) in enumerate(zip(names, size, strict=True)):
            here = rest.log[j] == k
            error, sample = rest.error[j][here], rest.sample[j][here]
            if len(error) < STRETCHES:
                continue
            parts = np.array_split(error, STRETCHES)
            rms = np.array([np.sqrt(np.mean(part**2)) for part in parts])
            worst, usual = int(np.argmax(rms)), float(np.median(rms))
            if rms[worst] <= max(UNEVEN_TIME * usual, SMALL_SHARE * moved):
                continue
            at = np.array_split(sample, STRETCHES)[worst] / log.rate
            reasons.append(
                Reason(
                    DOUBTFUL,
                    f"{name}: simulated {1e3 * rms[worst]:.3g} mrad off from {at[0]:.3g} to "
                    f"{at[-1]:.3g} s of {log.name}, {1e3 * usual:.3g} in other stretches: was it "
                    "pushed, or its encoder stuck?",
                    float(rms[worst] / moved),
                )
            )
    return reasons


def list_grown_reasons(
    log: Samples, names: Sequence[str], rms: Array, known: Array
) -> list[Reason]:
    """Joints whose held-out errors are much larger than those fitted; both of shape (n,)."""
    size = measure_log_motion(log)
    grown = (rms > UNLIKE * known) & (rms > SMALL_SHARE * size)
    return [
        Reason(
            DOUBTFUL,
            f"{names[j]}: simulated {1e3 * rms[j]:.3g} mrad off on held-out {log.name}, "
            f"{1e3 * known[j]:.3g} on the fitted",
            float(rms[j] / size[j]),
            ALIKE,
        )
        for j in np.flatnonzero(grown).tolist()
    ]


def list_joint_percents(*figures: FitFigure) -> list[float]:
    """Errors of the joints of a figure, or none."""
    return [joint.relative_percent for figure in figures for joint in figure.joints]


def measure_residual_shares(robot: Robot, figure: FitFigure) -> Array:
    """What is left of each group's torques, as shares of what it can be.

    Of joints that is their drives' effort limit; of a base's wrench the robot's weight, on a
    limb's lever. Of combinations that are free of contacts, the last, nobody knows a limit.
    """
    rest = np.nan_to_num(np.array([joint.rmse for joint in figure.joints]))
    errors = np.nan_to_num(np.array(list_joint_percents(figure))) / 100.0
    size = np.divide(rest, errors, out=np.zeros_like(rest), where=errors > 0.0)
    shares = np.full(len(rest), np.inf)
    if robot.floating:
        weight = max(float(np.max(size[:3])), NO_TORQUE)
        shares[:3] = rest[:3] / weight
        shares[3:6] = rest[3:6] / max(float(np.max(size[3:6])), weight * robot.reach)
    joints = slice(robot.dof - robot.n, robot.dof)
    shares[joints] = measure_unexplained_effort(robot, size[joints], errors[joints])
    return shares
