"""Experiments of papers repeated on simulated robots, and the robots that they need."""
