"""Is a whole straight motion free? Proven by parts that `certify` covers, or sampled.

The proof is the adaptive checking of Schwarzer, Saha and Latombe (IEEE T-RO 2005), with the bounds of `separation`.
The fixed samplings of [DL14] (a joint-space step) and [BKF11] (a fixed count) are modes of the same function.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.team import any_lane, greatest_lane, lane_count, rank_lanes, sync_lanes
from ..geometry.poses import ONE, ZERO
from ..spaces.interface import Packed, register
from ..spaces.motion_check import CONTINUOUS, COUNT, JOINT
from .certify import HALF, Question, certify, in_ranges
from .records import dof, reach, speed_count
from .scratch import QUEUE, ArmScratch

TWO = np.float32(2.0)


class Part(NamedTuple):
    """A part of a motion that a lane checks at its middle; half: of its length, both of the motion parameter 0..1."""

    active: bool
    middle: float
    half: float


class Sampling(NamedTuple):
    """Equally spaced configurations 0 to parts, coarse ones first; the next are first, first + apart, ..."""

    parts: int
    stride: int
    first: int
    apart: int


@lean_njit
def motion_valid(qa, qb, space, lane):
    """Is the straight motion qa -> qb, (dof,) float32, free in the Space? Not outside of `in_ranges`.

    Continuous: True only with a proof that it is free all along. It is cut into as many parts as there are lanes, each
    checked at its middle, the last one at the motion's end; what the clearance there does not cover waits as one or two
    smaller parts. Motions that keep less than step / 2 metres are refused, and some that keep less than step, since the
    sieves' distances are lower bounds.
    Sampled: the parts + 1 equally spaced configurations are checked, coarse ones first.
    """
    scene, scratch = Packed(space.floats, space.ints), space.scratch
    if not (in_ranges(qa, scene) and in_ranges(qb, scene)):
        return False
    greatest = set_speeds(qa, qb, scene, scratch.speeds, lane)
    sampled = space.mode != CONTINUOUS
    shortest = space.step / max(greatest, np.float32(1e-12))
    sampling = first_samples(qa, qb, space, greatest, sampled)
    part = first_part(lane)
    head, count = 0, 0
    while True:
        if sampled:
            part = sample(sampling, lane)
        interpolate(qa, qb, part.middle, scratch.q)
        want = ZERO if sampled else max(part.half, shortest)  # a smaller question would get a coarser answer
        tau = certify(Question(part.active, part.middle, want, True), scratch.q, scene, scratch, lane)
        if any_lane(part.active and tau < ZERO):
            return False
        sync_lanes()
        if sampled:
            sampling = next_samples(sampling)
            if sampling.first > sampling.parts:
                return True
            continue
        uncovered = part.active and tau < part.half
        if any_lane(uncovered and tau < HALF * shortest):
            return False
        count = put_back(part, uncovered, tau, head, count, scratch.waiting)
        if count > QUEUE:
            return False
        if count == 0:
            return True
        sync_lanes()
        part, head, count = take(part, head, count, scratch.waiting, lane)


@lean_njit
def set_speeds(qa, qb, scene, speeds, lane):
    """Fill `speeds` for the straight motion qa -> qb over the parameter 0..1; -> the greatest speed, metres."""
    joints, greatest = dof(scene), ZERO
    for i in range(lane, speed_count(scene), lane_count()):
        speed = ZERO
        for k in range(joints):
            speed += reach(scene, i, k) * abs(qb[k] - qa[k])
        speeds[i] = speed
        greatest = max(greatest, speed)
    sync_lanes()
    return greatest_lane(greatest)


@lean_njit
def interpolate(qa, qb, t, q):
    for k in range(len(qa)):
        q[k] = qa[k] + t * (qb[k] - qa[k])


@lean_njit
def first_samples(qa, qb, space, greatest, sampled):
    if not sampled:
        return Sampling(1, 1, 0, 1)
    parts, stride = motion_parts(qa, qb, space.mode, space.step, greatest), 1
    while stride * 2 * lane_count() <= parts:
        stride *= 2
    return Sampling(parts, stride, 0, stride)


@lean_njit
def motion_parts(qa, qb, mode, step, greatest):
    """-> how many equal parts a sampled motion is cut into, by the modes of MotionCheck. greatest: of `set_speeds`"""
    if mode == COUNT:
        return max(int(step), 1)
    length = greatest
    if mode == JOINT:
        length = ZERO
        for k in range(len(qa)):
            length += (qb[k] - qa[k]) * (qb[k] - qa[k])
        length = math.sqrt(length)
    return max(int(math.ceil(length / step)), 1)


@lean_njit
def sample(sampling, lane):
    """-> Part of no length."""
    k = sampling.first + lane * sampling.apart
    return Part(k <= sampling.parts, np.float32(min(k, sampling.parts)) / np.float32(sampling.parts), ZERO)


@lean_njit
def next_samples(sampling):
    """-> Sampling, its `first` beyond `parts` when all have been checked."""
    parts, stride, first, apart = sampling
    first += apart * lane_count()
    if first > parts and stride > 1:
        stride //= 2
        return Sampling(parts, stride, stride, 2 * stride)
    return Sampling(parts, stride, first, apart)


@lean_njit
def first_part(lane):
    """The lanes' parts cover the motion from its end, which is the middle of lane 0's."""
    half = ONE / np.float32(2 * lane_count() - 1)
    return Part(True, ONE - TWO * half * np.float32(lane), half)


@lean_njit
def put_back(part, uncovered, tau, head, count, waiting):
    """Let what the checks did not cover wait; -> how many parts wait: more than QUEUE where there is no room."""
    for side in range(2):
        more = uncovered and (side == 0 or part.middle + tau < ONE)
        rank, total = rank_lanes(more)
        if count + total > QUEUE:
            return count + total
        if more:
            at = 2 * ((head + count + rank) % QUEUE)
            waiting[at] = part.middle - part.half if side == 0 else part.middle + tau
            waiting[at + 1] = part.middle - tau if side == 0 else min(part.middle + part.half, ONE)
        count += total
    return count


@lean_njit
def take(part, head, count, waiting, lane):
    """-> the lane's next Part, and where the `count` parts that are left begin.

    The widest parts first find collisions early; with the queue half full, the newest ones keep it bounded.
    """
    taken = min(count, lane_count())
    oldest = count < QUEUE // 2
    active, middle, half = lane < taken, part.middle, part.half
    if active:
        at = 2 * ((head + lane if oldest else head + count - taken + lane) % QUEUE)
        half = HALF * (waiting[at + 1] - waiting[at])
        middle = waiting[at] + half
    if oldest:
        head = (head + taken) % QUEUE
    return Part(active, middle, half), head, count - taken


register(ArmScratch, "cpu", motion_valid)
