"""Samples of `rrt` and `rrt_star`: uniform, at a goal, or where a shorter path than the best one may pass."""

import math

import numpy as np

from ..device import njit
from .sampling import uniform01
from .tree_buffers import (
    BEST,
    DOF,
    FAR,
    GOAL_BIAS,
    GOAL_RADIUS,
    GOALS,
    INFORMED,
    LOG_BALL,
    LOG_MEASURE,
    UNREACHED,
    ZERO,
    between,
    distance,
    first_node,
    place,
)

DRAWS = 16  # informed samples drawn until one lies within the limits
HALF, ONE, TWO, TAU = np.float32(0.5), np.float32(1), np.float32(2), np.float32(2 * math.pi)
TINY = np.float32(1e-12)


@njit
def draw(T, seed, number, b, batch, q):
    """q (dof,) becomes sample `number`, scaled: uniform, or informed once a path is known. The first sample of a round may be a
    goal that is not reached: `goal_bias` of the samples, but one of a round at most, since all of them would do the same."""
    dof, goals = len(q), T.N[GOALS]
    if b == 0 and uniform01(seed, number, dof) < T.A[GOAL_BIAS] * np.float32(batch):
        g = int(uniform01(seed, number, dof + 1) * np.float32(goals))
        if T.N[T.parent + g] == UNREACHED:
            for k in range(dof):
                q[k] = T.A[place(T, g, k)]
            return
    if T.N[INFORMED] != 0 and T.A[BEST] < FAR and draw_informed(T, seed, number, q):
        return
    draw_uniform(T, seed, number, 0, q)


@njit
def draw_uniform(T, seed, number, coordinate, q):
    for k in range(len(q)):
        q[k] = T.A[T.lower + k] + (T.A[T.upper + k] - T.A[T.lower + k]) * uniform01(seed, number, coordinate + k)


@njit
def draw_informed(T, seed, number, q):
    """q becomes a point that a better path may pass: uniform in the prolate hyperspheroid with foci start and goal, within the
    limits (Gammell, Srinivasa and Barfoot, IROS 2014); -> False when DRAWS tries found none. Drawn from whichever is smaller,
    hyperspheroid or box, and refused outside the other. The axis is turned by a Householder reflection, not a rotation."""
    dof, goals, first = len(q), T.N[GOALS], first_node(T)
    longest = T.A[BEST] + T.A[GOAL_RADIUS]
    g = int(uniform01(seed, number, 2 * dof + 2) * np.float32(goals))
    for _ in range(goals):
        if between(T, first, g) < longest:
            break
        g = (g + 1) % goals
    apart = between(T, first, g)
    smaller = log_ellipsoid(T, g) < T.A[LOG_MEASURE]
    for draws in range(1, DRAWS + 1):
        coordinate = draws * (2 * dof + 3)
        if not smaller:
            draw_uniform(T, seed, number, coordinate, q)
            if distance(T, first, q) + distance(T, g, q) < longest:
                return True
            continue
        draw_in_ball(seed, number, coordinate, q)
        q[0] *= HALF * longest
        for k in range(1, dof):
            q[k] *= HALF * math.sqrt(max(longest * longest - apart * apart, ZERO))
        turn(T, first, g, apart, q)
        within = True
        for k in range(dof):
            q[k] += HALF * (T.A[place(T, first, k)] + T.A[place(T, g, k)])
            within = within and q[k] >= T.A[T.lower + k] and q[k] <= T.A[T.upper + k]
        if within:
            return True
    return False


@njit
def draw_in_ball(seed, number, coordinate, q):
    """q becomes uniform in the unit ball: normal numbers by Box and Muller give the direction."""
    dof, squared = len(q), ZERO
    for k in range(0, dof, 2):
        radius = math.sqrt(-TWO * math.log(ONE - uniform01(seed, number, coordinate + k)))
        angle = TAU * uniform01(seed, number, coordinate + k + 1)
        q[k] = radius * math.cos(angle)
        squared += q[k] * q[k]
        if k + 1 < dof:
            q[k + 1] = radius * math.sin(angle)
            squared += q[k + 1] * q[k + 1]
    length = uniform01(seed, number, coordinate + dof + 1) ** (ONE / np.float32(dof)) / math.sqrt(max(squared, TINY))
    for k in range(dof):
        q[k] *= length


@njit
def turn(T, first, g, apart, q):
    """Reflect q so that the first axis points from the start to goal g: q - 2 v (v q) / (v v), v = e_1 - axis."""
    vq, vv = ZERO, ZERO
    for k in range(len(q)):
        v = reflector(T, first, g, apart, k)
        vq += v * q[k]
        vv += v * v
    if vv > TINY:
        for k in range(len(q)):
            q[k] -= TWO * vq / vv * reflector(T, first, g, apart, k)


@njit
def reflector(T, first, g, apart, k):
    axis = (T.A[place(T, g, k)] - T.A[place(T, first, k)]) / max(apart, TINY)
    return (ONE if k == 0 else ZERO) - axis


@njit
def log_ellipsoid(T, g):
    """Logarithm of the informed set's measure for goal g; very small when no better path to that goal exists."""
    longest, apart = T.A[BEST] + T.A[GOAL_RADIUS], between(T, first_node(T), g)
    if longest <= apart:
        return -FAR
    across = HALF * math.sqrt(longest * longest - apart * apart)
    return T.A[LOG_BALL] + math.log(HALF * longest) + np.float32(T.N[DOF] - 1) * math.log(max(across, TINY))
