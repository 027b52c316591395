"""Measured and predicted torque of the TX40: python docs/figures/make_tx40_picture.py."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

import dynident as di

TOP = Path(__file__).parents[2]
PICTURE = Path(__file__).with_name("tx40.png")


def main() -> None:
    """Identify the TX40 from its example study and draw its torques."""
    os.chdir(TOP)
    fit = di.run_study(di.read_study(Path("examples/tx40/study.toml")))
    (series,) = fit.series()
    every = next(figure for figure in fit.identification if figure.rows == "all samples")
    figure, axes = plt.subplots(3, 2, figsize=(10.0, 6.4), sharex=True, layout="constrained")
    for j, (panel, name) in enumerate(zip(axes.flat, fit.robot.joint_names, strict=True)):
        error = series.measured[:, j] - series.predicted[:, j]
        panel.plot(series.time, series.measured[:, j], color="#555555", lw=1.4, label="measured")
        panel.plot(series.time, series.predicted[:, j], color="#0072B2", lw=0.9, label="predicted")
        panel.plot(series.time, error, color="#D55E00", lw=0.7, label="difference")
        panel.set_title(
            f"{name}: relative error {every.joints[j].relative_percent:.1f} %", fontsize=9
        )
        panel.set_ylabel("torque [Nm]", fontsize=8)
        panel.tick_params(labelsize=8)
        panel.grid(alpha=0.25, lw=0.5)
        panel.margins(x=0.0)
    for panel in axes[-1]:
        panel.set_xlabel("time [s]", fontsize=8)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=9, frameon=False)
    # without the version of matplotlib, so that the same picture has the same bytes
    figure.savefig(PICTURE, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
