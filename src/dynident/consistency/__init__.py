"""What a body can be: constraints, priors, and the consistent set that fits rows best."""
