"""The judge of slopes: right ones pass on any processor, wrong ones do not."""

from __future__ import annotations

import numpy as np
import pytest
from differences import assert_slope

X = np.array([0.3, -1.2, 2.0])
CASES = {
    "sine": (lambda t: np.sin(X + t), np.cos(X)),
    "steep": (lambda t: np.exp(20.0 * (X + t)), 20.0 * np.exp(20.0 * X)),
    "far from zero": (lambda t: 1e4 + np.sin(X + t), np.cos(X)),
    "number": (lambda t: float(np.cosh(1.0 + t)), float(np.sinh(1.0))),
}


@pytest.mark.parametrize(("function", "slope"), CASES.values(), ids=CASES)
def test_a_right_slope_passes_and_one_that_is_off_does_not(function, slope):
    assert_slope(function, slope, 1e-4)
    for share in (1e-4, -3e-5):
        with pytest.raises(AssertionError, match="off by"):
            assert_slope(function, np.multiply(slope, 1.0 + share), 1e-4)


def test_nothing_is_a_slope_too():
    assert_slope(lambda t: 3.0, 0.0, 1e-4, scale=1.0)
    with pytest.raises(AssertionError, match="off by"):
        assert_slope(lambda t: 3.0, 1e-4, 1e-4, scale=1.0)


def test_noise_widens_the_tolerance_until_it_tells_nothing():
    rng = np.random.default_rng(0)

    def shake(size):
        return lambda t: np.sin(X + t) + size * rng.normal(size=3)

    assert_slope(shake(1e-12), np.cos(X), 1e-4)
    with pytest.raises(AssertionError, match="know the slope to"):
        assert_slope(shake(1e-9), np.cos(X), 1e-4)


@pytest.mark.parametrize("function", [abs, lambda t: np.sqrt(t - 1e-5), np.sign])
def test_bends_gaps_and_jumps_are_refused(function):
    with np.errstate(invalid="ignore"), pytest.raises(AssertionError, match="know the slope"):
        assert_slope(function, 0.0, 1e-4)
