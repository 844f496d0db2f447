"""Inverse dynamics: recursive Newton-Euler over the frames of a robot, and a bound of how fast its answer changes.

Luh, Walker, Paul: On-line computational scheme for mechanical manipulators, 1980. Each frame's vectors are in its own
axes and about its own origin, with first moments h = m c, so that nothing is divided by a mass. With w, e the angular
velocity and acceleration of a frame, and b the acceleration of its origin, which begins as -g at the root,

    force  f = m b + e x h + w x (w x h)        moment  n = h x b + I e + w x (I w)

A frame that mimics a joint adds its torque, times its multiplier, to that of the joint.

`_rates` does the same with bounds of lengths. In a frame's own axes h and I are constant. A vector x that goes from
one frame's axes to the next over a joint turned by u changes by no more than |dx/dt| + |du/dt| |x|. So bounds of the
joints' speeds and their first two derivatives bound |w|, |e|, |b|, |f|, |n| and their derivatives, and a torque changes
no faster than the force or moment that it is a component of.
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit

ROW = 18  # numbers of a frame: w, e, b, f, n, then sine, cosine and slide of its joint
BOUND = 10  # numbers of a frame: bounds of |w|, |e|, |b|, |f|, |n|, of the derivatives of e, b, f, n, and of its origin
DEEPEST = 60  # halvings of an interval, at most
MOST = 0.999  # of the share where a limit is not proven to be kept
NARROW = 1e-4  # share of a limit: what the torque changes in an interval that is not halved any more


class Bodies(NamedTuple):
    """F frames, each with what is fixed to it.

    fixed: (F, 12) pose of each frame in its parent where its value is 0: the rotation by rows, then the translation, m
    links: (F, 3) int32 parent (-1: the root), joint, and 1 where the frame slides along its z axis instead of turning
    values: (F, 2) multiplier of the joint, and offset
    inertia: (F, 10) mass, first moment, inertia about the frame's origin by xx, xy, xz, yy, yz, zz: kg, kg m, kg m^2
    sizes: (F, 3) bounds of the translation's length, of the first moment and of what the inertia makes of a unit vector
    gravity: (3,) in the root's axes, m/s^2
    """

    fixed: np.ndarray
    links: np.ndarray
    values: np.ndarray
    inertia: np.ndarray
    sizes: np.ndarray
    gravity: np.ndarray


class Sharings(NamedTuple):
    """Of each piece of a motion whether its torques keep their limits.

    share: (K,) of the torque that moves it, for which what holds it leaves room: 1 where the limits are proven to be
        kept, less where they are not; 0 or less where it could not even be held
    joint: (K,) int32 the joint that this is about; torque: (K,) its torque there, N m or N
    """

    share: np.ndarray
    joint: np.ndarray
    torque: np.ndarray


@lean_njit
def _cross(x, y):
    return x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]


@lean_njit
def _plus(x, y):
    return x[0] + y[0], x[1] + y[1], x[2] + y[2]


@lean_njit
def _three(row, first):
    return row[first], row[first + 1], row[first + 2]


@lean_njit
def _keep(row, first, x):
    row[first], row[first + 1], row[first + 2] = x[0], x[1], x[2]


@lean_njit
def _into(R, sine, cosine, x):
    """A vector of the parent's axes in those of a frame."""
    u = R[0] * x[0] + R[3] * x[1] + R[6] * x[2]
    v = R[1] * x[0] + R[4] * x[1] + R[7] * x[2]
    return cosine * u + sine * v, cosine * v - sine * u, R[2] * x[0] + R[5] * x[1] + R[8] * x[2]


@lean_njit
def _out_of(R, sine, cosine, x):
    """A vector of a frame's axes in those of its parent."""
    u, v = cosine * x[0] - sine * x[1], sine * x[0] + cosine * x[1]
    return (R[0] * u + R[1] * v + R[2] * x[2], R[3] * u + R[4] * v + R[5] * x[2], R[6] * u + R[7] * v + R[8] * x[2])


@lean_njit
def _origin(R, slide):
    """A frame's origin in its parent's axes."""
    return R[9] + slide * R[2], R[10] + slide * R[5], R[11] + slide * R[8]


@lean_njit
def _times(inertia, x):
    return (
        inertia[4] * x[0] + inertia[5] * x[1] + inertia[6] * x[2],
        inertia[5] * x[0] + inertia[7] * x[1] + inertia[8] * x[2],
        inertia[6] * x[0] + inertia[8] * x[1] + inertia[9] * x[2],
    )


