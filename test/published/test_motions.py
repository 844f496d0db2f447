"""Motions that others were reported to call free, or to plan through what is there. The inputs are our own."""

import numpy as np
import pytest
from bodies import among, body, box, pose

from gpu_planners.arm import CollisionChecker, CollisionWorld, MotionCheck, rrt_connect
from gpu_planners.arm.geometry.shapes import ConvexShape


def test_a_plate_between_a_thousand_samples():
    """moveit/moveit2 #3759 (and moveit/moveit #29): every one of 1,000 places along a motion is free, and one in twenty
    motions collides."""
    robot = body(box(2e-4, 0.2, 0.2))
    checker = among(robot, plate=("box", [1e-4, 1.0, 1.0], pose((0.001, 0.0, 0.0))))
    start, goal = np.array([[-1.0, 0, 0, 0, 0, 0]]), np.array([[1.0, 0, 0, 0, 0, 0]])
    samples = start + np.linspace(0, 1, 1001)[:, None] * (goal - start)  # 2 mm apart
    assert checker.configurations_valid(samples).all()
    assert not checker.motions_valid(start, goal)[0]
    sampled = CollisionChecker(robot, checker.world, "cpu", MotionCheck("count", 1000))
    assert sampled.motions_valid(start, goal)[0]  # what sampling says, where somebody asks for it


def test_a_box_that_passes_through_another_one():
    """BerkeleyAutomation/python-fcl #11: whether a box that moves through a cone collides differs from run to run."""
    checker = among(
        body(box(1, 2, 3), reach=12.0), cone=("convex", [[1, 0, -1], [-1, 1, -1], [-1, -1, -1], [0, 0, 2]], np.eye(4))
    )
    start, goal = np.array([[-10.0, 0, 0, 0, 0, 0]]), np.array([[10.0, 0, 0, 0, 0, 0]])
    assert not any(checker.motions_valid(start, goal)[0] for _ in range(20))
    beside = np.array([[0.0, 4.0, 0, 0, 0, 0]])
    assert all(checker.motions_valid(start + beside, goal + beside)[0] for _ in range(20))


def test_paths_are_free_of_what_the_path_was_shortened_past():
    """moveit/moveit2 #3590: a path that touches obstacles once it is simplified is executed all the same."""
    wall = {f"w{k}": ("box", [0.02, 2.0, 2.0], pose((0.0, y, 0.0))) for k, y in enumerate((-1.2, 1.2))}
    checker = among(body(box(0.05, 0.3, 0.05), reach=1.5), **wall)  # a gap of 0.4, for a bar of 0.3
    start, goal = np.array([-0.8, -0.9, 0, 0, 0, 0]), np.array([0.8, 0.9, 0.2, 0, 0, 1.0])
    for seed in range(3):
        result = rrt_connect.solve(start, goal, checker, rrt_connect.Settings(time_limit_s=60.0), seed=seed)
        assert result.solved
        q = np.concatenate(
            [a + np.linspace(0, 1, 400)[:, None] * (b - a) for a, b in zip(result.path, result.path[1:])]
        )
        assert checker.configurations_valid(q).all()
        assert checker.motions_valid(result.path[:-1], result.path[1:]).all()


def test_what_is_attached_counts():
    """NVIDIA-ISAAC-ROS/isaac_ros_cumotion #3: a hand that is attached to the robot is not part of what is planned for,
    and hits what is beside the path."""
    robot = body(box(0.1, 0.1, 0.1))
    post = {"post": ("box", [0.1, 0.1, 2.0], pose((0.0, 0.4, 0.0)))}
    start, goal = np.array([[-1.0, 0, 0, 0, 0, 0]]), np.array([[1.0, 0, 0, 0, 0, 0]])
    assert among(robot, **post).motions_valid(start, goal)[0]
    hand = ConvexShape.box("hand", [0.05, 0.5, 0.05], np.eye(4))
    holding = robot.attach("hand", hand, "l5", pose((0.0, 0.3, 0.0)))
    checker = among(holding, **post)
    assert not checker.motions_valid(start, goal)[0]
    result = rrt_connect.solve(start[0], goal[0], checker, rrt_connect.Settings(time_limit_s=60.0), seed=0)
    assert result.solved and len(result.path) > 2 and checker.motions_valid(result.path[:-1], result.path[1:]).all()


def test_each_problem_of_a_batch_has_its_own_object_in_hand():
    """NVlabs/curobo #136, #172, #231: in a batch no object can be attached, or the same one for all."""
    robot = body(box(0.1, 0.1, 0.1))
    world = CollisionWorld()
    world.add_box("post", [0.1, 0.1, 2.0], pose((0.0, 0.4, 0.0)))
    checkers = []
    for length in (0.0, 0.5, 0.9):
        hand = ConvexShape.box("hand", [0.05, max(length, 0.05), 0.05], np.eye(4))
        holding = robot.attach("hand", hand, "l5", pose((0.0, 0.1 + length / 2, 0.0)), touch_links=["l5"])
        checkers.append(CollisionChecker(holding, world, "cpu"))
    start, goal = np.array([-1.0, 0, 0, 0, 0, 0]), np.array([1.0, 0, 0, 0, 0, 0])
    settings = rrt_connect.Settings(time_limit_s=60.0)
    results = rrt_connect.solve_batch([start] * 3, [goal] * 3, checkers, settings, seed=0)
    assert all(result.solved for result in results)
    assert [len(result.path) > 2 for result in results] == [False, True, True]
    for result, checker in zip(results, checkers):
        assert checker.motions_valid(result.path[:-1], result.path[1:]).all()


@pytest.mark.parametrize("thickness", [1e-3, 1e-5])
def test_a_mesh_is_more_than_its_hull(thickness):
    """coal-library/coal #609, RobotLocomotion/drake #20618, petercorke/robotics-toolbox-python #316: a mesh with a
    hollow collides where nothing is, since its hull stands for it; here its pieces do."""
    trimesh = pytest.importorskip("trimesh")
    walls = [trimesh.creation.box((1.0, 0.1, 1.0), pose((0.0, y, 0.0))) for y in (-0.5, 0.5)]
    mesh = trimesh.util.concatenate(walls)
    checker = among(body(box(thickness, thickness, thickness)), hollow=("mesh", mesh, np.eye(4)))
    inside, within_wall = np.zeros((1, 6)), np.array([[0.0, 0.5, 0, 0, 0, 0]])
    assert checker.configurations_valid(inside)[0] and not checker.configurations_valid(within_wall)[0]
