"""coal as the peer, on one core: the same robot, obstacles and pairs, through pinocchio's C++ loops.

The scene is that of `gpu_planners.verify`, which shares no code with the planner.
"""

import numpy as np

from .problems import robot_files

BROAD_PHASE = "BroadPhaseManager_DynamicAABBTreeCollisionManager"


def unavailable():
    """Why coal cannot be measured here, or None."""
    try:
        import coal  # noqa: F401
        import pinocchio  # noqa: F401
    except ImportError as error:
        return f"skipped: {error.name} is not installed (extra `bench`)"
    return None


def arguments_of(robot, data=None):
    """{argument of CoalScene: value} of "panda" or "ur5" of the shared data."""
    return {**dict(zip(("urdf", "srdf"), robot_files(robot, data), strict=True)), "meshes": "hulls"}


def scene(robot, obstacles, data=None):
    """CoalScene of "panda" or "ur5" of the shared data among obstacles."""
    from gpu_planners.verify import CoalScene

    return CoalScene(obstacles=obstacles, **arguments_of(robot, data))


def validity(checked, broad_phase=True):
    """A function q (dof,) -> bool, True where free, of a CoalScene; with an AABB tree in front, or pair by pair."""
    import pinocchio as pin

    model, data, geometry, geometry_data = checked.model, checked.data, checked.geometry, checked.geometry_data
    if broad_phase:
        manager = getattr(pin, BROAD_PHASE)(model, geometry, geometry_data)
        return lambda q: not pin.computeCollisions(model, data, manager, q, True)
    return lambda q: not pin.computeCollisions(model, data, geometry, geometry_data, q, True)


def all_valid(valid, q):
    """(N,) bool of a validity function over configurations (N, dof)."""
    return np.fromiter((valid(row) for row in q), bool, len(q))
