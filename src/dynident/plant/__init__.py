"""A robot with values for its parameters, as compiled loops read it: its response in one state."""
