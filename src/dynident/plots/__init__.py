"""What is drawn: of arrays, on axes of matplotlib, for reports and for notebooks."""
