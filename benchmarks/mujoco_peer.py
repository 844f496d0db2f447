"""MuJoCo's collision detection as a peer, on one core: the same hulls, obstacles and pairs.

It finds all contacts, where coal and we stop at the first; its search between convex shapes goes by
tolerances of physics.
"""

import numpy as np


def unavailable():
    """Why MuJoCo cannot be measured here, or None."""
    try:
        import mujoco  # noqa: F401
    except ImportError:
        return "skipped: mujoco is not installed (extra `sim`)"
    return None


def validity(robot, world):
    """A function q (dof,) -> bool, True where MuJoCo finds no contact, of a RobotModel among a CollisionWorld."""
    import mujoco

    from gpu_planners.sim.simulation import make_model

    model = make_model(robot, world)
    data, frames = mujoco.MjData(model), robot.frames
    at = model.jnt_qposadr[[model.joint(name).id for name in robot.frame_names]]
    multiplier, joint, offset = frames["multiplier"], frames["joint"], frames["offset"]

    def valid(q):
        data.qpos[at] = multiplier * q[joint] + offset
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        return data.ncon == 0

    return valid


def all_valid(valid, q):
    """(N,) bool of a validity function over configurations (N, dof)."""
    return np.fromiter((valid(row) for row in q), bool, len(q))
