"""Estimators by name; each maps a `Problem` to an `Estimate`."""

from __future__ import annotations

from collections.abc import Callable

from dynident.encoders.cloe import cloe
from dynident.estimators.constrained import (
    pc_clie,
    pc_didim,
    pc_idim_iv,
    pc_idim_ls,
    pc_idim_ls_roughly,
    pc_ref_iv,
)
from dynident.estimators.didim import didim
from dynident.estimators.energy import energy
from dynident.estimators.estimate import Estimate, RoughEstimate
from dynident.estimators.instrumental import estimate_2sls, idim_iv, ref_iv
from dynident.estimators.least_squares import irls, ols, wls, wls_roughly
from dynident.estimators.output_error import clie
from dynident.estimators.sequential import sequential
from dynident.estimators.static import static
from dynident.online.ekf import ekf
from dynident.online.recursive import kf, rls
from dynident.search.ga import ga
from dynident.search.gradient import gradient
from dynident.search.nls import nls
from dynident.search.pf import pf
from dynident.smoothing.ml import ml
from dynident.smoothing.smooth import smooth

ESTIMATORS: dict[str, Callable[..., Estimate]] = {
    "ols": ols,
    "wls": wls,
    "irls": irls,
    "static": static,
    "ml": ml,
    "energy": energy,
    "sequential": sequential,
    "idim-iv": idim_iv,
    "2sls": estimate_2sls,
    "ref-iv": ref_iv,
    "didim": didim,
    "cloe": cloe,
    "clie": clie,
    "pc-idim-ls": pc_idim_ls,
    "pc-idim-iv": pc_idim_iv,
    "pc-ref-iv": pc_ref_iv,
    "pc-didim": pc_didim,
    "pc-clie": pc_clie,
    "smooth": smooth,
    "rls": rls,
    "kf": kf,
    "ekf": ekf,
    "nls": nls,
    "gradient": gradient,
    "ga": ga,
    "pf": pf,
}

ROUGHLY: dict[str, Callable[..., RoughEstimate]] = {
    "wls": wls_roughly,
    "pc-idim-ls": pc_idim_ls_roughly,
}
"""Estimates of methods without error bars, from sigmas to begin with, where that costs less."""

DEFAULT_METHOD = "pc-idim-ls"
"""By default."""

OWN_SHAPES = frozenset({"ekf"})
"""Methods that estimate shapes of friction themselves; others have them linearised."""

REDUCIBLE = frozenset(
    ("ols", "wls", "irls", "ml", "idim-iv", "2sls", "ref-iv", "didim", "cloe", "clie", "rls", "kf")
)
"""Methods that can be told to estimate some base parameters alone: those that constrain nothing.

A base parameter that is zero is not a statement that a body has to satisfy, and ranges of searches
are of all parameters.
"""

FACTORED = ("ols", "wls", "pc-idim-ls")
"""Methods that factors are enough for: no other does without the rows."""

TORQUE_FREE = ("cloe", "clie")
"""Methods that know the law, and so fit logs without torque: to positions, or the law's torque."""

__all__ = [
    "DEFAULT_METHOD",
    "ESTIMATORS",
    "FACTORED",
    "OWN_SHAPES",
    "REDUCIBLE",
    "TORQUE_FREE",
    "Estimate",
]
