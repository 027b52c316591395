"""What a notebook shows of logs and fits: data frames, plots, folding tables, overviews."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from test_report import identified

from dynident.core.errors import InputError
from dynident.core.inertia import to_com
from dynident.fit.parameters import find_body_errors, list_base_parameters, list_drive_errors

pd = pytest.importorskip("pandas")


def test_links_are_those_of_the_fit_beside_the_files():
    fit = identified()
    frame = fit.links()
    assert list(frame.index) == list(fit.robot.links)
    assert frame.shape == (2, 36)
    for k, phi in enumerate(fit.phi):
        mass, com, inertia = to_com(phi)
        row, file = frame.iloc[k], to_com(fit.robot.nominal[k])
        assert row["mass"] == mass
        assert row[["com_x", "com_y", "com_z"]].tolist() == list(com)
        assert row["Ixz"] == inertia[0, 2]
        assert row["Iyy_file"] == file[2][1, 1]
        assert row["mass_file"] == file[0]
    errors = frame[[name for name in frame if name.endswith("_std")]].to_numpy()
    assert np.array_equal(errors, find_body_errors(fit), equal_nan=True)
    shares = frame[["mass_from_data", "com_from_data", "inertia_from_data"]].to_numpy()
    assert np.array_equal(shares, fit.estimate.informed)
    least = [each.radius for each in fit.estimate.gyrations]
    assert frame["least_gyration"].tolist() == least
    assert (frame["gyration"] >= 0.999 * frame["least_gyration"]).all()
    assert frame["min_eigenvalue"].min() == fit.smallest_eigenvalue


def test_links_of_a_file_without_inertials_have_no_values_of_it():
    fit = identified()
    bare = replace(fit.robot, nominal=np.zeros((2, 10)))
    other = replace(fit, base=replace(fit.base, idim=fit.idim.of(bare)))
    assert other.links().filter(like="_file").isna().all(axis=None)
    assert other.to_frame()["file"].isna().all()


def test_drives_have_a_row_a_joint_and_gaps_where_a_sum_alone_is_known():
    fit = identified()
    frame = fit.drives()
    assert list(frame) == [c for s in ("Ia", "fv", "fc", "off") for c in (s, f"{s}_std")]
    for j, (name, std) in enumerate(zip(fit.robot.joint_names, list_drive_errors(fit))):
        for symbol, value in fit.drive_parameters(j).items():
            assert frame.loc[name, symbol] == value
            assert frame.loc[name, f"{symbol}_std"] == std[symbol]
    sums = identified("ols", doctor=False).drives()
    assert sums[["Ia", "Ia_std"]].isna().all(axis=None)
    assert sums.drop(columns=["Ia", "Ia_std"]).notna().all(axis=None)


def test_base_parameters_come_with_intervals_units_and_the_files_values():
    fit = identified()
    frame = fit.to_frame()
    rows = list_base_parameters(fit)
    assert list(frame.index) == [row.name for row in rows]
    for column in ("value", "std", "low", "high", "essential"):
        assert frame[column].tolist() == [getattr(row, column) for row in rows]
    assert frame["combination"].tolist() == list(fit.base.regroupings)
    file = fit.base.matrix @ fit.idim.nominal
    friction = frame.index.str.match(r"(fv|fc|off)\d")
    assert np.array_equal(frame["file"][~friction], file[~friction])
    assert frame["file"][friction].isna().all()
    units = frame["unit"].to_dict()
    assert (units["Izz1R"], units["mx2"], units["fv1"], units["off2"]) == (
        "kg m^2", "kg m", "Nm s/rad", "Nm",
    )  # fmt: skip


def test_eliminated_parameters_are_marked():
    fit = identified("wls", essential="f-test")
    assert fit.to_frame()["essential"].sum() == len(fit.essential) < fit.base.count


def test_frames_say_what_they_lack(monkeypatch):
    fit = identified("ols", doctor=False)
    with pytest.raises(InputError, match="ols gives base parameters only"):
        fit.links()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        fit.to_frame()


def test_identifying_loads_neither_pandas_nor_matplotlib():
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "import toy, dynident as di\n"
        "log = toy.log(toy.arm(2), seconds=4.0, noise=0.5)[0]\n"
        "fit = di.identify(di.Problem(toy.arm(2), di.prepare(log, 5.0)), doctor=False)\n"
        "fit.summary(), repr(fit)\n"
        "sys.exit(len({'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
