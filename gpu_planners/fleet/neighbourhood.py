"""Large neighbourhood search: take the paths of a group of agents out, plan them anew one after the other among all
others, and keep the new ones if together they cost no more (MAPF-LNS; Li et al., IJCAI 2021).

Paths are a record with these arrays, among others, for N agents and H ticks:

    tile, heading: (N, H + 1); cost, weight, least: (N,) of paths, of an agent's costs, and of its path alone
    reserved: (tiles, H + 1) int32 who is on a tile, or NOBODY
"""

from typing import NamedTuple

import numpy as np

from ..device import lean_njit
from .fields.next_hops import NOBODY


class Group(NamedTuple):
    """At most G agents that are planned anew together, and their paths before."""

    agent: np.ndarray  # (G,) int32
    inside: np.ndarray  # (N,) uint8 is an agent in the group? All 0 between two groups
    tile: np.ndarray  # (G, H + 1) int32
    heading: np.ndarray  # (G, H + 1)
    cost: np.ndarray  # (G,) int32


def new_group(most: int, heading: np.ndarray) -> Group:
    """A group of at most so many agents. heading: of the paths"""
    agents, length = heading.shape
    paths = np.zeros((most, length), np.int32), np.zeros((most, length), heading.dtype)
    return Group(np.zeros(most, np.int32), np.zeros(agents, np.uint8), *paths, np.zeros(most, np.int32))


def paths_of_standing(
    tiles: np.ndarray, headings: np.ndarray, count: int, ticks: int, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, Group]:
    """Of agents (N,) that stay where they are, on `count` tiles, none of which are reserved yet
    -> tile, heading, cost, weight, least, reserved, an empty group of at most so many"""
    tile, heading = (np.repeat(now.astype(np.int32)[:, None], ticks + 1, axis=1) for now in (tiles, headings))
    cost, least, weight = (np.full(len(tiles), value, np.int32) for value in (0, 0, 1))
    reserved = np.full((count, ticks + 1), NOBODY, np.int32)
    return tile, heading, cost, weight, least, reserved, new_group(most, heading)


@lean_njit
def join(agent, size, most, group):
    """Add an agent, or NOBODY, to a group, if it is not in it and there are less than `most`. -> the group's size"""
    if agent == NOBODY or size == most or group.inside[agent]:
        return size
    group.agent[size], group.inside[agent] = agent, 1
    return size + 1


@lean_njit
def reserve(agent, who, paths):
    """Enter `who` (the agent itself, or NOBODY to release its tiles) along an agent's path."""
    for tick in range(paths.tile.shape[1]):
        paths.reserved[paths.tile[agent, tick], tick] = who


@lean_njit
def _copy(tile, heading, to_tile, to_heading):
    for tick in range(len(tile)):
        to_tile[tick], to_heading[tick] = tile[tick], heading[tick]


def make_replan(find_path):
    """-> replan(size, group, paths, problem) for one way of finding a path

    find_path(agent, most, paths, problem): write an agent's cheapest path among those that are reserved, and its cost,
        to `paths`; -> found, for a cost of at most `most`?
    """

    @lean_njit
    def replan(size, group, paths, problem):
        """Plan a group anew, in its order; afterwards it is empty. -> by how much the weighted costs fell; with 0,
        paths may have changed"""
        before, after, least = np.int64(0), np.int64(0), np.int64(0)
        for k in range(size):
            a = group.agent[k]
            group.inside[a], group.cost[k] = 0, paths.cost[a]
            _copy(paths.tile[a], paths.heading[a], group.tile[k], group.heading[k])
            before += np.int64(paths.weight[a]) * paths.cost[a]
            least += np.int64(paths.weight[a]) * paths.least[a]  # of those that are still to be planned
            reserve(a, NOBODY, paths)
        done = 0
        while done < size:
            a = np.int64(group.agent[done])
            least -= np.int64(paths.weight[a]) * paths.least[a]
            if not find_path(a, (before - after - least) // paths.weight[a], paths, problem):
                break
            after += np.int64(paths.weight[a]) * paths.cost[a]
            reserve(a, a, paths)
            done += 1
        if done == size:
            return before - after
        for k in range(done):
            reserve(group.agent[k], NOBODY, paths)
        for k in range(size):
            a = group.agent[k]
            _copy(group.tile[k], group.heading[k], paths.tile[a], paths.heading[a])
            paths.cost[a] = group.cost[k]
            reserve(a, a, paths)
        return np.int64(0)

    return replan
