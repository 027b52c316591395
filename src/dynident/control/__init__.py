"""What drives a simulated loop: controllers, their gains, references."""
