"""Skins and bounds of reach.py against float64 kinematics: what float32 misplaces, how far shapes come, on real robots."""

import numpy as np
import pytest
from gpu_planners.arm.collision import new_scratch, place, shape_pose
from gpu_planners.arm.packing import FRAMES, MOVING, SHAPE_INT_STRIDE, SHAPE_INTS, pack_robot
from gpu_planners.arm.reach import shape_levers, skin
from gpu_planners.arm.shapes import ShapeKind
from gpu_planners.arm.urdf_loader import load_urdf
from gpu_planners.device import njit

oracle = pytest.importorskip("pinocchio_poses", reason="example-robot-data has the robots")


@njit
def placed(q, F, I):
    """(N, moving, 12) float32 poses of the moving shapes."""
    X = new_scratch(I).X
    poses = np.empty((len(q), I[MOVING], 12), dtype=np.float32)
    for n in range(len(q)):
        place(q[n], F, I, X)
        for s in range(I[MOVING]):
            T = shape_pose(I[SHAPE_INTS] + s * SHAPE_INT_STRIDE, F, I, X)
            for k in range(12):
                poses[n, s, k] = T[k]
    return poses


@pytest.mark.parametrize("name", ["panda", "ur5", "kinova", "z1", "tiago", "baxter"])
def test_no_point_is_misplaced_by_more_than_its_skin(name):
    """Corners of the packed shapes in float32, at joint values rounded to float32, against float64; and none comes out of the
    radius that obstacles are cut off by."""
    urdf, share = oracle.example_robot(name)
    joints = {"baxter": [f"{side}_{j}" for side in ("left", "right") for j in ("s0", "s1", "e0", "e1", "w0", "w1", "w2")]}
    robot = load_urdf(urdf, package_dirs=[share], joints=joints.get(name), hull_tolerance=np.inf)
    packed = pack_robot(robot)
    F, I = packed.buffers
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (2000, robot.dof))
    poses = placed(q.astype(np.float32), F, I).astype(np.float64)
    frames, tightest = robot.frame_poses(q), 0.0
    for s in range(I[MOVING]):
        shape, f = robot.shapes[packed.order[s]], robot.shape_frame[packed.order[s]]
        record = I[SHAPE_INTS] + s * SHAPE_INT_STRIDE
        corners = _corners(shape) if shape.kind != ShapeKind.POLYTOPE else shape.vertices
        own = np.array(F[I[record + 2]:I[record + 2] + 12], dtype=np.float64)  # the packed pose may be turned to the tight box
        R, p = own[:9].reshape(3, 3), own[9:]
        inside = (corners @ shape.pose[:3, :3].T + shape.pose[:3, 3] - p) @ R
        exact = np.einsum("nij,vj->nvi", frames[:, f, :3, :3], inside @ R.T + p) + frames[:, f, None, :3, 3] - packed.origin
        rounded = np.einsum("nij,vj->nvi", poses[:, s, :9].reshape(-1, 3, 3), inside) + poses[:, s, None, 9:]
        off, thickness = np.linalg.norm(exact - rounded, axis=2).max(), skin(robot, shape_levers(robot, f, shape))
        assert off < thickness, f"{shape.name}: {1e6 * off:.2f} um, skin {1e6 * thickness:.2f} um"
        assert np.linalg.norm(exact, axis=2).max() <= packed.radius
        tightest = max(tightest, off / thickness)
    print(f"{name}: {I[FRAMES]} frames, a point is misplaced by up to {100 * tightest:.0f} % of its skin")
    assert tightest > 0.01  # a bound that is hundreds of times too wide would refuse what is free


def _corners(shape):
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    return signs * shape.half_extents
