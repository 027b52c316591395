"""What a tracker reports of logs without a load, and of loads that are there from the first sample.

Run from the top of the project: python benchmarks/track_alarms.py
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from common import FIGURES, ROOT, TX40, markdown

sys.path.insert(0, str(ROOT / "tests"))

import toy

import dynident as di
from dynident.core.errors import ComputationError, InputError
from dynident.core.inertia import from_com
from dynident.core.schema import validate_data
from dynident.dynamics.idim import build_idim
from dynident.live.channels import find_channels
from dynident.live.messages import EstimateRow, NoticedChange, SampleSignals
from dynident.live.stream import stream_recording
from dynident.study.study import (
    Study,
    load_study_robot,
    read_study,
    read_study_recordings,
)
from dynident.study.track import begin_following, build_track_setting

RATE, JOINTS = 200.0, 6
LOGS = {0.0: 34, 0.5: 10, 2.0: 10}
"""How many, of each load [kg]."""
SETTLED = 3.5
"""When the level of the innovations has been learnt [s]."""
DATA = ROOT.parent / "shared" / "data"
Array = np.ndarray[Any, np.dtype[np.float64]]
ROBOT = toy.arm(JOINTS)
IDIM = build_idim(ROBOT)
THETA = toy.true_parameters(IDIM, ROBOT.nominal)
COULOMB = np.array([THETA[IDIM.names.index(f"fc{j + 1}")] for j in range(JOINTS)])
SIGMA = np.linspace(0.4, 0.1, JOINTS)


def make_log(seed: int, seconds: float, share: float, load: float = 0.0) -> Any:
    """Five harmonics of 0.1 Hz with noise, and friction that it has not: Stribeck, ripple."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 1.0 / RATE)[:, None]
    q, dq, ddq = np.zeros((3, len(t), JOINTS))
    for k, (a, b) in enumerate(rng.normal(scale=0.5, size=(5, 2, JOINTS)), 1):
        w = 0.2 * np.pi * k
        s, c = np.sin(w * t), np.cos(w * t)
        q += (a * s + b * c) / k
        dq += w * (a * c - b * s) / k
        ddq -= w**2 * (a * s + b * c) / k
    theta = THETA.copy()
    theta[10 * (JOINTS - 1) : 10 * JOINTS] += from_com(load, [0.02, -0.01, 0.08], 2e-3 * np.eye(3))
    stribeck = np.exp(-((dq / 0.1) ** 2)) * np.sign(dq)
    odd = stribeck + 0.5 * np.sin(20.0 * q) * np.sign(dq) + 0.3 * np.sin(9.0 * q)
    tau = IDIM.torque(theta, q, dq, ddq) + share * COULOMB * odd
    q = q + 1e-5 * rng.normal(size=q.shape)
    return di.read_arrays(q, tau + SIGMA * rng.normal(size=q.shape), rate=RATE, robot=ROBOT)


def follow(fit: Any, log: Any, bandwidth: float) -> tuple[float, float, list[Any]]:
    """The level of the innovations once it is learnt, the mass carried then, and the events."""
    told = {"robot": {"file": fit.robot.name}, "prepare": {"bandwidth": bandwidth}}
    study = validate_data(Study, told, "benchmark")
    setting = build_track_setting(study, None, fit)
    channels = find_channels(fit.robot, log, setting.measured, True)
    follower = begin_following(setting, channels, log, None, log.rate, True)
    found = [each for sample in stream_recording(log, channels) for each in follower.feed(sample)]
    signals = [each for each in found if isinstance(each, SampleSignals)]
    level = next((s.surprise.level for s in signals if s.time > SETTLED), np.nan)
    rows = [each for each in found if isinstance(each, EstimateRow) and each.time > SETTLED]
    mass = next((each.load[0] for each in rows[:1] if each.load is not None), np.nan)
    return level, mass, [each for each in found if isinstance(each, NoticedChange)]


