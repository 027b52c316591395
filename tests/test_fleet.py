"""Fleets: what robots share, how drives differ, which robots are odd or change."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy

import dynident as di
from dynident.cli import run
from dynident.collection.drift import list_series, list_times, measure_sessions
from dynident.collection.fleet import find_own_parameters
from dynident.collection.folder import read_sources, read_statement
from dynident.collection.member import Site, weigh_members
from dynident.collection.outliers import fit_fleet
from dynident.collection.population import (
    add_deviation,
    compare_triangles,
    describe_knowledge,
    fit_population,
    fit_spreads,
    leave_each_out,
    predict_deviations,
)
from dynident.collection.reduce import reduce_problem
from dynident.collection.sites import read_fleet
from dynident.collection.source import Source
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.factors import Factors, stack_triangles
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording

ARM = Path(__file__).parents[1] / "docs" / "files" / "arm.urdf"
RATE, SAMPLES, SESSIONS = 100.0, 800, 4
DRIVES = np.array([0.20, 1.5, 2.0, 0.1, 0.08, 0.6, 0.9, -0.05])
"""Ia, fv, fc, off of the shoulder and of the elbow."""


def draw_triangles(
    robots: int, p: int, spread: Array, rows: int = 40, seed: int = 3
) -> tuple[Array, list[Array], Array, list[tuple[Array, Array]]]:
    """Robots whose first parameters deviate: M, triangles, deviations, and the rows themselves."""
    rng = np.random.default_rng(seed)
    M = np.eye(p)[:, : len(spread)]
    beta, deviations = rng.normal(size=p), spread * rng.normal(size=(robots, len(spread)))
    data = []
    for d in deviations:
        X = rng.normal(size=(rows, p))
        data.append((X, X @ (beta + M @ d) + rng.normal(size=rows)))
    triangles = [np.linalg.qr(np.column_stack(pair), mode="r") for pair in data]
    return M, triangles, deviations, data


def test_the_type_is_generalised_least_squares_and_deviations_its_best_predictions():
    spread = np.array([0.5, 2.0])
    M, triangles, _, data = draw_triangles(5, 6, spread)
    found = predict_deviations(np.array(triangles), M, spread)
    information, score, inverses = np.zeros((6, 6)), np.zeros(6), []
    for X, y in data:
        inverses.append(np.linalg.inv(np.eye(len(y)) + X @ M @ np.diag(spread**2) @ M.T @ X.T))
        information += X.T @ inverses[-1] @ X
        score += X.T @ inverses[-1] @ y
    beta = np.linalg.solve(information, score)
    np.testing.assert_allclose(found.beta, beta, rtol=1e-9)
    covariance = np.linalg.inv(information)
    for k, ((X, y), inverse) in enumerate(zip(data, inverses, strict=True)):
        gain = np.diag(spread**2) @ M.T @ X.T @ inverse
        np.testing.assert_allclose(found.deviations[k], gain @ (y - X @ beta), rtol=1e-8)
        variance = np.diag(spread**2) - gain @ X @ M @ np.diag(spread**2)
        variance += gain @ X @ covariance @ X.T @ gain.T
        np.testing.assert_allclose(found.errors[k] ** 2, np.diag(variance), rtol=1e-8)


def test_spreads_are_found_and_never_zero():
    spread = np.array([0.3, 1.0, 3.0])
    M, triangles, deviations, _ = draw_triangles(60, 8, spread)
    found = fit_population(triangles, M, np.ones(3))
    np.testing.assert_allclose(found.spread, np.std(deviations, axis=0), rtol=0.2)
    errors = (found.found.deviations - deviations) / found.found.errors
    assert 0.8 < np.std(errors) < 1.2
    M, triangles, _, _ = draw_triangles(10, 8, np.array([1e-9]))
    assert 0.01 < fit_population(triangles, M, np.ones(1)).spread[0] < 0.2


def measure_likelihood(data: list[tuple[Array, Array]], M: Array, spread: Array) -> float:
    """Logarithm of the restricted likelihood, of the rows themselves."""
    value, information, score, squares = 0.0, 0.0, 0.0, 0.0
    for X, y in data:
        V = np.eye(len(y)) + X @ M @ np.diag(spread**2) @ M.T @ X.T
        value -= 0.5 * np.linalg.slogdet(V)[1]
        information = information + X.T @ np.linalg.solve(V, X)
        score = score + X.T @ np.linalg.solve(V, y)
        squares += y @ np.linalg.solve(V, y)
    left = squares - score @ np.linalg.solve(information, score)
    return float(value - 0.5 * np.linalg.slogdet(information)[1] - 0.5 * left)


def test_slopes_are_those_of_the_restricted_likelihood_and_of_the_errors():
    spread = np.array([0.3, 1.0])
    M, triangles, _, data = draw_triangles(5, 4, spread, 12)
    found = predict_deviations(np.array(triangles), M, spread)
    slope, information = found.differentiate()
    own = found.own[1], -found.shared[1]
    moved = found.slope_variances(own[1], own[0], 1)
    for m in range(2):
        step = 1e-4 * np.eye(2)[m]
        above, below = spread * np.exp(step), spread * np.exp(-step)
        rise = measure_likelihood(data, M, above) - measure_likelihood(data, M, below)
        assert slope[m] == pytest.approx(rise / 2e-4, abs=1e-4)
        more, less = (predict_deviations(np.array(triangles), M, each) for each in (above, below))
        difference = (more.errors[1] ** 2 - less.errors[1] ** 2) / 2e-4
        np.testing.assert_allclose(moved[:, m], difference, rtol=1e-4, atol=1e-8)
    # of as many rows as wanted, N robots tell a spread with N - 1 degrees of freedom
    M, triangles, _, _ = draw_triangles(5, 4, spread, 40_000)
    told = predict_deviations(np.array(triangles), M, spread).differentiate()[1]
    np.testing.assert_allclose(told, 8.0 * np.eye(2), atol=0.1)
    assert np.all(np.diag(information) < np.diag(told))


@pytest.mark.long
@pytest.mark.parametrize("robots", [6, 30])
def test_intervals_know_that_spreads_are_estimated(robots):
    spread = np.array([0.5, 2.0, 0.05])
    hits = []
    for seed in range(100, 140):
        M, triangles, deviations, _ = draw_triangles(robots, 4, spread, 60, seed)
        found = fit_population(triangles, M, np.ones(3))
        beta = np.random.default_rng(seed).normal(size=4)
        value, root = found.know_type(np.eye(4))
        hits.append(np.abs(value - beta) < 1.96 * np.linalg.norm(root, axis=1))
        value, root = found.know_robot(2, np.eye(4))
        own = beta + M @ deviations[2]
        hits.append(np.abs(value - own) < 1.96 * np.linalg.norm(root, axis=1))
        value, error = found.know_deviation(4)
        hits.append(np.append(np.abs(value - deviations[4]) < 1.96 * error, True))
    assert 0.92 < np.mean(hits) < 0.98
    known = describe_knowledge(*found.know_robot(2, np.eye(4)), 100.0)
    np.testing.assert_allclose(
        np.linalg.solve(known[:4, :4], known[:4, 4]), found.know_robot(2, np.eye(4))[0]
    )
    inverse = np.linalg.inv(known[:4, :4])
    root = found.know_robot(2, np.eye(4))[1]
    np.testing.assert_allclose(inverse @ inverse.T, root @ root.T, atol=1e-12)


def test_sessions_of_several_robots_tell_one_spread():
    rng = np.random.default_rng(5)
    spread, M = np.array([0.4]), np.eye(3)[:, :1]
    families = []
    for _ in range(10):
        beta = 10.0 * rng.normal(size=3)
        rows = [rng.normal(size=(30, 3)) for _ in range(5)]
        own = [X @ (beta + M @ (spread * rng.normal(size=1))) for X in rows]
        pairs = [
            np.column_stack([X, y + rng.normal(size=30)]) for X, y in zip(rows, own, strict=True)
        ]
        families.append(np.array([np.linalg.qr(pair, mode="r") for pair in pairs]))
    found, unsure, _ = fit_spreads(families, M, np.ones(1))
    assert abs(np.log(found[0] / 0.4)) < 2.5 * np.sqrt(unsure[0, 0])
    assert 0.5 / 40 < unsure[0, 0] < 1.0 / 40  # forty differences, each with errors of its own


def test_robots_are_compared_with_all_others():
    spread = np.array([1.0])
    M, triangles, _, _ = draw_triangles(4, 3, spread)
    told = [add_deviation(each, M, spread)[0] for each in triangles]
    for k, other in enumerate(leave_each_out(told)):
        expected = stack_triangles([each for j, each in enumerate(told) if j != k])
        np.testing.assert_allclose(np.abs(other), np.abs(expected), atol=1e-9)
        own = add_deviation(other, M, spread)[0]
        statistic, freedom = compare_triangles([triangles[k], own])
        assert freedom == 3
        assert statistic < 20.0
        moved = triangles[k].copy()
        moved[:, -1] += moved[:, :-1] @ np.array([0.0, 3.0, 0.0])
        assert compare_triangles([moved, own])[0] > 100.0


def write_robot(folder: Path, seed: int, heavier: float, worn: float, later: float) -> None:
    """Logs of an arm with drives of its own, whose elbow may carry more and rub otherwise."""
    robot = di.load_robot(ARM)
    model = di.build_idim(robot, "coulomb-viscous")
    rng = np.random.default_rng(seed)
    own = DRIVES * (1.0 + 0.1 * rng.normal(size=8))
    own[[5, 6]] *= worn
    bodies = robot.nominal.copy()
    bodies[1] *= heavier
    folder.mkdir()
    for session in range(SESSIONS):
        drives = own * (1.0 + 0.01 * rng.normal(size=8))
        drives[[1, 2]] *= later if session >= SESSIONS // 2 else 1.0
        q, dq, ddq = (0.35 * x for x in toy.motion(2, SAMPLES / RATE, 10 * seed + session, RATE))
        tau = model.torque(np.concatenate([bodies.ravel(), drives]), q, dq, ddq)
        tau += rng.normal(scale=[0.2, 0.1], size=tau.shape)
        names = ("q_shoulder", "q_elbow", "tau_shoulder", "tau_elbow")
        signals = dict(zip(names, np.hstack([q, tau]).T, strict=True))
        np.savez(folder / f"day{session}.npz", time=np.arange(SAMPLES) / RATE, **signals)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight robots: the second carries more, the third rubs, the fourth changes; and the fleet."""
    folder = tmp_path_factory.mktemp("fleet")
    shutil.copy(ARM, folder)
    (folder / "study.toml").write_text('[robot]\nfile = "arm.urdf"\n[prepare]\nbandwidth = 5.0\n')
    for k in range(8):
        heavier, worn, later = 1.0 + 0.3 * (k == 1), 1.0 + 2.0 * (k == 2), 1.0 - 0.2 * (k == 3)
        write_robot(folder / f"arm{k}", k, heavier, worn, later)
    (folder / "arm7" / "cut.csv").write_text("time,q_shoulder\n0,0\n")
    robots = [str(folder / f"arm{k}") for k in range(8)]
    given = ["fleet", *robots, "--study", str(folder / "study.toml"), "-o", str(folder / "out")]
    error = io.StringIO()
    with contextlib.redirect_stderr(error):
        code = run(given)
    assert code == 0, error.getvalue()
    assert "arm7: cut.csv: " in error.getvalue()
    return folder


