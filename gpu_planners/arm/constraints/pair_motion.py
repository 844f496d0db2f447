"""How the point of one link bends in the frame of another on a straight motion, in compiled code: see `pair`."""

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item, set_item
from ..collision.records import frame_floats, frame_ints
from ..collision.scratch import frame_pose
from ..geometry.poses import HALF, TWO, ZERO, cross, minus, norm, plus
from .measures import pair_points
from .record import ENDS_X, PER_PART, PLACE, PLACE_LEVERS, ROWS

THREE = np.float32(3.0)


@lean_njit
def way_at(rule, dof):
    """Where in `work` the motion is."""
    return 2 * ENDS_X * rule.parts + PER_PART * rule.parts + (ROWS + 2) * dof


@lean_njit
def keep_way(rule, qa, qb):
    first = way_at(rule, len(qa))
    for k in range(len(qa)):
        set_item(rule.work, first + k, item(qb, k) - item(qa, k))


@lean_njit
def pair_bends(rule, part, qa, qb):
    """-> of a PLACE the bound of its third derivative, and half of that of its second one; of an ATTITUDE by how much
    it turns, and nothing."""
    third, second, turned = ZERO, ZERO, ZERO
    for side in range(2):
        f, ways, bends = part.frame if side == 0 else part.number, ZERO, ZERO
        while f != part.extra:
            frame = frame_ints(rule.scene, f)
            rate = abs(frame_floats(rule.scene, f).multiplier * (item(qb, frame.joint) - item(qa, frame.joint)))
            turn = ZERO if frame.slides != 0 else rate
            if part.kind == PLACE:  # `ways` and `bends` are those of the frames farther in, which this one turns
                way = rate * item(rule.floats, part.floats + PLACE_LEVERS + f)
                third += THREE * turn * bends + THREE * turn * turn * ways + way * turn * turn
                bends += TWO * turn * ways + way * turn
                ways += way
            turned, f = turned + turn, frame.parent
        second += bends
    if part.kind == PLACE:
        return third, HALF * second
    return turned, ZERO


@lean_njit
def pair_bend(rule, part, dof):
    """Length of the second derivative of a PLACE along the motion, where the frames are."""
    wanted, there = pair_points(rule, part)
    of_wanted = acceleration(rule, part.frame, part.extra, wanted, dof)
    return norm(minus(acceleration(rule, part.number, part.extra, there, dof), of_wanted))


@lean_njit
def acceleration(rule, f, root, p, dof):
    """Second derivative of a point p that frame f carries, by the frames between it and frame `root`."""
    way, inner, total = way_at(rule, dof), (ZERO, ZERO, ZERO), (ZERO, ZERO, ZERO)
    while f != root:
        frame, T = frame_ints(rule.scene, f), frame_pose(rule.poses, f)
        rate = frame_floats(rule.scene, f).multiplier * item(rule.work, way + frame.joint)
        axis = (rate * T[2], rate * T[5], rate * T[8])
        if frame.slides != 0:
            inner = plus(inner, axis)
        else:
            own = cross(axis, minus(p, (T[9], T[10], T[11])))
            both = (own[0] + TWO * inner[0], own[1] + TWO * inner[1], own[2] + TWO * inner[2])
            total, inner = plus(total, cross(axis, both)), plus(inner, own)
        f = frame.parent
    return total
