"""Skins and bounds of reach.py against float64 kinematics on real robots."""

import numpy as np
import pytest

from gpu_planners.arm.collision.forward import place_robot, placed
from gpu_planners.arm.collision.packing import pack_robot
from gpu_planners.arm.collision.reach import shape_levers, skin
from gpu_planners.arm.collision.records import header, moving_count, robot_shape, shape_pose
from gpu_planners.arm.collision.scratch import new_scratch
from gpu_planners.arm.geometry.poses import store
from gpu_planners.arm.geometry.shapes import ShapeKind
from gpu_planners.arm.urdf.loader import load_urdf
from gpu_planners.device import njit

oracle = pytest.importorskip("pinocchio_poses", reason="example-robot-data has the robots")


@njit
def world_poses(q, scene):
    """(N, moving, 12) float32 poses of the moving shapes."""
    room = new_scratch(scene).poses
    poses = np.empty((len(q), moving_count(scene), 12), dtype=np.float32)
    for n in range(len(q)):
        place_robot(q[n], scene, room)
        for s in range(moving_count(scene)):
            store(poses[n, s], 0, 1, placed(robot_shape(scene, s), scene, room))
    return poses


@njit
def own_pose(s, scene):
    return shape_pose(scene, robot_shape(scene, s))


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("kinova", "z1", "tiago")]


@pytest.mark.parametrize("name", ["panda", "ur5", "baxter", *SLOW])
def test_no_point_is_misplaced_by_more_than_its_skin(name):
    """Corners of the packed shapes in float32, at joint values rounded to float32, against float64.

    And none leaves the radius beyond which obstacles are cut off.
    """
    urdf, share = oracle.example_robot(name)
    joints = {
        "baxter": [f"{side}_{j}" for side in ("left", "right") for j in ("s0", "s1", "e0", "e1", "w0", "w1", "w2")]
    }
    robot = load_urdf(urdf, package_dirs=[share], joints=joints.get(name), hull_tolerance=np.inf)
    packed = pack_robot(robot)
    scene, counts = packed.buffers, header(packed.buffers)
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (500, robot.dof))
    poses = world_poses(q.astype(np.float32), scene).astype(np.float64)
    frames, tightest = robot.frame_poses(q), 0.0
    for s in range(counts.moving):
        shape, f = robot.shapes[packed.order[s]], robot.shape_frame[packed.order[s]]
        corners = _corners(shape) if shape.kind != ShapeKind.POLYTOPE else shape.vertices
        own = np.array(own_pose(s, scene), dtype=np.float64)  # the packed pose may be turned to the tight box
        R, p = own[:9].reshape(3, 3), own[9:]
        inside = (corners @ shape.pose[:3, :3].T + shape.pose[:3, 3] - p) @ R
        exact = (
            np.einsum("nij,vj->nvi", frames[:, f, :3, :3], inside @ R.T + p) + frames[:, f, None, :3, 3] - packed.origin
        )
        rounded = np.einsum("nij,vj->nvi", poses[:, s, :9].reshape(-1, 3, 3), inside) + poses[:, s, None, 9:]
        off, thickness = np.linalg.norm(exact - rounded, axis=2).max(), skin(robot, shape_levers(robot, f, shape))
        assert off < thickness, f"{shape.name}: {1e6 * off:.2f} um, skin {1e6 * thickness:.2f} um"
        assert np.linalg.norm(exact, axis=2).max() <= packed.radius
        tightest = max(tightest, off / thickness)
    print(f"{name}: {counts.frames} frames, a point is misplaced by up to {100 * tightest:.0f} % of its skin")
    assert tightest > 0.01  # a bound that is hundreds of times too wide would refuse what is free


def _corners(shape):
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    return signs * shape.half_extents
