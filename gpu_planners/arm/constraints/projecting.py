"""The configuration near another one that keeps a constraint, in compiled code, on the CPU and CUDA.

`project` is a Gauss-Newton method: the sides of the constraint that lack their margin are seen to one after the other,
each by the smallest motion that leaves the earlier ones as they are (Gram and Schmidt). So it needs no matrix of all
sides, and sides that cannot be had together do no harm.
"""

import math

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item, set_item
from ..collision.forward import place_frames
from ..collision.records import frame_floats, frame_ints
from ..collision.scratch import frame_pose
from ..geometry.poses import HALF, ONE, ZERO, cross, load, minus, norm, plus, seen_from, turned_back
from .measures import (
    FAR,
    TINY,
    angles_at,
    beyond,
    dot,
    measure,
    outside_of,
    pair_points,
    pair_rotations,
    rule_of,
    sides_of,
    three,
    turned_by,
)
from .pair import AIM
from .record import (
    ATTITUDE,
    ATTITUDE_TOLERANCE,
    ENDS_X,
    EULER,
    HEAD,
    JOINT,
    JOINT_MARGIN,
    JOINT_UPPER,
    PART,
    PER_PART,
    PLACE,
    PLACE_TOLERANCE,
    POINT,
    ROWS,
    TILT,
    TILT_DIRECTION,
    TILT_MARGIN,
    TILT_TOLERANCE,
    TURN_MARGINS,
    TURN_TOLERANCES,
    TURN_WANTED,
    VOLUME,
    VOLUME_INTS,
    VOLUME_MARGIN,
    VOLUME_POSE,
    read_part,
    read_volume,
)

NEWTON = 12  # steps of a projection at most
DAMPING = np.float32(1e-4)  # of its steps, beside the square of a slope
PARALLEL = np.float32(1e-6)  # square of a slope, below which a side follows from the earlier ones
LONGEST = np.float32(1.0)  # L2 of a step, rad or m
ENOUGH = np.float32(0.5)  # of a side's margin
AIMED = np.float32(AIM) * ENOUGH  # of the tolerance of two links' pose, for each of its coordinates


@lean_njit
def project(q, near, lower, upper, space):
    """Move q (dof,) to a configuration near it that keeps the constraint by a margin -> was one found?

    lower, upper: (dof,) limits, beyond which a joint stays as far as it is in `near` (dof,)
    """
    rule, dof = rule_of(space), len(q)
    step = 2 * ENDS_X * rule.parts + PER_PART * rule.parts + ROWS * dof
    for turn in range(NEWTON + 1):
        place_frames(q, rule.scene, rule.poses)
        for k in range(dof):
            set_item(rule.work, step + k, ZERO)
        rows, enough = 0, True
        for k in range(rule.parts):
            rows, enough = pull(rule, read_part(rule.ints, HEAD + PART * k), q, rows, enough)
        if enough or turn == NEWTON:
            return enough
        squared = ZERO
        for k in range(dof):
            squared += item(rule.work, step + k) * item(rule.work, step + k)
        share = min(ONE, LONGEST / max(math.sqrt(squared), TINY))
        for k in range(dof):
            value = q[k] + share * item(rule.work, step + k)
            q[k] = min(max(value, min(lower[k], near[k])), max(upper[k], near[k]))
    return False


