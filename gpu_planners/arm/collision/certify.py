"""Is a configuration free, and how far can it move and stay so? The same code for a CPU thread and a CUDA warp.

`certify` answers for one configuration a lane and, beyond yes or no, for how large a part of a motion around it the
answer holds: each pair of shapes has a clearance and a bound on how fast it can close (reach.joint_reach), so no
collision can happen before clearance / speed. `motions` covers whole motions with such parts.

Three sieves, one after the other over many pairs, so that the lanes stay together: a ball around A against a ball and
the bounding volume of B; spheres that cover A against that volume (both in `sieves`); the exact search (`separation`),
for which the lanes share what is left. Before the first, the lanes of a motion share out its pairs and drop those that
are too far apart for all of them. On the CPU there is one lane.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.team import any_lane, from_lane, greatest_lane, lane_count, lower, rank_lanes, sync_lanes, vote_lanes
from ..geometry.poses import ZERO, identity, load, store
from ..spaces.interface import FREE, NOT_FINITE, NOT_FREE, finite
from .forward import place_robot, relative_pose
from .records import dof, joint_range, moving_count, obstacle_count, self_pair_count, shape_count, speed_count
from .scratch import SIEVE, ball_centre, own_balls, shared_balls
from .separation import exact_distance
from .sieves import COLLIDES, SURE, ball_radius, obstacle_near, pair, self_pair_reach, sphere_bound, within

RUN = 32  # pairs that pass the first sieve between two looks at how many are left
EVERY = 0xFFFFFFFF
UNRELATED = np.float32(-1.0)  # instead of a position on a motion
HALF = np.float32(0.5)


class Question(NamedTuple):
    """What a lane asks of `certify`.

    active: does the lane have a configuration? Those that do come first
    at: the configuration's position, 0..1, on the motion that the lanes share, or UNRELATED
    want: how far along the motion the answer matters; 0: a plain check
    stop: return as soon as any lane's configuration collides; the other lanes' answers are void then
    """

    active: bool
    at: float
    want: float
    stop: bool


class Run(NamedTuple):
    """Pairs that pass the first sieve together.

    shape: a moving shape with the obstacles first to last - 1; -1: the self pairs first to last - 1
    near: bit k unset where pair first + k is too far apart for all lanes
    """

    shape: int
    first: int
    last: int
    near: int


@lean_njit
def verdict(active, q, scene, scratch, lane):
    """interface.FREE, NOT_FREE or NOT_FINITE: a plain check of one configuration a lane. `clear_speeds` comes first."""
    is_free = certify(Question(active, UNRELATED, ZERO, False), q, scene, scratch, lane) >= ZERO
    if in_ranges(q, scene):
        return FREE if is_free else NOT_FREE
    return NOT_FREE if finite(q) else NOT_FINITE


@lean_njit
def in_ranges(q, scene):
    """Is each joint's value where the bounds hold (reach.joint_ranges)? False for NaN."""
    for k in range(dof(scene)):
        lowest, highest = joint_range(scene, k)
        if not lowest <= q[k] <= highest:
            return False
    return True


@lean_njit
def clear_speeds(scene, speeds, lane):
    """For plain checks."""
    for i in range(lane, speed_count(scene), lane_count()):
        speeds[i] = ZERO
    sync_lanes()


@lean_njit
def certify(ask, q, scene, scratch, lane):
    """COLLIDES, or how far the configuration can move and stay free, of the motion parameter, `ask.want` at most.

    ask: Question; q: (dof,) float32; scratch.speeds: metres that each pair can close per unit of the motion parameter
    """
    tau = scratch.tau
    moving, obstacles, self_pairs = moving_count(scene), obstacle_count(scene), self_pair_count(scene)
    tau[lane] = ask.want if ask.active else COLLIDES
    if ask.active:
        place_robot(q, scene, scratch.poses)
    spread = share_balls(ask, scene, scratch, lane)
    count, waiting = 0, 0
    for row in range(moving + 1):
        shape = moving - 1 - row  # the hand first: it is likelier to collide than the shoulder
        n = obstacles if shape >= 0 else self_pairs
        for first in range(0, max(n, 1), RUN):
            last = min(first + RUN, n)
            k = first + lane
            near = EVERY
            if spread >= ZERO:
                near = vote_lanes(k < last and may_meet(shape, k, spread, scene, scratch.speeds))
            if tau[lane] >= ZERO:
                count = first_sieve(Run(shape, first, last, near), tau[lane], count, scene, scratch)
            done = shape < 0 and last == n
            if done or any_lane(count > SIEVE - RUN):
                waiting = settle(ask, count, waiting, done, scene, scratch, lane)
                count = 0
                if ask.stop and any_lane(ask.active and tau[lane] < ZERO):
                    return tau[lane]
    return tau[lane]


@lean_njit
def share_balls(ask, scene, scratch, lane):
    """Show the ball centres of the lane in the middle to all lanes.

    -> how far from its position on the motion any lane looks, or UNRELATED
    """
    if lane_count() == 1:
        return UNRELATED
    _, others = rank_lanes(ask.active)
    middle = others // 2
    middle_at = from_lane(ask.at, middle)
    farthest = greatest_lane(abs(ask.at - middle_at) + ask.want if ask.active else ZERO)
    if lane == middle:
        own, shared = own_balls(scene), shared_balls(scene)
        for k in range(3 * shape_count(scene)):
            scratch.speeds[shared + k] = scratch.poses[own + k]
    sync_lanes()
    return UNRELATED if any_lane(ask.active and ask.at < ZERO) else farthest