def list_changes(robot: dict[str, Any]) -> list[dict[str, Any]]:
    """What drifted or changed of a robot of fleet.json."""
    return [course for course in robot["courses"] if course["kind"]]


@pytest.mark.long
def test_odd_robots_and_changes_are_named(made: Path):
    told = json.loads((made / "out" / "fleet.json").read_text())
    robots = {robot["name"]: robot for robot in told["robots"]}
    assert robots["arm1"]["odd"].startswith("fore differs by +0.")
    assert robots["arm2"]["odd"].startswith("friction of elbow differs by +")
    (change,) = list_changes(robots["arm3"])
    assert (change["what"], change["kind"]) == ("friction of shoulder", "shift")
    assert change["session"] == f"day{SESSIONS // 2}.npz"
    assert change["size"] == pytest.approx(-0.2, abs=0.04)
    for k in (0, 4, 5, 6, 7):
        assert not robots[f"arm{k}"]["odd"]
        assert not list_changes(robots[f"arm{k}"])
    page = (made / "out" / "fleet.html").read_text()
    assert "arm3" in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_the_type_is_a_result_as_any_other(made: Path):
    fit = di.read_result(made / "out" / "result.json")
    truth = di.load_robot(ARM).nominal
    assert fit.consistent
    model = di.build_idim(di.load_robot(ARM), "coulomb-viscous")
    beta = fit.base.matrix @ np.concatenate([truth.ravel(), DRIVES])
    std = np.sqrt(np.diag(fit.estimate.covariance.matrix))
    assert np.all(np.abs(fit.estimate.beta - beta) < 5.0 * std)
    assert model.names[: fit.base.idim.inertial] == fit.base.idim.names[: fit.base.idim.inertial]


