"""Rigid poses in compiled code: 12 scalars in a tuple, the rotation by rows, then the translation.

Tuples stay in registers, where arrays would go through memory.
"""

import math

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item, set_item

POSE = 12  # scalars of a pose
ZERO, HALF, ONE, TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)


@lean_njit
def identity():
    return (ONE, ZERO, ZERO, ZERO, ONE, ZERO, ZERO, ZERO, ONE, ZERO, ZERO, ZERO)


@lean_njit
def load(array, first, stride):
    """The pose whose scalars are array[first], array[first + stride], ..."""
    return (
        item(array, first),
        item(array, first + stride),
        item(array, first + 2 * stride),
        item(array, first + 3 * stride),
        item(array, first + 4 * stride),
        item(array, first + 5 * stride),
        item(array, first + 6 * stride),
        item(array, first + 7 * stride),
        item(array, first + 8 * stride),
        item(array, first + 9 * stride),
        item(array, first + 10 * stride),
        item(array, first + 11 * stride),
    )


@lean_njit
def store(array, first, stride, T):
    """Write a pose to where `load` reads it."""
    for k in range(POSE):
        set_item(array, first + k * stride, T[k])


@lean_njit
def compose(P, Q):
    """P @ Q."""
    return (
        P[0] * Q[0] + P[1] * Q[3] + P[2] * Q[6],
        P[0] * Q[1] + P[1] * Q[4] + P[2] * Q[7],
        P[0] * Q[2] + P[1] * Q[5] + P[2] * Q[8],
        P[3] * Q[0] + P[4] * Q[3] + P[5] * Q[6],
        P[3] * Q[1] + P[4] * Q[4] + P[5] * Q[7],
        P[3] * Q[2] + P[4] * Q[5] + P[5] * Q[8],
        P[6] * Q[0] + P[7] * Q[3] + P[8] * Q[6],
        P[6] * Q[1] + P[7] * Q[4] + P[8] * Q[7],
        P[6] * Q[2] + P[7] * Q[5] + P[8] * Q[8],
        P[0] * Q[9] + P[1] * Q[10] + P[2] * Q[11] + P[9],
        P[3] * Q[9] + P[4] * Q[10] + P[5] * Q[11] + P[10],
        P[6] * Q[9] + P[7] * Q[10] + P[8] * Q[11] + P[11],
    )


@lean_njit
def relative(P, Q):
    """P^-1 @ Q: the pose Q seen from P."""
    x, y, z = seen_from(P, Q[9], Q[10], Q[11])
    return (
        P[0] * Q[0] + P[3] * Q[3] + P[6] * Q[6],
        P[0] * Q[1] + P[3] * Q[4] + P[6] * Q[7],
        P[0] * Q[2] + P[3] * Q[5] + P[6] * Q[8],
        P[1] * Q[0] + P[4] * Q[3] + P[7] * Q[6],
        P[1] * Q[1] + P[4] * Q[4] + P[7] * Q[7],
        P[1] * Q[2] + P[4] * Q[5] + P[7] * Q[8],
        P[2] * Q[0] + P[5] * Q[3] + P[8] * Q[6],
        P[2] * Q[1] + P[5] * Q[4] + P[8] * Q[7],
        P[2] * Q[2] + P[5] * Q[5] + P[8] * Q[8],
        x,
        y,
        z,
    )


@lean_njit
def moved(T, x, y, z):
    """T @ point."""
    return (
        T[0] * x + T[1] * y + T[2] * z + T[9],
        T[3] * x + T[4] * y + T[5] * z + T[10],
        T[6] * x + T[7] * y + T[8] * z + T[11],
    )


@lean_njit
def turned_back(T, x, y, z):
    """The direction (x, y, z) seen from T."""
    return (T[0] * x + T[3] * y + T[6] * z, T[1] * x + T[4] * y + T[7] * z, T[2] * x + T[5] * y + T[8] * z)


@lean_njit
def plus(u, v):
    return (u[0] + v[0], u[1] + v[1], u[2] + v[2])


@lean_njit
def minus(u, v):
    return (u[0] - v[0], u[1] - v[1], u[2] - v[2])


@lean_njit
def norm(u):
    return math.sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2])


@lean_njit
def cross(u, v):
    return (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])


@lean_njit
def seen_from(T, x, y, z):
    """T^-1 @ point."""
    return turned_back(T, x - T[9], y - T[10], z - T[11])
