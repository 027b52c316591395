"""Designed motions as people and controllers take them, and what to record for what question."""
