"""The free tiles of a map, numbered, and for each goal which neighbours of a tile are nearer to it.

Where every move takes one step, each of a tile's four neighbours is one step nearer to a goal or one step farther, so
four bits a tile replace a field of distances. Sweeps from each corner of the map relax `TOGETHER` goals at once in
vector registers (fast sweeping; Zhao 2005) until nothing changes; in mazes, where that takes long, breadth-first
searches take over.
"""

from typing import NamedTuple

import numba
import numpy as np
from numba import prange

from ...device import lean_njit, njit
from ...parallel.team import NEVER, clock_ns
from ..motion import COLS_AHEAD, ROWS_AHEAD
from .lanes import parts_of

TOGETHER = 32  # goals of one sweep: vector registers of 16-bit numbers
FAR = np.uint16(60000)  # steps, or no path
MOST_SWEEPS = 32
LANE_SHIFT = 4  # bits 4 to 7 of `next_hops`: the directions that agents prefer
LOOK_ROWS = 16  # rows of a sweep between two checks of the clock
LOOK_STATES = 1 << 15  # states of a search between two checks of the clock
NO_PATH = np.int32(2**31 - 1)
DONE, TOO_LONG, LATE = range(3)  # how a sweep ended
NOBODY = -1  # in place of an agent that is on a tile


class Ground(NamedTuple):
    """The free tiles 0 to T - 1 of a map, row by row, for compiled code; T stands for every blocked one."""

    neighbour: np.ndarray  # (T + 1, 4) int32 the neighbours to the east, south, west and north
    directions: np.ndarray  # (T + 1,) uint8 bit d: is the neighbour in direction d free?
    row: np.ndarray  # (rows + 1,) int32 the first tile of each row
    part: np.ndarray  # (T + 1,) int32 number of the connected part that a tile belongs to


@lean_njit
def direction_to(here, there, neighbour):
    """-> direction of a tile's neighbour, -1 where `there` is none"""
    for direction in range(4):
        if neighbour[here, direction] == there:
            return direction
    return -1


def ground_of(free: np.ndarray) -> tuple[Ground, np.ndarray, np.ndarray]:
    """free: (rows, cols) bool -> Ground, (rows, cols) int32 tile or -1, (T, 2) int32 [row, col] of tiles"""
    count = int(free.sum())
    number = np.full(free.shape, -1, np.int32)
    number[free] = np.arange(count)
    padded = np.pad(number, 1, constant_values=-1)
    rows, cols = free.shape
    neighbour = np.full((count + 1, 4), count, np.int32)
    for direction, (r, c) in enumerate(zip(ROWS_AHEAD, COLS_AHEAD, strict=True)):
        there = padded[1 + r : 1 + r + rows, 1 + c : 1 + c + cols][free]
        neighbour[:count, direction] = np.where(there < 0, count, there)
    directions = ((neighbour < count) << np.arange(4)).sum(axis=1).astype(np.uint8)
    row = np.concatenate([[0], np.cumsum(free.sum(axis=1))]).astype(np.int32)
    part = np.full(count + 1, -1, np.int32)
    part[:count] = parts_of(free)[free] - 1
    return Ground(neighbour, directions, row, part), number, np.argwhere(free).astype(np.int32)


