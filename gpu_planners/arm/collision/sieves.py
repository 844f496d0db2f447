"""The sieves that a pair of shapes passes before the exact search: balls, then covering spheres and bounding volumes.

All are lower bounds of the distance of two shapes in their skins, or, where balls inside both overlap, proofs that they
collide. A pair has a number: moving shape x obstacle first, then the robot's self pairs.
"""

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item
from ..geometry.kinds import POLYTOPE, bound_distance, bound_offset
from ..geometry.poses import ZERO, moved, norm, seen_from
from . import records
from .broad_phase import SURE
from .closing import FOREVER, SLOP, ball_approach, ball_horizons, pair_bend, travel
from .forward import ball_velocity, own_ball
from .scratch import bends, shared_balls, triple

FAR = np.float32(1e30)
COLLIDES = np.float32(-1.0)


@lean_njit
def pair(code, scene):
    """A pair by its number -> shapes A and B (records), which entry of `speeds` is the pair's, and A's number."""
    obstacles = records.obstacle_count(scene)
    p = code - records.moving_count(scene) * obstacles
    if p < 0:
        s = np.int64(np.uint32(code) // np.uint32(obstacles))
        return records.robot_shape(scene, s), records.obstacle(scene, code - s * obstacles), s, s
    both = records.self_pair(scene, p)
    a, b = records.robot_shape(scene, both.a), records.robot_shape(scene, both.b)
    return a, b, records.moving_count(scene) + p, both.a


@lean_njit
def ball_radius(s, scene):
    """Radius of the coarse sphere of the robot's shape s."""
    return records.sphere_radius(scene, records.robot_shape(scene, s), 0)


@lean_njit
def within(a, b, distance):
    """Are two points at most `distance` apart?"""
    x, y, z = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    return x * x + y * y + z * z <= distance * distance


@lean_njit
def obstacle_near(k, centre, radius, scene):
    """First sieve: does a ball in the world reach ball k and the bounding volume of its obstacle?"""
    x, y, z, r = records.obstacle_ball(scene, k)
    if not within(centre, (x, y, z), r + radius):
        return False
    shape = records.obstacle(scene, records.ball_owner(scene, k))
    x, y, z = seen_from(records.shape_pose(scene, shape), centre[0], centre[1], centre[2])
    hx, hy, hz = records.shape_half(scene, shape)
    distance = bound_distance(records.shape_kind(scene, shape), hx, hy, hz, x, y, z)
    return distance - records.shape_skin(scene, shape) <= radius


@lean_njit
def self_pair_near(p, spread, speeds, scene):
    """First sieve: can the balls of self pair p meet within `spread` of the motion parameter, however the robot moves,
    from where `share_place` showed them?"""
    both, balls = records.self_pair(scene, p), shared_balls(scene)
    way = spread * item(speeds, records.moving_count(scene) + p)
    apart = way + ball_radius(both.a, scene) + ball_radius(both.b, scene)
    return within(triple(speeds, balls, both.a), triple(speeds, balls, both.b), apart + SURE)


@lean_njit
def self_pair_meets(p, spread, kept, scene, scratch):
    """First sieve: can the balls of self pair p meet within `spread`, as the robot stands and moves? kept: of
    `own_ball`"""
    poses, speeds, i = scratch.poses, scratch.speeds, records.moving_count(scene) + p
    both = records.self_pair(scene, p)
    a, b = own_ball(both.a, kept, scene, poses), own_ball(both.b, kept, scene, poses)
    radii = ball_radius(both.a, scene) + ball_radius(both.b, scene)
    if not within(a, b, spread * item(speeds, i) + radii + SURE):
        return False
    if spread <= ZERO:
        return True
    slop = item(speeds, both.a) + (item(speeds, both.b) if both.b < records.moving_count(scene) else ZERO)
    way = travel(ball_approach(both, scene, poses), SLOP * slop, item(speeds, i), pair_bend(i, scene, speeds), spread)
    return within(a, b, way + radii)


@lean_njit
def ball_reach(s, spread, scene, scratch):
    """How far the ball of shape s comes from where its centre is, within `spread` of the motion parameter."""
    poses, speeds, radius = scratch.poses, scratch.speeds, ball_radius(s, scene)
    if spread <= ZERO:
        return radius
    v = ball_velocity(s, scene, poses)
    return radius + travel(v, SLOP * item(speeds, s), item(speeds, s), item(speeds, bends(scene) + s), spread)


@lean_njit
def sphere_bound(a, b, T, scene):
    """Second sieve: lower bound of the distance of A and B in their skins, from A's covering spheres and B's bounding
    volume; 0 where they say nothing, COLLIDES where a ball inside A proves that they meet. T: pose of A in B's frame"""
    kind, skin = records.shape_kind(scene, b), records.shape_skin(scene, b)
    hx, hy, hz = records.shape_half(scene, b)
    fine = records.fine_sphere_count(scene, a)
    bound = FAR
    for k in range(max(fine, 1)):
        sphere = k + 1 if fine > 0 else 0
        x, y, z = records.sphere_centre(scene, a, sphere)
        x, y, z = moved(T, x, y, z)
        distance = bound_distance(kind, hx, hy, hz, x, y, z)
        if kind != POLYTOPE and distance < records.inner_radius(scene, a, sphere) - SURE:
            return COLLIDES
        bound = min(bound, max(distance - records.sphere_radius(scene, a, sphere) - skin, ZERO))
    return bound


@lean_njit
def sphere_horizons(a, b, T, closing, scene):
    """For how long, back and ahead, A's covering spheres stay away from B's bounding volume, both in their skins; 0
    where they say nothing. After `sphere_bound`."""
    kind, skin = records.shape_kind(scene, b), records.shape_skin(scene, b)
    hx, hy, hz = records.shape_half(scene, b)
    fine = records.fine_sphere_count(scene, a)
    back, ahead = FOREVER, FOREVER
    for k in range(max(fine, 1)):
        sphere = k + 1 if fine > 0 else 0
        x, y, z = records.sphere_centre(scene, a, sphere)
        x, y, z = moved(T, x, y, z)
        u, v, w = bound_offset(kind, hx, hy, hz, x, y, z)
        distance = norm((u, v, w))
        gap = distance - records.sphere_radius(scene, a, sphere) - skin
        if gap <= ZERO:
            return ZERO, ZERO
        S = (-u / distance, -v / distance, -w / distance)
        one, other = ball_horizons(gap, S, (x, y, z), closing)
        back, ahead = min(back, one), min(ahead, other)
    return back, ahead


@lean_njit
def inner_balls_meet(a, b, T, scene):
    """Do balls inside A and inside B overlap? Then they collide. T: pose of A in B's frame"""
    for k in range(records.fine_sphere_count(scene, a) + 1):
        x, y, z = records.sphere_centre(scene, a, k)
        x, y, z = moved(T, x, y, z)
        inner_a = records.inner_radius(scene, a, k)
        for m in range(records.fine_sphere_count(scene, b) + 1):
            u, v, w = records.sphere_centre(scene, b, m)
            u, v, w = u - x, v - y, w - z
            inner_b = records.inner_radius(scene, b, m)
            reach = inner_a + inner_b - SURE
            if min(inner_a, inner_b) > ZERO and u * u + v * v + w * w < reach * reach:
                return True
    return False
