import numpy as np
import pytest
from scipy import linalg

from dynident.core.factors import (
    Factors,
    GroupFactor,
    System,
    compress_groups,
    triangularise_rows,
)


def rows(seed, r, c):
    return np.random.default_rng(seed).normal(size=(r, c))


def test_streamed_factor_equals_the_one_of_all_rows():
    a = rows(0, 5000, 8)
    pieces = ((a[k : k + 137],) for k in range(0, 5000, 137))
    (group,) = compress_groups(pieces, ["a"], [8])
    assert group.rows == 5000
    np.testing.assert_allclose(group.factor.T @ group.factor, a.T @ a, rtol=1e-12)


def test_empty_columns_have_empty_lines_in_a_triangle():
    a = rows(4, 400, 6)
    a[:, [1, 4]] = 0.0
    (group,) = compress_groups(((a[k : k + 50],) for k in range(0, 400, 50)), ["a"], [6])
    np.testing.assert_allclose(group.factor.T @ group.factor, a.T @ a, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(group.factor, np.triu(group.factor))
    assert not group.factor[[1, 4]].any()
    # what is left lies in the last line, where the residuals are looked for
    rest = np.linalg.lstsq(a[:, [0, 2, 3]], a[:, -1])[1][0]
    assert group.factor[-1, -1] ** 2 == pytest.approx(rest, rel=1e-12)


def test_merge_is_the_factor_of_both():
    a, b = rows(1, 300, 5), rows(2, 200, 5)
    merged = Factors((GroupFactor("a", triangularise_rows(a), 300),)).merge(
        Factors((GroupFactor("a", triangularise_rows(b), 200),))
    )
    both = np.vstack([a, b])
    np.testing.assert_allclose(
        merged.groups[0].factor.T @ merged.groups[0].factor, both.T @ both, rtol=1e-12
    )
    assert merged.rows == 500


def test_weighted_system_is_weighted_least_squares():
    groups = [rows(k, 200 + k, 6) for k in range(3)]
    factors = Factors(tuple(GroupFactor("a", triangularise_rows(g), len(g)) for g in groups))
    sigma = np.array([0.5, 2.0, 7.0])
    system = factors.weighted(sigma)
    stacked = np.vstack([g / s for g, s in zip(groups, sigma, strict=True)])
    expected, rest, *_ = np.linalg.lstsq(stacked[:, :-1], stacked[:, -1])
    np.testing.assert_allclose(linalg.solve_triangular(system.A, system.b), expected, rtol=1e-10)
    assert system.rest == pytest.approx(float(rest[0]), rel=1e-10)
    np.testing.assert_allclose(
        factors.squared_residuals(expected),
        [np.sum((g[:, -1] - g[:, :-1] @ expected) ** 2) for g in groups],
    )


def test_selecting_columns():
    a = rows(3, 100, 5)
    chosen = Factors((GroupFactor("a", triangularise_rows(a), 100),)).select([2, 0])
    expected = np.linalg.lstsq(a[:, [2, 0]], a[:, -1])[0]
    system = chosen.weighted(np.ones(1))
    np.testing.assert_allclose(linalg.solve_triangular(system.A, system.b), expected, rtol=1e-10)


def test_no_normal_matrix_is_formed():
    # a condition number of 1e10 would be lost in X'X and is kept in the factor
    a = rows(4, 400, 3)
    a[:, 1] = a[:, 0] + 1e-10 * a[:, 1]
    y = a[:, :2] @ [1.0, 2.0]
    factors = Factors((GroupFactor("a", triangularise_rows(np.column_stack([a[:, :2], y])), 400),))
    system = factors.weighted(np.ones(1))
    np.testing.assert_allclose(linalg.solve_triangular(system.A, system.b), [1.0, 2.0], atol=1e-4)
    condition, rank, _ = system.condition()
    assert condition > 1e9
    assert rank == 1  # the other direction is beyond UNEXCITED


@pytest.mark.parametrize("weakest", [1.0, 1e-3, 1e-9, 0.0])
def test_triangles_are_inverted_as_such_only_where_they_are_regular(weakest):
    rng = np.random.default_rng(2)
    u, s, vt = np.linalg.svd(rng.normal(size=(30, 6)), full_matrices=False)
    s[-1] = weakest * s[-2]
    scales = 10.0 ** np.arange(-3.0, 3.0)
    A = triangularise_rows((u * s) @ vt * scales)
    system = System(A, rng.normal(size=6), 0.0)
    assert system.regular == (weakest >= 1e-3)
    # as though no triangle were known: the rows turned
    turned = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    other = System(turned @ A, turned @ system.b, 0.0)
    assert not other.regular
    length = np.linalg.norm(A, axis=0)
    np.testing.assert_allclose(length * system.solve(), length * other.solve(), rtol=1e-6)
    ours, theirs = system.inverse(), other.inverse() @ turned
    size = np.abs(length[:, None] * theirs).max()
    np.testing.assert_allclose(length[:, None] * ours, length[:, None] * theirs, atol=1e-7 * size)
