"""Layouts of robots' own recorders: which column is what, in which unit, and what effort is.

An entry says no more than its source does. Torque constants are of robots by name, and of those
alone for which they were published.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from dynident.core.errors import InputError
from dynident.readers.column_names import describe


@dataclass(frozen=True)
class Effort:
    """A column that may be fitted as torque, and what it means."""

    signal: Literal["tau", "current"]
    column: str
    """As those of a `Preset`."""
    words: str
    """What is in it: rotor, gears, gravity."""
    link_side: bool = False
    """Whether it is measured behind the gears, where rotors do not show."""


@dataclass(frozen=True)
class Preset:
    """One recorder's layout.

    In a column's name ``{joint}`` stands for a joint's name and ``{n}`` for its number. A path may
    stand before it that ends with a slash or a dot, as tools write it that unpack messages.
    """

    called: str
    """The recorder."""
    source: str
    """The document or program that the entry was taken from."""
    columns: Mapping[str, str]
    """A column's name for each signal; ``q`` has to be there, the others may."""
    efforts: tuple[Effort, ...] = ()
    """The first one that is there is taken."""
    silence: str = ""
    """What is said of logs without any of them."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Where they are not SI."""
    first: int = 0
    """The number of the first joint."""
    order: tuple[str, ...] = ()
    """How the names of the numbered joints begin, where the robot's file has another order."""
    topics: bool = False
    """Whether it is of bags, whose tables are topics."""
    notes: tuple[str, ...] = ()
    """What else has to be known."""
    constants: tuple[Constants, ...] = ()
    """Of robots whose currents it records."""


@dataclass(frozen=True)
class Constants:
    """Torque constants of a robot's drives that were published."""

    robots: tuple[str, ...]
    """What robot files call it, in small letters."""
    gains: tuple[float, ...]
    """Of each drive in the robot's order, behind its gear [Nm/A]."""
    source: str


@dataclass(frozen=True)
class PresetLayout:
    """What a preset says of one log."""

    preset: Preset
    columns: dict[str, str | tuple[str, ...]]
    """Of each signal that is there; names that are found without being told are left out."""
    units: dict[str, str]
    """Of each signal that is there, where they are not SI."""
    effort: Effort | None
    """What is fitted as torque."""
    constants: Constants | None = None
    """Of the robot's drives, where currents are fitted and they were published."""

    def of_robot(self, robot: str, joints: Sequence[str]) -> PresetLayout:
        """The same with the torque constants of the robot of a name, where they are known."""
        if self.effort is None or self.effort.signal != "current":
            return self
        known = (own for own in self.preset.constants if robot.lower() in own.robots)
        own = next((own for own in known if len(own.gains) == len(joints)), None)
        return replace(self, constants=own)

    @property
    def name(self) -> str:
        """Of the preset among `PRESETS`, as a study states it."""
        return next(name for name, own in PRESETS.items() if own.called == self.preset.called)

    def leave_out(
        self, locked: Container[str], joints: Sequence[str]
    ) -> dict[str, str | tuple[str, ...]]:
        """The columns, without those of joints that are locked."""
        return {
            signal: own
            if isinstance(own, str)
            else tuple(name for joint, name in zip(joints, own) if joint not in locked)
            for signal, own in self.columns.items()
        }

    @property
    def signals(self) -> str:
        """Which column is what, with its unit where that is not SI."""
        told = []
        for signal, own in self.columns.items():
            unit = f" [{self.units[signal]}]" if signal in self.units else ""
            told.append(f"{signal} = {describe(own)}{unit}")
        return ", ".join(told) or "called as they are by default"

    @property
    def words(self) -> list[tuple[str, str]]:
        """A keyword and what is said: the recorder, the effort and what else has to be known."""
        effort = self.preset.silence if self.effort is None else self.effort.words
        said = [("layout", f"{self.preset.called} ({self.preset.source})"), ("effort", effort)]
        if self.constants is not None:
            gains = ", ".join(f"{gain:.2f}" for gain in self.constants.gains)
            said.append(("gains", f"{gains} Nm/A, unless stated ({self.constants.source})"))
        return [*said, *(("note", note) for note in self.preset.notes)]


UNITREE = tuple(
    f"{leg}_{part}" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf")
)
"""The quadrupeds' joints by the numbers of their motors."""
BEHIND_GEARS = (
    "the joints' torque sensors, gravity included; they are behind the gears, where rotors do not "
    "show (rotor = false)"
)
AMPERES = (
    "motor currents in {}; without each drive's gain ([[robot.drive]]) inertias and friction are "
    "in units of current"
)
EFFORT = (
    "what the driver publishes as effort: torque by the message's definition, but motor currents "
    "[A] of ur_robot_driver before PolyScope 5.23 and 10.11 or with use_currents_as_efforts; of "
    "franka_ros and franka_ros2 the torque sensors behind the gears (rotor = false)"
)
UR5 = Constants(
    ("ur5", "ur5_robot"),
    tuple(101.0 * own for own in (0.1350, 0.1361, 0.1355, 0.0957, 0.0865, 0.0893)),
    "UR5, not UR5e: torque constants and reduction 101 of Raviola et al., Robotics 10 (2021) 83, "
    "Table 1 as others quote it, doi 10.3390/robotics10030083",
)

