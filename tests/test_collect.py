"""Logs collected as factors: the same answers as of the logs, the same bits whoever made them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import toy
from clusters import start_processes, start_threads
from commands import tell
from robots import EXAMPLES
from thin import long

import dynident as di
from dynident.cli import run
from dynident.collection.identify import measure_left_out
from dynident.core.errors import InputError
from dynident.core.factors import Factors, GroupFactor, merge_all
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.least_squares import wls
from dynident.fit.figures import score_fitted_rows
from dynident.regression.blocks import factor_runs, factorise_run_sum
from dynident.regression.problem import Problem
from dynident.study.collect import reduce_log
from dynident.study.study import Study, read_study

ARM = Path(__file__).parents[1] / "docs" / "files" / "arm.urdf"
RATE, SAMPLES = 200.0, 2400


def write_log(path: Path, seed: int, heavier: float = 1.1, samples: int = SAMPLES) -> None:
    """A log of a two-joint arm that is heavier than its file, with noise."""
    robot = di.load_robot(ARM)
    model = di.build_idim(robot, "coulomb-viscous")
    drives = [0.20, 1.5, 2.0, 0.1, 0.08, 0.6, 0.9, -0.05]
    q, dq, ddq = (0.35 * x for x in toy.motion(2, samples / RATE, seed, RATE))
    tau = model.torque(np.concatenate([heavier * robot.nominal.ravel(), drives]), q, dq, ddq)
    tau += np.random.default_rng(seed).normal(scale=[0.5, 0.2], size=tau.shape)
    names = ("q_shoulder", "q_elbow", "tau_shoulder", "tau_elbow")
    signals = dict(zip(names, np.hstack([q, tau]).T, strict=True))
    np.savez(path, time=np.arange(samples) / RATE, **signals)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a robot, three logs, and their factors in ``made``."""
    folder = tmp_path_factory.mktemp("logs")
    shutil.copy(ARM, folder)
    for seed in (1, 2, 3):
        write_log(folder / f"run{seed}.npz", seed)
    text = '[robot]\nfile = "arm.urdf"\n[prepare]\nbandwidth = 5.0\n'
    (folder / "study.toml").write_text(text)
    di.collect(folder / "study.toml", [f"{folder}/run*.npz"], folder / "made")
    return folder


def read_directly(logs: Path, method: str, **options: object) -> di.Fit:
    """`identify` of the same logs, with nothing decided and error bars by runs of time."""
    keys = {"method": method, "decide": "nothing", "covariance": "blocks", "doctor": False}
    keys |= options
    study = read_study(logs / "study.toml", None)
    told = study.model_dump(exclude_none=True)
    files = [{"files": [str(logs / f"run{k}.npz")]} for k in (1, 2, 3)]
    return di.run_study(
        Study.model_validate({**told, "log": files, "identify": {**keys, **options}})
    )


def assert_near(found: np.ndarray, expected: np.ndarray, share: float = 1e-9) -> None:
    """Equal up to a share of the largest entry."""
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=share * np.max(np.abs(expected)))


@pytest.mark.parametrize(
    ("method", "options"),
    [
        long("ols", {}),
        ("wls", {"essential": "ratio"}),
        long("pc-idim-ls", {"bootstrap": 0}),
        ("pc-idim-ls", {"bootstrap": 0, "prior_weight": "held-out"}),
    ],
)
def test_factors_answer_as_the_logs_do(logs, method, options):
    found = di.identify_factors(logs / "made", method, **options)
    direct = read_directly(logs, method, **options)
    assert_near(found.estimate.beta, direct.estimate.beta)
    assert_near(found.estimate.sigma, direct.estimate.sigma)
    assert_near(found.estimate.covariance.matrix, direct.estimate.covariance.matrix, 1e-7)
    assert found.estimate.covariance.name == direct.estimate.covariance.name
    assert found.essential == direct.essential
    if method == "pc-idim-ls":
        assert_near(found.theta, direct.theta)
        assert found.estimate.knowledge == direct.estimate.knowledge
    for mine, theirs in ((found.identification, direct.identification),
                         (found.nominal, direct.nominal)):  # fmt: skip
        assert mine[0].overall_percent == pytest.approx(theirs[0].overall_percent, rel=1e-9)
    assert found.rank == direct.rank
    assert found.verdict.state == direct.verdict.state


