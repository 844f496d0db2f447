"""Other times for the same ways: who passes each tile after whom stays as it is in a plan, and every agent is as early
as that allows.

The order in which agents visit tiles, together with the order of each agent's own visits, makes a system of precedences
that the plan itself satisfies; so it can be carried out by any motion, with turns or without, in finite time (Hönig et
al., ICAPS 2016). A plan without rings of agents that follow each other can also be carried out where nobody may enter a
tile that is left in the same step.
"""

import numpy as np

from ..device import lean_njit, njit

NOBODY = -1
STANDS, ASKS, WALKS, MOVES = range(4)  # in a step; ASKS until it is known, WALKS while others are asked


@njit
def cut_loops(tiles, last, when):
    """Let agents stay that leave a tile and come back before anybody else was there.

    tiles: (steps + 1, N) int32, changed; last, when: (T,) int32 scratch
    -> how many loops were cut
    """
    last[:] = NOBODY
    cut = 0
    for step in range(len(tiles)):
        for a in range(tiles.shape[1]):
            tile = tiles[step, a]
            if tile < 0:
                continue
            if last[tile] == a and when[tile] < step - 1 and tiles[when[tile], a] == tile:
                if tiles[step - 1, a] != tile:
                    for between in range(when[tile] + 1, step):
                        tiles[between, a] = tile
                    cut += 1
            last[tile], when[tile] = a, step
    return cut


@njit
def visits_of(tiles, count):
    """tiles: (steps + 1, N) int32, -1 where an agent is not there

    -> first: (N + 1,) int64 each agent's first visit; tile: (V,) int32; rank: (V,) int32 how many visits the tile had
        before
    """
    agents = tiles.shape[1]
    first = np.zeros(agents + 1, np.int64)
    for a in range(agents):
        visits = 0
        for step in range(len(tiles)):
            if tiles[step, a] >= 0 and (step == 0 or tiles[step, a] != tiles[step - 1, a]):
                visits += 1
        first[a + 1] = first[a] + visits
    tile, rank = np.empty(first[agents], np.int32), np.empty(first[agents], np.int32)
    at, seen = first.copy(), np.zeros(count, np.int32)
    for step in range(len(tiles)):
        for a in range(agents):
            now = tiles[step, a]
            if now >= 0 and (step == 0 or now != tiles[step - 1, a]):
                tile[at[a]], rank[at[a]] = now, seen[now]
                seen[now] += 1
                at[a] += 1
    return first, tile, rank


@lean_njit
def _direction(here, there, near):
    for direction in range(4):
        if near[here, direction] == there:
            return direction
    return -1


@njit
def carry_out(first, tile, rank, heading, leaves, turning, following, near, most):
    """Let agents make their visits as early as they may.

    first, tile, rank: of `visits_of`; heading: (N,) int32 at the start
    leaves: (N,) bool, does an agent leave the map in the step after its last visit? turning: do turns take a step each?
    near: (T + 1, 4) int32; most: steps
    -> (steps + 1, N) int32 tiles, the same of headings, and whether all visits were made
    """
    agents = len(heading)
    at = first[:agents].copy()
    left = np.zeros(len(near), np.int32)  # visits of a tile that are over
    occupant = np.full(len(near), NOBODY, np.int32)
    tiles, headings = np.empty((most + 1, agents), np.int32), np.empty((most + 1, agents), np.int32)
    does, chain = np.empty(agents, np.uint8), np.empty(agents, np.int32)
    waiting = 0
    for a in range(agents):
        headings[0, a] = heading[a]
        tiles[0, a] = tile[first[a]] if first[a + 1] > first[a] else -1
        if first[a + 1] > first[a]:
            occupant[tiles[0, a]] = a
            waiting += first[a + 1] - first[a] > 1 or leaves[a]
    step = 0
    while waiting > 0 and step < most:
        changed = False
        for a in range(agents):
            tiles[step + 1, a], headings[step + 1, a], does[a] = tiles[step, a], headings[step, a], STANDS
            if at[a] + 1 >= first[a + 1]:
                if leaves[a] and tiles[step, a] >= 0:
                    does[a] = MOVES
                continue
            there = tile[at[a] + 1]
            wanted = _direction(tiles[step, a], there, near)
            if turning and wanted != headings[step, a]:
                quarters = (wanted - headings[step, a]) % 4
                headings[step + 1, a] = (headings[step, a] + (3 if quarters == 3 else 1)) % 4
                changed = True
            elif left[there] == rank[at[a] + 1]:
                does[a] = MOVES
            elif following and left[there] + 1 == rank[at[a] + 1] and occupant[there] != NOBODY:
                does[a] = ASKS
        for first_one in range(agents):
            a, length = first_one, 0
            while does[a] == ASKS:
                chain[length], does[a] = a, WALKS
                length += 1
                a = occupant[tile[at[a] + 1]]
            outcome = STANDS if does[a] == STANDS else MOVES  # whoever WALKS closes a ring
            for k in range(length):
                does[chain[k]] = outcome
        for a in range(agents):
            if does[a] == MOVES:
                occupant[tiles[step, a]] = NOBODY
                left[tiles[step, a]] += 1
        for a in range(agents):
            if does[a] != MOVES:
                continue
            changed = True
            if at[a] + 1 == first[a + 1]:
                tiles[step + 1, a] = -1
                waiting -= 1
                continue
            at[a] += 1
            tiles[step + 1, a] = tile[at[a]]
            occupant[tile[at[a]]] = a
            waiting -= at[a] + 1 == first[a + 1] and not leaves[a]
        step += 1
        if not changed:
            return tiles[:step].copy(), headings[:step].copy(), False
    return tiles[: step + 1].copy(), headings[: step + 1].copy(), waiting == 0
