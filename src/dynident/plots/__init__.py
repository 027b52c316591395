"""What is drawn: of arrays, on axes of matplotlib, for reports and notebooks; a log at a glance."""
