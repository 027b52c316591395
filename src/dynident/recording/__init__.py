"""Logs: files or arrays to `Recording` to `Samples`."""
