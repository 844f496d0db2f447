"""Grids larger than a device: bands of a map over ranks, each of which holds its own only."""
