"""A robot's outline along a path, against the tiles of a map: for requests that give a footprint of their own."""

import re

import numpy as np

from ...errors import shown
from ...grid import GridMap
from ..common import map_codes as codes
from ..common.map_messages import Poses
from ..common.request_error import RequestError

NUMBER = r"\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*"
POINT = re.compile(rf"\[{NUMBER},{NUMBER}\]")
FARTHEST = 1000.0  # metres of a corner from the robot's origin
STEP = 0.5  # tiles that a corner moves at most between two looks
MOST_LOOKS = 100_000
LONGEST = 10_000  # characters: the patterns look at all that follows a bracket, or at blanks, again and again


def read_footprint(text: str) -> np.ndarray:
    """(V, 2) metres: the corners of an outline given as Nav2 takes it, "[[x, y], [x, y], ...]"; x is ahead."""
    if len(text) > LONGEST:
        raise RequestError(codes.INVALID_REQUEST, f"footprint has {len(text)} characters; allowed: {LONGEST}")
    inner = text.strip()[1:-1]
    points = np.array([pair.groups() for pair in POINT.finditer(inner)], float).reshape(-1, 2)
    rest = re.sub(r"\s", "", POINT.sub("", inner))
    whole = text.strip().startswith("[") and text.strip().endswith("]") and rest == "," * (len(points) - 1)
    if not whole or len(points) < 3 or not (np.abs(points) <= FARTHEST).all():
        allowed = f"[[x, y], ...], 3 or more corners, metres up to {FARTHEST:g}"
        raise RequestError(codes.INVALID_REQUEST, f"footprint is {shown(text)}; allowed: {allowed}")
    return points


def blocked_outlines(grid: GridMap, forbidden: np.ndarray, poses: Poses, outline: np.ndarray) -> np.ndarray:
    """Indices (M,) of the poses at which an outline meets a forbidden tile or leaves the map, or on the way to which it
    does: it is looked at wherever a corner has moved by STEP, along the line and turning evenly the shorter way.

    forbidden: (rows, cols) bool; poses: in the map's frame; outline: (V, 2) metres
    """
    if not poses.quaternions.any(axis=1).all():
        k = int(np.argmin(poses.quaternions.any(axis=1)))
        text = f"pose {k} of the path has no orientation; allowed with a footprint: one for each pose"
        raise RequestError(codes.INVALID_REQUEST, text)
    x, y, z, w = poses.quaternions.T
    yaws = np.arctan2(2 * (w * z + x * y), w * w + x * x - y * y - z * z) - grid.origin[2]
    places, corners = grid.places_of(poses.points[:, :2]), outline[:, ::-1] / grid.resolution
    with np.errstate(invalid="ignore"):
        inside = ((places >= 0) & (places < grid.shape)).all(axis=1) & np.isfinite(yaws)
    blocked = ~inside
    turn = (np.diff(yaws) + np.pi) % (2 * np.pi) - np.pi
    far = np.hypot(*np.diff(places, axis=0).T) + np.hypot(*corners.T).max() * np.abs(turn)
    joined = inside[1:] & inside[:-1]
    looks = np.where(joined, np.ceil(np.where(joined, far, 0.0) / STEP), 1).clip(1).astype(int)
    if looks.sum() > MOST_LOOKS:
        text = f"the path and the footprint take {looks.sum()} looks; allowed: {MOST_LOOKS}, each {STEP:g} tiles on"
        raise RequestError(codes.INVALID_REQUEST, text)
    if inside[0]:
        blocked[0] = _meets(forbidden, _turned(corners, yaws[0]) + places[0])
    for k in np.flatnonzero(inside[1:]) + 1:
        for share in np.arange(1, looks[k - 1] + 1) / looks[k - 1] if inside[k - 1] else (1.0,):
            place = places[k] if share == 1 else places[k - 1] + share * (places[k] - places[k - 1])
            yaw = yaws[k] if share == 1 else yaws[k - 1] + share * turn[k - 1]
            if _meets(forbidden, _turned(corners, yaw) + place):
                blocked[k] = True
                break
    return np.flatnonzero(blocked)


def _turned(corners, yaw):
    """Corners (V, 2) [across, ahead] of a robot that looks along the columns, turned -> [row, col]"""
    cos, sin = np.cos(yaw), np.sin(yaw)
    across, ahead = corners.T
    return np.stack([sin * ahead + cos * across, cos * ahead - sin * across], axis=1)


def _meets(forbidden, corners):
    """Does a polygon (V, 2) [row, col] meet a forbidden tile, or leave the map?"""
    low, high = np.floor(corners.min(axis=0)).astype(int), np.floor(corners.max(axis=0)).astype(int) + 1
    if (low < 0).any() or (high > forbidden.shape).any():
        return True
    tiles = np.argwhere(forbidden[low[0] : high[0], low[1] : high[1]]) + low
    if not len(tiles):
        return False
    begin, way = corners[None], np.roll(corners, -1, axis=0)[None] - corners[None]
    enter, leave = np.zeros((len(tiles), len(corners))), np.ones((len(tiles), len(corners)))
    for axis in (0, 1):  # of each side, from where to where it is inside each tile
        a, d = begin[..., axis], way[..., axis]
        near, far = tiles[:, None, axis] - a, tiles[:, None, axis] + 1 - a
        with np.errstate(divide="ignore", invalid="ignore"):
            first, last = np.minimum(near / d, far / d), np.maximum(near / d, far / d)
        level = d == 0
        within = (near <= 0) & (far >= 0)
        first = np.where(level, np.where(within, -np.inf, np.inf), first)
        last = np.where(level, np.where(within, np.inf, -np.inf), last)
        enter, leave = np.maximum(enter, first), np.minimum(leave, last)
    if (enter <= leave).any():
        return True
    centre = tiles + 0.5  # a tile that no side meets lies inside or outside as a whole
    above = begin[..., 0] > centre[:, None, 0]
    crosses = above != np.roll(above, -1, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = begin[..., 1] + (centre[:, None, 0] - begin[..., 0]) / way[..., 0] * way[..., 1]
    return bool(((crosses & (at > centre[:, None, 1])).sum(axis=1) % 2).any())
