"""Closed chains: logs that MuJoCo makes, equations that Pinocchio has, intervals that cover.

A five-bar and an arm with a parallelogram follow motions in MuJoCo, whose solver holds their loops
(`equality`), with friction and rotors. The logs have driven joints alone. Printed are the largest
difference from Pinocchio's constrained dynamics, how often intervals of base parameters cover what
the logs were made with, and errors on a motion that was held out beside the noise that is in it.
Writes `docs/figures/loops.md`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from common import FIGURES, markdown

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from linkage_logs import (
    build_loop,
    build_pinocchio,
    make_twin,
    plan_motion,
    roll_out_in_python,
    state_truth,
)
from linkages import LINKAGES, load_linkage

import dynident as di
from dynident.dynamics.whole import WholeModel
from dynident.robot.closure import Closure
from dynident.robot.model import Robot

NOISE = 0.05
NOISES, MOTIONS = 40, (1, 2, 3)
HEAD = """# Closed chains

`benchmarks/closed_chains.py`: logs of 6 s at 200 Hz that MuJoCo made, torque noise of {noise} Nm,
bandwidth 8 Hz, `viscous` friction in all joints, rotors in driven ones.

Equations of motion beside Pinocchio's `constraintDynamics` at 100 closed states, and processor time
a state: inverse dynamics of ours along a motion, one call of Pinocchio's forward dynamics. The
machine was busy.

"""
MOVED = """
Rollouts of 0.3 s at 200 Hz in two steps of `ode4` a sample, friction in all joints:
processor time a second of motion, and that of the same steps in plain Python over arrays
(`tests/linkage_logs.py`), with the largest difference of positions.

"""
COVERED = """
95 % intervals of `wls` in {noises} noises on each of {motions} motions. z is the error over its
standard deviation; a bias is that of a log without noise.

"""
HELD_OUT = """
`pc-idim-ls` fitted to one motion, on another that was held out: rms below the low-pass of 16 Hz,
and of the noise that is in it [Nm]. The nominal model is the robot file's inertials.

"""


def compare_dynamics(robot: Robot) -> list[str]:
    """Accelerations and time beside Pinocchio's."""
    idim, closure, rng = di.build_idim(robot, "none"), Closure(robot), np.random.default_rng(0)
    q = closure.draw(300, rng)[:100]
    dq, ddq = closure.move(q, rng.normal(size=q.shape), rng.normal(scale=3.0, size=q.shape))
    model = WholeModel(idim, idim.nominal)
    tau = model.inverse_dynamics(q, dq, ddq)
    tree, loops, found = build_pinocchio(robot)
    data, exact = tree.createData(), pin.ProximalSettings(1e-14, 1e-10, 300)
    pin.initConstraintDynamics(tree, data, loops, found)
    states = list(zip(q, dq, tau, strict=True))
    begin = time.process_time()
    given = [
        pin.constraintDynamics(tree, data, *each, loops, found, exact).copy() for each in states
    ]
    theirs = time.process_time() - begin
    _, motion = plan_motion(robot, 10.0, 200.0, 1)
    begin = time.process_time()
    model.inverse_dynamics(*motion)
    ours = time.process_time() - begin
    return [
        robot.name,
        f"{int(np.sum(~robot.passive))} of {robot.n}",
        str(di.base_parameters(idim).count),
        f"{np.abs(np.array(given) - ddq).max():.1e}",
        f"{1e6 * ours / len(motion[0]):.0f}",
        f"{1e6 * theirs / len(q):.0f}",
    ]


def measure_rollout(name: str, folder: Path) -> list[str]:
    """Processor time of a rollout, compiled and in plain Python."""
    loop, theta = build_loop(name, folder)
    di.rollout(loop, theta)
    begun = time.process_time()
    for _ in range(5):
        motion = di.rollout(loop, theta)
    ours = (time.process_time() - begun) / 5.0
    begun = time.process_time()
    found = roll_out_in_python(loop, theta)
    theirs = time.process_time() - begun
    seconds = len(motion.q) / loop.rate
    return [
        name.partition(".")[0], f"{1e3 * ours / seconds:.1f}", f"{1e3 * theirs / seconds:.0f}",
        f"{theirs / ours:.0f}", f"{np.abs(motion.q - found[0]).max():.1e}",
    ]  # fmt: skip


