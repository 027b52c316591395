"""Logs as their factors in files: collected once, merged and identified at will."""
