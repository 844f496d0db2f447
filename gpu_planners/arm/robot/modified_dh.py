"""Modified DH rows for joint axes that lie anywhere (Craig, Introduction to Robotics, section 3.4).

A row runs from an axis to the next one: Rx(alpha) Tx(a) follows their common normal, Rz(theta) Tz(d) then turns
and slides along the new axis to where the next normal starts. The frame of an axis is therefore fixed by its
first child; further children start from a constant re-alignment (turn and slide about the same axis).

Almost parallel axes, which calibrated robots have, put the common normal far away and make d huge
(Hayati's case); there the row is the parallel one and the constant transform holds the small tilt, so that
the result stays exact and well-scaled in single precision.
"""

from typing import Any

import numpy as np

ALMOST_PARALLEL = 0.02  # sine of the angle below which the tilt goes into the constant transform
NEGLIGIBLE = 1e-12  # rad or m; rounding residue of the construction


def rotation_about(axis: np.ndarray, angle: float) -> np.ndarray:
    """(3, 3) rotation about a unit axis (Rodrigues)."""
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def transform(R: np.ndarray | None = None, p: np.ndarray | None = None) -> np.ndarray:
    """(4, 4) from a rotation and a translation."""
    T = np.eye(4)
    if R is not None:
        T[:3, :3] = R
    if p is not None:
        T[:3, 3] = p
    return T


def row_transform(a: float, alpha: float, d: float, theta: float) -> np.ndarray:
    """(4, 4) Rx(alpha) Tx(a) Rz(theta) Tz(d)."""
    ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    return np.array([[ct, -st, 0, a], [ca * st, ca * ct, -sa, -sa * d], [sa * st, sa * ct, ca, ca * d], [0, 0, 0, 1]])


def constant_row(frame: Any) -> np.ndarray:
    """(4, 4) the row of one frame (model.FRAME_DTYPE) where its joint adds nothing."""
    return row_transform(*(frame[name] for name in ("a", "alpha", "d", "theta")))


def normal_between(
    z_from: np.ndarray, p_from: np.ndarray, z_to: np.ndarray, p_to: np.ndarray, x_hint: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Common normal of two axes (unit direction z, point p; any common frame).

    x_hint: (3,) direction that the normal should not oppose, and that it takes where the axes coincide
    Returns (tilt (3, 3), foot_from, foot_to, x): tilt turns z_from onto an axis parallel to z_to, identity unless
    they are almost parallel; x is the unit normal.
    """
    cross = np.cross(z_from, z_to)
    sine = np.linalg.norm(cross)
    between = p_to - p_from
    if sine < ALMOST_PARALLEL:
        tilt = np.eye(3)
        if sine > 0:
            angle = np.arctan2(sine, abs(z_from @ z_to))
            tilt = rotation_about(cross / sine * np.sign(z_from @ z_to), angle)
        z = tilt @ z_from
        foot_from, foot_to = p_from, p_to - z * (z @ between)
        x = foot_to - foot_from
        distance = np.linalg.norm(x)
        # squared up again, since the difference of two near points has a rough direction
        x = _perpendicular(z, x / distance if distance > NEGLIGIBLE else x_hint)
        # a residue of rounding decides no direction: both signs are right, the hint picks one
        return tilt, foot_from, foot_to, x if x @ x_hint > -1e-9 else -x
    x = cross / sine
    # feet of the normal: p_from + s z_from and p_to + t z_to, differing only along x
    s, t, _ = np.linalg.solve(np.column_stack([z_from, -z_to, x]), between)
    return np.eye(3), p_from + s * z_from, p_to + t * z_to, x if x @ x_hint > -1e-9 else -x


def _perpendicular(z, hint):
    """Unit vector perpendicular to z, as near to the hint as can be."""
    for candidate in (hint, np.array([1.0, 0, 0]), np.array([0, 1.0, 0])):
        x = candidate - z * (z @ candidate)
        if np.linalg.norm(x) > 1e-6:
            return x / np.linalg.norm(x)
    raise AssertionError("two of three directions cannot be parallel to z")


def derive_rows(
    parents: list[int], axes: np.ndarray, T_root_joint: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """DH rows of a tree of axes given at the zero configuration, in the root frame.

    parents: (F,) parent axis, -1 = the root's z axis; parents come before children
    axes: (F, 3) unit direction of each axis, root frame
    T_root_joint: (F, 4, 4) URDF joint frame of each axis, root frame, metres: its origin is a point of the axis, its x
        a hint where the choice is free
    Returns rows (F, 4) of a, alpha, d, theta; T_parent_base (F, 4, 4); T_root_frame (F, 4, 4) at zero
    """
    count, points = len(parents), T_root_joint[:, :3, 3]
    children = [[f for f in range(count) if parents[f] == p] for p in range(-1, count)]
    size = np.ones(count, int)
    for f in reversed(range(count)):
        if parents[f] >= 0:
            size[parents[f]] += size[f]
    rows, T_parent_base, T_root_frame = np.zeros((count, 4)), np.zeros((count, 4, 4)), np.zeros((count, 4, 4))
    starts: list[Any] = [None] * count  # per axis: (tilt, foot on the parent's axis, foot on this axis, x)

    def find_normals(p, z, point, x_hint):
        for f in children[p + 1]:
            starts[f] = normal_between(z, point, axes[f], points[f], x_hint)

    find_normals(-1, np.array([0, 0, 1.0]), np.zeros(3), np.array([1.0, 0, 0]))
    for f in range(count):
        tilt, foot_from, foot_to, x = starts[f]
        T_root_parent = np.eye(4) if parents[f] < 0 else T_root_frame[parents[f]]
        z_from = tilt @ T_root_parent[:3, 2]
        base = transform(np.column_stack([x, np.cross(z_from, x), z_from]), foot_from)
        T_parent_base[f] = _tidy(np.linalg.inv(T_root_parent) @ base)
        base = T_root_parent @ T_parent_base[f]
        z = axes[f]
        find_normals(f, z, points[f], x)
        if children[f + 1]:
            main = max(children[f + 1], key=lambda c: size[c])
            _, origin, _, x_frame = starts[main]
        else:  # the end of a chain: the frame may be the URDF's own where that has its z along the axis
            origin, x_frame = points[f], _perpendicular(z, T_root_joint[f, :3, 0])
        alpha = np.arctan2(np.cross(z_from, z) @ x, z_from @ z)
        theta = np.arctan2(np.cross(x, x_frame) @ z, x @ x_frame)
        row = np.array([(foot_to - foot_from) @ x, alpha, (origin - foot_to) @ z, theta])
        row[np.abs(row) < NEGLIGIBLE] = 0.0  # also makes -0 a 0
        rows[f] = row
        T_root_frame[f] = base @ row_transform(*row)
    return rows, T_parent_base, T_root_frame


def _tidy(T):
    """The transform without rounding residue; exactly the identity where it is one."""
    return np.eye(4) if np.abs(T - np.eye(4)).max() < 1e-11 else T


def path_to_root(frames: np.ndarray, f: int) -> list[int]:
    """The frames that carry what is fixed to frame f: f first, then its parents; [] where f < 0, the root."""
    path = []
    while f >= 0:
        path.append(f)
        f = frames["parent"][f]
    return path
