"""The compiled part of `shortcut`, for the workers of a team: straight motions replace stretches of a path.

A pass lays POINTS points along the path, its corners among them, and finds a short way through them in which each leg
is a straight motion that is free, or a stretch of the path as it is. It weighs all combinations of cuts between these
points, where the usual rounds of random cuts (Geraerts and Overmars, IJRR 2007, section 4.1) apply them one by one. A
team with many workers checks all legs at once, and its way is the shortest. Others check legs when the shortest way
needs them, a lone lane the boldest first and only until one is blocked. Beside a leg that is blocked others likely are:
those between neighbours of its points count as longer until they are checked, so that ways that avoid them are tried
first, and the shortest one may be missed.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.layout import floats, ints, layout
from ...parallel.sampling import uniform01
from ...parallel.team import lane_count, late, least_lane, meet, peek, sum_lanes, sync_lanes
from ..spaces.interface import REFUSED, motion_free
from .node_store import FAR, ONE, ZERO

POINTS, HALF = 32, 16
EAGER = 128  # a team with so many workers checks all legs at once
UNKNOWN, FREE, BLOCKED = range(3)  # legs
DOUBT = np.float32(0.5)  # of what a leg would save, while another one beside it is blocked
LEAST_SAVING = np.float32(1e-3)  # of the path's length: two passes that save less are the last
TINY = np.float32(1e-12)
PER_LEG = np.float32(1e-4)  # of the path's length, added to every leg: of equal ways the one with fewer corners
CUTS = np.uint64(0x5851F42D4C957F2D)  # sets the points of a pass apart from the samples of the same seed


class Task(NamedTuple):
    """What `shorten` is asked for.

    length: corners of the path; room: corners that there is room for, at least length + POINTS; passes: at most;
    split: how many workers share a leg; deadline: of clock_ns(); seed: uint64; weights: (dof,) float32 of the cost
    """

    length: int
    room: int
    passes: int
    split: int
    deadline: int
    seed: np.uint64
    weights: np.ndarray


class Cuts(NamedTuple):
    """The scratch of `shorten`, as one worker sees it. A leg is first point * POINTS + last point."""

    paths: np.ndarray = floats("2 * room * dof")  # the path and its successor, which change places after each pass
    along: np.ndarray = floats("room")  # length of the path up to each corner
    points: np.ndarray = floats("POINTS * dof")  # in the order along the path
    drawn: np.ndarray = floats("POINTS")  # where each point lies on the path, as drawn
    at: np.ndarray = floats("POINTS")  # the same, in order
    cost: np.ndarray = floats("POINTS * POINTS")  # of each leg
    length: np.ndarray = ints("1")  # corners of the path
    halt: np.ndarray = ints("1")  # 1 when the time is up
    legs: np.ndarray = ints("POINTS * POINTS", gap="6")  # UNKNOWN, FREE, BLOCKED
    segment: np.ndarray = ints("POINTS")  # the corner before each point
    following: np.ndarray = ints("POINTS")  # the next point of the shortest way
    best: np.ndarray = floats("POINTS", own=True)  # cost of the shortest way to each point
    before: np.ndarray = ints("POINTS", own=True)  # the point before it on that way
    way: np.ndarray = ints("POINTS", own=True)  # legs of the shortest way, the last one first


cuts_sizes, open_cuts, _ = layout(Cuts, "dof room")


@lean_njit
def shorten(task, cuts, desk, worker):
    """Shorten the path at the beginning of cuts.paths -> where in cuts.paths the result begins, its number of corners.

    The pass that the deadline cuts changes nothing.
    """
    length, now, other, idle = task.length, 0, task.room * len(task.weights), 0
    for number in range(task.passes):
        if length < 3 or length + POINTS > task.room:
            break
        if worker.number == 0:
            lay_points(task, cuts, cuts.paths[now:], length, number, worker.lane)
        meet(worker)
        total = cuts.along[length - 1]
        if not find_way(task, cuts, total, desk, worker):
            break
        shorter = cuts.best[POINTS - 1]
        if worker.number == 0:
            rebuild(cuts, cuts.paths[now:], cuts.paths[other:], len(task.weights), worker.lane)
        meet(worker)
        length = int(cuts.length[0])
        now, other = other, now
        idle = idle + 1 if shorter > (ONE - LEAST_SAVING) * total else 0
        if idle == 2:
            break
    return now, length


@lean_njit
def find_way(task, cuts, total, desk, worker):
    """cuts.way becomes the shortest way whose legs are all free -> False when the time is up.

    The check of a motion is called in one place.
    """
    eager, alone = worker.count >= EAGER, lane_count() * worker.count * task.split == 1
    legs, unknown = POINTS * POINTS, 1
    if not eager:
        legs, unknown = shortest_way(cuts, total, np.int64(1), worker.lane)
        meet(worker)
    while unknown > 0:
        done, changed = legs, 1
        if not eager:
            changed = max(int(cuts.way[legs - 1]) % POINTS - 1, 1)
        if alone:
            bold_first(cuts, legs)
        for item in range(worker.number, legs * task.split, worker.count):
            if late(task.deadline):
                if worker.lane == 0:
                    cuts.halt[0] = 1
                break
            leg, part = item % legs, item // legs
            if not eager:
                leg = int(cuts.way[leg])
            if part_of_leg(cuts, leg, part, task.split, desk, worker.lane):
                is_free = motion_free(desk.a, desk.b, REFUSED, desk.space, worker.lane)
                if worker.lane == 0 and not is_free:
                    cuts.legs[leg] = BLOCKED
                sync_lanes()
                if alone and not is_free:
                    done = item
                    break
        meet(worker)
        if cuts.halt[0] != 0:
            return False
        if not eager:
            if worker.number == 0:
                conclude(task, cuts, legs, done, worker.lane)
            meet(worker)
        legs, unknown = shortest_way(cuts, total, changed, worker.lane)
        if eager:
            unknown = 0  # legs that are not blocked are free
        else:
            meet(worker)
    return True


@lean_njit
def lay_points(task, cuts, path, length, number, lane):
    """The points of pass `number` along the path, and what is known of the legs between them."""
    dof, lanes = len(task.weights), lane_count()
    if lane == 0:
        cuts.halt[0] = 0
    for i in range(lane, length - 1, lanes):
        cuts.along[i + 1] = distance(path[i * dof :], path[(i + 1) * dof :], task.weights)
    sync_lanes()
    if lane == 0:
        cuts.along[0] = ZERO
        for i in range(1, length):
            cuts.along[i] += cuts.along[i - 1]
    sync_lanes()
    draw_points(task, cuts, length, number, lane)
    sync_lanes()
    sort_points(cuts, path, length, dof, lane)
    sync_lanes()
    total = cuts.along[length - 1]
    for leg in range(lane, POINTS * POINTS, lanes):
        i, j = leg // POINTS, leg % POINTS
        if i < j:
            along = cuts.at[j] - cuts.at[i]
            straight = distance(cuts.points[i * dof :], cuts.points[j * dof :], task.weights)
            if follows_the_path(cuts, i, j):
                cuts.legs[leg], cuts.cost[leg] = FREE, along
            else:
                cuts.legs[leg] = UNKNOWN if along - straight > PER_LEG * total else BLOCKED
                cuts.cost[leg] = straight


@lean_njit
def draw_points(task, cuts, length, number, lane):
    """Where along the path the points lie: at up to HALF corners, and the others at random."""
    total, kept = cuts.along[length - 1], min(length, HALF)
    for c in range(lane, POINTS, lane_count()):
        if c < kept:
            cuts.drawn[c] = cuts.along[c * (length - 1) // (kept - 1)]
        else:
            share = np.float32(c - kept) + uniform01(task.seed ^ CUTS, number, c)
            cuts.drawn[c] = total * share / np.float32(POINTS - kept)


@lean_njit
def sort_points(cuts, path, length, dof, lane):
    """The points in the order along the path, each with its place and the corner before it."""
    for c in range(lane, POINTS, lane_count()):
        value, rank = cuts.drawn[c], 0
        for d in range(POINTS):
            if cuts.drawn[d] < value or (cuts.drawn[d] == value and d < c):
                rank += 1
        i = 0
        while i < length - 2 and cuts.along[i + 1] <= value:
            i += 1
        t = min((value - cuts.along[i]) / max(cuts.along[i + 1] - cuts.along[i], np.float32(1e-12)), ONE)
        for k in range(dof):
            p = path[i * dof + k]
            cuts.points[rank * dof + k] = p + t * (path[(i + 1) * dof + k] - p)
        cuts.at[rank], cuts.segment[rank] = value, i


@lean_njit
def follows_the_path(cuts, i, j):
    """Is the leg from point i to point j a stretch of the path as it is?"""
    return j == i + 1 or cuts.at[j] <= cuts.along[cuts.segment[i] + 1]


@lean_njit
def distance(a, b, weights):
    """Weighted distance of the configurations at the beginning of a and of b."""
    squared = ZERO
    for k in range(len(weights)):
        d = b[k] - a[k]
        squared += weights[k] * d * d
    return math.sqrt(squared)


@lean_njit
def part_of_leg(cuts, leg, part, parts, desk, lane):
    """desk.a, desk.b become the ends of a part of a leg -> must it be checked? Another part may be known as blocked."""
    dof = len(desk.a)
    i, j = leg // POINTS * dof, leg % POINTS * dof
    # one lane looks, so that all agree
    if not (i < j and sum_lanes(peek(cuts.legs, leg) if lane == 0 else 0) == UNKNOWN):
        return False
    for k in range(dof):
        first, last = cuts.points[i + k], cuts.points[j + k]
        desk.a[k] = first + np.float32(part) / np.float32(parts) * (last - first)
        desk.b[k] = last if part + 1 == parts else first + np.float32(part + 1) / np.float32(parts) * (last - first)
    return True


@lean_njit
def bold_first(cuts, legs):
    """Sort the legs of the shortest way: first those that cut off the most of the path for their length, since they are
    likelier to be blocked, and the others need no check then."""
    for end in range(1, legs):
        k = end
        while k > 0 and boldness(cuts, int(cuts.way[k])) > boldness(cuts, int(cuts.way[k - 1])):
            cuts.way[k - 1], cuts.way[k] = cuts.way[k], cuts.way[k - 1]
            k -= 1


@lean_njit
def boldness(cuts, leg):
    """How long the path is between a leg's ends, for the leg's length."""
    return (cuts.at[leg % POINTS] - cuts.at[leg // POINTS]) / max(cuts.cost[leg], TINY)


@lean_njit
def conclude(task, cuts, legs, done, lane):
    """Record the checks of the shortest way's legs: the first `done` are free unless blocked; unknown legs beside
    blocked ones get costlier."""
    dof = len(task.weights)
    for item in range(lane, done, lane_count()):
        leg = int(cuts.way[item])
        if cuts.legs[leg] == UNKNOWN:
            i, j = leg // POINTS * dof, leg % POINTS * dof
            cuts.legs[leg], cuts.cost[leg] = FREE, distance(cuts.points[i:], cuts.points[j:], task.weights)
    sync_lanes()
    for item in range(legs):
        leg = int(cuts.way[item])
        if cuts.legs[leg] == BLOCKED:
            for beside in range(lane, 9, lane_count()):
                i, j = leg // POINTS + beside // 3 - 1, leg % POINTS + beside % 3 - 1
                near = i * POINTS + j
                if 0 <= i < j < POINTS and cuts.legs[near] == UNKNOWN:
                    cuts.cost[near] += DOUBT * (cuts.at[j] - cuts.at[i] - cuts.cost[near])
        sync_lanes()


@lean_njit
def shortest_way(cuts, total, changed, lane):
    """cuts.way becomes the shortest way to the last point if unknown legs were free -> its legs, how many are unknown.
    changed: the first point, of 1 and more, whose legs have changed since the last time"""
    sync_lanes()
    if lane == 0:
        cuts.best[0] = ZERO
    sync_lanes()
    for j in range(changed, POINTS):
        least, index = FAR, -1
        for i in range(lane, j, lane_count()):
            if cuts.legs[i * POINTS + j] != BLOCKED:
                c = cuts.best[i] + cuts.cost[i * POINTS + j] + PER_LEG * total
                if c < least:
                    least, index = c, i
        least, index = least_lane(least, index)
        if lane == 0:
            cuts.best[j], cuts.before[j] = least, index
        sync_lanes()
    j, legs, unknown = POINTS - 1, 0, 0
    while j > 0:
        i = int(cuts.before[j])
        if cuts.legs[i * POINTS + j] == UNKNOWN:
            unknown += 1
        if lane == 0:
            cuts.way[legs] = i * POINTS + j
        j, legs = i, legs + 1
    sync_lanes()
    return legs, unknown


@lean_njit
def rebuild(cuts, path, shorter, dof, lane):
    """Write the shortest way to `shorter`, and its number of corners to cuts.length."""
    sync_lanes()
    if lane == 0:
        j = POINTS - 1
        while j > 0:
            cuts.following[cuts.before[j]] = j
            j = cuts.before[j]
    sync_lanes()
    i, count, written = np.int64(0), np.int64(1), True  # written: is point i in the path already?
    copy(cuts.points, i, shorter, np.int64(0), dof, lane)
    while i < POINTS - 1:
        j, at_corner = np.int64(cuts.following[i]), False
        if follows_the_path(cuts, i, j):
            for corner in range(cuts.segment[i] + 1, cuts.segment[j] + 1):
                if cuts.along[corner] > cuts.at[i] and cuts.along[corner] <= cuts.at[j]:
                    copy(path, np.int64(corner), shorter, count, dof, lane)
                    count, at_corner = count + 1, cuts.along[corner] == cuts.at[j]
        else:
            if not written:
                copy(cuts.points, i, shorter, count, dof, lane)
                count += 1
            copy(cuts.points, j, shorter, count, dof, lane)
            count, at_corner = count + 1, True
        i, written = j, at_corner
    if not written:
        copy(cuts.points, i, shorter, count, dof, lane)
        count += 1
    if lane == 0:
        cuts.length[0] = count


@lean_njit
def copy(rows, a, to, b, dof, lane):
    """Row b of `to` becomes row a of `rows`."""
    for k in range(lane, dof, lane_count()):
        to[b * dof + k] = rows[a * dof + k]
