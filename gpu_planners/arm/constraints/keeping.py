"""Constraints in compiled code, on the CPU and CUDA: is a motion proven to keep one, and what is the configuration near
another one that does? The mathematics is that of `parts` and `constraint`, in float32.

`kept` proves a motion interval by interval: where an interval is too long, half of it is tried. On CUDA each lane has a
part of the motion. float32 misplaces a point by less than a few micrometres, so what is kept stays SLACK within its
limit; only a motion whose end lies nearer to a limit than that, such as a start on the edge of a box, may come as near
as that end.

`project` is a Gauss-Newton method: the sides of the constraint that lack their margin are seen to one after the other,
each by the smallest motion that leaves the earlier ones as they are (Gram and Schmidt). So it needs no matrix of all
sides, and sides that cannot be had together do no harm.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item, set_item
from ...parallel.team import any_lane, lane_count
from ..collision.forward import place_frames
from ..collision.motions import interpolate, motion_valid
from ..collision.records import frame_floats, frame_ints
from ..collision.scratch import ArmScratch, frame_pose
from ..geometry.poses import HALF, ONE, TWO, ZERO, cross, load, minus, moved, norm, plus, seen_from, turned_back
from ..spaces.interface import NOTHING, Packed, Space, register
from .parts import CONE
from .record import (
    ENDS_X,
    EULER,
    HEAD,
    JOINT,
    JOINT_CENTRE,
    JOINT_MARGIN,
    JOINT_UPPER,
    PART,
    PER_PART,
    POINT,
    POINT_LEVERS,
    ROWS,
    TILT,
    TILT_DIRECTION,
    TILT_MARGIN,
    TILT_TOLERANCE,
    TURN_MARGINS,
    TURN_TOLERANCES,
    TURN_WANTED,
    VECTOR,
    VOLUME,
    VOLUME_INTS,
    VOLUME_MARGIN,
    VOLUME_POSE,
    VOLUME_RADIUS,
    read_head,
    read_part,
    read_volume,
)

KEPT = 3  # a hint for `motion_free` beside those of `interface`: the motion is known to keep the constraint
SLACK = np.float32(5e-6)  # m or rad that motions stay within what a constraint allows: more than float32 is off
SHORTEST = np.float32(0.999 / 512)  # part of a motion: a shorter interval is given up as not proven
NEWTON = 12  # steps of a projection at most
DAMPING = np.float32(1e-4)  # of its steps, beside the square of a slope
PARALLEL = np.float32(1e-6)  # square of a slope, below which a side follows from the earlier ones
LONGEST = np.float32(1.0)  # L2 of a step, rad or m
ENOUGH = np.float32(0.5)  # of a side's margin
FAR, TINY = np.float32(1e30), np.float32(1e-12)
PI, TURN, QUARTER = np.float32(np.pi), np.float32(2 * np.pi), np.float32(np.pi / 2)
OF_CONE = np.float32(CONE)
LEAST_HALF = np.float32(1e-2)  # rad: a bound on how a rotation vector bends is taken for an angle not below it
MORE = np.float32(1 + 1e-4)  # covers the rounding of that bound


class KeepingScratch(NamedTuple):
    """What a worker needs to check an arm, and what its motions keep. work: (`record.work_size`,) of each lane"""

    arm: ArmScratch
    work: np.ndarray


class Rule(NamedTuple):
    """A constraint, as one lane sees it. floats, ints: `record`; scene: of the arm; poses, q, work: of the scratch

    work: what the parts measure at the beginning of an interval, and at its end; for each part by how much it turns on
    the whole motion, K of that motion, and what it may exceed; then, for `project`, ROWS directions, a step, a slope
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
def kept_and_free(qa, qb, hint, space, lane):
    """`motion_free` of the arm, for motions that keep the constraint."""
    if hint != KEPT and not kept(qa, qb, space, lane):
        return False
    rule = rule_of(space)
    arm = Space(space.mode, space.step, rule.scene.floats, rule.scene.ints, space.scratch.arm)
    return motion_valid(qa, qb, NOTHING if hint == KEPT else hint, arm, lane)


register(KeepingScratch, "cpu", kept_and_free)


