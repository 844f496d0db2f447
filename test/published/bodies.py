"""A body that moves freely in space, as a robot: its joints are x, y, z in metres and three angles."""

import numpy as np
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf

AXES = ("1 0 0", "0 1 0", "0 0 1")


def body(geometry, at=(0.0, 0.0, 0.0), reach=3.0):
    """geometry: an element of a URDF; at: (3,) where x = y = z = 0 lies in the root frame, metres"""
    origin = " ".join(map(repr, map(float, at)))
    links, joints, parent = ["<link name='root'/>"], [], "root"
    for k, (kind, axis) in enumerate([("prismatic", a) for a in AXES] + [("continuous", a) for a in AXES]):
        last = k == 5
        shape = f"<collision><geometry>{geometry}</geometry></collision>" if last else ""
        links.append(f"<link name='l{k}'>{shape}</link>")
        limit = f"<limit lower='{-reach}' upper='{reach}' effort='1' velocity='1'/>" if kind == "prismatic" else ""
        limit = limit or "<limit effort='1' velocity='1'/>"
        place = f"<origin xyz='{origin}'/>" if k == 0 else ""
        joints.append(
            f"<joint name='j{k}' type='{kind}'><parent link='{parent}'/><child link='l{k}'/><axis xyz='{axis}'/>"
            f"{limit}{place}</joint>"
        )
        parent = f"l{k}"
    return load_urdf(f"<robot name='body'>{''.join(links + joints)}</robot>")


def box(x, y, z):
    return f"<box size='{x} {y} {z}'/>"


def pose(position=(0.0, 0.0, 0.0), turned=(0.0, 0.0, 0.0)):
    """(4, 4) by a position and the body's three angles."""
    T = np.eye(4)
    T[:3, :3] = Rotation.from_euler("XYZ", turned).as_matrix()
    T[:3, 3] = position
    return T


def among(robot, **obstacles):
    """CollisionChecker of a robot; obstacles: {name: what CollisionWorld.add_<kind> takes, its kind first}"""
    world = CollisionWorld()
    for name, (kind, *rest) in obstacles.items():
        getattr(world, f"add_{kind}")(name, *rest)
    return CollisionChecker(robot, world, "cpu")
