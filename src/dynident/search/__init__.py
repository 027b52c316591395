"""Searches over ranges: shapes of friction, particles, genes."""
