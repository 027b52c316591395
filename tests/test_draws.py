"""Draws from a covariance, cut to what a robot can be."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import toy
from commands import ask, tell
from loops import WIDTH, closed_loop
from lxml import etree
from tables import write_joints
from test_encoder import DELAY, KD, KP, RATE, log_of, twin
from thin import first

import dynident as di
from dynident.cli import run
from dynident.conic.cones import NonnegativeCone, SemidefiniteCone
from dynident.consistency.constraints import Bounds, Fixed, TotalMass
from dynident.consistency.draws import (
    ROOM,
    ConeRegion,
    NormalDraws,
    draw_by_hit_and_run,
    draw_truncated_normal,
    draw_within_cones,
    find_region_centre,
)
from dynident.consistency.extremes import find_extreme_eigenvalues
from dynident.control.controller import pd, servo
from dynident.core.errors import ComputationError, InputError
from dynident.core.inertia import find_smallest_eigenvalue
from dynident.export.urdf import render_urdf
from dynident.report.draws import certify_draws, serialise_draws
from dynident.study.calibration import count_inside_band, measure_torque_calibration

SYMMETRIC = np.zeros((3, 2, 2))
"""Basis of symmetric matrices, 2 x 2."""
SYMMETRIC[0, 0, 0] = SYMMETRIC[1, 1, 1] = SYMMETRIC[2, 0, 1] = SYMMETRIC[2, 1, 0] = 1.0


@cache
def identified(noise: float = 1.0, method: str = "pc-idim-ls", **options: object):
    robot = toy.arm(2)
    recording, theta = toy.log(robot, noise=noise)
    problem = di.Problem(robot, toy.on_its_motion(recording))
    return di.identify(problem, method, **options), theta


@pytest.fixture(scope="module")
def result(tmp_path_factory) -> Path:
    """Of a log of the toy, beside its URDF, and another log."""
    place, robot = tmp_path_factory.mktemp("draws"), toy.arm(2)
    (place / "toy.urdf").write_bytes(render_urdf(robot, robot.nominal)[0])
    for name, seed in (("a", 0), ("b", 5)):
        recording, _ = toy.log(robot, noise=1.0, seed=seed)
        signals = {"q": recording.q, "tau": recording.tau}
        write_joints(place / f"{name}.csv", robot.joint_names, toy.RATE, **signals)
    arguments = ["--robot", str(place / "toy.urdf"), "--log", str(place / "a.csv")]
    arguments += ["--bandwidth", "10", "--no-report", "-o", str(place)]
    assert run(["identify", *arguments]) == 0
    return place / "result.json"


@pytest.mark.long
def test_hit_and_run_draws_what_rejection_draws():
    """A normal distribution in three directions within a half-space and a definite matrix."""
    half = NonnegativeCone(("x",), np.eye(3)[:1], np.ones(1))
    cones = [SemidefiniteCone("J", SYMMETRIC, np.zeros((2, 2))), half]
    factor = np.array([[0.6, 0.0, 0.0], [0.3, 0.5, 0.0], [0.2, -0.4, 0.7]])
    normal = NormalDraws(np.array([1.2, 0.8, 0.1]), factor, np.array([-0.5, 0.3, 0.2]))
    region = ConeRegion.of(cones, normal)
    rng = np.random.default_rng(0)
    z = normal.mean + rng.normal(size=(60000, 3))
    right = z[region.admits(z)]
    found, _ = draw_by_hit_and_run(region, normal.mean, 4000, rng)
    assert np.all(region.admits(found))
    error = 4.0 / np.sqrt(4000)
    np.testing.assert_allclose(found.mean(axis=0), right.mean(axis=0), atol=error)
    np.testing.assert_allclose(np.cov(found.T), np.cov(right.T), atol=1.5 * error)
    share = draw_within_cones(normal, cones, 500, rng).share
    assert share == pytest.approx(len(right) / len(z), abs=0.06)


@pytest.mark.parametrize("far", [1e2, 1e8])
def test_chains_stay_inside_however_far_outside_their_mean_is(far):
    """Pressed onto the boundary so hard that rounding takes them over it."""
    normal = NormalDraws(np.array([1.2, 0.8, 0.1]), np.eye(3), far * np.array([-1.0, -0.7, 0.2]))
    region = ConeRegion.of([SemidefiniteCone("J", SYMMETRIC, np.zeros((2, 2)))], normal)
    found, _ = draw_by_hit_and_run(region, normal.mean, 50, np.random.default_rng(0))
    (matrices,) = region.matrices(found)
    assert np.all(np.isfinite(np.linalg.cholesky(matrices)))


def test_draws_are_about_an_estimate_whatever_is_known_of_a_parameter():
    """Replicates of what is known differ by what their solver leaves."""
    fit, _ = identified(6.0, constraints=(Fixed("fv2", 2.0),))
    std = fit.estimate.covariance.std
    place = fit.base.names.index("fv2")
    assert std[place] < 1e-6
    draws = di.sample(fit, 100)
    away = np.abs(draws.beta.mean(axis=0) - fit.estimate.beta) / np.maximum(std, 1e-6)
    assert np.max(np.delete(away, place)) < 1.0


def test_draws_are_about_an_estimate_that_a_bound_holds():
    """Whose standard deviation is what rounding leaves of none."""
    robot = toy.arm(2)
    samples = toy.on_its_motion(toy.log(robot, noise=1.0)[0])
    problem = di.Problem(robot, samples, "stribeck(vs=0.1)")
    fit = di.identify(problem, bootstrap=0, doctor=False)
    std = fit.estimate.covariance.std
    assert fit.estimate.active
    assert np.min(std / np.abs(fit.estimate.beta)) < 1e-6
    draws = di.sample(fit, 50)
    size = np.maximum(std, 1e-3 * np.median(std))
    away = np.abs(draws.beta.mean(axis=0) - fit.estimate.beta) / size
    assert np.max(away) < 2.0


@pytest.mark.parametrize("far", [1.0, 1.5e3, 1e6])
def test_the_centre_of_a_region_is_found_from_a_corner_of_it(far):
    """Of positive numbers each is where ``x - m - 1 / x`` is zero, m being where it would be."""
    normal = NormalDraws(
        np.full(6, ROOM), np.eye(6), far * np.array([1.0, -1.0, 0.3, -0.2, 1e-3, -2.0])
    )
    region = ConeRegion.of([NonnegativeCone(tuple("abcdef"), np.eye(6), np.zeros(6))], normal)
    z, second = find_region_centre(region, normal.mean)
    m = normal.mean + ROOM
    root = np.sqrt(m**2 + 4.0)
    right = np.where(m > 0.0, 0.5 * (m + root), 2.0 / (root - m))
    np.testing.assert_allclose(z + ROOM, right, rtol=1e-4)
    np.testing.assert_allclose(second, np.diag(1.0 + 1.0 / right**2), rtol=1e-3)


@pytest.mark.parametrize("size", [1, 2, 4, 7])
def test_extremes_are_those_of_all_eigenvalues(size):
    """Of several matrices a point, some of them zero, diagonal, or with eigenvalues alike."""
    rng = np.random.default_rng(size)
    A, change = rng.normal(size=(2, 40, 3, size, size))
    factor = np.linalg.cholesky(A @ np.swapaxes(A, -1, -2) + 0.1 * np.eye(size))
    change += np.swapaxes(change, -1, -2)
    change[:5], change[5:10] = 0.0, np.eye(size)
    change[10:15, 1:] = 0.0
    change[15:20] = factor[15:20] @ np.swapaxes(factor[15:20], -1, -2)
    least, most = find_extreme_eigenvalues(factor, change)
    inverse = np.linalg.inv(factor)
    values = np.linalg.eigvalsh(inverse @ change @ np.swapaxes(inverse, -1, -2))
    scale = 1e-12 * np.abs(values).max(axis=(1, 2))
    assert np.all(np.abs(least - values.min(axis=(1, 2))) <= scale)
    assert np.all(np.abs(most - values.max(axis=(1, 2))) <= scale)


def test_normal_numbers_between_bounds_follow_the_tail():
    rng = np.random.default_rng(1)
    low, high = np.full(20000, 30.0), np.full(20000, np.inf)
    far = draw_truncated_normal(low, high, rng)
    # beyond 30 the tail is exponential at rate 30
    assert np.mean(far - 30.0) == pytest.approx(1.0 / 30.0, rel=0.05)
    near = draw_truncated_normal(np.full(20000, -0.5), np.full(20000, 2.0), rng)
    assert -0.5 <= near.min() < -0.49
    assert 1.95 < near.max() <= 2.0
    np.testing.assert_allclose(draw_truncated_normal(-high, -low, rng).max(), -30.0, atol=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("method", first(["pc-idim-ls", "wls"]))
def test_draws_are_consistent_and_vary_as_the_covariance_says(method):
    fit, _ = identified(method=method)
    draws = di.sample(fit, 600, seed=3)
    idim = fit.idim
    bodies = draws.theta[:, : idim.inertial].reshape(600, -1, 10)
    assert np.all(find_smallest_eigenvalue(bodies) > 0.0)
    assert all(idim.is_consistent(theta) for theta in draws.theta)
    assert draws.margin == pytest.approx(find_smallest_eigenvalue(bodies).min())
    std = fit.estimate.covariance.std
    z = (draws.beta - fit.estimate.beta) / std
    assert np.abs(z.mean(axis=0)).max() < 0.35
    assert np.all((z.std(axis=0) > 0.8) & (z.std(axis=0) < 1.2))
    told = fit.estimate.covariance.matrix / np.outer(std, std)
    np.testing.assert_allclose(np.corrcoef(draws.beta.T), told, atol=0.25)


@pytest.mark.long
def test_what_the_log_does_not_tell_is_spread_by_the_prior():
    fit, _ = identified()
    draws = di.sample(fit, 300)
    mass = draws.theta[:, 0]  # of the first link, which no torque tells: as wide as it is large
    assert 0.5 < mass.std() / fit.theta[0] < 2.0


@pytest.mark.long
def test_draws_keep_what_is_known():
    total = 6.0
    fit, _ = identified(constraints=(TotalMass(total), Bounds("fc2", upper=2.9)))
    draws = di.sample(fit, 200, seed=1)
    masses = draws.theta[:, [0, 10]].sum(axis=1)
    np.testing.assert_allclose(masses, total, rtol=1e-9)
    fc2 = draws.theta[:, fit.idim.names.index("fc2")]
    assert fc2.max() <= 2.9
    assert fc2.std() > 0.0


def test_the_same_seed_draws_the_same_and_another_does_not():
    fit, _ = identified()
    first, again, other = (di.sample(fit, 20, seed=s) for s in (4, 4, 5))
    np.testing.assert_array_equal(first.theta, again.theta)
    assert np.abs(first.theta - other.theta).max() > 1e-3
    with pytest.raises(InputError, match="n is 0 but should be greater than or equal to 1"):
        di.sample(fit, 0)
    with pytest.raises(InputError, match="seed is -1 but should be greater than or equal to 0"):
        di.sample(fit, 20, seed=-1)


def test_a_draw_that_is_not_consistent_is_refused():
    fit, _ = identified()
    theta = np.tile(fit.theta, (2, 1))
    theta[1, 0] = -1.0
    with pytest.raises(ComputationError, match="a draw is not physically consistent"):
        certify_draws(fit.base, theta, (), np.zeros((2, 0)), seed=0, share=1.0, way="")


def test_rows_of_which_none_were_fitted_have_no_band():
    """Their noise is not known, whatever is."""
    fit, _ = identified()
    draws, (log,), (first, second) = di.sample(fit, 32), fit.samples, fit.residuals
    whole = measure_torque_calibration(fit, draws, log)
    one = replace(fit, residuals=(replace(first, rows=0), second))
    part = measure_torque_calibration(one, draws, log)
    assert (whole.names, part.names) == (("joint_1", "joint_2"), ("joint_2",))
    np.testing.assert_array_equal(part.noise, whole.noise[1:])
    with pytest.raises(InputError, match="toy log: has no rows of equations that were fitted"):
        measure_torque_calibration(replace(fit, residuals=()), draws, log)


def test_what_is_at_a_bound_without_an_error_stays_there():
    """A delay of zero beside drives whose errors are those of a law that is not the log's."""
    robot, t = toy.arm(2), np.arange(1600) / 200.0
    model = di.build_idim(robot)
    q = 0.5 * np.sin(np.outer(0.4 * t + 0.1 * t**2, [1.0, 2.0]) + np.array([0.5, 0.9]))
    still = np.zeros_like(q)
    loop = di.Loop(
        model, servo([400.0] * 2, 20.0, deadband=0.01), di.Reference(200.0, q, still, still),
        "sdirk2", held=True, q0=q[0], dq0=still[0],
    )  # fmt: skip
    drives = [{"Ia": 1.0, "off": 0.0}.get(p.symbol, 5.0) for p in model.drives]
    log = log_of(loop, model.join(robot.nominal, np.array(drives)), noise=1e-5)
    problem = di.Problem(robot, di.prepare(replace(log, rate=200.0), bandwidth=5.0))
    fit = di.identify(problem, "cloe", simulation=di.Simulation(pd([400.0] * 2, 20.0)))
    own = fit.estimate.fitted
    assert (own.names[-1], own.values[-1], own.std[-1]) == ("delay", 0.0, 0.0)
    np.testing.assert_allclose(di.sample(fit, 20).values[:, 0], 1e-6, atol=1e-12)