@lean_njit
def kept(qa, qb, space, lane):
    """Is the straight motion qa -> qb, (dof,) float32, proven to keep the constraint? All lanes get the answer."""
    rule, alone = rule_of(space), lane_count() == 1
    set_bounds(rule, qa, qb)
    begin, end = np.float32(lane) / np.float32(lane_count()), np.float32(lane + 1) / np.float32(lane_count())
    stage, at, t, width, good = 0, ZERO, ZERO, ONE, True  # stages: both ends, where the lane begins, its intervals
    while good:
        interpolate(qa, qb, at, rule.q)
        place_frames(rule.q, rule.scene, rule.poses)
        good = measured(rule, stage)
        if not good:
            break
        if stage == 1 and not alone:
            stage, at = 2, begin
            continue
        if stage == 0 or stage == 2:
            go_on(rule)
            t, width = (ZERO, ONE) if stage == 0 else (begin, end - begin)
            stage, at = stage + 1, ONE if stage == 0 else end
            continue
        stage = 3
        if proven(rule, width):
            t += width
            if t >= end:
                break
            go_on(rule)
            width = min(TWO * width, end - t)
        else:
            width *= HALF
            good = width >= SHORTEST
        at = t + width
    return not any_lane(not good)


@lean_njit
def set_bounds(rule, qa, qb):
    """For each part: by how much it turns at most on a whole motion (a joint: how far it goes), and K of `parts`."""
    for k in range(rule.parts):
        part, turned, K, inner = read_part(rule.ints, HEAD + PART * k), ZERO, ZERO, ZERO
        if part.kind == JOINT:
            turned = abs(item(qb, part.frame) - item(qa, part.frame))
        else:
            f = part.frame
            while f >= 0:
                frame = frame_ints(rule.scene, f)
                rate = abs(frame_floats(rule.scene, f).multiplier * (item(qb, frame.joint) - item(qa, frame.joint)))
                turn = ZERO if frame.slides != 0 else rate
                if part.kind == POINT:
                    way = rate * item(rule.floats, part.floats + POINT_LEVERS + f)
                    K += HALF * way * turn + turn * inner
                    inner += way
                turned, f = turned + turn, frame.parent
        first = 2 * ENDS_X * rule.parts + PER_PART * k
        set_item(rule.work, first, turned)
        set_item(rule.work, first + 1, K if part.kind == POINT else HALF * turned * turned)


@lean_njit
def go_on(rule):
    """The end of an interval is the beginning of the next one."""
    size = ENDS_X * rule.parts
    for k in range(size):
        set_item(rule.work, k, item(rule.work, size + k))


@lean_njit
def measured(rule, stage):
    """Measure all parts where the frames are, as the end of an interval -> do they keep what they may exceed? stage: 0
    or 1: at an end of the motion, which decides what that is"""
    for k in range(rule.parts):
        limit = 2 * ENDS_X * rule.parts + PER_PART * k + 2
        excess = measure(rule, read_part(rule.ints, HEAD + PART * k), rule.q, ENDS_X * (rule.parts + k))
        if stage < 2:
            if not excess <= SLACK:
                return False
            set_item(rule.work, limit, max(excess, -SLACK if stage == 0 else item(rule.work, limit)))
        elif not excess <= item(rule.work, limit):
            return False
    return True


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
def proven(rule, width):
    """Do all parts keep what they may exceed on the interval, of so large a part of the motion?"""
    for k in range(rule.parts):
        first = 2 * ENDS_X * rule.parts + PER_PART * k
        turned, K = width * item(rule.work, first), width * width * item(rule.work, first + 1)
        part = read_part(rule.ints, HEAD + PART * k)
        if not bound(rule, part, turned, K, ENDS_X * k, ENDS_X * (rule.parts + k)) <= item(rule.work, first + 2):
            return False
    return True


@lean_njit
def bound(rule, part, turned, K, a, b):
    """What a part is exceeded by at most on an interval. turned, K: of it; a, b: where in `work` its ends are"""
    floats, work, at = rule.floats, rule.work, part.floats
    if part.kind == JOINT:
        gap = TURN - (item(floats, at + JOINT_UPPER) - item(floats, at))
        return FAR if part.number != 0 and turned >= gap else max(item(work, a), item(work, b))
    if part.kind == TILT:
        return tilt_bound(turned, item(work, a + 3), item(work, b + 3), item(floats, at + TILT_TOLERANCE))
    if part.kind == VECTOR:
        return vector_bound(rule, part, turned, K, a, b)
    if part.kind == EULER:
        return euler_bound(rule, part, K, a, b)
    least, p, q = FAR, three(work, a), three(work, b)
    for v in range(part.number):
        volume, worst = read_volume(rule.ints, part.extra + VOLUME_INTS * v), -FAR
        pose = load(floats, volume.floats + VOLUME_POSE, 1)
        in_a, in_b = seen_from(pose, p[0], p[1], p[2]), seen_from(pose, q[0], q[1], q[2])
        for side in range(sides_of(rule, volume)):
            worst = max(worst, peak(beyond(rule, volume, side, in_a), beyond(rule, volume, side, in_b), K))
        least = min(least, worst)
    return least


