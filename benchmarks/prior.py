"""Robot files that are wrong about links: held-out errors with the prior, without, yielding.

Run from the top of the project: python benchmarks/prior.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, product

import numpy as np
import numpy.typing as npt
from common import FIGURES, ROOT, markdown
from doctor import of_urdf, root
from logs import LWR4, LWR4_MISSING, lwr4_logs, tx40_halves
from scipy import signal

sys.path.insert(0, str(ROOT / "tests"))

import toy

import dynident as di
from dynident.consistency.bootstrap import Bootstrap
from dynident.consistency.disbelief import find_disbelieved_bodies
from dynident.consistency.feasible_set import FeasiblePoint, FeasibleSet, build_feasible_set
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.prior import build_belief
from dynident.core.arrays import Array
from dynident.core.inertia import from_com
from dynident.dynamics.idim import build_idim
from dynident.estimators.constrained import ConstrainedSetting, build_constrained_setting
from dynident.estimators.covariance import ErrorBars
from dynident.recording.recording import Recording
from dynident.robot.model import Robot
from dynident_papers.twin import load_twin

RATE, BANDWIDTH, ENCODER = 500.0, 10.0, 1e-5
"""Noise of positions [rad]."""
NOISES = {"2 %, white": (0.02, 0.0), "5 %, slow": (0.05, 1.0)}
"""Noise of torques: share of each joint's, and its correlation time [s]."""
SEEDS = (1, 2, 3)
LOGS = {"5 s, slow": (5.0, 0.4, 0.4), "20 s": (20.0, 2.0, 1.0)}
"""Seconds, largest frequency [Hz] and size of the motion that is fitted."""
HELD_OUT = (20.0, 2.0, 1.0)
TEN, ROUNDS = 10.0, 10
"""Squared distance at which a belief yields: a link's number of parameters; and rounds."""
ROBOTS: dict[str, Callable[[], Robot]] = {
    "six skew joints": lambda: toy.arm(6),
    "TX40 twin": lambda: load_twin().robot,
    "Panda": lambda: of_urdf("panda_description/urdf/panda.urdf", 7),
}


Links = npt.NDArray[np.bool_]
Change = Callable[[Array, np.random.Generator], Array]


def scaled(factor: float) -> Change:
    """Two links weigh so many times what the file says, their moments with them."""

    def change(bodies: Array, rng: np.random.Generator) -> Array:
        links = rng.choice(np.arange(min(1, len(bodies) - 2), len(bodies)), 2, replace=False)
        changed = bodies.copy()
        changed[links] *= factor
        return changed

    return change


def gripper(bodies: Array, rng: np.random.Generator) -> Array:
    """1 kg, 12 cm before the last joint's frame."""
    changed = bodies.copy()
    changed[-1] += from_com(1.0, [0.02, 0.0, 0.12], 3e-3 * np.eye(3))
    return changed


FILES: dict[str, Change] = {
    "right within 10 %": lambda bodies, rng: bodies,
    "two links x 3": scaled(3.0),
    "two links x 0.3": scaled(0.3),
    "two links x 10": scaled(10.0),
    "gripper forgotten": gripper,
}


def motion(
    robot: Robot, rng: np.random.Generator, seconds: float, top: float, size: float
) -> tuple[Array, Array, Array]:
    """Sums of sinusoids up to a frequency `top`, within the limits of speed."""
    t = np.arange(int(seconds * RATE)) / RATE
    q, dq, ddq = (np.zeros((len(t), robot.n)) for _ in range(3))
    for j, joint in enumerate(robot.joints):
        for f in rng.uniform(0.1, top, 6):
            w, a, phase = 2 * np.pi * f, rng.uniform(0.1, 0.5), rng.uniform(0, 2 * np.pi)
            q[:, j] += size * a * np.sin(w * t + phase)
            dq[:, j] += size * a * w * np.cos(w * t + phase)
            ddq[:, j] -= size * a * w**2 * np.sin(w * t + phase)
        limit = joint.velocity if np.isfinite(joint.velocity) else 8.0
        share = min(1.0, 0.9 * limit / float(np.max(np.abs(dq[:, j]))))
        for x in (q, dq, ddq):
            x[:, j] *= share
    return q + rng.uniform(-0.5, 0.5, robot.n), dq, ddq


def noise(rng: np.random.Generator, shape: tuple[int, int], seconds: float) -> Array:
    """Of unit variance, white or of first order."""
    white = rng.normal(size=shape)
    if seconds == 0.0:
        return white
    pole = np.exp(-1.0 / RATE / seconds)
    return signal.lfilter([np.sqrt(1.0 - pole**2)], [1.0, -pole], white, axis=0)


