"""Force/torque sensors in the chain of a UR5: what their wrench adds to the joints' torques.

Spreads of base parameters by torques and wrench over those by torques alone, and how often 95 %
intervals hold the truth. Writes docs/figures/limbs.md.

Run from the top of the project: python benchmarks/limbs.py [RUNS]
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

from dataclasses import replace

import numpy as np
from common import FIGURES, ROOT, markdown

sys.path.insert(0, str(ROOT / "tests"))

from robots import urdf
from toy import motion

import dynident as di
from dynident.core.inertia import from_com
from dynident.dynamics.idim import build_idim
from dynident.recording.recording import Recording
from dynident.robot.model import Robot
from dynident.robot.sensing import add_sensors

RATE, SECONDS, FRICTION = 200.0, 20.0, "coulomb-viscous"
BIAS = np.array([3.0, -2.0, 4.0, 0.1, -0.2, 0.3])
NOISE = np.array([0.5, 0.5, 0.5, 0.02, 0.02, 0.02])
"""Of the sensor [N, Nm]; that of each joint is 2 % of its torque's root mean square."""
DRIVE = {"Ia": 0.05, "fv": 1.0, "fc": 1.5, "off": 0.2}
TOOL = from_com(1.2, [0.02, 0.01, 0.08], np.diag([0.004, 0.004, 0.002]))


def made(robot: Robot, seed: int) -> tuple[Recording, np.ndarray]:
    """A log, and the parameters behind it."""
    idim = build_idim(robot, FRICTION)
    bodies = robot.nominal.copy()
    if robot.parts:  # the file's flange holds nothing yet
        rest = idim.structure.rests[0]
        bodies[rest.part] = TOOL
        bodies[rest.body] += rest.placed @ TOOL
    theta = idim.join(bodies, np.array([DRIVE[p.symbol] for p in idim.drives]))
    q, dq, ddq = motion(robot.n, SECONDS, seed, RATE)
    y = idim.torque(theta, q, dq, ddq)
    sigma = 0.02 * np.sqrt(np.mean(y[:, : robot.n] ** 2, axis=0))
    tau = y[:, : robot.n] + sigma * np.random.default_rng(seed).normal(size=(len(q), robot.n))
    wrench = y[:, robot.n :] + BIAS
    wrench += NOISE * np.random.default_rng([seed, 1]).normal(size=wrench.shape)
    name = robot.limbs[0].contacts[0].name
    log = Recording(
        "twin", RATE, q, tau, dq, ddq, joints=robot.joint_names, wrenches={name: wrench}
    )
    return log, np.concatenate([theta, BIAS])


def measured(frame: str, runs: int) -> list[str]:
    """One row of the table."""
    robot = di.load_robot(urdf("ur5"))
    whole = add_sensors(robot, (), None, (frame,))
    inside, ratios = [], []
    for seed in range(runs):
        log, theta = made(whole, seed)
        assert log.dq is not None
        assert log.ddq is not None
        samples = di.prepare(log, 20.0, position_hz=1e4)
        samples = replace(samples, q=log.q, dq=log.dq, ddq=log.ddq)
        fit = di.identify(di.Problem(whole, samples, FRICTION), "wls", doctor=False)
        off = np.abs(fit.estimate.beta - fit.base.matrix @ theta)
        inside.append(off < 1.96 * fit.estimate.covariance.std)
        alone = di.identify(di.Problem(robot, samples, FRICTION), "wls", doctor=False)
        place = [fit.idim.names.index(name) for name in alone.idim.names]
        rows = np.zeros((alone.base.count, len(fit.idim.names)))
        rows[:, place] = alone.base.matrix
        T = rows @ np.linalg.pinv(fit.base.matrix)
        std = np.sqrt(np.diag(T @ fit.estimate.covariance.matrix @ T.T))
        ratios.append(std / alone.estimate.covariance.std)
    common = np.median(ratios, axis=0)
    return [
        frame, str(fit.base.count), str(alone.base.count), f"{np.median(common):.2f}",
        f"{np.min(common):.3f}", f"{np.max(common):.2f}", f"{np.sum(common < 0.5)}",
        f"{100.0 * np.mean(inside):.1f}", str(runs),
    ]  # fmt: skip


def main() -> None:
    """Measure and write the page."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    header = [
        "sensor holds", "base parameters", "by torques alone", "spread of these, median",
        "least", "largest", "less than half", "inside of 95 % [%]", "runs",
    ]  # fmt: skip
    frames = ("upper_arm_link", "forearm_link", "wrist_2_link", "wrist_3_link", "tool0")
    lines = ["# Sensors in the chain of a UR5", "", "Made by `benchmarks/limbs.py`.", ""]
    lines += markdown(header, [measured(frame, runs) for frame in frames])
    lines += [
        "",
        "Simulated from the inertials of example-robot-data with drives of round numbers: 20 s at "
        "200 Hz, torque noise of 2 % of each joint's root mean square, 0.5 N and 0.02 Nm of noise "
        "at the sensor, whose bias is estimated; positions exact, `wls`. Spread: standard "
        "deviation by torques and wrench over that by torques alone, of the combinations that the "
        "torques determine, median over the runs. A sensor at `tool0` holds a tool of 1.2 kg, a "
        "part of the last link: "
        "joints feel the sum alone.",
    ]
    text = "\n".join(lines) + "\n"
    (FIGURES / "limbs.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
