"""Logs: reading, clocks, checks, filters and decimation."""