def tabulate_made() -> list[list[str]]:
    """A row for each size of what the model has not, and each load."""
    rows = []
    for share in (0.0, 0.1, 0.2):
        found: dict[float, list[tuple[float, float, float, list[Any]]]] = {
            load: [] for load in LOGS
        }
        for k in range(max(LOGS.values())):
            train = di.prepare(make_log(2 * k, 40.0, share), bandwidth=5.0)
            fit = di.identify(di.Problem(ROBOT, train), method="wls", doctor=False)
            for load in [load for load, count in LOGS.items() if k < count]:
                log = make_log(2 * k + 1, 60.0, share, load)
                error = di.validate(fit, log)[-1].overall_percent
                found[load].append((error, *follow(fit, log, 5.0)))
        for load, every in found.items():
            errors, levels, masses, events = zip(*every, strict=True)
            first = [[e for e in own if e.time < SETTLED] for own in events]
            weighed = [mass for mass in masses if np.isfinite(mass)]
            changes = [e for own in events for e in own if e.time >= SETTLED]
            rows.append([
                f"{share:.1f}", f"{load:g}", f"{len(every)}", f"{np.median(errors):.1f}",
                f"{min(levels):.2f} to {max(levels):.2f}",
                f"{sum(any(e.event.kind == 'load' for e in own) for own in first)}",
                f"{min(weighed):.2f} to {max(weighed):.2f}" if weighed else "-",
                f"{len(changes)}",
            ])  # fmt: skip
            print(*rows[-1], flush=True)
    return rows


def list_measured() -> list[tuple[str, Any, Any, float, Any]]:
    """Measured logs without a load: names, what is identified on, what is followed, bandwidths."""
    study = read_study(TX40 / "study.toml")
    robot = load_study_robot(study)
    (whole,) = read_study_recordings(study, robot)[:1]
    half = len(whole.q) // 2
    parts = [
        di.read_arrays(whole.q[own], whole.tau[own], rate=whole.rate, robot=robot)
        for own in (slice(0, half), slice(half, None))
    ]
    found = [("TX40, halves of a log", parts[0], parts[1], 10.0, robot)]
    if not DATA.is_dir():
        return found
    kr300 = di.load_robot(DATA / "kr300" / "kr300.toml")
    a, b = (di.read_log(DATA / "kr300" / f"kr300_{k}.csv", kr300) for k in "AB")
    found += [("KR300, A to B", a, b, 5.0, kr300), ("KR300, B to A", b, a, 5.0, kr300)]
    lwr = di.load_robot(DATA / "lwr4" / "kuka_lwr4.urdf")
    logs = []
    for k in (1, 2, 3):
        own = np.load(DATA / "lwr4" / f"measurements_{k}.npz")
        q, tau = own["positions"][500:], own["torques"][500:]
        logs.append(di.read_arrays(q, tau, rate=200.0, robot=lwr))
    for i, j in ((1, 2), (1, 3), (3, 1)):
        found.append((f"LWR4+, {i} to {j}", logs[i - 1], logs[j - 1], 3.0, lwr))
    return found


def tabulate_measured() -> list[list[str]]:
    """A row for each measured log that is followed."""
    rows = []
    for label, one, other, bandwidth, robot in list_measured():
        for method in ("pc-idim-ls", "wls"):
            problem = di.Problem(robot, di.prepare(one, bandwidth=bandwidth))
            try:
                fit = di.identify(problem, method=method)
                found = di.validate(fit, other)
                level, _, events = follow(fit, other, bandwidth)
            except (InputError, ComputationError) as error:
                rows.append([label, method, "-", "-", str(error)])
                continue
            told = ", ".join(f"{e.event.kind} at {e.time:.1f} s" for e in events) or "none"
            percent = f"{found[-1].overall_percent:.1f}"
            rows.append([label, method, percent, f"{level:.2f}", told])
            print(*rows[-1], flush=True)
    return rows


def main() -> None:
    """Print the tables, and write them."""
    lines = [
        f"Made logs of 60 s: six joints at {RATE:g} Hz, other motions than "
        "those of 40 s that `wls` identified the start from. What the model has not, Stribeck "
        "friction and ripple over the position, has a share of the Coulomb friction. The load is "
        f"there from the first sample to the last: it is told before {SETTLED:g} s, with its mass "
        "there, or not; a change that is told later is a false alarm. The level is the mean square "
        f"of the normalised innovations at {SETTLED:g} s, behind a load that is told.",
        "",
        *markdown(
            [
                "share",
                "load [kg]",
                "logs",
                "error [%]",
                "level",
                "load told",
                "its mass [kg]",
                "changes",
            ],
            tabulate_made(),
        ),
        "",
        "Measured logs without a load, followed from a start that was identified on another one:",
        "",
        *markdown(["log", "method", "error [%]", "level", "told"], tabulate_measured()),
        "",
    ]
    print("\n".join(lines))
    (FIGURES / "track_alarms.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