@dataclass(frozen=True, eq=False)
class Case:
    """A log to fit, one with another motion; where known, true bodies and which are wrong."""

    fit: di.Problem
    held: di.Problem
    bodies: Array | None
    wrong: Links | None


def logged(
    robot: Robot, friction: str, q: Array, tau: Array, kind: str, rng: np.random.Generator
) -> di.Problem:
    """What is measured of a motion."""
    share, seconds = NOISES[kind]
    tau = tau + share * root(tau) * noise(rng, tau.shape, seconds)
    noisy = q + ENCODER * rng.normal(size=q.shape)
    samples = di.prepare(Recording("log", RATE, noisy, tau), bandwidth=BANDWIDTH)
    return di.Problem(robot, samples, friction=friction)


def cases(name: str, file: str, log: str, kind: str, seed: int) -> Iterator[Case]:
    """Logs of a robot whose file is wrong; then, for ever, new noise in the fitted one."""
    place = [seed, *name.encode(), *file.encode()]
    rng = np.random.default_rng(place)
    robot = replace(ROBOTS[name](), warnings=())
    friction = "coulomb-viscous-symmetric" if name == "TX40 twin" else "coulomb-viscous"
    idim = build_idim(robot, friction)
    near = robot.nominal * rng.uniform(0.9, 1.1, (robot.n, 1))
    bodies = FILES[file](near, rng)
    if name == "TX40 twin":
        theta = np.concatenate([bodies.ravel(), load_twin().theta[idim.inertial :]])
    else:
        theta = idim.join(bodies)
        q, dq, ddq = motion(robot, rng, *HELD_OUT)
        size = np.maximum(root(idim.torque(theta, q, dq, ddq)), 1.0)
        sizes = {"Ia": (0.2, ddq), "fv": (0.15, dq), "fc": (0.15, None), "off": (0.02, None)}
        for k, parameter in enumerate(idim.parameters[idim.inertial :]):
            share, per = sizes[parameter.symbol]
            j = parameter.number - 1
            own = 1.0 if per is None else float(root(per)[j])
            theta[idim.inertial + k] = share * size[j] / own
    clean, problems = [], []
    for shape in (LOGS[log], HELD_OUT):
        q, dq, ddq = motion(robot, rng, *shape)
        clean.append((q, idim.torque(theta, q, dq, ddq)))
        problems.append(logged(robot, friction, *clean[-1], kind, rng))
    first = Case(problems[0], problems[1], bodies, np.any(bodies != near, axis=1))
    yield first
    again = np.random.default_rng([*place, *kind.encode(), *log.encode()])
    while True:
        yield replace(first, fit=logged(robot, friction, *clean[0], kind, again))


def error(held: di.Problem, beta: Array) -> float:
    """Relative torque error of all joints [%]."""
    factors = held.factors
    of = [np.sum(factors.squared_residuals(b)) for b in (beta, np.zeros_like(beta))]
    return 100.0 * float(np.sqrt(of[0] / of[1]))


# ---- candidates


def misfit(admitted: FeasibleSet, point: FeasiblePoint) -> Array:
    """Squared distance of each believed link from its centre, without kappa."""
    assert point.theta is not None
    rows, target = admitted.prior.rows(len(point.theta))
    return np.asarray(np.sum((rows @ point.theta - target).reshape(-1, 10) ** 2, axis=1))


def yielding(given: ConstrainedSetting) -> tuple[FeasiblePoint, Links]:
    """The estimate whose links beyond ten are pulled no harder than links at ten (Huber).

    Also says which links these are. Rows of the pullback go with the inverse of the inflated
    body, so that a belief is weakened by a more inflated one.
    """
    admitted, belief = given.admitted, given.admitted.prior.belief
    point = admitted.solve(given.system)
    weights = np.ones(len(belief.bodies))
    for _ in range(ROUNDS):
        now = np.minimum(1.0, TEN / np.maximum(misfit(admitted, point), 1e-12))
        if np.allclose(now, weights, rtol=1e-3):
            break
        weights = now
        inflated = belief.inflated / np.sqrt(weights)[:, None, None]
        weakened = replace(admitted.prior, belief=replace(belief, inflated=inflated))
        point = replace(admitted, prior=weakened).solve(given.system, point)
    named = np.zeros(admitted.space.idim.tree.bodies, dtype=bool)
    named[list(belief.bodies)] = weights < 1.0
    return point, named


