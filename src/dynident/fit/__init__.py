"""A fit: the identified model with its errors, its verdict and where it came from."""
