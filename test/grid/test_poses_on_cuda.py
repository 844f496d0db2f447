"""What the grid node calls for a robot with a footprint, on CUDA beside the CPU, where there is no ROS."""

import numpy as np
import pytest

from gpu_planners.compiling import pose_parts
from gpu_planners.device import cuda_problem
from gpu_planners.grid import AgentStatus, PoseGrid, PosePlanner, PoseSettings

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")]
BOX = [(0.6, 0.31), (-0.6, 0.31), (-0.6, -0.31), (0.6, -0.31)]
CELL, ORIGIN = 0.1, (3.0, -4.0, 0.7)


def hall():
    """Two rooms with an aisle of 1.1 m between them."""
    costs = np.ones((60, 90), np.uint8)
    costs[:, 35:55] = 0
    costs[30:41, 35:55] = 1
    return costs


def in_map(x, y, yaw):
    cos, sin = np.cos(ORIGIN[2]), np.sin(ORIGIN[2])
    return np.array([ORIGIN[0] + cos * x - sin * y, ORIGIN[1] + sin * x + cos * y, yaw + ORIGIN[2]])


def planner(model, device, costs=None):
    return PosePlanner(PoseGrid(hall() if costs is None else costs, BOX, 16, model, 0.5, CELL, ORIGIN), "auto", device)


@pytest.mark.parametrize("model", ["differential", "dubins", "reeds_shepp", "omni"])
def test_what_the_node_asks_for_is_answered_on_cuda_as_on_the_cpu(model):
    for part in pose_parts("cuda"):
        part.run()
    starts = np.array([in_map(1.5, 3.0, 0.0), in_map(2.0, 1.5, 2.0), in_map(0.1, 0.1, 0.0)])
    goals = in_map(7.5, 3.5, 0.0), in_map(7.0, 1.5, 1.5), in_map(4.5, 1.0, 0.0)
    for exact in (0.0, 0.3):
        here, there = planner(model, "cpu"), planner(model, "cuda")
        for each in (here, there):
            each.settings = PoseSettings(exact, np.pi if exact else 0.0)
        for goal in goals:
            on_cpu, on_cuda = here.plan(starts, goal), there.plan(starts, goal)
            assert np.array_equal(on_cpu.status, on_cuda.status) and np.array_equal(on_cpu.cost, on_cuda.cost)
            for k in np.flatnonzero(on_cuda.solved):
                path = on_cuda.path(k)
                assert there.path_free(path) and here.path_free(path)
                assert on_cpu.ends_at_goal(k) == on_cuda.ends_at_goal(k)
        assert there.states_free(starts).tolist() == here.states_free(starts).tolist()


def test_a_map_that_changes_here_and_there_on_cuda():
    """Patches, and changes scattered over a map, which are checked cluster by cluster."""
    rng, costs = np.random.default_rng(5), np.ones((300, 400), np.uint8)
    here, there = planner("differential", "cpu", costs), planner("differential", "cuda", costs)
    goal = in_map(30.0, 20.0, 1.0)
    starts = np.array([in_map(3.0, 3.0, 0.0), in_map(20.0, 25.0, 1.0)])
    solved = 0
    for turn in range(6):
        if turn % 2:
            row, col = rng.integers(0, 250, 2)
            rows, cols = (each.ravel() for each in np.mgrid[row : row + 20, col : col + 20])
        else:
            rows, cols = rng.integers(0, 300, 8), rng.integers(0, 400, 8)
        new = (rng.random(len(rows)) < 0.9 * (turn % 2)).astype(np.uint8)
        for each in (here, there):
            each.update(rows, cols, new)
        on_cpu, on_cuda = here.plan(starts, goal), there.plan(starts, goal)
        assert np.array_equal(on_cpu.status, on_cuda.status) and np.array_equal(on_cpu.cost, on_cuda.cost)
        fresh = planner("differential", "cuda", here.poses.map.costs)
        assert (
            np.array_equal(fresh.field(goal), there.field(goal)) if AgentStatus.GOAL_BLOCKED not in on_cpu.status else 1
        )
        solved += int(on_cuda.solved.sum())
    assert solved > 3


def test_clusters_of_changes_leave_the_states_that_a_new_map_has():
    rng, costs = np.random.default_rng(7), np.ones((400, 500), np.uint8)
    one = planner("differential", "cpu", costs)
    for count in (1, 5, 12, 3000):
        rows, cols = rng.integers(0, 400, count), rng.integers(0, 500, count)
        new = (rng.random(count) < 0.5).astype(np.uint8)
        one.update(rows, cols, new)
        costs = one.poses.map.costs
        assert np.array_equal(one._on.free, planner("differential", "cpu", costs)._on.free)