def plan_next_hops(
    goals: np.ndarray, starts: np.ndarray, ground: Ground, deadline: int = NEVER
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Which neighbours are nearer. goals, starts: (K,) tiles

    -> (K, T + 1) uint8, bit d of a goal and a tile: the neighbour in direction d is one step nearer (no bits at the
    goal, and where no path leads); (K,) int32 steps from each start to its goal, or NO_PATH; was all done in time?
    """
    next_hops = np.zeros((len(goals), len(ground.neighbour)), np.uint8)
    steps = np.full(len(goals), NO_PATH, np.int32)
    ones = np.ones(ground.neighbour.shape, np.uint8)
    return next_hops, steps, _plan(goals, starts, ground, ones, 0, next_hops, steps, deadline)


def prefer(goals: np.ndarray, costs: np.ndarray, ground: Ground, next_hops: np.ndarray, deadline: int):
    """Enter the first moves of the cheapest paths into bits 4 to 7 of `next_hops`, for as many goals as time allows.

    costs: (T + 1, 4) uint8, 1 .. 127, of moves out of tiles; other arguments: of plan_next_hops
    """
    _plan(goals, goals, ground, costs, LANE_SHIFT, next_hops, np.empty(len(goals), np.int32), deadline)


def _plan(goals, starts, ground, costs, shift, next_hops, steps, deadline):
    done = np.ones(-(-len(goals) // TOGETHER), bool)
    if len(goals):
        members = min(numba.get_num_threads(), len(done))
        _plan_next_hops(goals, starts, ground, costs, shift, next_hops, steps, done, deadline, members)
    return bool(done.all())


@njit(parallel=True)
def _plan_next_hops(goals, starts, ground, costs, shift, next_hops, steps, done, deadline, members):
    count = len(ground.neighbour) - 1
    for member in prange(members):
        far = np.empty((count + 1, TOGETHER), np.uint16)
        cost, queue = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
        some, changed = np.empty((64, TOGETHER), np.uint8), np.empty(len(ground.row) + 1, np.int64)
        for block in range(member, len(done), members):
            done[block] = clock_ns() <= deadline
            if not done[block]:
                continue
            first = block * TOGETHER
            lanes = min(TOGETHER, len(goals) - first)
            ended = _sweep(goals, first, lanes, far, changed, ground, costs, deadline)
            done[block] = ended != LATE
            if ended == DONE:
                for lane in range(lanes):
                    if far[starts[first + lane], lane] < FAR:
                        steps[first + lane] = far[starts[first + lane], lane]
                for begin in range(0, count, 64):
                    end = min(begin + 64, count)
                    for tile in range(begin, end):
                        _bits(tile, far, ground.neighbour, costs, some[tile - begin])
                    for lane in range(lanes):
                        for tile in range(begin, end):
                            next_hops[first + lane, tile] |= some[tile - begin, lane] << shift
            elif ended == TOO_LONG and shift == 0:
                for lane in range(lanes):
                    bits = next_hops[first + lane]
                    done[block] &= _next_hops_to(goals[first + lane], ground.neighbour, cost, queue, bits, deadline)
                    steps[first + lane] = cost[starts[first + lane]]


@lean_njit
def _bits(tile, far, neighbour, costs, out):
    """Write a tile's bits for every goal of a sweep."""
    here = far[tile]
    east, south = far[neighbour[tile, 0]], far[neighbour[tile, 1]]
    west, north = far[neighbour[tile, 2]], far[neighbour[tile, 3]]
    e, s, w, n = costs[tile]
    for lane in range(TOGETHER):
        now = here[lane]
        bits = np.uint8(np.uint16(east[lane] + e) == now) | np.uint8(np.uint16(south[lane] + s) == now) << np.uint8(1)
        more = np.uint8(np.uint16(west[lane] + w) == now) | np.uint8(np.uint16(north[lane] + n) == now) << np.uint8(1)
        out[lane] = np.uint8(bits | np.uint8(more << np.uint8(2)))


@lean_njit
def _relax(tile, along, across, far, neighbour, costs):
    """Improve a tile by its neighbours in two directions. -> has it changed?"""
    here, one, other = far[tile], far[neighbour[tile, along]], far[neighbour[tile, across]]
    more, most = np.uint16(costs[tile, along]), np.uint16(costs[tile, across])
    changed = np.uint16(0)
    for lane in range(TOGETHER):
        a, b, old = np.uint16(one[lane] + more), np.uint16(other[lane] + most), here[lane]
        new = np.uint16(a if a < b else b)
        new = np.uint16(new if new < old else old)
        changed = np.uint16(changed | np.uint16(new ^ old))
        here[lane] = new
    return changed != 0


@lean_njit
def _sweep(goals, first, lanes, far, changed, ground, costs, deadline):
    """Write far[tile, lane]: steps to goals[first + lane]. changed: (rows + 2,) int64 scratch: a row's last changing
    sweep

    -> DONE; TOO_LONG, of the sweeps or of a path; or LATE
    """
    neighbour, row = ground.neighbour, ground.row
    far[:] = FAR
    changed[:] = -5
    quiet, rows = 0, len(row) - 1
    for lane in range(lanes):
        far[goals[first + lane], lane] = 0
        r = np.searchsorted(row, goals[first + lane], "right")
        changed[r] = -1
    for sweep in range(MOST_SWEEPS):
        corner = sweep % 4
        down, right = corner == 0 or corner == 2, corner == 0 or corner == 3
        along, across = 2 if right else 0, 3 if down else 1  # neighbours that the sweep has visited before
        quiet += 1
        for k in range(rows):
            if k % LOOK_ROWS == 0 and clock_ns() > deadline:
                return LATE
            r = k if down else rows - 1 - k
            if changed[r + 1] < sweep - 4 and changed[r if down else r + 2] < sweep - 4:
                continue  # unchanged since the last sweep from this corner
            begin, end = row[r], row[r + 1]
            for i in range(begin, end):
                if _relax(i if right else begin + end - 1 - i, along, across, far, neighbour, costs):
                    changed[r + 1], quiet = sweep, 0
        if quiet == 4:
            for tile in range(len(neighbour) - 1):
                for lane in range(lanes):
                    if far[tile, lane] > FAR - 200 and far[tile, lane] < FAR:
                        return TOO_LONG
            return DONE
    return TOO_LONG


@lean_njit
def search_back(goal, headings, before, steps, queue, deadline):
    """A breadth-first search from a goal backwards over all S states. -> done in time?

    headings: of a state, 1 or 4; before: (S + 1, 4) int32 states one step before each one, S for none; without headings
        these are the neighbours
    steps: (S + 1,) int32, written: to the goal from each state, or NO_PATH; queue: (S + 1,) int32 scratch
    """
    none, done, waiting = len(before) - 1, 0, headings
    steps[:] = NO_PATH
    for heading in range(headings):
        queue[heading], steps[headings * goal + heading] = headings * goal + heading, 0
    while done < waiting:
        if done % LOOK_STATES == 0 and clock_ns() > deadline:
            return False
        state = queue[done]
        done += 1
        for k in range(4):
            other = before[state, k]
            if other != none and steps[other] == NO_PATH:
                steps[other] = steps[state] + 1
                queue[waiting] = other
                waiting += 1
    return True


@lean_njit
def _next_hops_to(goal, neighbour, steps, queue, bits, deadline):
    """`search_back` on tiles; bits: (T + 1,) uint8, written"""
    done = search_back(goal, 1, neighbour, steps, queue, deadline)
    for tile in range(len(neighbour) - 1):
        for direction in range(4):
            if steps[neighbour[tile, direction]] < steps[tile] < NO_PATH:
                bits[tile] |= np.uint8(1 << direction)
    return done


def next_hops_to(goal: int, ground: Ground, deadline: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """-> (T + 1,) uint8 of `plan_next_hops`; (T + 1,) int32 steps from each tile, or NO_PATH; was it done in time?"""
    steps, queue = np.empty(len(ground.neighbour), np.int32), np.empty(len(ground.neighbour), np.int32)
    bits = np.zeros(len(ground.neighbour), np.uint8)
    return bits, steps, bool(_next_hops_to(goal, ground.neighbour, steps, queue, bits, deadline))


@njit
def steps_down(start, goal, field, next_hops, neighbour):
    """-> (N,) int32 steps from starts to goals, down rows `field` of next_hops; 0 without a goal"""
    steps = np.zeros(len(start), np.int32)
    for a in range(len(start)):
        tile = start[a]
        while goal[a] >= 0 and tile != goal[a] and next_hops[field[a], tile]:
            direction = 0
            while not (next_hops[field[a], tile] >> direction) & 1:
                direction += 1
            tile = neighbour[tile, direction]
            steps[a] += 1
    return steps
