"""Collision-free motions for robot arms and paths for many agents on grid maps, on the GPU or the CPU."""

__version__ = "0.1.0"