PRESETS: dict[str, Preset] = {
    "ur-rtde": Preset(
        "Universal Robots' RTDE recorder",
        "RTDE_Python_Client_Library, record.py and rtde/csv_writer.py",
        {
            "time": "timestamp",
            "q": "actual_q_{n}",
            "dq": "actual_qd_{n}",
            "qref": "target_q_{n}",
            "dqref": "target_qd_{n}",
            "temp": "joint_temperatures_{n}",
        },
        (
            Effort(
                "tau",
                "actual_current_as_torque_{n}",
                "motor currents times the controller's constants: rotor and gear friction are in",
            ),
            Effort("current", "actual_current_{n}", AMPERES.format("A")),
        ),
        "no currents: record actual_current, or from PolyScope 5.23 and 10.11 on "
        "actual_current_as_torque",
        notes=(
            "target_moment is computed by the controller from its own model, and not measured: "
            "it is not used",
        ),
        constants=(UR5,),
    ),
    "libfranka": Preset(
        "libfranka's logToCSV",
        "libfranka, robot_state_log.cpp",
        {
            "time": "time",
            "q": "state.q[{n}]",
            "dq": "state.dq[{n}]",
            "qref": "state.q_d[{n}]",
            "dqref": "state.dq_d[{n}]",
        },
        (Effort("tau", "state.tau_J[{n}]", BEHIND_GEARS, link_side=True),),
        "no state.tau_J",
        units={"time": "ms"},
        notes=(
            "cmd.tau_J_d is without gravity, which the robot compensates itself, and "
            "state.tau_ext_hat_filtered what its own model leaves: neither is used",
        ),
    ),
    "franka-state": Preset(
        "franka_msgs/FrankaState of a bag",
        "franka_ros, FrankaState.msg",
        {"q": "q_{n}", "dq": "dq_{n}", "qref": "qref_{n}", "dqref": "dqref_{n}"},
        (Effort("tau", "tau_{n}", BEHIND_GEARS, link_side=True),),
        "no tau_J",
        topics=True,
        notes=("its joints have numbers: those of the robot file are taken in its order",),
    ),
    "kuka-fri": Preset(
        "KUKA's FRI, by messages LBRState",
        "lbr_fri_ros2_stack, LBRState.msg; friLBRState.h",
        {
            "time": "__time",
            "q": "measured_joint_position[{n}]",
            "qref": "commanded_joint_position[{n}]",
        },
        (Effort("tau", "measured_torque[{n}]", BEHIND_GEARS, link_side=True),),
        "no measured_torque",
        notes=(
            "external_torque is what the controller's own model leaves of measured_torque: it is "
            "not used",
        ),
    ),
    "kuka-rsi": Preset(
        "KUKA's RSI, by its telegram",
        "RSI telegrams with the internal values AIPos, ASPos, MACur; RSIPI's CSV log",
        {"time": "IPOC", "q": "AIPos.A{n}", "qref": "ASPos.A{n}"},
        (
            Effort(
                "tau",
                "GearTorque.A{n}",
                "torques at the gears by the controller: see in its documentation what is in them",
            ),
            Effort("current", "MACur.A{n}", AMPERES.format("the controller's unit")),
            Effort("current", "MaCur.A{n}", AMPERES.format("the controller's unit")),
        ),
        "no currents: add MACur to the telegram",
        units={"time": "ms", "q": "deg", "qref": "deg"},
        first=1,
    ),
    "abb-egm": Preset(
        "ABB's EGM, by the logger of abb_libegm",
        "abb_libegm, egm_logger.cpp",
        {
            "time": "TIMESTAMP",
            "q": "R_FB_POS_RJ{n}",
            "dq": "R_FB_VEL_RJ{n}",
            "qref": "R_PL_POS_RJ{n}",
            "dqref": "R_PL_VEL_RJ{n}",
        },
        (),
        "EGM has no torques: fit positions (method cloe), or log torques by the controller's "
        "test signals",
        units={"time": "ms", "q": "deg", "dq": "deg", "qref": "deg", "dqref": "deg"},
        first=1,
    ),
    "unitree": Preset(
        "Unitree's lowstate",
        "unitree_ros2, LowState.msg and MotorState.msg; unitree_legged_sdk, quadruped.h",
        {
            "time": "__time",
            "q": "motor_state[{n}]/q",
            "dq": "motor_state[{n}]/dq",
            "qref": "motor_cmd[{n}]/q",
            "dqref": "motor_cmd[{n}]/dq",
        },
        (
            Effort(
                "tau",
                "motor_state[{n}]/tau_est",
                "torques that the drives estimate from their currents: rotor and gear friction are "
                "in, and no sensor has measured them",
            ),
        ),
        "no tau_est",
        order=UNITREE,
        notes=(
            "motors are numbered FR, FL, RR, RL; a robot on its feet needs --floating and its "
            "base's motion",
        ),
    ),
    "lerobot": Preset(
        "LeRobot's dataset",
        "lerobot, config_so_follower.py; a Parquet file an episode",
        {"time": "timestamp", "q": "observation.state_{n}", "qref": "action_{n}"},
        (),
        "none is recorded: fit positions (method cloe)",
        units={"q": "deg", "qref": "deg"},
        first=1,
        order=(
            "shoulder_pan",
            "shoulder_lift",
            "elbow_flex",
            "wrist_flex",
            "wrist_roll",
            "gripper",
        ),
        notes=(
            "angles are degrees with use_degrees = true alone: else they are -100 to 100 of each "
            "joint's range, and the gripper always is 0 to 100: lock it (--locked)",
            "zeros are those of the arm's calibration, and need not be the robot file's",
        ),
    ),
    "joint-state": Preset(
        "sensor_msgs/JointState of a bag",
        "sensor_msgs, JointState.msg; ur_robot_driver, its migration notes",
        {"q": "q_{joint}", "dq": "dq_{joint}"},
        (Effort("tau", "tau_{joint}", EFFORT),),
        "no effort was published",
        topics=True,
    ),
    "joint-state-csv": Preset(
        "sensor_msgs/JointState unpacked to columns, as by PlotJuggler",
        "sensor_msgs, JointState.msg; ur_robot_driver, its migration notes",
        {"time": "__time", "q": "{joint}/position", "dq": "{joint}/velocity"},
        (Effort("tau", "{joint}/effort", EFFORT),),
        "no effort was published",
    ),
}
"""Layouts by name; the first one that fits is taken."""


