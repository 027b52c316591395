"""Reports of a result: plain text, and a self-contained page."""
