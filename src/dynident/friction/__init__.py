"""How joints resist: friction models as columns, shapes and states."""

DEFAULT_FRICTION = "coulomb-viscous"
"""Of drives of which nothing else is said."""
