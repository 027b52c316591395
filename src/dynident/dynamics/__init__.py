"""Batched rigid-body dynamics of trees on fixed or free-flying bases (Numba).

Configurations and velocities follow Pinocchio: a floating base comes first, as
``[x y z, qx qy qz qw]`` in the configuration and as the body-frame twist
``[v, omega]`` in the velocity.
"""

from dynident.dynamics.forward import derivatives, forward_dynamics
from dynident.dynamics.inverse import bias, inverse_dynamics, mass_matrix
from dynident.dynamics.regressor import regressor
from dynident.dynamics.tree import Tree, build_tree

__all__ = [
    "Tree",
    "bias",
    "build_tree",
    "derivatives",
    "forward_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "regressor",
]