def test_the_order_of_logs_changes_no_bit(logs, tmp_path):
    files = [str(logs / f"run{k}.npz") for k in (3, 1, 2)]
    for k, file in enumerate(files):
        di.collect(logs / "study.toml", [file], logs / "other")
        assert len(list((logs / "other").glob("*.npz"))) == k + 1
    made = sorted((logs / "made").iterdir())
    assert [path.name for path in made] == sorted(p.name for p in (logs / "other").iterdir())
    for path in made:
        assert path.read_bytes() == (logs / "other" / path.name).read_bytes(), path.name
    assert di.identify_factors(logs / "made") == di.identify_factors(logs / "other")


def assert_same_files(one: Path, other: Path) -> None:
    """Folders of the same files, bit by bit."""
    assert sorted(p.name for p in one.iterdir()) == sorted(p.name for p in other.iterdir())
    for path in one.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes(), path.name


def test_a_cluster_changes_no_bit(logs):
    with start_threads() as here:
        di.collect(logs / "study.toml", [f"{logs}/run*.npz"], logs / "there", engine=here)
    assert_same_files(logs / "made", logs / "there")


@pytest.mark.long
def test_neither_the_number_of_workers_nor_the_engine_changes_a_bit(logs):
    for workers in (2, 16):
        made = logs / f"by{workers}"
        di.collect(logs / "study.toml", [f"{logs}/run*.npz"], made, workers=workers)
        assert_same_files(logs / "made", made)
    with start_processes() as cluster:
        place = cluster.scheduler_address
        di.collect(logs / "study.toml", [f"{logs}/run*.npz"], logs / "two", engine=place)
    assert_same_files(logs / "made", logs / "two")


def test_only_what_is_new_is_read(logs, tmp_path, monkeypatch):
    for name in ("arm.urdf", "study.toml", "run1.npz", "run2.npz"):
        shutil.copy(logs / name, tmp_path)
    study, output = tmp_path / "study.toml", tmp_path / "made"
    di.collect(study, [tmp_path], output)
    reduce = reduce_log
    read = []
    monkeypatch.setattr(
        "dynident.study.collect.reduce_log", lambda task: read.append(task) or reduce(task)
    )
    again = di.collect(study, [tmp_path], output)
    assert not read
    assert [entry.state for entry in again.entries] == ["there", "there"]
    write_log(tmp_path / "run2.npz", 7)
    shutil.copy(logs / "run3.npz", tmp_path)
    found = di.collect(study, [tmp_path], output)
    assert len(read) == 2
    assert [entry.state for entry in found.entries] == ["there", "read", "read"]
    assert found.notes == ("run2.npz has changed: its earlier factors went",)
    assert len(list(output.glob("*.npz"))) == 3
    gone = di.collect(study, [tmp_path, "nowhere/*.npz"], output, withdraw=["run3.npz"])
    assert gone.notes == ("run3.npz is withdrawn",)
    assert [entry.name for entry in gone.entries] == ["nowhere/*.npz", "run1.npz", "run2.npz"]
    assert len(read) == 2
    with pytest.raises(InputError, match=r"has no source 'run9\.npz'"):
        di.collect(study, [tmp_path / "run1.npz"], output, withdraw=["run9.npz"])


