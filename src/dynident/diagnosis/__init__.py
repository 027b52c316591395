"""What is wrong with a log: other readings of it, and what its signals show."""
