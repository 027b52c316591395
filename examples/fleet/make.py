"""A made fleet: robots of one type with drives of their own, and some that do not belong.

python examples/fleet/make.py -o fleet [--robots 12] [--sessions 6] [--seconds 20]

Writes a study, a folder of logs for each robot, and `truth.json`. The type is the TX40 of
examples/tx40. Coulomb and viscous friction differ by 15 % from robot to robot, rotor inertias by
3 %, offsets by 4 % of Coulomb friction; friction differs by 1.5 % from session to session, as
drives warm up. What no model here has: a ripple of 1.5 % of Coulomb friction over the position, and
white noise of the torques. Of every twelve robots one carries a tool of 0.5 kg, one has a zero of
joint 2 that is 3 deg off, one has twice the friction in joint 4, one loses 10 % of joint 3's
friction after half of the sessions, and in one that of joint 5 grows by 15 % from the first to the
last.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import dynident as di
from dynident.consistency.nearest import nearest_consistent
from dynident.control.reference import fourier
from dynident.core.inertia import from_com
from dynident.dynamics.idim import Idim

TX40 = Path(__file__).parents[1] / "tx40"
RATE, PERIOD, HARMONICS = 100.0, 10.0, 4
SPEED = np.array([1.6, 1.4, 1.8, 2.5, 2.2, 3.0])
"""Largest, of each joint [rad/s]."""
VISCOUS = np.array([8.1, 5.5, 2.0, 1.1, 1.2, 0.2])
COULOMB = np.array([7.0, 8.3, 6.4, 2.6, 3.0, 0.6])
ROTOR = np.array([0.38, 0.37, 0.095, 0.032, 0.036, 0.0])
COUPLED = {"fvm": 0.6, "fcm": 1.5, "Iam": 0.011}
"""Of the motor of joint 6, which turns with joint 5 as well."""
SPREAD = {"fv": 0.15, "fc": 0.15, "Ia": 0.03, "fvm": 0.15, "fcm": 0.15, "Iam": 0.03}
OFFSET, SESSION, RIPPLE, NOISE = 0.04, 0.015, 0.015, 0.03
"""Shares of Coulomb friction; the noise is of every sample."""
TOOL, SLIP, WORN, LOSS, GAIN, DRIFT = 0.5, np.radians(3.0), 2.0, 0.10, 1.03, 0.15
CULPRITS = {3: "tool", 6: "slipped", 8: "drifting", 9: "worn", 11: "changed"}
"""Of every twelve robots, by their number."""

STUDY = """[robot]
file = "tx40.toml"
friction = "coulomb-viscous"