def find_layout(
    names: Iterable[str], joints: Sequence[str], topics: bool = False
) -> PresetLayout | None:
    """The layout whose positions a log, or a bag of topics, has for all joints of the robot.

    By the names of its columns; the joints are in the robot's order, locked ones included.
    """
    known = dict.fromkeys(names)
    for preset in PRESETS.values():
        if preset.topics == topics and _fill(preset, preset.columns["q"], known, joints):
            return build_layout(preset, known, joints)
    return None


def find_stated_layout(
    name: str, names: Iterable[str], joints: Sequence[str], stated: Container[str]
) -> PresetLayout:
    """The layout of a preset, without signals whose columns are stated; `InputError` if not there.

    What is stated as torque or current is the effort, whatever the preset has.
    """
    preset, known = PRESETS[name], dict.fromkeys(names)
    if "q" not in stated and not _fill(preset, preset.columns["q"], known, joints):
        own = _spell(preset, preset.columns["q"], joints)
        raise InputError(
            f"has no positions as preset {name!r} ({preset.called}) has them: {', '.join(own)}"
        )
    efforts = () if "tau" in stated or "current" in stated else preset.efforts
    columns = {signal: own for signal, own in preset.columns.items() if signal not in stated}
    return build_layout(replace(preset, columns=columns, efforts=efforts), known, joints)


def build_layout(preset: Preset, known: Mapping[str, None], joints: Sequence[str]) -> PresetLayout:
    """What a preset says of a log with these columns."""
    told = {**preset.columns}
    efforts = [effort for effort in preset.efforts if _fill(preset, effort.column, known, joints)]
    if efforts:
        told[efforts[0].signal] = efforts[0].column
    found = {signal: _fill(preset, column, known, joints) for signal, column in told.items()}
    columns = {
        signal: own
        for signal, own in found.items()
        if own is not None and own not in ("time", "t", tuple(f"{signal}_{j}" for j in joints))
    }
    units = {s: unit for s, unit in preset.units.items() if found.get(s) is not None}
    return PresetLayout(preset, columns, units, efforts[0] if efforts else None)


def _fill(
    preset: Preset, column: str, known: Mapping[str, None], joints: Sequence[str]
) -> str | tuple[str, ...] | None:
    """The columns that a preset's name stands for, one a joint; None where they are not there."""
    shared, own = "{" not in column, _spell(preset, column, joints)
    ends = (name.removesuffix(own[0]) for name in known if name.endswith(own[0]))
    for path in sorted((path for path in ends if path[-1:] in ("", "/", ".")), key=len):
        if all(f"{path}{name}" in known for name in own):
            return f"{path}{own[0]}" if shared else tuple(f"{path}{name}" for name in own)
    return None


def _spell(preset: Preset, column: str, joints: Sequence[str]) -> list[str]:
    """The names that a preset's name stands for, without a path before them."""
    numbers = zip(_number(preset, joints), joints, strict=True)
    return list(dict.fromkeys(column.format(n=number, joint=joint) for number, joint in numbers))


def _number(preset: Preset, joints: Sequence[str]) -> list[int]:
    """The number of each joint in the log: by its name where the names are the preset's."""
    named = [
        next((k for k, begin in enumerate(preset.order) if joint.startswith(begin)), None)
        for joint in joints
    ]
    own = [k for k in named if k is not None]
    if joints and len(set(own)) == len(joints):
        return [preset.first + k for k in own]
    return [preset.first + k for k in range(len(joints))]
