"""For how long two shapes stay apart: from a gap along one direction, and how the shapes move there.

A motion q(t) = q0 + t (q1 - q0) is looked at in one configuration. There a unit vector S from shape A to shape B
separates them: along S the nearest points of A and B are a gap d apart. However A and B move, they do not meet while
the gap along that same S is positive, and what follows bounds how fast it closes.

S is held fixed in the outermost frame that carries both shapes (the world, for an obstacle). Seen from there, A's
points p move with v + w x (p - c), for a unit of t: c is the centre of A's ball, v its velocity, w A's angular
velocity. Since |p - c| is at most the ball's radius r, A closes the gap with at most

    u = S.v + r |S x w|,

to which B adds its own: v is taken relative to the centre of B's ball, and `spin` bounds the rest, r_B |w_B|. The
second derivative of p by the values of two frames, of which j carries k, is z_j x (dp / dq_k) where j turns and 0 where
it slides, and |dp / dq_k| is at most the reach of k (`reach.frame_reach`). Hence the acceleration is at most

    M = sum over k of |dq_k| reach_k (|dq_k| if k turns, and 2 |dq_j| for each turning j that carries k)

over the frames between the shape and the frame in which S is fixed; A's and B's are added. So after a step of s the gap
is at least d - u s - M s^2 / 2, which is positive for s < 2 d / (u + sqrt(u^2 + 2 M d)), and the same holds backwards
with -v for v. Another such s is d over the sum of |dq_k| reach_k, a bound on the speed in all configurations; the
larger counts.

This is the adaptive checking of Schwarzer, Saha and Latombe (IEEE T-RO 2005) with the velocity along the separating
direction, as in the conservative advancement of Tang, Kim and Manocha (ICRA 2009), and with a bound for what follows.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item
from ...parallel.team import lane_count
from ..geometry.poses import HALF, TWO, ZERO, cross, minus, moved, norm, turned_back
from .forward import angular_velocity, ball_velocity, own_ball
from .records import frame_count, moving_count, reach, robot_shape, self_pair, shape_frame, sphere_centre, sphere_radius
from .scratch import bends, rates

FOREVER = np.float32(1e30)
LEAST = np.float32(1e-30)
SLOP = np.float32(1e-5)  # rounding of velocities, relative to the bounds on the shapes' speeds


class Twist(NamedTuple):
    """What a Closing says that does not follow from the shapes and where they are: its v, w, spin, speed and bend."""

    v: tuple
    w: tuple
    spin: float
    speed: float
    bend: float


class Closing(NamedTuple):
    """How shape A of a pair moves as B sees it, for a unit of the motion parameter, in B's frame; metres.

    v, w: (3,) velocity of the centre of A's ball, angular velocity of A
    spin: what B's own turning, and rounding, add to the speed at most
    c: (3,) the centre; radius: of the ball
    speed: bounds the speed in all configurations; bend: bounds the second derivative
    """

    v: tuple
    w: tuple
    spin: float
    c: tuple
    radius: float
    speed: float
    bend: float


@lean_njit
def closing_of(a, T, twist, scene):
    """-> Closing of a pair. a: shape A; T: pose of A in B's frame; twist: of `pair_twist`"""
    v, w, spin, speed, bend = twist
    x, y, z = sphere_centre(scene, a, 0)
    return Closing(v, w, spin, moved(T, x, y, z), sphere_radius(scene, a, 0), speed, bend)


@lean_njit
def pair_bend(i, scene, speeds):
    """Bound on the second derivative of a pair's distance. i: its entry of `speeds`. `motions.set_speeds` keeps those
    of shapes; where several lanes share the work, all: one lane needs few of the others."""
    if lane_count() > 1 or i < moving_count(scene):
        return item(speeds, bends(scene) + i)
    return speed_and_bend(i, scene, speeds, rates(scene))[1]


@lean_njit
def speed_and_bend(i, scene, array, first):
    """Bound on the speed of a shape or self pair in all configurations, and `pair_bend`, M of this file's text. first:
    where the rates and turns of `motions.set_speeds` begin in the array"""
    frames = frame_count(scene)
    speed, bend, turned_a, turned_b = ZERO, ZERO, ZERO, ZERO
    for f in range(frames):
        lever, turns = reach(scene, i, f), item(array, first + frames + f)
        way = abs(lever * item(array, first + f))
        speed += way
        bend += way * (turns + TWO * (turned_a if lever > ZERO else turned_b))
        turned_a += turns if lever > ZERO else ZERO
        turned_b += turns if lever < ZERO else ZERO
    return speed, bend


@lean_njit
def pair_twist(i, s, B, scene, scratch):
    """-> Twist of a pair. i: its entry of `speeds`; s: A's number; B: pose of B in the world"""
    poses, speeds = scratch.poses, scratch.speeds
    v = ball_velocity(s, scene, poses)
    w = angular_velocity(shape_frame(scene, robot_shape(scene, s)), scene, poses)
    spin = SLOP * item(speeds, s)
    if i >= moving_count(scene):
        pair = self_pair(scene, i - moving_count(scene))
        v = ball_approach(pair, scene, poses)
        common = angular_velocity(pair.common, scene, poses)
        w = minus(w, common)
        b = robot_shape(scene, pair.b)
        turning = minus(angular_velocity(shape_frame(scene, b), scene, poses), common)
        spin += sphere_radius(scene, b, 0) * norm(turning)
        if pair.b < moving_count(scene):
            spin += SLOP * item(speeds, pair.b)
    v, w = turned_back(B, v[0], v[1], v[2]), turned_back(B, w[0], w[1], w[2])
    return Twist(v, w, spin, item(speeds, i), pair_bend(i, scene, speeds))


@lean_njit
def ball_approach(pair, scene, poses):
    """Velocity of A's ball less that of B's, as the frame sees it that carries both; in the world's directions."""
    kept = lane_count() == 1
    apart = minus(own_ball(pair.a, kept, scene, poses), own_ball(pair.b, kept, scene, poses))
    turned = cross(angular_velocity(pair.common, scene, poses), apart)
    return minus(minus(ball_velocity(pair.a, scene, poses), ball_velocity(pair.b, scene, poses)), turned)


@lean_njit
def travel(v, slop, speed, bend, span):
    """Metres that the centre of a ball of velocity v moves at most within a span of the motion parameter."""
    return span * min(speed, norm(v) + slop + HALF * bend * span)


@lean_njit
def horizons(gap, S, closing):
    """For how long, back and ahead, a gap > 0 of the pair along the unit vector S from A to B lasts."""
    along = S[0] * closing.v[0] + S[1] * closing.v[1] + S[2] * closing.v[2]
    turning = closing.radius * norm(cross(S, closing.w)) + closing.spin
    return lasts(gap, turning - along, closing), lasts(gap, turning + along, closing)


@lean_njit
def ball_horizons(gap, S, centre, closing):
    """`horizons` of the gap between B and a ball that covers a part of A, at `centre` in B's frame."""
    x, y, z = cross(closing.w, minus(centre, closing.c))
    along = S[0] * (closing.v[0] + x) + S[1] * (closing.v[1] + y) + S[2] * (closing.v[2] + z)
    return lasts(gap, closing.spin - along, closing), lasts(gap, closing.spin + along, closing)


@lean_njit
def lasts(gap, rate, closing):
    """For how long a gap lasts that closes with at most `rate` now."""
    rate = max(rate, ZERO)
    soon = TWO * gap / max(rate + math.sqrt(rate * rate + TWO * closing.bend * gap), LEAST)
    return max(soon, gap / max(closing.speed, LEAST))
