"""What `rrt` and `rrt_star` do around the compiled growth of their tree (`tree_growth`): buffers, budgets, the path."""

import math

import numpy as np

from ..device import njit
from ..errors import SettingsError
from ..team import left_ms
from . import tree_buffers as tree
from .query import Query, check_call, check_flag, check_setting, check_shared, dry_query, open_query
from .sampling import folded_seed
from .shortcut import shortcut
from .tree_growth import grow

LOOK = 64  # samples between two looks at the best path on the CPU, or one round
CUDA_BATCH = 2048  # fills an H200
FIRST_NODES = 1 << 17  # room at first, 7 MB for an arm of nine links


def check_tree_settings(settings, flag):
    """The settings that both planners have, and the one, named `flag`, that is true or false."""
    check_shared(settings)
    check_setting(settings, "range", 0.0, 1e4)
    check_setting(settings, "goal_radius", 0.0, 1e4)
    check_setting(settings, "goal_bias", 0.0, 1.0)
    check_setting(settings, "batch", 0, 1 << 14, integer=True)
    module = type(settings).__module__.rpartition(".")[2]
    if 0 < settings.range < 1e-3:
        raise SettingsError(f"{module}.Settings.range is {settings.range!r}; allowed: 0, or a number from 0.001")
    check_flag(settings, flag)


def plan(start, goals, checker, settings, seed, star, radius_factor=1.0, informed=False, stop_at_first=False):
    """`solve` of rrt and rrt_star, after check_call. -> PlanningResult with its history."""
    seed = folded_seed(seed)
    if checker.device == "cpu":
        _warm_up(checker)
    query = open_query(start, goals, checker, settings)
    if not isinstance(query, Query):
        return query
    search = TreeSearch(query, checker, settings, seed, star, radius_factor, informed)
    history, enough = [], search.least_cost() * (1 + 1e-6)
    while True:
        search.advance()
        if search.cost < (history[-1][2] if history else np.inf):
            history.append((search.drawn, query.elapsed(), search.cost))
        if search.cost <= enough or (stop_at_first and history) or search.drawn >= settings.max_samples:
            break
        if query.late():
            break
    if not history:
        return query.exhausted(search.drawn) if search.drawn >= settings.max_samples else query.timed_out(search.drawn)
    path, goal, at_goal = search.path()
    path = shortcut(path, checker, settings.shortcut_rounds, seed, query.weights, query.deadline)
    return query.solved(path, goal, search.drawn, at_goal, history)


def _warm_up(checker):
    """Compile the growth for this kind of space, or load it from the cache, before the clock of a query starts."""
    scratch = checker.new_scratch()
    if type(scratch) not in _warm:
        search = TreeSearch(dry_query(checker), checker, _NoSamples(), 0, True, 1.0, True)
        search.advance()
        search.buffers.tree()
        _warm.add(type(scratch))


class _NoSamples:
    range, goal_radius, goal_bias, batch, max_samples = 0.0, 0.0, 0.0, 1, 0


_warm = set()


