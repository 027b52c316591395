"""Closed-loop simulation: references, controllers, plants and rollouts."""
