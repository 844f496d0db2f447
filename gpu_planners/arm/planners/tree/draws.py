"""Samples of `rrt` and `rrt_star`: uniform, at a goal, or where a shorter path than the best one may pass."""

import math

import numpy as np

from ....device import lean_njit
from ....parallel.sampling import uniform01
from ..node_store import FAR, ONE, ZERO, load, place, squared_distance
from .state import UNREACHED, apart, first_node

DRAWS = 16  # informed samples drawn until one lies within the limits
HALF, TWO, TAU = np.float32(0.5), np.float32(2), np.float32(2 * math.pi)
TINY = np.float32(1e-12)


@lean_njit
def draw(g, seed, number, first, batch, q):
    """q (dof,) becomes sample `number`, scaled: uniform, or informed once a path is known.

    first: is it the first one of a round of `batch`? That may be a goal that is not reached: `goal_bias` of the
    samples, but one of a round at most, since all of them would do the same.
    """
    dof, goals = len(q), g.ask.goals
    if first and uniform01(seed, number, dof) < g.ask.goal_bias * np.float32(batch):
        goal = int(uniform01(seed, number, dof + 1) * np.float32(goals))
        if g.tree.parent[goal] == UNREACHED:
            load(g.tree.nodes, goal, q)
            return
    if g.ask.informed and g.board.best[0] < FAR and draw_informed(g, seed, number, q):
        return
    draw_uniform(g, seed, number, 0, q)


@lean_njit
def draw_uniform(g, seed, number, coordinate, q):
    """q (dof,) becomes uniform in the box, by the random numbers from `coordinate` on."""
    for k in range(len(q)):
        q[k] = g.tree.lower[k] + (g.tree.upper[k] - g.tree.lower[k]) * uniform01(seed, number, coordinate + k)


@lean_njit
def draw_informed(g, seed, number, q):
    """q becomes a point that a better path may pass -> False when DRAWS tries found none.

    Uniform in the prolate hyperspheroid with foci start and goal, within the limits (Gammell, Srinivasa and Barfoot,
    IROS 2014). Drawn from whichever is smaller, hyperspheroid or box, and refused outside the other. The axis is turned
    by a Householder reflection, not a rotation.
    """
    dof, goals, start = len(q), g.ask.goals, first_node(g)
    longest = g.board.best[0] + g.ask.goal_radius
    goal = int(uniform01(seed, number, 2 * dof + 2) * np.float32(goals))
    for _ in range(goals):
        if apart(g, start, goal) < longest:
            break
        goal = (goal + 1) % goals
    focal = apart(g, start, goal)
    smaller = log_ellipsoid(g, goal) < g.ask.log_measure
    for draws in range(1, DRAWS + 1):
        coordinate = draws * (2 * dof + 3)
        if not smaller:
            draw_uniform(g, seed, number, coordinate, q)
            to_start, to_goal = squared_distance(g.tree.nodes, start, q), squared_distance(g.tree.nodes, goal, q)
            if math.sqrt(to_start) + math.sqrt(to_goal) < longest:
                return True
            continue
        draw_in_ball(seed, number, coordinate, q)
        q[0] *= HALF * longest
        for k in range(1, dof):
            q[k] *= HALF * math.sqrt(max(longest * longest - focal * focal, ZERO))
        turn(g, start, goal, focal, q)
        within = True
        for k in range(dof):
            q[k] += HALF * (g.tree.nodes[place(start, k, dof)] + g.tree.nodes[place(goal, k, dof)])
            within = within and q[k] >= g.tree.lower[k] and q[k] <= g.tree.upper[k]
        if within:
            return True
    return False


@lean_njit
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


@lean_njit
def turn(g, start, goal, focal, q):
    """Reflect q so that the first axis points from the start to a goal: q - 2 v (v q) / (v v), v = e_1 - axis."""
    vq, vv = ZERO, ZERO
    for k in range(len(q)):
        v = reflector(g, start, goal, focal, k)
        vq += v * q[k]
        vv += v * v
    if vv > TINY:
        for k in range(len(q)):
            q[k] -= TWO * vq / vv * reflector(g, start, goal, focal, k)


@lean_njit
def reflector(g, start, goal, focal, k):
    """Component k of v."""
    dof = g.ask.dof
    axis = (g.tree.nodes[place(goal, k, dof)] - g.tree.nodes[place(start, k, dof)]) / max(focal, TINY)
    return (ONE if k == 0 else ZERO) - axis


@lean_njit
def log_ellipsoid(g, goal):
    """Logarithm of the informed set's measure for a goal; very small when no better path to that goal exists."""
    longest, focal = g.board.best[0] + g.ask.goal_radius, apart(g, first_node(g), goal)
    if longest <= focal:
        return -FAR
    across = HALF * math.sqrt(longest * longest - focal * focal)
    return g.ask.log_ball + math.log(HALF * longest) + np.float32(g.ask.dof - 1) * math.log(max(across, TINY))
