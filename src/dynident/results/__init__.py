"""An identification, its figures, and all forms in which it is told."""
