"""Is a configuration free, and how far can it move and stay so? The same code for a CPU thread and a CUDA warp.

`certify` answers for one configuration a lane and, beyond yes or no, for how far back and ahead on a motion the answer
holds: `closing` derives how long a gap between two shapes lasts. `motions` covers whole motions with such parts.

`broad_phase` passes over groups of obstacles that a shape cannot be near, and over groups of the robot's own pairs that
are too far apart. The other pairs go through three sieves, many pairs at a time so that the lanes stay together:
a ball around A against a ball and the bounding volume of B; spheres that cover A against that volume (both in
`sieves`); the exact search (`separation`), for which the lanes share what is left. Before the first sieve, lanes that
share a motion divide its pairs among them and drop those that are too far apart for all. On the CPU there is one lane.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, shared_by_kernels
from ...parallel.memory import item, set_item
from ...parallel.team import any_lane, from_lane, greatest_lane, lane_count, lower, rank_lanes, sync_lanes, vote_lanes
from ..geometry.poses import HALF, POSE, ZERO, identity, load, relative, store
from ..spaces.interface import FREE, NOT_FINITE, NOT_FREE, finite
from . import records, sieves
from .broad_phase import FEW, SURE, end_of_blocks, near_pairs, next_near, next_pair
from .closing import Twist, closing_of, pair_twist
from .forward import move_robot, own_ball, place_balls, place_frames, placed, relative_pose, share_place
from .scratch import SIEVE, block_speeds, own_balls, own_blocks, shared_balls, shared_blocks, triple
from .separation import Sought, distance_sought, exact_separation

RUN = 32  # pairs that pass the first sieve between two looks at how many are left
EVERY = 0xFFFFFFFF
UNRELATED = np.float32(-1.0)  # instead of a position on a motion


class Question(NamedTuple):
    """What a lane asks of `certify`.

    active: does the lane have a configuration? Those that do come first
    at: the configuration's position, 0..1, on the motion that the lanes share; UNRELATED, for all lanes: none
    back, ahead: how far along the motion the answer matters
    moves: does any of it matter? False, for all lanes: a plain check, whose kernel on CUDA knows of no motion
    stop: return as soon as any lane's configuration collides; the other lanes' answers are void then
    """

    active: bool
    at: float
    back: float
    ahead: float
    moves: bool
    stop: bool


@lean_njit
def verdict(active, q, scene, scratch, lane):
    """interface.FREE, NOT_FREE or NOT_FINITE: a plain check of one configuration a lane. `clear_speeds` comes first."""
    back, _ = certify(Question(active, UNRELATED, ZERO, ZERO, False, False), q, scene, scratch, lane)
    is_free = back >= ZERO
    if in_ranges(q, scene):
        return FREE if is_free else NOT_FREE
    return NOT_FREE if finite(q) else NOT_FINITE


@lean_njit
def in_ranges(q, scene):
    """Is each joint's value where the bounds hold (reach.joint_ranges)? False for NaN."""
    for k in range(records.dof(scene)):
        lowest, highest = records.joint_range(scene, k)
        if not lowest <= q[k] <= highest:
            return False
    return True


@lean_njit
def clear_speeds(scene, speeds, lane):
    """Set all speeds to zero, as plain checks need them."""
    for i in range(lane, records.speed_count(scene), lane_count()):
        speeds[i] = ZERO
    for g in range(lane, records.block_pair_count(scene), lane_count()):
        set_item(speeds, block_speeds(scene) + g, ZERO)
    sync_lanes()


