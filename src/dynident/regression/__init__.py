"""Rows in groups, their triangular factors, and the statistics that follow from them."""
