"""The 10-vector and its other forms."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from robots import bodies

from dynident.core import inertia

PHI = bodies(6, seed=3)


def test_pseudo_inertia_and_back() -> None:
    np.testing.assert_allclose(
        inertia.to_inertial_parameters(inertia.to_pseudo_inertia(PHI)), PHI, rtol=1e-14, atol=1e-15
    )


@pytest.mark.parametrize("phi", PHI)
def test_forms_are_pinocchios(phi: np.ndarray) -> None:
    body = pin.Inertia.FromDynamicParameters(phi)
    mass, com, about_com = inertia.to_com(phi)
    assert mass == pytest.approx(body.mass)
    np.testing.assert_allclose(com, body.lever, rtol=1e-12)
    np.testing.assert_allclose(about_com, body.inertia, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(inertia.from_com(mass, com, about_com), phi, rtol=1e-13, atol=1e-14)
    theirs = pin.PseudoInertia.FromInertia(body).toMatrix()
    np.testing.assert_allclose(inertia.to_pseudo_inertia(phi), theirs, rtol=1e-12, atol=1e-14)


def test_transform_is_pinocchios() -> None:
    placement = pin.SE3.Random()
    theirs = placement.act(pin.Inertia.FromDynamicParameters(PHI[0])).toDynamicParameters()
    ours = inertia.transform_body(PHI[0], placement.rotation, placement.translation)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


def test_massless_body_has_its_centre_at_the_origin() -> None:
    mass, com, about_com = inertia.to_com(np.zeros(10))
    assert mass == 0.0
    assert not com.any()
    assert not about_com.any()


def test_consistency() -> None:
    assert inertia.is_consistent(PHI)
    # Ixx + Iyy < Izz: no distribution of positive mass has it
    broken = inertia.from_com(1.0, np.zeros(3), np.diag([1.0, 1.0, 2.1]))
    assert not inertia.is_consistent(broken)
    assert inertia.find_smallest_eigenvalue(broken) == pytest.approx(-0.05)
    assert not inertia.is_consistent(np.vstack([PHI, broken]))
    point_mass = inertia.from_com(1.0, [0.1, 0.0, 0.0], np.zeros((3, 3)))
    assert inertia.find_smallest_eigenvalue(point_mass) < 1e-15
