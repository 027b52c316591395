"""Recursive estimates, the tracker with its certificate, and what a robot carries."""
