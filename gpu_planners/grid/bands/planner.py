"""BandedPlanner: fields and paths on a map of which each rank holds a band only.

Every rank makes one, and all make the same calls in the same order, since each call is work of all ranks. Each rank
relaxes its part of a field by `exact`, from the values that its neighbours have found so far; they exchange the values
along their borders until none changes. Relaxation of positive costs has one fixed point, so the field is that of one
device, bit for bit, however the map is cut.
"""

import hashlib
import operator
import sys
import time
import zlib
from dataclasses import replace
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked, number, whole
from ...device import refuse_forked, resolve_device
from ...distributed.exchange import Exchange, own_device
from ...errors import DeviceError, GridMapError, SettingsError, shown
from ..exact.bits import UNREACHED
from ..exact.blocks import BITS, VALUES, Blocks, FieldShape, checked_size
from ..exact.values import DIAGONAL_8, INFINITE, unit_of
from ..maps.grid_map import MOST_TILES, cost_counts
from ..paths import NO_PATH, SOLVED, START_BLOCKED, START_NOT_FINITE, START_OUTSIDE, PathSet, step_bits
from ..tiles import as_tiles
from .agents import follow_agents, joined
from .cut import Band, check_memory, neighbours, plan_bands
from .region import FieldReport, Region, relax_field
from .source import MapRows, read_rows

SHARE_OF_GPU = 0.9  # of the memory that is free
LONGEST = {BITS: int(UNREACHED) - 4, VALUES: int(INFINITE)}  # the greatest cost-to-go, in units of the layout


