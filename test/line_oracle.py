"""How far places are from a straight line or an arc, by their formulas."""

import numpy as np
from scipy.spatial.transform import Rotation


def off_the_line(poses, first, last):
    """(N,) metres from the segment between two poses, and (N,) rad from the even turn at the nearest place."""
    way = last[:3, 3] - first[:3, 3]
    share = np.clip((poses[:, :3, 3] - first[:3, 3]) @ way / (way @ way), 0, 1)
    turn = Rotation.from_matrix(last[:3, :3] @ first[:3, :3].T).as_rotvec()
    wanted = Rotation.from_rotvec(share[:, None] * turn) * Rotation.from_matrix(first[:3, :3])
    angle = (Rotation.from_matrix(poses[:, :3, :3]) * wanted.inv()).magnitude()
    return np.linalg.norm(poses[:, :3, 3] - first[:3, 3] - share[:, None] * way, axis=1), angle


def off_the_circle(places, first, via, last):
    """(N,) metres from the circle through three points, and (N,) fraction of its arc from the first to the last.

    The centre is where the planes that halve the chords meet the plane of the points.
    """
    normal = np.cross(via - first, last - first)
    normal /= np.linalg.norm(normal)
    planes = np.array([via - first, last - first, normal])
    center = np.linalg.solve(planes, [planes[0] @ (first + via) / 2, planes[1] @ (first + last) / 2, normal @ first])
    away, radius = places - center, np.linalg.norm(first - center)
    off = np.hypot(away @ normal, np.linalg.norm(away - np.outer(away @ normal, normal), axis=1) - radius)

    def angle(p):
        return np.arctan2(np.cross(first - center, p - center) @ normal, (p - center) @ (first - center)) % (2 * np.pi)

    return off, angle(places) / angle(last)
