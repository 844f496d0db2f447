"""The float32 forward kinematics that all checks run on, against pinocchio, on real robots."""

import numpy as np
import pytest

from gpu_planners.arm.collision.forward import place_robot
from gpu_planners.arm.collision.packing import pack_robot
from gpu_planners.arm.collision.records import frame_count
from gpu_planners.arm.collision.scratch import new_scratch
from gpu_planners.arm.geometry.poses import POSE
from gpu_planners.arm.urdf.loader import load_urdf
from gpu_planners.device import njit

oracle = pytest.importorskip("pinocchio_poses", reason="pinocchio (pip install pin) is the kinematics oracle")


@njit
def frames_of(q, scene):
    """(N, frames * POSE) float32 poses of all frames."""
    poses = np.empty((len(q), POSE * frame_count(scene)), dtype=np.float32)
    room = new_scratch(scene).poses
    for n in range(len(q)):
        place_robot(q[n], scene, room)
        poses[n] = room[: POSE * frame_count(scene)]
    return poses


@pytest.mark.parametrize("name", ["panda", "ur5", "ur10", "kinova", "xarm7", "z1", "tiago", "baxter"])
def test_float32_kinematics_agree_with_pinocchio(name):
    urdf, share = oracle.example_robot(name)
    arms = {
        "tiago": [f"arm_{k}_joint" for k in range(1, 8)],
        "baxter": [f"{side}_{j}" for side in ("left", "right") for j in ("s0", "s1", "e0", "e1", "w0", "w1", "w2")],
    }
    robot = load_urdf(urdf, package_dirs=[share], joints=arms.get(name), hull_tolerance=np.inf)
    packed = pack_robot(robot)
    rng = np.random.default_rng(0)
    q = rng.uniform(np.maximum(robot.lower, -np.pi), np.minimum(robot.upper, np.pi), (200, robot.dof)).astype(
        np.float32
    )
    poses = frames_of(q, packed.buffers).reshape(len(q), -1, 12)
    poses[:, :, 9:] += packed.origin
    expected = oracle.pinocchio_poses(urdf, robot.joint_names, q, fixed_values(robot, urdf))
    worst = 0.0
    for link, f, T in zip(robot.link_names, robot.link_frame, robot.T_frame_link):
        if f < 0:
            continue
        frame = np.tile(np.eye(4), (len(q), 1, 1))
        frame[:, :3, :3], frame[:, :3, 3] = poses[:, f, :9].reshape(-1, 3, 3), poses[:, f, 9:]
        worst = max(worst, np.abs(frame @ T - expected[link]).max())
    print(f"{name}: {worst:.1e}")
    assert worst < 1e-5


def fixed_values(robot, urdf):
    """Values at which the loader froze the joints that are not planned: 0, or the limit nearest to 0."""
    import xml.etree.ElementTree as ET

    values = {}
    for joint in ET.parse(urdf).getroot().iterfind("joint"):
        limit = joint.find("limit")
        if (
            joint.get("name") not in robot.joint_names
            and joint.get("type") in ("revolute", "prismatic")
            and limit is not None
        ):
            values[joint.get("name")] = min(max(0.0, float(limit.get("lower", 0))), float(limit.get("upper", 0)))
    return values
