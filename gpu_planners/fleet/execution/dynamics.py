"""How long robots take for what they may do: they start and stop standing, and drive on over tiles in a row.

Moves in one direction are one trapezoid of speed: a robot accelerates, drives at its speed, and brakes to stand at the
last tile that it may go to. Turns on the spot, one after the other the same way, are one likewise.
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


def time_at(
    way: np.ndarray, whole: np.ndarray, speed: np.ndarray, acceleration: np.ndarray, deceleration: np.ndarray
) -> np.ndarray:
    """Seconds after which `way` of a `whole` way is done that begins and ends standing; all (K,)."""
    top = np.minimum(speed, np.sqrt(2 * whole * acceleration * deceleration / (acceleration + deceleration)))
    top = np.where(whole > 0, top, 1.0)
    begins, ends = top**2 / (2 * acceleration), top**2 / (2 * deceleration)
    even = np.maximum(whole - begins - ends, 0.0)
    total = top / acceleration + even / top + top / deceleration
    braking = total - np.sqrt(2 * np.maximum(whole - way, 0.0) / deceleration)
    driving = top / acceleration + (way - begins) / top
    starting = np.sqrt(2 * way / acceleration)
    return np.where(way <= begins, starting, np.where(way <= whole - ends, driving, braking))


def ends_of(
    tiles: np.ndarray, headings: np.ndarray, allowed: np.ndarray, profiles: Profiles, side: float
) -> np.ndarray:
    """When each action is done, in seconds from now, of robots that stand now.

    tiles: (N, K + 1, 2), headings: (N, K + 1) quarters: states of an action graph; allowed: (N,) actions that count
    side: metres of a tile -> (N, K) seconds, 0 for what does not count
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
    done, rest = length.copy(), length.copy()
    for k in range(1, actions):
        done[:, k] += np.where(same[:, k - 1], done[:, k - 1], 0.0)
    for k in range(actions - 2, -1, -1):
        rest[:, k] += np.where(same[:, k], rest[:, k + 1], 0.0)
    found, begin = np.zeros((count, actions)), np.zeros(count)
    for k in range(actions):
        if k:
            begin = np.where(same[:, k - 1], begin, found[:, k - 1])
        driven = moves[:, k]
        limits = (
            np.where(driven, profiles.speed, profiles.turn_speed),
            np.where(driven, profiles.acceleration, profiles.turn_acceleration),
            np.where(driven, profiles.deceleration, profiles.turn_acceleration),
        )
        whole = done[:, k] + rest[:, k] - length[:, k]
        found[:, k] = np.where(counts[:, k], begin + time_at(done[:, k], whole, *limits), 0.0)
    return found
