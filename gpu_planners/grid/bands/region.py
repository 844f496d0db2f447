"""The rows that one rank works on, as a smaller map with fields of its own; and a field over all ranks.

Beyond each side lies a ring of one row of tiles, which `exact` only reads (`streamed` plans windows in the same way).
Regions overlap, so the neighbour's region holds these tiles and their values.
"""

import os
import time
from dataclasses import dataclass

import numpy as np

from ...distributed.exchange import Exchange
from ...errors import GridMapError
from ..exact.bits import UNREACHED, WALL, BitField
from ..exact.blocks import AT_GOAL, VALUES, Blocks, FieldShape
from ..exact.cpu import MOST_THREADS, NO_CODES, follow
from ..exact.fields import distances, open_fields
from ..exact.rounds import ALL_DIRECTIONS, GOAL_BLOCK, NO_DIRECTIONS, Request
from ..exact.streamed import Cut, StreamedFields
from ..exact.values import DIAGONAL_8, INFINITE, unit_of
from ..paths import NORTH, SOUTH
from .cut import Band

NORTH_RING, SOUTH_RING = 0, 1  # sides of a region
TILES_A_TIME = 1 << 24  # of the map, while it is brought to the device
STOP = np.uint8(AT_GOAL << 4 | AT_GOAL)  # two direction codes


