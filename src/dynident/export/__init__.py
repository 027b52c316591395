"""The identified model in the words of other programs: URDF, MJCF, MuJoCo, Pinocchio, C."""