@pytest.mark.long
def test_the_noise_of_a_simulated_fit_is_that_along_measured_motions():
    """Encoders are noisy; what the fit left along its simulated motion is the torques' alone."""
    logs = [closed_loop(noise=2e-4, torque_noise=0.1, seed=seed, seconds=6.0) for seed in (0, 1)]
    (problem, _, control), (other, _, _) = logs
    loop = di.Simulation(control, width=WIDTH)
    fit = di.identify(problem, "pc-didim", simulation=loop, bootstrap=0, doctor=False)
    draws = di.sample(fit, 40, anyway=True)
    inside = measure_torque_calibration(fit, draws, other.samples[0]).noise
    assert np.all((inside > 0.9) & (inside < 0.99))


def test_bands_with_noise_hold_what_noise_moved():
    rng = np.random.default_rng(0)
    drawn_rows = rng.normal(size=(4000, 200)) * 0.5
    measured = rng.normal(size=4000) * np.hypot(0.5, 2.0)
    alone, noisy = count_inside_band(drawn_rows, measured, 2.0) / 4000
    assert noisy == pytest.approx(0.95, abs=0.02)
    assert alone == pytest.approx(0.365, abs=0.05)  # |normal| < 0.98 / 2.06


@pytest.mark.long
def test_the_command_writes_draws_and_their_ranges(result, tmp_path, capsys):
    out = tmp_path / "draws"
    arguments = ["sample", str(result), "-n", "12", "-o", str(out), "--seed", "2"]
    found = ask(capsys, [*arguments, "--log", str(result.parent / "b.csv")])
    assert found["schema"] == "dynident.draws/1"
    (log,) = found["calibration"]
    assert 90.0 < log["inside_with_noise_percent"] < 98.0
    assert log["inside_percent"] < 60.0
    text = (out / "draws.yaml").read_text()
    listed = [line[4:] for line in text.splitlines() if line.startswith("  - ")]
    assert listed == [f"draw_{k:02d}.urdf" for k in range(12)]
    masses = []
    for name in listed:
        robot = di.load_robot(str(out / name))
        assert np.all(find_smallest_eigenvalue(robot.nominal) > 0.0)
        masses.append(robot.nominal[1, 0])
    told = next(row for row in found["parameters"] if row["name"] == "m2")
    assert np.mean(masses) == pytest.approx(told["mean"], rel=1e-6)
    assert f"  m2: {{mean: {told['mean']:.9g}, " in text
    assert run([*arguments, "--format", "mjcf"]) == 0
    robot = di.load_robot(str(out / "draw_00.xml"))
    assert np.all(find_smallest_eigenvalue(robot.nominal) > 0.0)
    assert robot.nominal[1, 0] == pytest.approx(masses[0], rel=1e-6)
    assert run([*arguments, "--format", "npz"]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["draws.npz", "draws.yaml"]
    with np.load(out / "draws.npz") as file:
        arrays = {name: file[name] for name in file.files}
    assert arrays["values"].shape == (12, len(arrays["names"]))
    assert arrays["beta"].shape == (12, len(arrays["base_names"]))
    assert run([*arguments, "--format", "yaml"]) == 0
    assert not (out / "draws.npz").exists()
    line = (out / "draw_03.yaml").read_text().splitlines()[10]
    name, _, value = line.partition(": ")
    assert float(value) == arrays["values"][3, list(arrays["names"]).index(name)]
    capsys.readouterr()
    assert run(["sample", str(result), "-n", "12", "--seed", "2"]) == 0
    assert "certified   all; smallest pseudo-inertia eigenvalue" in capsys.readouterr().out


def test_files_of_draws_have_what_stands_for_other_friction(tmp_path):
    robot = toy.arm(2)
    recording, _ = toy.log(robot, noise=1.0)
    fit = di.identify(di.Problem(robot, toy.on_its_motion(recording), "cube-root"))
    draws = di.sample(fit, 40)
    assert any("fv, fc and off approximate" in note for note in draws.write(tmp_path))
    missing = "fv, fc and off stand alone, because the log cannot be read again"
    alone = replace(draws, stand_in=(None, (missing,)))
    assert alone.write(tmp_path / "alone")[0] == missing
    drawn = [list_dry_friction((tmp_path / f"draw_{k:02d}.urdf").read_bytes()) for k in range(40)]
    own = list_dry_friction(fit.model_urdf()[0])
    assert np.all(own > 0.0)
    np.testing.assert_allclose(np.mean(drawn, axis=0), own, rtol=0.1)


def list_dry_friction(urdf: bytes) -> np.ndarray:
    """Of all joints of a URDF."""
    return np.array([float(x.get("friction")) for x in etree.fromstring(urdf).iter("dynamics")])


@pytest.mark.long
def test_a_stored_result_draws_as_the_fit_does(result):
    from dynident.study.run import run_study

    stored = di.read_result(result)
    fit = run_study(stored.study)
    np.testing.assert_allclose(
        di.sample(stored, 10).beta, di.sample(fit, 10).beta, rtol=1e-6, atol=1e-9
    )


def test_standard_deviations_are_the_same_wherever_they_are_told(result, tmp_path):
    draws = di.sample(di.read_result(result), 10)
    told = serialise_draws(draws, [])["parameters"]
    np.testing.assert_allclose([row["std"] for row in told], np.std(draws.every, axis=0, ddof=1))
    draws.write(tmp_path / "draws", "npz")
    text = (tmp_path / "draws" / "draws.yaml").read_text()
    assert all(f"  {row['name']}: {{mean: {row['mean']:.9g}, " in text for row in told)
    assert all(f", std: {row['std']:.6g}, low: " in text for row in told)


def test_unknown_formats_are_refused(result, tmp_path, capsys):
    assert run(["sample", str(result), "--format", "fbx", "-o", str(tmp_path / "x")]) == 2
    words = tell(capsys, ["sample", str(result), "--format", "npz"], code=2).err.splitlines()
    assert "error: --format 'fbx' is not known" in words[-2]
    assert words[-1] == "error: --format needs -o"


@pytest.mark.long
@pytest.mark.parametrize("links", ["fixed", "prior"])
def test_drives_and_loop_of_encoder_logs_are_drawn_together(tmp_path, links):
    robot, loop, theta = twin(tmp_path, 4.0)
    problem = di.Problem(robot, di.prepare(log_of(loop, theta, noise=2e-4), bandwidth=10.0))
    simulation = di.Simulation(pd(KP, KD), width=0.03)
    options = {"links": links, "loop": "delay,bias"}
    known = (Bounds("bias", -0.05, 0.05), Bounds("delay", 0.0, 0.02))
    fit = di.identify(problem, "cloe", simulation=simulation, constraints=known, **options)
    own = fit.estimate.fitted
    assert own is not None
    draws = di.sample(fit, 200, seed=1)
    assert draws.loop == ("delay", "bias1", "bias2", "bias3")
    delay = draws.values[:, 0]
    assert np.all((delay >= 0.0) & (delay <= 0.02))
    assert delay.mean() == pytest.approx(DELAY, abs=0.2 / RATE)
    assert all(fit.idim.is_consistent(each) for each in draws.theta)
    if links == "fixed":
        inertial = fit.idim.inertial
        np.testing.assert_array_equal(
            draws.theta[:, :inertial], np.tile(robot.nominal.ravel(), (200, 1))
        )
        drives = slice(0, 12)
        z = (draws.theta[:, inertial:] - own.values[drives]) / own.std[drives]
        assert np.abs(z.mean(axis=0)).max() < 0.4
        assert np.all((z.std(axis=0) > 0.8) & (z.std(axis=0) < 1.2))


@pytest.mark.long
def test_positions_inside_the_band_of_an_encoder_result(tmp_path, capsys):
    _, loop, theta = twin(tmp_path, 4.0)
    log = log_of(replace(loop, bias=np.zeros(3)), theta, noise=2e-4)
    write_joints(tmp_path / "log.csv", ("j1", "j2", "j3"), RATE, q=log.q, qref=log.qref)
    (tmp_path / "study.toml").write_text(f"""
[robot]
file = "arm.urdf"
[[log]]
files = "log.csv"
[controller]
kind = "pd"
kp = {list(KP)}
kd = {list(KD)}
[simulation]
width = 0.03
[identify]
method = "cloe"
""")
    out = tmp_path / "out"
    assert run(["identify", str(tmp_path / "study.toml"), "-o", str(out), "--no-report"]) == 0
    capsys.readouterr()
    arguments = ["sample", str(out / "result.json"), "-n", "40"]
    found = ask(capsys, [*arguments, "--log", str(tmp_path / "log.csv")])
    (calibration,) = found["calibration"]
    assert calibration["what"] == "position"
    assert 92.0 < calibration["inside_with_noise_percent"] < 98.0
    assert "delay" in [row["name"] for row in found["parameters"]]
