"""Robots with parts that move one after the other, and together where that is not enough: two discs on a plate."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from robots_at_hand import checker_among, maker_of

from gpu_planners.arm import CollisionChecker, CollisionWorld, Status, load_urdf, rrt_connect
from gpu_planners.arm.planners.query import dry_query, open_query
from gpu_planners.arm.planners.rrt_connect import apart
from gpu_planners.arm.planners.rrt_connect.apart import APART, TOGETHER, at_once, parts_of, solve_apart
from gpu_planners.arm.robot.model import FRAME_DTYPE, branches_of

RADIUS = 0.1
DISC = """
<link name="{s}_slide"/><link name="{s}_disc"><collision><geometry><cylinder radius="0.1" length="0.1"/></geometry>
</collision></link>
<joint name="{s}_x" type="prismatic"><parent link="plate"/><child link="{s}_slide"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
<joint name="{s}_y" type="prismatic"><parent link="{s}_slide"/><child link="{s}_disc"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" velocity="1" effort="1"/></joint>"""
SETTINGS = rrt_connect.Settings(time_limit_s=3600.0)
APART_AT = np.array([-0.8, 0, 0.8, 0])  # one disc on the left, the other on the right
SWAPPED = np.array([0.8, 0, -0.8, 0])


@pytest.fixture(scope="module")
def discs(tmp_path_factory):
    path = tmp_path_factory.mktemp("discs") / "discs.urdf"
    path.write_text(f'<robot name="discs"><link name="plate"/>{DISC.format(s="a")}{DISC.format(s="b")}</robot>')
    return load_urdf(path)


@pytest.fixture(autouse=True)
def two_joints_are_an_arm(monkeypatch):
    monkeypatch.setattr(apart, "ARM", 2)


def among(robot, boxes):
    """CollisionChecker among boxes (N, 4): lowest x and y, highest x and y."""
    world = CollisionWorld()
    for i, (left, low, right, high) in enumerate(boxes):
        pose = np.eye(4)
        pose[:2, 3] = (left + right) / 2, (low + high) / 2
        world.add_box(f"box {i}", [right - left, high - low, 0.2], pose)
    return CollisionChecker(robot, world, "cpu")


def free(path, boxes):
    """Is a path free, by distances of points along it?"""
    t = np.linspace(0, 1, 200)[:, None]
    q = np.concatenate([a + t * (b - a) for a, b in zip(path, path[1:])])
    apart = np.linalg.norm(q[:, :2] - q[:, 2:], axis=1) >= 2 * RADIUS - 1e-4
    boxes = np.asarray(boxes, dtype=float).reshape(-1, 4)
    away = [
        np.linalg.norm(centre[:, None] - np.clip(centre[:, None], boxes[:, :2], boxes[:, 2:]), axis=2) > RADIUS - 1e-4
        for centre in (q[:, :2], q[:, 2:])
    ]
    return apart.all() and all(each.all() for each in away)


CORRIDOR = [(-1.2, 0.12, -0.25, 1.2), (0.25, 0.12, 1.2, 1.2), (-1.2, -1.2, 1.2, -0.12)]  # with a bay in its middle


@pytest.mark.parametrize("seed", range(4))
def test_discs_that_must_give_way_are_planned_together(discs, seed):
    checker = among(discs, CORRIDOR)
    found = rrt_connect.solve(APART_AT, SWAPPED, checker, SETTINGS, seed=seed)
    assert found.solved and free(found.path, CORRIDOR)
    assert np.array_equal(found.path[[0, -1]], [APART_AT, SWAPPED])


WALLS = [(-1.2, -0.5, -0.27, -0.3), (0.27, -0.5, 1.2, -0.3), (-0.05, -1.2, 0.05, 1.2)]


@pytest.mark.parametrize("rounds", [0, 3])
def test_discs_that_need_not_are_planned_apart(discs, rounds):
    """Each goes round a wall of its own; of several goals those in collision are passed over."""
    start, goal = np.array([-0.5, -0.8, 0.5, -0.8]), np.array([-0.5, 0.8, 0.5, 0.8])
    goals = np.array([[0, 0, 0.5, 0.8], goal, goal + [0, 0, 0.1, 0]])
    checker = among(discs, WALLS)
    found = rrt_connect.solve(start, goals, checker, replace(SETTINGS, shortcut_rounds=rounds), seed=2)
    assert found.solved and found.goal_index in (1, 2) and free(found.path, WALLS)
    assert np.array_equal(found.path[[0, -1]], [start, goals[found.goal_index]])
    assert found.samples < 5000 and found.cost < 3.5  # less than both ways one after the other
    again = rrt_connect.solve(start, goals, checker, replace(SETTINGS, shortcut_rounds=rounds), seed=2)
    assert np.array_equal(again.path, found.path) and again.samples == found.samples


