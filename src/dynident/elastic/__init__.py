"""Joints with a spring: the rows of their links' encoders, and what logs tell of the springs."""
