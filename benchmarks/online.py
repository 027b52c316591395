"""Online estimation: time of an update, replay, loads, agreement with the batch.

Run from the top of the project: python benchmarks/online.py
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from common import EMPS, FIGURES, ROOT, TX40, markdown

RATE = 1000.0
Array = np.ndarray[Any, np.dtype[np.float64]]
Motion = tuple[Array, Array, Array]
LWR4 = ROOT.parent / "shared" / "data" / "lwr4" / "kuka_lwr4.urdf"


def arm() -> tuple[str, Any, Array, Array, Callable[..., Motion]]:
    """A base of 69 parameters, sigma, true parameters: the LWR4+, or a chain of seven joints."""
    import sys

    sys.path.insert(0, str(ROOT / "tests"))
    import toy

    from dynident.dynamics.base import base_parameters
    from dynident.dynamics.idim import build_idim
    from dynident.robot import load_robot

    robot = load_robot(LWR4) if LWR4.is_file() else toy.arm(7)
    base = base_parameters(build_idim(robot))
    theta = toy.true_parameters(base.idim, robot.nominal)
    sigma = np.array([2.0, 2.0, 1.0, 1.0, 0.3, 0.3, 0.2])
    return robot.name, base, sigma, theta, toy.motion


def torques(base: Any, theta: Array, sigma: Array, motion: Motion, seed: int = 0) -> Array:
    """Torques with white errors."""
    errors = np.random.default_rng(seed).normal(size=motion[0].shape)
    return np.asarray(base.idim.torque(theta, *motion) + sigma * errors)


def laps(action: Callable[[int], object], samples: int) -> tuple[float, float, float]:
    """Least, median and largest microseconds a call, over blocks of a hundred."""
    found = []
    for k in range(0, samples, 100):
        started = time.perf_counter()
        for i in range(k, min(k + 100, samples)):
            action(i)
        found.append((time.perf_counter() - started) / 100 * 1e6)
    return min(found), median(found), max(found)


def later(one: Callable[[int], object], k: int) -> None:
    """Beyond the first samples."""
    one(2000 + k)


def updates(seconds: float = 20.0) -> list[str]:
    """Time of an update by its options, beside others' filters."""
    from dynident.consistency.knowledge import Knowledge
    from dynident.online.recursive import Drift, Forgetting
    from dynident.online.tracker import Tracker

    name, base, sigma, theta, motion = arm()
    q, dq, ddq = motion(7, seconds)
    tau = torques(base, theta, sigma, (q, dq, ddq))
    kinds: dict[str, Any] = {
        "plain": {},
        "`memory`": {"forgetting": Forgetting(memory=100.0)},
        "`memory_friction`": {"forgetting": Forgetting(memory_friction=100.0)},
        "`directional`": {"forgetting": Forgetting(memory=10.0, directional=True)},
        "`walk_friction`": {"drift": Drift(walk_friction=0.01)},
        "consistent": {"knowledge": Knowledge()},
    }
    rows = []
    for kind, options in kinds.items():
        tracker = Tracker(base, sigma, RATE, **options)
        tracker.update(q[0], dq[0], ddq[0], tau[0])

        def one(k: int, tracker: Tracker = tracker) -> None:
            tracker.update(q[k], dq[k], ddq[k], tau[k])

        for k in range(2000):
            one(k)
        spent = laps(partial(later, one), len(q) - 2000)
        rows.append([kind, *(f"{value:.1f}" for value in spent)])
    X = base.idim.regressor(q[:300], dq[:300], ddq[:300])[:, :, base.kept]
    rows += others(X, tau[:300], sigma, base.count)
    head = [
        f"{name}, 7 joints, {base.count} base parameters",
        "fastest hundred",
        "µs a sample",
        "slowest hundred",
    ]
    return [
        *markdown(head, rows),
        "",
        "Ours make the regressor of the sample, too; the others are given it. Least, median and "
        "largest means over blocks of a hundred samples, a few seconds after the start.",
    ]


def others(X: Array, tau: Array, sigma: Array, p: int) -> list[list[str]]:
    """A Kalman filter in Joseph's form in NumPy, and filterpy's where it is installed."""
    P, beta, R = 1e6 * np.eye(p), np.zeros(p), np.diag(sigma**2)

    def joseph(k: int) -> None:
        nonlocal P, beta
        H = X[k]
        gain = np.linalg.solve(H @ P @ H.T + R, H @ P).T
        beta = beta + gain @ (tau[k] - H @ beta)
        kept = np.eye(p) - gain @ H
        P = kept @ P @ kept.T + gain @ R @ gain.T

    found = [["NumPy, Joseph's form", *(f"{v:.1f}" for v in laps(joseph, len(X)))]]
    if importlib.util.find_spec("filterpy") is None:
        return [*found, ["filterpy's `KalmanFilter`", "not installed", "", ""]]
    kalman = importlib.import_module("filterpy.kalman")
    theirs = kalman.KalmanFilter(p, len(sigma))
    theirs.P, theirs.R = 1e6 * np.eye(p), R

    def update(k: int) -> None:
        theirs.predict()
        theirs.update(tau[k][:, None], H=X[k])

    return [*found, ["filterpy's `KalmanFilter`", *(f"{v:.1f}" for v in laps(update, len(X)))]]