def test_parts_move_at_once_where_that_is_free(discs):
    query, order = dry_query(among(discs, [])), np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool)
    a, b = np.array([[-0.5, 0], [0, 0.3], [0.5, 0]]), np.array([[0.1, -0.5], [0.1, 0.5]])
    path = np.array([[*a[0], *b[0]], [*a[1], *b[0]], [*a[2], *b[0]], [*a[2], *b[1]]])
    assert np.array_equal(at_once(path, order, query), path)  # they would meet in the middle
    b = b + [0.7, 0]
    path[:, 2:] += [0.7, 0]
    assert np.allclose(at_once(path, order, query), [[*a[0], *b[0]], [*a[1], *b.mean(axis=0)], [*a[2], *b[1]]])
    path[:, 2:] = b[0]  # one stands still
    assert np.array_equal(at_once(path, order, query), path[:3])
    assert np.array_equal(at_once(path, order, replace(query, deadline=0)), path)  # the time is up


def asked(discs, statuses, max_samples=100_000):
    """solve_apart with a search that ends with each status in turn -> the result, and what was asked:
    [(samples, rounds, joints that move)]"""
    checker, calls = among(discs, []), []

    def search(query, settings, seed):
        calls.append((settings.max_samples, settings.shortcut_rounds, tuple(np.flatnonzero(query.lower < query.upper))))
        status = statuses[len(calls) - 1]
        if status is Status.SOLVED:
            return query.solved(np.stack([query.start, query.goals[0]]), 0, 10)
        return query.failed(status, f"{status.value} (10 samples)", 10)

    settings = rrt_connect.Settings(max_samples=max_samples)
    query = open_query(APART_AT, SWAPPED, checker, settings)
    return solve_apart(search, query, settings, 0), calls


def test_what_is_searched_when(discs):
    out, ok, late, blocked = Status.SAMPLES_EXHAUSTED, Status.SOLVED, Status.TIMED_OUT, Status.GOAL_IN_COLLISION
    every, a, b = (0, 1, 2, 3), (0, 1), (2, 3)
    found, calls = asked(discs, [ok])
    assert found.solved and found.samples == 10 and calls == [(TOGETHER, 3, every)]
    found, calls = asked(discs, [out, ok, ok])
    assert found.solved and found.samples == 30
    assert calls == [(TOGETHER, 3, every), (APART, 0, a), (APART, 0, b)]
    found, calls = asked(discs, [out, ok, blocked, ok, ok])
    assert found.solved and found.samples == 50 and calls[3:] == [(APART, 0, b), (APART, 0, a)]
    found, calls = asked(discs, [out, out, out, ok])
    assert found.solved and found.samples == 40 and calls[3:] == [(100_000, 3, every)]
    found, calls = asked(discs, [out, ok, late])
    assert found.status is late and found.samples == 30 and len(found.path) == 0 and "(30 samples)" in found.message
    found, calls = asked(discs, [out, ok, Status.WORLD_CHANGED])
    assert found.status is Status.WORLD_CHANGED and found.samples == 30
    found, calls = asked(discs, [Status.START_IN_COLLISION])
    assert found.status is Status.START_IN_COLLISION and len(calls) == 1
    found, calls = asked(discs, [out] * 4, max_samples=5)
    assert found.status is out and found.samples == 40 and {most for most, _, _ in calls} == {5}


def test_branches():
    assert len(maker_of("panda").model.branches) == 0
    baxter = maker_of("baxter").model
    sides = [{name.split("_")[0] for name, own in zip(baxter.joint_names, part) if own} for part in baxter.branches]
    assert sorted(map(sorted, sides)) == [["left"], ["right"]]
    # a trunk of two joints, an arm of two, whose gripper's fingers follow one joint, and a head of two
    frames = np.zeros(8, FRAME_DTYPE)
    frames["parent"], frames["joint"] = [-1, 0, 1, 2, 3, 3, 1, 6], [3, 0, 1, 2, 4, 4, 6, 5]
    parts = branches_of(frames, 7)
    assert sorted(np.flatnonzero(part).tolist() for part in parts) == [[1, 2, 4], [5, 6]]
    both = parts_of(SimpleNamespace(robot=SimpleNamespace(branches=parts)))
    assert both.sum(axis=0).tolist() == [1] * 7 and sorted(both.sum(axis=1)) in ([2, 5], [3, 4])  # one takes the trunk
    # grippers of two arms that move with one joint
    frames = frames[:4]
    frames["parent"], frames["joint"] = [-1, 0, -1, 2], [0, 1, 2, 1]
    assert len(branches_of(frames, 3)) == 0
    assert len(parts_of(SimpleNamespace(robot=SimpleNamespace()))) == 0


def test_two_arms_have_no_short_legs():
    """Joints that stand still stay where they are to the last bit; else time_parameterize has corners to turn."""
    maker = maker_of("baxter")
    for i in range(3):
        problem = maker.problem("shelf", i)
        checker = checker_among(maker.model, problem)
        path = rrt_connect.solve(problem.start, problem.goals, checker, replace(SETTINGS, shortcut_rounds=0)).path
        assert np.linalg.norm(np.diff(path, axis=0), axis=1).min() > 1e-6