@shared_by_kernels
@lean_njit
def certify(ask, q, scene, scratch, lane):
    """How far back and ahead the configuration can move and stay free, of the motion parameter, at most what is asked.

    ask: Question; q: (dof,) float32; scratch.speeds: of `motions.set_speeds`. -> back, ahead; COLLIDES first if it does
    """
    tau, lanes, moving = scratch.tau, lane_count(), records.moving_count(scene)
    obstacles, self_pairs = records.obstacle_count(scene), records.self_pair_count(scene)
    tau[lane], tau[lanes + lane] = ask.back if ask.active else sieves.COLLIDES, ask.ahead
    shared = lane_count() > 1 and not any_lane(ask.at < ZERO)
    if ask.active:
        place_frames(q, scene, scratch.poses)
        if not shared:
            place_balls(scene, scratch.poses)
        if ask.moves:
            move_robot(scene, scratch.speeds, scratch.poses)
    spread = share_middle(ask, scene, scratch, lane) if shared else UNRELATED
    # of one type from the beginning: for what a loop calls with constants first, Numba compiles all of it twice
    count, waiting, blocks = np.int64(0), np.int64(0), records.block_count(scene)
    together = spread >= ZERO and 0 < obstacles <= FEW  # then all moving shapes make one row
    for row in range(2 if together else moving + 1):
        shape = moving - 1 - row  # the hand first: it is likelier to collide than the shoulder
        if together:
            shape = moving if row == 0 else -1
        n = self_pairs if shape < 0 else moving * obstacles if shape == moving else obstacles
        first, end = np.int64(0), np.int64(0 if shape < 0 and blocks > 0 else n)
        while True:
            if 0 <= shape < moving:
                first = next_run(shape, first, ask, spread, scene, scratch, lane)
            elif shape < 0 and first >= end:
                first, end = next_self_run(first, ask, spread, scene, scratch, lane)
            left = any_lane(first < n)
            if not left and shape >= 0:
                break
            if left:
                last = min(first + RUN, end)
                k, near = first + lane, EVERY
                if spread >= ZERO:
                    near = vote_lanes(k < last and may_meet(shape, k, spread, scene, scratch.speeds))
                if tau[lane] >= ZERO:
                    span = farthest_wanted(ask, tau, lane)
                    count = first_sieve(shape, first, last, near, span, not shared, count, scene, scratch)
                first = last
            if not left or any_lane(count > SIEVE - RUN):
                waiting = settle(ask, count, waiting, not left, scene, scratch, lane)
                count = np.int64(0)
                if ask.stop and any_lane(ask.active and tau[lane] < ZERO):
                    return tau[lane], tau[lanes + lane]
            if not left:
                break
    return tau[lane], tau[lanes + lane]


@lean_njit
def farthest_wanted(ask, tau, lane):
    """How far from its configuration a lane still has to look."""
    return max(tau[lane], tau[lane_count() + lane]) if ask.moves else ZERO


@lean_njit
def next_run(shape, first, ask, spread, scene, scratch, lane):
    """Where the next obstacles are, from `first` on, that a moving shape can be near. The lanes of a motion go
    through the same ones together, other lanes each through its own."""
    n = records.obstacle_count(scene)
    if n <= FEW:
        return first
    if spread >= ZERO:
        centre = triple(scratch.speeds, shared_balls(scene), shape)
        radius = sieves.ball_radius(shape, scene) + spread * item(scratch.speeds, shape)
    elif scratch.tau[lane] < ZERO:
        return n
    else:
        centre = triple(scratch.poses, own_balls(scene), shape)
        radius = sieves.ball_reach(shape, farthest_wanted(ask, scratch.tau, lane), scene, scratch)
    return next_near(first, n, centre, radius, scene)


@lean_njit
def next_self_run(first, ask, spread, scene, scratch, lane):
    """Where the next self pairs are, from `first` on, whose blocks can meet, and where these end."""
    pairs = records.self_pair_count(scene)
    if records.block_count(scene) == 0:
        return pairs, pairs
    if spread >= ZERO:
        return near_pairs(first, spread, scratch.speeds, shared_blocks(scene), scratch.speeds, scene, lane)
    span = farthest_wanted(ask, scratch.tau, lane)
    first = next_pair(first, span, scratch.poses, own_blocks(scene), scratch.speeds, scene)
    return first, (end_of_blocks(first, scene) if first < pairs else pairs)