def named_links(given: ConstrainedSetting, point: FeasiblePoint) -> Links:
    """Links that the warning of `identify` names."""
    named = np.zeros(given.admitted.space.idim.tree.bodies, dtype=bool)
    named[[own.body for own in find_disbelieved_bodies(given.admitted, point)]] = True
    return named


def told(given: ConstrainedSetting, bodies: Array) -> FeasiblePoint:
    """The estimate with the default prior about the true bodies."""
    admitted = given.admitted
    belief = build_belief(bodies, given.problem.robot.links)
    return replace(admitted, prior=replace(admitted.prior, belief=belief)).solve(given.system)


@dataclass(frozen=True, eq=False)
class Answers:
    """Held-out errors [%], and the links that the default and Huber do not believe."""

    none: float
    default: float
    told: float | None
    huber: float | None
    named: Links
    weakened: Links | None


def answers(c: Case, yields: bool) -> Answers:
    """Of one log; with Huber where asked for, and what is told the truth where that is known."""
    given = build_constrained_setting(c.fit, Knowledge(), Bootstrap(0), ErrorBars())
    kappa = given.admitted.kappa
    free = build_feasible_set(c.fit.base, given.system, Knowledge(prior="none"), kappa)
    point = given.admitted.solve(given.system)
    told_, huber, weakened = None, None, None
    if c.bodies is not None:
        told_ = error(c.held, told(given, c.bodies).beta)
    if yields:
        yielded, weakened = yielding(given)
        huber = error(c.held, yielded.beta)
    return Answers(
        error(c.held, free.solve(given.system).beta),
        error(c.held, point.beta),
        told_,
        huber,
        named_links(given, point),
        weakened,
    )


# ---- the page


TOLD = "told the truth"
LOST = 1.05
"""Error over that of the better of prior and none from which the prior has lost."""
AGAIN, MORE = 3, 40
"""New draws of the noise of every case; and of those where the default has lost."""


def repeated(stream: Iterator[Case], count: int) -> Array:
    """Errors without prior, by default and told the truth, shape (draws, 3).

    A log that is refused, as its sigmas do not settle, is left out.
    """
    rows = []
    for c in islice(stream, count):
        try:
            found = answers(c, yields=False)
        except di.ComputationError:
            continue
        rows.append((found.none, found.default, found.told))
    return np.array(rows)


def of_means(errors: Array) -> Array:
    """Means over the draws, over the better of those of none and default, shape (3,)."""
    mean = np.mean(errors, axis=0)
    return np.asarray(mean / min(mean[:2]))


def decided(errors: Array) -> tuple[float, float]:
    """The default's mean error over that without prior, and its standard deviation."""
    none, default, _ = errors.T
    ratio = float(np.mean(default) / np.mean(none))
    spread = np.std(default - ratio * none, ddof=1) / np.sqrt(len(errors)) / np.mean(none)
    return ratio, float(spread)


def cell(ratios: list[float]) -> str:
    return f"{np.median(ratios):.2f}, {max(ratios):.2f}"


