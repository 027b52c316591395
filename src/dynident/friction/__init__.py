"""How joints resist: friction models as columns, shapes and states."""
