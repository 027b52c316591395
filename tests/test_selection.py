"""Data selection: what is chosen of long logs from ordinary work, and what it is worth."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import toy
from commands import ask, tell
from tables import write_joints
from thin import first

from dynident.cli import run
from dynident.core.errors import InputError
from dynident.decide.selection import (
    START,
    SelectionOptions,
    find_carried_joints,
    find_sub_chains,
    select_blocks,
)
from dynident.decide.selection import _collect_offers as offers_of
from dynident.decide.selection import _Knowledge as Knowledge
from dynident.decide.selection import _measure_errors as measure_errors
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.regression.weighted import compute_literature_std, solve_wls
from dynident.robot import load_robot
from dynident.study.study import read_study

RATE = 250.0
N = 4


def swell(seed, seconds, joints, n=N):
    """A motion of some joints that begins and ends at rest."""
    q, _, _ = toy.motion(n, seconds, seed, RATE)
    size = np.sin(np.pi * np.arange(len(q)) / len(q)) ** 2
    return q * size[:, None] * np.isin(np.arange(n), joints)


def rest(seconds, n=N):
    return np.zeros((round(seconds * RATE), n))


def recorded(parts, name="work", noise=0.3, robot=None):
    """A log of motions, one after another."""
    robot = robot or toy.arm(N)
    idim = build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    q = np.vstack(parts)
    dq = np.gradient(q, axis=0) * RATE
    ddq = np.gradient(dq, axis=0) * RATE
    rng = np.random.default_rng(0)
    tau = idim.torque(theta, q, dq, ddq) + noise * rng.normal(size=q.shape)
    return Recording(name, RATE, q + 1e-5 * rng.normal(size=q.shape), tau)


@cache
def work():
    """Four minutes of ordinary work: two tasks repeated, idle between, one that is rare."""
    parts = []
    for cycle in range(8):
        parts += [swell(1, 8, [0, 1]), rest(6.0), swell(2, 8, [2, 3]), rest(3.3)]
        if cycle == 4:
            parts += [swell(3, 8, [0, 1, 2, 3])]
    return Problem(toy.arm(N), prepare(recorded(parts), 5.0))


@cache
def chosen_of_work():
    return select_blocks(work())


def whole(problem):
    """All rows, weighted by their sigmas."""
    _, sigma, _ = solve_wls(problem.factors)
    return problem.factors.weighted(sigma), sigma


# the pieces


def test_a_sub_chain_is_a_joint_with_all_that_it_carries():
    robot = toy.arm(3)
    assert [find_carried_joints(robot, k) for k in range(3)] == [{0, 1, 2}, {1, 2}, {2}]
    branched = replace(robot, joints=(*robot.joints[:2], replace(robot.joints[2], parent=1)))
    assert [find_carried_joints(branched, k) for k in range(3)] == [{0, 1, 2}, {1}, {2}]
    base = base_parameters(build_idim(robot))
    chains = find_sub_chains(base)
    assert chains[0] == tuple(range(base.count))
    assert set(chains[2]) < set(chains[1]) < set(chains[0])
    assert all(base.names[k].rstrip("R").endswith("3") for k in chains[2])


def test_blocks_hold_all_rows_once():
    problem = work()
    system, sigma = whole(problem)
    offers = offers_of(problem, 1.0, sigma)
    assert sum(offer.block.rows for offer in offers) == problem.factors.rows
    total = sum(offer.factor.T @ offer.factor for offer in offers)
    np.testing.assert_allclose(total, system.A.T @ system.A, atol=1e-9 * np.abs(total).max())


def test_gains_are_those_of_the_determinants():
    problem = work()
    system, sigma = whole(problem)
    offers = offers_of(problem, 1.0, sigma)
    chains = list(find_sub_chains(problem.base).values())
    known = Knowledge(system, chains)
    A = system.A
    taken = START * A.T @ A
    for k in (20, 3, 60):
        new = taken + offers[k].factor.T @ offers[k].factor
        scale = np.sqrt(np.diag(A.T @ A))
        before, after = (
            [np.linalg.slogdet((M / np.outer(scale, scale))[np.ix_(c, c)])[1] for c in chains]
            for M in (taken, new)
        )
        gain = np.mean([(b - a) / len(c) for a, b, c in zip(before, after, chains, strict=True)])
        assert known.gain(offers[k].factor) == pytest.approx(gain, rel=1e-6)
        known.add(offers[k].factor)
        taken = new


@pytest.mark.long
def test_no_other_block_would_have_gained_more():
    problem = work()
    selecting = SelectionOptions(repeat=0.0, gain=0.03)
    found = select_blocks(problem, selecting)
    system, sigma = whole(problem)
    offers = offers_of(problem, 1.0, sigma)
    known = Knowledge(system, list(find_sub_chains(problem.base).values()))
    left = {(offer.block.log, offer.block.start): offer for offer in offers}
    for block in found.blocks:
        gains = {key: known.gain(offer.factor) for key, offer in left.items()}
        best = max(gains.values())
        assert gains[block.log, block.start] == pytest.approx(best, rel=1e-9)
        assert block.gain == pytest.approx(1 - np.exp(-best / 2), rel=1e-9)
        known.add(left.pop((block.log, block.start)).factor)
    rest = max(known.gain(offer.factor) for offer in left.values())
    assert 1 - np.exp(-rest / 2) < selecting.gain
    gains = [block.gain for block in found.blocks]
    assert gains == sorted(gains, reverse=True)


# the choice


def test_little_is_kept_of_ordinary_work_and_it_is_as_well_conditioned():
    found = chosen_of_work()
    assert found.rows < 0.3 * found.rows_all
    for chain in found.chains:
        assert chain.condition < 1.1 * chain.condition_all
    assert found.chains[0].condition < 0.8 * found.chains[0].condition_all
    assert found.chains[0].information > 2.0
    assert found.repeats > 0


def test_what_stands_still_is_left_out():
    problem, found = work(), chosen_of_work()
    (log,) = problem.samples
    moving = np.concatenate([
        np.abs(log.dq[a:b]).max(axis=1) > 0.05 for a, b in found.kept(0)
    ])  # fmt: skip
    assert moving.mean() > 0.85
    assert (np.abs(log.dq).max(axis=1) > 0.05).mean() < 0.7


def test_the_choice_is_better_than_chance():
    problem, found = work(), chosen_of_work()
    _, sigma = whole(problem)
    offers = offers_of(problem, 1.0, sigma)
    rng = np.random.default_rng(0)
    beta = solve_wls(problem.factors)[0]
    spreads = []
    for _ in range(20):
        some = rng.permutation(len(offers))[: len(found.blocks)]
        rows = np.vstack([offers[k].factor for k in some])
        information = rows.T @ rows
        std = np.sqrt(np.abs(np.diag(np.linalg.pinv(information))))
        spreads.append(np.median(100 * std / np.abs(beta)))
    assert np.median(found.after) < np.min(spreads)
    assert np.median(found.after) < 0.5 * np.median(spreads)


def test_figures_are_those_of_the_chosen_rows():
    problem, found = work(), chosen_of_work()
    beta, sigma, _ = solve_wls(problem.factors)
    own = found.of(problem)
    assert own.factors.rows == found.rows
    system = own.factors.weighted(sigma)
    np.testing.assert_allclose(
        found.after, 100 * compute_literature_std(system) / np.abs(beta), rtol=1e-6
    )
    before = 100 * compute_literature_std(problem.factors.weighted(sigma)) / np.abs(beta)
    np.testing.assert_allclose(found.before, before, rtol=1e-6)
    assert found.chains[0].condition == pytest.approx(system.condition()[0], rel=1e-6)
    last = found.chains[-1]
    some = problem.only(last.columns).factors.weighted(sigma)
    assert last.condition_all == pytest.approx(some.condition()[0], rel=1e-6)
    ratio = np.linalg.slogdet(system.A.T @ system.A)[1]
    ratio -= np.linalg.slogdet(whole(problem)[0].A.T @ whole(problem)[0].A)[1]
    information = np.exp(ratio / len(beta)) * found.rows_all / found.rows
    assert found.chains[0].information == pytest.approx(information, rel=1e-6)


def missed(change):
    """Four tasks of like motion, in the third of which something is other than modelled."""
    parts = [swell(seed, 4, [0, 1, 2, 3]) for seed in range(4)]
    log = recorded(parts)
    third = (np.arange(len(log.q)) // len(parts[0]) == 2)[:, None]
    return Problem(toy.arm(N), prepare(change(log, third), 5.0))


def test_blocks_that_the_model_misses_come_first():
    rng = np.random.default_rng(1)

    def pushed(log, third):
        force = 30.0 * np.repeat(rng.normal(size=(len(log.q) // 50 + 1, N)), 50, axis=0)
        return replace(log, tau=log.tau + third * force[: len(log.q)])

    problem = missed(pushed)
    found = select_blocks(problem, SelectionOptions(by="error"))
    assert all(8.0 <= block.start / RATE < 12.0 for block in found.blocks[:3])
    # each block's weight, by rows that are cut out by themselves
    beta, sigma, _ = solve_wls(problem.factors)
    offers = offers_of(problem, 1.0, sigma)
    weights = measure_errors(problem, offers, 1.0, beta, sigma)
    (stretches,) = problem.passes()
    rows = list(stretches)
    squares = np.array(
        [
            sum(
                np.sum(
                    ((part.y[g] - part.X[g] @ beta[own])[part.sample[g] // RATE == k] / sigma[g])
                    ** 2
                )
                for part in rows
                for g, own in enumerate(problem.columns)
            )
            / offer.block.rows
            for k, offer in enumerate(offers)
        ]
    )
    np.testing.assert_allclose(weights, squares / squares.mean(), rtol=1e-9)


def test_blocks_that_the_controller_lags_in_come_first():
    problem = missed(lambda log, third: replace(log, qref=log.q + 0.01 + 0.1 * third))
    found = select_blocks(problem, SelectionOptions(by="tracking"))
    assert all(8.0 <= block.start / RATE < 12.0 for block in found.blocks[:3])
    plain = select_blocks(problem, SelectionOptions())
    assert {b.start for b in plain.blocks[:3]} != {b.start for b in found.blocks[:3]}
    with pytest.raises(InputError, match="by = 'tracking' needs qref"):
        select_blocks(missed(lambda log, third: log), SelectionOptions(by="tracking"))


@pytest.mark.long
@pytest.mark.parametrize("pause", first([0.37, 0.0]))
def test_repeats_are_left_out_whatever_their_phase(pause):
    task = swell(3, 8.0, [0, 1, 2, 3])
    problem = Problem(toy.arm(N), prepare(recorded([task, rest(pause)] * 6), 5.0))
    once = Problem(toy.arm(N), prepare(recorded([task, rest(pause)]), 5.0))
    few = select_blocks(problem, SelectionOptions(gain=0.001))
    # of six times; a block of which more than a quarter is new is not a repeat, and the filters'
    # edges lack at the ends of the log of a single task
    assert few.rows < 2.5 * once.factors.rows
    assert few.repeats > 0.6 * few.offered
    every = select_blocks(problem, SelectionOptions(gain=0.001, repeat=0.0))
    assert every.repeats == 0
    assert every.rows > 2 * few.rows


@pytest.mark.long
def test_a_larger_gain_keeps_less_and_blocks_may_be_short():
    problem = work()
    counts = [select_blocks(problem, SelectionOptions(gain=gain)).rows for gain in (0.1, 0.3)]
    assert chosen_of_work().rows > counts[0] > counts[1] > 0
    short = select_blocks(problem, SelectionOptions(block=0.4, gain=0.1))
    assert all(block.stop - block.start == 100 for block in short.blocks)


def test_the_first_block_is_taken_whatever_it_gains():
    found = select_blocks(work(), SelectionOptions(gain=0.999))
    assert len(found.blocks) == 1


def test_what_is_missing_is_named_with_what_moves_it():
    parts = [swell(1, 8, [0, 1]), swell(4, 8, [0, 1]), swell(5, 8, [0, 1, 3])]
    problem = Problem(toy.arm(N), prepare(recorded(parts), 5.0))
    found = select_blocks(problem)
    still = [each for each in found.missing if each.joint == "joint_3"]
    assert {"fv3", "fc3"} <= {each.name for each in still}
    words = {each.name: each.words for each in still}
    assert "joint_3 at several speeds" in words["fv3"]
    assert "joint_3 in both directions" in words["fc3"]
    assert "joint_3 reached" in words["fc3"]
    names = {each.name for each in found.missing}
    assert not names & {"fv1", "fc1", "fv2", "fc2"}
    assert names <= set(found.names)


def test_a_joint_that_never_moves_moves_no_torque():
    recording = recorded([swell(1, 8, [0, 1]), swell(4, 8, [0, 1])], noise=0.0)
    q = recording.q.copy()
    q[:, 2:] = 0.0
    problem = Problem(toy.arm(N), prepare(replace(recording, q=q), 5.0))
    found = select_blocks(problem)
    words = {each.name: each.words for each in found.missing}
    assert words["fv3"].startswith("affects no torque; needs joint_3 at several speeds")
    assert not np.isfinite(found.after[found.names.index("fv3")])
    assert not np.isfinite(found.chains[0].condition)


def test_logs_compete():
    rich = prepare(recorded([swell(3, 8, [0, 1, 2, 3])], "rich"), 5.0)
    poor = prepare(recorded([swell(1, 8, [0]) * 0.1], "poor"), 5.0)
    found = select_blocks(Problem(toy.arm(N), [poor, rich]), SelectionOptions(gain=0.05))
    assert {block.log for block in found.blocks} == {1}
    assert found.kept(0) == ()
    assert found.logs == ("poor", "rich")
    assert len(found.of(Problem(toy.arm(N), [poor, rich])).samples) == 1


# refusals


def test_senseless_options_are_refused():
    for bad in ({"block": 0.0}, {"gain": 1.5}, {"gain": 0.0}, {"repeat": -1.0}, {"block": 1e300}):
        with pytest.raises(InputError, match=next(iter(bad))):
            SelectionOptions(**bad)
    with pytest.raises(InputError, match=r"block = 0.01 s is shorter than the 0.048 s"):
        select_blocks(work(), SelectionOptions(block=0.01))


def test_a_mean_of_periods_is_refused():
    task = swell(3, 8.0, [0, 1, 2, 3])
    samples = prepare(recorded([task] * 3), 5.0, period=8.0)
    with pytest.raises(InputError, match="leave period out"):
        select_blocks(Problem(toy.arm(N), samples))
    with pytest.raises(InputError, match="does not go with period"):
        samples.only([(0, 10)])


def test_ranges_that_are_not_of_the_log_are_refused():
    (log,) = work().samples
    for bad in ((5, 5), (-1, 5), (0, len(log.q) + 1)):
        with pytest.raises(InputError, match="are not of the log"):
            log.only([bad])


# the command


STUDY = """# of a day's work
[robot]
file = "arm.urdf"  # the arm

