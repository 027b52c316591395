"""Experiments: what a motion tells of a robot, and which motion tells the most."""
