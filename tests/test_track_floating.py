"""``dynident track`` on floating robots: what their logs state, streams, loads, and refusals."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from commands import tell
from floating import Made, solo
from legged_files import FOOT, columns_of, contacts, study, without, written
from thin import long

from dynident.cli import run
from dynident.core.inertia import from_com
from dynident.dynamics.base import base_parameters
from dynident.dynamics.equations import Observability
from dynident.study.study import read_study
from dynident.study.track import LogFollower, build_track_setting, track_log

FORCES = ("fx_", "fy_", "fz_")
DERIVATIVES = ("dq_", "ddq_", "base_v", "base_w", "base_a", "base_dw")


@cache
def made(kilograms: float = 0.0) -> Made:
    def loaded(idim, theta):
        theta = theta.copy()
        theta[:10] += from_com(max(kilograms, 1e-9), [0.03, 0.0, 0.05], 1e-2 * np.eye(3))
        return theta

    return solo(8.0, 250.0, change=loaded)


def flags(columns, names=FOOT):
    """Columns that say that feet bear, some of them but a half of the time."""
    samples = len(columns["time"])
    on = np.ones(samples)
    half = np.arange(samples) < samples // 2
    return {f"contact_{name}": half * 1.0 if name == "HR" else on for name in names}


def tracked(path: Path, **options) -> tuple[LogFollower, list]:
    chosen, found = read_study(path), []
    setting = build_track_setting(chosen, chosen.log[0], None)
    return track_log(setting, found.append, **options), found


def error_percent(follower: LogFollower) -> float:
    """Of the predicted right-hand sides that the log states, over states of all kinds."""
    base, theta = follower.base, made().theta
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(made().recording.q), 300)
    log = made().recording
    q, dq, ddq = log.q[chosen], log.dq[chosen], log.ddq[chosen]
    spatial = log.base.acceleration[chosen].copy()
    twist = log.base.twist[chosen]
    spatial[:, :3] -= np.cross(twist[:, 3:], twist[:, :3])
    pose = np.hstack([log.base.position[chosen], log.base.orientation[chosen]])
    motion = np.hstack([pose, q]), np.hstack([twist, dq]), np.hstack([spatial, ddq])
    stated = follower.channels.observed.rows(made().robot)
    W = base.idim.regressor(*motion)[:, stated]
    known = W @ theta
    return (
        100.0
        * np.linalg.norm(W[:, :, base.kept] @ follower.tracker.beta - known)
        / (np.linalg.norm(known))
    )


@pytest.mark.parametrize(
    ("left_out", "keys", "prepare", "most"),
    [
        ((), "", 'bandwidth = 10.0\nderivatives = "measured"', 0.5),
        long(("base_a", "base_dw"), "", 'bandwidth = 10.0\nderivatives = "measured"', 1.0),
        (DERIVATIVES, "", "bandwidth = 10.0", 2.0),
        long((), 'equations = "joints"', 'bandwidth = 10.0\nderivatives = "measured"', 0.5),
        (("tau_",), "", 'bandwidth = 10.0\nderivatives = "measured"', 0.5),
    ],
)
def test_a_log_of_any_equations_is_followed_to_the_truth(tmp_path, left_out, keys, prepare, most):
    written(tmp_path, without(columns_of(made()), *left_out))
    path = study(tmp_path, f'files = "log.csv"\n{keys}', prepare=prepare)
    follower, rows = tracked(path)
    assert error_percent(follower) < most
    assert rows[-1].base.names == follower.base.names
    kind = "joints" if keys else "base" if left_out == ("tau_",) else "full"
    assert follower.channels.observed == Observability(kind)
    expected = base_parameters(made().idim, observed=[Observability(kind)])
    assert follower.base.names == expected.names


@pytest.mark.parametrize("told", [True, long(False)])
def test_what_feet_do_unmeasured_is_projected_out(tmp_path, told):
    """With flags all feet but one bear half of the time; of feet without any all bear always."""
    columns = without(columns_of(made()), *FORCES)
    if told:
        columns |= flags(columns)
        columns = {**columns}
    written(tmp_path, columns)
    follower, _ = tracked(study(tmp_path, 'files = "log.csv"'))
    assert follower.channels.observed.equations == "null-space"
    sets = {tuple(FOOT)} | ({tuple(FOOT)[:3]} if told else set())
    assert set(follower.channels.observed.free) == sets
    if told:  # the foot pushes while its flag is off: a lie shows
        assert error_percent_of_combinations(follower) > 5.0
    else:
        assert error_percent_of_combinations(follower) < 1.0


def error_percent_of_combinations(follower: LogFollower) -> float:
    """Of what four feet leave of the right-hand sides."""
    from dynident.dynamics.base import draw_random_states
    from dynident.dynamics.equations import reduce_to_observed_rows

    base, idim = follower.base, follower.base.idim
    observed = Observability("null-space", free=(tuple(FOOT),))
    states = draw_random_states(idim, 100, 0)
    W = reduce_to_observed_rows(idim.tree, idim.robot, observed, states[0], idim.regressor(*states))
    known = W @ made().theta
    found = W[:, base.kept] @ follower.tracker.beta
    return 100.0 * float(np.linalg.norm(found - known) / np.linalg.norm(known))


@pytest.mark.long
def test_an_inertial_unit_is_enough(tmp_path):
    columns = columns_of(made())
    base = made().recording.base
    turn = np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
         2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
         2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
        for x, y, z, w in base.orientation
    ]).reshape(-1, 3, 3)  # fmt: skip
    force = base.acceleration[:, :3] - np.einsum("tji,j->ti", turn, [0.0, 0.0, -9.81])
    own = without(columns, "base_", *DERIVATIVES)
    for k, axis in enumerate("xyz"):
        own[f"imu_w{axis}"], own[f"imu_a{axis}"] = base.twist[:, 3 + k], force[:, k]
    written(tmp_path, own)
    follower, _ = tracked(study(tmp_path, 'files = "log.csv"', prepare="bandwidth = 10.0"))
    assert error_percent(follower) < 2.0


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A study, its log, and a result of it."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path, columns_of(made()))
    study(tmp_path, 'files = "log.csv"', identify='method = "wls"\ndoctor = false')
    assert run(["identify", "study.toml", "-o", "out", "--no-report"]) == 0
    return tmp_path


def lines_of(capsys, *argv: str) -> list[dict]:
    capsys.readouterr()
    assert run(["track", *argv, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.long
def test_a_pipe_a_state_and_a_start_are_as_of_fixed_bases(desk, capsys, monkeypatch):
    whole = lines_of(capsys, "log.csv", "--start", "out/result.json", "--every", "2")
    assert whole[-1]["samples"] == 2000

    def piped(text: str, *flags: str) -> list[dict]:
        Path("pipe.csv").write_text(text)
        with Path("pipe.csv").open() as stream:
            monkeypatch.setattr("sys.stdin", stream)
            return lines_of(capsys, "-", "--start", "out/result.json", "--every", "2", *flags)

    head, *rows = Path("log.csv").read_text().splitlines()
    # a quaternion and its negative are one orientation
    names = head.split(",")
    quaternion = [names.index(f"base_q{part}") for part in "xyzw"]
    turned = [
        ",".join(f"-{c}" if k in quaternion and n % 2 else c for k, c in enumerate(row.split(",")))
        for n, row in enumerate(rows)
    ]
    turned = [row.replace("--", "") for row in turned]
    found = piped("\n".join([head, *turned]) + "\n")
    assert found[-1]["beta"] == pytest.approx(whole[-1]["beta"], rel=1e-6, abs=1e-9)
    first = piped("\n".join([head, *rows[:900]]) + "\n", "--state", "s.npz")
    rpy = [
        pin.rpy.matrixToRpy(
            pin.Quaternion(np.array(row.split(","), dtype=float)[quaternion]).matrix()
        )
        for row in rows[:900]
    ]
    angled = [f"{row},{r!r},{p!r},{y!r}" for row, (r, p, y) in zip(rows, np.array(rpy).tolist())]
    last = head.replace("base_q", "old_q") + ",base_roll,base_pitch,base_yaw"
    found = piped("\n".join([last, *angled]) + "\n")
    assert found[-1]["beta"] == pytest.approx(first[-1]["beta"], rel=1e-6, abs=1e-9)
    second = piped("\n".join([head, *rows[900:]]) + "\n", "--state", "s.npz")
    assert second[-1]["samples"] <= 2000
    assert [*first, *second][-1]["beta"] == pytest.approx(
        next(row for row in whole if row["samples"] == second[-1]["samples"])["beta"], rel=1e-9
    )


@pytest.mark.long
def test_consistent_links_are_followed_and_a_load_on_the_base_is_weighed(desk, capsys):
    before, after = columns_of(made()), columns_of(made(1.0))
    joined = {name: np.concatenate([own, after[name]]) for name, own in before.items()}
    joined["time"] = np.arange(len(joined["time"])) / 250.0
    # the pose jumps where the logs meet: the same motion begins anew, but for a gap of a second
    joined["time"][len(before["time"]) :] += 1.0
    written(desk, joined, "loaded.csv")
    rows = lines_of(
        capsys, "loaded.csv", "--start", "out/result.json", "--consistent", "--sigma", "0.05"
    )
    events = [row for row in rows if "event" in row]
    assert events[0]["event"] == "load"
    assert 9.0 < events[0]["time"] < 10.0  # by the stamps, with their gap
    assert rows[-1]["load"]["mass"] == pytest.approx(1.0, rel=0.05)
    theta = np.array(list(rows[0]["consistent"].values()))
    assert made().idim.is_consistent(theta)


@pytest.mark.parametrize(
    ("change", "contact", "keys", "words"),
    [
        (
            lambda c: without(c, "base_"),
            None,
            "",
            "log.csv: solo floats, but the log does not have its base",
        ),
        (lambda c: without(c, "base_q"), None, "", "the direction of gravity, is not in the log"),
        (
            lambda c: c,
            contacts('estimate = ["bias"]'),
            "",
            "errors of force sensors are estimated from whole logs",
        ),
        (lambda c: without(c, *FORCES), None, 'equations = "full"', "no wrench of FL"),
        (lambda c: without(c, "base_q"), contacts('axes = "world"'), "", "orientation of the base"),
    ],
)
def test_what_cannot_be_followed_is_refused_in_one_line(
    tmp_path, capsys, change, contact, keys, words
):
    columns = change(columns_of(made()))
    if contact is not None and "world" in contact:
        for part in ("wx", "wy", "wz", "ax", "ay", "az"):
            columns[f"imu_{part}"] = 0.0 * columns["time"]
    written(tmp_path, columns)
    path = study(tmp_path, f'files = "log.csv"\n{keys}', contact=contact)
    capsys.readouterr()
    out, err = tell(capsys, ["track", str(path)], code=2)
    assert out == ""
    assert err.splitlines()[-1].startswith("error: ")
    assert words in err.splitlines()[-1]


@pytest.mark.long
def test_a_result_that_determines_less_than_the_log_states_is_no_start(desk, capsys):
    study(
        desk,
        'files = "log.csv"\nequations = "base"',
        identify='method = "wls"\ndoctor = false',
    )
    assert run(["identify", "study.toml", "-o", "less", "--no-report"]) == 0
    study(desk, 'files = "log.csv"')
    capsys.readouterr()
    argv = ["track", "log.csv", "--study", "study.toml", "--start", "less/result.json"]
    assert "the logs of the result do not all determine" in tell(capsys, argv, code=2).err


@pytest.mark.long
def test_a_line_of_a_stream_that_is_no_orientation_is_named(desk, capsys, monkeypatch):
    head, *rows = Path("log.csv").read_text().splitlines()
    place = head.split(",").index("base_qw")
    cells = rows[40].split(",")
    cells[place] = "3.0"
    Path("bad.csv").write_text("\n".join([head, *rows[:40], ",".join(cells)]) + "\n")
    with Path("bad.csv").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert run(["track", "-", "--start", "out/result.json"]) == 2
    assert "line 42: base_orientation is not a quaternion" in capsys.readouterr().err
