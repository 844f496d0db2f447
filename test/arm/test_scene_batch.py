"""Scenes that differ in poses alone: against a CollisionChecker in a world of each, and coal."""

import pickle

import numpy as np
import pytest
from robots_at_hand import desk_arm, maker_of
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld, SceneBatch, rrt_connect
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.device import cuda_problem
from gpu_planners.errors import ConfigurationError, ObstacleError, SettingsError

HOOK = np.array([[0, 0, 0], [0.3, 0, 0], [0, 0.1, 0], [0, 0, 0.2], [0.3, 0.1, 0.05]])
MOVING = ("box", "hull", "can", "pair")
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(bool(cuda_problem()), reason="no GPU")]),
]
GREY = 1e-5  # metres from contact where roundings may decide either way


def obstacles(many=False):
    """A table that stays, and obstacles of all kinds; many: more than are looked at one by one."""
    world = CollisionWorld()
    world.add_box("box", [0.2, 0.1, 0.3], np.eye(4))
    at = np.eye(4)
    at[:3, 3] = 0.1, 0.2, 0.3
    world.add_convex("hull", HOOK, at)
    world.add_box("table", [1.0, 1.0, 0.05], placed(0.6, 0, -0.05))
    world.add_cylinder("can", 0.05, 0.3, at)
    world.add_shapes("pair", [ConvexShape.sphere("a", 0.08, np.eye(4)), ConvexShape.box("b", [0.1, 0.3, 0.1], at)])
    for i in range(40 if many else 0):
        world.add_sphere(f"ball {i}", 0.02, placed(0.05 * i - 1, 0.7, 0.4))
    return world


def placed(x, y, z):
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def poses_of(count, seed=0):
    """(count, 4, 4, 4)"""
    T = np.tile(np.eye(4), (count, len(MOVING), 1, 1))
    T[..., :3, :3] = Rotation.random(count * len(MOVING), random_state=seed).as_matrix().reshape(count, -1, 3, 3)
    T[..., :3, 3] = np.random.default_rng(seed).uniform([0.2, -0.6, 0.1], [0.8, 0.6, 0.9], (count, len(MOVING), 3))
    return T


def world_at(poses, world):
    """The same obstacles, added at other poses."""
    world = world.copy()
    world.add_box("box", [0.2, 0.1, 0.3], poses[0])
    world.add_convex("hull", HOOK, poses[1])
    world.add_cylinder("can", 0.05, 0.3, poses[2])
    pair = ConvexShape.sphere("a", 0.08, np.eye(4)), ConvexShape.box("b", [0.1, 0.3, 0.1], placed(0.1, 0.2, 0.3))
    world.add_shapes("pair", [shape.moved(poses[3]) for shape in pair])
    return world


def random_q(robot, *shape):
    return np.random.default_rng(5).uniform(robot.lower, robot.upper, (*shape, robot.dof))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("many", [False, True])
def test_scenes_answer_as_a_world_of_each_does(device, many):
    robot, count, world = desk_arm(), 12, obstacles(many)
    batch = SceneBatch(robot, world, count, device, margin=0.01, moving=MOVING)
    poses, q = poses_of(count), random_q(robot, count, 40)
    batch.set_poses(poses)
    free, ways = batch.configurations_valid(q), batch.motions_valid(q[:, :-1], q[:, 1:])
    assert free.shape == (count, 40) and ways.shape == (count, 39)
    some = 0
    for e in range(count):
        other = CollisionChecker(robot, world_at(poses[e], world), "cpu", margin=0.01)
        clear = np.abs(other.clearances(q[e], up_to=1.0)) > GREY
        expected = other.configurations_valid(q[e])
        assert np.array_equal(free[e][clear], expected[clear])
        some += expected.sum()
        assert np.array_equal(ways[e], other.motions_valid(q[e, :-1], q[e, 1:]))
    assert 0.1 < some / free.size < 0.9


