"""A log at some instants, and what bodies explain of it there, by small factors alone."""
