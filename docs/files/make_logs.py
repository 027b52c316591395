"""Synthetic logs of the arm in arm.urdf, to try every page of this guide without a robot."""

import numpy as np

import dynident as di

robot = di.load_robot("arm.urdf")
model = di.build_idim(robot, "coulomb-viscous")

# The "real" arm: 10 % heavier than its file, with rotors and friction (Ia fv fc off a joint).
truth = np.concatenate(
    [1.1 * robot.nominal.ravel(), [0.20, 1.5, 2.0, 0.1], [0.08, 0.6, 0.9, -0.05]]
)


def record(path, seed, seconds=20.0, rate=500.0):
    """Write a log of a random Fourier series of five harmonics of 0.1 Hz."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 1.0 / rate)
    q, dq, ddq = np.zeros((3, len(t), robot.n))
    for k in range(1, 6):
        w = 2.0 * np.pi * 0.1 * k
        a, b = rng.normal(scale=0.5, size=(2, robot.n)) / k
        s, c = np.sin(w * t)[:, None], np.cos(w * t)[:, None]
        q += a * s + b * c
        dq += w * (a * c - b * s)
        ddq -= w**2 * (a * s + b * c)
    tau = model.torque(truth, q, dq, ddq) + rng.normal(scale=[0.5, 0.2], size=q.shape)
    q += rng.normal(scale=1e-5, size=q.shape)
    np.savetxt(
        path,
        np.column_stack([t, q, tau]),
        fmt="%.9g",
        delimiter=",",
        header="time,q_shoulder,q_elbow,tau_shoulder,tau_elbow",
        comments="",
    )


record("run1.csv", seed=1)
record("run2.csv", seed=2)

# The first log as another program might write it: degrees, other names, motor currents between.
t, *q, tau_shoulder, tau_elbow = np.loadtxt("run1.csv", delimiter=",", skiprows=1).T
current = 0.1 * np.array([tau_shoulder, tau_elbow])
np.savetxt(
    "foreign.csv",
    np.column_stack([t, *np.degrees(q), *current, tau_shoulder, tau_elbow]),
    fmt="%.9g",
    delimiter=",",
    header="stamp,pos_shoulder,pos_elbow,current_1,current_2,torque_1,torque_2",
    comments="",
)
