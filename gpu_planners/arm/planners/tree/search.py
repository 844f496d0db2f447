"""What `rrt` and `rrt_star` do around the compiled growth of their tree: settings, budgets, history, the path."""

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ....parallel.layout import on_host
from ....parallel.sampling import folded_seed, halves
from ....parallel.team import left_ms
from ....settings import setting
from ..blocked import explained, read_log
from ..host import alone, host_for
from ..message import head_of
from ..node_store import FAR, place, whole_tiles
from ..query import Query, dry_query, open_query, warm_once
from ..result import PlanningResult
from ..settings import RANGE_RULE, PlannerSettings
from ..shortcut import shortcut, warm_up_shortcut
from .growth import grow_tree
from .state import (
    NONE,
    ROOT,
    WORKERS,
    Growth,
    open_growth,
    open_request,
    own_sizes,
    request_sizes,
    tree_sizes,
    write_request,
)

LOOK = 64  # samples between two looks at the best path on the CPU, or one round
CUDA_BATCH = 2048  # fills an H200
FIRST_NODES = 1 << 17  # room at first, 7 MB for an arm of nine links
growth_on_host = on_host(open_growth)


@dataclass(frozen=True, kw_only=True)
class TreeSettings(PlannerSettings):
    """Settings that RRT and RRT* share; a cost is in rad where all joints turn and all weights are 1."""

    range: float = setting(
        0.0,
        "Longest motion added at once; 0: samples are approached all the way ([BKF11])",
        0.0,
        1e4,
        unit="units of cost",
        must=RANGE_RULE,
    )
    goal_radius: float = setting(
        0.0, "A path may end this close to a goal; 0: it ends at the goal", 0.0, 1e4, unit="units of cost"
    )
    goal_bias: float = setting(
        0.05, "Share of the samples that are drawn at a goal not reached yet, at most one in a round", 0.0, 1.0
    )
    batch: int = setting(
        0,
        "Most samples of a round; 0: 64 on the CPU, 2048 on CUDA. The first rounds are smaller, from 32 up",
        0,
        1 << 14,
    )


def plan(
    start: ArrayLike, goals: ArrayLike, checker, settings: Any, seed: int, star: bool, stop_at_first: bool = False
) -> PlanningResult:
    """`solve` of rrt and rrt_star, after check_call; settings: its own. -> PlanningResult with its history."""
    seed = folded_seed(seed)
    warm_once("tree", checker, functools.partial(_dry_run, checker))
    warm_up_shortcut(checker)
    query = open_query(start, goals, checker, settings)
    if not isinstance(query, Query):
        return query
    kind = (True, settings.radius_factor, settings.informed) if star else (False, 1.0, False)
    with alone(checker, grow_tree, most_workers=WORKERS):
        return _searched(TreeSearch(query, settings, seed, *kind), settings, seed, stop_at_first)


def _searched(search, settings, seed, stop_at_first):
    query, checker = search.query, search.query.checker
    history: list[tuple[int, float, float]] = []
    enough = search.least_cost() * (1 + 1e-6)
    while True:
        search.advance()
        if search.cost < (history[-1][2] if history else np.inf):
            history.append((search.drawn, query.elapsed(), search.cost))
        if search.cost <= enough or (stop_at_first and history) or search.drawn >= settings.max_samples:
            break
        if query.late():
            break
    if not history:
        failed = query.exhausted if search.drawn >= settings.max_samples else query.timed_out
        return explained(replace(failed(search.drawn), **read_log(search.growth().tree)), checker)
    path, goal, at_goal = search.path()
    path = shortcut(path, checker, settings.shortcut_rounds, seed, query.weights, query.deadline)
    return query.solved(path, goal, search.drawn, at_goal, history)


def _dry_run(checker):
    with alone(checker, grow_tree, most_workers=WORKERS):
        TreeSearch(dry_query(checker), TreeSettings(max_samples=1), 0, True, 1.0, True).advance()


