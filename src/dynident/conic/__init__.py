"""min ||Ax - b||^2 over cones, with a certificate; knows no robots."""