def measure_coverage(robot: Robot) -> list[str]:
    """How often intervals cover the truth."""
    z, bias = [], []
    for motion in MOTIONS:
        log, values = make_twin(robot, motion, 0.0)
        for seed in range(NOISES + 1):
            noise = NOISE * np.random.default_rng(seed).normal(size=log.tau.shape) * (seed > 0)
            own = replace(log, tau=log.tau + noise * ~robot.passive)
            problem = di.Problem(robot, di.prepare(own, bandwidth=8.0), "viscous")
            fit = di.identify(problem, "wls", doctor=False)
            error = fit.estimate.beta - problem.base.matrix @ state_truth(problem.idim, values)
            if seed:
                z.append(error / fit.estimate.covariance.std)
            else:
                bias.append(error)
        bias[-1] = bias[-1] / fit.estimate.covariance.std
    found = np.array(z)
    return [
        robot.name,
        str(found.shape[1]),
        str(found.size),
        f"{100.0 * np.mean(np.abs(found) < 1.96):.1f} %",
        f"{np.sqrt(np.mean(found**2)):.2f}",
        f"{np.abs(bias).max():.2f}",
    ]


def measure_held_out(robot: Robot) -> list[list[str]]:
    """Errors on another motion, joint by joint."""
    (log, _), (other, _) = (make_twin(robot, motion, NOISE) for motion in MOTIONS[:2])
    clean, _ = make_twin(robot, MOTIONS[1], 0.0)
    samples, held_out = (di.prepare(each, bandwidth=8.0) for each in (log, other))
    fit = di.identify(di.Problem(robot, samples, "viscous"), validation=[held_out])
    noise = filter_torque(other.tau - clean.tau, fit.lowpass_hz, other.rate)
    (figure,) = fit.validation
    pairs = zip(figure.entries[0].joints, figure.nominal[0].joints, strict=True)
    return [
        [robot.name, own.name, f"{noise[k]:.4f}", f"{own.rmse:.4f}", f"{nominal.rmse:.4f}"]
        for k, (own, nominal) in enumerate(pairs)
        if not robot.passive[k]
    ]


def filter_torque(x: np.ndarray, cutoff: float, rate: float) -> np.ndarray:
    """Rms below a low-pass, of the middle of a signal."""
    from dynident.filters.filters import filter_zero_phase

    edge = round(0.1 * rate)
    return np.asarray(np.sqrt(np.mean(filter_zero_phase(x, cutoff, rate)[edge:-edge] ** 2, axis=0)))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        robots = [load_linkage(name, Path(folder)) for name in LINKAGES]
        made = robots[:2]  # of MJCFs
        same = [compare_dynamics(robot) for robot in robots]
        moved = [measure_rollout(name, Path(folder)) for name in LINKAGES]
        covered = [measure_coverage(robot) for robot in made]
        held = [row for robot in made for row in measure_held_out(robot)]
    columns = ["robot", "driven joints", "base parameters of bodies"]
    columns += ["largest difference [rad/s^2]", "ours [us]", "Pinocchio [us]"]
    text = HEAD.format(noise=NOISE) + "\n".join(markdown(columns, same)) + "\n"
    columns = ["robot", "ours [ms/s]", "plain Python [ms/s]", "ratio", "difference [rad]"]
    text += MOVED + "\n".join(markdown(columns, moved)) + "\n"
    text += COVERED.format(noises=NOISES, motions=len(MOTIONS))
    columns = ["robot", "base parameters", "intervals", "cover", "rms of z", "largest bias [std]"]
    text += "\n".join(markdown(columns, covered)) + "\n" + HELD_OUT
    columns = ["robot", "joint", "noise", "held out", "nominal"]
    text += "\n".join(markdown(columns, held)) + "\n"
    (FIGURES / "loops.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
