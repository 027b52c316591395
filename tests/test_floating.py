"""Floating bases, contacts and missing sensors: logs of MuJoCo read as a stranger's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import cvxpy
import numpy as np
import pinocchio as pin
import pytest
from floating import solo
from robots import pin_model, urdf
from thin import first, long

import dynident as di
from dynident.consistency.constraints import CONSISTENCY
from dynident.consistency.constraints.consistency import MassInertia, PositiveDrives
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.diagnosis.examine import examine
from dynident.dynamics.base import base_parameters
from dynident.dynamics.contacts import evaluate_seat_motion, follow_frame
from dynident.dynamics.equations import Observability
from dynident.dynamics.idim import build_idim
from dynident.dynamics.tree import build_tree
from dynident.experiments.determined import find_determined_parameters
from dynident.recording.floating import FloatingOptions
from dynident.recording.read import read_log
from dynident.recording.recording import Recording
from dynident.recording.repairs import LogRepair
from dynident.regression.problem import Problem
from dynident.robot.contacts import ContactSpec, add_contacts
from dynident.robot.cut import cut_off_limb
from dynident.robot.model import WRENCH, Contact, Robot

legged = pytest.importorskip("legged", reason="MuJoCo is not installed", exc_type=ImportError)

KINDS = ("full", "joints", "base", "null-space")
RATE = {"solo12": 500, "anymal": 500, "talos": 250, "ur5": 250}
"""Of the logs [Hz]."""
ENOUGH = 250
"""Rows a second that are taken of those with derivatives."""
LENGTH = {"solo12": 2.0, "anymal": 3.0, "talos": 3.0, "ur5": 2.0}
"""Of most logs [s]."""


@cache
def made(robot: str, motion: str, seconds: float, seed: int = 0, locked: tuple = ()):
    return legged.make(
        robot, motion, seconds, seed, rate=RATE[robot], locked=dict(locked), knots=125.0, lead=0.5
    )


def robot_of(log, floating: bool = True) -> Robot:
    robot = di.load_robot(log.urdf, floating=floating)
    specs = [
        ContactSpec(name=c.name, frame=c.frame, kind="point" if c.point else "surface")
        for c in log.contacts
    ]
    return add_contacts(robot, specs) if floating else robot


def read(
    log, robot: Robot, folder: Path, wanted: FloatingOptions, without: Sequence[str] = ()
) -> Recording:
    position, rotation = log.mount
    wanted = replace(
        wanted,
        imu_position=tuple(position.tolist()),
        imu_rpy=tuple(pin.rpy.matrixToRpy(rotation).tolist()),
    )
    columns = [name for name in log.columns if not name.startswith(tuple(without))]
    if "ddq_" in "".join(columns):  # exact at every instant, and so at one in some, too
        thin = round(log.rate / ENOUGH)
        log = replace(log, columns={name: log.columns[name][::thin] for name in columns})
    legged.write_csv(log, folder / "log.csv", columns)
    return read_log(folder / "log.csv", robot, floating=wanted)


WRENCHES = tuple(f"{part}_" for part in (*legged.FORCE, *legged.MOMENT))


def exact(recording: Recording) -> di.Samples:
    """As it was logged: nothing is filtered but the rows."""
    return di.prepare(recording, bandwidth=25.0, position_hz=1e4, derivatives="measured")


def off(problem: Problem, theta: Array) -> float:
    """Largest error of a combination, over its size or a thousandth of the largest."""
    truth = problem.base.matrix @ theta
    system = problem.factors.weighted(problem.factors.ones)
    assert system.condition()[1] == problem.base.count
    size = np.maximum(np.abs(truth), 1e-3 * np.max(np.abs(truth)))
    return float(np.max(np.abs(system.solve() - truth) / size))


@pytest.mark.parametrize(
    ("name", "motions", "kind"),
    [
        *(("solo12", ("trot",), kind) for kind in KINDS),
        pytest.param("anymal", ("walk",), "null-space", marks=pytest.mark.long),
        *(
            pytest.param("talos", ("sway", "squat"), kind, marks=pytest.mark.long)
            for kind in KINDS
            if kind != "joints"
        ),
    ],
)
def test_every_kind_of_equations_gives_what_it_determines(tmp_path, name, motions, kind):
    logs = [made(name, motion, LENGTH[name]) for motion in motions]
    robot = robot_of(logs[0])
    without = {"null-space": WRENCHES, "base": ("tau_",)}.get(kind, ())
    samples = [
        exact(read(log, robot, tmp_path, FloatingOptions(equations=kind), without)) for log in logs
    ]
    problem = Problem(robot, samples, friction="viscous")
    assert problem.base.observed[0].equations == kind
    assert off(problem, logs[0].theta) < 1e-6


def test_what_a_log_states_is_found_from_its_columns(tmp_path):
    log = made("solo12", "trot", 2.0)
    robot = robot_of(log)
    for without, kind in ((WRENCHES, "null-space"), (("tau_",), "base"), ((), "full")):
        recording = read(log, robot, tmp_path, FloatingOptions(), without)
        problem = Problem(robot, exact(recording), friction="viscous")
        assert [each.equations for each in problem.base.observed] == [kind]


@pytest.mark.long
@pytest.mark.parametrize("signal", ["contact_", "speed"])
def test_contacts_bear_by_their_column_or_by_their_speed(tmp_path, signal):
    log = made("solo12", "sway", 4.0)
    robot = robot_of(log)
    without = WRENCHES if signal == "contact_" else (*WRENCHES, "contact_")
    recording = read(log, robot, tmp_path, FloatingOptions(equations="null-space"), without)
    problem = Problem(robot, exact(recording), friction="viscous")
    names = tuple(contact.name for contact in robot.contacts)
    assert names in problem.base.observed[0].free
    assert off(problem, log.theta) < 1e-6


@pytest.mark.parametrize(
    ("name", "motion", "frame", "floating"),
    [
        long("talos", "sway", "wrist_left_ft_link", True),
        long("talos", "sway", "arm_right_3_link", True),
        ("ur5", "swing", "forearm_link", False),
        ("ur5", "carried", "forearm_link", True),
    ],
)
@pytest.mark.parametrize("kind", first(["base", "full"]))
def test_a_limb_beyond_a_sensor_is_a_floating_robot(tmp_path, name, motion, frame, floating, kind):
    log = made(name, motion, LENGTH[name])
    cut = next(each for each in log.cuts if each.frame == frame)
    limb = cut_off_limb(robot_of(log, floating), frame, cut.name)
    assert limb.joint_names == cut.joints
    recording = read(log, limb, tmp_path, FloatingOptions(equations=kind))
    problem = Problem(limb, exact(recording), friction="viscous")
    assert off(problem, log.theta_beyond(cut)) < 1e-6


def test_the_bias_of_a_sensor_in_a_limb_is_found(tmp_path):
    log = made("ur5", "carried", 2.0)
    cut = next(each for each in log.cuts if each.frame == "forearm_link")
    bias = np.array([3.0, -2.0, 4.0, 0.1, -0.2, 0.3])
    columns = dict(log.columns)
    for name, own in zip(cut.columns, bias, strict=True):
        columns[name] = columns[name] + own
    limb = cut_off_limb(robot_of(log), cut.frame, cut.name)
    sensor = replace(limb.contacts[0], estimate=("bias",))
    limb = replace(limb, contacts=(sensor, *limb.contacts[1:]))
    recording = read(
        replace(log, columns=columns), limb, tmp_path, FloatingOptions(equations="base")
    )
    problem = Problem(limb, exact(recording), friction="viscous")
    assert problem.base.names[-6:] == tuple(f"{part}0_{cut.name}" for part in WRENCH)
    assert off(problem, np.concatenate([log.theta_beyond(cut), bias])) < 1e-6


def test_a_plate_under_an_arm_is_held_where_its_bias_is_a_weight(tmp_path):
    log = made("ur5", "swing", 2.0)
    robot = robot_of(log)
    plate = replace(robot.contacts[0], estimate=("bias",))
    robot = replace(robot, contacts=(plate,))
    recording = read(log, robot, tmp_path, FloatingOptions(equations="base", base="fixed"))
    problem = Problem(robot, exact(recording), friction="viscous")
    held = {f"{part}0_{plate.name}" for part in ("fz", "mx", "my")}
    assert held <= set(problem.idim.structure.stated)
    fit = di.identify(problem, "wls", doctor=False)
    assert any("so they are held at the values in [[contact]]" in note for note in fit.warnings)


@pytest.mark.long
def test_logs_with_other_joints_locked_make_one_fit(tmp_path):
    one = made("solo12", "sway", 2.0, 1, (("FL_HAA", 0.05), ("FR_HAA", -0.05)))
    two = made("solo12", "sway", 2.0, 2, (("HL_KFE", 1.6), ("HR_KFE", 1.6)))
    robot = robot_of(one)
    samples = []
    for log in (one, two):
        recording = read(log, robot, tmp_path, FloatingOptions(locked=dict(log.locked)))
        samples.append(exact(recording))
    both = Problem(robot, samples, friction="viscous")
    alone = [Problem(robot, own, friction="viscous").base.count for own in samples]
    assert max(alone) < both.base.count
    assert off(both, one.theta) < 1e-6


def test_kinds_of_equations_mix_in_one_fit(tmp_path):
    log = made("solo12", "trot", 2.0)
    robot = robot_of(log)
    joints = exact(read(log, robot, tmp_path, FloatingOptions(equations="joints")))
    free = exact(read(log, robot, tmp_path, FloatingOptions(equations="null-space"), WRENCHES))
    mixed = Problem(robot, [joints, free], friction="viscous")
    assert [each.equations for each in mixed.base.observed] == ["joints", "null-space"]
    assert len(mixed.groups) > robot.dof
    assert off(mixed, log.theta) < 1e-6


@pytest.mark.long
def test_an_arm_on_a_force_plate_says_the_same_by_its_joints_and_by_its_base(tmp_path):
    """Both kinds from one noisy log agree within their intervals."""
    log = legged.noisy(made("ur5", "swing", 5.0), 3)
    robot = robot_of(log)
    wanted = [FloatingOptions(equations=kind, base="fixed") for kind in ("joints", "base")]
    fits = []
    for each in wanted:
        samples = di.prepare(read(log, robot, tmp_path, each), bandwidth=10.0)
        fits.append(di.identify(Problem(robot, samples, friction="viscous"), method="wls"))
    # what the base alone determines, of the links beyond the first joint
    of_joints, of_base = fits
    space = np.linalg.qr(of_joints.base.matrix.T)[0]
    rows = of_base.base.matrix
    shared = np.linalg.norm(rows - rows @ space @ space.T, axis=1) < 1e-9
    assert np.sum(shared) >= 20
    through = rows[shared] @ np.linalg.pinv(of_joints.base.matrix)
    found = through @ of_joints.estimate.beta - of_base.estimate.beta[shared]
    one = through @ of_joints.estimate.covariance.matrix @ through.T
    std = np.sqrt(np.diag(one) + of_base.estimate.covariance.std[shared] ** 2)
    assert np.mean(np.abs(found) < 2.0 * std) > 0.85
    assert np.max(np.abs(found) / std) < 5.0


def test_base_parameters_are_those_of_the_rows():
    robot = di.load_robot(urdf("solo12"), floating=True)
    feet = [ContactSpec(name=f"{leg}_FOOT", kind="point") for leg in ("FL", "FR", "HL", "HR")]
    robot = add_contacts(robot, feet)
    found = find_determined_parameters(build_idim(robot, "none"), KINDS)
    assert dict(zip(found.kinds, found.counts, strict=True)) == {
        "full": 94, "joints": 84, "base": 94, "null-space": 94,
    }  # fmt: skip
    # all that joint torques alone lack is the base link's
    lost = [found.base.names[k].rstrip("R") for k in np.flatnonzero(~found.known[:, 1])]
    assert lost == [f"{symbol}0" for symbol in (
        "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mx", "my", "mz", "m",
    )]  # fmt: skip


def test_talos_has_the_base_parameters_of_the_literature():
    robot = di.load_robot(urdf("talos"), floating=True)
    assert base_parameters(build_idim(robot, "none")).count == 318


def test_a_base_that_stands_shows_less():
    robot = di.load_robot(urdf("solo12"), floating=True)
    idim = build_idim(robot, "none")
    still = base_parameters(idim, observed=(Observability(still=True),))
    assert still.count < base_parameters(idim).count
    assert "m0R" in still.names


@pytest.mark.parametrize("name", ["solo12", "talos"])
def test_jacobians_of_frames_are_pinocchios(name):
    model = pin_model(urdf(name), floating=True)
    tree = build_tree(di.load_robot(urdf(name), floating=True))
    rng = np.random.default_rng(0)
    pin.seed(0)
    placement = pin.SE3.Random()
    q = np.array([pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))] * 2)
    for body in rng.integers(0, tree.bodies, 4):
        found = follow_frame(tree, int(body), placement.rotation, placement.translation, q)
        frame = pin.Frame(f"frame {body}", int(body) + 1, placement, pin.FrameType.OP_FRAME)
        k = model.addFrame(frame)
        data = model.createData()
        J = pin.computeFrameJacobian(model, data, q[0], k, pin.LOCAL)
        pin.framesForwardKinematics(model, data, q[0])
        np.testing.assert_allclose(found.jacobian[0], J, atol=1e-12)
        np.testing.assert_allclose(found.turn[0], data.oMf[k].rotation, atol=1e-12)
        np.testing.assert_allclose(found.origin[0], data.oMf[k].translation, atol=1e-12)


def test_the_motion_of_a_carried_frame_is_pinocchios():
    path = urdf("solo12")
    model, robot = pin_model(path, floating=True), di.load_robot(path, floating=True)
    rng = np.random.default_rng(1)
    pin.seed(1)
    q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
    v, a = rng.normal(size=(2, model.nv))
    placement = pin.SE3.Random()
    seat = Contact("seat", "seat", 5, placement.rotation, placement.translation)
    found = evaluate_seat_motion(build_tree(robot), robot, seat, (q[None], v[None], a[None]))[0]
    k = model.addFrame(pin.Frame("seat", 6, placement, pin.FrameType.OP_FRAME))
    data = model.createData()
    pin.forwardKinematics(model, data, q, v, a)
    pin.updateFramePlacements(model, data)
    classical = pin.getFrameClassicalAcceleration(model, data, k, pin.LOCAL)
    proper = classical.linear - data.oMf[k].rotation.T @ robot.gravity
    velocity = pin.getFrameVelocity(model, data, k, pin.LOCAL)
    expected = np.concatenate([velocity.angular, classical.angular, proper])
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.long
def test_a_constrained_answer_is_certified_and_knows_the_total_mass(tmp_path):
    log = legged.noisy(made("solo12", "trot", 2.0), 1)
    robot = robot_of(log)
    recording = read(log, robot, tmp_path, FloatingOptions())
    for kind in ("full", "base"):
        samples = di.prepare(replace(recording, equations=kind), bandwidth=15.0)
        problem = Problem(robot, samples, friction="viscous")
        fit = di.identify(problem, doctor=False, bootstrap=0)
        assert fit.consistent
        assert fit.estimate.certificate is not None
        mass, truth = fit.phi[:, 0].sum(), log.phi[:, 0].sum()
        assert abs(mass - truth) < 0.01 * truth


@pytest.mark.parametrize(
    ("name", "motion", "kind", "thorough"),
    [
        pytest.param("solo12", "trot", "full", True, marks=pytest.mark.long),
        pytest.param("solo12", "sway", "joints", True, marks=pytest.mark.long),
        pytest.param("solo12", "sway", "null-space", True, marks=pytest.mark.long),
        pytest.param("anymal", "walk", "null-space", True, marks=pytest.mark.long),
        pytest.param("solo12", "trot", "full", False, marks=pytest.mark.long),
        pytest.param("talos", "sway", "full", False, marks=pytest.mark.slow),
    ],
)
def test_the_doctor_finds_nothing_in_sound_logs_and_a_torque_of_the_other_sign(
    tmp_path, name, motion, kind, thorough
):
    log = legged.noisy(made(name, motion, 4.0 if motion == "sway" else LENGTH[name]), 1)
    robot = robot_of(log)
    without = WRENCHES if kind == "null-space" else ()
    samples = di.prepare(read(log, robot, tmp_path, FloatingOptions(equations=kind), without), 10.0)
    problem = Problem(robot, samples, friction="viscous")
    assert examine(problem.base, problem.samples, thorough=thorough) == ((),)
    sign = np.where(np.arange(robot.n) == 4, -1.0, 1.0)
    wrong = problem.on(samples.driven(sign * samples.tau))
    ((first, *_),) = examine(wrong.base, wrong.samples, thorough=thorough)
    assert first.what == f"the torque of {robot.joint_names[4]} has the opposite sign"
    assert first.repair == LogRepair(sign={"tau": tuple(sign.tolist())})


@pytest.mark.long
def test_forces_on_the_ground_are_refused(tmp_path):
    log = made("solo12", "sway", 4.0)
    robot = robot_of(log)
    recording = read(log, robot, tmp_path, FloatingOptions())
    turned = {name: -wrench for name, wrench in recording.wrenches.items()}
    problem = Problem(robot, exact(replace(recording, wrenches=turned)), friction="viscous")
    with pytest.raises(InputError, match="sign = -1"):
        di.identify(problem)


@pytest.mark.long
@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"imu_rpy": (0.0, 0.0, 0.0)}, r"imu_rpy = \[0.1, -0.2, 1.2\]"),
        ({"imu_position": (0.0, 0.0, 0.0)}, r"imu_position = \[0.04\d*, -0.03\d*, 0.05\d*\]"),
    ],
)
def test_a_unit_that_is_mounted_otherwise_than_said_is_told_where_it_is(tmp_path, stated, words):
    log = legged.noisy(made("solo12", "trot", 8.0), 1)
    robot = robot_of(log)
    legged.write_csv(log, tmp_path / "log.csv")
    position, rotation = log.mount
    wanted = {
        "imu_position": tuple(position.tolist()),
        "imu_rpy": tuple(pin.rpy.matrixToRpy(rotation).tolist()),
    }
    recording = read_log(tmp_path / "log.csv", robot, floating=FloatingOptions(**(wanted | stated)))
    problem = Problem(robot, di.prepare(recording, bandwidth=10.0), friction="viscous")
    with pytest.raises(InputError, match=words):
        di.identify(problem)


@pytest.mark.long
def test_the_notes_semidefinite_program_with_contact_forces_has_our_criterion(monkeypatch):
    """``[u - |rho_2|^2, (rho_1 - R_1 B x)^T; ., 1] >= 0`` over ``[L, S(l)^T; S(l), m 1] >= 0``.

    The notes' program on the same rows, contact forces on the right-hand side: its own QR, its
    own feasibility of each link, and the criterion by its Schur complement.
    """
    made_up = solo(3.0, seed=5)
    rng = np.random.default_rng(0)
    recording = made_up.recording
    noise = 0.3 * rng.normal(size=recording.tau.shape)
    samples = exact(replace(recording, tau=recording.tau + noise))
    problem = Problem(made_up.robot, samples, friction="viscous")
    # the notes keep no distance from the boundary
    monkeypatch.setitem(CONSISTENCY, "inertia", (MassInertia(0.0), PositiveDrives(0.0)))
    ours = di.identify(problem, prior="none", consistency="inertia", doctor=False, bootstrap=0)
    p, matrix = problem.base.count, problem.base.matrix
    blocks = []
    for rows in problem.rows():
        groups = zip(problem.columns, rows.X, rows.y, ours.estimate.sigma, strict=True)
        for columns, X, y, sigma in groups:
            dense = np.zeros((len(y), p + 1))
            dense[:, columns], dense[:, -1] = X / sigma, y / sigma
            blocks.append(dense)
    whole = np.vstack(blocks)
    Q, R = np.linalg.qr(whole[:, :p])
    rho = Q.T @ whole[:, -1]
    rest = float(np.sum((whole[:, -1] - Q @ rho) ** 2))
    x, excess = cvxpy.Variable(matrix.shape[1]), cvxpy.Variable()
    links = []
    for k in range(made_up.robot.n + 1):
        m, mx, my, mz, xx, xy, yy, xz, yz, zz = (x[10 * k + i] for i in range(10))
        S = cvxpy.bmat([[0, -mz, my], [mz, 0, -mx], [-my, mx, 0]])
        L = cvxpy.bmat([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        links.append(cvxpy.bmat([[L, S.T], [S, m * np.eye(3)]]) >> 0)
    positive = [x[k] >= 0 for k in np.flatnonzero(problem.idim.positive)]
    error = rho - R @ matrix @ x
    within = cvxpy.sum_squares(error) <= excess
    program = cvxpy.Problem(cvxpy.Minimize(excess), [*links, *positive, within])
    program.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    theirs = rest + float(excess.value)
    left = whole[:, -1] - whole[:, :p] @ ours.estimate.beta
    assert float(left @ left) == pytest.approx(theirs, rel=1e-8)
    assert excess.value > 1e-6 * rest  # some link is at its boundary


def test_toy_logs_are_exact():
    made_up = solo(3.0)
    problem = Problem(made_up.robot, exact(made_up.recording), friction="viscous")
    assert off(problem, made_up.theta) < 1e-9
