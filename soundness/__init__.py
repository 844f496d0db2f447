"""Attacks on gpu_planners that look for wrong answers, against oracles that share no code with it:
docs/soundness.md."""

import sys
from pathlib import Path

# the re-checkers of the tests: oracles.py, grid_oracle.py, random_urdf.py
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test"))
