"""Closed chains: their motion, their equations and what logs tell of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from linkage_logs import build_pinocchio, make_twin, plan_motion, state_truth
from linkages import EACH, FIVE_BAR, SPATIAL, load_linkage, write_five_bar, write_spatial
from thin import first

import dynident as di
from dynident.control.controller import pd
from dynident.control.reference import Reference
from dynident.core.errors import InputError
from dynident.dynamics.base import base_parameters, draw_random_states
from dynident.dynamics.plain import make_base, put_base
from dynident.dynamics.whole import WholeModel
from dynident.robot.closure import Closure
from dynident.robot.load import load_robot
from dynident.robot.spec import LoopSpec, RobotSpec

COUNTS = {
    "five_bar.xml": 11,
    "palletiser.xml": 18,
    "spatial.urdf": 17,
    "delta.urdf": 39,
    "leg.urdf": 28,
}


@pytest.fixture(scope="module", params=EACH)
def robot(request, tmp_path_factory):
    return load_linkage(request.param, tmp_path_factory.mktemp("linkage"))


@pytest.fixture(scope="module")
def palletiser(tmp_path_factory):
    return load_linkage("palletiser.xml", tmp_path_factory.mktemp("palletiser"))


def draw_states(robot, samples=20, seed=0):
    rng, closure = np.random.default_rng(seed), Closure(robot)
    q = closure.draw(2 * samples, rng)[:samples]
    return q, *closure.move(q, rng.normal(size=q.shape), rng.normal(scale=3.0, size=q.shape))


# motion


def test_passive_joints_follow_and_move_as_differences_say(robot):
    closure, errors = Closure(robot), []
    for rate in (250.0, 500.0):
        t, (q, dq, ddq) = plan_motion(robot, 1.0, rate, 1)
        assert np.abs(closure.measure(q)).max() < 1e-12
        speed = np.gradient(q, t, axis=0)[1:-1] - dq[1:-1]
        change = (q[2:] - 2.0 * q[1:-1] + q[:-2]) * rate**2 - ddq[1:-1]
        errors.append((np.abs(speed).max(), np.abs(change).max()))
    for coarse, fine in zip(*errors, strict=True):
        assert 3.0 < coarse / fine < 5.0  # differences of second order


def test_gaps_change_as_their_jacobian_says(robot):
    """Off the loop, too, where Newton's steps start."""
    closure, rng = Closure(robot), np.random.default_rng(2)
    q = closure.draw(10, rng)[:4] + 0.02 * rng.normal(size=(4, robot.n))
    _, J = closure.linearise(q)
    step = 1e-6
    for k in range(robot.n):
        ahead, behind = (q + sign * step * np.eye(robot.n)[k] for sign in (1.0, -1.0))
        slope = (closure.measure(ahead) - closure.measure(behind)) / (2.0 * step)
        np.testing.assert_allclose(J[:, :, k], slope, atol=1e-8)


@pytest.mark.parametrize("kind", ["axis", "planar", "weld"])
def test_kinds_of_loops_are_one_where_axes_are_parallel(kind, tmp_path):
    """A four-bar in a plane moves alike, whatever else of its frames meets there."""
    text = write_spatial().replace('rpy="1.5708 0 0.2"', "").replace('"1 0 0"', '"0 0 1"')
    path = tmp_path / "four_bar.urdf"
    path.write_text(text.replace('<axis xyz="0 1 0"/>', '<axis xyz="0 0 1"/>'))
    at, start = ((0.42, 0.0, 0.0), (0.0, 0.25, 0.0)), {"c1": 0.3, "lever": 0.2}
    # the rod's second joint is locked, and a weld holds its angle to the lever
    passive = ("c1", "lever")
    spec = LoopSpec(kind=kind, links=("coupler", "rocker"), at=at, passive=passive, start=start)
    if kind == "weld":
        with pytest.raises(InputError, match="3 constraints, but 2 of its joints"):
            load_robot(path, locked={"c2": 0.0}, loops=[spec])
        return
    if kind == "axis":
        at = ((0.42, 0.0, 0.0), (0.0, 0.25, 0.02))
        spec = spec.model_copy(update={"at": at})
    robot = load_robot(path, locked={"c2": 0.0}, loops=[spec])
    point = spec.model_copy(update={"kind": "point", "at": ((0.42, 0.0, 0.0), (0.0, 0.25, 0.02))})
    other = load_robot(path, locked={"c2": 0.0}, loops=[point])
    _, (q, dq, ddq) = plan_motion(robot, 0.5, 200.0, 3)
    closed = Closure(other).close(q)
    np.testing.assert_allclose(closed, q, atol=1e-9)
    for own, same in zip((dq, ddq), Closure(other).move(q, dq, ddq), strict=True):
        np.testing.assert_allclose(own, same, atol=1e-7)


