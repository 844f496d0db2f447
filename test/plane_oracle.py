"""Independent re-checkers of motions in the plane, float64: clipping of segments (Liang and Barsky, ACM TOG 1984) and
dense looks at an arm's motion. Nothing here comes from gpu_planners."""

import numpy as np


def segments_meet_boxes(a, b, boxes, grow=0.0):
    """a, b: (N, 2) ends;  boxes: (M, 4) xmin, ymin, xmax, ymax, closed, each side moved out by `grow` -> (N, M)."""
    boxes = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    a, b = np.asarray(a, dtype=np.float64)[:, None], np.asarray(b, dtype=np.float64)[:, None]
    enter, leave = np.zeros((len(a), len(boxes))), np.ones((len(a), len(boxes)))
    for axis in range(2):
        low, high = boxes[:, axis] - grow, boxes[:, axis + 2] + grow
        start, change = a[..., axis], b[..., axis] - a[..., axis]
        moves = change != 0
        along = np.where(moves, change, 1)
        t_low, t_high = (low - start) / along, (high - start) / along
        inside = (low <= start) & (start <= high)
        enter = np.where(moves, np.maximum(enter, np.minimum(t_low, t_high)), np.where(inside, enter, np.inf))
        leave = np.where(moves, np.minimum(leave, np.maximum(t_low, t_high)), leave)
    return enter <= leave


def arm_meets_boxes(lengths, q, boxes, grow=0.0):
    """Links in a chain from the origin with relative angles q (N, dof) -> (N,) bool: does a link meet a box?"""
    angles = np.cumsum(np.asarray(q, dtype=np.float64), axis=1)
    ends = np.cumsum(np.stack([lengths * np.cos(angles), lengths * np.sin(angles)], axis=2), axis=1)
    points = np.concatenate([np.zeros((len(ends), 1, 2)), ends], axis=1)
    meets = segments_meet_boxes(points[:, :-1].reshape(-1, 2), points[:, 1:].reshape(-1, 2), boxes, grow)
    return meets.any(axis=1).reshape(len(ends), -1).any(axis=1)


def along(a, b, parts):
    """The parts + 1 points that cut the motion a -> b, (dof,) each, into equal parts -> (parts + 1, dof) float64."""
    t = np.arange(parts + 1)[:, None] / parts
    return np.asarray(a, dtype=np.float64) * (1 - t) + np.asarray(b, dtype=np.float64) * t


def blocked_boxes(free, lower, upper):
    """free: (rows, columns) bool, row 0 at the top of lower .. upper, (2,) each -> (M, 4) boxes of blocked pixels."""
    rows, columns = free.shape
    lower, upper = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    wide, high = (upper - lower) / [columns, rows]
    r, c = np.nonzero(~free)
    return np.stack(
        [lower[0] + c * wide, upper[1] - (r + 1) * high, lower[0] + (c + 1) * wide, upper[1] - r * high], axis=1
    )