class BandedPlanner:
    """Plans on a map that is cut into bands of rows over the ranks of an exchange; the algorithm is `exact`.

    source: MapRows, of which each rank reads the rows of its band, and a block more on each side
    exchange: between the ranks: `distributed.Ranks`, or what `distributed.run` gives to threads
    connectivity: 4 or 8, as of GridMap
    block_size: side of a planning block in tiles: 4, 8, 16 or 32
    device: "cpu", "cuda" or "cuda:N" for this rank; "auto": the machine's GPUs in turns, the CPU where there are none
    share: how much of the map this rank takes, in proportion to the others; for devices that are not alike
    memory_limit_bytes: most memory on this rank's device; a band that takes more is planned in pieces, whose state lies
        in the host's memory. None: no limit on the CPU, what is free on a GPU

    band: Band of this rank;  bands: of all ranks
    report: FieldReport of the latest field; None before

    Raises, on every rank, GridMapError, SettingsError, DeviceError; GridMapError also where the bands of a machine need
    more memory than it has, before any is taken. Errors of `source` are raised where they occur; the exchange tells the
    others.
    """

    @checked(GridMapError, SettingsError)
    def __init__(
        self,
        source: MapRows,
        exchange: Annotated[Exchange, SettingsError],
        connectivity: Annotated[int, GridMapError] = 8,
        block_size: float = 32,
        device: Annotated[str, DeviceError] = "auto",
        share: float = 1.0,
        memory_limit_bytes: int | None = None,
    ):
        refuse_forked()
        if connectivity not in (4, 8):
            raise GridMapError(f"connectivity is {shown(connectivity)}; allowed: 4 or 8")
        if memory_limit_bytes is not None:
            whole("memory_limit_bytes", memory_limit_bytes, 1, 2**62)
        self.shape, self.connectivity = (source.rows, source.cols), int(connectivity)
        self.device = own_device(exchange) if device == "auto" else resolve_device(device)
        self._exchange, self._limit = exchange, memory_limit_bytes
        if self._limit is None and self.device != "cpu":
            self._limit = _free_on(self.device)
        share = number("share", share, 0.0, sys.float_info.max)
        block_size = checked_size(block_size)
        given = {"map": self.shape, "connectivity": self.connectivity, "block_size": block_size}
        told = exchange.all_gather((given, share))
        for what in given:
            _refuse_different([each[what] for each, _ in told], f"another {what}")
        self.bands: list[Band] = plan_bands(source.rows, exchange.size, block_size, [share for _, share in told])
        self.band: Band = self.bands[exchange.rank]
        self._sides = neighbours(self.bands, exchange.rank)
        self.report: FieldReport | None = None
        self._goal: tuple[int, int] | None = None
        self._open(source, block_size)

    def _open(self, source, block_size):
        """Read the map's part of this rank, and make room for a field."""
        band, cols = self.band, source.cols
        for each in self.bands:
            if (each.bottom - each.top) * cols > MOST_TILES:
                raise GridMapError(
                    f"the band of rank {each.rank} has {each.bottom - each.top} x {cols} tiles; allowed: at most "
                    f"{MOST_TILES}, by more ranks"
                )
        blocks = Blocks(band.bottom - band.top, cols, block_size)
        self._layout = BITS if self.connectivity == 4 else VALUES  # BITS only where all costs turn out to be one
        check_memory(self._exchange, self.shape, self._need(blocks))
        costs = np.zeros((0, cols), np.uint8)
        if band.rows:
            costs = read_rows(source, *band.held)
        own = costs[band.first - band.held[0] :][: band.rows]
        region_free = np.count_nonzero(costs)
        told = self._exchange.all_gather((cost_counts(own), region_free, self._shared_rows(costs)))
        _refuse_different_rows([each[2] for each in told])
        counts = np.sum([each[0] for each in told], axis=0)
        used = np.flatnonzero(counts[1:]) + 1
        self.uniform_cost: int = int(used[0]) if len(used) == 1 else 0
        if self._layout == BITS and not self.uniform_cost:
            self._layout = VALUES
            check_memory(self._exchange, self.shape, self._need(blocks) - costs.nbytes)
        most_free = max(each[1] for each in told)
        self._most_value = self._farthest(int(counts[1:].sum()), most_free, int(used.max(initial=1)))
        self._region = None
        if band.rows:
            shape = FieldShape(self._layout, blocks, self.connectivity)
            self._region = Region(band, shape, costs, self.device, self._limit)

    def _shared_rows(self, costs):
        """{rank beside: rows (first, last) that it has read too, their checksum}. costs: of the rows `band.held`"""
        begin, shared = self.band.held[0], {}
        for other in filter(None, self._sides):
            first, last = (pick(ends) for pick, ends in zip((max, min), zip(self.band.held, other.held)))
            shared[other.rank] = (first, last), zlib.crc32(costs[first - begin : last - begin])
        return shared

    def _need(self, blocks):
        """Bytes of the host's memory that this rank takes at most."""
        shape, tiles = FieldShape(self._layout, blocks, self.connectivity), blocks.rows * blocks.cols
        if not self.band.rows:
            return 0
        if self.device == "cpu" or self._limit is not None and shape.bytes_with_map > self._limit:
            return tiles // 8 + max(shape.bytes_with_map, tiles + shape.bytes_with_map - shape.field_bytes)
        return 2 * tiles  # costs, while they are brought to the device; later directions

    def _farthest(self, free, most_free, highest):
        """The greatest value that a border may have, so that no value on a region is too large to be counted.

        free: tiles of the map;  most_free: tiles of the region that has most of them;  highest: cost of a tile
        """
        longest, step = LONGEST[self._layout], 1
        if self._layout == VALUES:
            step = highest * (DIAGONAL_8 if self.connectivity == 8 else unit_of(4))
        if free * step <= longest:
            return longest
        if most_free * step > longest // 2:
            raise GridMapError(
                f"a rank has {most_free} free tiles with costs up to {highest}; allowed: at most "
                f"{longest // 2 // step}, so that the cost of any path can be counted, by more ranks"
            )
        return longest // 2

    @property
    def visits(self) -> int | None:
        """How often a piece of this rank's band was worked on for the latest field; None where it is planned whole."""
        return self._region.visits if self._region else None

    def prepare(self, goal: ArrayLike):
        """Plan the field of a goal (2,) [row, col] now; `plan` for that goal has then only to follow it.

        Raises GridMapError for a goal that is no free tile of the map.
        """
        refuse_forked()
        tiles = as_tiles("goal", goal)
        self._refuse_different_tiles(tiles)
        tiles, fault = self._looked_at(tiles)
        if len(tiles) != 1 or fault.any():
            raise GridMapError(
                f"goal {shown(goal)} is not a free tile (row, col) of the {self.shape[0]} x {self.shape[1]} map"
            )
        self._plan_field(tuple(tiles[0].tolist()))

    def field(self, goal: ArrayLike, rows: tuple[int, int] | None = None) -> np.ndarray:
        """Cost-to-go of this rank's tiles to a goal (row, col) anywhere on the map.

        rows: (first, last) of the map within `band`, first .. last - 1; None: all of the band. Ranks may ask for
            different ones
        -> (last - first, cols) float64 in tile lengths, inf without a path: those rows of the whole field

        Raises GridMapError for a goal that is no free tile of the map, or rows outside of the band.
        """
        first, last = self._checked_rows(rows)
        self.prepare(goal)
        if self._region is None or first == last:
            return np.zeros((0, self.shape[1]))
        return self._region.distances(first, last, self.uniform_cost)

    def _checked_rows(self, rows):
        """(first, last) of what `field` takes."""
        begin, end = self.band.first, self.band.last
        try:
            first, last = (begin, end) if rows is None else map(operator.index, rows)
        except Exception:  # no integers, or not two, and whatever an object of the caller raises
            first, last = end, begin - 1
        if not begin <= first <= last <= end:
            raise GridMapError(
                f"rows are {shown(rows)}; allowed: (first, last) within {begin} .. {end}, the band of rank "
                f"{self.band.rank}"
            )
        return first, last

    def plan(self, starts: ArrayLike, goals: ArrayLike) -> PathSet:
        """Paths from starts to goals, which may lie in any bands. Every rank gives the same ones, and gets all paths.

        starts: (N, 2) [row, col]; goals: (2,) for all, or (N, 2). Numbers that are not whole are rounded down.
        -> PathSet of N agents, as of BlockPlanner

        A field for each different goal is planned, one after the other. Raises GridMapError, as BlockPlanner does;
        MemoryError where all paths take more than MOST_WORDS.
        """
        refuse_forked()
        began = time.perf_counter()
        given_starts, given_goals = as_tiles("starts", starts), as_tiles("goals", goals)
        self._refuse_different_tiles(given_starts, given_goals)
        n = len(given_starts)
        if len(given_goals) not in (1, n):
            raise GridMapError(f"goals has {len(given_goals)} rows; allowed: one goal (2,), or {n}, one for each start")
        tiles, status = self._looked_at(given_starts)
        goal_tiles, fault = self._looked_at(given_goals)
        of_goal = np.where(fault == SOLVED, SOLVED, fault + 1)  # a goal's status follows a start's
        status = np.where(status == SOLVED, of_goal, status).astype(np.uint8)
        goal_tiles = np.broadcast_to(goal_tiles, tiles.shape)
        return self._plan_valid(tiles, goal_tiles, status, began)

    def update(self, rows: ArrayLike, cols: ArrayLike, costs: ArrayLike):
        """Refused: changed tiles are not repaired across bands. Raises SettingsError; make a new planner instead."""
        raise SettingsError(
            "tiles of a map in bands cannot be changed; allowed: a new BandedPlanner of the changed map"
        )

    def _plan_valid(self, tiles, goals, status, began):
        """The paths of agents; a status other than SOLVED says why an agent has none."""
        n, bits = len(tiles), step_bits(self.connectivity)
        valid = np.flatnonzero(status == SOLVED)
        distinct, which = np.unique(goals[valid], axis=0, return_inverse=True)
        cost, found = np.full(n, np.inf), []
        for which_goal, goal in enumerate(distinct.tolist()):
            self._plan_field(tuple(goal))
            agents = valid[which.reshape(-1) == which_goal]
            own = agents[(self.band.first <= tiles[agents, 0]) & (tiles[agents, 0] < self.band.last)]
            handed = np.column_stack([own, np.zeros(len(own), np.int64), tiles[own]])
            found += follow_agents(self._exchange, self._region, self._sides, handed, tuple(goal), bits)
            if self._layout == VALUES and len(own):
                cost[own] = self._region.costs_to_go(tiles[own])
        reached, moves, offsets = joined(self._exchange, found, n, bits)
        if self._layout == BITS:
            cost = np.diff(offsets) * float(self.uniform_cost)
        else:
            cost = np.min(self._exchange.all_gather(cost), axis=0) / unit_of(self.connectivity)
        status[valid[~reached[valid]]] = NO_PATH
        cost[~reached] = np.inf
        paths = PathSet.of_moves(tiles, status, cost, moves, offsets, self.connectivity)
        return replace(paths, time_s=time.perf_counter() - began)

    def _plan_field(self, goal):
        """Plan the field of a free tile, unless it is the latest one."""
        if goal == self._goal:
            return
        self._goal = None
        self.report = relax_field(self._exchange, self._region, self._sides, goal, self._most_value)
        self._goal = goal

    def _looked_at(self, tiles):
        """-> whole tiles (N, 2) int32, what is wrong with each (N,) uint8, as the status of a start"""
        inside = ((tiles >= 0) & (tiles < self.shape)).all(axis=1)
        fault = np.where(np.isfinite(tiles).all(axis=1), START_OUTSIDE, START_NOT_FINITE).astype(np.uint8)
        fault[inside] = SOLVED
        tiles = np.where(inside[:, None], tiles, 0).astype(np.int32)
        blocked = inside & (self.band.first <= tiles[:, 0]) & (tiles[:, 0] < self.band.last)
        if self._region:
            blocked[blocked] = ~self._region.free(*tiles[blocked].T)
        told = np.bitwise_or.reduce(self._exchange.all_gather(np.packbits(blocked)), axis=0)
        fault[np.unpackbits(told, count=len(tiles)) > 0] = START_BLOCKED
        return tiles, fault

    def _refuse_different_tiles(self, *arrays):
        digest = hashlib.sha256(repr([(array.shape, array.dtype.str) for array in arrays]).encode())
        for array in arrays:
            digest.update(array.tobytes())
        _refuse_different(self._exchange.all_gather(digest.digest()), "other starts or goals")


def _refuse_different(told, what):
    """Raise GridMapError, on every rank, where ranks were given different things. told: by rank"""
    other = next((rank for rank, each in enumerate(told) if each != told[0]), None)
    if other is not None:
        raise GridMapError(f"rank {other} was given {what} than rank 0; allowed: the same on every rank")


def _refuse_different_rows(told):
    """Raise GridMapError, on every rank, where two ranks have read other costs of the same rows. told: by rank, those
    of `_shared_rows`"""
    for rank, shared in enumerate(told):
        for other, ((first, last), checksum) in shared.items():
            if told[other][rank][1] != checksum:
                raise GridMapError(
                    f"rows {first} .. {last - 1} of the map are not the same on the ranks {rank} and {other}; allowed: "
                    "one map for all ranks"
                )


def _free_on(device):
    """Bytes that a band may take on a GPU."""
    from numba import cuda

    with cuda.gpus[int(device.partition(":")[2] or 0)]:
        return int(cuda.current_context().get_memory_info().free * SHARE_OF_GPU)
