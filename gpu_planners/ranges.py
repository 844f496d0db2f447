"""Ranges that hold wherever a number enters the package: Python, URDF, scene and map files, messages."""

GREATEST_LENGTH = (
    1e5  # metres: of a size, a coordinate, a position; float32 overflows far beyond, and nobody plans there
)
ROUNDOFF = 2.0**-24  # of float32, relative
