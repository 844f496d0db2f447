"""Measurements of gpu_planners, with its peers in the same run: `python -m benchmarks --help`."""