@lean_njit
def may_meet(shape, k, spread, scene, speeds):
    """Can the shape and obstacle k (shape < 0: the shapes of self pair k) be near each other within `spread` of the
    position on the motion whose ball centres `share_balls` showed?"""
    balls = shared_balls(scene)
    if shape >= 0:
        radius = ball_radius(shape, scene) + spread * speeds[shape] + SURE
        return obstacle_near(k, ball_centre(speeds, balls, shape), radius, scene)
    i, j, apart = self_pair_reach(k, spread, speeds, scene)
    return within(ball_centre(speeds, balls, i), ball_centre(speeds, balls, j), apart + SURE)


@lean_njit
def first_sieve(run, spread, count, scene, scratch):
    """Append the pairs of a Run whose balls come near each other to `scratch.sieve`; -> how many it holds."""
    poses, sieve = scratch.poses, scratch.sieve
    balls, obstacles = own_balls(scene), obstacle_count(scene)
    if run.shape >= 0:
        centre = ball_centre(poses, balls, run.shape)
        radius = ball_radius(run.shape, scene) + spread * scratch.speeds[run.shape]
        for o in range(run.first, run.last):
            if run.near >> (o - run.first) & 1 and obstacle_near(o, centre, radius, scene):
                sieve[count] = run.shape * obstacles + o
                count += 1
    else:
        for p in range(run.first, run.last):
            if run.near >> (p - run.first) & 1:
                i, j, apart = self_pair_reach(p, spread, scratch.speeds, scene)
                if within(ball_centre(poses, balls, i), ball_centre(poses, balls, j), apart):
                    sieve[count] = moving_count(scene) * obstacles + p
                    count += 1
    return count


@lean_njit
def settle(ask, count, waiting, done, scene, scratch, lane):
    """Pass the `count` pairs that this lane found near through the second sieve; -> how many pairs wait for the search.

    The lanes search whenever there is a pair for each, and at the end when nothing else is to come (done).
    """
    tau, lanes = scratch.tau, lane_count()
    k = 0
    while True:
        near = any_lane(k < count)
        if near:
            keep, code, T = False, 0, identity()
            if k < count and tau[lane] >= ZERO:
                code = int(scratch.sieve[k])
                keep, T = second_sieve(code, ask.want, scene, scratch, lane)
            rank, total = rank_lanes(keep)
            if keep:
                queue_pair(waiting + rank, code, T, scratch, lane)
            waiting += total
            k += 1
        elif not (done and waiting > 0):
            return waiting
        if not near or waiting >= lanes:
            waiting = search(waiting, scene, scratch, lane)
        if any_lane(ask.stop and ask.active and tau[lane] < ZERO):  # nobody will ask for the rest
            return waiting


@lean_njit
def second_sieve(code, want, scene, scratch, lane):
    """Lower this lane's tau by the bound of a pair; -> must the pair be searched, and the pose of A in B's frame."""
    tau = scratch.tau
    a, b, i = pair(code, scene)
    T = relative_pose(a, b, scene, scratch.poses)
    bound, speed = sphere_bound(a, b, T, scene), scratch.speeds[i]
    keep = False
    if bound < ZERO:
        tau[lane] = COLLIDES
    elif bound == ZERO or bound < HALF * want * speed:
        keep = bound <= tau[lane] * speed
    elif bound < tau[lane] * speed:
        tau[lane] = bound / speed
    return keep, T


@lean_njit
def queue_pair(slot, code, T, scratch, lane):
    """Let a pair of this lane wait for the exact search."""
    slots = 2 * lane_count()
    store(scratch.items, slot, slots, T)
    scratch.codes[slot], scratch.codes[slots + slot] = code, lane


@lean_njit
def search(waiting, scene, scratch, lane):
    """The exact search for the last of the waiting pairs, one a lane; -> how many are left."""
    tau, codes, slots = scratch.tau, scratch.codes, 2 * lane_count()
    slot = waiting - 1 - lane
    sync_lanes()
    if slot >= 0:
        owner = int(codes[slots + slot])
        spread = tau[owner]
        if spread >= ZERO:
            T = load(scratch.items, slot, slots)
            a, b, i = pair(int(codes[slot]), scene)
            speed = scratch.speeds[i]
            margin = spread * speed
            distance = exact_distance(a, b, T, margin, scene)
            if distance < ZERO:
                lower(tau, owner, COLLIDES)
            elif distance < margin:
                lower(tau, owner, distance / speed)
    sync_lanes()
    return max(waiting - lane_count(), 0)


@lean_njit
def pair_distance(code, scene, poses, margin):
    """CPU only, after `place_robot`: lower bound of the distance of a pair in its skins, or COLLIDES.

    A bound below `margin` is as tight as that of `separation`.
    """
    a, b, _ = pair(code, scene)
    T = relative_pose(a, b, scene, poses)
    bound = sphere_bound(a, b, T, scene)
    return bound if bound < ZERO or bound > margin else exact_distance(a, b, T, margin, scene)
