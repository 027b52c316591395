"""Estimators by name; each maps a `Problem` to an `Estimate`."""

from __future__ import annotations

from collections.abc import Callable

from dynident.estimators.constrained import pc_idim_ls
from dynident.estimators.estimate import Estimate
from dynident.estimators.least_squares import irls, ols, wls

ESTIMATORS: dict[str, Callable[..., Estimate]] = {
    "ols": ols,
    "wls": wls,
    "irls": irls,
    "pc-idim-ls": pc_idim_ls,
}

__all__ = ["ESTIMATORS", "Estimate"]
