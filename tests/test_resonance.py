"""A joint's spring from its motor alone: its values and intervals, and stiff joints."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from commands import ask, tell
from springs import ENCODER, RATE, elastic_arm, multisine, twin
from tables import write_joints

import dynident as di
from dynident.core.errors import ComputationError, InputError
from dynident.dynamics.idim import build_idim
from dynident.resonance.two_masses import Resonance

IDIM = build_idim(elastic_arm((1, 2)))


def found(seed: int, joint: int, top: float = 60.0, band: float = 55.0, **values: float):
    """The resonance of a joint of a twin that is shaken up to `top`."""
    log, _ = twin(IDIM, seed, move=partial(multisine, joint=joint, top=top), **values)
    noise = ENCODER * np.random.default_rng([seed, 1]).normal(size=log.q.shape)
    return di.find_resonance(replace(log, q=log.q + noise), joint, (2.0, band), 2.0)


@pytest.mark.long
@pytest.mark.parametrize("joint", [0, pytest.param(1, marks=pytest.mark.long)])
def test_the_motor_alone_tells_a_spring_by_its_resonance(joint: int):
    bodies, unit = build_idim(IDIM.robot.bare, "none"), np.eye(3)[[joint]]
    still = bodies.torque(bodies.nominal, 0.0 * unit, 0.0 * unit, 0.0 * unit)
    moved = bodies.torque(bodies.nominal, 0.0 * unit, 0.0 * unit, unit)
    inertia = (moved - still)[0, joint]
    every: list[Resonance] = [found(seed, joint) for seed in range(12)]
    inside = []
    for own in every:
        assert own.supported
        assert abs(own.values[3] - inertia) < 4.5 * own.std[3]
        for (value, std), truth in ((own.stiffness, 3000.0), (own.damping, 2.0)):
            assert abs(value - truth) < 4.5 * std
            inside.append(abs(value - truth) < 1.96 * std)
        assert own.resonance > 1.05 * own.antiresonance
    assert np.mean(inside) > 0.8
    # few are worse: a sample on the wrong side of a reversal counts as noise
    assert np.median([own.stiffness[1] for own in every]) < 0.1 * 3000.0
    assert abs(np.median([own.misfit for own in every]) - 1.0) < 0.3
    assert np.median([own.stiff_misfit for own in every]) > 2.0
    frequency = np.median([own.antiresonance for own in every])
    assert frequency == pytest.approx(np.sqrt(3000.0 / inertia) / 2.0 / np.pi, 0.02)


def test_a_stiff_joint_is_not_told_from_a_spring():
    """A spring a thousand times as stiff, whose resonance is far above all lines."""
    for seed in range(3):
        own = found(seed, 0, K=3e6, D=0.0)
        assert not own.supported
        assert "does not tell the spring from a stiff joint" in own.words
        assert own.stiff_misfit < 1.5
        assert own.interval == (-np.inf, np.inf)


@pytest.mark.long
def test_a_designed_trajectory_is_shaken_within_its_limits():
    """One joint alone, by lines of equal accelerations; its log tells the spring."""
    robot = IDIM.robot.bare
    options = {"starts": 1, "iterations": 3, "collision": False, "floor": False, "speed": 2.0}
    options |= {"acceleration": 12.0}
    plan = di.excite(robot, duration=2.0, harmonics=2, **options)
    design = di.shake(plan, 0, (2.0, 30.0))
    assert design.certificate.ok
    assert design.certificate.worst.share > 0.7
    times = np.arange(1000) / RATE
    motion = [design.trajectory.at(times, order) for order in range(3)]
    assert np.ptp(motion[0][:, 1:], axis=0).max() < 1e-12
    spectrum = 2.0 * np.abs(np.fft.rfft(motion[2][:, 0]))[4:61] / len(times)
    assert np.ptp(spectrum) < 1e-6 * spectrum[0]
    assert np.all(np.abs(motion[1]).max(axis=0) <= design.task.limits.speed)
    tiled = tuple(np.tile(each, (8, 1)) for each in motion)
    log, _ = twin(IDIM, move=lambda n: tiled, K=1000.0)  # an antiresonance of 22 Hz
    assert di.find_resonance(log, 0, (2.0, 30.0), 2.0).supported
    with pytest.raises(InputError, match="lower end first, and not 30 to 2 Hz"):
        di.shake(plan, 0, (30.0, 2.0))
    with pytest.raises(InputError, match="no line above the trajectory's own"):
        di.shake(plan, 0, (0.1, 0.6))
    drawn = di.excite(robot, trajectory="rests", **options)
    with pytest.raises(InputError, match="'rests' does not repeat"):
        di.shake(drawn, 0, (2.0, 30.0))


def test_a_log_of_no_periods_or_few_lines_is_refused():
    log, _ = twin(IDIM, move=partial(multisine, joint=0, top=20.0))
    repeated = "needed.*; a spring is told by the mean of periods: give .* --shake designs it$"
    with pytest.raises(InputError, match=f"does not repeat every .*{repeated}"):
        di.find_resonance(log, 0, (2.0, 20.0), 1.7)
    other = replace(log, q=np.cumsum(np.random.default_rng(0).normal(size=log.q.shape), axis=0))
    with pytest.raises(InputError, match=f"is not periodic .*{repeated}"):
        di.find_resonance(other, 0, (2.0, 20.0), "found")
    with pytest.raises(InputError, match=r"moves at 4 lines .* a spring needs at least 8"):
        found(0, 0, top=4.0, band=3.9)


@pytest.mark.parametrize(
    ("band", "reason"),
    [
        ((20.0, 2.0), "lower end first, and not 20 to 2 Hz"),
        ((0.0, 0.0), "lower end first"),
        ((float("nan"), 3.0), "lower end first"),
        ((2.0, 300.0), "twin: the band ends at 300 Hz, and samples at 500 Hz tell"),
    ],
)
def test_a_band_that_is_none_is_refused_by_its_name(band, reason):
    log, _ = twin(IDIM)
    with pytest.raises(InputError, match=reason):
        di.find_resonance(log, 0, band, 2.0)


def test_an_antiresonance_above_the_lines_is_refused_with_the_motion_that_shows_it():
    """Of 38 Hz, in lines up to 38: the spring would be told, and wrongly."""
    with pytest.raises(ComputationError) as error:
        found(0, 0, top=38.0, band=38.0)
    words = str(error.value)
    told = re.fullmatch(
        r"twin: joint 1 seems to have an antiresonance of about (.*) Hz, and is shaken up to (.*) "
        r"Hz; a multisine from 2 to (.*) Hz identifies its spring, logged at (.*) Hz or more",
        words,
    )
    near, top, wanted, rate = map(float, told.groups())
    assert near == pytest.approx(38.4, rel=0.15)
    assert top <= 38.0
    assert wanted == pytest.approx(1.5 * near, rel=0.01)
    assert rate == pytest.approx(2.5 * wanted, rel=0.01)


ARM = """<robot name="arm"><link name="base"/>
<link name="l"><inertial><origin xyz="0.2 0 0"/><mass value="4"/>
<inertia ixx="0.02" iyy="0.14" izz="0.14" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="swing" type="revolute"><parent link="base"/><child link="l"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="2" effort="90" velocity="4"/></joint></robot>"""


def write_swing(path, top):
    """Of a link of 0.3 kg m^2 on a spring of 2500 Nm/rad, ten periods of 2 s."""
    rng, t = np.random.default_rng(0), np.arange(10_000) / 500.0
    numbers = np.arange(1, int(2 * top))
    w = np.pi * numbers
    size = np.where(numbers == 1, 0.15, 0.4 / w**2) * np.exp(2j * np.pi * rng.random(len(w)))
    s, waves = 1j * w, np.exp(1j * np.outer(t, w))
    motor = size * (1.0 + 0.3 * s**2 / (2500.0 + 3.0 * s))
    q, speed = (waves @ motor).imag, (waves @ (s * motor)).imag
    tau = (waves @ (0.2 * s**2 * motor + 0.3 * s**2 * size)).imag + speed + 1.5 * np.sign(speed)
    tau += rng.normal(scale=0.05, size=len(t))
    write_joints(path, ["swing"], 500.0, q=q[:, None], tau=tau[:, None])


def test_the_command_tells_springs_and_designs_motions(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(ARM)
    write_swing(tmp_path / "run.csv", 40.0)
    command = ["resonance", "--robot", "arm.urdf", "--joint", "swing", "--band"]
    log = ["--log", "run.csv", "--period", "2"]
    (own,) = ask(capfd, [*command, "1.5", "38", *log])["logs"]
    assert own["told"]
    value, std = own["stiffness"]
    assert abs(value - 2500.0) < 4.0 * std
    parameters = {each["name"]: each["value"] for each in own["parameters"]}
    assert parameters["M"] == pytest.approx(0.3, rel=0.05)
    text = tell(capfd, [*command, "1.5", "38", *log]).out
    assert text.startswith("log         run.csv\nspring      swing: spring of 25")
    write_swing(tmp_path / "low.csv", 16.0)
    low = ["--log", "low.csv", "--period", "2"]
    said = tell(capfd, [*command, "1.5", "15", *low], 1).err
    assert said.startswith("error: low.csv: swing seems to have an antiresonance of about 14")
    assert "a multisine from 1.5 to 2" in said
    assert (
        "'swang' is not known; did you mean 'swing'"
        in tell(
            capfd,
            ["resonance", "--robot", "arm.urdf", "--joint", "swang", "--band", "2", "9", *log],
            2,
        ).err
    )
    (tmp_path / "study.toml").write_text(
        '[robot]\nfile = "arm.urdf"\n[excitation]\nduration = 2.0\nharmonics = 2\nstarts = 1\n'
        "iterations = 3\ncollision = false\nfloor = false\nacceleration = 12.0\n"
    )
    design = ["resonance", "study.toml", "--joint", "1", "--band", "2", "12", "--shake", "out"]
    document = ask(capfd, design)
    assert document["kept"]
    assert max(document["fourier"]["hz"]) == pytest.approx(12.0)
    assert "shaken, 4 s" in tell(capfd, design).out
    table = np.loadtxt(tmp_path / "out" / "trajectory.csv", delimiter=",", skiprows=1)
    assert np.max(np.abs(table[:, 3])) <= 12.0
    assert "leave out --log" in tell(capfd, [*command, "2", "30", *log, "--shake", "out"], 2).err