@pytest.mark.long
def test_a_tool_of_a_site_is_shared_by_its_robots(made: Path):
    site = '[[site]]\nname = "hall 2"\nrobots = ["arm1"]\ntool = "fore"\n'
    (made / "fleet.toml").write_text('robots = ["out/factors/arm[0-7]"]\n' + site)
    assert run(["fleet", str(made / "fleet.toml"), "-o", str(made / "sites")]) == 0
    told = json.loads((made / "sites" / "fleet.json").read_text())
    assert not {robot["name"]: robot for robot in told["robots"]}["arm1"]["odd"]
    (words,) = told["tools"]
    mass, _, error = words.partition("fore differs by +")[2].partition(" kg")[0].split()
    heavier = 0.3 * di.load_robot(ARM).nominal[1, 0]
    assert abs(float(mass) - heavier) < 2.0 * float(error) < 0.1 * heavier
    assert words.startswith("hall 2: ")
    assert "hall 2: fore differs" in (made / "sites" / "fleet.html").read_text()
    (made / "logs.toml").write_text('study = "study.toml"\nrobots = ["arm[0-7]", "arm7"]\n')
    whole = read_fleet(made / "logs.toml")
    assert whole.study == made / "study.toml"
    assert whole.folders == [made / f"arm{k}" for k in range(8)]
    assert run(["fleet", str(made / "logs.toml"), "--study", str(made / "study.toml")]) == 2
    folders, fleet = read_fleet(made / "fleet.toml").folders, di.identify_fleet
    with pytest.raises(InputError, match="did you mean 'fore'"):
        fleet(folders, sites=[Site("hall 2", ("arm1",), "for")])
    with pytest.raises(InputError, match="no robot is called brm"):
        fleet(folders, sites=[Site("hall 2", ("brm*",), "fore")])
    with pytest.raises(InputError, match="leave one site out"):
        fleet(folders, sites=[Site("hall 2", ("arm*",), "fore")])
    (made / "none.toml").write_text('robots = ["crm*"]\n')
    with pytest.raises(InputError, match=r"none.toml: robots: no folder is called 'crm\*'"):
        read_fleet(made / "none.toml")