def test_the_way_of_assembling_is_kept(robot):
    """From sample to sample, and however far apart the first is from the file's."""
    closure = Closure(robot)
    _, (q, _, _) = plan_motion(robot, 2.0, 100.0, 4, reach=0.6)
    moved = q[::-1][:150]
    np.testing.assert_allclose(closure.close(moved), moved, atol=1e-9)
    driven = np.where(robot.passive, 0.0, q)
    np.testing.assert_allclose(closure.close(driven, start=q[0]), q, atol=1e-9)


def test_where_a_chain_ends_is_refused_with_time_and_place(tmp_path):
    robot = load_linkage("five_bar.xml", tmp_path)
    closure = Closure(robot)
    q = np.repeat(closure.start[None], 400, axis=0)
    q[:, [0, 2]] += np.linspace(0.0, 1.2, 400)[:, None] * [-1.0, 1.0]  # until rods are stretched
    with pytest.raises(InputError, match=r"run: at [\d.]+ s \(crank_l = -[\d.]+, .* loop tip"):
        closure.close(q, "run", 100.0)


# equations


def test_dynamics_are_pinocchios_constrained_ones(robot):
    idim = di.build_idim(robot, "none")
    model, (q, dq, ddq) = WholeModel(idim, idim.nominal), draw_states(robot)
    tau = model.inverse_dynamics(q, dq, ddq)
    assert not tau[:, robot.passive].any()
    np.testing.assert_allclose(idim.regressor(q, dq, ddq) @ idim.nominal, tau, atol=1e-12)
    np.testing.assert_allclose(model.forward_dynamics(q, dq, tau), ddq, atol=1e-10)
    tree, loops, found = build_pinocchio(robot)
    data = tree.createData()
    pin.initConstraintDynamics(tree, data, loops, found)
    exact = pin.ProximalSettings(1e-14, 1e-10, 300)
    for k in range(len(q)):
        given = pin.constraintDynamics(tree, data, q[k], dq[k], tau[k], loops, found, exact)
        np.testing.assert_allclose(given, ddq[k], atol=1e-9)


def test_base_parameters_are_as_many_as_the_rank(robot):
    base = base_parameters(di.build_idim(robot, "none"))
    assert base.count == COUNTS[robot.source.name]
    W = base.idim.regressor(*draw_random_states(base.idim, 150, 7))
    rows = W[:, ~robot.passive].reshape(-1, W.shape[2])
    s = np.linalg.svd(rows, compute_uv=False)
    assert s[base.count - 1] > 1e-4 * s[0] > 1e3 * s[base.count]
    theta = base.idim.nominal
    same = base.standard(base.matrix @ theta)
    np.testing.assert_allclose(rows @ same, rows @ theta, atol=1e-9)


def test_friction_of_passive_joints_acts_on_drives(palletiser):
    """By power: what rubs in all joints takes what the drives give."""
    idim = di.build_idim(palletiser, "coulomb-viscous")
    assert "Ia3" not in idim.names
    assert "off3" not in idim.names
    q, dq, ddq = draw_states(palletiser)
    theta = np.zeros(len(idim.names))
    for k, name in enumerate(idim.names):
        theta[k] = {"fv": 0.3, "fc": 0.7}.get(name[:2], 0.0)
    tau = idim.torque(theta, q, dq, ddq)
    power = np.sum(0.3 * dq**2 + 0.7 * np.abs(dq), axis=1)
    np.testing.assert_allclose(np.sum(tau * dq, axis=1), power, rtol=1e-12)


