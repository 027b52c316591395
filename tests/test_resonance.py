"""A joint's spring from its motor alone: its values and intervals, and stiff joints."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from springs import ENCODER, RATE, elastic_arm, multisine, twin

import dynident as di
from dynident.core.errors import InputError
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
    log, _ = twin(IDIM, move=lambda n: tiled)
    assert di.find_resonance(log, 0, (2.0, 30.0), 2.0).supported
    with pytest.raises(InputError, match="no line above the trajectory's own"):
        di.shake(plan, 0, (0.1, 0.6))
    drawn = di.excite(robot, trajectory="rests", **options)
    with pytest.raises(InputError, match="'rests' does not repeat"):
        di.shake(drawn, 0, (2.0, 30.0))


def test_a_log_of_no_periods_or_few_lines_is_refused():
    log, _ = twin(IDIM, move=partial(multisine, joint=0, top=20.0))
    with pytest.raises(InputError, match="does not repeat every"):
        di.find_resonance(log, 0, (2.0, 20.0), 1.7)
    with pytest.raises(InputError, match=r"moves at 4 lines .* 8 at least tell a spring"):
        found(0, 0, top=4.0, band=3.9)