@lean_njit
def peak(a, b, K):
    """The greatest value of (1 - t) a + t b + K t (1 - t) for t from 0 to 1."""
    if abs(b - a) < K:
        return HALF * (a + b) + K / np.float32(4) + (b - a) * (b - a) / (np.float32(4) * K)
    return max(a, b)


@lean_njit
def tilt_bound(turned, a, b, tolerance):
    """See `parts.tilt_bound`."""
    linear = HALF * (a + b + turned) - tolerance
    if tolerance >= QUARTER or max(a, b) >= QUARTER:
        return linear
    least = math.sin(tolerance)
    return min(linear, peak(math.sin(a) - least, math.sin(b) - least, HALF * turned * turned))


@lean_njit
def vector_bound(rule, part, turned, K, a, b):
    """Of the rotation vector, and where it may turn about an axis as it likes, of that axis's tilt."""
    phi_a, phi_b, found, least = three(rule.work, a), three(rule.work, b), -FAR, FAR
    half = max((norm(phi_a) + norm(phi_b) + turned) / np.float32(4), LEAST_HALF)
    smooth = half < QUARTER * np.float32(0.999)
    sine, cosine = math.sin(half), math.cos(half)
    K *= MORE * half / sine * (ONE + HALF * (half / sine - cosine) / sine)
    for k in range(3):
        if part.number >> k & 1:
            tolerance = item(rule.floats, part.floats + TURN_TOLERANCES + k)
            least = min(least, tolerance)
            found = max(found, peak(phi_a[k] - tolerance, phi_b[k] - tolerance, K))
            found = max(found, peak(-phi_a[k] - tolerance, -phi_b[k] - tolerance, K))
    if not smooth:
        found = FAR
    if part.extra >= 0:
        found = min(found, tilt_bound(turned, item(rule.work, a + 3), item(rule.work, b + 3), OF_CONE * least))
    return found


@lean_njit
def euler_bound(rule, part, K, a, b):
    """See `parts.TurnPart`."""
    found = -FAR
    for k in range(3):
        if part.number >> k & 1:
            tolerance = item(rule.floats, part.floats + TURN_TOLERANCES + k)
            s, c, first, second = math.sin(tolerance), math.cos(tolerance), -FAR, -FAR
            # of Euler angle k these two of what is measured: r sin and r cos of it
            sine, cosine = (1, 2) if k == 0 else (3, 4)
            for sign in range(2):
                way = ONE if sign == 0 else -ONE
                if k == 1:
                    side = peak(way * item(rule.work, a) - s, way * item(rule.work, b) - s, K)
                else:
                    at_a = -way * c * item(rule.work, a + sine) - s * item(rule.work, a + cosine)
                    at_b = -way * c * item(rule.work, b + sine) - s * item(rule.work, b + cosine)
                    side = peak(at_a, at_b, K)
                first, second = (side, second) if sign == 0 else (first, side)
            found = max(found, min(first, second) if tolerance >= QUARTER else max(first, second))
    return found


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
                rows = take(rule, excess + margin, rows, len(q))
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
                rows = take(rule, excess + margin, rows, len(q))
        return rows, enough
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
            rows = take(rule, excess + margin, rows, len(q))
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
                rows = take(rule, excess + margin, rows, len(q))
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
    first = slope_at(rule, dof)
    while f >= 0:
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
def take(rule, lack, rows, dof):
    """Add to the step what a side lacks, along its slope less the directions of the sides before it -> how many
    directions are taken."""
    work, first = rule.work, 2 * ENDS_X * rule.parts + PER_PART * rule.parts
    step, slope = first + ROWS * dof, first + (ROWS + 1) * dof
    wanted = -lack
    for k in range(dof):
        wanted -= item(work, slope + k) * item(work, step + k)
    if not wanted < ZERO or rows == ROWS:
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
def three(array, first):
    return item(array, first), item(array, first + 1), item(array, first + 2)


@lean_njit
def dot(u, v):
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


@lean_njit
def turned_by(T, x, y, z):
    """The direction (x, y, z) of T's frame, outside of it."""
    return T[0] * x + T[1] * y + T[2] * z, T[3] * x + T[4] * y + T[5] * z, T[6] * x + T[7] * y + T[8] * z


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