@pytest.mark.parametrize("device", DEVICES)
def test_some_scenes_move_and_positions_with_quaternions_are_the_same(device):
    robot, world = desk_arm(), obstacles()
    batch = SceneBatch(robot, world, 6, device, moving=MOVING)
    assert np.allclose(batch.poses()[3], [world.pose_of(name) for name in MOVING])
    poses = poses_of(6)
    turns = Rotation.from_matrix(poses[..., :3, :3].reshape(-1, 3, 3)).as_quat()[:, [3, 0, 1, 2]].reshape(6, -1, 4)
    batch.set_poses(np.concatenate([poses[..., :3, 3], turns], axis=-1).astype(np.float32))
    assert np.abs(batch.poses() - poses).max() < 1e-6
    version, others = batch.version, poses_of(2, seed=7)
    batch.set_poses(others, environments=[4, 1])
    assert batch.version != version
    assert np.abs(batch.poses()[[4, 1]] - others).max() < 1e-12 and np.abs(batch.poses()[2] - poses[2]).max() < 1e-6
    q = random_q(robot, 6)
    for e, expected in ((1, others[1]), (4, others[0])):
        plain = CollisionChecker(robot, world_at(expected, world), "cpu")
        assert batch.configurations_valid(q)[e] == plain.configurations_valid(q[e : e + 1])[0]


@pytest.mark.parametrize("device", DEVICES)
def test_environments_are_checkers_and_are_planned_for_together(device):
    robot, world, count = desk_arm(), obstacles(), 8
    batch = SceneBatch(robot, world, count, device, moving=MOVING)
    poses = poses_of(count)
    poses[..., 0, 3] += 0.15
    batch.set_poses(poses)
    q = random_q(robot, count, 400)
    free = np.asarray(batch.configurations_valid(q))
    starts, goals = (np.stack([q[e][free[e]][k] for e in range(count)]) for k in (0, 1))
    results = rrt_connect.solve_batch(starts, goals, batch)
    assert all(result.solved for result in results)
    for e, result in enumerate(results):
        plain = CollisionChecker(robot, world_at(poses[e], world), "cpu")
        steps = np.linspace(0, 1, 50)[:, None]
        along = np.concatenate([a + steps * (b - a) for a, b in zip(result.path[:-1], result.path[1:])])
        assert plain.configurations_valid(along).mean() > 0.99  # the CPU rounds otherwise
        assert np.allclose(result.path[[0, -1]], [starts[e], goals[e]])
    again = rrt_connect.solve_batch(starts[[2, 5]], goals[[2, 5]], [batch[2], batch[5]])
    assert all(result.solved for result in again)
    one = batch[3]
    assert one is batch[3] and one.configurations_valid(q[3]).tolist() == free[3].tolist()
    blocked = q[3][~free[3]][0]
    named = {name for pair in one.colliding_pairs(blocked) for name in pair}
    assert named and rrt_connect.solve(blocked, goals[3], one).status.name == "START_IN_COLLISION"
    copied = pickle.loads(pickle.dumps(one))
    assert copied.device == "cpu" and copied.configurations_valid(q[3]).tolist() == free[3].tolist()
    batch.set_poses(poses[::-1])
    assert one.configurations_valid(q[3]).tolist() != free[3].tolist()
    assert one.thickened(0.01).motions_valid(q[3][:1], q[3][:1]).shape == (1,)


