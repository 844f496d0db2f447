"""How long robots take for what they may do: they start and stop standing, and drive on over tiles in a row.

Moves in one direction are one motion: a robot accelerates, drives at its speed, slower where a zone asks for that, and
brakes to stand at the last tile that it may go to: a trapezoid of speed, where no zone is in the way. Turns on the
spot, one after the other the same way, are one likewise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...arguments import number

MOST = 1e12  # in place of infinity
QUARTER = math.pi / 2


@dataclass(frozen=True)
class Dynamics:
    """Of one robot, as it is loaded now; infinity: at once.

    speed: m/s; acceleration, deceleration: m/s^2; turn_speed: rad/s; turn_acceleration: rad/s^2
    Raises SettingsError.
    """

    speed: float
    acceleration: float = math.inf
    deceleration: float = math.inf
    turn_speed: float = math.inf
    turn_acceleration: float = math.inf

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, min(number(name, getattr(self, name), 1e-6, math.inf), MOST))


class Profiles(NamedTuple):
    """Dynamics of K robots; arrays (K,)."""

    speed: np.ndarray
    acceleration: np.ndarray
    deceleration: np.ndarray
    turn_speed: np.ndarray
    turn_acceleration: np.ndarray


def profiles_of(dynamics: Sequence[Dynamics]) -> Profiles:
    rows = [[getattr(each, name) for name in Profiles._fields] for each in dynamics]
    return Profiles(*np.array(rows, float).reshape(-1, len(Profiles._fields)).T)


def _passing(begin, end, way, speed, acceleration, deceleration):
    """Seconds for a way that begins and ends with these speeds, which the way allows; all (K,)"""
    rise, fall = 1 / (2 * acceleration), 1 / (2 * deceleration)
    top = np.minimum(speed, np.sqrt((way + rise * begin**2 + fall * end**2) / (rise + fall)))
    even = np.maximum(way - rise * (top**2 - begin**2) - fall * (top**2 - end**2), 0.0)
    return (top - begin) / acceleration + (top - end) / deceleration + even / np.maximum(top, 1e-12)


def ends_of(
    tiles: np.ndarray,
    headings: np.ndarray,
    allowed: np.ndarray,
    profiles: Profiles,
    side: float,
    limits: np.ndarray | None = None,
) -> np.ndarray:
    """When each action is done, in seconds from now, of robots that stand now.

    tiles: (N, K + 1, 2), headings: (N, K + 1) quarters: states of an action graph; allowed: (N,) actions that count
    side: metres of a tile; limits: (N, K) m/s that nobody may exceed in a move; None: there are none
    -> (N, K) seconds, 0 for what does not count
    """
    count, actions = headings.shape[0], headings.shape[1] - 1
    steps = np.diff(tiles, axis=1)
    turns = (np.diff(headings, axis=1) + 1) % 4 - 1  # 1: one way; -1: the other; 2: both are as far
    moves: np.ndarray = np.any(steps, axis=2)
    counts: np.ndarray = np.less(np.arange(actions), allowed[:, None])
    # what kind of action it is: actions of one kind in a row are one motion
    kind = np.where(moves, 2 + 3 * steps[..., 0] + steps[..., 1], np.where(turns == 0, 10, 20 + turns))
    length = np.where(moves, side, QUARTER * np.abs(turns)) * counts
    same = np.equal(kind[:, 1:], kind[:, :-1]) & counts[:, 1:]
    driven = moves[:, :, None]
    go = np.stack([profiles.speed, profiles.acceleration, profiles.deceleration])
    spin = np.stack([profiles.turn_speed, profiles.turn_acceleration, profiles.turn_acceleration])
    speed, rise, fall = np.moveaxis(np.where(driven, go.T[:, None], spin.T[:, None]), -1, 0)
    if limits is not None:
        speed = np.where(moves, np.minimum(speed, limits), speed)
    top = np.zeros((count, actions + 1))  # the greatest speeds between actions: between those that are no motion, 0
    for k in range(1, actions):
        faster = np.sqrt(top[:, k - 1] ** 2 + 2 * rise[:, k - 1] * length[:, k - 1])
        top[:, k] = np.where(same[:, k - 1], np.minimum(faster, np.minimum(speed[:, k - 1], speed[:, k])), 0.0)
    for k in range(actions - 1, 0, -1):
        top[:, k] = np.minimum(top[:, k], np.sqrt(top[:, k + 1] ** 2 + 2 * fall[:, k] * length[:, k]))
    taken = _passing(top[:, :-1], top[:, 1:], length, speed, rise, fall)
    return np.where(counts, np.cumsum(np.where(counts, taken, 0.0), axis=1), 0.0)
