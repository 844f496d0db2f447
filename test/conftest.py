"""Lets the tests import the checkout's own `benchmarks` package (problem loaders), wherever pytest starts."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