class TreeSearch:
    """The tree of one query.

    drawn: samples so far;  cost: of the best path, inf while there is none
    """

    def __init__(self, query, checker, settings, seed, star, radius_factor, informed):
        dof, goals = len(query.start), len(query.goals)
        self.query, self.checker, self.seed = query, checker, np.uint64(seed)
        on_cpu = checker.device == "cpu"
        self.batch = min(settings.batch or (LOOK if on_cpu else CUDA_BATCH), max(settings.max_samples, 1))
        self.rounds = max(1, LOOK // self.batch) if on_cpu else max(8, 512 // self.batch)
        self.drawn, self.cost = 0, np.inf
        scale = np.sqrt(query.weights.astype(np.float64))
        floats, ints = np.zeros(tree.FLOAT_HEAD), np.zeros(tree.INT_HEAD, dtype=np.int32)
        floats[tree.RANGE] = settings.range or tree.FAR
        floats[tree.GOAL_RADIUS], floats[tree.GOAL_BIAS] = settings.goal_radius, settings.goal_bias
        floats[tree.LOG_FACTOR] = math.log(radius_factor)
        floats[tree.LOG_BALL] = dof / 2 * math.log(math.pi) - math.lgamma(dof / 2 + 1)
        floats[tree.LOG_MEASURE] = np.log((query.upper.astype(np.float64) - query.lower) * scale).sum()
        floats[tree.BEST] = tree.FAR
        ints[tree.DOF], ints[tree.GOALS], ints[tree.BATCH], ints[tree.MOST] = dof, goals, self.batch, settings.max_samples
        ints[tree.STAR], ints[tree.INFORMED], ints[tree.BEST_NODE] = star, informed, -1
        self.first = -(-goals // tree.TILE) * tree.TILE
        self.count = self.first + 1
        capacity = _tiles(self.first + 1 + min(settings.max_samples, FIRST_NODES))
        ints[tree.CAPACITY] = capacity
        floats = np.concatenate([floats, query.lower * scale, query.upper * scale, scale, query.goals.ravel(), query.start]).astype(np.float32)
        if on_cpu:
            self.buffers = CpuBuffers()
        else:
            from .tree_growth_kernels import cuda_buffers

            self.buffers = cuda_buffers(checker.device, checker.scratch_sizes)
        self.buffers.begin(checker, floats, ints)

    def least_cost(self):
        """No path costs less."""
        straight = np.linalg.norm((self.query.goals - self.query.start) * np.sqrt(self.query.weights), axis=1).min()
        return max(straight - float(self.buffers.floats[tree.GOAL_RADIUS]), 0.0)

    def advance(self):
        """Some rounds of samples."""
        self.buffers.make_room(self.count + self.rounds * self.batch)
        self.buffers.grow(self.rounds, left_ms(self.query.deadline), self.seed)
        floats, ints = self.buffers.floats, self.buffers.ints
        self.drawn, self.count, self.best = int(ints[tree.DRAWN]), int(ints[tree.COUNT]), int(ints[tree.BEST_NODE])
        self.cost = float(floats[tree.BEST]) if self.best >= 0 else np.inf

    def nodes(self):
        """-> configurations (n, dof) float32, parents (n,): -1 at the root, -2 where none, edges (n,) and goals in whose
        region each lies (n,). The goals come first, then rows that are not used, then the start, `self.first`."""
        T, n, dof = self.buffers.tree(), self.count, len(self.query.start)
        x = T.A[T.x:T.x + _tiles(n) * dof].reshape(-1, dof, tree.TILE).transpose(0, 2, 1).reshape(-1, dof)[:n].copy()
        parents, edges, regions = (values[:n].copy() for values in (T.N[T.parent:], T.A[T.edge:], T.N[T.region:]))
        unused = slice(len(self.query.goals), self.first)
        x[unused], parents[unused], edges[unused], regions[unused] = 0, -2, 0, -1
        return x / T.A[T.scale:T.points], parents, edges, regions

    def path(self):
        """-> (K, dof) the best path, the number of the goal at or near its end, is its end that goal itself."""
        T, dof, chain = self.buffers.tree(), len(self.query.start), [self.best]
        while T.N[T.parent + chain[-1]] >= 0:
            chain.append(int(T.N[T.parent + chain[-1]]))
        nodes = np.array(chain[::-1])[:, None]
        places = T.x + (nodes // tree.TILE * dof + np.arange(dof)) * tree.TILE + nodes % tree.TILE  # as tree_buffers.place
        path, goal = T.A[places] / T.A[T.scale:T.points], int(T.N[T.region + self.best])
        if len(chain) == 1:  # the start lies in a goal's region
            path = np.stack([self.query.start, self.query.start])
        return path, goal, self.best < len(self.query.goals)


def _tiles(n):
    return -(-n // tree.TILE) * tree.TILE


class Buffers:
    """The two buffers of tree_growth and what works on them.

    floats, ints: the beginning of both on the host: after `grow` as it left them
    begin(checker, floats, ints): a new tree;  make_room(nodes): for so many nodes in all;  grow(rounds, left_ms, seed)
    tree() -> Tree on the host
    """

    @staticmethod
    def sizes(ints):
        return tree.buffer_sizes(ints)

    def larger(self, nodes):
        return _tiles(max(nodes, 2 * int(self.ints[tree.CAPACITY])))

    def nodes(self):
        """-> copies of all values that belong to nodes."""
        return [part.copy() for part in self._node_parts(self.tree())]

    def put(self, nodes, T):
        for values, part in zip(nodes, self._node_parts(T)):
            part[:len(values)] = values

    @staticmethod
    def _node_parts(T):
        A, N = T.A, T.N
        return A[T.x:T.edge], A[T.edge:T.offered], A[T.offered:T.taker], A[T.taker:T.new_x], N[T.parent:T.region], N[T.region:T.joined]


class CpuBuffers(Buffers):
    """In the host's memory; one thread grows the tree."""

    def begin(self, checker, floats, ints):
        self._checker, self._scratch = checker, checker.new_scratch()
        n_floats, n_ints = self.sizes(ints)
        self._A, self._N = np.empty(n_floats, dtype=np.float32), np.empty(n_ints, dtype=np.int32)
        self.floats, self.ints = self._A[:len(floats)], self._N[:len(ints)]
        self.floats[:], self.ints[:] = floats, ints
        self._q = np.empty((2, ints[tree.DOF]), dtype=np.float32)

    def make_room(self, nodes):
        if nodes > self.ints[tree.CAPACITY]:
            kept, head = self.nodes(), self.ints.copy()
            head[tree.CAPACITY] = self.larger(nodes)
            self.begin(self._checker, self.floats, head)
            self.put(kept, self.tree())

    def grow(self, rounds, left_ms, seed):
        _grow(self._A, self._N, rounds, left_ms, seed, *self._checker.motion_args, *self._checker.packed_scene, self._scratch, *self._q)

    def tree(self):
        return tree.tree_of(self._A, self._N)


@njit
def _grow(A, N, rounds, left_ms, seed, mode, step, F, I, S, q, p):
    grow(tree.tree_of(A, N), rounds, left_ms, seed, mode, step, F, I, S, q, p, 0, 1, 0, 0, 1)
