"""Configurations that put a link at a pose: Levenberg-Marquardt in float64, as compiled code, from many starts at once.

Damped by the residual itself (Sugihara, "Solvability-Unconcerned Inverse Kinematics by the Levenberg-Marquardt
Method", IEEE T-RO 2011, eq. 22), which needs no tuning near singular configurations. The step is
J^T (J J^T + damping)^-1 r, so its system has six rows, however many joints there are. A joint at a limit is held where
the step would push it beyond.

Tolerances are regions. The cost of each part of the residual, position and orientation, is its squared distance to the
ball of half its tolerance. Inside that ball a part pulls at no joint.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ..geometry.poses import POSE, load
from .chain import ENDLESS, place

GAIN = 0.1  # of the squared residual that is the damping
LEAST = 1e-9  # added to it
STALLED = 5  # iterations in which the cost must fall
FALL = 0.5  # to this part of what it was
ITERATIONS = 64
HOLDS = 4  # times that a step is taken again without the joints that it would push out of their limits


class Tolerances(NamedTuple):
    """Of position, in units of the chain's reach, and of angle, rad; an infinite one asks for nothing."""

    position: float
    angle: float


class SearchScratch(NamedTuple):
    """What a search needs to work with, float64.

    q, step: (n,); axes: (F, 6) z axis and origin of each frame; columns: (n, 6) of the Jacobian; system: (6, 6);
    residual, solution: (6,)
    """

    q: np.ndarray
    step: np.ndarray
    axes: np.ndarray
    columns: np.ndarray
    system: np.ndarray
    residual: np.ndarray
    solution: np.ndarray


@lean_njit
def search(chain, goal, tolerances, scratch):
    """Lead scratch.q to the goal -> (whether it is within the tolerances, distance, angle).

    goal: (12,) pose of the link in the root frame, its translation in units of the reach
    """
    q, residual = scratch.q, scratch.residual
    best, since = np.inf, 0
    for _ in range(ITERATIONS):
        distance, angle = miss(place(chain, q, scratch.axes), goal, residual)
        if distance <= tolerances.position and angle <= tolerances.angle:
            return True, distance, angle
        fill_columns(chain, goal, residual, scratch)
        cost = draw(residual[:3], scratch.columns[:, :3], distance, tolerances.position)
        cost += draw(residual[3:], scratch.columns[:, 3:], angle, tolerances.angle)
        since += 1
        if cost < FALL * best:
            best, since = cost, 0
        if since > STALLED:
            break
        take_step(chain, GAIN * cost + LEAST, scratch)
    return False, distance, angle


@lean_njit
def miss(T, goal, residual):
    """-> distance and angle between a pose and the goal; writes the shift and the rotation vector that lead there."""
    G = load(goal, 0, 1)
    x, y, z = G[9] - T[9], G[10] - T[10], G[11] - T[11]
    residual[0], residual[1], residual[2] = x, y, z
    distance = math.sqrt(x * x + y * y + z * z)
    # R = G T^-1, and its quaternion (w, i, j, k) by the largest of four components (Shepperd)
    xx, yy, zz = row_product(G, 0, T, 0), row_product(G, 3, T, 3), row_product(G, 6, T, 6)
    xy, yx = row_product(G, 0, T, 3), row_product(G, 3, T, 0)
    yz, zy = row_product(G, 3, T, 6), row_product(G, 6, T, 3)
    zx, xz = row_product(G, 6, T, 0), row_product(G, 0, T, 6)
    trace = xx + yy + zz
    if trace >= xx and trace >= yy and trace >= zz:
        w, i, j, k = 1 + trace, zy - yz, xz - zx, yx - xy
    elif xx >= yy and xx >= zz:
        w, i, j, k = zy - yz, 1 + xx - yy - zz, xy + yx, xz + zx
    elif yy >= zz:
        w, i, j, k = xz - zx, xy + yx, 1 + yy - xx - zz, yz + zy
    else:
        w, i, j, k = yx - xy, xz + zx, yz + zy, 1 + zz - xx - yy
    if w < 0:
        w, i, j, k = -w, -i, -j, -k
    sine = math.sqrt(i * i + j * j + k * k)
    angle = 2 * math.atan2(sine, w)
    scale = angle / sine if sine > 0 else 0.0
    residual[3], residual[4], residual[5] = scale * i, scale * j, scale * k
    return distance, angle


