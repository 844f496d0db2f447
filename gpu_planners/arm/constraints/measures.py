"""What the parts of a constraint measure, in compiled code, on the CPU and CUDA. The mathematics is that of `parts` and
`volume`, in float32.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item, set_item
from ..collision.scratch import ArmScratch, frame_pose
from ..geometry.poses import HALF, ONE, TWO, ZERO, cross, identity, load, minus, moved, norm, seen_from
from ..spaces.interface import Packed
from .record import (
    ATTITUDE,
    ATTITUDE_OTHER,
    ATTITUDE_TOLERANCE,
    JOINT,
    JOINT_CENTRE,
    JOINT_UPPER,
    PLACE,
    PLACE_OTHER,
    PLACE_TOLERANCE,
    POINT,
    TILT,
    TILT_DIRECTION,
    TILT_TOLERANCE,
    TURN_TOLERANCES,
    TURN_WANTED,
    VECTOR,
    VOLUME,
    VOLUME_INTS,
    VOLUME_POSE,
    VOLUME_RADIUS,
    read_head,
    read_volume,
)

FAR, TINY = np.float32(1e30), np.float32(1e-12)
TURN = np.float32(2 * np.pi)


class KeepingScratch(NamedTuple):
    """What a worker needs to check an arm, and what its motions keep. work: (`record.work_size`,) of each lane"""

    arm: ArmScratch
    work: np.ndarray


class Rule(NamedTuple):
    """A constraint, as one lane sees it. floats, ints: `record`; scene: of the arm; poses, q, work: of the scratch

    work: what the parts measure at the beginning of an interval, and at its end; for each part by how much it turns on
    the whole motion, K of that motion, and what it may exceed; then, for `project`, ROWS directions, a step, a slope;
    then, for parts of two links, the motion
    """

    floats: np.ndarray
    ints: np.ndarray
    parts: int
    scene: Packed
    poses: np.ndarray
    q: np.ndarray
    work: np.ndarray


@lean_njit
def rule_of(space):
    """The constraint at the beginning of a Space."""
    head, arm = read_head(space.ints, 0), space.scratch.arm
    scene = Packed(space.floats[head.floats :], space.ints[head.ints :])
    return Rule(space.floats, space.ints, head.parts, scene, arm.poses, arm.q, space.scratch.work)


@lean_njit
def measure(rule, part, q, first):
    """Write what a part measures to where `first` is in `work` -> by how much it is exceeded, m or rad."""
    floats, work, at = rule.floats, rule.work, part.floats
    if part.kind == JOINT:
        value, centre = item(q, part.frame), item(floats, at + JOINT_CENTRE)
        if part.number != 0:
            value -= TURN * np.float32(math.floor((value - centre) / TURN + HALF))
        excess = max(value - item(floats, at + JOINT_UPPER), item(floats, at) - value)
        set_item(work, first, excess)
        set_item(work, first + 1, value)
        return excess
    if part.kind == PLACE or part.kind == ATTITUDE:
        return measure_pair(rule, part, first)
    T = frame_pose(rule.poses, part.frame)
    x, y, z = item(floats, at), item(floats, at + 1), item(floats, at + 2)
    if part.kind == POINT:
        p = moved(T, x, y, z)
        for k in range(3):
            set_item(work, first + k, p[k])
        return outside(rule, part, p)
    if part.kind == TILT:
        axis, direction = turned_by(T, x, y, z), three(floats, at + TILT_DIRECTION)
        tilt = math.atan2(norm(cross(axis, direction)), dot(axis, direction))
        for k in range(3):
            set_item(work, first + k, axis[k])
        set_item(work, first + 3, tilt)
        return tilt - item(floats, at + TILT_TOLERANCE)
    R = rotation_of(rule, part, T)
    if part.kind == VECTOR:
        phi = rotation_vector(R)
        for k in range(3):
            set_item(work, first + k, phi[k])
        if part.extra >= 0:
            set_item(work, first + 3, tilt_about(R, part.extra))
    else:
        for k in range(5):
            set_item(work, first + k, (R[2], R[5], R[8], R[1], R[0])[k])
    excess, angles = -FAR, angles_at(rule, part, first)
    for k in range(3):
        if part.number >> k & 1:
            excess = max(excess, abs(angles[k]) - item(floats, at + TURN_TOLERANCES + k))
    return excess


@lean_njit
def measure_pair(rule, part, first):
    """`measure` of a part of two links."""
    off, tolerance = (ZERO, ZERO, ZERO), item(rule.floats, part.floats + PLACE_TOLERANCE)
    if part.kind == PLACE:
        wanted, there = pair_points(rule, part)
        off = minus(there, wanted)
    else:
        P, Q = pair_rotations(rule, part)
        back = (P[0], P[3], P[6], P[1], P[4], P[7], P[2], P[5], P[8])
        off, tolerance = rotation_vector(product(back, Q)), item(rule.floats, part.floats + ATTITUDE_TOLERANCE)
    for k in range(3):
        set_item(rule.work, first + k, off[k])
    return norm(off) - tolerance


@lean_njit
def pair_points(rule, part):
    """Where the first link wants the point of the other one, and where it is."""
    x, y, z = three(rule.floats, part.floats)
    wanted = moved(pose_of(rule, part.frame), x, y, z)
    x, y, z = three(rule.floats, part.floats + PLACE_OTHER)
    return wanted, moved(pose_of(rule, part.number), x, y, z)


@lean_njit
def pair_rotations(rule, part):
    """As of `pair_points`, by rows."""
    P, Q = load(rule.floats, part.floats, 1), load(rule.floats, part.floats + ATTITUDE_OTHER, 1)
    return product(pose_of(rule, part.frame), P), product(pose_of(rule, part.number), Q)


@lean_njit
def pose_of(rule, f):
    """Of a frame, or of the root, f < 0."""
    return frame_pose(rule.poses, f) if f >= 0 else identity()


@lean_njit
def outside(rule, part, p):
    """Metres by which a point is outside of the volume that it is least outside of."""
    least = FAR
    for v in range(part.number):
        least = min(least, outside_of(rule, read_volume(rule.ints, part.extra + VOLUME_INTS * v), p))
    return least


@lean_njit
def outside_of(rule, volume, p):
    worst, p = -FAR, seen_from(load(rule.floats, volume.floats + VOLUME_POSE, 1), p[0], p[1], p[2])
    for side in range(sides_of(rule, volume)):
        worst = max(worst, beyond(rule, volume, side, p))
    return worst


@lean_njit
def sides_of(rule, volume):
    """How many surfaces bound a volume."""
    return volume.planes + volume.rounds + (1 if item(rule.floats, volume.floats + VOLUME_RADIUS) > ZERO else 0)


@lean_njit
def beyond(rule, volume, side, p):
    """Metres by which a point of the volume's frame is beyond one of its sides."""
    floats, first = rule.floats, volume.floats + VOLUME
    if side < volume.planes:
        return dot(three(floats, first + 4 * side), p) + item(floats, first + 4 * side + 3)
    if side < volume.planes + volume.rounds:
        a, b, d = three(floats, first + 4 * volume.planes + 3 * (side - volume.planes))
        return a * math.sqrt(p[0] * p[0] + p[1] * p[1]) + b * p[2] + d
    return norm(p) - item(floats, volume.floats + VOLUME_RADIUS)


