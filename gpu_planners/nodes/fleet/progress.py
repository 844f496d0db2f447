"""What agents have done of what they were told, by their reports; who is where nothing that it was told leads."""

from typing import NamedTuple

import numpy as np

from ...fleet.action_graph import ActionGraph
from .reports import means

CERTAIN = 2.5  # standard deviations of a mean, by which an agent must have arrived
OUTLYING = 4.0  # of a report, by which it must be off
EXACT = 0.005  # tiles: of positions that scatter less, one is enough
COUNTS = 1, 2, 3, 4, 6, 8, 12, 16  # of reports that a mean is taken of
MOST_SLACK = 1.0  # tiles


class Progress(NamedTuple):
    """Of each agent. begins: is it where its first action begins? off: is it where nothing that it was told leads?"""

    done: np.ndarray  # (N,) int64 actions that it has done
    begins: np.ndarray  # (N,) bool
    off: np.ndarray  # (N,) bool


def scatter_of(agents: np.ndarray) -> np.ndarray:
    """(N,) tiles, standard deviation of what agents report, and that of most others at least"""
    known = agents["samples"] > 0
    common = np.median(agents["scatter"][known]) if known.any() else 0.0
    return np.sqrt(np.maximum(agents["scatter"], common))


def across(graph: ActionGraph, axis: np.ndarray) -> np.ndarray:
    """(N, 2) bool, the rows or columns along which agents do not move. axis: (N,) along which each moved last, or -1"""
    allowed = np.arange(1, graph.most + 1) <= graph.allowed[:, None]
    moves = ((graph.tiles[:, 1:] != graph.tiles[:, :-1]) & allowed[..., None]).any(axis=1)
    return ~moves & (axis[:, None] != np.arange(2))


def progress(
    graph: ActionGraph, agents: np.ndarray, places: np.ndarray, faces: np.ndarray, tolerance: float
) -> Progress:
    """By the latest reports of agents (N,) that count.

    places: (N, 2) [row, col] in tiles, whole numbers in the middle; faces: (N,) headings, -1: not told
    tolerance: tiles that one may be off the middle of the tile where it has arrived
    """
    scatter = scatter_of(agents)
    slack = np.minimum(OUTLYING * scatter, MOST_SLACK)
    faced = (graph.headings == faces[:, None]) | (faces < 0)[:, None]
    done = _done(graph, places, faced, CERTAIN * scatter, slack, tolerance)
    some = np.flatnonzero((scatter > EXACT) & (graph.allowed > 0))
    if len(some):
        mean = means(agents[some], COUNTS)
        for k, count in enumerate(COUNTS):
            sure = CERTAIN * scatter[some] / np.sqrt(count)
            found = _done(graph, mean[:, k], faced[some], sure, slack[some], tolerance, some)
            done[some] = np.maximum(done[some], found)
    off_first = places - graph.tiles[:, 0]
    rests = (np.abs(off_first) <= 0.5 + slack[:, None]).all(axis=1) & faced[:, 0]
    begins = rests & (np.linalg.norm(off_first, axis=1) <= np.maximum(tolerance, slack))
    ends = np.stack([graph.tiles[:, :-1], graph.tiles[:, 1:]])
    low, high = ends.min(axis=0), ends.max(axis=0)
    beyond = np.maximum(low - places[:, None], places[:, None] - high).max(axis=2)
    on_way = (beyond <= 0.5 + slack[:, None]) & (faced[:, :-1] | faced[:, 1:])
    on_way &= np.arange(1, graph.most + 1) <= graph.allowed[:, None]
    return Progress(done, begins, ~(rests | on_way.any(axis=1)))


def _done(graph, places, faced, sure, slack, tolerance, some=slice(None)):
    """(K,) actions that agents have done which are at `places`, give or take `sure` tiles; NaN: not known"""
    tiles, allowed = graph.tiles[some], np.arange(graph.most + 1) <= graph.allowed[some][:, None]
    off = places[:, None] - tiles
    stays = (tiles == tiles[:, :1]).all(axis=2)
    stays = np.logical_and.accumulate(stays, axis=1)
    moves = (tiles[:, 1:] != tiles[:, :-1]).any(axis=2)
    with np.errstate(invalid="ignore"):
        inside = (np.abs(off) <= 0.5 + slack[:, None, None]).all(axis=2)
        near = np.linalg.norm(off, axis=2) <= tolerance - sure[:, None]
        # who does not tell its heading is seen to have turned when it has moved on
        at = allowed & faced & np.where(stays, inside, near)
        at[:, 1:] &= moves | ~graph.blind[some][:, None]
        step = tiles[:, 1:] - tiles[:, :-1]
        along, aside = (off[:, :-1] * step).sum(axis=2), np.abs(off[:, :-1] * (step == 0)).max(axis=2)
        passed = moves & allowed[:, 1:] & faced[:, 1:] & (along >= 0.5 + sure[:, None]) & (along <= 1.5)
        passed &= aside <= 0.5 + slack[:, None]
    at[:, :-1] |= passed
    return np.where(at.any(axis=1), graph.most - at[:, ::-1].argmax(axis=1), 0)
