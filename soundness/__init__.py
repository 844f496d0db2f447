"""Attacks on gpu_planners that look for wrong answers, against oracles that share no code with it:
docs/soundness.md."""

import sys
from pathlib import Path

# what the tests have too: curve_oracle.py, grid_paths.py, random_urdf.py
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test"))
