"""What is told of a robot while it is followed: messages, files of them, and a page."""