@lean_njit
def pull(rule, part, q, rows, enough):
    """Add to the step of a projection what a part needs -> rows: so many directions are taken; enough: have this part
    and those before it enough of their margins?"""
    floats, at, first = rule.floats, part.floats, 0
    measure(rule, part, q, first)
    if part.kind == JOINT:
        value, margin = item(rule.work, first + 1), item(floats, at + JOINT_MARGIN)
        for side in range(2):
            excess = value - item(floats, at + JOINT_UPPER) if side == 0 else item(floats, at) - value
            enough = enough and excess <= -ENOUGH * margin
            if excess + margin > ZERO:
                clear_slope(rule, len(q))
                set_item(rule.work, slope_at(rule, len(q)) + part.frame, ONE if side == 0 else -ONE)
                rows = take(rule, excess + margin, rows, len(q), False)
        return rows, enough
    if part.kind == POINT:
        p, nearest, least = three(rule.work, first), 0, FAR
        for v in range(part.number):
            worst = outside_of(rule, read_volume(rule.ints, part.extra + VOLUME_INTS * v), p)
            nearest, least = (v, worst) if worst < least else (nearest, least)
        volume = read_volume(rule.ints, part.extra + VOLUME_INTS * nearest)
        inside = seen_from(load(floats, volume.floats + VOLUME_POSE, 1), p[0], p[1], p[2])
        margin = item(floats, volume.floats + VOLUME_MARGIN)
        for side in range(sides_of(rule, volume)):
            excess = beyond(rule, volume, side, inside)
            enough = enough and excess <= -ENOUGH * margin
            if excess + margin > ZERO:
                set_slope(rule, part.frame, True, p, slope_of(rule, volume, side, inside), len(q))
                rows = take(rule, excess + margin, rows, len(q), False)
        return rows, enough
    if part.kind == PLACE or part.kind == ATTITUDE:
        return pull_pair(rule, part, rows, enough, len(q))
    none = (ZERO, ZERO, ZERO)
    if part.kind == TILT:
        axis, direction = three(rule.work, first), three(floats, at + TILT_DIRECTION)
        excess = item(rule.work, first + 3) - item(floats, at + TILT_TOLERANCE)
        margin = item(floats, at + TILT_MARGIN)
        if excess + margin > ZERO:
            across = cross(direction, axis)
            size = max(norm(across), np.float32(1e-6))
            turn = (across[0] / size, across[1] / size, across[2] / size)
            set_slope(rule, part.frame, False, none, turn, len(q))
            rows = take(rule, excess + margin, rows, len(q), False)
        return rows, enough and excess <= -ENOUGH * margin
    angles = angles_at(rule, part, first)
    for k in range(3):
        if part.number >> k & 1:
            excess = abs(angles[k]) - item(floats, at + TURN_TOLERANCES + k)
            margin = item(floats, at + TURN_MARGINS + k)
            enough = enough and excess <= -ENOUGH * margin
            if excess + margin > ZERO:
                turn = euler_rate(angles, k) if part.kind == EULER else vector_rate(angles, k)
                sign = ONE if angles[k] > ZERO else -ONE
                seen = turned_back(load(floats, at + TURN_WANTED, 1), sign * turn[0], sign * turn[1], sign * turn[2])
                set_slope(rule, part.frame, False, none, seen, len(q))
                rows = take(rule, excess + margin, rows, len(q), False)
    return rows, enough


@lean_njit
def pull_pair(rule, part, rows, enough, dof):
    """`pull` of a part of two links, whose coordinates all go to zero."""
    off, points, moves = three(rule.work, 0), ((ZERO, ZERO, ZERO), (ZERO, ZERO, ZERO)), part.kind == PLACE
    frame = (ONE, ZERO, ZERO, ZERO, ONE, ZERO, ZERO, ZERO, ONE)
    tolerance = item(rule.floats, part.floats + (PLACE_TOLERANCE if moves else ATTITUDE_TOLERANCE))
    if moves:
        points = pair_points(rule, part)
    else:
        frame = pair_rotations(rule, part)[0]
    for k in range(3):
        enough = enough and abs(off[k]) <= AIMED * tolerance
        n = unit_of(k) if moves else vector_rate(off, k)
        n, sign = turned_by(frame, n[0], n[1], n[2]), ONE if off[k] > ZERO else -ONE
        clear_slope(rule, dof)
        add_slope(rule, part.number, part.extra, moves, points[1], (sign * n[0], sign * n[1], sign * n[2]), dof)
        add_slope(rule, part.frame, part.extra, moves, points[0], (-sign * n[0], -sign * n[1], -sign * n[2]), dof)
        rows = take(rule, abs(off[k]), rows, dof, True)
    return rows, enough


@lean_njit
def slope_at(rule, dof):
    """Where in `work` the slope of a side is, behind the step."""
    return 2 * ENDS_X * rule.parts + PER_PART * rule.parts + (ROWS + 1) * dof


@lean_njit
def clear_slope(rule, dof):
    first = slope_at(rule, dof)
    for k in range(dof):
        set_item(rule.work, first + k, ZERO)


@lean_njit
def set_slope(rule, f, moves, p, n, dof):
    """The slope of a side by the joints. f: frame of the link; moves: n is the gradient by the point p, else by how the
    link turns; all in the root frame"""
    clear_slope(rule, dof)
    add_slope(rule, f, -1, moves, p, n, dof)


