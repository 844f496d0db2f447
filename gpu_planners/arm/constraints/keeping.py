"""Is a motion proven to keep a constraint? In compiled code, on the CPU and CUDA; the mathematics is that of `parts`.

`kept` proves a motion interval by interval: where an interval is too long, half of it is tried. On CUDA each lane has a
part of the motion. What is kept stays so far within its limit as float32 may be off (`record`); only a motion whose end
lies nearer to a limit than that, such as a start on the edge of a box, may come as near as that end.
"""

import math

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item, set_item
from ...parallel.team import any_lane, lane_count
from ..collision.forward import place_frames
from ..collision.motions import interpolate, motion_valid
from ..collision.records import frame_floats, frame_ints
from ..geometry.poses import HALF, ONE, TWO, ZERO, load, norm, seen_from
from ..spaces.interface import NOTHING, Space
from .measures import FAR, TURN, beyond, measure, rule_of, sides_of, three
from .pair_motion import keep_way, pair_bend, pair_bends
from .parts import CONE
from .record import (
    ATTITUDE,
    ATTITUDE_TOLERANCE,
    ENDS_X,
    EULER,
    HEAD,
    JOINT,
    JOINT_UPPER,
    PART,
    PER_PART,
    PLACE,
    PLACE_TOLERANCE,
    POINT,
    POINT_LEVERS,
    TILT,
    TILT_TOLERANCE,
    TURN_TOLERANCES,
    VECTOR,
    VOLUME_INTS,
    VOLUME_POSE,
    read_part,
    read_volume,
)

KEPT = 3  # a hint for `motion_free` beside those of `interface`: the motion is known to keep the constraint
SHORTEST = np.float32(0.999 / 512)  # part of a motion: a shorter interval is given up as not proven
QUARTER = np.float32(np.pi / 2)
OF_CONE = np.float32(CONE)
LEAST_HALF = np.float32(1e-2)  # rad: a bound on how a rotation vector bends is taken for an angle not below it
MORE = np.float32(1 + 1e-4)  # covers the rounding of that bound


@lean_njit
def kept_and_free(qa, qb, hint, space, lane):
    """`motion_free` of the arm, for motions that keep the constraint."""
    if hint != KEPT and not kept(qa, qb, space, lane):
        return False
    rule = rule_of(space)
    arm = Space(space.mode, space.step, rule.scene.floats, rule.scene.ints, space.scratch.arm)
    return motion_valid(qa, qb, NOTHING if hint == KEPT else hint, arm, lane)


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
        good = measured(rule, stage, len(qa))
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
    """For each part: by how much it turns at most on a whole motion (a joint: how far it goes; a PLACE: C of `pair`),
    and K of `parts`."""
    for k in range(rule.parts):
        part, turned, K, inner = read_part(rule.ints, HEAD + PART * k), ZERO, ZERO, ZERO
        if part.kind == JOINT:
            turned = abs(item(qb, part.frame) - item(qa, part.frame))
        elif part.kind == PLACE or part.kind == ATTITUDE:
            keep_way(rule, qa, qb)
            turned, K = pair_bends(rule, part, qa, qb)
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
        set_item(rule.work, first + 1, K if part.kind == POINT or part.kind == PLACE else HALF * turned * turned)


@lean_njit
def go_on(rule):
    """The end of an interval is the beginning of the next one."""
    size = ENDS_X * rule.parts
    for k in range(size):
        set_item(rule.work, k, item(rule.work, size + k))


@lean_njit
def measured(rule, stage, dof):
    """Measure all parts where the frames are, as the end of an interval -> do they keep what they may exceed? stage: 0
    or 1: at an end of the motion, which decides what that is"""
    for k in range(rule.parts):
        limit = 2 * ENDS_X * rule.parts + PER_PART * k + 2
        part, first = read_part(rule.ints, HEAD + PART * k), ENDS_X * (rule.parts + k)
        excess, slack = measure(rule, part, rule.q, first), item(rule.floats, part.floats - 1)
        if part.kind == PLACE:
            set_item(rule.work, first + 3, pair_bend(rule, part, dof))
        if stage < 2:
            if not excess <= slack:
                return False
            set_item(rule.work, limit, max(excess, -slack if stage == 0 else item(rule.work, limit)))
        elif not excess <= item(rule.work, limit):
            return False
    return True


@lean_njit
def proven(rule, width):
    """Do all parts keep what they may exceed on the interval, of so large a part of the motion?"""
    for k in range(rule.parts):
        first = 2 * ENDS_X * rule.parts + PER_PART * k
        turned, K = width * item(rule.work, first), width * width * item(rule.work, first + 1)
        part = read_part(rule.ints, HEAD + PART * k)
        if part.kind == PLACE:
            most = max(item(rule.work, ENDS_X * k + 3), item(rule.work, ENDS_X * (rule.parts + k) + 3))
            K = min(K, HALF * width * width * MORE * (most + HALF * turned) + (MORE - ONE) * K)
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
    if part.kind == PLACE:
        tolerance = item(floats, at + PLACE_TOLERANCE)
        return peak(norm(three(work, a)) - tolerance, norm(three(work, b)) - tolerance, K)
    if part.kind == ATTITUDE:
        at_a, at_b = norm(three(work, a)), norm(three(work, b))
        return attitude_bound(turned, K, at_a, at_b, item(floats, at + ATTITUDE_TOLERANCE))
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
def bent(half):
    """By how much more a rotation vector of an angle of 2 * half, at most, bends than the rotation."""
    sine, cosine = math.sin(half), math.cos(half)
    return MORE * half / sine * (ONE + HALF * (half / sine - cosine) / sine)


@lean_njit
def attitude_bound(turned, K, a, b, tolerance):
    """Of the angle of a rotation. a, b: rad, at the ends"""
    half, linear = max((a + b + turned) / np.float32(4), LEAST_HALF), HALF * (a + b + turned) - tolerance
    if not half < QUARTER * np.float32(0.999):
        return linear
    return min(linear, peak(a, b, K * bent(half)) - tolerance)


@lean_njit
def vector_bound(rule, part, turned, K, a, b):
    """Of the rotation vector, and where it may turn about an axis as it likes, of that axis's tilt."""
    phi_a, phi_b, found, least = three(rule.work, a), three(rule.work, b), -FAR, FAR
    half = max((norm(phi_a) + norm(phi_b) + turned) / np.float32(4), LEAST_HALF)
    smooth = half < QUARTER * np.float32(0.999)
    K *= bent(half)
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
