"""The lanes of a warp prove motions together as one lane does alone, without a GPU: see emulated_warp.py."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from robots_at_hand import checker_among, maker_of, problem_of

from gpu_planners.arm import MotionCheck

HERE = Path(__file__).resolve().parent
MOTIONS = 15  # of each robot


@pytest.mark.parametrize("lanes", [3, pytest.param(32, marks=pytest.mark.slow)])
@pytest.mark.parametrize("motion", [MotionCheck(), MotionCheck("joint", 0.1)], ids=lambda motion: motion.mode)
def test_lanes_agree_with_one(lanes, motion, tmp_path):
    cases, expected = [], []
    for name in ("gantry", "panda"):
        robot = maker_of(name).model
        checker = checker_among(robot, problem_of(name, "shelf")[1], motion)
        rng = np.random.default_rng(1)
        q = rng.uniform(robot.lower, robot.upper, (2000, robot.dof))
        q = q[checker.configurations_valid(q)][:MOTIONS]
        far = 10 ** rng.uniform(-1, 0.5, (len(q), 1))
        ends = q, np.clip(q + rng.normal(size=q.shape) * far, robot.lower, robot.upper)
        expected += checker.motions_valid(*ends).tolist()
        scene = checker.packed_scene
        cases.append((scene.floats, scene.ints, *checker.motion_args, *(each.astype(np.float32) for each in ends)))
    file = tmp_path / "cases"
    file.write_bytes(pickle.dumps(cases))
    command = [sys.executable, HERE / "emulated_warp.py", str(lanes), file]
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    answer = subprocess.run(
        command, capture_output=True, text=True, timeout=500, env=os.environ | {"PYTHONPATH": paths}
    )
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == expected and 0 < sum(expected) < len(expected)
