"""What a report draws of the ground: forces against the weight, footholds, the base's path."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from floating import Made, solo

import dynident as di
from dynident.core.arrays import Array
from dynident.core.series import GroundSeries
from dynident.dynamics.contacts import follow_contact
from dynident.fit.ground import find_ground_support
from dynident.plots.ground import chart_contact_forces, chart_footholds, chart_stances
from dynident.plots.page import render_chart
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.report import html, sections

LOWPASS = 20.0


@cache
def made() -> Made:
    return solo(3.0, 250.0)


def stepping() -> Recording:
    """The log with a foot that bears twice, and one that never does."""
    t = np.arange(len(made().recording.q)) / made().recording.rate
    flags = {"FL": (t < 1.0) | ((t > 1.5) & (t < 1.52)) | (t > 2.0), "FR": t < 0.0}
    flags |= {"HL": t >= 0.0, "HR": t >= 0.0}
    return replace(made().recording, touching=flags)


def problem_of(recording: Recording) -> Problem:
    samples = di.prepare(recording, 25.0, position_hz=1e4, derivatives="measured")
    return Problem(made().robot, samples, "viscous")


def seen(recording: Recording, theta: Array | None = None) -> GroundSeries:
    problem = problem_of(recording)
    own = made().theta if theta is None else theta
    found = find_ground_support(problem.idim, own, problem.samples[0], LOWPASS, 400)
    assert found is not None
    return found


def test_forces_add_up_to_what_the_true_model_asks_for():
    found = seen(made().recording)
    assert list(found.forces) == ["FL", "FR", "HL", "HR"]
    total = sum(found.forces.values())
    np.testing.assert_allclose(total, found.total, atol=1e-9 * found.weight)
    np.testing.assert_allclose(found.asked, found.total, atol=1e-6 * found.weight)
    phi = made().theta[: made().idim.inertial].reshape(-1, 10)
    assert found.weight == pytest.approx(9.81 * phi[:, 0].sum())
    assert 300 < len(found.time) < 800
    # a model that is too heavy does not balance
    heavy = made().theta.copy()
    heavy[: made().idim.inertial] *= 1.1
    assert np.mean(seen(made().recording, heavy).asked / found.total) == pytest.approx(1.1)


def test_feet_are_where_they_stood_as_long_as_they_did():
    found = seen(stepping())
    names = [stance.contact for stance in found.stances]
    assert names == ["FL", "FL", "HL", "HR"]
    log = problem_of(stepping()).samples[0]
    foot = next(contact for contact in made().robot.contacts if contact.name == "FL")
    origin = follow_contact(made().idim.tree, made().robot, foot, log.q).origin[:, :2]
    flags = stepping().touching["FL"]
    for stance, own in zip(found.stances, (slice(0, 250), slice(501, None)), strict=False):
        assert flags[own].all()
        stop = len(log.q) if own.stop is None else own.stop
        assert (stance.since, stance.until) == (own.start / log.rate, stop / log.rate)
        low, high = origin[own].min(axis=0), origin[own].max(axis=0)
        assert np.all((stance.track >= low) & (stance.track <= high))
        np.testing.assert_allclose(stance.track.mean(axis=0), origin[own].mean(axis=0), atol=2e-3)
    np.testing.assert_allclose(found.path[0], log.q[0, :2])


def test_contacts_without_a_force_have_a_row_of_when_they_bore():
    found = seen(stepping())
    few = replace(found, forces={name: found.forces[name] for name in ("HL", "HR")})
    root = ET.fromstring(render_chart(chart_stances(few), "when"))
    assert [each.text for each in root.iter("i") if each.get("class") == "y"] == ["FR", "FL"]
    (bars,) = [each.get("d", "") for each in root.iter("path") if each.get("class") == "bars"]
    assert bars.count("M") == 2  # of FL, which bore twice; FR never did


def test_what_is_not_measured_is_not_drawn():
    recording = stepping()
    unmeasured = replace(recording, wrenches={}, touching=recording.touching, equations=None)
    found = seen(unmeasured)
    assert not found.forces
    assert not found.total.size
    assert found.stances
    base = replace(recording.base, position=None)
    found = seen(replace(recording, base=base))
    assert not found.path.size
    assert not any(len(stance.track) for stance in found.stances)
    assert [(s.contact, s.since, s.until) for s in found.stances] == [
        (s.contact, s.since, s.until) for s in seen(recording).stances
    ]


@pytest.mark.long
def test_a_report_has_both_drawings():
    fit = di.identify(problem_of(stepping()), "wls", doctor=False)
    page = sections.render_result_page(fit, ())
    assert 'id="ground"' in page
    assert "Footholds" not in page.partition('id="ground"')[0]
    found = seen(stepping())
    for chart, name, words in (
        (chart_contact_forces(found), html.FORCES, ("of each contact [N]", "weight", "FL", "HR")),
        (chart_footholds(found), html.FOOTHOLDS, ("x [m]", "base", "FL", "HR")),
    ):
        text = "".join(ET.fromstring(render_chart(chart, name)).itertext())
        assert all(word in text for word in words)
        assert f'aria-label="{name}"' in page
    one_foot = replace(found, forces={"FL": found.forces["FL"]}, total=np.empty(0))
    assert "of all [N]" not in render_chart(chart_contact_forces(one_foot), "forces")
