"""What add_box and its like refuse: whatever is no size, no pose, no name; and the poses that they make rigid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionWorld
from gpu_planners.arm.geometry.shapes import check_pose
from gpu_planners.errors import ObstacleError

NO_NUMBERS = [
    None,
    "abc",
    b"abc",
    {},
    object(),
    ["1", "2", "3"],
    [1, 2, None],
    [1, 2, [3]],
    [1j, 1, 1],
    np.array([1j] * 3),
    [True] * 3,
    [10**400, 1, 1],
    np.array(["2020-01-01"] * 3, "M8[D]"),
    [np.nan] * 3,
    [np.inf] * 3,
    [1e5 + 1] * 3,
    [1e39, 1, 1],
]
NO_POSES = [
    None,
    "abc",
    5,
    [[1]],
    np.eye(3),
    np.zeros((4, 4)),
    np.eye(4) * 1j,
    np.diag([1e6, 1, 1, 1.0]),
    np.diag([-1.0, 1, 1, 1]),
    np.diag([1.001, 1, 1, 1]),
    np.full((4, 4), np.nan),
    np.eye(4) + np.eye(4, k=3) * 2e5,
    np.eye(4) + np.eye(4, k=-3),
    np.eye(4).astype(str),
]


def calls(world):
    return {
        "box": lambda value: world.add_box("a", value, np.eye(4)),
        "cylinder": lambda value: world.add_cylinder("a", value, 1.0, np.eye(4)),
        "height": lambda value: world.add_cylinder("a", 1.0, value, np.eye(4)),
        "sphere": lambda value: world.add_sphere("a", value, np.eye(4)),
        "convex": lambda value: world.add_convex("a", value, np.eye(4)),
    }


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize("call", ["box", "cylinder", "height", "sphere", "convex"])
def test_sizes_that_are_none(call, value):
    world = CollisionWorld()
    version = world.version
    with pytest.raises(ObstacleError, match="'a'"):
        calls(world)[call](value)
    if call == "convex" and value is not None:
        with pytest.raises(ObstacleError, match="'a'"):
            world.add_convex("a", [value] * 5, np.eye(4))
    assert world.version == version and not world.names


@pytest.mark.parametrize("pose", NO_POSES)
def test_poses_that_are_none(pose):
    world = CollisionWorld()
    with pytest.raises(ObstacleError, match="'a'.*pose"):
        world.add_box("a", [1, 1, 1], pose)


@pytest.mark.parametrize("name", [None, "", 5, b"a", [], ("a",)], ids=repr)
def test_names_that_are_none(name):
    world = CollisionWorld()
    with pytest.raises(ObstacleError, match="name is .*allowed: a text|non-empty text"):
        world.add_box(name, [1, 1, 1], np.eye(4))
    with pytest.raises(ObstacleError, match="name is .*allowed: a text|no obstacle is named"):
        world.remove(name)


def test_the_largest_lengths_are_taken():
    world = CollisionWorld()
    pose = np.eye(4)
    pose[:3, 3] = 1e5
    world.add_box("box", [1e5] * 3, pose)
    world.add_convex("hull", 1e5 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, -1]]), pose)


@given(seed=st.integers(0, 2**32 - 1), off=st.sampled_from([0.0, 1e-12, 1e-7, 3e-5]))
def test_poses_become_rigid(seed, off):
    """A rotation that is off by 1e-4 would scale geometry: 10 m away that is a millimetre."""
    rng = np.random.default_rng(seed)
    given, R = np.eye(4), Rotation.random(random_state=rng).as_matrix()
    given[:3, :3] = R + off * rng.uniform(-1, 1, (3, 3))
    given[:3, 3] = rng.uniform(-1, 1, 3)
    before = given.copy()
    pose = check_pose("a", given)
    np.testing.assert_allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=2e-14)
    assert np.linalg.det(pose[:3, :3]) > 0
    np.testing.assert_allclose(pose[:3, :3], R, atol=2 * off + 1e-14)
    assert np.array_equal(pose[:3, 3], given[:3, 3]) and np.array_equal(pose[3], [0, 0, 0, 1])
    assert np.array_equal(given, before)
