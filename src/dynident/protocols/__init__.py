"""What to record for what question: motions, durations, gains, and the intervals to expect."""