def test_a_torque_constant_that_is_off_is_named(made: Path):
    folders = [made / "out" / "factors" / f"arm{k}" for k in (0, 4, 5, 6, 7)]
    model = read_statement(folders[0]).model
    robots = [(folder.name, read_sources(folder, read_statement(folder))[0]) for folder in folders]

    def scale(part: Factors) -> Factors:
        """The same rows with a torque of the shoulder that is 10 % larger."""
        last = np.append(np.ones(part.parameters), 1.1)
        groups = [
            replace(g, factor=g.factor * (last if g.name == "shoulder" else 1.0))
            for g in part.groups
        ]
        return Factors(tuple(groups))

    robots[2] = (
        "arm5",
        [
            replace(each, factors=scale(each.factors), runs=tuple(map(scale, each.runs)))
            for each in robots[2][1]
        ],
    )
    words = fit_fleet(weigh_members(model, robots)).odd
    assert [bool(each) for each in words] == [False, False, True, False, False]
    assert words[2].startswith("torque constant or gear of shoulder differs by +")
    share = float(words[2].partition("by +")[2].partition(" ")[0])
    assert share == pytest.approx(10.0, abs=1.0)


@pytest.mark.long
def test_friction_over_temperature_is_no_scatter_of_sessions():
    robot, rng = di.load_robot(ARM), np.random.default_rng(7)
    warm, plain = "coulomb-viscous + temperature(T0=30.0)", "coulomb-viscous"
    model = di.build_idim(robot, warm)
    usual = {"Ia": [0.2, 0.08], "fv": [0.5, 0.2], "fc": [2.0, 0.9], "off": [0.1, -0.05]}
    usual["fw"] = [1.5, 0.6]
    drives = np.array([usual[p.symbol][p.number - 1] for p in model.drives])
    found: dict[str, list[tuple[str, list[Source]]]] = {warm: [], plain: []}
    for k in range(4):
        own = drives * (1.0 + 0.1 * rng.normal(size=len(drives)))
        made: dict[str, list[Source]] = {warm: [], plain: []}
        for session, degrees in enumerate(rng.permutation([18.0, 28.0, 38.0, 48.0])):
            motion = [0.35 * x for x in toy.motion(2, 8.0, 10 * k + session, RATE)]
            temp = degrees + np.linspace(0.0, 3.0, len(motion[0]))[:, None] + np.array([0.0, 2.0])
            tau = di.build_idim(robot, "none").torque(robot.nominal.ravel(), *motion)
            values = {s: own[[p.symbol == s for p in model.drives]] for s in usual}
            thin = values["fv"] + values["fw"] * np.exp(-(temp - 20.0) / 30.0)
            tau += values["Ia"] * motion[2] + thin * motion[1] + values["off"]
            tau += values["fc"] * np.sign(motion[1]) + 0.1 * rng.normal(size=tau.shape)
            log = prepare(Recording(f"day{session}", RATE, motion[0], tau, temp=temp), 5.0)
            for friction, sources in made.items():
                problem = di.Problem(robot, log, friction=friction)
                sources.append(reduce_problem(problem, f"{session:064d}", {}, None))
        for friction, sources in made.items():
            found[friction].append((f"arm{k}", sources))
    scatter = {}
    for friction, robots in found.items():
        team = weigh_members(di.build_idim(robot, friction), robots)
        fitted = fit_fleet(team)
        times, clock = list_times(team.members)
        assert clock == "session"
        followed = [
            measure_sessions(each, find_own_parameters(team, fitted, k), own)._replace(warmth=None)
            for k, (each, own) in enumerate(zip(team.members, times, strict=True))
        ]
        series = list_series(followed, robot.joint_names)
        scatter[friction] = np.array([each.scatter for each in series if each.unit == "%"])
        names = [parameter.symbol for parameter in team.base.idim.drives]
        if friction == warm:  # a slope of each drive, with a spread of its own
            spread = fitted.population.spread[[name == "fw" for name in names]]
            assert np.all((spread > 0.02 * np.array(usual["fw"])) & (spread < usual["fw"]))
    assert np.all(scatter[warm] < 0.25 * scatter[plain])