@lean_njit
def add_slope(rule, f, root, moves, p, n, dof):
    """Add to the slope what the frames give that are between frame f and frame `root`."""
    first = slope_at(rule, dof)
    while f != root:
        frame, T = frame_ints(rule.scene, f), frame_pose(rule.poses, f)
        axis, along = (T[2], T[5], T[8]), ZERO
        if frame.slides != 0:
            along = dot(n, axis) if moves else ZERO
        else:
            along = dot(n, cross(axis, minus(p, (T[9], T[10], T[11])))) if moves else dot(n, axis)
        k = first + frame.joint
        set_item(rule.work, k, item(rule.work, k) + frame_floats(rule.scene, f).multiplier * along)
        f = frame.parent


@lean_njit
def slope_of(rule, volume, side, p):
    """Gradient of `beyond`, in the root frame."""
    floats, first = rule.floats, volume.floats + VOLUME
    size = max(norm(p), TINY)
    n = (p[0] / size, p[1] / size, p[2] / size)
    if side < volume.planes:
        n = three(floats, first + 4 * side)
    elif side < volume.planes + volume.rounds:
        a, b, _ = three(floats, first + 4 * volume.planes + 3 * (side - volume.planes))
        across = max(math.sqrt(p[0] * p[0] + p[1] * p[1]), TINY)
        n = (a * p[0] / across, a * p[1] / across, b)
    return turned_by(load(floats, volume.floats + VOLUME_POSE, 1), n[0], n[1], n[2])


@lean_njit
def take(rule, lack, rows, dof, exact):
    """Add to the step what a side lacks, along its slope less the directions of the sides before it -> how many
    directions are taken. exact: it should lack neither less nor more, so sides after it must leave it as it is"""
    work, first = rule.work, 2 * ENDS_X * rule.parts + PER_PART * rule.parts
    step, slope = first + ROWS * dof, first + (ROWS + 1) * dof
    wanted = -lack
    for k in range(dof):
        wanted -= item(work, slope + k) * item(work, step + k)
    if rows == ROWS or not (exact or wanted < ZERO):
        return rows
    for row in range(rows):
        along = ZERO
        for k in range(dof):
            along += item(work, slope + k) * item(work, first + row * dof + k)
        for k in range(dof):
            set_item(work, slope + k, item(work, slope + k) - along * item(work, first + row * dof + k))
    squared = ZERO
    for k in range(dof):
        squared += item(work, slope + k) * item(work, slope + k)
    if squared < PARALLEL:
        return rows
    share, size = wanted / (squared + DAMPING), math.sqrt(squared)
    for k in range(dof):
        set_item(work, step + k, item(work, step + k) + share * item(work, slope + k))
        set_item(work, first + rows * dof + k, item(work, slope + k) / size)
    return rows + 1


@lean_njit
def unit_of(k):
    return ONE if k == 0 else ZERO, ONE if k == 1 else ZERO, ONE if k == 2 else ZERO


@lean_njit
def vector_rate(phi, k):
    """How rotation vector's number k changes by the angular velocity: a row of J of `parts`."""
    half = HALF * norm(phi)
    third = ONE / np.float32(12)
    if half > np.float32(1e-2):
        third = (ONE - half * math.cos(half) / max(math.sin(half), TINY)) / (np.float32(4) * half * half)
    axis, own = unit_of(k), phi[0] if k == 0 else phi[1] if k == 1 else phi[2]
    c, skew, size = third * own, cross(axis, phi), ONE - third * dot(phi, phi)
    turned = (size * axis[0] - HALF * skew[0], size * axis[1] - HALF * skew[1], size * axis[2] - HALF * skew[2])
    return plus(turned, (c * phi[0], c * phi[1], c * phi[2]))


@lean_njit
def euler_rate(angles, k):
    """How Euler angle k changes by the angular velocity."""
    sx, cx = math.sin(angles[0]), math.cos(angles[0])
    sy, cy = math.sin(angles[1]), max(math.cos(angles[1]), np.float32(1e-3))
    if k == 0:
        return ONE, sx * sy / cy, -cx * sy / cy
    if k == 1:
        return ZERO, cx, sx
    return ZERO, -sx / cy, cx / cy
