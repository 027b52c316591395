"""Formats of exports: what follows from a line of their registry."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import toy
from commands import tell

from dynident.api import identify
from dynident.core.errors import ComputationError, InputError
from dynident.export.formats import EXPORTS, Format, list_model_formats
from dynident.fit.verdict import REFUTED, Reason, reach_verdict
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem
from dynident.report.draws import is_draw_file, list_draw_formats
from dynident.report.fit import Fit


@cache
def fitted(method: str = "pc-idim-ls") -> Fit:
    robot = toy.arm(2)
    robot = replace(robot, joints=tuple(replace(joint, effort=90.0) for joint in robot.joints))
    log, _ = toy.log(robot, 6.0, 0.3)
    return identify(Problem(robot, prepare(log, 5.0)), method, doctor=False)


def write_names(idim, theta, *_):
    names = [f"{name} {value!r}" for name, value in zip(idim.names, theta.tolist(), strict=True)]
    return "\n".join(names).encode(), ("in no order",)


@pytest.mark.parametrize("name", EXPORTS)
def test_every_format_is_written_as_its_bytes(name, tmp_path):
    fit, path = fitted(), tmp_path / f"model.{EXPORTS[name].suffix}"
    notes = fit.export(path, name)
    assert (path.read_bytes(), notes) == fit.render_file(name, tmp_path)


def test_a_line_is_a_function_and_a_format_of_draws(monkeypatch):
    monkeypatch.setitem(EXPORTS, "names", Format("a list", "The list.", "txt", write_names, ()))
    document, notes = fitted().render_file("names")
    assert notes[0] == "in no order"
    assert notes[1].startswith("what the list cannot hold of the torques ")
    theta = [float(line.split()[1]) for line in document.decode().splitlines()]
    assert np.array_equal(theta, fitted().theta)
    assert "names" in list_draw_formats()
    assert is_draw_file("draw_3.txt")
    assert not is_draw_file("draw_3.c")


def test_what_is_left_out_is_said_in_newton_metres():
    fit = fitted()
    _, notes = fit.render_file("urdf")
    values = [dict(zip(fit.idim.names, fit.theta, strict=True))[name] for name in ("Ia1", "off1")]
    (log,) = fit.samples
    left = log.ddq[:, 0] * values[0] + values[1]
    words = "most at joint_1: "
    assert words in notes[-1]
    told = float(notes[-1].partition(words)[2].split()[0])
    assert told == pytest.approx(np.sqrt(np.mean(left**2)), rel=0.05)
    assert fit.render_file("c")[1] == ()
    assert not any("cannot hold" in note for note in with_all_held(fit).render_file("mjcf")[1])


def with_all_held(fit):
    """The same model without offsets, for which an MJCF has no place."""
    theta = fit.theta.copy()
    theta[[fit.idim.names.index(name) for name in ("off1", "off2")]] = 0.0
    return replace(fit, estimate=replace(fit.estimate, theta=theta))


def test_what_holds_links_is_not_written_of_base_parameters(monkeypatch, tmp_path):
    fit = fitted("wls")
    for name, form in list_model_formats().items():
        with pytest.raises(InputError, match=f"base parameters only, which no {form.name} can"):
            fit.export(tmp_path / "x", name)
    monkeypatch.setitem(EXPORTS, "names", Format("a list", "The list.", "txt", write_names))
    fit.export(tmp_path / "x", "names")
    assert (tmp_path / "x").is_file()


@pytest.mark.parametrize("name", EXPORTS)
def test_what_is_refuted_is_written_anyway_alone(name, tmp_path):
    fit = replace(fitted(), verdict=reach_verdict([Reason(REFUTED, "its log is upside down")], 1))
    with pytest.raises(ComputationError, match=f"{EXPORTS[name].what} requires anyway=True"):
        fit.export(tmp_path / "x", name)
    assert not (tmp_path / "x").exists()
    fit.export(tmp_path / "x", name, anyway=True)
    assert (tmp_path / "x").is_file()


def test_a_format_that_is_not_known_is_refused_with_the_nearest(tmp_path):
    with pytest.raises(InputError, match=r"'mjfc' is not known; did you mean 'mjcf'"):
        fitted().export(tmp_path / "x", "mjfc")


def test_the_command_has_a_flag_for_each(capsys):
    out = tell(capsys, ["export", "--help"]).out
    for name, form in EXPORTS.items():
        assert f"--{name} FILE" in out
        assert form.help in out