def simulated() -> list[str]:
    rows: list[list[str]] = []
    lost: list[list[str]] = []
    worse = 0
    for kind, log, file in product(NOISES, LOGS, FILES):
        first: list[tuple[float, ...]] = []
        means: list[Array] = []
        counts = np.zeros(5, dtype=int)
        for name, seed in product(ROBOTS, SEEDS):
            stream = cases(name, file, log, kind, seed)
            c = next(stream)
            found = answers(c, yields=True)
            assert found.told is not None
            assert found.huber is not None
            assert found.weakened is not None
            least = min(found.none, found.default)
            drawn = (found.none, found.default, found.told)
            first.append(tuple(x / least for x in (*drawn, found.huber)))
            errors = np.vstack([drawn, repeated(stream, AGAIN)])
            means.append(of_means(errors))
            assert c.wrong is not None
            counts[0] += np.sum(c.wrong)
            for k, links in enumerate((found.named, found.weakened)):
                counts[1 + 2 * k] += np.sum(links & c.wrong)
                counts[2 + 2 * k] += np.sum(links & ~c.wrong)
            if found.default <= LOST * found.none and means[-1][1] <= LOST * means[-1][0]:
                continue
            many = repeated(stream, MORE)
            ratio, spread = decided(many)
            worse += ratio > LOST
            lost.append(
                [
                    f"{kind}, {log}, {file}, {name} {seed}",
                    *(f"{x:.3g}" for x in (found.default, found.none, found.told)),
                    *(f"{x:.3g}" for x in np.mean(many, axis=0)[[1, 0, 2]]),
                    f"{ratio:.2f} ± {spread:.2f}",
                    f"{100.0 * np.mean(many[:, 1] > LOST * many[:, 0]):.0f} %",
                    f"{100.0 * np.mean(many[:, 2] > LOST * many[:, 0]):.0f} %",
                ]
            )
            sys.stdout.write(" | ".join(lost[-1]) + "\n")
        none, default, right, huber = (list(r) for r in zip(*first, strict=True))
        cells = [cell(r) for r in (none, default, huber, right)]
        cells += [cell(list(r)) for r in np.transpose(means)]
        names = [f"{counts[1]} + {counts[2]}", f"{counts[3]} + {counts[4]}"]
        rows.append([kind, log, file, *cells, str(counts[0]), *names])
        sys.stdout.write(" | ".join(rows[-1]) + "\n")
        sys.stdout.flush()
    header = ["noise", "log", "file", "no prior", "default", "Huber", TOLD]
    header += ["no prior, mean", "default, mean", f"{TOLD}, mean"]
    header += ["wrong links", "named", "by Huber"]
    total = len(NOISES) * len(LOGS) * len(FILES) * len(ROBOTS) * len(SEEDS)
    share = f"{100.0 * (LOST - 1.0):.0f} %"
    return [
        *markdown(header, rows),
        "",
        f"Where the default is more than {share} above no prior, in the first draw or in the "
        f"mean of {1 + AGAIN}: {len(lost)} of {total} cases. Each is drawn {MORE} times more: the "
        "same robot, file and motion, new noise in the fitted log. In the mean of these, which "
        f"had no part in the choice, the default is more than {share} above no prior in {worse}; "
        "the others were the chance of a draw. *Lost*: share of the draws in which the default, "
        f"and what is {TOLD}, is more than {share} above no prior. Errors in %.",
        "",
        *markdown(
            [
                "case, seed", "default", "none", TOLD, "default, mean", "none, mean",
                f"{TOLD}, mean", "default / none, means", "lost", f"lost, {TOLD}",
            ],
            lost,
        ),
    ]  # fmt: skip


def measured() -> list[str]:
    _, robot, first, second = tx40_halves()
    jobs = [("TX40, halves", di.Problem(robot, first), di.Problem(robot, second))]
    if LWR4.is_dir():
        robot, logs = lwr4_logs()
        jobs += [
            (f"LWR4+, {' + '.join(map(str, train))} to {test}",
             di.Problem(robot, [logs[k] for k in train]), di.Problem(robot, logs[test]))
            for train, test in (((1,), 3), ((1, 2), 3), ((2, 3), 1), ((1,), 2))
        ]  # fmt: skip
    rows = []
    for label, fit, held in jobs:
        found = answers(Case(fit, held, None, None), yields=True)
        rows.append([label, *(f"{x:.2f}" for x in (found.none, found.default, found.huber))])
    return markdown(["log", "no prior [%]", "default [%]", "Huber [%]"], rows)


def main() -> None:
    text = [
        "Simulated robots whose files are wrong about links, and whether a prior that yields "
        f"does better. {', '.join(ROBOTS)}; {len(SEEDS)} seeds each; `pc-idim-ls`. Fitted: one "
        "log; held out: the rows of another motion, 20 s.",
        "",
        "Median and worst ratio of held-out errors, over the better of the default prior and "
        "none, of the first draw of the noise; and of the means over "
        f"{1 + AGAIN} draws of the fitted log's noise, over the better of the two means. *Huber*: "
        "a link further than 10 (squared, ten parameters) from its centre is pulled as if it were "
        f"at 10, with {ROUNDS} rounds at most. *Named*: wrong + right links that the warning of "
        "`identify` names with the default, and that Huber weakens. *Slow* noise has a correlation "
        "time of 1 s.",
        "",
        f"*{TOLD.capitalize()}*: the default prior about the true bodies, which nobody knows. In a "
        "draw it loses to the better of the two as well: on a log of 5 s, below 0.4 Hz, of the "
        "many models that explain it each estimate is one, and which of them does best on a motion "
        "five times as fast is chance. The smaller of two such errors is that of no estimate: no "
        "belief reaches it, be it right. The mean over draws is what an estimator can be held to.",
        "",
        *simulated(),
        "",
        "Measured logs, held-out relative torque error of decimated rows:",
        "",
        *measured(),
    ]
    if not LWR4.is_dir():
        text += ["", LWR4_MISSING]
    (FIGURES / "prior.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
