"""What a robot carries, from a log with it and a fit without: found, in words and on a page."""