@lean_njit
def _torques(bodies, q, v, a, rows, torques):
    """Write the joints' torques (dof,) for q, v, a (dof,). rows: (F, ROW)"""
    count = len(bodies.links)
    for f in range(count):
        parent, joint, slides = bodies.links[f, 0], bodies.links[f, 1], bodies.links[f, 2] != 0
        R, row, inertia, multiplier = bodies.fixed[f], rows[f], bodies.inertia[f], bodies.values[f, 0]
        value = multiplier * q[joint] + bodies.values[f, 1]
        speed, push = multiplier * v[joint], multiplier * a[joint]
        w = e = (0.0, 0.0, 0.0)
        b = (-bodies.gravity[0], -bodies.gravity[1], -bodies.gravity[2])
        if parent >= 0:
            w, e, b = _three(rows[parent], 0), _three(rows[parent], 3), _three(rows[parent], 6)
        sine, cosine, slide = 0.0, 1.0, value
        if not slides:
            sine, cosine, slide = math.sin(value), math.cos(value), 0.0
        p = _origin(R, slide)
        b = _into(R, sine, cosine, _plus(b, _plus(_cross(e, p), _cross(w, _cross(w, p)))))
        w, e = _into(R, sine, cosine, w), _into(R, sine, cosine, e)
        if slides:
            b = (b[0] + 2 * w[1] * speed, b[1] - 2 * w[0] * speed, b[2] + push)
        else:
            e = (e[0] + w[1] * speed, e[1] - w[0] * speed, e[2] + push)
            w = (w[0], w[1], w[2] + speed)
        h = _three(inertia, 1)
        m = inertia[0]
        whirl = _plus(_cross(e, h), _cross(w, _cross(w, h)))
        _keep(row, 0, w)
        _keep(row, 3, e)
        _keep(row, 6, b)
        _keep(row, 9, (m * b[0] + whirl[0], m * b[1] + whirl[1], m * b[2] + whirl[2]))
        _keep(row, 12, _plus(_cross(h, b), _plus(_times(inertia, e), _cross(w, _times(inertia, w)))))
        row[15], row[16], row[17] = sine, cosine, slide
    torques[:] = 0.0
    for f in range(count - 1, -1, -1):
        parent, joint, slides = bodies.links[f, 0], bodies.links[f, 1], bodies.links[f, 2] != 0
        R, row = bodies.fixed[f], rows[f]
        torques[joint] += bodies.values[f, 0] * (row[11] if slides else row[14])
        if parent >= 0:
            force = _out_of(R, row[15], row[16], _three(row, 9))
            moment = _plus(_out_of(R, row[15], row[16], _three(row, 12)), _cross(_origin(R, row[17]), force))
            _keep(rows[parent], 9, _plus(_three(rows[parent], 9), force))
            _keep(rows[parent], 12, _plus(_three(rows[parent], 12), moment))


@lean_njit
def _rates(bodies, v, a, j, slack_s, rows, bounds, rates):
    """Write bounds (dof,) of how fast the torques change, N m/s or N/s, while speeds and their derivatives are within
    v, a, j (dof,). rows: of `_torques` at most slack_s seconds away; bounds: (F, BOUND)"""
    count = len(bodies.links)
    for f in range(count):
        parent, joint = bodies.links[f, 0], bodies.links[f, 1]
        size, bound, m = abs(bodies.values[f, 0]), bounds[f], bodies.inertia[f, 0]
        v1, v2, v3 = size * v[joint], size * a[joint], size * j[joint]
        length, h, inertia = bodies.sizes[f, 0], bodies.sizes[f, 1], bodies.sizes[f, 2]
        w = e = j_e = j_b = 0.0
        gravity = bodies.gravity
        b = math.sqrt(gravity[0] ** 2 + gravity[1] ** 2 + gravity[2] ** 2)
        if parent >= 0:
            up = bounds[parent]
            w, e, b, j_e, j_b = up[0], up[1], up[2], up[5], up[6]
        if bodies.links[f, 2] != 0:
            length += abs(rows[f, 17]) + slack_s * v1
            j_b += j_e * length + e * v1 + 2 * e * w * length + w * w * v1 + 2 * e * v1 + 2 * w * v2 + v3
            b += e * length + w * w * length + 2 * w * v1 + v2
        else:
            b += e * length + w * w * length
            j_b += j_e * length + 2 * e * w * length + v1 * b
            turned = e + v1 * w  # of the parent's w in the frame's axes
            j_e += v1 * e + turned * v1 + w * v2 + v3
            e += v1 * w + v2
            w += v1
        bound[0], bound[1], bound[2], bound[5], bound[6] = w, e, b, j_e, j_b
        bound[3] = m * b + (e + w * w) * h
        bound[4] = h * b + (e + w * w) * inertia
        bound[7] = m * j_b + (j_e + 2 * e * w) * h
        bound[8] = h * j_b + (j_e + 2 * e * w) * inertia
        bound[9] = length
    rates[:] = 0.0
    for f in range(count - 1, -1, -1):
        parent, joint, slides = bodies.links[f, 0], bodies.links[f, 1], bodies.links[f, 2] != 0
        size, bound = abs(bodies.values[f, 0]), bounds[f]
        rates[joint] += size * (bound[7] if slides else bound[8])
        if parent >= 0:
            speed, up = size * v[joint], bounds[parent]
            turned, shifted = (0.0, speed) if slides else (speed, 0.0)
            force = bound[7] + turned * bound[3]
            up[3] += bound[3]
            up[4] += bound[4] + bound[9] * bound[3]
            up[7] += force
            up[8] += bound[8] + turned * bound[4] + bound[9] * force + shifted * bound[3]


