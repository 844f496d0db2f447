"""A warp spreads a wave through a block as a CPU thread does, without a GPU: see emulated_wave.py."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]


def test_a_warp_reaches_what_a_thread_reaches():
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    answer = subprocess.run(
        [sys.executable, HERE / "emulated_wave.py"],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": paths},
    )
    assert answer.returncode == 0, answer.stderr
    assert int(answer.stdout) > 100
