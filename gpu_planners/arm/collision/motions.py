"""Is a whole straight motion free? Proven by parts that `certify` covers, or sampled.

The proof is the adaptive checking of Schwarzer, Saha and Latombe (IEEE T-RO 2005), with the bounds of `closing`.
The fixed samplings of [DL14] (a joint-space step) and [BKF11] (a fixed count) are modes of the same function.

On the CPU a lane looks at one place at a time. A check of a configuration takes a fraction of the time of a look that
says for how long its answer holds, and finds collisions as well. So scouts go first, to the end unless that is known to
be free, and to places half a metre apart; then the proof begins in the middle, whence it reaches both ends at once.

It also keeps the latest configurations in which it found a collision. Of the legs that shortening tries, 95 in 100 are
refused, and they collide where others did. So a motion that is probably blocked is first checked where it comes nearest
to one of these; that cannot change the answer.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item, set_item
from ...parallel.team import any_lane, greatest_lane, lane_count, rank_lanes, sync_lanes
from ..geometry.poses import HALF, ONE, TWO, ZERO
from ..spaces.interface import CONTINUOUS, COUNT, JOINT, NOTHING, REFUSED, Packed, register
from .broad_phase import set_block_speeds
from .certify import Question, certify, in_ranges
from .closing import speed_and_bend
from .records import dof, frame_count, frame_floats, frame_ints, moving_count, reach, speed_count
from .scratch import QUEUE, RECENT, RECENT_COUNT, RECENT_NEAREST, RESERVE, ArmScratch, bends, rates
from .sieves import FAR

SCOUTED = np.float32(0.5)  # metres that a shape moves between two scouts
MOST_SCOUTED = 8  # parts of a motion between scouts
FIRST_RECENT = 2 * QUEUE  # where the kept configurations begin in `waiting`
LEAST = np.float32(1e-12)


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
def motion_valid(qa, qb, hint, space, lane):
    """Is the straight motion qa -> qb, (dof,) float32, free in the Space? See `prove`."""
    return prove(qa, qb, hint, space, lane)[0]


@lean_njit
def prove(qa, qb, hint, space, lane):
    """Is the straight motion qa -> qb free, and how many configurations does a lane look at to know?

    hint: as in interface.motion_free
    Not free outside of `in_ranges`.

    Continuous: True only with a proof that it is free all along. Each lane checks a part at its middle, the last of
    several parts at the motion's end; what the clearance there does not cover waits as one or two smaller parts. A
    motion that comes nearer than step metres to something may be refused: so small a part is not divided further.
    Sampled: the parts + 1 equally spaced configurations are checked, coarse ones first.
    """
    scene, scratch, looks = Packed(space.floats, space.ints), space.scratch, 0
    if not (in_ranges(qa, scene) and in_ranges(qb, scene)):
        return False, looks
    sampled = space.mode != CONTINUOUS
    keeps = hint == REFUSED and lane_count() == 1 and not sampled
    if keeps and meets_again(qa, qb, scene, scratch, lane):
        return False, 1
    greatest = set_speeds(qa, qb, scene, scratch, lane)
    shortest = space.step / max(greatest, np.float32(1e-12))
    sampling = first_samples(qa, qb, space, greatest) if sampled else scouts(greatest, hint)
    plain = sampling.first <= sampling.parts  # is the next look a check of a configuration?
    part = first_part(lane)
    head, count = np.int64(0), np.int64(0)
    while True:
        if plain:
            part = sample(sampling, lane)
        interpolate(qa, qb, part.middle, scratch.q)
        want_back, want_ahead = wants(part, plain, shortest)
        ask = Question(part.active, part.middle, want_back, want_ahead, not plain, True)
        looks += 1
        back, ahead = certify(ask, scratch.q, scene, scratch, lane)
        if any_lane(part.active and back < ZERO):
            if keeps:
                keep_recent(scratch.q, False, scene, scratch)
            return False, looks
        sync_lanes()
        if plain:
            sampling = next_samples(sampling)
            plain = sampling.first <= sampling.parts
            if not plain and sampled:
                return True, looks
            if not plain:
                part = first_part(lane)
            continue
        before, after = part.active and back < part.half, part.active and ahead < rest_of(part)
        if any_lane((before and back < HALF * shortest) or (after and ahead < HALF * shortest)):
            return False, looks
        count = put_back(before, part.middle - part.half, part.middle - back, head, count, scratch.waiting)
        if count <= QUEUE:
            count = put_back(after, part.middle + ahead, part.middle + rest_of(part), head, count, scratch.waiting)
        if count > QUEUE:
            return False, looks
        if count == 0:
            return True, looks
        sync_lanes()
        part, head, count = take(part, head, count, scratch.waiting, lane)


@lean_njit
def meets_again(qa, qb, scene, scratch, lane):
    """Does the robot collide where the motion comes nearest to a collision that is kept? For one lane alone."""
    least, nearest, n = FAR, -ONE, dof(scene)
    for m in range(min(item(scratch.codes, RECENT_COUNT), RECENT)):
        along, squared, first = ZERO, LEAST, FIRST_RECENT + m * n
        for k in range(n):
            step = item(qb, k) - item(qa, k)
            squared += step * step
            along += step * (item(scratch.waiting, first + k) - item(qa, k))
        t, apart = min(max(along / squared, ZERO), ONE), ZERO
        for k in range(n):
            gap = item(qa, k) + t * (item(qb, k) - item(qa, k)) - item(scratch.waiting, first + k)
            apart += gap * gap
        if apart < least:
            least, nearest = apart, t
            set_item(scratch.codes, RECENT_NEAREST, m)
    if nearest < ZERO:
        return False
    interpolate(qa, qb, nearest, scratch.q)
    back, _ = certify(Question(True, nearest, ZERO, ZERO, False, True), scratch.q, scene, scratch, lane)
    if back < ZERO:
        keep_recent(scratch.q, True, scene, scratch)
    return back < ZERO


@lean_njit
def keep_recent(q, again, scene, scratch):
    """Keep a configuration in collision in place of the oldest; again: of the nearest, which led to it."""
    n, count = dof(scene), item(scratch.codes, RECENT_COUNT)
    m = item(scratch.codes, RECENT_NEAREST) if again else count % RECENT
    for k in range(n):
        set_item(scratch.waiting, FIRST_RECENT + m * n + k, item(q, k))
    if not again:
        set_item(scratch.codes, RECENT_COUNT, count + 1)


@lean_njit
def set_speeds(qa, qb, scene, scratch, lane):
    """Fill `speeds` for the straight motion qa -> qb over the parameter 0..1; -> the greatest speed, metres."""
    speeds, frames, first, greatest = scratch.speeds, frame_count(scene), rates(scene), ZERO
    for f in range(lane, frames, lane_count()):
        frame = frame_ints(scene, f)
        rate = frame_floats(scene, f).multiplier * (item(qb, frame.joint) - item(qa, frame.joint))
        set_item(speeds, first + f, rate)
        set_item(speeds, first + frames + f, ZERO if frame.slides != 0 else abs(rate))
    sync_lanes()
    if lane_count() == 1:
        greatest = set_speeds_alone(scene, speeds)
    else:
        near, at = speeds, first
        if frames <= QUEUE:  # closer than speeds may be, and empty so far
            near, at = scratch.waiting, np.int64(0)
            for f in range(lane, 2 * frames, lane_count()):
                set_item(near, f, item(speeds, first + f))
            sync_lanes()
        for i in range(lane, speed_count(scene), lane_count()):
            speed, bend = speed_and_bend(i, scene, near, at)
            set_item(speeds, i, speed)
            set_item(speeds, bends(scene) + i, bend)
            greatest = max(greatest, speed)
    sync_lanes()
    set_block_speeds(scene, speeds, lane, lane_count())
    sync_lanes()
    return greatest_lane(greatest)


@lean_njit
def set_speeds_alone(scene, speeds):
    """Set the speeds, frame by frame so that a thread adds several at once, and the bends of shapes -> the greatest."""
    greatest, count = ZERO, speed_count(scene)
    for i in range(count):
        set_item(speeds, i, ZERO)
    for f in range(frame_count(scene)):
        rate = item(speeds, rates(scene) + f)
        if rate != ZERO:
            for i in range(count):
                set_item(speeds, i, item(speeds, i) + abs(reach(scene, i, f) * rate))
    for i in range(count):
        greatest = max(greatest, item(speeds, i))
    for s in range(moving_count(scene)):
        set_item(speeds, bends(scene) + s, speed_and_bend(s, scene, speeds, rates(scene))[1])
    return greatest


@lean_njit
def interpolate(qa, qb, t, q):
    for k in range(len(qa)):
        q[k] = qa[k] + t * (qb[k] - qa[k])


@lean_njit
def first_samples(qa, qb, space, greatest):
    """-> Sampling of a motion by the modes of MotionCheck. greatest: of `set_speeds`"""
    length = greatest
    if space.mode == JOINT:
        length = ZERO
        for k in range(len(qa)):
            length += (qb[k] - qa[k]) * (qb[k] - qa[k])
        length = math.sqrt(length)
    parts = max(int(space.step) if space.mode == COUNT else int(math.ceil(length / space.step)), 1)
    stride = 1
    while stride * 2 * lane_count() <= parts:
        stride *= 2
    return Sampling(parts, stride, 0, stride)


@lean_njit
def scouts(greatest, hint):
    """-> Sampling of the places that one lane checks before it proves the motion: none where several prove it."""
    if lane_count() > 1:
        return Sampling(1, 1, 2, 1)
    parts = 1
    while parts < MOST_SCOUTED and np.float32(2 * parts) * SCOUTED <= greatest:
        parts *= 2
    if hint == NOTHING:
        return Sampling(parts, parts, parts, parts)
    return Sampling(parts, parts >> 1, parts >> 1, parts) if parts > 1 else Sampling(1, 1, 2, 1)


@lean_njit
def sample(sampling, lane):
    """-> the lane's next sample, a Part of no length."""
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
    """-> the lane's first Part. The motion's end is the middle of lane 0's; a lane alone takes the whole motion."""
    if lane_count() == 1:
        return Part(True, HALF, HALF)
    half = ONE / np.float32(2 * lane_count() - 1)
    return Part(True, ONE - TWO * half * np.float32(lane), half)