def test_what_cannot_be_used_is_named_and_the_rest_is_done(logs, tmp_path):
    for name in ("arm.urdf", "study.toml", "run1.npz"):
        shutil.copy(logs / name, tmp_path)
    whole = (tmp_path / "run1.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "copy.npz").write_bytes(whole)
    with np.load(tmp_path / "run1.npz") as signals:
        np.savez_compressed(tmp_path / "packed.npz", **signals)
        names = {"q_shoulder": "x_1", "q_elbow": "x_2"}
        np.savez(tmp_path / "foreign.npz", **{names.get(k, k): v for k, v in signals.items()})
    write_log(tmp_path / "short.npz", 5, samples=30)
    (tmp_path / "damaged.csv").write_text("time,q_shoulder,q_elbow,tau_shoulder,tau_elbow\n0,0,x\n")
    study = tmp_path / "study.toml"
    found = di.collect(study, [tmp_path], tmp_path / "made")
    reasons = {entry.name: entry.reason for entry in found.left_out}
    used = [entry.name for entry in found.entries if entry.state == "read"]
    # of what holds the same samples one counts, whatever it is called
    assert len(used) == 1
    assert {*used, *reasons} == {p.name for p in tmp_path.iterdir() if p.suffix in (".npz", ".csv")}
    same = {"run1.npz", "copy.npz", "packed.npz"}
    told = [reasons[name] for name in same - {*used}]
    assert all("has the contents of" in words or "has the samples of" in words for words in told)
    assert "was cut off" in reasons["cut.npz"]
    assert "no column 'q_shoulder'" in reasons["foreign.npz"]
    assert "has 30 samples" in reasons["short.npz"]
    assert "row" in reasons["damaged.csv"] or "line" in reasons["damaged.csv"]
    assert all(name in found.summary() for name in reasons)
    with pytest.raises(InputError, match=r"copy\.npz|run1\.npz"):
        di.collect(study, [tmp_path], tmp_path / "strict", strict=True)


def write_part(whole: Path, path: Path, rows: slice, digits: int | None = None) -> None:
    """A stretch of a log as text, its angles in degrees of some digits."""
    with np.load(whole) as signals:
        told = {key: values[rows] for key, values in signals.items()}
    angles = [name.startswith("q_") for name in told]
    table = np.column_stack([*told.values()]) * np.where(angles, 180.0 / np.pi, 1.0)
    header = ",".join(f"{n} [deg]" if own else n for n, own in zip(told, angles, strict=True))
    table = table if digits is None else table.round(digits)
    np.savetxt(path, table, delimiter=",", header=header, comments="")


@pytest.mark.parametrize("together", [True, False])
def test_copies_in_other_units_and_stretches_count_once(together, logs, tmp_path):
    """Whichever comes first: the log with the most samples is kept."""
    study, made = logs / "study.toml", tmp_path / "made"
    shutil.copy(logs / "run1.npz", tmp_path / "b.npz")
    write_part(logs / "run1.npz", tmp_path / "a.csv", slice(400, 900), 5)
    write_part(logs / "run1.npz", tmp_path / "c.csv", slice(None), 5)
    write_part(logs / "run2.npz", tmp_path / "d.csv", slice(300, 900))
    files = [tmp_path / name for name in ("a.csv", "b.npz", "c.csv", "d.csv")]
    for some in [files] if together else [[each] for each in files]:
        found = di.collect(study, some, made)
    assert [entry.name for entry in found.entries if entry.state != "left out"] == [
        "b.npz",
        "d.csv",
    ]
    assert len(list(made.glob("*.npz"))) == 2
    again = di.collect(study, files, made)
    told = {entry.name: entry.reason for entry in again.left_out}
    assert told == dict.fromkeys(("a.csv", "c.csv"), "has the samples of b.npz")


def test_merged_folders_count_copies_in_other_units_once(logs, tmp_path):
    write_part(logs / "run1.npz", tmp_path / "copy.csv", slice(None), 5)
    di.collect(logs / "study.toml", [tmp_path / "copy.csv"], tmp_path / "made")
    for path in (logs / "made").glob("*.npz"):
        shutil.copy(path, tmp_path / "made")
    fit = di.identify_factors(tmp_path / "made", "wls")
    assert len(fit.settings["sources"]) == 3
    assert any("left out: has the samples of" in words for words in fit.warnings)


def test_a_file_of_factors_that_is_cut_is_named_and_made_again(logs, tmp_path):
    folder = tmp_path / "made"
    shutil.copytree(logs / "made", folder)
    path = next(folder.glob("*.npz"))
    path.write_bytes(path.read_bytes()[:-300])
    fit = di.identify_factors(folder, "wls")
    assert fit.warnings[0].startswith(f"{path.name} is left out: ")
    assert len(fit.settings["sources"]) == 2
    di.collect(logs / "study.toml", [logs], folder)
    assert len(di.identify_factors(folder, "wls").settings["sources"]) == 3


def test_what_needs_rows_is_refused_in_one_line(logs, tmp_path):
    made = logs / "made"
    for words, method, options in (
        ("method irls needs rows.*take ols, wls, pc-idim-ls", "irls", {}),
        ("covariance 'hac' needs rows", "wls", {"covariance": "hac"}),
        ("lowpass_hz takes the samples", "wls", {"lowpass_hz": 5.0}),
        ("method wls has no option 'prior_weight'", "wls", {"prior_weight": 1.0}),
    ):
        with pytest.raises(InputError, match=words):
            di.identify_factors(made, method, **options)
    with pytest.raises(InputError, match="holds no factors"):
        di.identify_factors(tmp_path)
    study = read_study(logs / "study.toml", None)
    for section, key, value, words in (
        ("prepare", "bandwidth", 4.0, r"another model, preparation or version \(\[prepare\]"),
        ("prepare", "period", 2.0, "average over logs"),
        ("robot", "friction", "stribeck", "has shapes"),
        ("robot", "friction", "load", "depends on loads"),
        ("robot", "friction", "viscous", r"\[robot\] differ"),
    ):
        own = getattr(study, section).model_copy(update={key: value})
        with pytest.raises(InputError, match=words):
            di.collect(study.model_copy(update={section: own}), [logs], made)


def test_a_fit_of_factors_is_a_fit_as_any_other(logs, tmp_path):
    fit = di.identify_factors(logs / "made", bootstrap=0)
    assert fit.verdict.state == "trusted"
    fit.save(tmp_path)
    again = di.read_result(tmp_path / "result.json")
    assert again == fit
    assert "not known" in (tmp_path / "report.html").read_text()
    assert len(again.samples) == 3  # the study behind it has the logs
    robot = di.load_robot(tmp_path / "model.urdf")
    np.testing.assert_allclose(robot.nominal, fit.phi, rtol=1e-6, atol=1e-9)
    held_out = di.read_log(logs / "run1.npz", fit.robot)
    assert di.validate(again, held_out)[0].overall_percent < 10.0


def test_a_log_that_others_do_not_explain_is_doubted(logs, tmp_path):
    shutil.copytree(logs / "made", tmp_path / "made")
    for seed in range(4, 8):
        write_log(tmp_path / f"run{seed}.npz", seed)
    write_log(tmp_path / "other.npz", 9, heavier=1.4)
    di.collect(logs / "study.toml", [f"{tmp_path}/*.npz"], tmp_path / "made")
    fit = di.identify_factors(tmp_path / "made", "wls")
    said = [reason.words for reason in fit.verdict.reasons]
    assert any(words.startswith("other.npz: error ") for words in said)
    assert not any("run" in words for words in said)


def test_commands_collect_and_identify(logs, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert (
        run(["collect", str(ARM), f"{logs}/run*.npz", "-o", "f", "--bandwidth", "5", "--json"]) == 0
    )
    told = json.loads(capfd.readouterr().out)
    assert [entry["state"] for entry in told["entries"]] == ["read"] * 3
    assert run(["identify", "f", "--method", "wls", "-o", "out", "--no-report"]) == 0
    assert "% of the torques" in capfd.readouterr().out
    result = json.loads(Path("out/result.json").read_text())
    assert [source["source"] for source in result["settings"]["sources"]] == [
        "run1.npz", "run2.npz", "run3.npz",
    ]  # fmt: skip
    for flags, words in (
        (["--bandwidth", "4"], "factors fix the robot"),
        (["--decide", "all"], "--decide needs rows"),
        (["--lowpass", "4"], "--lowpass: "),
        (["--method", "didim"], "method didim needs rows"),
    ):
        assert words in tell(capfd, ["identify", "f", *flags], code=2).err
    assert run(["collect", str(ARM), "missing.npz", "-o", "g", "--strict"]) == 2
    assert "missing.npz" in capfd.readouterr().err
    Path("short.csv").write_text("time,q_shoulder\n0,0\n")
    told = tell(capfd, ["collect", str(ARM), "short.csv", "-o", "g", "--bandwidth", "5"], code=2)
    assert "left out" in told.out
    assert "g: no log can be used" in told.err
    assert "written" not in told.err
    told = tell(capfd, ["collect", str(ARM), "-o", "g", "--bandwidth", "5"], code=2)
    assert "no log is given" in told.err
    Path("s.toml").write_text(f'[robot]\nfile = "{ARM}"\n[[log]]\nfiles = "{logs}/run1.npz"\n')
    for flag in (["--rows", "0,900"], ["--units", "q=deg"], ["--columns", "q=p_*"]):
        said = tell(capfd, ["collect", "s.toml", "-o", "g", *flag], code=2).err
        assert f"error: {flag[0]}: s.toml has logs of its own: edit its [[log]]" in said
    assert not Path("g").exists()


def test_what_was_noticed_in_a_log_is_said_when_it_is_read(logs, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    call = ["collect", str(ARM), f"{logs}/run1.npz", "-o", "f"]
    assert "warning: run1.npz: no joint bandwidth was given" in tell(capfd, call).err
    told = tell(capfd, [*call, "--json"])
    assert "warning" not in told.err
    (entry,) = json.loads(told.out)["entries"]
    assert entry["state"] == "there"
    assert "no joint bandwidth was given" in entry["warnings"][0]


def test_columns_are_recognised_by_those_of_the_first_log(logs, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for k in (1, 2):
        with np.load(logs / f"run{k}.npz") as given:
            np.savez(
                f"run{k}.npz",
                stamp_ms=1e3 * given["time"],
                **{f"joint_positions_{j}": given[f"q_{j}"] for j in ("shoulder", "elbow")},
                **{f"torques_{j}": given[f"tau_{j}"] for j in ("shoulder", "elbow")},
            )
    told = tell(capfd, ["collect", str(ARM), "run1.npz", "run2.npz", "--bandwidth", "5"])
    assert "columns: q = joint_positions_*, tau = torques_*, time = stamp_ms" in told.err
    di.collect(logs / "study.toml", [f"{logs}/run{k}.npz" for k in (1, 2)], "own")
    found, plain = (di.identify_factors(folder, "wls") for folder in ("factors", "own"))
    assert_near(found.estimate.beta, plain.estimate.beta)


def test_errors_of_a_source_left_out_are_those_of_a_fit_to_the_others():
    rng = np.random.default_rng(3)
    parts = [
        Factors(tuple(GroupFactor(f"{g}", rng.normal(size=(9, 5)), 9) for g in range(2)))
        for _ in range(4)
    ]
    sigma = np.array([0.5, 2.0])
    found = measure_left_out(parts, sigma)
    for k, part in enumerate(parts):
        others = merge_all([other for other in parts if other is not part])
        beta = others.weighted(sigma).solve()
        assert found[k] == pytest.approx(score_fitted_rows(part, beta).overall_percent, rel=1e-9)
    # a column that one part alone knows is open without it
    alone = [Factors(tuple(_drop(g) for g in part.groups)) for part in parts[1:]]
    assert np.isnan(measure_left_out([parts[0], *alone], sigma)).tolist() == [True] + [False] * 3


def _drop(group: GroupFactor) -> GroupFactor:
    factor = group.factor.copy()
    factor[:, 0] = 0.0
    return GroupFactor(group.name, factor, group.rows)


def test_merged_triangles_are_those_of_all_rows():
    rng = np.random.default_rng(1)
    rows = [rng.normal(size=(7, 4)) for _ in range(20)]
    parts = [Factors((GroupFactor("a", own, 7), GroupFactor("b", own[:0], 0))) for own in rows]
    whole, none = merge_all(parts).groups
    assert whole.rows == 140
    assert none.factor.shape == (0, 4)
    assert np.all(np.diag(whole.factor) > 0.0)
    stacked = np.vstack(rows)
    np.testing.assert_allclose(whole.factor.T @ whole.factor, stacked.T @ stacked, rtol=1e-12)


@pytest.mark.long
def test_error_bars_by_runs_of_time_follow_correlation():
    """White errors give the sandwich's; of errors that last they tell what Monte Carlo tells."""
    robot = toy.arm(2)
    samples = [toy.on_its_motion(toy.log(robot, 3.0, seed=k)[0], 10.0) for k in range(8)]
    base, rng = Problem(robot, samples).base, np.random.default_rng(0)
    for keep in (0.0, 0.99):
        betas, bars = [], []
        for _ in range(10):
            noisy = []
            for log in samples:
                taps = keep ** np.arange(400)
                drawn = rng.normal(size=(len(log.tau) + len(taps) - 1, 2))
                error = np.column_stack([np.convolve(e, taps, "valid") for e in drawn.T])
                noisy.append(log.driven(log.tau + 0.1 * error))
            found = wls(Problem.of(base, noisy), ErrorBars("blocks"))
            betas.append(found.beta)
            bars.append(found.covariance.std)
        ratio = np.sqrt(np.mean(np.var(betas, axis=0, ddof=1) / np.mean(bars, axis=0) ** 2))
        assert 0.7 < ratio < 1.4


def test_error_bars_by_runs_do_not_hang_on_the_order():
    robot = toy.arm(2)
    logs = [toy.on_its_motion(toy.log(robot, 3.0, 0.2, seed=k)[0], 10.0) for k in range(3)]
    problem = Problem(robot, logs)
    runs = factor_runs(problem)
    kept = Problem.of_factors(problem.base, problem.groups, problem.factors, runs[::-1])
    sigma = np.array([0.3, 0.4])
    root, words = factorise_run_sum(problem, sigma)
    other, same = factorise_run_sum(kept, sigma)
    assert words == same
    assert_near(other, root, 1e-10)
    assert not kept.at_hand
    with pytest.raises(InputError, match="only factors of these rows were kept"):
        next(kept.passes())


@pytest.mark.long
def test_floating_factors_answer_as_the_logs_do(tmp_path):
    """Logs with measured forces and with none: other equations, groups and base parameters."""
    study = read_study(EXAMPLES / "quadruped" / "study.toml")
    fitted = tuple(log.model_copy(update={"use": "identify"}) for log in study.log)
    keys = {"method": "wls", "decide": "nothing", "covariance": "blocks"}
    told = study.identify.model_copy(update=keys)
    study = study.model_copy(update={"log": fitted, "identify": told})
    di.collect(study, output=tmp_path)
    found, direct = di.identify_factors(tmp_path), di.run_study(study)
    assert len(direct.base.observed) > 1
    assert found.base.names == direct.base.names
    assert_near(found.estimate.beta, direct.estimate.beta)
    assert_near(found.estimate.covariance.matrix, direct.estimate.covariance.matrix, 1e-7)


def test_a_dataset_of_lerobot_is_a_log_an_episode(logs, tmp_path):
    """Version 3: episodes one behind the other in a file, each with a clock that begins anew."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    tables = []
    for seed in (1, 2, 3):
        with np.load(logs / f"run{seed}.npz") as log:
            pairs = {
                name: np.column_stack([log[f"{name}_shoulder"], log[f"{name}_elbow"]])
                for name in ("q", "tau")
            }
            tables.append(
                arrow.table(
                    {
                        "observation.state": np.degrees(pairs["q"]).tolist(),
                        "observation.effort": pairs["tau"].tolist(),
                        "timestamp": log["time"],
                        "episode_index": np.full(len(log["time"]), seed - 1),
                    }
                )
            )
    data = tmp_path / "arm" / "data" / "chunk-000"
    data.mkdir(parents=True)
    (tmp_path / "arm" / "meta").mkdir()
    (tmp_path / "arm" / "meta" / "info.json").write_text('{"codebase_version": "v3.0"}')
    first = arrow.concat_tables(tables[:2])
    parquet.write_table(first, data / "file-000.parquet", row_group_size=1000)
    parquet.write_table(tables[2], data / "file-001.parquet")
    (data / "file-002.parquet").write_bytes(b"PAR1")
    layout = {
        "columns": {
            "time": "timestamp",
            "q": "observation.state_*",
            "tau": "observation.effort_*",
        },
        "units": {"q": "deg"},
    }
    study = logs / "study.toml"
    found = di.collect(study, [tmp_path / "arm"], tmp_path / "made", layout=layout)
    used = [entry.name for entry in found.entries if entry.state == "read"]
    assert used == ["arm 0", "arm 1", "arm 2"]
    assert [entry.name for entry in found.left_out] == ["arm file-002.parquet"]
    assert "is not a Parquet file, or was cut off" in found.left_out[0].reason
    mine, theirs = (di.identify_factors(place / "made", "wls") for place in (tmp_path, logs))
    assert_near(mine.estimate.beta, theirs.estimate.beta, 1e-6)
