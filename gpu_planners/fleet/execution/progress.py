"""What agents have done of what they were told, by their reports; who is where nothing that it was told leads."""

from typing import NamedTuple

import numpy as np

from ..action_graph import ActionGraph
from .reports import means

CERTAIN = 2.5  # standard deviations of a mean, by which an agent must have arrived
OUTLYING = 4.0  # of a report, by which it must be off
EXACT = 0.005  # tiles: of positions that scatter less, one is enough
COUNTS = 1, 2, 3, 4, 6, 8, 12, 16  # of reports that a mean is taken of
MOST_SLACK = 1.0  # tiles


class Orders(NamedTuple):
    """What agents (N,) were told: their states (N, K) before and after each action, all but the first allowed or not.

    ends: (N, K, 2) tiles; steps: (N, K - 1, 2) to the next one; moves: (N, K - 1) bool, is it another tile?
    """

    ends: np.ndarray
    steps: np.ndarray
    moves: np.ndarray
    headings: np.ndarray
    allowed: np.ndarray
    blind: np.ndarray

    def of(self, some: np.ndarray) -> "Orders":
        return Orders(*(values[some] for values in self))


def orders_of(graph: ActionGraph) -> Orders:
    many = int(graph.allowed.max(initial=0)) + 1
    ends = graph.tiles[:, :many]
    steps = ends[:, 1:] - ends[:, :-1]
    allowed = np.arange(many) <= graph.allowed[:, None]
    moves = (steps[..., 0] != 0) | (steps[..., 1] != 0)
    return Orders(ends, steps, moves, graph.headings[:, :many], allowed, graph.blind)


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
    orders = orders_of(graph)
    moves = ((orders.steps != 0) & orders.allowed[:, 1:, None]).any(axis=1)
    return ~moves & (axis[:, None] != np.arange(2))


def progress(
    graph: ActionGraph, agents: np.ndarray, places: np.ndarray, faces: np.ndarray, tolerance: float, clearance: float
) -> Progress:
    """By the latest reports of agents (N,) that count.

    An agent has left a tile when it is within `tolerance` of the middle of the next one, by the mean of some reports,
    and so near to it that, as sure as can be, it does not touch one in the middle of the tile that it has left.

    places: (N, 2) [row, col] in tiles, whole numbers in the middle; faces: (N,) headings, -1: not told
    tolerance, clearance: tiles; a body in the middle of its tiles has so much room on each side
    """
    orders, reach, scatter = orders_of(graph), (tolerance, 2 * clearance), scatter_of(agents)
    slack = np.minimum(OUTLYING * scatter, MOST_SLACK)
    faced = (orders.headings == faces[:, None]) | (faces < 0)[:, None]
    done = _done(orders, places, faced, CERTAIN * scatter, slack, reach)
    some = np.flatnonzero((scatter > EXACT) & (graph.allowed > 0))
    if len(some):
        mean, of_some = means(agents[some], COUNTS), orders.of(some)
        for k, count in enumerate(COUNTS):
            sure = CERTAIN * scatter[some] / np.sqrt(count)
            found = _done(of_some, mean[:, k], faced[some], sure, slack[some], reach)
            done[some] = np.maximum(done[some], found)
    off = places[:, None] - orders.ends
    rests = _within(off[:, 0], slack) & faced[:, 0]
    begins = rests & (np.hypot(off[:, 0, 0], off[:, 0, 1]) <= np.maximum(tolerance, slack))
    aside = np.maximum(
        np.maximum(-off[:, :-1] + np.minimum(orders.steps, 0), off[:, :-1] - np.maximum(orders.steps, 0)), 0
    )
    on_way = _within(aside, slack[:, None]) & (faced[:, :-1] | faced[:, 1:]) & orders.allowed[:, 1:]
    return Progress(done, begins, ~(rests | on_way.any(axis=1)))


def _within(off, slack):
    """(..., 2) tiles -> (...) bool, within a tile, give or take `slack`?"""
    return (np.abs(off[..., 0]) <= 0.5 + slack) & (np.abs(off[..., 1]) <= 0.5 + slack)


def _done(orders, places, faced, sure, slack, reach):
    """(N,) actions that agents have done which are at `places`, give or take `sure` tiles; NaN: not known"""
    off = places[:, None] - orders.ends
    stays = np.ones_like(orders.allowed)
    np.logical_and.accumulate(~orders.moves, axis=1, out=stays[:, 1:])
    with np.errstate(invalid="ignore"):
        far = np.hypot(off[..., 0], off[..., 1])
        near = (far <= reach[0]) & (far + sure[:, None] <= reach[1])
        # who does not tell its heading is seen to have turned when it has moved on
        at = orders.allowed & faced & np.where(stays, _within(off, slack[:, None]), near)
        at[:, 1:] &= orders.moves | ~orders.blind[:, None]
        before, steps = off[:, :-1], orders.steps
        along = before[..., 0] * steps[..., 0] + before[..., 1] * steps[..., 1]
        aside = np.abs(before[..., 0] * steps[..., 1]) + np.abs(before[..., 1] * steps[..., 0])
        passed = orders.moves & orders.allowed[:, 1:] & faced[:, 1:] & (along >= 0.5 + sure[:, None]) & (along <= 1.5)
        at[:, :-1] |= passed & (aside <= 0.5 + slack[:, None])
    last = at.shape[1] - 1
    return np.where(at.any(axis=1), last - at[:, ::-1].argmax(axis=1), 0)
