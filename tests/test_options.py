"""Options stand once: their fields make the study's keys, the flags, the page and the refusals."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import toy
from commands import tell

from dynident.api import EVERY_METHOD, identify
from dynident.cli import run
from dynident.cli.options import has_flag, list_flag_spellings
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.prior import METRICS
from dynident.core.errors import InputError, OptionError, name_study_in_errors
from dynident.core.options import (
    InPython,
    Of,
    Options,
    build_option_section,
    build_options,
    check_option,
    collect_options,
    list_options,
)
from dynident.core.schema import Spec, validate_data
from dynident.decide.decision import DecisionOptions
from dynident.friction import DEFAULT_FRICTION
from dynident.methods import ESTIMATORS
from dynident.methods.options import (
    check_options,
    estimate,
    list_all_options,
    list_methods_with_option,
    list_option_families,
    list_option_names,
    resolve_options,
)
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem
from dynident.study.study import IdentifySection


@dataclass(frozen=True)
class Cooking(Options):
    """A family of a test."""

    minutes: Annotated[int, "how long"] = 3
    pan: Annotated[object, InPython(), "what in"] = None


@dataclass(frozen=True)
class Baking(Options):
    """Another, with options that are of others."""

    pan: Annotated[str | None, "what in"] = None
    stirred: Annotated[int, "how often, in a pot", Of("pan", "pot")] = 0
    cooled: Annotated[int, "how long, in a pan", Of("pan")] = 0


def problem():
    return Problem(toy.arm(2), prepare(toy.log(toy.arm(2), noise=0.1)[0], 10.0))


def every():
    return {**list_all_options(), **collect_options([*EVERY_METHOD, DecisionOptions])}


def test_a_family_is_frozen_and_checks_its_values():
    assert Cooking(minutes=np.int64(5)).minutes == 5
    assert type(Cooking(minutes=np.int64(5)).minutes) is int
    with pytest.raises(InputError, match="minutes is 'long' but should be a valid integer"):
        Cooking(minutes="long")
    with pytest.raises(FrozenInstanceError):
        Cooking().minutes = 4


def test_an_option_has_what_its_field_says():
    minutes, pan = list_options(Cooking)
    assert (minutes.name, minutes.default, minutes.words) == ("minutes", 3, "how long")
    assert pan.in_python
    assert not minutes.in_python
    assert build_options(Cooking, {"minutes": 4, "salt": True}) == Cooking(4)


def test_an_option_that_says_nothing_alone_is_refused():
    with pytest.raises(
        OptionError, match=r"^stirred applies only with pan = 'pot'; leave"
    ) as refused:
        Baking(pan="wok", stirred=2)
    assert refused.value.key == "stirred"
    with pytest.raises(OptionError, match=r"^cooled applies only with pan; leave it out$"):
        Baking(cooled=1)
    assert Baking(stirred=0, cooled=0) == Baking()
    assert Baking(pan="pot", stirred=2, cooled=1).stirred == 2


def test_what_an_option_is_of_is_another_of_its_family():
    for name, option in list_all_options().items():
        if option.of is not None:
            assert option.of.other in list_all_options(), name


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"method": "wls", "essential_ratio": 20.0},
            "only with essential = 'ratio'",
        ),
        ({"method": "wls", "essential": "ratio", "essential_p": 0.1}, "with essential = 'f-test'"),
        ({"method": "ga", "spread_weight": 2.0}, "with objective = 'mean-and-spread'"),
        (
            {"consistency": "base", "gyration": 0.1},
            "only with consistency = 'pseudo-inertia'",
        ),
    ],
)
def test_an_option_without_what_it_is_of_is_not_left_aside(given, words):
    with pytest.raises(OptionError, match=words):
        identify(problem(), doctor=False, **given)


def test_a_section_has_the_options_that_a_file_can_hold():
    section = build_option_section("CookingSection", Spec, collect_options([Cooking]))
    assert list(section.model_fields) == ["minutes"]
    assert validate_data(section, {}, "a.toml").minutes is None
    with pytest.raises(InputError, match=r"a.toml: unknown key 'minute'; did you mean 'minutes'"):
        validate_data(section, {"minute": 3}, "a.toml")


def test_every_option_says_what_it_is():
    for option in every().values():
        assert option.words, option.name
        assert not option.words.endswith("."), option.name


def test_the_study_and_the_flags_have_the_options():
    plain = {name for name, option in every().items() if not option.in_python}
    assert set(IdentifySection.model_fields) == {"method"} | plain
    assert {name for name, option in every().items() if has_flag(option)} == plain


@pytest.mark.parametrize("method", ESTIMATORS)
def test_what_a_method_does_not_have_is_refused_with_those_that_have_it(method):
    for name in list_all_options():
        having = list_methods_with_option(name)
        assert having
        if name in list_option_names(method):
            assert method in having
            continue
        with pytest.raises(InputError, match=f"method {method} has no option '{name}'; ") as error:
            check_options(method, {name: 1})
        assert all(other in str(error.value) for other in having)


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(InputError, match="method 'wsl' is not known; did you mean 'wls'"):
        identify(problem(), "wsl")
    with pytest.raises(InputError, match="no method has an option 'pryor'; did you mean 'prior'"):
        identify(problem(), pryor="none")
    with pytest.raises(InputError, match="rows 'every' is not known"):
        identify(problem(), rows="every")


def test_plain_keywords_and_families_are_the_same():
    rows = problem()
    by_keywords = estimate(rows, "pc-idim-ls", prior="none", bootstrap=0)
    knowledge = Knowledge(prior="none")
    by_family = ESTIMATORS["pc-idim-ls"](
        rows, knowledge, list_option_families("pc-idim-ls")["bootstrap"](0)
    )
    np.testing.assert_array_equal(by_keywords.beta, by_family.beta)
    np.testing.assert_array_equal(by_keywords.covariance.matrix, by_family.covariance.matrix)


def test_a_result_tells_the_options_in_effect():
    told = identify(problem(), "irls").settings
    assert told["loss"] == "huber"
    assert told["rows"] == "decimated"
    assert resolve_options("pc-idim-ls", {"bootstrap": 20})["bootstrap"] == 20
    assert resolve_options("pc-idim-ls", {})["seed"] == 0


def test_what_is_added_to_a_registry_can_be_chosen(monkeypatch):
    with pytest.raises(InputError, match="metric 'mine' is not known; choose from pullback, "):
        Knowledge(metric="mine")
    monkeypatch.setitem(METRICS, "mine", METRICS["weighted"])
    assert Knowledge(metric="mine").metric == "mine"


@pytest.mark.parametrize(
    ("advice", "flag", "key"),
    [
        ("set bad_rows = 'cut'", "set --bad-rows cut", "bad_rows = 'cut' (keys of a log stand in"),
        ("lower drop_below", "lower --drop-below", "lower [prepare] drop_below"),
        ("set columns = { q = 'p_*' }", "set --columns 'q=p_*'", "columns = { q = 'p_*' }"),
    ],
)
def test_advice_is_in_the_words_of_where_the_user_is(advice, flag, key):
    for path, words in ((None, flag), (Path("study.toml"), key)):
        with pytest.raises(InputError, match=re.escape(words)), name_study_in_errors(path):
            raise InputError(advice)


@pytest.mark.parametrize("value", [object(), lambda: None, [object()]])
def test_no_refusal_tells_where_an_object_lies_in_memory(value):
    for option in every().values():
        if option.in_python:
            continue
        with pytest.raises(InputError) as refused:
            check_option(option, value)
        assert " at 0x" not in str(refused.value)


@pytest.mark.parametrize("name", [name for name, o in every().items() if not o.in_python])
def test_a_refused_option_is_named_where_it_was_given(tmp_path, capfd, name):
    """As a key of a study and as a flag, by the type and by the method that has no such option."""
    study = tmp_path / "study.toml"
    text = '[robot]\nfile = "arm.urdf"\n[[log]]\nfiles = "a.csv"\n[identify]\n'
    study.write_text(text + f'{name} = {{ unfit = "perhaps" }}\n')
    assert f"{study}: key 'identify.{name}" in tell(capfd, ["identify", str(study)], code=2).err
    study.write_text(text)
    own = every()[name]
    flag = list_flag_spellings(own)[-1].partition("/")[0]
    without = next((m for m in ESTIMATORS if name not in list_option_names(m)), None)
    if own.kinds != {bool}:
        assert flag in tell(capfd, ["identify", str(study), flag, "{ unfit = '?' }"], code=2).err
    if without is not None and name not in collect_options([*EVERY_METHOD, DecisionOptions]):
        with pytest.raises(OptionError) as refused:
            check_options(without, {name: True})
        assert refused.value.key == name


@pytest.mark.parametrize("command", ["identify", "base"])
def test_help_names_the_friction_that_is_the_default(capsys, command):
    assert run([command, "--help"]) == 0
    assert f"{DEFAULT_FRICTION} (default)" in " ".join(capsys.readouterr().out.split())
