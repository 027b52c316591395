"""Design of experiments: trajectories that respect the robot and say what they will buy."""
