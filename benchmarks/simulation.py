"""Simulation in the loop: rollouts, instruments and output errors, side by side in one run.

    python benchmarks/simulation.py

On the TX40 twin: 8 s at 5 kHz, six joints with friction and a coupled drive under sampled or
continuous PD control, Bogacki-Shampine. Beside it the same integrator in Python around
Pinocchio's forward dynamics, and finite differences on our own simulator. Medians; one
BLAS thread. Writes docs/figures/simulation.md.
"""

from __future__ import annotations

import argparse
import os
import platform
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pinocchio as pin
from common import FIGURES, markdown, timed

from dynident.core.bundle import keep_bundle
from dynident.core.jit import entry
from dynident.dynamics.cholesky import factorise_ldl, solve_ldl
from dynident.dynamics.spatial import (
    find_room,
    gather_subtrees,
    move_bodies,
    place_bodies,
    write_body_force,
    write_inertia_in_world,
)
from dynident.estimators.closed_loop import Simulation
from dynident.methods.options import estimate as estimate_by_name
from dynident.plant.plant import build_plant
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import rollout, sensitive_rollout
from dynident_papers.experiment import build_twin_controller, build_tx40_reference
from dynident_papers.published import ARDIANI_SECONDS, ARDIANI_SIMULATION, BRUNOT_TIMES
from dynident_papers.twin import Twin, load_twin

OUT = FIGURES / "simulation.md"
RATE, SECONDS, WIDTH = 5000.0, 8.0, 0.05


def pin_model(twin: Twin) -> pin.Model:
    """Pinocchio's model of the twin's chain."""
    model = pin.Model()
    model.gravity.linear = np.asarray(twin.robot.gravity)
    parent = 0
    for joint, body in zip(twin.robot.joints, twin.robot.nominal, strict=True):
        placement = pin.SE3(joint.rotation, joint.translation)
        kind = pin.JointModelRevoluteUnaligned(*joint.axis)
        parent = model.addJoint(parent, kind, placement, joint.name)
        model.appendBodyToJoint(parent, pin.Inertia.FromDynamicParameters(body), pin.SE3.Identity())
    return model


