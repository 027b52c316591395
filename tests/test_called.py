"""What columns are, by what they are called: which joint each is of, and which signal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynident.readers import Table
from dynident.readers.column_names import describe, find_columns, has_columns
from dynident.readers.units import find_units

ARM = ["lwr_0_joint", "lwr_1_joint"]
PANDA = ["panda_joint1", "panda_joint2", "panda_finger_joint1", "panda_finger_joint2"]
BOTH = ["left_joint1", "left_joint2", "right_joint1", "right_joint2"]


def many(*signals: str) -> list[str]:
    return [f"{signal}_{k}" for signal in signals for k in range(2)]


@pytest.mark.parametrize(
    ("names", "joints", "moved", "columns"),
    [
        # as by default, and of some joints alone
        (["time", "q_a", "q_b", "tau_a", "tau_b"], ["a", "b"], ["a", "b"], {}),
        (["time", "q_a", "tau_a", "q_c", "tau_c"], ["a", "b", "c"], ["a", "c"], {}),
        # what is beside those of default names; a joint of which there is something did not stand
        (
            ["stamp", "cycle_time", "q_a", "q_b", "effort_a", "effort_b"],
            ["a", "b"],
            ["a", "b"],
            {"tau": "effort_*", "time": "stamp"},
        ),
        (
            ["t", "q_a", "q_b", "current_a", "current_b", "effort_a", "effort_b"],
            ["a", "b"],
            ["a", "b"],
            {},
        ),
        (["time", "q_a", "tau_a", "tau_b", "q_c", "tau_c"], ["a", "b", "c"], [], {}),
        (["time", "pos_a", "pos_c", "vel_a", "vel_b", "vel_c"], ["a", "b", "c"], [], {}),
        # series of numbers: targets and motors are others
        (
            ["times", *many("positions", "torques", "target_positions", "velocities")],
            ARM,
            ARM,
            {"q": "positions_*", "tau": "torques_*", "time": "times", "dq": "velocities_*"},
        ),
        # speeds of all joints, by one name that means nothing else
        (["t", *many("q", "tau", "dq")], ARM, ARM, {"q": "q_*", "tau": "tau_*", "dq": "dq_*"}),
        (["t", *many("q"), "dq_0"], ARM, ARM, {"q": "q_*"}),
        (["t", *many("q", "qd")], ARM, ARM, {"q": "q_*"}),
        (["t", *many("q", "dq", "speed")], ARM, ARM, {"q": "q_*"}),
        (["time", "q_a", "q_b", "dq_a", "dq_b"], ["a", "b"], ["a", "b"], {}),
        # a simulator's forces of joints, and those of a sensor
        (
            ["t", "Joint1_Pos", "Joint2_Pos", "Joint1_Force", "Joint2_Force"],
            ARM,
            ARM,
            {"q": "Joint*_Pos", "tau": "Joint*_Force"},
        ),
        (["t", *many("q", "force")], ARM, ARM, {"q": "q_*"}),
        (["t", *many("q", "effort", "tau")], ARM, ARM, {"q": "q_*"}),  # which torque is not clear
        (["t", *many("pos", "position")], ARM, [], {}),
        (["t", *many("motor_position")], ARM, [], {}),
        # a star that would mean others, too
        (
            ["t", "q_0", "q_1", "q_ref"],
            ARM,
            ARM,
            {"q": ("q_0", "q_1")},
        ),
        (["t", "position", "target", "effort"], ["a"], ["a"], {"q": "position", "tau": "effort"}),
        # numbers are in their own order
        (
            ["t", "pos_10", *(f"pos_{k}" for k in range(1, 10))],
            [*"abcdefghij"],
            [*"abcdefghij"],
            {"q": tuple(f"pos_{k}" for k in range(1, 11))},
        ),
        # joints' names say whose they are, wherever the file has them, and whatever stands beside
        (["t", "pos.b", "pos.a"], ["a", "b"], ["a", "b"], {"q": "pos.*"}),
        (["t", "pos.b", "pos.a", "pos.ref"], ["a", "b"], ["a", "b"], {"q": ("pos.a", "pos.b")}),
        (["t", "pos_1", "pos_2", "pos_err"], ["2", "1"], ["2", "1"], {"q": ("pos_2", "pos_1")}),
        # of which joint the fourth is, is not clear, nor whether the second is the first
        (["t", "pos_1", "pos_2", "pos_4"], ["a", "b", "c"], [], {}),
        (["t", "pos_2", "pos_3"], ["a", "b"], [], {}),
        # ends of joints' names: fingers are longer, arms are two
        (
            ["time", "q_joint1", "q_joint2", "tau_joint1", "tau_joint2"],
            PANDA,
            PANDA[:2],
            {"q": "q_joint*", "tau": "tau_joint*"},
        ),
        (
            ["time", "q_joint2", "q_joint1", "tau_joint1"],
            PANDA,
            PANDA[:2],
            {"q": ("q_joint1", "q_joint2")},
        ),
        (["time", "q_joint1", "q_joint2"], BOTH, [], {}),
        # a joint that the file calls otherwise is not one that stands still
        (["time", "q_a", "q_bee", "tau_a", "tau_bee"], ["a", "b"], [], {}),
        (["time", "a", "b"], ["one", "two"], [], {}),
    ],
)  # fmt: skip
def test_columns_are_known_by_their_names(names, joints, moved, columns):
    assert find_columns(names, joints) == (moved, columns)


@pytest.mark.parametrize(
    ("name", "signal"),
    [
        *(
            (name, "q")
            for name in ("q_d", "q_dot", "dtheta", "theta_d", "tcp_pose", "pose", "posture")
        ),
        *((name, "q") for name in ("position_limit", "pos_max", "rotor_position", "pos_counts")),
        *(
            (name, "q")
            for name in ("I_q", "q_planned", "Sollwinkel", "pos_mrad", "ee_pos", "angle_rate")
        ),
        *((name, "tau") for name in ("tau_ext_hat_filtered", "tau_J_d", "gravity_torque")),
        *((name, "tau") for name in ("model_torque", "externalTorque", "jointExternalTorques")),
        *((name, "tau") for name in ("torque_current", "wrench_torque", "momentum", "torque_ff")),
        *(
            (name, "tau")
            for name in ("Torque [%]", "torque_mNm", "tau_friction", "torque_residual")
        ),
        *((name, "dq") for name in ("dq_d", "target_velocity", "vel_max", "tcp_speed", "level")),
        *((name, "dq") for name in ("ddq", "q_ddot", "speed_rpm", "motor_speed", "velocity_deg")),
    ],
)
def test_what_is_not_a_measured_signal_is_left_alone(name, signal):
    own = {"q": "measured_pos", "dq": "measured_vel", "tau": "measured_torque"}
    others = [column for key, column in own.items() if key != signal]
    for columns, there in ((own.values(), True), (others, False)):
        moved, found = find_columns(["t", *many(*columns, name)], ARM)
        assert moved == (ARM if there or signal != "q" else [])
        assert found.get(signal) == (f"{own[signal]}_*" if there else None)


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ({"q": "pos_*", "tau": ("tau_a", "tau_b"), "time": 1}, True),
        ({"q": "log.csv:pos_*", "tau": "log.csv:*", "time": "1"}, True),
        ({"q": "pos_a", "tau": "tau"}, False),
        ({"q": "*_angle"}, False),
    ],
)
def test_columns_that_are_named_are_there_or_not(wanted, there):
    assert has_columns(["t", "pos_a", "pos_b", "tau_a", "tau_b"], wanted) == there
    assert has_columns([], wanted)  # of a file without a header


def test_numbers_are_joints_of_chains_alone():
    assert find_columns(["t", *many("q", "tau")], ARM, counted=False) == ([], {})
    named = ["t", *(f"{joint}/{signal}" for signal in ("pos", "tau") for joint in ARM)]
    assert find_columns(named, ARM, counted=False) == (ARM, {"q": "*/pos", "tau": "*/tau"})
    told = ["time", *many("field.name", "field.position", "field.effort")]  # in an order of its own
    assert find_columns(told, ARM) == ([], {})


@pytest.mark.parametrize(
    ("columns", "units"),
    [
        ({"q": ["q1 [deg]", "q2 [deg]"], "time": ["timestamp_ns"]}, {"q": "deg", "time": "ns"}),
        (
            {"q": ["q1 (deg)", "q2 (°)"], "dq": ["v1 (rad/s)", "v2 [rad / s]"]},
            {"q": "deg", "dq": "rad"},
        ),
        ({"q": ["a_degrees", "b_degrees"], "time": ["TimeUS"]}, {"q": "deg", "time": "us"}),
        ({"q": ["posDeg1", "posDeg2"], "time": ["timeMs"]}, {"q": "deg", "time": "ms"}),
        ({"q": ["a/turns", "b/turns"], "tau": ["degs"]}, {"q": "rev"}),
        ({"q": ["deg_a", "rad_b"], "time": ["times"]}, {"q": ("deg", "rad")}),
        ({"q": ["degrade_1", "degrade_2"], "time": ["stamps_used"]}, {}),
        ({"q": ["pos_rev1", "pos_rev2"]}, {}),  # which are joints
    ],
)
def test_units_are_known_by_names(columns, units):
    names = tuple(name for own in columns.values() for name in own)
    table = Table(Path("log.csv"), names, np.zeros((1, len(names))))
    places = {s: [(table, names.index(name)) for name in own] for s, own in columns.items()}
    assert find_units(places, (), columns, ("rev1", "rev2")) == units
    assert find_units(places, columns, columns, ("rev1", "rev2")) == {}
    assert find_units(places, (), (), ("rev1", "rev2")) == {}


def test_columns_in_words():
    assert describe("q_*") == "q_*"
    assert describe(("a", "b", "c")) == "a ... c"
    assert describe(("a",)) == "a"