@lean_njit
def row_product(A, a, B, b):
    """Dot product of rows of two rotations, which begin at A[a] and B[b]."""
    return A[a] * B[b] + A[a + 1] * B[b + 1] + A[a + 2] * B[b + 2]


@lean_njit
def fill_columns(chain, goal, residual, scratch):
    """Write the Jacobian of the link's origin, one row for each joint; frames that follow one joint add up."""
    columns, axes = scratch.columns, scratch.axes
    columns[:] = 0.0
    tx, ty, tz = goal[9] - residual[0], goal[10] - residual[1], goal[11] - residual[2]
    for f in range(len(chain.joints)):
        column, m = columns[chain.joints[f, 0]], chain.frames[f, POSE]
        x, y, z = m * axes[f, 0], m * axes[f, 1], m * axes[f, 2]
        if chain.joints[f, 1] != 0:
            column[0] += x
            column[1] += y
            column[2] += z
        else:
            px, py, pz = tx - axes[f, 3], ty - axes[f, 4], tz - axes[f, 5]
            column[0] += y * pz - z * py
            column[1] += z * px - x * pz
            column[2] += x * py - y * px
            column[3] += x
            column[4] += y
            column[5] += z


@lean_njit
def draw(part, columns, size, tolerance):
    """Draw a part of the residual, of a size, to the ball of half its tolerance -> its cost, squared distance to it.

    part: (3,); columns: (n, 3). Both are multiplied by roots of the cost's second derivative: 1 along the part,
    1 - ball / size across it.
    """
    ball = tolerance / 2
    if size <= ball:
        part[:] = 0.0
        columns[:] = 0.0
        return 0.0
    far = 1 - ball / size
    across = math.sqrt(far)
    for k in range(len(columns)):
        column = columns[k]
        along = (1 - across) * (part[0] * column[0] + part[1] * column[1] + part[2] * column[2]) / (size * size)
        for i in range(3):
            column[i] = across * column[i] + along * part[i]
    for i in range(3):
        part[i] *= far
    return (far * size) ** 2


@lean_njit
def take_step(chain, damping, scratch):
    """Move q by one damped step and keep it within the limits."""
    q, step, columns = scratch.q, scratch.step, scratch.columns
    for _ in range(HOLDS):
        damped_step(damping, scratch)
        held = False
        for k in range(len(q)):
            lower, upper = chain.limits[0, k], chain.limits[1, k]
            beyond = (q[k] <= lower and step[k] < 0) or (q[k] >= upper and step[k] > 0)
            if beyond and chain.kinds[k] != ENDLESS:
                columns[k] = 0.0
                held = True
        if not held:
            break
    for k in range(len(q)):
        q[k] += step[k]
        if chain.kinds[k] != ENDLESS:
            q[k] = min(max(q[k], chain.limits[0, k]), chain.limits[1, k])


@lean_njit
def damped_step(damping, scratch):
    """step = J^T (J J^T + damping)^-1 residual, by Cholesky's method."""
    step, columns, A, y = scratch.step, scratch.columns, scratch.system, scratch.solution
    for i in range(6):
        for j in range(i + 1):
            A[i, j] = damping if i == j else 0.0
    for k in range(len(columns)):
        column = columns[k]
        for i in range(6):
            for j in range(i + 1):
                A[i, j] += column[i] * column[j]
    for i in range(6):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
            A[i, i] -= A[i, j] * A[i, j]
        A[i, i] = math.sqrt(A[i, i])
    for i in range(6):
        y[i] = scratch.residual[i]
        for j in range(i):
            y[i] -= A[i, j] * y[j]
        y[i] /= A[i, i]
    for i in range(5, -1, -1):
        for j in range(i + 1, 6):
            y[i] -= A[j, i] * y[j]
        y[i] /= A[i, i]
    for k in range(len(step)):
        step[k] = 0.0
        for i in range(6):
            step[k] += columns[k, i] * y[i]


@njit
def new_scratch(chain):
    f, n = len(chain.joints), len(chain.kinds)
    return SearchScratch(
        np.empty(n), np.empty(n), np.empty((f, 6)), np.empty((n, 6)), np.empty((6, 6)), np.empty(6), np.empty(6)
    )
