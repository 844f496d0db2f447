"""Large worlds: groups of obstacles are passed over, and none of them that matters."""

import numpy as np
import pytest
from robots_at_hand import maker_of

from benchmarks.problems import add_obstacles
from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.collision.broad_phase import GROUP, group_boxes, neighbours_first, next_near
from gpu_planners.arm.collision.records import HEADER, Header
from gpu_planners.arm.spaces.interface import Packed
from gpu_planners.device import njit


def packed(balls):
    """A scene that holds balls and their groups, and nothing else."""
    ints = np.zeros(HEADER, np.int32)
    counts = Header(*np.zeros(len(Header._fields), int))
    ints[: len(counts)] = counts._replace(obstacles=len(balls), groups=balls.size)
    return Packed(np.concatenate([balls.ravel(), group_boxes(balls)]), ints)


@njit
def visited(count, centre, radius, scene):
    seen, k = np.zeros(count, np.bool_), 0
    while True:
        k = next_near(k, count, (centre[0], centre[1], centre[2]), radius, scene)
        if k >= count:
            return seen
        seen[k : k + GROUP] = True
        k += GROUP


@pytest.mark.parametrize("count", [0, 1, GROUP, GROUP + 1, 500, 20_000])
def test_no_ball_that_is_near_is_passed_over(count):
    rng = np.random.default_rng(count)
    balls = np.concatenate([rng.normal(0, 1, (count, 3)), 10 ** rng.uniform(-3, -0.5, (count, 1))], axis=1)
    balls = balls.astype(np.float32)
    order = neighbours_first(balls)
    assert np.array_equal(np.sort(order), np.arange(count))
    balls = balls[order]
    scene, shares = packed(balls), []
    for _ in range(200):
        centre, radius = rng.normal(0, 1, 3).astype(np.float32), np.float32(10 ** rng.uniform(-3, -0.5))
        near = np.linalg.norm(balls[:, :3] - centre, axis=1) <= balls[:, 3] + radius
        seen = visited(count, centre, radius, scene)
        assert seen[near].all()
        shares.append(seen.mean() if count else 0)
    if count == 20_000:
        assert np.mean(shares) < 0.1


def test_a_room_full_of_boxes_agrees_with_coal():
    pytest.importorskip("coal")
    rig = maker_of("panda").rig
    rng, obstacles = np.random.default_rng(3), []
    for i, position in enumerate(rng.uniform([-1, -1, -0.3], [1, 1, 1.2], (900, 3))):
        if np.linalg.norm(position[:2]) > 0.35:
            turned = rng.normal(size=4)
            pose = {"position": position.tolist(), "quat_xyzw": (turned / np.linalg.norm(turned)).tolist()}
            size = (10 ** rng.uniform(-2, -1, 3)).tolist()
            obstacles.append({"name": f"box {i}", "type": "box", "size": size, **pose})
    world = CollisionWorld()
    checker, scene = CollisionChecker(rig.model, add_obstacles(world, obstacles), "cpu"), rig.coal_scene(obstacles)
    q = rng.uniform(rig.model.lower, rig.model.upper, (4000, rig.model.dof))
    free = checker.configurations_valid(q)
    q = np.concatenate([q[free][:60], q[~free][:60]])
    distance = np.array([scene.distance(each) for each in q])
    clear = np.abs(distance) > 1e-4
    assert np.array_equal(checker.configurations_valid(q)[clear], distance[clear] > 0)
    assert clear.sum() > 100 and 20 < free.sum()
