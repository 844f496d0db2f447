"""Shortest curves of a least radius from pose to pose, forwards (Dubins 1957)."""

import math

FULL = 2 * math.pi


def dubins(start, goal, radius):
    """-> [(length, turn), ...] of the shortest one. start, goal: x, y, heading"""
    dx, dy = goal[0] - start[0], goal[1] - start[1]
    apart, towards = math.hypot(dx, dy) / radius, math.atan2(dy, dx)
    a, b = (start[2] - towards) % FULL, (goal[2] - towards) % FULL
    best = min((word for word in _words(a, b, apart)), key=lambda word: sum(abs(length) for _, length in word))
    return [(abs(length) * radius, length * side if side else 0.0) for side, length in best]


def _words(a, b, d):
    """Each as three (side 1 left, -1 right, 0 straight; length in radii)."""
    sin_a, sin_b, cos_a, cos_b, cos_ab = math.sin(a), math.sin(b), math.cos(a), math.cos(b), math.cos(a - b)
    for side in (1, -1):  # LSL, RSR
        across = cos_b - cos_a if side > 0 else cos_a - cos_b
        square = 2 + d * d - 2 * cos_ab + 2 * d * side * (sin_a - sin_b)
        if square >= 0:
            along = math.atan2(across, d + side * (sin_a - sin_b))
            yield (side, side * (along - a) % FULL), (0, math.sqrt(square)), (side, side * (b - along) % FULL)
    for side in (1, -1):  # LSR, RSL
        square = d * d - 2 + 2 * cos_ab + 2 * d * side * (sin_a + sin_b)
        if square >= 0:
            p = math.sqrt(square)
            along = math.atan2(-side * (cos_a + cos_b), d + side * (sin_a + sin_b)) - math.atan2(-2.0 * side, p)
            yield (side, side * (along - a) % FULL), (0, p), (-side, side * (along - b) % FULL)
    for side in (1, -1):  # LRL, RLR
        cos = (6 - d * d + 2 * cos_ab - 2 * d * side * (sin_a - sin_b)) / 8
        if abs(cos) <= 1:
            p = FULL - math.acos(cos)
            t = (-side * a - math.atan2(cos_a - cos_b, d + side * (sin_a - sin_b)) + p / 2) % FULL
            yield (side, t), (-side, p), (side, (side * (b - a) - t + p) % FULL)