class Region:
    """The fields of a rank's region, one at a time.

    band: Band of the rank, not empty
    shape: FieldShape of the region; its layout is that of the whole map
    costs: (rows + 1 for each ring, cols) uint8 of the region and its ring
    limit_bytes: of memory on the device; a region beyond it is planned in pieces. None: as much as it takes
    """

    def __init__(self, band: Band, shape: FieldShape, costs: np.ndarray, device: str, limit_bytes: int | None):
        self.band, self.rings, self.shape = band, band.rings, shape
        if limit_bytes is None or self.shape.bytes_with_map <= limit_bytes:
            self._fields = open_fields(self.shape, device)
        else:
            cut = Cut.of(self.shape, limit_bytes)
            self._fields = StreamedFields(cut, open_fields(cut.window, device))
        self._fields.allocate(1)
        inner = costs[self.rings[NORTH_RING] : len(costs) - self.rings[SOUTH_RING]]
        self._set_map(inner, costs)
        self._free = np.empty((len(inner), -(-inner.shape[1] // 8)), np.uint8)
        step = max(1, TILES_A_TIME // inner.shape[1])
        for first in range(0, len(inner), step):
            self._free[first : first + step] = np.packbits(inner[first : first + step] > 0, axis=1)
        outermost = ((rows[0], rows[-1]) for rows in (costs, inner))
        self._ring_cost, self._own_cost = ([self._padded(row) for row in pair] for pair in outermost)  # by side
        self._edges = np.full((2, shape.blocks.width, 4, shape.blocks.size), WALL, np.int32)  # of the ring: BITS
        self._goals = np.zeros((1, 4), np.int32)
        self._codes = NO_CODES
        self._threads = min(MOST_THREADS, len(os.sched_getaffinity(0)))

    @property
    def visits(self) -> int | None:
        """How often a piece was worked on for the latest field; None where the region is planned in one."""
        return getattr(self._fields, "visits", None)

    def _set_map(self, inner, costs):
        blocks, cols = self.shape.blocks, costs.shape[1]
        step = max(1, TILES_A_TIME // (blocks.size * cols))  # rows of blocks
        if self.shape.layout == VALUES:
            begin, step = 1 - self.rings[NORTH_RING], step * blocks.size
            for first in range(0, len(costs), step):
                padded = self._padded(costs[first : first + step])
                self._fields.write("map", slice(begin + first, begin + first + len(padded)), padded)
            return
        for first in range(0, blocks.height - 2, step):
            part = inner[first * blocks.size : (first + step) * blocks.size]
            words = Blocks(*part.shape, blocks.size).free_rows(part > 0)[blocks.width : -blocks.width]
            begin = (first + 1) * blocks.width
            self._fields.write("map", slice(begin, begin + len(words)), words)
        for side, row in ((NORTH_RING, costs[:1]), (SOUTH_RING, costs[-1:])):
            if self.rings[side]:
                words = Blocks(1, cols, blocks.size).free_rows(row > 0)[blocks.width : 2 * blocks.width]
                if side == NORTH_RING:
                    words = np.roll(words, blocks.size - 1, axis=1)  # the row beside the region is the block's last
                self._fields.write("map", self._ring(side), words)

    def _padded(self, costs):
        """Rows of costs as the fields of VALUES have them."""
        left = (1, self.shape.padded[1] - 1 - costs.shape[-1])
        return np.pad(costs, [(0, 0)] * (costs.ndim - 1) + [left])

    def _ring(self, side):
        """The blocks of the ring on one side."""
        blocks = self.shape.blocks
        return slice(0, blocks.width) if side == NORTH_RING else slice(blocks.count - blocks.width, blocks.count)

    def free(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Are tiles of the region free? rows: of the map -> (N,) bool"""
        return (self._free[rows - self.band.top, cols >> 3] >> (7 - (cols & 7)) & 1).astype(bool)

    def begin(self, goal: tuple[int, int]):
        """Plan the field of a goal (row, col) of the map from nothing, as far as this region alone tells it."""
        blocks, (row, col) = self.shape.blocks, goal
        if self.band.top <= row < self.band.bottom:
            self._goals[0] = *blocks.of_tiles(row - self.band.top, col), (row + col) & 1, 1
        else:
            self._goals[0] = blocks.width + 1, -1, (row + col) & 1, 1  # no tile of any block
        self._fields.update(Request(self._goals, new=[0], directions=NO_DIRECTIONS))

    def go_on(self, blocks: np.ndarray):
        """Relax from some blocks on, given the ring."""
        self._fields.update(Request(self._goals, relax=blocks.tolist(), directions=NO_DIRECTIONS))

    def values_of_row(self, row: int) -> np.ndarray:
        """Values of a row of the map that lies in the region beside a border of blocks, as neighbours take them."""
        blocks, row = self.shape.blocks, row - self.band.top
        if self.shape.layout == VALUES:
            return self._fields.read("values", (0, row + 1)).copy()
        side, first = SOUTH if row % blocks.size else NORTH, (row // blocks.size + 1) * blocks.width
        return self._fields.read("edge", slice(first, first + blocks.width))[:, side].copy()

    def row_room(self) -> np.ndarray:
        """An array for what `values_of_row` of a neighbour gives."""
        blocks = self.shape.blocks
        if self.shape.layout == VALUES:
            return np.empty(self.shape.padded[1], np.int64)
        return np.empty((blocks.width, blocks.size), np.int32)

    def farthest(self, values: np.ndarray) -> int:
        """The greatest value of the tiles of `values_of_row` that are reached; WALL where none is."""
        nothing = INFINITE if self.shape.layout == VALUES else UNREACHED
        return int(values.max(where=values < nothing, initial=WALL))

    def take(self, side: int, values: np.ndarray) -> np.ndarray:
        """Put values of `values_of_row` into the ring -> the blocks that get better by it, (n,) int32"""
        blocks, north = self.shape.blocks, side == NORTH_RING
        own = self.values_of_row(self.band.top if north else self.band.bottom - 1)
        if self.shape.layout == VALUES:
            self._fields.write("values", (0, 0 if north else self.shape.padded[0] - 1), values)
            better = self._better_values(side, own, values)[1:-1].reshape(-1, blocks.size).any(axis=1)
            columns = np.flatnonzero(better) + 1
        else:
            self._edges[side][:, SOUTH if north else NORTH] = values
            self._fields.write("edge", self._ring(side), self._edges[side])
            columns = np.flatnonzero(((values >= 0) & (values < own - 1)).any(axis=1))
        return (columns + (1 if north else blocks.height - 2) * blocks.width).astype(np.int32)

    def _better_values(self, side, own, values):
        """Which tiles of the region's row beside the ring get better by the ring: (padded cols,) bool"""
        ring, here = self._ring_cost[side].astype(np.int64), self._own_cost[side] > 0
        best = values + ring * unit_of(self.shape.connectivity)
        if self.shape.connectivity == 8:
            diagonal, open_ = values + ring * DIAGONAL_8, ring > 0
            for to, by in ((slice(None, -1), slice(1, None)), (slice(1, None), slice(None, -1))):
                passes = open_[to] & here[by]  # the two tiles whose corner it passes
                best[to] = np.where(passes, np.minimum(best[to], diagonal[by]), best[to])
        return here & (best < own)

    def finish(self):
        """The field is there: write its directions, with stops in the outermost rows, where others go on."""
        blocks, size = self.shape.blocks, self.shape.blocks.size
        self._fields.update(Request(self._goals, directions=ALL_DIRECTIONS))
        self._codes = self._fields.read("directions", slice(None))
        octets = self._codes.view(np.uint8).reshape(blocks.height, blocks.width, size, size // 2)
        if self.rings[NORTH_RING]:
            octets[1, :, 0] = STOP
        if self.rings[SOUTH_RING]:
            octets[-2, :, -1] = STOP

    def follow(self, tiles: np.ndarray, bits: int) -> tuple[np.ndarray, ...]:
        """Ways of agents down the field, to the goal or to a stop. tiles: (N, 2) int32 of the map, in the region

        -> length (N,) int32, -1 without a path; first (N,) int64; words: as of `CpuFields.descend`
        """
        starts = np.ascontiguousarray(tiles - (self.band.top, 0), np.int32)
        return follow(self.shape, self._codes, starts, np.zeros(1, np.int32), bits, self._threads)

    def costs_to_go(self, tiles: np.ndarray) -> np.ndarray:
        """Values of tiles of the region, in units: (N,) int64. VALUES only"""
        out, order = np.empty(len(tiles), np.int64), np.argsort(tiles[:, 0], kind="stable")
        rows, firsts = np.unique(tiles[order, 0], return_index=True)
        for row, agents in zip(rows.tolist(), np.split(order, firsts[1:])):
            out[agents] = self._fields.read("values", (0, row - self.band.top + 1))[tiles[agents, 1] + 1]
        return out

    def distances(self, first: int, last: int, uniform: int) -> np.ndarray:
        """Costs-to-go of the rows first .. last - 1 of the map, in the region: (last - first, cols) float64, tile
        lengths. uniform: the one cost of all free tiles, of BITS"""
        blocks, first, last = self.shape.blocks, first - self.band.top, last - self.band.top
        if self.shape.layout == VALUES:
            values = self._fields.read("values", (0, slice(first + 1, last + 1)))[:, 1 : blocks.cols + 1]
            return np.where(values < INFINITE, values / unit_of(self.shape.connectivity), np.inf)
        size, begin = blocks.size, first // blocks.size
        part = Blocks(min(blocks.rows, -(-last // size) * size) - begin * size, blocks.cols, size)
        items = slice(begin * blocks.width, begin * blocks.width + part.count)
        free, values, edge = (np.ascontiguousarray(self._fields.read(n, items)) for n in ("map", "values", "edge"))
        goal = self._goals[0].copy()
        goal[GOAL_BLOCK] -= items.start
        steps = distances(part, BitField(self.shape.kind, part.width, part.count, free, values, edge, NO_CODES), goal)
        steps = steps[first - begin * size : last - begin * size]
        return np.where(steps < UNREACHED, steps.astype(float) * uniform, np.inf)


@dataclass(frozen=True)
class FieldReport:
    """How the latest field was made.

    rounds: how often the ranks exchanged their borders
    sent_bytes: what this rank sent for it
    time_s: seconds
    """

    rounds: int
    sent_bytes: int
    time_s: float


def relax_field(
    exchange: Exchange,
    region: Region | None,
    sides: tuple[Band | None, Band | None],
    goal: tuple[int, int],
    most_value: int,
) -> FieldReport:
    """Plan the field of a goal (row, col) of the map, all ranks together.

    region: of this rank, None where its band is empty;  sides: bands north and south of its own
    most_value: the greatest value that a border may have

    In each round all ranks first tell each other whose borders have changed. Only those are sent, from neighbour to
    neighbour, and only the blocks that get better by them are relaxed again.

    Raises GridMapError, on every rank, where a path costs more than can be counted.
    """
    began, rounds, sent_bytes = time.perf_counter(), 0, 0
    sent: list = [None, None]  # by side, what the neighbour has of us
    if region:
        region.begin(goal)
    while True:
        rows = [_border(region, side, band) for side, band in enumerate(sides)]
        new = [_is_new(region, row, before) for row, before in zip(rows, sent)]
        farthest = [region.farthest(row) for row in rows if region and row is not None]
        told, values = zip(*exchange.all_gather((new, max(farthest, default=0))))
        if max(values) > most_value:
            raise GridMapError(
                f"a path to the goal {goal} costs {max(values)} units at the border of a band; "
                f"allowed: at most {most_value}"
            )
        if not np.any(told):
            break
        swapped, taken = {}, []
        for side, band in enumerate(sides):
            if region and band and (new[side] or told[band.rank][1 - side]):
                received = region.row_room()[: None if told[band.rank][1 - side] else 0]
                swapped[band.rank] = (rows[side] if new[side] else received[:0], received)
                taken += [(side, received)] if len(received) else []
                sent[side] = rows[side]
                sent_bytes += swapped[band.rank][0].nbytes
        exchange.swap(swapped)
        better = [region.take(side, row) for side, row in taken] if region else []
        if region and any(map(len, better)):
            region.go_on(np.unique(np.concatenate(better)))
        rounds += 1
    if region:
        region.finish()
    return FieldReport(rounds, sent_bytes, time.perf_counter() - began)


def _border(region, side, band):
    """The values of the row that is the ring of a side's band; None where it has none on this side."""
    if band is None or not band.rings[1 - side]:
        return None
    return region.values_of_row(band.bottom if side == NORTH_RING else band.top - 1)


def _is_new(region, row, before):
    """Has a row of `_border` values that the neighbour does not have?"""
    if row is None:
        return False
    return region.farthest(row) >= 0 if before is None else not np.array_equal(row, before)
