"""The package as ament builds it."""

from glob import glob

from setuptools import setup

NAME = "dynident_ros"

setup(
    name=NAME,
    version="0.3.0",
    packages=[NAME],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", glob("launch/*.launch.py")),
    ],
    install_requires=["setuptools", "dynident"],
    zip_safe=True,
    maintainer="The dynident developers",
    maintainer_email="dynident@example.org",
    description="Records logs for dynident, plays its excitation trajectories, follows a robot.",
    license="BSD-3-Clause",
    entry_points={
        "console_scripts": [
            f"record = {NAME}.record_node:main",
            f"play = {NAME}.play_node:main",
            f"track = {NAME}.track_node:main",
        ]
    },
)
