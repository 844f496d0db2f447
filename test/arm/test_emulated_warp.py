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

from benchmarks import arm_sizes
from benchmarks.problems import add_obstacles
from gpu_planners.arm import CollisionChecker, CollisionWorld, MotionCheck
from gpu_planners.arm.collision.broad_phase import FEW_PAIRS

HERE = Path(__file__).resolve().parents[1]
MOTIONS = 15  # of each robot


def checkers_of(folder, motion):
    """[(checker, how many motions)]; the last robot has so many pairs that blocks of them are passed over."""
    few = [
        (checker_among(maker_of(name).model, problem_of(name, "shelf")[1], motion), MOTIONS)
        for name in ("gantry", "panda")
    ]
    tree, world = arm_sizes.tree_arm(folder, 6, 18, 2 * FEW_PAIRS).model, CollisionWorld()
    assert len(tree.self_collision_pairs) > FEW_PAIRS
    return [*few, (CollisionChecker(tree, add_obstacles(world, arm_sizes.boxes()), "cpu", motion), MOTIONS // 3)]


@pytest.mark.parametrize("lanes", [3, pytest.param(32, marks=pytest.mark.slow)])
@pytest.mark.parametrize("motion", [MotionCheck(), MotionCheck("joint", 0.1)], ids=lambda motion: motion.mode)
def test_lanes_agree_with_one(lanes, motion, tmp_path):
    cases, expected = [], []
    for checker, motions in checkers_of(tmp_path, motion):
        robot, rng = checker.robot, np.random.default_rng(1)
        q = rng.uniform(robot.lower, robot.upper, (2000, robot.dof))
        q = q[checker.configurations_valid(q)][:motions]
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