@lean_njit
def rotation_of(rule, part, T):
    """Rotation, by rows, of what is constrained, in the wanted rotation's frame. T: pose of the frame of its link"""
    P, Q = load(rule.floats, part.floats + TURN_WANTED, 1), load(rule.floats, part.floats, 1)
    return product(product(P, T), Q)


@lean_njit
def product(P, Q):
    """Of two rotations, by rows."""
    A, B, C = (turned_by(P, Q[0], Q[3], Q[6]), turned_by(P, Q[1], Q[4], Q[7]), turned_by(P, Q[2], Q[5], Q[8]))
    return A[0], B[0], C[0], A[1], B[1], C[1], A[2], B[2], C[2]


@lean_njit
def tilt_about(R, k):
    """Between axis k and where R, by rows, turns it."""
    x, y, z = (R[0], R[3], R[6]) if k == 0 else (R[1], R[4], R[7]) if k == 1 else (R[2], R[5], R[8])
    along, a, b = (x, y, z) if k == 0 else (y, x, z) if k == 1 else (z, x, y)
    return math.atan2(math.sqrt(a * a + b * b), along)


@lean_njit
def rotation_vector(R):
    """-> (3,) rad, by way of the quaternion, whose largest part comes first (Shepperd 1978)."""
    xx, yy, zz = R[0], R[4], R[8]
    trace = xx + yy + zz
    if trace >= max(xx, max(yy, zz)):
        w, x, y, z = ONE + trace, R[7] - R[5], R[2] - R[6], R[3] - R[1]
    elif xx >= max(yy, zz):
        w, x, y, z = R[7] - R[5], ONE + xx - yy - zz, R[1] + R[3], R[2] + R[6]
    elif yy >= zz:
        w, x, y, z = R[2] - R[6], R[1] + R[3], ONE + yy - xx - zz, R[5] + R[7]
    else:
        w, x, y, z = R[3] - R[1], R[2] + R[6], R[5] + R[7], ONE + zz - xx - yy
    sign = ONE if w >= ZERO else -ONE
    size = math.sqrt(x * x + y * y + z * z)
    share = sign * TWO * math.atan2(size, sign * w) / max(size, TINY)
    return share * x, share * y, share * z


@lean_njit
def angles_at(rule, part, first):
    """The three angles of a VECTOR or EULER, from what it measured."""
    a, b, c = three(rule.work, first)
    if part.kind == VECTOR:
        return a, b, c
    x, y = item(rule.work, first + 3), item(rule.work, first + 4)
    return math.atan2(-b, c), math.atan2(a, math.sqrt(x * x + y * y)), math.atan2(-x, y)


@lean_njit
def three(array, first):
    return item(array, first), item(array, first + 1), item(array, first + 2)


@lean_njit
def dot(u, v):
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


@lean_njit
def turned_by(T, x, y, z):
    """The direction (x, y, z) of T's frame, outside of it."""
    return T[0] * x + T[1] * y + T[2] * z, T[3] * x + T[4] * y + T[5] * z, T[6] * x + T[7] * y + T[8] * z
