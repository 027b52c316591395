"""Batched rigid-body dynamics of trees on fixed or free-flying bases (Numba).

Configurations and velocities follow Pinocchio: a floating base comes first, as
``[x y z, qx qy qz qw]`` in the configuration and as the body-frame twist
``[v, omega]`` in the velocity.
"""

from dynident.dynamics.forward import differentiate_dynamics, solve_forward_dynamics
from dynident.dynamics.inverse import evaluate_inverse_dynamics
from dynident.dynamics.mass import compute_mass_matrix
from dynident.dynamics.tree import Tree, build_tree

__all__ = [
    "Tree",
    "build_tree",
    "compute_mass_matrix",
    "differentiate_dynamics",
    "evaluate_inverse_dynamics",
    "solve_forward_dynamics",
]
