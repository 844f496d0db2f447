"""RRT-Connect on configurations that keep a constraint, after CBiRRT2 (Berenson, Srinivasa and Kuffner, "Task Space
Regions", IJRR 2011, section 5).

    CONSTRAINED_RRT_CONNECT(start, goals)                  plan; a round has several samples, whose walks go in step
        T_a, T_b <- start; goals
        repeat
            q_rand <- PROJECT(RANDOM_CONFIG)               sampled
            q_a <- WALK(NEAREST(T_a, q_rand), q_rand)      walked: short steps towards it, each projected again
            if WALK(NEAREST(T_b, q_a), q_a) = Reached
                return SHORTEN(PATH(T_a, T_b))             shortened
            SWAP(T_a, T_b)

Departures: the straight walk to each goal comes first; a step counts only where a bound proves that all of it keeps the
constraint (`Constraint.kept`) and the checker proves it free; a step that is not proven to keep it is tried again at
half its length.
"""

from dataclasses import replace

import numpy as np

from ....errors import SettingsError
from ...constraints import Constraint
from ..blocked import KEPT, explained
from ..query import Query, open_query
from ..result import PlanningResult, Status, path_length
from ..settings import PlannerSettings

STEP = 0.25  # rad or m, L2: of walks, by default
SHORTEST = 1 / 64  # of it: a walk whose steps would be shorter ends
PROGRESS = 0.1  # of a step: a walk ends whose step brings it no nearer to its target
STEPS = 80  # of a walk at most,
LOOK = 8  # of which so many are looked at together
BATCH = 8  # samples of a round, by default
CUTS = 5  # rounds of tries to make the path shorter, for each pass of shortcut_rounds,
TRIES = 4  # of so many each


def plan(
    start, goals, checker, constraint: Constraint, settings: PlannerSettings, step: float, batch: int, seed: int
) -> PlanningResult:
    """Plan a motion that keeps a constraint: each of its segments is proven to, and free by the checker's `motion`.

    A start or goals that do not keep it are refused as INVALID_START and INVALID_GOAL, by a text that says what they
    break. step, batch: 0: STEP, BATCH
    """
    check_robot(constraint, checker)
    query = open_query(start, goals, checker, settings)
    if isinstance(query, PlanningResult):
        return query
    if broken := constraint.told(query.start):
        return query.failed(Status.INVALID_START, f"the start does not keep the constraints: {broken}")
    usable = np.flatnonzero(constraint.satisfied(query.goals))
    if not len(usable):
        broken = constraint.told(query.goals[0])
        text = f"goal {query.goal_numbers[0]} does not keep the constraints: {broken}"
        return query.failed(Status.INVALID_GOAL, text)
    rng = np.random.default_rng(int(seed) % 2**64)
    return _Search(query, constraint, step or STEP, rng).found(usable, settings, batch or BATCH)


def check_robot(constraint: Constraint, checker) -> None:
    """SettingsError unless the constraint's robot moves as the checker's does; what it carries may differ."""
    own, robot = constraint.robot, checker.robot
    parts = "frames", "T_parent_base", "lower", "upper"
    same = getattr(robot, "joint_names", None) == own.joint_names
    if not same or not all(np.array_equal(getattr(own, part), getattr(robot, part)) for part in parts):
        raise SettingsError("constraints are of another robot than the checker's; allowed: those of its RobotModel")


class _Tree:
    """Nodes (n, dof), the parent of each, -1 for a root."""

    def __init__(self, roots):
        self._q, self.parents, self.count = np.array(roots), [-1] * len(roots), len(roots)

    @property
    def q(self):
        return self._q[: self.count]

    def nearest(self, q):
        """(N,) numbers of the nodes that are nearest to q (N, dof)."""
        return np.array([((self.q - each) ** 2).sum(axis=1).argmin() for each in q], dtype=int)

    def add(self, chain, parent):
        """Add a chain (k, dof) behind a node -> number of its last one."""
        if self.count + len(chain) > len(self._q):
            more = max(len(self._q), len(chain), 256)
            self._q = np.concatenate([self._q, np.empty((more, self._q.shape[1]))])
        for q in chain:
            self._q[self.count] = q
            self.parents.append(int(parent))
            parent, self.count = self.count, self.count + 1
        return int(parent)

    def branch(self, node):
        """Numbers from a node to its root."""
        numbers = []
        while node >= 0:
            numbers.append(node)
            node = self.parents[node]
        return numbers


