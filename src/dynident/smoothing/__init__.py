"""Motion and parameters of a log at once: splines, block elimination, the method `smooth`."""
