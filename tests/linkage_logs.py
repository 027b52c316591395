"""Logs of robots with closed chains that MuJoCo makes: its own solver holds the loops."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pandas
import pinocchio as pin
from linkages import load_linkage
from loops import next_state, output

import dynident as di
from dynident.control.controller import pd
from dynident.control.reference import Reference
from dynident.core.arrays import Array
from dynident.dynamics.idim import Idim
from dynident.robot.closure import Closure
from dynident.robot.model import Robot

Motion = tuple[Array, Array, Array]
"""q, dq, ddq."""


def plan_motion(
    robot: Robot, seconds: float, rate: float, seed: int, reach: float = 0.45, base: float = 0.25
) -> tuple[Array, Motion]:
    """Driven joints along a Fourier series about the assembled chain; all joints q, dq, ddq."""
    rng, t = np.random.default_rng(seed), np.arange(round(seconds * rate)) / rate
    closure = Closure(robot)
    q, dq, ddq = (np.zeros((len(t), robot.n)) for _ in range(3))
    q += closure.start
    for k in closure.driven:
        sizes = rng.uniform(0.4, 1.0, 5) / np.arange(1, 6)
        sizes *= reach / np.sum(sizes)
        for h, size in enumerate(sizes, 1):
            w, phase = 2.0 * np.pi * base * h, rng.uniform(0.0, 2.0 * np.pi)
            q[:, k] += size * (np.sin(w * t + phase) - np.sin(phase))
            dq[:, k] += size * w * np.cos(w * t + phase)
            ddq[:, k] -= size * w * w * np.sin(w * t + phase)
    q = closure.close(q, "plan", rate)
    return t, (q, *closure.move(q, dq, ddq))


def follow_in_mujoco(
    path: Path, robot: Robot, motion: Motion, rate: float, steps: int, values: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Logged q (all joints) and torque under stiff servos; stiff constraints hold the loops.

    ``values`` are MuJoCo's damping and frictionloss of all joints, armature of driven ones.
    """
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = 1.0 / (rate * steps)
    model.opt.iterations, model.opt.tolerance = 200, 1e-14
    # twice the step is the stiffest that MuJoCo takes
    model.eq_solref[:] = (2.0 * model.opt.timestep, 1.0)
    model.eq_solimp[:] = (0.999, 0.9999, 1e-4, 0.5, 2.0)
    model.dof_damping[:], model.dof_armature[:] = values
    data = mujoco.MjData(model)
    q, dq, ddq = motion
    driven = np.flatnonzero(~robot.passive)
    data.qpos[:], data.qvel[:] = q[0], dq[0]
    kp, kd, step = 4000.0, 60.0, model.opt.timestep
    found, torque = np.zeros_like(q), np.zeros_like(q)
    for t in range(len(q)):
        for k in range(steps):  # the law acts at every step, so that no torque is held
            late = k * step
            asked = q[t] + late * dq[t] + 0.5 * late**2 * ddq[t], dq[t] + late * ddq[t]
            u = kp * (asked[0] - data.qpos) + kd * (asked[1] - data.qvel)
            if k == 0:  # what acts about the instant: each torque is held for a step
                found[t], torque[t, driven] = data.qpos, 0.5 * (data.ctrl * (t > 0) + u[driven])
            data.ctrl[:] = u[driven]
            mujoco.mj_step(model, data)
    return found, torque


def make_log(
    robot: Robot, q: Array, tau: Array, rate: float, noise: float, seed: int, name: str
) -> di.Recording:
    """A recording of driven joints alone, torques with white noise [Nm]."""
    rng = np.random.default_rng(seed)
    driven = ~robot.passive
    noisy = tau + noise * rng.normal(size=tau.shape) * driven
    joints = [n for n, own in zip(robot.joint_names, driven, strict=True) if own]
    columns = {f"q_{n}": q[:, robot.joint_names.index(n)] for n in joints}
    columns |= {f"tau_{n}": noisy[:, robot.joint_names.index(n)] for n in joints}
    return di.read_log(pandas.DataFrame(columns), robot, rate=rate, name=name)


def make_twin(
    robot: Robot, seed: int, noise: float = 0.05, seconds: float = 6.0
) -> tuple[di.Recording, tuple[Array, Array]]:
    """A log that MuJoCo made with friction and rotors, and the values that it was made with."""
    _, motion = plan_motion(robot, seconds, 200.0, seed)
    damping, armature = np.where(robot.passive, 0.02, 0.3), np.where(robot.passive, 0.0, 0.05)
    assert robot.source is not None
    q, tau = follow_in_mujoco(robot.source, robot, motion, 200.0, 5, (damping, armature))
    return make_log(robot, q, tau, 200.0, noise, seed, f"made{seed}"), (damping, armature)


