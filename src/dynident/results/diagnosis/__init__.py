"""What is wrong with a log: other readings of it, what its signals show, and the verdict."""
