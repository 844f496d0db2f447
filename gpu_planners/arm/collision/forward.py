"""Forward kinematics in float32: where a configuration puts the robot's frames and shapes."""

import math

from ...device import lean_njit
from ..geometry.poses import ZERO, compose, moved, relative
from .records import (
    frame_base,
    frame_count,
    frame_floats,
    frame_ints,
    robot_shape,
    shape_count,
    shape_frame,
    shape_pose,
    sphere_centre,
)
from .scratch import frame_pose, own_balls, set_frame_pose


@lean_njit
def place_robot(q, scene, poses):
    """Write all frames' poses (Craig's modified DH) and the centres of all shapes' coarse spheres, in the world."""
    for f in range(frame_count(scene)):
        frame, row = frame_ints(scene, f), frame_floats(scene, f)
        value = row.multiplier * q[frame.joint] + row.offset
        theta, d = row.theta, row.d
        if frame.slides != 0:
            d += value
        else:
            theta += value
        ct, st, ca, sa = math.cos(theta), math.sin(theta), row.cos_alpha, row.sin_alpha
        T = (ct, -st, ZERO, st * ca, ct * ca, -sa, st * sa, ct * sa, ca, row.a, -d * sa, d * ca)
        if frame.has_base != 0:
            T = compose(frame_base(scene, f), T)
        if frame.parent >= 0:
            T = compose(frame_pose(poses, frame.parent), T)
        set_frame_pose(poses, f, T)
    balls = own_balls(scene)
    for s in range(shape_count(scene)):
        shape, ball = robot_shape(scene, s), balls + 3 * s
        x, y, z = sphere_centre(scene, shape, 0)
        poses[ball], poses[ball + 1], poses[ball + 2] = moved(placed(shape, scene, poses), x, y, z)


@lean_njit
def placed(shape, scene, poses):
    """Pose in the world of a robot's shape, after `place_robot`, or of an obstacle."""
    T, frame = shape_pose(scene, shape), shape_frame(scene, shape)
    if frame >= 0:
        T = compose(frame_pose(poses, frame), T)
    return T


@lean_njit
def relative_pose(a, b, scene, poses):
    """Pose of shape A in shape B's frame, after `place_robot`."""
    return relative(placed(b, scene, poses), placed(a, scene, poses))
