"""What of plain values is in which message, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Inertia, InertiaStamped, Vector3, Wrench, WrenchStamped
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from .following import CarriedLoad, Status
from .motion import Motion
from .readings import NANOSECONDS, Reading, order_reading, to_nanoseconds


def read_joint_state(message: Any, joints: Sequence[str], arrival: int) -> Reading | None:
    """sensor_msgs/JointState in a robot's order; None where it has not all of its joints."""
    stamp = to_nanoseconds(message.header.stamp.sec, message.header.stamp.nanosec, arrival)
    values = message.position, message.velocity, message.effort
    return order_reading(stamp, joints, list(message.name), *values)


def write_trajectory(motion: Motion, joints: Sequence[str]) -> JointTrajectory:
    """trajectory_msgs/JointTrajectory with positions, speeds and accelerations.

    Its stamp is zero, by which it begins at once.
    """
    header = Header(stamp=Time(sec=0, nanosec=0), frame_id="")
    points = []
    for time, *values in zip(motion.time, motion.q, motion.dq, motion.ddq, strict=True):
        sec, nanosec = divmod(round(float(time) * NANOSECONDS), NANOSECONDS)
        q, dq, ddq = (value.tolist() for value in values)
        points.append(
            JointTrajectoryPoint(
                positions=q,
                velocities=dq,
                accelerations=ddq,
                effort=[],
                time_from_start=Duration(sec=sec, nanosec=nanosec),
            )
        )
    return JointTrajectory(header=header, joint_names=list(joints), points=points)


def write_diagnostics(status: Status, name: str, header: Header) -> DiagnosticArray:
    """diagnostic_msgs/DiagnosticArray with one status."""
    own = DiagnosticStatus(
        level=DiagnosticStatus.WARN if status.warns else DiagnosticStatus.OK,
        name=name,
        message=status.words,
        hardware_id="",
        values=[KeyValue(key=key, value=value) for key, value in status.values],
    )
    return DiagnosticArray(header=header, status=[own])


def write_wrench(load: CarriedLoad, header: Header) -> WrenchStamped:
    """geometry_msgs/WrenchStamped: the load's weight in the frame of its link."""
    return WrenchStamped(
        header=header,
        wrench=Wrench(force=write_vector(load.force), torque=write_vector(load.torque)),
    )


def write_inertia(load: CarriedLoad, header: Header) -> InertiaStamped:
    """geometry_msgs/InertiaStamped: mass, centre of mass, inertia about it."""
    i = load.inertia
    inertia = Inertia(
        m=load.mass,
        com=write_vector(load.com),
        ixx=float(i[0, 0]),
        ixy=float(i[0, 1]),
        ixz=float(i[0, 2]),
        iyy=float(i[1, 1]),
        iyz=float(i[1, 2]),
        izz=float(i[2, 2]),
    )
    return InertiaStamped(header=header, inertia=inertia)


def write_vector(values: Any) -> Vector3:
    """geometry_msgs/Vector3."""
    x, y, z = (float(value) for value in values)
    return Vector3(x=x, y=y, z=z)
