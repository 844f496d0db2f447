"""Forward kinematics in float32: where a configuration puts the robot's frames and shapes."""

import math

from ...device import lean_njit
from ...parallel.memory import item
from ..geometry.poses import POSE, ZERO, compose, cross, moved, plus, relative, store
from . import records
from .broad_phase import box_blocks
from .scratch import ball_velocities, frame_pose, own_balls, rates, set_triple, triple, twists


@lean_njit
def place_robot(q, scene, poses):
    """Write all frames' poses (Craig's modified DH), the centres of all shapes' coarse spheres and the boxes around the
    blocks, in the world."""
    for f in range(records.frame_count(scene)):
        frame, row = records.frame_ints(scene, f), records.frame_floats(scene, f)
        value = row.multiplier * item(q, frame.joint) + row.offset
        theta, d = row.theta, row.d
        if frame.slides != 0:
            d += value
        else:
            theta += value
        ct, st, ca, sa = math.cos(theta), math.sin(theta), row.cos_alpha, row.sin_alpha
        T = (ct, -st, ZERO, st * ca, ct * ca, -sa, st * sa, ct * sa, ca, row.a, -d * sa, d * ca)
        if frame.has_base != 0:
            T = compose(records.frame_base(scene, f), T)
        if frame.parent >= 0:
            T = compose(frame_pose(poses, frame.parent), T)
        store(poses, POSE * f, 1, T)
    for s in range(records.shape_count(scene)):
        shape = records.robot_shape(scene, s)
        x, y, z = records.sphere_centre(scene, shape, 0)
        x, y, z = moved(records.shape_pose(scene, shape), x, y, z)
        if records.shape_frame(scene, shape) >= 0:
            x, y, z = moved(frame_pose(poses, records.shape_frame(scene, shape)), x, y, z)
        set_triple(poses, own_balls(scene), s, (x, y, z))
    box_blocks(scene, poses)


@lean_njit
def move_robot(scene, speeds, poses):
    """After `place_robot`: write all frames' twists, and the velocities of the shapes' balls, in the world."""
    first = twists(scene)
    for f in range(records.frame_count(scene)):
        frame, T, rate = records.frame_ints(scene, f), frame_pose(poses, f), item(speeds, rates(scene) + f)
        v, w = (ZERO, ZERO, ZERO), (ZERO, ZERO, ZERO)
        if frame.parent >= 0:
            v, w = velocity_at(T[9], T[10], T[11], frame.parent, scene, poses)
        along = (rate * T[2], rate * T[5], rate * T[8])
        if frame.slides != 0:
            v = plus(v, along)
        else:
            w = plus(w, along)
        set_triple(poses, first, 2 * f, v)
        set_triple(poses, first, 2 * f + 1, w)
    for s in range(records.shape_count(scene)):
        f, v = records.shape_frame(scene, records.robot_shape(scene, s)), (ZERO, ZERO, ZERO)
        if f >= 0:
            x, y, z = triple(poses, own_balls(scene), s)
            v, _ = velocity_at(x, y, z, f, scene, poses)
        set_triple(poses, ball_velocities(scene), s, v)


@lean_njit
def velocity_at(x, y, z, f, scene, poses):
    """-> velocity of a point in the world that frame f carries, and f's angular velocity."""
    first, T = twists(scene), frame_pose(poses, f)
    w = triple(poses, first, 2 * f + 1)
    turned = cross(w, (x - T[9], y - T[10], z - T[11]))
    return plus(triple(poses, first, 2 * f), turned), w


@lean_njit
def angular_velocity(f, scene, poses):
    """Angular velocity of frame f; zero for the root, f < 0."""
    return triple(poses, twists(scene), 2 * f + 1) if f >= 0 else (ZERO, ZERO, ZERO)


@lean_njit
def placed(shape, scene, poses):
    """Pose in the world of a robot's shape, after `place_robot`, or of an obstacle."""
    T, frame = records.shape_pose(scene, shape), records.shape_frame(scene, shape)
    if frame >= 0:
        T = compose(frame_pose(poses, frame), T)
    return T


@lean_njit
def relative_pose(a, b, scene, poses):
    """Pose of shape A in shape B's frame, after `place_robot`."""
    return relative(placed(b, scene, poses), placed(a, scene, poses))
