"""The demo as a new user runs it, and that its checks find what they are there to find."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

from node_harness import GROUP, ROBOT

from gpu_planners.arm import CollisionWorld, load_urdf
from gpu_planners.arm.scene_file import pose_matrix
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import GpuPlannersError
from gpu_planners.nodes.arm_parameters import PLANNERS
from gpu_planners.nodes.conversions import trajectory_message
from gpu_planners.nodes.demo_checks import CoalCheck, broken_rules
from gpu_planners.nodes.demo_scene import demo_robot

PATH = np.array([[0, 0, 0], [1, 0.5, 0.2]])


@pytest.fixture(scope="module")
def robot():
    return load_urdf(ROBOT, joints=GROUP)


def timed(robot):
    return trajectory_message(robot, time_parameterize(PATH, robot.velocity, robot.acceleration))


@pytest.mark.parametrize(
    "spoil, word",
    [
        (lambda points: setattr(points[1], "time_from_start", points[0].time_from_start), "increase"),
        (lambda points: points[-1].velocities.__setitem__(0, 0.1), "rest"),
        (lambda points: points[1].positions.__setitem__(1, 2.6), "joint limit"),
        (lambda points: points[1].velocities.__setitem__(0, -2.1), "velocity limit"),
    ],
)
def test_broken_rules_are_found(robot, spoil, word):
    message = timed(robot)
    assert broken_rules(robot, message) == []
    spoil(message.points)
    assert any(word in text for text in broken_rules(robot, message))


@pytest.mark.parametrize("kind", ["box", "cylinder", "sphere", "convex"])
def test_coal_finds_an_obstacle_of_any_kind_on_the_way(robot, kind):
    pytest.importorskip("coal")
    for far, expected in ((0.0, True), (2.0, False)):
        pose, world = pose_matrix([-0.6, 0.75 + far, 0.1], [0, 0, 0, 1], "x"), CollisionWorld()
        if kind == "box":
            world.add_box("x", [0.1, 0.1, 0.1], pose)
        elif kind == "cylinder":
            world.add_cylinder("x", 0.05, 0.1, pose)
        elif kind == "sphere":
            world.add_sphere("x", 0.05, pose)
        else:
            world.add_convex("x", 0.1 * np.array([[1, 0, 0], [-1, 1, 0], [-1, -1, 0], [0, 0, 1], [0, 0, -1]]), pose)
        checked, colliding = CoalCheck(robot, world).collisions(PATH)
        assert checked > 1000 and (colliding > 0) is expected


@pytest.mark.slow
@pytest.mark.ros
def test_the_demo_runs_checks_and_draws(tmp_path):
    pytest.importorskip("coal")
    try:
        demo_robot()
    except GpuPlannersError as error:
        pytest.skip(str(error))
    picture = tmp_path / "demo.png"
    command = [sys.executable, "-m", "gpu_planners.nodes.demo", "--device", "cpu", "--picture", str(picture)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert run.returncode == 0, run.stdout + run.stderr
    for word in ("panda", "12 obstacles", "cpu", "solved", "refused, code -12", "shelf_top", "Every planner", "What to try next"):
        assert word in run.stdout
    assert "poses collide" not in run.stdout and run.stdout.count("kept") == 3
    rows = {words[1]: words for words in map(str.split, run.stdout.splitlines()) if len(words) > 1 and words[1] in PLANNERS}
    assert rows.keys() == PLANNERS.keys() and all("solved" in row and "free" in row for row in rows.values())
    for row in rows.values():  # ... │ raw time ms │ raw length rad │ time ms │ length rad │
        raw, short = (float(row[i - 1]) for i, word in enumerate(row) if word == "rad")
        assert 0 < short <= raw
    assert picture.stat().st_size > 20_000