class _Search:
    """One query's search. stopped: of each tree, the steps that were not free, (2, dof) each"""

    def __init__(self, query: Query, constraint: Constraint, step: float, rng) -> None:
        self.query, self.constraint, self.step, self.rng = query, constraint, step, rng
        self.stopped: tuple[list, list] = ([], [])

    def found(self, usable, settings, batch) -> PlanningResult:
        query = self.query
        trees = [_Tree([query.start]), _Tree(query.goals[usable])]
        drawn, round_ = 0, 0
        while drawn < settings.max_samples:
            if query.late():
                return self._without_path(query.timed_out(drawn))
            grown, other = (0, 1) if round_ % 2 == 0 else (1, 0)
            if round_ == 0:  # straight to goals, the nearest ones first
                order = np.argsort(np.linalg.norm(query.goals[usable] - query.start, axis=1), kind="stable")
                targets = query.goals[usable][order[:batch]]
            else:
                targets = self._sampled(min(batch, settings.max_samples - drawn))
            drawn, round_ = drawn + (batch if round_ else 1), round_ + 1
            near = trees[grown].nearest(targets)
            chains, reached = self._walked(trees[grown].q[near], targets, self.stopped[grown])
            ends = [trees[grown].add(chain, node) for chain, node in zip(chains, near)]
            if round_ == 1 and reached.any():  # a goal is the root of the other tree that it stands for
                first = int(np.argmax(reached))
                return self._joined(trees, (ends[first], int(order[first])), usable, drawn, settings)
            moved = [k for k, chain in enumerate(chains) if len(chain)]
            if not moved:
                continue
            targets = trees[grown].q[[ends[k] for k in moved]]
            near = trees[other].nearest(targets)
            chains, reached = self._walked(trees[other].q[near], targets)
            backs = [trees[other].add(chain, node) for chain, node in zip(chains, near)]
            if reached.any():
                first = int(np.argmax(reached))
                met = ends[moved[first]], backs[first]
                return self._joined(trees, met if grown == 0 else met[::-1], usable, drawn, settings)
        return self._without_path(query.exhausted(settings.max_samples))

    def _sampled(self, count):
        """(K, dof) random configurations, put onto the constraint where that succeeds."""
        query = self.query
        drawn = self.rng.uniform(query.lower, query.upper, (count, len(query.start)))
        q, found = self.constraint.project(drawn)
        return q[found]

    def _joined(self, trees, nodes, usable, drawn, settings):
        there, home = trees[0].branch(nodes[0])[::-1], trees[1].branch(nodes[1])
        path = np.concatenate([trees[0].q[there], trees[1].q[home[1:]]])
        path = self._shortened(path, settings.shortcut_rounds)
        return self.query.solved(path, int(usable[home[-1]]), drawn)

    def _without_path(self, failure):
        """The failure with what stopped the trees, seen in KEPT steps that are spread over the search."""
        tree = np.repeat([0, 1], [len(of) for of in self.stopped])
        some = np.unique(np.linspace(0, len(tree) - 1, KEPT).astype(int)) if len(tree) else []
        motions = np.array([*self.stopped[0], *self.stopped[1]])[some]
        return explained(replace(failure, blocked_motions=motions, blocked_trees=tree[some]), self.query.checker)

    def _walked(self, begin, targets, stopped=None, most=np.inf):
        """Walks in step from configurations (N, dof) towards targets (N, dof) -> [(k, dof) steps], each proven from the
        one before it, and (N,) bool: is the last one the target? stopped: gets the steps that are not free; most: (N,)
        lengths, with the query's weights, from where on a walk is given up"""
        chains, dof = [a[None] for a in begin], begin.shape[1]
        step = np.full(len(begin), self.step)
        going = np.flatnonzero((begin != targets).any(axis=1))
        for _ in range(STEPS // LOOK):
            if not len(going) or self.query.late():
                break
            walks, step[going], going_on = self._keeping([chains[k][-1] for k in going], targets[going], step[going])
            ends = np.cumsum([len(walk) for walk in walks])
            free = self.query.checker.motions_valid(
                np.concatenate([walk[:-1] for walk in walks]), np.concatenate([walk[1:] for walk in walks])
            )
            for k, walk, good in zip(going, walks, np.split(free, ends[:-1] - np.arange(1, len(ends)))):
                count = len(good) if good.all() else int(np.argmin(good))
                chains[k] = np.concatenate([chains[k], walk[1 : count + 1]])
                if count < len(good) and stopped is not None:
                    stopped.append(walk[count : count + 2])
            at_end = np.array([np.array_equal(chains[k][-1], walk[-1]) for k, walk in zip(going, walks)])
            weights, limits = self.query.weights, np.broadcast_to(most, len(begin))
            least = [path_length(np.concatenate([chains[k], targets[k][None]]), weights) for k in going]
            going = going[going_on & at_end & (least < limits[going])]
        reached = np.array([np.array_equal(chain[-1], target) for chain, target in zip(chains, targets)], dtype=bool)
        return [chain[1:].reshape(-1, dof) for chain in chains], reached

    def _keeping(self, begin, targets, step):
        """LOOK steps, or fewer, of walks that keep the constraint, whether they are free or not.

        -> [(k, dof) from where each begins], (N,) lengths of their next steps, and (N,) bool: do they go on?"""
        walks, at = [[a] for a in begin], np.array(begin)
        left, step = np.linalg.norm(targets - at, axis=1), step.copy()
        going = np.arange(len(at))
        for _ in range(LOOK):
            if not len(going) or self.query.late():
                break
            a, goal, size = at[going], targets[going], step[going]
            near = left[going] <= size
            ahead = a + (goal - a) * np.minimum(1.0, size / left[going])[:, None]
            b, placed = self.constraint.project(ahead)
            b[near], placed = goal[near], placed | near
            after = np.linalg.norm(goal - b, axis=1)
            placed &= ((after <= left[going] - PROGRESS * size) | near) & (np.linalg.norm(b - a, axis=1) <= 2 * size)
            proven = np.zeros(len(going), dtype=bool)
            proven[placed] = self.constraint.kept(a[placed], b[placed])
            for k in np.flatnonzero(proven):
                walks[going[k]].append(b[k])
            moved = going[proven]
            at[moved], left[moved] = b[proven], after[proven]
            step[going] = np.where(proven, np.minimum(2 * size, self.step), size / 2)
            going = going[(proven & (after > 0)) | (~proven & (size > SHORTEST * self.step))]
        return [np.array(walk) for walk in walks], step, np.isin(np.arange(len(at)), going)

    def _shortened(self, path, rounds):
        """The path with walks in place of longer ways between two of its rows, and then with the rows left out that
        straight motions do without."""
        for _ in range(CUTS * rounds):
            if len(path) < 3 or self.query.late():
                break
            i, j = np.sort(self.rng.integers(0, len(path), (TRIES, 2)), axis=1).T
            i, j = i[j - i > 1], j[j - i > 1]
            if not len(i):
                continue
            lengths = np.array([path_length(path[a : b + 1], self.query.weights) for a, b in zip(i, j)])
            chains, reached = self._walked(path[i], path[j], most=lengths)
            ways = [np.concatenate([path[: i[k] + 1], chains[k], path[j[k] + 1 :]]) for k in np.flatnonzero(reached)]
            path = min([path, *ways], key=lambda way: path_length(way, self.query.weights))
        if not rounds:
            return path
        k = 0
        while k + 2 < len(path) and not self.query.late():
            others = path[k + 2 :]
            good = self.constraint.kept(np.broadcast_to(path[k], others.shape), others)
            far = np.flatnonzero(good)
            free = self.query.checker.motions_valid(np.broadcast_to(path[k], others[far].shape), others[far])
            if len(far) and free.any():
                path = np.delete(path, range(k + 1, k + 2 + int(far[free][-1])), axis=0)
            k += 1
        return path
