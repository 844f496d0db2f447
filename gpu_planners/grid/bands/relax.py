"""A field over all ranks: each relaxes its region, and they exchange borders until no value changes."""

import time
from dataclasses import dataclass

import numpy as np

from ...distributed.exchange import Exchange
from ...errors import GridMapError
from .cut import Band
from .region import NORTH_RING, Region


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
