"""Which reports of agents count: in the order in which they were measured, and no jumps that nothing confirms.

Networks deliver late, twice and out of order, bridges send again, and two publishers may report one agent. So the
reports of an agent count by their stamps; one that is not newer than the latest is passed over. A place that the agent
cannot have come to since the last report is doubted until the next report confirms it. How much positions scatter is
found out from the axis along which an agent does not move.
"""

from typing import NamedTuple

import numpy as np

WINDOW = 16  # of an agent's latest places that are kept
REPORT = [
    ("point", "f8", 2),  # metres, of the latest report that counts
    ("yaw", "f8"),  # rad, of that report; NaN: none was given
    ("heard", "f8"),  # when that report, or a newer one that is not valid or doubted, came
    ("stamp", "f8"),  # when that was measured; 0: not known
    ("older", "f8"),  # the latest stamp of reports that came since, and are older; 0: there are none
    ("older_since", "f8"),  # when the first of these came
    ("doubted", "f8", 2),  # metres, the place that is doubted
    ("doubted_at", "f8"),  # when it was reported, by the clock that reports are compared by; NaN: nothing is
    ("doubts", "f8"),  # how often that was so lately
    ("scatter", "f8"),  # variance of reported places, tiles squared
    ("samples", "i8"),  # from which it is known
    ("trail", "f8", (WINDOW, 2)),  # the latest places, the last one first, in tiles
    ("count", "i8"),  # of these that belong to the present action
]
FASTEST = 2.0  # tiles in the time of a move that an agent covers at most
MARGIN = 0.5  # tiles that two reports may differ by in any case
SIGMAS = 6.0  # of the scatter, by which they may differ besides
CONTRADICTED = 3.0  # doubts after which reports contradict each other, not once but as a rule
MOST_DOUBTS = 5.0
REGAINED = 0.1  # of a doubt that a report takes away which fits the one before
LATEST = 20  # reports from which the scatter is found
MOST = 0.5  # tiles: a difference that counts for more is no scatter


class Pace(NamedTuple):
    """What reports are judged by. after: seconds of silence after which a clock that was set back is believed"""

    tiles_per_s: float
    after: float
    jumps: bool  # may agents be anywhere in the next report, as in a simulator?


def in_order(agents: np.ndarray, stamps: np.ndarray, heard: np.ndarray, after: float) -> np.ndarray:
    """Which of the latest reports on K agents are newer than those before -> (K,) bool; the others are passed over.

    agents: (K,) with the fields REPORT, which take note; stamps: (K,) seconds, 0: not known; heard: (K,) when they came
    """
    old = (stamps > 0) & (agents["stamp"] > 0) & (stamps <= agents["stamp"])
    rising = old & (stamps > agents["older"])
    first = rising & (agents["older"] == 0)
    agents["older_since"][first] = heard[first]
    agents["older"][rising] = stamps[rising]
    lost = np.maximum(agents["heard"], agents["older_since"])  # since then there are none but older ones
    newer = ~old | (rising & ~first & (heard - lost >= after) & (heard - agents["heard"] >= after))
    agents["older"][newer] = 0
    return newer


def take(
    agents: np.ndarray,
    points: np.ndarray,
    places: np.ndarray,
    yaws: np.ndarray,
    stamps: np.ndarray,
    heard: np.ndarray,
    across: np.ndarray,
    resolution: float,
    pace: Pace,
) -> None:
    """Take reports on K agents that are in order.

    agents: (K,) with the fields REPORT; points: (K, 2) metres; places: (K, 2) the same in tiles; yaws: (K,) rad or NaN
    across: (K, 2) bool, the rows or columns along which an agent does not move
    """
    by_stamp = (stamps > 0) & (agents["stamp"] > 0)
    times = np.where(by_stamp, stamps, heard)
    passed = np.maximum(times - np.where(by_stamp, agents["stamp"], agents["heard"]), 0.0)
    scatter = np.sqrt(agents["scatter"])
    known = agents["heard"] > -np.inf
    moved = np.linalg.norm(points - agents["point"], axis=1) / resolution
    fits = ~known | pace.jumps | (moved <= MARGIN + pace.tiles_per_s * passed + SIGMAS * scatter)
    since = np.abs(times - agents["doubted_at"])  # NaN where nothing is doubted
    again = np.linalg.norm(points - agents["doubted"], axis=1) / resolution
    with np.errstate(invalid="ignore"):
        confirmed = ~fits & (again <= MARGIN + pace.tiles_per_s * since + SIGMAS * scatter)
    doubted = ~fits & ~confirmed
    doubts = np.where(doubted, agents["doubts"] + 1, agents["doubts"] - REGAINED)
    agents["doubts"] = np.clip(doubts, 0.0, MOST_DOUBTS)
    agents["doubted"][doubted] = points[doubted]
    agents["doubted_at"] = np.where(doubted, times, np.nan)
    agents["heard"], agents["stamp"] = heard, np.where(stamps > 0, stamps, 0.0)
    _note_scatter(agents, places, across & (known & fits & (agents["count"] > 0))[:, None])
    agents["count"][confirmed] = 0
    counts = ~doubted
    agents["point"][counts], agents["yaw"][counts] = points[counts], yaws[counts]
    trail = agents["trail"]
    if counts.all():  # as a rule; this takes half the time
        trail[:, 1:] = trail[:, :-1].copy()
    else:
        trail[counts, 1:] = trail[counts, :-1]
    trail[counts, 0] = places[counts]
    agents["count"][counts] = np.minimum(agents["count"][counts] + 1, WINDOW)


def _note_scatter(agents, places, across):
    """Two reports of a place that does not change differ by twice the variance of each."""
    some = across.any(axis=1)
    apart = np.clip(places[some] - agents["trail"][some, 0], -MOST, MOST) ** 2 / 2
    found = (apart * across[some]).sum(axis=1) / across[some].sum(axis=1)
    samples = np.minimum(agents["samples"][some] + 1, LATEST)
    agents["scatter"][some] += (found - agents["scatter"][some]) / samples
    agents["samples"][some] = samples


def is_doubted(agents: np.ndarray) -> np.ndarray:
    """(K,) bool, of whom is it not known where they are, since reports contradict each other?"""
    return ~np.isnan(agents["doubted_at"]) | (agents["doubts"] >= CONTRADICTED)


def means(agents: np.ndarray, counts: tuple[int, ...]) -> np.ndarray:
    """(K, C, 2) means of the latest places of agents, so many of each; NaN where there are fewer"""
    total = np.cumsum(agents["trail"], axis=1)[:, np.array(counts) - 1]
    enough = agents["count"][:, None] >= counts
    return np.where(enough[..., None], total / np.array(counts)[:, None], np.nan)