def test_energy_is_what_the_drives_give(palletiser):
    """Mass matrices, gravity and equations of motion agree: ``d/dt (dq^T M dq / 2) = ...``."""
    idim = di.build_idim(palletiser, "none")
    model = WholeModel(idim, idim.nominal)
    t, (q, dq, ddq) = plan_motion(palletiser, 0.5, 1000.0, 5)
    kinetic = 0.5 * np.einsum("ti,tij,tj->t", dq, model.mass_matrix(q), dq)
    power = np.sum((model.inverse_dynamics(q, dq, ddq) - model.gravity(q)) * dq, axis=1)
    # central differences of a rate of 1 kHz
    scale = np.abs(power).max()
    np.testing.assert_allclose(
        np.gradient(kinetic, t)[1:-1] / scale, power[1:-1] / scale, atol=1e-4
    )


# logs


@pytest.fixture(scope="module")
def twins(palletiser):
    return [make_twin(palletiser, seed) for seed in (1, 2)]


@pytest.mark.long
def test_intervals_cover_what_mujoco_made(palletiser):
    """Reduced form of benchmarks/closed_chains.py: 22 intervals in each of ten noises."""
    log, values = make_twin(palletiser, 1, noise=0.0)
    inside = []
    for seed in range(10):
        own = log.tau + 0.05 * np.random.default_rng(seed).normal(size=log.tau.shape)
        samples = di.prepare(replace(log, tau=own * ~palletiser.passive), bandwidth=8.0)
        problem = di.Problem(palletiser, samples, "viscous")
        truth = problem.base.matrix @ state_truth(problem.idim, values)
        fit = di.identify(problem, "wls", doctor=False)
        z = (fit.estimate.beta - truth) / fit.estimate.covariance.std
        inside.append(np.abs(z) < 1.96)
    assert 0.88 < np.mean(inside) < 0.99  # 95 %, and intervals of one noise are not independent


@pytest.mark.parametrize(
    "method",
    first(["sequential", "energy", "nls", "rls", "ekf", "ga", "pf"], 4),
)
def test_methods_of_rows_find_what_mujoco_was_made_with(method, palletiser, twins):
    log, values = twins[0]
    problem = di.Problem(palletiser, di.prepare(log, bandwidth=8.0), "viscous")
    fit = di.identify(problem, method, doctor=False)
    error = fit.estimate.beta - problem.base.matrix @ state_truth(problem.idim, values)
    z = error / fit.estimate.covariance.std
    assert np.max(np.abs(z)) < 4.0
    assert np.mean(np.abs(z) < 1.96) > 0.8


@pytest.mark.long
def test_held_out_errors_are_noise(palletiser, twins):
    samples, held_out = (di.prepare(log, bandwidth=8.0) for log, _ in twins)
    assert twins[0][0].warnings == ()
    problem = di.Problem(palletiser, samples, "viscous")
    fit = di.identify(problem, validation=[held_out])
    (figure,) = fit.validation
    # of some 190 independent values a joint; the fit's own error comes beside
    noise = 0.05 * np.sqrt(2.0 * samples.filters[0].cutoff / samples.rate)
    for joint, passive in zip(figure.entries[0].joints, palletiser.passive, strict=True):
        assert np.isnan(joint.rmse) if passive else joint.rmse < 1.3 * noise
    assert fit.consistent
    assert fit.verdict.state == "trusted"


def test_a_result_with_loops_is_the_same_read_again(palletiser, twins):
    problem = di.Problem(palletiser, di.prepare(twins[0][0], bandwidth=8.0), "viscous")
    again = make_base(put_base(problem.base))
    q, dq, ddq = draw_states(palletiser, 3)
    theta = state_truth(again.idim, twins[0][1])
    found, same = (each.torque(theta, q, dq, ddq) for each in (problem.idim, again.idim))
    np.testing.assert_array_equal(found, same)


