"""What a step of a fleet works on, for compiled code: agents, their ranked options, and the reservation table."""

from typing import NamedTuple

import numpy as np

from ..motion import Options

BUSY = 1  # an agent that obeys nobody in this step
STANDS = 2  # one that obeys nobody until it is said otherwise, and is an obstacle in the fields


class Agents(NamedTuple):
    """Agents; arrays (N,) int32."""

    tile: np.ndarray  # where it stands, or what it moves to
    heading: np.ndarray
    origin: np.ndarray  # the tile that it still leaves, or `tile`
    table: np.ndarray  # of its options
    goal: np.ndarray  # tile or -1
    slot: np.ndarray  # its goal's field or -1
    there: np.ndarray  # does it take part?
    still: np.ndarray  # does it obey nobody? 0, BUSY or STANDS
    left: np.ndarray  # cost to go when it was at `was_tile`, heading `was_heading`
    was_tile: np.ndarray
    was_heading: np.ndarray
    fresh: np.ndarray  # is `left` unknown?


class Ranked(NamedTuple):
    """The options of every agent, the best one first; waiting costs 0."""

    length: np.ndarray  # (N,) int32
    option: np.ndarray  # (N, most) int32
    cost: np.ndarray  # (N, most) int32


class Rules(NamedTuple):
    """When agents conflict."""

    clearance: np.ndarray  # (layers, K) int32 offsets of tiles around an agent, its own too, where no other may be
    layer: int  # tiles of a layer: agents of one size (fields/lanes.py)
    following: bool  # may an agent move to a tile that another one leaves meanwhile?
    horizon: int  # ticks that are looked ahead
    holding: bool  # do agents stay at their goals? Else they get new ones there
    plain: bool  # agents cover one tile, may follow each other, and their actions take a tick


class Plans(NamedTuple):
    """The options that agents have, and the tiles that these reserve."""

    option: np.ndarray  # (N,) int32
    cost: np.ndarray  # (N,) int32
    reserved: np.ndarray  # (tiles, horizon + 1) int32 agents or NOBODY, by ticks from now


class Stacks(NamedTuple):
    """Who pushes whom: a stack for each concurrent search, and what all searches know of agents."""

    agent: np.ndarray  # (searches, depth) int32 who looks for an option
    place: np.ndarray  # (searches, depth) int32 which of its ranked options is next
    before: np.ndarray  # (searches, depth) int32 the option that it had before the search
    before_cost: np.ndarray  # (searches, depth) int32
    rise: np.ndarray  # (searches, depth) int64 by how much the weighted costs have risen when it has no option
    weight: np.ndarray  # (N,) int64 of its costs
    rank: np.ndarray  # (N,) int32 place in the order of priorities
    open: np.ndarray  # (N,) uint8 is it on a stack?
    seen: np.ndarray  # (N,) int64 the pass that `visits` counts for
    visits: np.ndarray  # (N,) int32 how often it was on a stack


class FleetState(NamedTuple):
    """All that a step works on."""

    agents: Agents
    options: Options
    rules: Rules
    ranked: Ranked
    plans: Plans
    stacks: Stacks


def new_ranked(agents: int, options: Options) -> Ranked:
    """Room for the ranked options of so many agents."""
    numbers = (np.zeros((agents, options.most_tracks), np.int32) for _ in range(2))
    return Ranked(np.zeros(agents, np.int32), *numbers)


def new_stacks(agents: int, searches: int, depth: int) -> Stacks:
    """Stacks of so many concurrent searches, `depth` agents deep."""

    def on_stack(kind):
        return np.zeros((searches, depth), kind)

    return Stacks(
        agent=on_stack(np.int32),
        place=on_stack(np.int32),
        before=on_stack(np.int32),
        before_cost=on_stack(np.int32),
        rise=on_stack(np.int64),
        weight=np.ones(agents, np.int64),
        rank=np.zeros(agents, np.int32),
        open=np.zeros(agents, np.uint8),
        seen=np.zeros(agents, np.int64),
        visits=np.zeros(agents, np.int32),
    )
