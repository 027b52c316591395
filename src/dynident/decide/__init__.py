"""What a log decides that its user left open: cutoffs, gates, the friction of each drive."""