@njit
def torques_of(bodies, q, v, a):
    """(N, dof) torques for q, v, a (N, dof)."""
    torques, rows = np.empty(q.shape), np.empty((len(bodies.links), ROW))
    for n in range(len(q)):
        _torques(bodies, q[n], v[n], a[n], rows, torques[n])
    return torques


@njit
def sharings(bodies, lengths, powers, jerks, limits):
    """Sharings of the pieces of a motion.

    lengths: (K,) seconds; powers: (K, 6, dof) coefficients of the powers of the time, as shares of these
    jerks: (K, dof) bounds of the third derivatives by the time; limits: (dof,)
    """
    dof, count = len(limits), len(bodies.links)
    share, joint, torque = np.ones(len(lengths)), np.full(len(lengths), -1, np.int32), np.zeros(len(lengths))
    rows, bounds = np.empty((count, ROW)), np.empty((count, BOUND))
    q, v, a, none = np.empty(dof), np.empty(dof), np.empty(dof), np.zeros(dof)
    most_v, most_a, moving, still, rates = np.empty(dof), np.empty(dof), np.empty(dof), np.empty(dof), np.empty(dof)
    begins, ends = np.empty(DEEPEST + 1), np.empty(DEEPEST + 1)
    for k in range(len(lengths)):
        begins[0], ends[0], left = 0.0, 1.0, 1
        while left > 0:
            left -= 1
            begin, end = begins[left], ends[left]
            middle, half_s = (begin + end) / 2, (end - begin) / 2 * lengths[k]
            for i in range(dof):
                q[i], v[i], a[i] = _played(powers[k], i, middle, lengths[k])
                most_v[i] = abs(v[i]) + half_s * (abs(a[i]) + half_s * jerks[k, i] / 2)
                most_a[i] = abs(a[i]) + half_s * jerks[k, i]
            _torques(bodies, q, v, a, rows, moving)
            _rates(bodies, most_v, most_a, jerks[k], half_s, rows, bounds, rates)
            proven, beyond = True, False
            for i in range(dof):
                slack = half_s * rates[i]
                if abs(moving[i]) + slack > limits[i]:
                    proven = False
                    beyond |= abs(moving[i]) > limits[i] or slack < NARROW * limits[i] or left + 2 > DEEPEST
            if not proven and not beyond:
                begins[left], ends[left] = middle, end
                begins[left + 1], ends[left + 1] = begin, middle
                left += 2
            if not beyond:
                continue
            _torques(bodies, q, none, none, rows, still)
            for i in range(dof):
                moves = abs(moving[i] - still[i]) + NARROW * limits[i]
                room = limits[i] - (still[i] if moving[i] > still[i] else -still[i])
                if room < share[k] * moves:
                    share[k], joint[k], torque[k] = room / moves, i, moving[i]
            share[k] = min(share[k], MOST)
    return Sharings(share, joint, torque)


@lean_njit
def _played(powers, i, x, length):
    """-> joint i's position, velocity and acceleration at a share x of a piece."""
    c0, c1, c2, c3, c4, c5 = powers[0, i], powers[1, i], powers[2, i], powers[3, i], powers[4, i], powers[5, i]
    q = c0 + x * (c1 + x * (c2 + x * (c3 + x * (c4 + x * c5))))
    v = c1 + x * (2 * c2 + x * (3 * c3 + x * (4 * c4 + x * 5 * c5)))
    a = 2 * c2 + x * (6 * c3 + x * (12 * c4 + x * 20 * c5))
    return q, v / length, a / (length * length)