def state_truth(idim: Idim, values: tuple[Array, Array]) -> Array:
    theta = idim.join(idim.robot.nominal)
    for k, each in enumerate(idim.parameters):
        symbols = {"fv": values[0], "Ia": values[1]}
        if each.symbol in symbols:
            theta[k] = symbols[each.symbol][each.number - 1]
    return theta


def build_pinocchio(robot: Robot) -> tuple[Any, Any, Any]:
    """The tree and its loops as Pinocchio has them."""
    model, ids = pin.Model(), [0]
    model.gravity.linear = np.array(robot.gravity)
    for joint, phi in zip(robot.joints, robot.nominal, strict=True):
        at = pin.SE3(joint.rotation, joint.translation)
        kind = pin.JointModelPrismaticUnaligned
        if joint.kind == "revolute":
            kind = pin.JointModelRevoluteUnaligned
        turn = kind(*joint.axis)
        ids.append(model.addJoint(ids[joint.parent], turn, at, joint.name))
        body = pin.Inertia.FromDynamicParameters(phi)
        model.appendBodyToJoint(ids[-1], body, pin.SE3.Identity())
    loops, found = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in robot.loops:
        frames = [pin.SE3(loop.rotations[k], loop.translations[k]) for k in range(2)]
        one, other = (ids[b] for b in loop.bodies)
        ends = (one, frames[0], other, frames[1])
        loops.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *ends, pin.LOCAL))
        found.append(loops[-1].createData())
    return model, loops, found


def build_loop(name: str, folder: Path, **options: Any) -> tuple[di.Loop, Array]:
    """A motion of 0.3 s under a law, with friction in all joints."""
    robot = load_linkage(name, folder)
    idim = di.build_idim(robot, options.pop("friction", "coulomb-viscous"))
    _, motion = plan_motion(robot, 0.3, 200.0, 1)
    values = {"Ia": 0.05, "fv": 0.3, "fc": 0.2, "off": 0.01}
    drives = np.array([values.get(each.symbol, 5.0) for each in idim.drives])
    theta = idim.join(robot.nominal, drives)
    law = options.pop("law", pd([400.0] * robot.n, [20.0] * robot.n, rate=200.0))
    given = {"width": np.full(robot.n, 0.05), "substeps": 2, "integrator": "ode4", **options}
    return di.Loop(idim, law, Reference(200.0, *motion), **given), theta


def roll_out_in_python(loop: di.Loop, theta: Array) -> tuple[Array, ...]:
    """Held torques, classical Runge-Kutta steps of the driven joints, and loops closed again."""
    closure = Closure(loop.idim.robot)
    control, a, h = loop.controller, closure.driven, 1.0 / (loop.rate * loop.substeps)
    hold, delay = loop.steps
    q, dq = loop.reference.q[0], loop.reference.dq[0]
    z, late, found = np.zeros((len(q), control.states)), None, []

    def respond(q: Array, speed: Array, u: Array) -> tuple[Array, Array]:
        dq = closure.find_null_space(q[None])[0][:, a] @ speed
        # states of a stage are open by the order of the step
        G, gamma = closure.find_null_space(q[None])[0][:, a], closure.find_drift(q[None], dq[None])
        at, still = np.repeat(q[None], len(a) + 1, axis=0), np.repeat(dq[None], len(a) + 1, axis=0)
        rise = np.vstack([gamma, gamma + G.T])
        tau = loop.idim.torque(theta, at, still, rise, loop.width)[:, a]
        change = np.linalg.solve((tau[1:] - tau[0]).T, u[a] - tau[0])
        return dq, G @ change + gamma[0]

    for step in range(loop.samples * loop.substeps):
        k, sub = divmod(step, loop.substeps)
        if step % hold == 0:
            asked = (loop.reference.q[k], loop.reference.dq[k], loop.reference.ddq[k])
            w = np.stack([*asked, q, dq], axis=1)
            decided = loop.gain * output(control, z, w)
            z = next_state(control, z, w)
        late = deque([decided] * delay) if late is None else late
        late.append(decided)
        u = late.popleft()
        moved = changed = v = rise = np.zeros_like(q)
        for when, weight in ((0.0, 1.0), (0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
            v, rise = respond(q + when * h * v, dq[a] + when * h * rise[a], u)
            if sub == 0 and not when:
                found.append((q, dq, rise, u))
            moved, changed = moved + weight * v, changed + weight * rise
        (q,), gap = closure.correct((q + h / 6.0 * moved)[None])
        assert gap[0] < 1e-12
        dq = closure.find_null_space(q[None])[0] @ (dq + h / 6.0 * changed)
    return tuple(np.array(column) for column in zip(*found, strict=True))
