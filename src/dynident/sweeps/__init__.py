"""A study identified with each of several values of its keys, and which of them to take."""
