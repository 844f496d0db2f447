"""What a point robot still has to pay at least: the bound of `astar`, by a field over places alone.

The point robot makes steps in 8 or 16 directions. It may step from a tile where no blocked tile's centre lies in the
robot's inner disc, made smaller by `off`. Beside every move leads a way of such steps from its first tile to its last,
of the two steps between whose directions the last one lies; each tile on it lies within `off` of a pose of the move. So
where the move is free the steps are. They cost no more than the move's price: so the bound is consistent, and A* needs
no state twice.
"""

import math
from collections.abc import Iterable

import numpy as np

from .moves import UNITS, Move

STEPS = (1, 0), (2, 1), (1, 1), (1, 2)  # of a quadrant: of two beside each other the determinant is 1


def _between(x, y):
    """-> [(step, how often), (step, how often)] that lead (x, y) far"""
    turned = 0
    while not (x > 0 and y >= 0):
        x, y, turned = y, -x, turned + 1
    steps = [*STEPS, (0, 1)]
    for (a, b), (c, d) in zip(steps, steps[1:]):
        first, second = x * d - y * c, a * y - b * x
        if first >= 0 and second >= 0:
            return [(_turned((a, b), turned), first), (_turned((c, d), turned), second)]
    raise AssertionError


def _turned(step, times):
    for _ in range(times):
        step = -step[1], step[0]
    return step


def way_beside(move: Move) -> list[tuple[int, int]]:
    """Tiles (x, y) from a move's first to its last, by the steps of the point robot, close to the line between them."""
    if move.right == move.down == 0:
        return [(0, 0)]
    (first, a), (second, b) = _between(move.right, move.down)
    way, done = [(0, 0)], 0
    for k in range(a + b):
        as_second = (k + 1) * b // (a + b) > done
        done += as_second
        step = second if as_second else first
        way.append((way[-1][0] + step[0], way[-1][1] + step[1]))
    return way


def off(moves: Iterable[Move]) -> float:
    """Tiles that ways are off their moves' poses at most."""
    most = 0.0
    for move in moves:
        apart = np.array(way_beside(move))[:, None] - move.poses[None, :, :2]
        most = max(most, float(np.hypot(apart[..., 0], apart[..., 1]).min(axis=1).max()))
    return most


def inner_disc(radius: float) -> np.ndarray:
    """Mask (side, side) bool of the point robot's tiles. radius: of the inner disc less `off`, in tiles"""
    at = np.arange(-max(0, math.floor(radius)), max(0, math.floor(radius)) + 1)
    return np.hypot(*np.meshgrid(at, at)) <= max(radius * (1 - 1e-9), 0)


def steps_and_prices(moves: Iterable[Move], prices: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
    """-> the point robot's steps (16, 2) x, y; what each costs (16,) int, so that no way costs more than its move"""
    steps = [_turned(step, times) for times in range(4) for step in STEPS]
    whole, share = {step: round(UNITS * math.hypot(*step)) for step in steps}, 1.0
    for move, price in zip(moves, prices):
        if move.right or move.down:
            beside = sum(whole[step] * often for step, often in _between(move.right, move.down))
            share = min(share, price / beside)
    return np.array(steps), np.array([math.floor(share * whole[step]) for step in steps])
