"""Encoders alone: drives, loop and stand fitted to positions."""