@lean_njit
def rest_of(part):
    """How much of a part lies after its middle: not what is beyond the motion's end."""
    return min(part.half, ONE - part.middle)


@lean_njit
def wants(part, plain, shortest):
    """How far back and ahead the check of a part's middle is to hold; a smaller question would get a coarser answer."""
    if plain:
        return ZERO, ZERO
    return max(part.half, shortest), max(rest_of(part), shortest)


@lean_njit
def put_back(left, first, last, head, count, waiting):
    """Put what a check `left`, first to last, in the queue; -> how many parts wait, over QUEUE if there is no room."""
    rank, total = rank_lanes(left)
    if left and count + total <= QUEUE:
        at = 2 * ((head + count + rank) % QUEUE)
        set_item(waiting, at, first)
        set_item(waiting, at + 1, last)
    return count + total


@lean_njit
def take(part, head, count, waiting, lane):
    """-> the lane's next Part, and where the `count` parts that are left begin.

    The widest parts first find collisions early; with the queue half full, the newest ones keep it bounded.
    """
    taken = min(count, lane_count(), max(QUEUE - RESERVE - count, 1))  # each puts two parts back at most
    oldest = count < QUEUE // 2
    active, middle, half = lane < taken, part.middle, part.half
    if active:
        at = 2 * ((head + lane if oldest else head + count - taken + lane) % QUEUE)
        half = HALF * (item(waiting, at + 1) - item(waiting, at))
        middle = item(waiting, at) + half
    if oldest:
        head = (head + taken) % QUEUE
    return Part(active, middle, half), head, count - taken


register(ArmScratch, "cpu", motion_valid)