[prepare]
bandwidth = 5.0
drop_below = 0.05
"""


@dataclass(frozen=True)
class Type:
    """What all robots share: the TX40 with bodies that can exist."""

    robot: di.Robot
    model: Idim
    bodies: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True)
class Made:
    """One robot: its own drives, and positions and torques of each session."""

    culprit: str
    bodies: np.ndarray
    drives: dict[str, np.ndarray]
    sessions: tuple[tuple[np.ndarray, np.ndarray], ...]


def load_type() -> Type:
    """The TX40."""
    robot = di.load_robot(TX40 / "tx40.toml")
    model = di.build_idim(robot, "coulomb-viscous")
    lower, upper = np.array([[joint.lower, joint.upper] for joint in robot.joints]).T
    return Type(robot, model, nearest_consistent(robot).phi, lower, upper)


def make_robot(
    kind: Type,
    rng: np.random.Generator,
    sessions: int,
    seconds: float,
    culprit: str = "",
    loss: float = LOSS,
) -> Made:
    """Draw a robot and its logs."""
    usual = {"fv": VISCOUS, "fc": COULOMB, "Ia": ROTOR, "off": 0.0 * COULOMB}
    usual |= {symbol: np.full(6, value) for symbol, value in COUPLED.items()}
    own = {
        symbol: values * (1.0 + SPREAD.get(symbol, 0.0) * rng.normal(size=6))
        for symbol, values in usual.items()
    }
    own["off"] = OFFSET * COULOMB * rng.normal(size=6)
    if culprit == "worn":
        own["fc"][3] *= WORN
        own["fv"][3] *= WORN
    bodies = kind.bodies.copy()
    if culprit == "tool":
        bodies[-1] += from_com(TOOL, np.array([0.02, 0.0, 0.08]), 1e-3 * np.eye(3))
    logs = []
    for session in range(sessions):
        factor = 1.0 + SESSION * rng.normal(size=6)
        if culprit == "changed" and session >= sessions // 2:
            factor[2] *= 1.0 - loss
        if culprit == "drifting":
            factor[4] *= 1.0 + DRIFT * session / (sessions - 1)
        now = {
            symbol: values * (factor if symbol.startswith("f") else 1.0)
            for symbol, values in own.items()
        }
        drives = [now[p.symbol][p.number - 1] for p in kind.model.parameters[kind.model.inertial :]]
        motion = draw_motion(rng, seconds, kind.lower, kind.upper)
        tau = kind.model.torque(np.concatenate([bodies.ravel(), drives]), *motion)
        phase = rng.uniform(0.0, 2.0 * np.pi, 6)
        tau += RIPPLE * COULOMB * np.sin(20.0 * motion[0] + phase)
        tau += NOISE * COULOMB * rng.normal(size=tau.shape)
        q = motion[0].copy()
        if culprit == "slipped":
            q[:, 1] += SLIP
        if culprit == "gain":
            tau[:, 1] *= GAIN
        logs.append((q, tau))
    return Made(culprit, bodies, own, tuple(logs))


def write_fleet(folder: Path, robots: int, sessions: int, seconds: float, seed: int) -> None:
    """Write the study, the logs and the truth."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tx40.toml", "tx40_mdh_modified.urdf", "NOTICE", "LICENSE-Apache-2.0"):
        (folder / name).write_text((TX40 / name).read_text())
    (folder / "study.toml").write_text(STUDY)
    kind, truth = load_type(), {}
    for number in range(robots):
        culprit = CULPRITS.get(number % 12, "")
        rng = np.random.default_rng((seed, number))
        made = make_robot(kind, rng, sessions, seconds, culprit)
        name = f"robot-{number:03d}"
        for session, (q, tau) in enumerate(made.sessions):
            path = folder / name / f"session-{session:02d}.npz"
            write_log(path, kind.robot.joint_names, q, tau)
        drives = {symbol: values.tolist() for symbol, values in made.drives.items()}
        truth[name] = {"culprit": culprit, **drives}
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")


def draw_motion(
    rng: np.random.Generator, seconds: float, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Positions, speeds and accelerations of a random Fourier series within the joints' ranges."""
    sine, cosine = rng.normal(size=(2, 6, HARMONICS))
    middle = 0.5 * (lower + upper) + 0.1 * (upper - lower) * rng.uniform(-1.0, 1.0, 6)
    drawn = fourier(RATE, PERIOD, 1.0 / PERIOD, middle.tolist(), sine.tolist(), cosine.tolist())
    by_speed = SPEED / np.abs(drawn.dq).max(axis=0)
    by_range = 0.35 * (upper - lower) / np.abs(drawn.q - middle).max(axis=0)
    scale = np.minimum(by_speed, by_range)[:, None]
    tables = (scale * sine).tolist(), (scale * cosine).tolist()
    found = fourier(RATE, seconds, 1.0 / PERIOD, middle.tolist(), *tables)
    return found.q, found.dq, found.ddq


def write_log(path: Path, joints: tuple[str, ...], q: np.ndarray, tau: np.ndarray) -> None:
    """A log of one session."""
    path.parent.mkdir(exist_ok=True)
    names = [*(f"q_{joint}" for joint in joints), *(f"tau_{joint}" for joint in joints)]
    signals = dict(zip(names, np.hstack([q, tau]).astype(np.float32).T, strict=True))
    np.savez(path, time=np.arange(len(q)) / RATE, **signals)


def main() -> None:
    """Parse the command line, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("fleet"))
    parser.add_argument("--robots", type=int, default=12)
    parser.add_argument("--sessions", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    write_fleet(asked.output, asked.robots, asked.sessions, asked.seconds, asked.seed)


if __name__ == "__main__":
    main()