def test_measured_passive_joints_are_held_against_their_loop(palletiser, twins):
    log, _ = twins[0]
    kept = replace(log, tau=np.array(log.tau))
    names = palletiser.joint_names
    columns = {f"q_{n}": kept.q[:, k] + 0.01 * (n == "elbow") for k, n in enumerate(names)}
    columns |= {f"tau_{n}": kept.tau[:, k] for k, n in enumerate(names)}
    import pandas as pd

    read = di.read_log(pd.DataFrame(columns), palletiser, rate=200.0, name="whole")
    (warning,) = read.warnings
    assert "elbow is logged 0.01 (rms, mean 0.01) beside where the loop has it" in warning
    own = [
        di.Problem(palletiser, di.prepare(each, bandwidth=8.0)).samples[0] for each in (log, read)
    ]
    np.testing.assert_allclose(own[0].q, own[1].q, atol=1e-9)


def test_speeds_of_passive_joints_are_those_of_their_loops(palletiser, twins):
    log, _ = twins[0]
    own = [k for k in range(palletiser.n) if not palletiser.passive[k]]
    dq = np.gradient(log.q, 1.0 / log.rate, axis=0)
    columns = {"q": log.q[:, own], "dq": dq[:, own], "tau": log.tau[:, own]}
    named = {
        f"{key}_{palletiser.joint_names[k]}": signal[:, i]
        for key, signal in columns.items()
        for i, k in enumerate(own)
    }
    import pandas as pd

    read = di.read_log(pd.DataFrame(named), palletiser, rate=log.rate, name="driven")
    np.testing.assert_allclose(read.dq[1:-1], dq[1:-1], atol=2e-3 * np.abs(dq).max())


def test_torques_of_passive_joints_are_refused(palletiser, twins):
    log, _ = twins[0]
    tau = np.array(log.tau)
    tau[:, 2] = 1.0
    with pytest.raises(InputError, match="tau of elbow reaches 1, but it is passive"):
        di.Problem(palletiser, di.prepare(replace(log, tau=tau), bandwidth=8.0))


# files


def test_couplings_are_polynomials(tmp_path):
    text = write_five_bar()
    start, end = text.index("<equality>"), text.index("</equality>")
    law = '<joint name="rods" joint1="rod_r" joint2="rod_l" polycoef="0.1 -1 0.2"/>'
    path = tmp_path / "coupled.xml"
    path.write_text(text[:start] + "<equality>" + law + text[end:])
    robot = load_robot(path)
    assert robot.passive.tolist() == [False, False, False, True]
    closure = Closure(robot)
    q = closure.close(np.linspace(0.0, 0.5, 20)[:, None] * [1.0, 1.0, 1.0, 0.0])
    np.testing.assert_allclose(q[:, 3], 0.1 - q[:, 1] + 0.2 * q[:, 1] ** 2, atol=1e-12)
    dq, ddq = closure.move(q, np.ones_like(q), np.zeros_like(q))
    np.testing.assert_allclose(ddq[:, 3], 0.4 * dq[:, 1] ** 2, atol=1e-12)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"passive": ("c1", "lever")}, "3 constraints, but 2 of its joints have no drive"),
        ({"passive": ("c1", "c2", "leve")}, "no joint 'leve'; did you mean 'lever'"),
        ({"links": ("coupler", "rock")}, "no link 'rock'; did you mean 'rocker'"),
        ({"at": ((3.0, 0.0, 0.0), (0.0, 0.0, 0.0))}, "cannot be closed near"),
        ({"passive": ()}, "name its joints without a drive"),
        ({"kind": None, "links": (), "name": "x"}, "file has no loop 'x'; give kind"),
    ],
)
def test_loops_that_cannot_be_are_refused(changed, message, tmp_path):
    path = tmp_path / "spatial.urdf"
    path.write_text(write_spatial())
    with pytest.raises(InputError, match=message):
        load_robot(path, loops=[SPATIAL.model_copy(update=changed)])


