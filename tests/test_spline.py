"""Cubic splines through samples: those of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

from dynident.filters.spline import interpolate_cubically


@pytest.mark.parametrize("count", [4, 5, 200])
def test_cubic_spline_is_that_of_scipy_and_goes_on_beyond_its_ends(count: int):
    rng = np.random.default_rng(count)
    time = np.cumsum(rng.uniform(0.5, 1.0, count))
    signal = rng.normal(size=(count, 3))
    wanted = np.append(time, rng.uniform(time[0] - 0.2, time[-1] + 0.2, 60))
    known = make_interp_spline(time, signal, k=3)(wanted)
    assert interpolate_cubically(time, signal, wanted) == pytest.approx(known, rel=1e-9, abs=1e-9)


def test_few_samples_are_joined_by_lines():
    time, signal = np.array([0.0, 1.0, 3.0]), np.array([[1.0], [2.0], [8.0]])
    found = interpolate_cubically(time, signal, np.array([0.5, 2.0, 3.0]))
    assert found[:, 0] == pytest.approx([1.5, 5.0, 8.0])