class TreeSearch:
    """The tree of one query.

    drawn: samples so far; cost: of the best path, inf while there is none; count: nodes; first: the number of the start
    """

    def __init__(
        self, query: Query, settings: TreeSettings, seed: int, star: bool, radius_factor: float, informed: bool
    ):
        dof, goals, checker = len(query.start), len(query.goals), query.checker
        self.query, self.goal_radius = query, float(np.float32(settings.goal_radius))
        on_cpu = checker.device == "cpu"
        self.batch = min(settings.batch or (LOOK if on_cpu else CUDA_BATCH), settings.max_samples)
        self.rounds = max(1, LOOK // self.batch) if on_cpu else max(8, 512 // self.batch)
        self.most, self.drawn, self.cost, self.best = settings.max_samples, 0, np.inf, NONE
        self.first = whole_tiles(goals)
        self.count, self.capacity = self.first + 1, whole_tiles(self.first + 1 + min(settings.max_samples, FIRST_NODES))
        scale = np.sqrt(query.weights.astype(np.float64))
        self._host = host_for(checker, grow_tree, most_workers=WORKERS)
        self._message = self._host.message(*request_sizes.py_func(dof, goals))
        low, high = halves(seed)
        write_request(
            *self._message,
            *(dof, goals),
            **head_of(checker),
            goals=goals,
            batch=self.batch,
            most=settings.max_samples,
            star=star,
            informed=informed,
            fresh=True,
            rounds=self.rounds,
            seed_low=low,
            seed_high=high,
            reach=settings.range or FAR,
            goal_radius=settings.goal_radius,
            goal_bias=settings.goal_bias,
            log_factor=math.log(radius_factor),
            log_ball=dof / 2 * math.log(math.pi) - math.lgamma(dof / 2 + 1),
            log_measure=np.log((query.upper.astype(np.float64) - query.lower) * scale).sum(),
            lower=query.lower * scale,
            upper=query.upper * scale,
            scale=scale,
            ends=np.concatenate([query.goals, query.start[None]]).ravel(),
        )
        self._make_room(self.capacity)

    def least_cost(self) -> float:
        """No path costs less."""
        query = self.query
        straight = np.linalg.norm((query.goals - query.start) * np.sqrt(query.weights), axis=1).min()
        return max(straight - self.goal_radius, 0.0)

    def advance(self) -> None:
        """Some rounds of samples."""
        nodes = self.count + min(self.rounds * self.batch, self.most - self.drawn)
        if nodes > self.capacity:
            self._make_room(whole_tiles(max(nodes, 2 * self.capacity)), self.growth())
        write_request(*self._message, left_ms=left_ms(self.query.deadline))
        self._host.run(self.query.checker)
        write_request(*self._message, fresh=False)
        answer = open_request.py_func(*self._message)
        self.drawn, self.count, self.best = int(answer.drawn[0]), int(answer.count[0]), int(answer.best_node[0])
        self.cost = float(answer.best[0]) if self.best != NONE else np.inf

    def growth(self) -> Growth:
        """The tree, as the last rounds left it, without what belongs to the samples of a round."""
        return self._opened(*self._host.fetch(*tree_sizes.py_func(len(self.query.start), self.capacity)))

    def _opened(self, floats, ints):
        return growth_on_host(open_request.py_func(*self._message), floats, ints)

    def _make_room(self, capacity, kept=None):
        """For so many nodes. kept: the Growth that goes on"""
        dof, self.capacity = len(self.query.start), capacity
        if kept:
            before = [part.copy() for part in (*kept.board, *kept.tree)]
        write_request(*self._message, capacity=capacity)
        self._host.memory(*own_sizes(dof, capacity, self.batch))
        if kept:
            larger = [np.zeros(n, t) for n, t in zip(tree_sizes.py_func(dof, capacity), (np.float32, np.int32))]
            growth = self._opened(*larger)
            for part, values in zip((*growth.board, *growth.tree), before):
                part[: len(values)] = values
            self._host.send(*larger)

    def path(self) -> tuple[np.ndarray, int, bool]:
        """-> (K, dof) the best path, the number of the goal at or near its end, is its end that goal itself."""
        growth, dof, chain = self.growth(), len(self.query.start), [self.best]
        parent = growth.tree.parent
        while parent[chain[-1]] != ROOT:
            chain.append(int(parent[chain[-1]]))
        places = place.py_func(np.array(chain[::-1])[:, None], np.arange(dof), dof)
        path, goal = growth.tree.nodes[places] / growth.tree.scale, int(growth.tree.region[self.best])
        if len(chain) == 1:  # the start lies in a goal's region
            path = np.stack([self.query.start, self.query.start])
        return path, goal, self.best < len(self.query.goals)
