"""Forward kinematics in float32: where a configuration puts the robot's frames and shapes."""

import math

from ...device import lean_njit
from ...parallel.memory import copy_items, item
from ...parallel.team import lane_count, sync_lanes
from ..geometry.poses import POSE, ZERO, compose, cross, load, moved, plus, relative, store
from . import records
from .broad_phase import box_block
from .scratch import (
    ball_velocities,
    frame_pose,
    own_balls,
    own_blocks,
    rates,
    set_triple,
    shared_balls,
    shared_blocks,
    shared_frames,
    triple,
    twists,
)


@lean_njit
def place_robot(q, scene, poses):
    """Write what `place_frames` and `place_balls` do."""
    place_frames(q, scene, poses)
    place_balls(scene, poses)


@lean_njit
def place_frames(q, scene, poses):
    """Write all frames' poses in the world (Craig's modified DH)."""
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


@lean_njit
def place_balls(scene, poses):
    """After `place_frames`: write the centres of all shapes' balls and the boxes around the blocks, in the world."""
    for s in range(records.shape_count(scene)):
        set_triple(poses, own_balls(scene), s, ball_centre(s, scene, poses, 0))
    for b in range(records.block_count(scene)):
        box_block(b, scene, poses, own_balls(scene), own_blocks(scene))


@lean_njit
def share_place(scene, scratch, lane, middle):
    """After `place_frames`: write the frames, balls and blocks of lane `middle` to where all lanes see them."""
    speeds, balls = scratch.speeds, shared_balls(scene)
    if lane == middle:
        copy_items(scratch.poses, 0, speeds, shared_frames(scene), POSE * records.frame_count(scene))
    sync_lanes()
    for s in range(lane, records.shape_count(scene), lane_count()):
        set_triple(speeds, balls, s, ball_centre(s, scene, speeds, shared_frames(scene)))
    sync_lanes()
    for b in range(lane, records.block_count(scene), lane_count()):
        box_block(b, scene, speeds, balls, shared_blocks(scene))
    sync_lanes()


@lean_njit
def ball_centre(s, scene, array, frames):
    """Centre of the ball around the robot's shape s, in the world. frames: where their poses begin in the array"""
    shape = records.robot_shape(scene, s)
    x, y, z = records.sphere_centre(scene, shape, 0)
    x, y, z = moved(records.shape_pose(scene, shape), x, y, z)
    frame = records.shape_frame(scene, shape)
    return moved(load(array, frames + POSE * frame, 1), x, y, z) if frame >= 0 else (x, y, z)


@lean_njit
def own_ball(s, kept, scene, poses):
    """`ball_centre` of the lane's own configuration. kept: has `place_balls` written it?"""
    return triple(poses, own_balls(scene), s) if kept else ball_centre(s, scene, poses, 0)


@lean_njit
def move_robot(scene, speeds, poses):
    """After `place_frames`: write all frames' twists in the world; where one lane works alone, which meets most of them
    again and again, also the velocities of the shapes' balls."""
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
    if lane_count() == 1:
        for s in range(records.shape_count(scene)):
            set_triple(poses, ball_velocities(scene), s, moving_ball(s, scene, poses))


@lean_njit
def ball_velocity(s, scene, poses):
    """Velocity of the centre of the ball around the robot's shape s, in the world, after `move_robot`."""
    return triple(poses, ball_velocities(scene), s) if lane_count() == 1 else moving_ball(s, scene, poses)


@lean_njit
def moving_ball(s, scene, poses):
    """`ball_velocity` from the frames' twists."""
    frame = records.shape_frame(scene, records.robot_shape(scene, s))
    if frame < 0:
        return ZERO, ZERO, ZERO
    x, y, z = own_ball(s, lane_count() == 1, scene, poses)
    v, _ = velocity_at(x, y, z, frame, scene, poses)
    return v


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
