"""Least squares on the TX40 log with figaroh's library, timed: run by speed.py.

Uses figaroh's own regressor, column elimination and double QR, and decimates as its
workflow does (two passes of scipy.signal.decimate by 10). Prints one JSON object.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import types
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pinocchio as pin  # noqa: E402
from figaroh.tools.qrdecomposition import double_QR  # noqa: E402
from figaroh.tools.regressor import (  # noqa: E402
    build_regressor_basic,
    build_regressor_reduced,
    get_index_eliminate,
)
from scipy import signal  # noqa: E402

TX40 = Path(__file__).resolve().parents[1] / "examples" / "tx40"
RATE = 5000.0
CONFIG = {
    "is_joint_torques": True,
    "is_external_wrench": False,
    "has_friction": True,
    "has_actuator_inertia": True,
    "has_joint_offset": True,
    "has_coupled_wrist": True,
    "act_idxv": list(range(6)),
    "force_torque": None,
}


def once() -> tuple[float, int]:
    started = time.perf_counter()
    model = pin.buildModelFromUrdf(str(TX40 / "tx40_mdh_modified.urdf"))
    robot = types.SimpleNamespace(model=model, data=model.createData())
    reduction = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    reduction[5, 4] = 32.0
    q = pd.read_csv(TX40 / "pos_read_data.csv").to_numpy() @ np.linalg.inv(reduction).T
    tau = pd.read_csv(TX40 / "curr_data.csv").to_numpy() @ reduction
    q[:, 1] -= np.pi / 2
    q[:, 2] += np.pi / 2
    q = signal.filtfilt(*signal.butter(4, 100.0, fs=RATE), q, axis=0)
    dq = np.gradient(q, 1.0 / RATE, axis=0)
    ddq = np.gradient(dq, 1.0 / RATE, axis=0)
    W = build_regressor_basic(robot, q, dq, ddq, CONFIG)
    samples = len(q)
    coupled = np.zeros((len(W), 3))
    for j, k in ((4, 5), (5, 4)):
        joint = slice(j * samples, (j + 1) * samples)
        coupled[joint, 0] = ddq[:, k]
        coupled[joint, 1] = dq[:, k]
        coupled[joint, 2] = np.sign(dq[:, 4] + dq[:, 5])
    W = np.hstack([W, coupled])
    names = [f"p{k}" for k in range(W.shape[1])]
    eliminated, kept = get_index_eliminate(W, dict.fromkeys(names, 0.0), 1e-6)
    W = build_regressor_reduced(W, eliminated)
    rows, torque = [], []
    for j in range(6):
        part = W[j * samples : (j + 1) * samples]
        y = tau[:, j]
        for _ in range(2):
            part = np.column_stack(
                [signal.decimate(part[:, c], q=10, zero_phase=True) for c in range(part.shape[1])]
            )
            y = signal.decimate(y, q=10, zero_phase=True)
        rows.append(part)
        torque.append(y)
    base = double_QR(np.concatenate(torque), np.vstack(rows), kept)
    return time.perf_counter() - started, base[0].shape[1]


def main() -> None:
    runs = int(sys.argv[1])
    times = [once() for _ in range(runs)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {"seconds": [t for t, _ in times], "base": times[0][1], "peak_mb": peak}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