def test_a_robot_file_states_loops(tmp_path):
    robot = load_linkage("spatial.urdf", tmp_path)
    (tmp_path / "spatial.toml").write_text(
        'urdf = "spatial.urdf"\n[[loop]]\nkind = "point"\nlinks = ["coupler", "rocker"]\n'
        'at = [[0.42, 0, 0.06], [0, 0.25, 0.02]]\npassive = ["c1", "c2", "lever"]\n'
    )
    same = load_robot(tmp_path / "spatial.toml")
    np.testing.assert_allclose(same.assembled, robot.assembled, atol=1e-12)
    assert "loop" in RobotSpec.model_fields
    with pytest.raises(InputError, match=r"closes a loop .* no floating base"):
        load_robot(tmp_path / "spatial.toml", floating=True)


def test_a_table_states_loops_at_its_links(tmp_path):
    """A parallelogram in a Denavit-Hartenberg table: between two links, and back to its base."""
    table = 'convention = "modified"\n[[joint]]\nname = "crank"\n[[joint]]\nname = "rod"\na = 0.2\n'
    law = '[[loop]]\nkind = "planar"\npassive = ["rod", "rocker"]\n'
    q = np.linspace(0.4, 1.2, 20)[:, None] * [1.0, 0.0, 0.0]
    for rocker, ends in [
        (
            'parent = "base"\na = 0.3',
            'links = ["link_2", "link_3"]\nat = [[0.3, 0, 0], [0.2, 0, 0]]',
        ),
        ("a = 0.3", 'links = ["link_3", "base"]\nat = [[-0.2, 0, 0], [0.3, 0, 0]]'),
    ]:
        path = tmp_path / "table.toml"
        start = "start = { crank = 0.4, rod = -0.4, rocker = 0.4 }\n"
        path.write_text(f'{table}[[joint]]\nname = "rocker"\n{rocker}\n{law}{start}{ends}\n')
        closed = Closure(load_robot(path)).close(q)
        np.testing.assert_allclose(closed[:, 1], -q[:, 0], atol=1e-9)
        np.testing.assert_allclose(closed[:, 2], q[:, 0], atol=1e-9)
    path.write_text(path.read_text().replace("link_3", "link_4"))
    with pytest.raises(InputError, match="no link 'link_4'; did you mean 'link_3'"):
        load_robot(path)


def test_locked_joints_leave_the_rest_of_a_loop(tmp_path):
    """With one crank held where it stands, the other moves a four-bar."""
    whole = load_linkage("five_bar.xml", tmp_path)
    held = {"crank_r": whole.assembled[2]}
    own = FIVE_BAR.model_copy(
        update={"start": {k: v for k, v in FIVE_BAR.start.items() if k != "crank_r"}}
    )
    path = tmp_path / "five_bar.xml"
    # one crank alone gives both rods
    robot = load_robot(path, locked=held, loops=[own])
    assert robot.passive.tolist() == [False, True, True]
    q = Closure(robot).close(np.linspace(-0.6, -0.4, 10)[:, None] * [1.0, 0.0, 0.0])
    at = np.insert(q, 2, held["crank_r"], axis=1)
    assert np.abs(Closure(whole).measure(at)).max() < 1e-12


# simulation


@pytest.mark.long
def test_simulated_chains_obey_their_equations(palletiser):
    """Torques are those of the model along the motion, and steps are of fourth order."""
    idim = di.build_idim(palletiser, "viscous")
    passive = palletiser.passive
    theta = state_truth(idim, (np.where(passive, 0.02, 0.3), np.where(passive, 0.0, 0.05)))
    _, motion = plan_motion(palletiser, 0.25, 100.0, 1)
    reference = Reference(100.0, *motion)
    ends = []
    for substeps in (1, 2, 4):
        loop = di.Loop(idim, pd(kp=[300.0] * 5, kd=[15.0] * 5), reference, substeps=substeps)
        found = di.rollout(loop, theta)
        again = idim.torque(theta, found.q, found.dq, found.ddq, loop.width)
        np.testing.assert_allclose(again, found.tau, atol=1e-10)
        assert np.abs(Closure(palletiser).measure(found.q)).max() < 1e-12
        ends.append(found.q[-1])
    # 16 in the limit
    assert np.abs(ends[1] - ends[0]).max() > 8.0 * np.abs(ends[2] - ends[1]).max()
    assert not found.tau[:, passive].any()
