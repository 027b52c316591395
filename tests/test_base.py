import numpy as np
import pytest
import toy
from commands import ask
from robots import EXAMPLES, urdf

from dynident.cli import run
from dynident.dynamics.base import base_parameters, draw_random_states
from dynident.dynamics.idim import build_idim
from dynident.export.symbols import find_symbolic_factors
from dynident.robot import load_robot
from dynident.robot.load import read_table_lengths
from dynident_papers.published import read_tx40_table


@pytest.fixture(scope="module")
def tx40():
    return base_parameters(build_idim(load_robot(EXAMPLES / "tx40" / "tx40.toml")))


def test_tx40_has_60_base_parameters_with_the_published_names(tx40):
    assert tx40.count == 60
    assert tx40.rigid_body_count == 36
    text = dict(zip(tx40.names, tx40.regroupings, strict=True))
    assert text["Izz1R"].startswith("Izz1 + Iyy2 + 0.0519 m3 + 0.07 mz3 + Iyy3")
    assert text["my5R"] == "my5 - mz6"
    assert {"Iam6", "fvm6", "fcm6", "Ia3", "Ia4", "Ia5"} <= set(tx40.names)
    assert "Ia6" not in text
    published = read_tx40_table(EXAMPLES / "tx40" / "TX40_bp_5.csv")
    assert {name.removesuffix("R") for name in tx40.names} == set(published)


def test_a_second_rotor_at_joint_6_makes_61(tx40):
    idim = tx40.idim
    q, dq, ddq = draw_random_states(idim, 60, seed=1)
    rows = idim.regressor(q, dq, ddq)
    own = np.zeros((*rows.shape[:2], 1))
    own[:, 5, 0] = ddq[:, 5]
    both = np.concatenate([rows, own], axis=2).reshape(-1, rows.shape[2] + 1)
    # the URDF writes pi/2 with 11 digits, so its axes are parallel to 5e-12 only
    assert np.linalg.matrix_rank(rows.reshape(-1, rows.shape[2]), rtol=1e-9) == 60
    assert np.linalg.matrix_rank(both, rtol=1e-9) == 61


@pytest.mark.parametrize(
    ("name", "floating", "count"),
    [("talos", True, 318), ("solo12", True, 94), ("ur5", False, 36)],
)
def test_known_ranks(name, floating, count):
    robot = load_robot(urdf(name), floating=floating)
    assert base_parameters(build_idim(robot, "none")).count == count


def test_textbook_ranks():
    # a planar arm with its axes along gravity: Izz1R, and Izz2, mx2, my2 of the second
    planar = toy.arm(2)
    joints = tuple(
        type(j)(
            **{
                **j.__dict__,
                "axis": np.array([0.0, 0.0, 1.0]),
                "translation": np.array([0.3, 0, 0]),
            }
        )
        for j in planar.joints
    )
    flat = type(planar)(**{**planar.__dict__, "joints": joints})
    found = base_parameters(build_idim(flat, "none"))
    assert found.names == ("Izz1R", "Izz2", "mx2", "my2")
    assert found.regroupings[0] == "Izz1 + 0.09 m2"
    # with gravity across, the first moments of both links: Gautier's 2R in the vertical plane
    upright = type(flat)(**{**flat.__dict__, "gravity": np.array([0.0, -9.81, 0.0])})
    assert set(base_parameters(build_idim(upright, "none")).names) == {
        "Izz1R", "mx1R", "my1", "Izz2", "mx2", "my2",
    }  # fmt: skip


@pytest.mark.parametrize("coupled", [False, True])
def test_regrouped_columns_are_the_dropped_ones(coupled):
    idim = build_idim(toy.arm(4, coupled=coupled))
    found = base_parameters(idim)
    rows = idim.regressor(*draw_random_states(idim, 50, seed=9)).reshape(-1, len(idim.parameters))
    np.testing.assert_allclose(
        rows[:, found.kept] @ found.K, rows[:, found.dropped], atol=1e-9 * np.abs(rows).max()
    )
    theta = np.random.default_rng(0).normal(size=len(idim.parameters))
    np.testing.assert_allclose(
        rows[:, found.kept] @ (found.matrix @ theta), rows @ theta, atol=1e-9 * np.abs(rows).max()
    )
    np.testing.assert_allclose(
        found.matrix @ found.standard(found.matrix @ theta), found.matrix @ theta
    )


def test_result_does_not_depend_on_the_seed():
    idim = build_idim(toy.arm(5))
    first, second = base_parameters(idim, seed=0), base_parameters(idim, seed=123)
    assert first.names == second.names
    np.testing.assert_allclose(first.K, second.K, atol=1e-9)


SYMBOLIC_TREE = """
name = "tree"
convention = "standard"
[[joint]]
name = "a"
alpha = 10.0
a = {0}
d = {1}
theta0 = 30.0
[[joint]]
name = "b"
alpha = -90.0
a = {2}
d = {3}
type = "prismatic"
[[joint]]
name = "c"
alpha = 75.0
d = {4}
[[joint]]
name = "side"
alpha = 60.0
a = {5}
d = 0.1
parent = "a"
"""


def compute_product(symbol, values):
    """A product of lengths by its name, as a reader has it."""
    found = 1.0
    for part in symbol.split():
        name, _, power = part.partition("^")
        found *= values[name] ** int(power or 1)
    return found


def test_symbolic_regroupings_hold_for_all_lengths_of_the_table(tmp_path):
    """Also for another robot, whose numbers are found by themselves."""
    bases = []
    for k, own in enumerate([(0.1, 0.2, 0.3, -0.1, 0.4, 0.25), (0.4, 0.1, -0.2, 0.5, 0.3, 0.7)]):
        path = tmp_path / f"tree{k}.toml"
        path.write_text(SYMBOLIC_TREE.format(*own))
        bases.append(base_parameters(build_idim(load_robot(path), "none")))
    lengths = read_table_lengths(bases[0].idim.robot)
    assert list(lengths) == ["a1", "d1", "a2", "d2", "d3", "a4", "d4"]
    factors = find_symbolic_factors(bases[0], lengths)
    assert sum(bool(s) for row in factors for terms in row for _, s in terms) > 5
    for base in bases:
        values = {n: x for n, (x, _) in read_table_lengths(base.idim.robot).items()}
        K = [
            [sum(x * compute_product(s, values) for x, s in terms) for terms in row]
            for row in factors
        ]
        np.testing.assert_allclose(K, base.K, atol=1e-9)


def test_symbolic_regroupings_of_an_arm_are_those_of_the_rules(capsys):
    """Of a revolute joint (Gautier and Khalil 1990): Iyy, mz and m go to this link and before."""
    argv = ["base", str(EXAMPLES / "tx40" / "tx40_dh.toml"), "--symbols"]
    document = ask(capsys, argv)
    found = {each["name"]: each["regrouping"] for each in document["parameters"]}
    square = "d4^2 m4 + 2 d4 mz4 + Iyy4 + d4^2 m5 + d4^2 m6"
    assert found["Ixx3R"] == f"Ixx3 - Iyy3 + {square}"
    assert found["my3R"] == "my3 - d4 m4 - mz4 - d4 m5 - d4 m6"
    assert found["Ixx5R"] == "Ixx5 - Iyy5 + Iyy6"
    assert run(["base", str(urdf("ur5")), "--symbols"]) == 2
    assert "symbols need a DH table" in capsys.readouterr().err