def pin_rollout(loop: Loop, twin: Twin, sampled: bool, samples: int) -> np.ndarray:
    """The same loop around ``pin.aba`` in Python; the coupled drive's rotor as its diagonal."""
    model = pin_model(twin)
    assert loop.width is not None
    plant = build_plant(twin.idim, twin.theta, loop.width)
    model.armature = np.diag(plant.rotors).copy()
    data = model.createData()
    control, reference = loop.controller, loop.reference
    D, gain = control.D, control.gain
    h = 1.0 / RATE
    gears, friction = plant.gears, plant.friction

    def torque(k: int, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        qr, dqr = reference.q[k], reference.dq[k]
        return gain * (D[:, 0] * qr + D[:, 1] * dqr + D[:, 3] * q + D[:, 4] * dq)

    def acceleration(q: np.ndarray, dq: np.ndarray, u: np.ndarray) -> np.ndarray:
        v = gears @ dq
        f = friction[:, 0] + friction[:, 1] * v + friction[:, 2] * np.tanh(v / plant.width)
        return pin.aba(model, data, q, dq, u - gears.T @ f)

    q, dq = reference.q[0].copy(), reference.dq[0].copy()
    out = np.empty((samples, len(q)))
    for k in range(samples):
        out[k] = q
        u = torque(k, q, dq)
        k1v, k1q = acceleration(q, dq, u), dq
        q2, dq2 = q + 0.5 * h * k1q, dq + 0.5 * h * k1v
        k2v, k2q = acceleration(q2, dq2, u if sampled else torque(k, q2, dq2)), dq2
        q3, dq3 = q + 0.75 * h * k2q, dq + 0.75 * h * k2v
        k3v, k3q = acceleration(q3, dq3, u if sampled else torque(k, q3, dq3)), dq3
        q = q + h * (2.0 * k1q + 3.0 * k2q + 4.0 * k3q) / 9.0
        dq = dq + h * (2.0 * k1v + 3.0 * k2v + 4.0 * k3v) / 9.0
    return out


@entry
def turn_joints(q, out):
    """Sines and cosines alone."""
    for t in range(len(q)):
        for j in range(q.shape[1]):
            out[j] = np.sin(q[t, j]) + np.cos(q[t, j])


@entry
def place_only(tree, q, w):
    """Placements and screws."""
    for t in range(len(q)):
        place_bodies(tree, q[t], q[t], w)


@entry
def load_only(phi, q, w):
    """Inertias in world axes, and what the bodies' motions take."""
    for _ in range(len(q)):
        for b in range(len(w.p)):
            write_inertia_in_world(phi, w.R, w.p, b, w.own)
            write_body_force(w.own, w.V, w.A, b, w.F)


@entry
def move_only(tree, phi, q, dq, w):
    """All of this, and velocities and accelerations."""
    for t in range(len(q)):
        move_bodies(tree, phi, q[t], dq[t], w)


@entry
def gather_only(tree, q, w, M, bias):
    """The mass matrix by composite bodies, and the bias torques."""
    for _ in range(len(q)):
        gather_subtrees(tree, w, M, bias)


@entry
def solve_only(q, A, M, x):
    """A mass matrix factorised and solved with."""
    for _ in range(len(q)):
        for i in range(len(A)):
            for j in range(len(A)):
                M[i, j] = A[i, j]
        factorise_ldl(M)
        solve_ldl(M, x)


def measure_stage(twin: Twin, q: np.ndarray, dq: np.ndarray, repeats: int) -> list[list[str]]:
    """Microseconds of the parts of a forward dynamics, one sample after another as in a rollout."""
    tree, n = twin.idim.tree, q.shape[1]
    shared, w, M, x = keep_bundle(tree), find_room(tree), np.empty((n, n)), np.ones(n)
    phi, A = np.array(twin.robot.nominal), np.eye(n) + 0.1
    parts = {
        "sines and cosines": lambda: turn_joints(q, x),
        "placements and screws, these included": lambda: place_only(shared, q, w),
        "inertias and forces of the bodies": lambda: load_only(phi, q, w),
        "all of the bodies' motion, these included": lambda: move_only(shared, phi, q, dq, w),
        "mass matrix and bias": lambda: gather_only(shared, q, w, M, x),
        "factor and solution": lambda: solve_only(q, A, M, x),
    }
    return [[name, f"{1e6 * timed(part, repeats) / len(q):.2f}"] for name, part in parts.items()]


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    twin = load_twin()
    reference = build_tx40_reference(twin, RATE, SECONDS)
    width = np.full(twin.robot.n, WIDTH)
    samples = len(reference.q)
    sampled = Loop(twin.idim, build_twin_controller(twin), reference, width=width)
    continuous = Loop(twin.idim, build_twin_controller(twin, rate=None), reference, width=width)

    ours_sampled = timed(lambda: rollout(sampled, twin.theta), repeats)
    ours_continuous = timed(lambda: rollout(continuous, twin.theta), repeats)
    theirs_sampled = timed(lambda: pin_rollout(sampled, twin, True, samples), 1)
    theirs_continuous = timed(lambda: pin_rollout(continuous, twin, False, samples), 1)
    gap = np.abs(rollout(sampled, twin.theta).q - pin_rollout(sampled, twin, True, samples)).max()

    motion = rollout(sampled, twin.theta)
    parts = measure_stage(twin, motion.q, motion.dq, repeats)
    rng = np.random.default_rng(0)
    scatter = 0.03 * np.std(motion.tau, axis=0)
    log = Recording(
        "twin", RATE, motion.measured, motion.tau + scatter * rng.normal(size=motion.tau.shape),
        qref=reference.q, dqref=reference.dq,
    )  # fmt: skip
    data = prepare(log, bandwidth=10.0)
    simulation = Simulation(build_twin_controller(twin), width=WIDTH, start="rotors")

    def estimate(method: str, **options: bool) -> tuple[float, str, int]:
        found = []

        def work() -> None:
            problem = Problem(twin.robot, data, "coulomb-viscous")
            found.append(estimate_by_name(problem, method, simulation=simulation, **options))

        seconds = timed(work, max(1, repeats // 2))
        return seconds, found[-1].message.split(";")[0], len(found[-1].beta)

    methods = {
        "idim-iv": estimate("idim-iv", gain_update=True),
        "didim": estimate("didim", gain_update=True),
        "clie": estimate("clie"),
        "cloe": estimate("cloe"),
        "pc-idim-iv": estimate("pc-idim-iv", gain_update=True),
        "pc-didim": estimate("pc-didim", gain_update=True),
        "pc-clie": estimate("pc-clie"),
    }
    problem = Problem(twin.robot, data, "coulomb-viscous")
    kept = problem.base.kept
    model = Loop(problem.idim, build_twin_controller(twin), reference, width=width)
    theta = problem.base.standard(problem.base.matrix @ twin.values(problem.idim.names))
    exact = timed(lambda: list(sensitive_rollout(model, theta, kept, ("tau",))), repeats)
    single = timed(lambda: rollout(model, theta), repeats)

    def differences() -> None:
        rollout(model, theta)
        for k in kept:
            moved = theta.copy()
            moved[k] += 1e-6
            rollout(model, moved)

    forward = timed(differences, 1)

    many = 16
    serial = timed(lambda: [rollout(sampled, twin.theta) for _ in range(many)], 1)
    cores = os.cpu_count() or 1

    def together() -> None:
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(lambda _: rollout(sampled, twin.theta), range(many)))

    parallel = timed(together, 1)

    lines = [
        "# Simulation in the loop",
        "",
        "Written by `benchmarks/simulation.py`: the TX40 twin, 8 s at 5 kHz (40 000 samples), six",
        "joints with friction and the coupled drive, Bogacki-Shampine (`ode3`), one BLAS thread.",
        f"Medians; {platform.machine()}, {cores} cores, Python {platform.python_version()}.",
        "",
        "## One rollout",
        "",
        "| | sampled control [s] | control at every stage [s] |",
        "|---|---|---|",
        f"| dynident | {ours_sampled:.3f} | {ours_continuous:.3f} |",
        f"| Python around `pin.aba` | {theirs_sampled:.2f} | {theirs_continuous:.2f} |",
        f"| ratio | {theirs_sampled / ours_sampled:.1f} "
        f"| {theirs_continuous / ours_continuous:.1f} |",
        "",
        "The loop around `pin.aba` takes the coupled drive's rotor as its diagonal (an articulated",
        f"body has no place for the rest), so the motions differ by up to {gap:.1e} rad. The",
        f"papers report {ARDIANI_SIMULATION} s for such a simulation.",
        "",
        f"Of the {1e6 * ours_sampled / (3 * samples):.2f} µs of a stage the forward dynamics take, "
        "in samples one after another [µs]:",
        "",
        *markdown(["part", "µs"], parts),
        "",
        "The rest are friction, control, and the sums of stages.",
        "",
        "## Estimators",
        "",
        "From `Ia = 1` alone, 60 base parameters, from samples to estimate: rows, filters,",
        "decimation, simulations, covariance and tests. Those with a pc are constrained, with the",
        "twin's nominal inertials as a prior and error bars by 60 bootstrap replicates.",
        "",
        "| method | seconds | | the papers |",
        "|---|---|---|---|",
    ]
    papers = BRUNOT_TIMES | {name: f"{seconds} s" for name, seconds in ARDIANI_SECONDS.items()}
    lines += [
        f"| {name} | {seconds:.2f} | {message}, {count} parameters | {papers.get(name, '')} |"
        for name, (seconds, message, count) in methods.items()
    ]
    lines += [
        "",
        "## A Jacobian of the simulated torques",
        "",
        f"For {len(kept)} parameters: exact sensitivities {exact:.2f} s, one-sided differences on",
        f"the same simulator {forward:.2f} s ({forward / exact:.1f} times as long; central ones",
        f"twice that). One rollout alone takes {single:.3f} s.",
        "",
        "## Many rollouts at once",
        "",
        f"{many} rollouts: {many / serial:.1f} a second on one core, {many / parallel:.1f} with "
        f"{cores} threads",
        f"({serial / parallel:.2f} times), each of 40 000 samples: the kernels hold no lock.",
        "",
    ]
    OUT.write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