def test_bad_poses_are_named_and_change_nothing():
    robot, world = desk_arm(), obstacles()
    batch = SceneBatch(robot, world, 3, "cpu", moving=MOVING)
    poses = poses_of(3)
    batch.set_poses(poses)
    before, version = batch.poses(), batch.version
    for where, value, what in (
        ((1, 2, 0, 0), 2.0, "'can' in scene 1 is no finite rigid"),
        ((2, 0, 0, 3), np.nan, "'box' in scene 2"),
        ((0, 1, 0, 3), 2e5, "'hull' in scene 0 is over"),
    ):
        bad = poses.copy()
        bad[where] = value
        with pytest.raises(ObstacleError, match=what):
            batch.set_poses(bad)
    for bad in (poses[:2], poses[:, :2], poses[..., :3], np.zeros((3, 4, 6)), "x"):
        with pytest.raises(ObstacleError):
            batch.set_poses(bad)
    for numbers in ([0, 0, 1], [0, 1, 3], [0.5, 1, 2]):
        with pytest.raises(ObstacleError):
            batch.set_poses(poses, environments=numbers)
    assert np.array_equal(batch.poses(), before) and batch.version == version
    far = poses.copy()
    far[1, 0, :3, 3] = 5e4, 0, 0  # out of reach, so that it does not matter how well float32 holds it
    batch.set_poses(far)
    with pytest.raises(ConfigurationError, match="shape"):
        batch.configurations_valid(np.zeros((2, 7)))
    with pytest.raises(SettingsError):
        batch[0].margin = 0.1
    with pytest.raises(SettingsError):
        batch[0].world = world
    with pytest.raises(IndexError):
        batch[3]
    with pytest.raises(ObstacleError, match="no obstacle"):
        SceneBatch(robot, world, 3, "cpu", moving=["cup"])
    world.add_voxels("cloud", [[0, 0, 0]], 0.1, np.eye(4))
    with pytest.raises(ObstacleError, match="voxels"):
        SceneBatch(robot, world, 3, "cpu")
    for count in (0, 1.5, 1 << 21):
        with pytest.raises(SettingsError, match="count"):
            SceneBatch(robot, obstacles(), count, "cpu")


def test_large_obstacles_that_move_are_not_cut():
    robot, world = desk_arm(), CollisionWorld()
    world.add_box("floor", [60, 60, 0.1], placed(0, 0, 500.0))
    batch = SceneBatch(robot, world, 2, "cpu")
    q = random_q(robot, 2, 50)
    assert batch.configurations_valid(q).any()
    batch.set_poses(np.stack([placed(20, 5, 0.1)[None], placed(0, 0, -10)[None]]))
    other = CollisionWorld()
    other.add_box("floor", [60, 60, 0.1], placed(20, 5, 0.1))
    assert not batch.configurations_valid(q)[0].any()
    assert np.array_equal(
        batch.configurations_valid(q)[1], CollisionChecker(robot, CollisionWorld(), "cpu").configurations_valid(q[1])
    )


def test_coal_finds_plans_of_each_scene_free():
    for name in ("coal", "pinocchio"):
        pytest.importorskip(name, reason="they are the oracle")
    from gpu_planners.verify import check_path

    maker, rng, count = maker_of("panda"), np.random.default_rng(3), 6
    world = CollisionWorld()
    world.add_box("box", [0.2, 0.1, 0.3], np.eye(4))
    world.add_cylinder("can", 0.05, 0.3, np.eye(4))
    places = np.zeros((count, 2, 7))
    places[..., :3] = rng.uniform([0.4, -0.5, 0.1], [0.8, 0.5, 0.9], (count, 2, 3))
    places[..., 3:] = Rotation.random(2 * count, random_state=3).as_quat().reshape(count, 2, 4)
    batch = SceneBatch(maker.model, world, count, "cpu")
    batch.set_poses(places)
    q = random_q(maker.model, count, 100)
    free = batch.configurations_valid(q)
    starts, goals = (np.stack([q[e][free[e]][k] for e in range(count)]) for k in (0, 1))
    results = rrt_connect.solve_batch(starts, goals, batch)
    for place, result in zip(places, results, strict=True):
        kinds = {"type": "box", "name": "box", "size": [0.2, 0.1, 0.3]}, {
            "type": "cylinder", "name": "can", "radius": 0.05, "height": 0.3,
        }  # fmt: skip
        obstacles = [
            kind | {"position": one[:3].tolist(), "quat_xyzw": one[[4, 5, 6, 3]].tolist()}
            for kind, one in zip(kinds, place)
        ]
        assert result.solved and check_path(result.path, maker.rig.coal_scene(obstacles), tolerance=1e-4).free
