"""What a step of a fleet works on, for compiled code: agents, their options in order, who holds which tiles."""

from typing import NamedTuple

import numpy as np

NOBODY = -1


class Agents(NamedTuple):
    """Agents, for compiled code; arrays (N,).

    tile: int32 where it stands, or what it moves to; heading: int32; origin: int32 the tile that it still leaves, or
        `tile`
    table: int32 of its options; goal: int32 tile or -1; slot: int32 its goal's field or -1
    there: int32, does it take part? still: int32, does it stand and obey nobody?
    left: int32 cost to go to its goal when it was at `was_tile`, heading `was_heading`; fresh: int32, is that unknown?
    """

    tile: np.ndarray
    heading: np.ndarray
    origin: np.ndarray
    table: np.ndarray
    goal: np.ndarray
    slot: np.ndarray
    there: np.ndarray
    still: np.ndarray
    left: np.ndarray
    was_tile: np.ndarray
    was_heading: np.ndarray
    fresh: np.ndarray


class Ranked(NamedTuple):
    """The options of every agent, the best one first.

    many: (N,) int32; option, cost: (N, most) int32; waiting costs 0
    """

    many: np.ndarray
    option: np.ndarray
    cost: np.ndarray


class Rules(NamedTuple):
    """When agents conflict.

    near: (K,) int32 how far tiles are from one that must be free of others while an agent is there; 0 is one of them
    following: may an agent move to a tile that another one leaves meanwhile?
    horizon: ticks that are looked ahead
    holding: do agents stay at their goals? Else they get new ones there
    plain: one tile is near, following is allowed, and actions take a tick
    """

    near: np.ndarray
    following: bool
    horizon: int
    holding: bool
    plain: bool


class Plans(NamedTuple):
    """Who holds what.

    option, cost: (N,) int32; held: (tiles, horizon + 1) int32 agents or NOBODY, by ticks from now
    """

    option: np.ndarray
    cost: np.ndarray
    held: np.ndarray