@pytest.mark.long
def test_a_robot_with_few_rows_is_told_by_the_others(made: Path, tmp_path: Path):
    folders = [made / "out" / "factors" / f"arm{k}" for k in range(8)]
    short = tmp_path / "new"
    short.mkdir()
    with np.load(made / "arm5" / "day0.npz") as log:
        np.savez(tmp_path / "short.npz", **{name: log[name][:90] for name in log})
    di.collect(made / "study.toml", [tmp_path / "short.npz"], short)
    alone = di.identify_factors(short, "wls", covariance="sandwich")
    helped = di.identify_robot([*folders, short], "new", "wls")
    whole = di.identify_factors(folders[5], "wls")
    error = [
        np.linalg.norm((fit.estimate.beta - whole.estimate.beta)[fit.base.rigid_body_count :])
        for fit in (alone, helped)
    ]
    assert error[1] < error[0]
    left = [
        di.validate(fit, di.read_log(made / "arm5" / "day3.npz", di.load_robot(ARM)))[0]
        for fit in (alone, helped)
    ]
    assert left[1].overall_percent < 0.7 * left[0].overall_percent


@pytest.mark.long
def test_what_is_no_fleet_is_refused_in_one_line(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folders = [made / "out" / "factors" / f"arm{k}" for k in range(2)]
    with pytest.raises(InputError, match="two robots at least"):
        di.identify_fleet(folders[:1])
    with pytest.raises(InputError, match="did you mean 'arm1'"):
        di.identify_robot(folders, "arm11")
    with pytest.raises(InputError, match="another robot is called 'arm0'"):
        di.identify_fleet([*folders, folders[0]])
    with pytest.raises(InputError, match="holds no factors"):
        di.identify_fleet([made / "arm0", made / "arm1"])
    with pytest.raises(InputError, match="needs rows"):
        di.identify_fleet(folders, "irls")
    other = tmp_path / "other"
    study = made / "other.toml"
    study.write_text('[robot]\nfile = "arm.urdf"\n[prepare]\nbandwidth = 4.0\n')
    di.collect(study, [made / "arm2" / "day0.npz"], other)
    with pytest.raises(InputError, match="another model, preparation or version"):
        di.identify_fleet([*folders, other])
    assert run(["fleet", *map(str, folders), "--study", str(study)]) == 2
    assert "say where with -o DIR" in capsys.readouterr().err
