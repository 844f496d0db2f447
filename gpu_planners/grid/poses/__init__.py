"""Robots with a shape: `PoseGrid`, exact costs-to-go over place and heading, and `PosePlanner`."""
