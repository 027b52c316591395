"""Zero-phase, causal and harmonic filters."""