@lean_njit
def share_middle(ask, scene, scratch, lane):
    """Show all lanes where the robot of the middle one stands -> how far from there on the motion any lane looks."""
    _, others = rank_lanes(ask.active)
    middle = others // 2
    middle_at = from_lane(ask.at, middle)
    farthest = greatest_lane(abs(ask.at - middle_at) + max(ask.back, ask.ahead) if ask.active else ZERO)
    share_place(scene, scratch, lane, middle)
    return farthest


@lean_njit
def may_meet(shape, k, spread, scene, speeds):
    """Can the shape and the obstacle of ball k be near each other within `spread` of the position on the motion that
    `share_middle` showed? Or the shapes of self pair k (shape < 0), or of pair k of all moving shapes with obstacles
    (shape: how many there are)?"""
    balls = shared_balls(scene)
    if shape >= 0:
        shape, k = of_all(shape, k, scene)
        radius = sieves.ball_radius(shape, scene) + spread * item(speeds, shape) + SURE
        return sieves.obstacle_near(k, triple(speeds, balls, shape), radius, scene)
    return sieves.self_pair_near(k, spread, speeds, scene)


@lean_njit
def of_all(shape, k, scene):
    """-> the moving shape and the ball of `may_meet`."""
    moving, obstacles = records.moving_count(scene), records.obstacle_count(scene)
    if shape < moving:
        return shape, k
    row = np.int64(np.uint32(k) // np.uint32(obstacles))
    return moving - 1 - row, k - row * obstacles


@lean_njit
def first_sieve(shape, first, last, near, spread, kept, count, scene, scratch):
    """Append to `scratch.sieve` the pairs whose balls come near each other within `spread`; -> how many it holds.

    The pairs are those first to last - 1 of `may_meet`. near: bit k is unset where pair first + k is too far apart for
    all lanes; kept: of `own_ball`
    """
    sieve, obstacles = scratch.sieve, records.obstacle_count(scene)
    if near == 0:
        return count
    if shape >= 0:
        s, k = of_all(shape, first, scene)
        placed_shape, centre, radius = -1, (ZERO, ZERO, ZERO), ZERO
        for _ in range(first, last):
            if near & 1:
                if s != placed_shape:
                    placed_shape, centre = s, own_ball(s, kept, scene, scratch.poses)
                    radius = sieves.ball_reach(s, spread, scene, scratch)
                if sieves.obstacle_near(k, centre, radius, scene):
                    set_item(sieve, count, s * obstacles + records.ball_owner(scene, k))
                    count += 1
            near >>= 1
            k += 1
            if k == obstacles:
                s, k = s - 1, 0
    else:
        for p in range(first, last):
            if near & 1 and sieves.self_pair_meets(p, spread, kept, scene, scratch):
                set_item(sieve, count, records.moving_count(scene) * obstacles + p)
                count += 1
            near >>= 1
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
            keep, code, T, twist = False, 0, identity(), at_rest()
            if k < count and tau[lane] >= ZERO:
                code = int(item(scratch.sieve, k))
                keep, T, twist = second_sieve(code, ask, scene, scratch, lane)
            rank, total = rank_lanes(keep)
            if keep:
                queue_pair(waiting + rank, code, T, scratch, lane)
                if ask.moves:
                    queue_twist(waiting + rank, twist, scratch)
            waiting += total
            k += 1
        elif not (done and waiting > 0):
            return waiting
        if not near or waiting >= lanes:
            waiting = search(waiting, ask.moves, scene, scratch, lane)
        if any_lane(ask.stop and ask.active and tau[lane] < ZERO):  # nobody will ask for the rest
            return waiting


@lean_njit
def second_sieve(code, ask, scene, scratch, lane):
    """Lower this lane's tau by a pair's bound; -> must it be searched, the pose of A in B's frame, its `pair_twist`."""
    tau, lanes = scratch.tau, lane_count()
    a, b, i, s = sieves.pair(code, scene)
    B = placed(b, scene, scratch.poses)
    T, twist = relative(B, placed(a, scene, scratch.poses)), at_rest()
    bound, back, ahead = sieves.sphere_bound(a, b, T, scene), tau[lane], tau[lanes + lane]
    if bound < ZERO:
        tau[lane] = sieves.COLLIDES
        return False, T, twist
    if not ask.moves:
        return bound == ZERO, T, twist
    if bound > max(back, ahead) * item(scratch.speeds, i):
        return False, T, twist
    twist = pair_twist(i, s, B, scene, scratch)
    back, ahead = sieves.sphere_horizons(a, b, T, closing_of(a, T, twist, scene), scene)
    shortens = back < tau[lane] or ahead < tau[lanes + lane]
    if shortens and (back < HALF * ask.back or ahead < HALF * ask.ahead):
        return True, T, twist
    tau[lane], tau[lanes + lane] = min(tau[lane], back), min(tau[lanes + lane], ahead)
    return False, T, twist


@lean_njit
def at_rest():
    """-> the `pair_twist` of a pair that does not move."""
    return Twist((ZERO, ZERO, ZERO), (ZERO, ZERO, ZERO), ZERO, ZERO, ZERO)


@lean_njit
def queue_pair(slot, code, T, scratch, lane):
    """Let a pair of this lane wait for the exact search."""
    slots = 2 * lane_count()
    store(scratch.items, slot, slots, T)
    set_item(scratch.codes, slot, code)
    set_item(scratch.codes, slots + slot, lane)


@lean_njit
def queue_twist(slot, twist, scratch):
    """Keep the `pair_twist` of a pair that waits."""
    items, slots = scratch.items, 2 * lane_count()
    at = POSE * slots + slot
    for k in range(3):
        set_item(items, at + k * slots, twist.v[k])
        set_item(items, at + (3 + k) * slots, twist.w[k])
    set_item(items, at + 6 * slots, twist.spin)
    set_item(items, at + 7 * slots, twist.speed)
    set_item(items, at + 8 * slots, twist.bend)


@lean_njit
def queued_twist(slot, scratch):
    """-> the `pair_twist` of a pair that waits."""
    items, slots = scratch.items, 2 * lane_count()
    at = POSE * slots + slot
    v = (item(items, at), item(items, at + slots), item(items, at + 2 * slots))
    w = (item(items, at + 3 * slots), item(items, at + 4 * slots), item(items, at + 5 * slots))
    return Twist(v, w, item(items, at + 6 * slots), item(items, at + 7 * slots), item(items, at + 8 * slots))


@lean_njit
def search(waiting, moves, scene, scratch, lane):
    """The exact search for the last of the waiting pairs, one a lane; -> how many are left. moves: of the Question"""
    tau, codes, lanes = scratch.tau, scratch.codes, lane_count()
    slot = waiting - 1 - lane
    sync_lanes()
    if slot >= 0:
        owner = int(item(codes, 2 * lanes + slot))
        back, ahead = item(tau, owner), item(tau, lanes + owner)
        if back >= ZERO:
            T = load(scratch.items, slot, 2 * lanes)
            a, b, _, _ = sieves.pair(int(item(codes, slot)), scene)
            sought = distance_sought(ZERO)
            if moves:
                sought = Sought(sieves.FAR, back, ahead, closing_of(a, T, queued_twist(slot, scratch), scene))
            apart = exact_separation(a, b, T, sought, scene)
            if apart.distance < ZERO:
                lower(tau, owner, sieves.COLLIDES)
            elif moves:
                if apart.back < back:
                    lower(tau, owner, apart.back)
                if apart.ahead < ahead:
                    lower(tau, lanes + owner, apart.ahead)
    sync_lanes()
    return max(waiting - lanes, 0)


@lean_njit
def pair_distance(code, scene, poses, margin):
    """CPU only, after `place_robot`: lower bound of the distance of a pair in its skins, or COLLIDES.

    A bound below `margin` is as tight as that of `separation`.
    """
    a, b, _, _ = sieves.pair(code, scene)
    T = relative_pose(a, b, scene, poses)
    bound = sieves.sphere_bound(a, b, T, scene)
    if bound < ZERO or bound > margin:
        return bound
    return exact_separation(a, b, T, distance_sought(margin), scene).distance
