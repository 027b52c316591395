"""What is wrong with a log: other readings of it that explain it better."""
