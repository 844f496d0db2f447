"""A step of a fleet: all agents move by one tick."""