[[log]]
files = "work.csv"
rows = [100, 12000]  # the rest is noise

[[log]]
files = "idle.csv"

[[log]]
files = "other.csv"
use = "validate"

[prepare]
bandwidth = 5.0

[select]
gain = 0.03
"""


@pytest.fixture
def study(tmp_path):
    source = Path(__file__).parents[1] / "docs" / "files" / "arm.urdf"
    (tmp_path / "arm.urdf").write_bytes(source.read_bytes())
    robot = load_robot(tmp_path / "arm.urdf")
    n = robot.n
    task = [swell(1, 8, [0], n), rest(4.0, n), swell(2, 8, [0, 1], n), rest(4.0, n)]
    logs = {
        "work": task * 2 + [swell(7, 6, [0, 1], n)],
        "idle": [rest(10.0, n)],
        "other": [swell(9, 8, [0, 1], n)],
    }
    for name, parts in logs.items():
        log = recorded(parts, robot=robot)
        write_joints(tmp_path / f"{name}.csv", robot.joint_names, RATE, q=log.q, tau=log.tau)
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


@pytest.mark.long
def test_a_study_is_written_that_fits_the_chosen_rows(study, capsys):
    fixed = study.parent / "selected.toml"
    shown = tell(capsys, ["select", str(study), "--fix", str(fixed)])
    assert shown.err.splitlines()[-1] == f"written to {fixed}"
    assert max(map(len, shown.out.splitlines())) <= 80
    for word in ("chosen", "information a row", "cond. all", "std %"):
        assert word in shown.out
    text = fixed.read_text()
    assert "# of a day's work" in text
    assert "# the rest is noise" in text
    assert "idle.csv" not in text  # nothing of it tells anything
    section, held = read_study(fixed).log
    assert held.use == "validate"
    assert section.rows == (100, 12000)
    assert all(start >= 100 and (start - 100) % 250 == 0 for start, _ in section.keep)
    found = ask(capsys, ["select", str(study)])
    assert {block["log"].split("/")[-1].split("[")[0] for block in found["blocks"]} == {"work.csv"}
    out = study.parent / "out"
    arguments = ["identify", str(fixed), "--no-report", "--method", "wls", "--full", "-o", str(out)]
    assert f"{found['rows']} fitted" in " ".join(tell(capsys, arguments).out.split())
    settings = json.loads((out / "result.json").read_text())["settings"]
    assert settings["study"]["log"][0]["keep"][0] == list(section.keep[0])
    assert run(["validate", str(out / "result.json"), str(study.parent / "other.csv")]) == 0


@pytest.mark.long
def test_flags_go_before_the_study(study, capsys):
    rows = []
    for flags in ([], ["--gain", "0.2"], ["--block", "0.5"], ["--repeat", "0"]):
        found = ask(capsys, ["select", str(study), *flags])
        rows.append((found["rows"], found["offered"], found["repeats"]))
    assert rows[1][0] < rows[0][0]
    assert rows[2][1] > 1.8 * rows[0][1]
    assert rows[3][2] == 0


def test_what_reading_logs_warns_of_is_told(study, capsys):
    log = study.parent / "work.csv"
    log.write_text(log.read_text().replace("tau_", "current_"))
    words = "currents taken as torques, because every drive's gain is 1"
    told = ask(capsys, ["select", str(study)])["warnings"]
    assert sum(each.endswith(words) for each in told) == 1
    lines = " ".join(tell(capsys, ["select", str(study)]).out.split())
    assert [each for each in told if f"warning {each}" not in lines] == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("gain = 0.03", "gain = 3.0", "'select.gain'"),
        ("gain = 0.03", "gian = 0.03", "did you mean 'gain'"),
        ("rows = [100, 12000]", "keep = []", "'log[1].keep'"),
        ("rows = [100, 12000]", "keep = [[5, 5]]", "'log[1].keep[1]'"),
        ("rows = [100, 12000]", "keep = [[5, 99999]]", "are not of the log's"),
        ("rows = [100, 12000]", "rows = [100, 12000]\nkeep = [[5, 200]]", "keep begins before"),
    ],
)
def test_bad_studies_are_refused_in_a_line(study, capsys, old, new, words):
    study.write_text(study.read_text().replace(old, new))
    assert run(["select", str(study)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
    assert line.startswith("error: ")
    assert words in line


def test_the_copy_has_to_stand_beside_the_study(study, tmp_path, capsys):
    (tmp_path / "sub").mkdir()
    assert run(["select", str(study), "--fix", str(tmp_path / "sub" / "a.toml")]) == 2
    assert "has to be in the folder of" in capsys.readouterr().err
    assert run(["select", str(study), "--fix", str(study)]) == 2