def agreement() -> list[str]:
    """How far the recursions end from the batch, in standard deviations."""
    import dynident as di
    from dynident.methods import ESTIMATORS

    rows = []
    for name, folder in (("TX40", TX40), ("EMPS", EMPS)):
        study = di.read_study(folder / "study.toml")
        from dynident.study.study import load_study_robot, read_study_samples

        robot = load_study_robot(study)
        logs = [
            read_study_samples(log, robot, study.prepare)
            for log in study.log
            if log.use == "identify"
        ]
        problem = di.Problem(robot, logs, study.robot.friction, study.robot.rotor)
        batch = ESTIMATORS["wls"](problem)
        same = problem.factors.weighted(batch.sigma).solve()
        for method in ("rls", "kf"):
            found = ESTIMATORS[method](problem)
            std = batch.covariance.literature
            away = [np.max(np.abs(found.beta - other) / std) for other in (same, batch.beta)]
            rows.append([f"{name}, `{method}`", *(f"{value:.1e}" for value in away)])
    head = ["log", "from least squares under the same sigma", "from `wls`"]
    return [
        *markdown(head, rows),
        "",
        "Largest distance of a base parameter in its standard deviations (literature's). The sigma "
        "of `wls` is settled to 1e-6, and its estimate is that of the round before.",
    ]


def loads(runs: int = 20) -> list[str]:
    """A kilogram picked up after 12 s, noticed and weighed; alarms before."""
    from dynident.core.inertia import from_com
    from dynident.online.tracker import Tracker

    name, base, sigma, theta, motion = arm()
    heavy = theta.copy()
    body = 10 * (base.idim.tree.bodies - 1)
    heavy[body : body + 10] += from_com(1.0, [0.02, -0.01, 0.08], 2e-3 * np.eye(3))
    delays, errors, alarms = [], [], 0
    for seed in range(runs):
        q, dq, ddq = motion(7, 18.0, seed)
        tau = torques(base, theta, sigma, (q, dq, ddq), seed)
        tau[12000:] = torques(base, heavy, sigma, (q, dq, ddq), seed)[12000:]
        tracker = Tracker(base, sigma, RATE)
        noticed = None
        for k in range(17000):
            event = tracker.update(q[k], dq[k], ddq[k], tau[k])
            if event is not None:
                alarms += k < 12000
                noticed = noticed or event.sample
        delays.append(np.inf if noticed is None else (noticed - 12000) / RATE)
        errors.append(np.inf if tracker.load is None else 100.0 * abs(tracker.load.mass - 1.0))
    rows = [
        ["noticed after [s], median and latest", f"{median(delays):.2f}, {max(delays):.2f}"],
        [
            "mass after 5 s, error [%], median and largest",
            f"{median(errors):.2f}, {max(errors):.2f}",
        ],
        ["alarms before", str(alarms)],
    ]
    return markdown([f"{name}, 1 kg, {runs} motions", ""], rows)


def replay(seconds: float = 180.0) -> list[str]:
    """Three minutes at 1 kHz, from which an hour is extrapolated."""
    from dynident.online.tracker import Tracker

    name, base, sigma, theta, motion = arm()
    q, dq, ddq = motion(7, seconds)
    tau = torques(base, theta, sigma, (q, dq, ddq))
    tracker = Tracker(base, sigma, RATE)
    tracker.update(q[0], dq[0], ddq[0], tau[0])
    started = time.perf_counter()
    for k in range(1, len(q)):
        tracker.update(q[k], dq[k], ddq[k], tau[k])
    spent = time.perf_counter() - started
    away = np.max(np.abs(tracker.beta - base.matrix @ theta) / tracker.std)
    return [
        f"{seconds:.0f} s of {name} at 1 kHz replayed in {spent:.1f} s: an hour in "
        f"{spent * 3600.0 / seconds / 60.0:.1f} min, extrapolated. The largest error is then "
        f"{away:.1f} standard deviations."
    ]


def main() -> None:
    """Measure everything and write the page."""
    parts = {
        "Time of an update": updates,
        "An hour": replay,
        "Agreement with the batch": agreement,
        "A load": loads,
    }
    lines = ["# Online estimation", "", "Made by `benchmarks/online.py`.", ""]
    for title, part in parts.items():
        lines += [f"## {title}", "", *part(), ""]
        print("\n".join(lines[-8:]), flush=True)
    (FIGURES / "online.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
