"""Motions that keep an axis of a link upright: RRT-Connect on the configurations that do.

The trees grow in walks of short steps. After each step Newton's method sets the axis right again, as in the constrained
extension of Berenson, Srinivasa and Kuffner (Manipulation Planning on Constraint Manifolds, ICRA 2009). All steps of a
walk are checked at once: a bound on the tilt of straight joint motions, and the checker's proof that they are free.

The bound: a link turns by at most the sum of what its joints turn it. So between two places of a motion it tilts more
than at the nearer of the two by at most half of that sum for the way between them.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked, numbers
from ..errors import ConfigurationError, SettingsError, shown
from ..settings import Setting, setting
from .planners.blocked import KEPT, explained
from .planners.query import Query, check_call, open_query
from .planners.result import PlanningResult, Status, path_length
from .planners.settings import PlannerSettings
from .robot.model import RobotModel
from .robot.tip import Tip

TOLERANCE = Setting(0.1, "Greatest tilt", 1e-3, 3.1, unit="rad")
LEFT = 0.5  # of the tolerance: configurations that tilt more are set right
SHARE = 0.25  # of the tolerance that a motion may tilt more than at the places looked at
NEWTON = 10  # steps of Newton's method at most
DAMPING = 1e-6  # of Newton's normal equations, rad^2
MOST_PLACES = 256  # of one short motion at most, at which its tilt is looked at
STEPS = 40  # of a walk at most
CUTS = 15  # tries to make the path shorter, for each pass of shortcut_rounds


@dataclass(frozen=True, kw_only=True)
class Settings(PlannerSettings):
    """Settings of motions that keep upright."""

    step: float = setting(0.25, "Longest motion between two configurations, L2", 1e-3, 10.0, unit="rad or m")


@checked()
class Upright:
    """The constraint: an axis of a link stays within a tolerance of a direction.

    axis: (3,) in the link's frame; direction: (3,) in the root frame; tolerance: rad
    """

    def __init__(self, robot: RobotModel, link: str, axis: ArrayLike, direction: ArrayLike, tolerance: float) -> None:
        self.tip = Tip(robot, link)
        self.axis, self.direction = _unit("axis", axis), _unit("direction", direction)
        self.tolerance = TOLERANCE.checked("tolerance", tolerance)
        frames = robot.frames[self.tip.frames]
        turning = ~frames["prismatic"]
        self._turns = np.bincount(frames["joint"], np.abs(frames["multiplier"]) * turning, robot.dof)

    def _rows(self, name, q):
        return numbers(name, q, (None, self.tip.robot.dof), ConfigurationError)

    def tilts(self, q: ArrayLike) -> np.ndarray:
        """(N,) rad between the axis and the direction, of configurations (N, dof)."""
        pointing = self.tip.pose(self._rows("q", q))[:, :3, :3] @ self.axis
        return np.arctan2(np.linalg.norm(np.cross(pointing, self.direction), axis=1), pointing @ self.direction)

    def kept(self, q_from: ArrayLike, q_to: ArrayLike) -> np.ndarray:
        """(N,) bool: are straight motions (N, dof) proven to tilt by no more than the tolerance?"""
        q_from, q_to = self._rows("q_from", q_from), self._rows("q_to", q_to)
        if len(q_from) != len(q_to):
            raise ConfigurationError(f"q_from has {len(q_from)} rows, q_to {len(q_to)}; allowed: as many of each")
        if not len(q_from):
            return np.zeros(0, dtype=bool)
        turned = np.abs(q_to - q_from) @ self._turns
        counts = np.clip(np.ceil(turned / (2 * SHARE * self.tolerance)), 1, MOST_PLACES).astype(int)
        rows = np.repeat(np.arange(len(q_from)), counts)
        first = np.r_[0, np.cumsum(counts)[:-1]]
        shares = (np.arange(len(rows)) - first[rows] + 0.5) / counts[rows]  # the middles of equal parts
        tilts = self.tilts(q_from[rows] + shares[:, None] * (q_to - q_from)[rows])
        return np.maximum.reduceat(tilts, first) + turned / (2 * counts) <= self.tolerance

    def set_right(self, q: ArrayLike) -> np.ndarray | None:
        """(dof,) near q (dof,), within the limits, that tilts by LEFT of the tolerance at most; None: none is found."""
        q = numbers("q", q, (self.tip.robot.dof,), ConfigurationError)
        for _ in range(NEWTON):
            T, J = self.tip.pose_and_jacobian(q)
            pointing = T[:3, :3] @ self.axis
            across = np.cross(pointing, self.direction)
            sine = np.linalg.norm(across)
            tilt = np.arctan2(sine, pointing @ self.direction)
            if tilt <= LEFT * self.tolerance:
                return q
            if sine < 1e-9:
                return None
            # rotations about the axis itself do not count
            level = J[3:] - np.outer(pointing, pointing @ J[3:])
            weights = np.linalg.solve(level @ level.T + DAMPING * np.eye(3), across * (tilt / sine))
            q = self.tip.bounded(q + level.T @ weights)
        return None


@checked()
def solve(
    start: ArrayLike, goals: ArrayLike, checker: Any, rule: Upright, settings: Settings = Settings(), seed: int = 0
) -> PlanningResult:
    """Plan a motion that keeps an axis of a link upright.

    start: (dof,); goals: (dof,) or (G, dof), rad or m
    rule: of the checker's robot

    Every segment of the path is proven to keep the tilt, and free by the checker's `motion`. A start or goals that tilt
    more are refused as INVALID_START and INVALID_GOAL, by a message that says by how much. Raises SettingsError for
    arguments that are wrong.
    """
    check_call(checker, settings, Settings)
    said = "{} " + f"'{rule.tip.link}' tilts by {{:.4g}} rad; allowed: {rule.tolerance:g}"
    query = open_query(start, goals, checker, settings)
    if isinstance(query, PlanningResult):
        return query
    tilt = float(rule.tilts(query.start[None])[0])
    if tilt > rule.tolerance:
        return query.failed(Status.INVALID_START, said.format("at the start", tilt))
    tilts = rule.tilts(query.goals)
    usable = np.flatnonzero(tilts <= rule.tolerance)
    if not len(usable):
        return query.failed(Status.INVALID_GOAL, said.format(f"at goal {query.goal_numbers[0]}", tilts[0]))
    return _search(query, usable, rule, settings, np.random.default_rng(int(seed) % 2**64))


class _Tree:
    """Nodes (n, dof), the parent of each, and which root it grows from."""

    def __init__(self, roots):
        self.q, self.parents = [*roots], [-1] * len(roots)

    def nearest(self, q):
        return int(np.argmin(((np.array(self.q) - q) ** 2).sum(axis=1)))

    def add(self, chain, parent):
        """-> number of the last one."""
        for q in chain:
            self.q.append(q)
            self.parents.append(parent)
            parent = len(self.q) - 1
        return parent

    def branch(self, node):
        """Numbers from a node to its root."""
        numbers = []
        while node >= 0:
            numbers.append(node)
            node = self.parents[node]
        return numbers


def _search(query: Query, usable, rule, settings, rng) -> PlanningResult:
    trees, samples = [_Tree([query.start]), _Tree(list(query.goals[usable]))], 0
    stopped: tuple[list, list] = ([], [])  # of each tree: the blocked steps
    while samples < settings.max_samples:
        if query.late():
            return _without_path(query.timed_out(samples), stopped, query)
        samples += 1
        grown, other = (0, 1) if samples % 2 else (1, 0)
        # the first walk goes straight for a goal, or for the start
        target = trees[other].q[0] if samples <= 2 else rng.uniform(query.lower, query.upper)
        near = trees[grown].nearest(target)
        chain = _walk(trees[grown].q[near], target, rule, query, settings.step, stopped[grown])
        if not len(chain):
            continue
        reached = trees[grown].add(chain, near)
        near = trees[other].nearest(chain[-1])
        back = _walk(trees[other].q[near], chain[-1], rule, query, settings.step)
        met = trees[other].add(back, near)
        if np.array_equal(trees[other].q[met], chain[-1]):
            ends = {grown: reached, other: met}
            there, home = trees[0].branch(ends[0])[::-1], trees[1].branch(ends[1])
            path = [trees[0].q[i] for i in there] + [trees[1].q[i] for i in home[1:]]
            path = _shortened(np.array(path), rule, query, settings, rng)
            return query.solved(path, int(usable[home[-1]]), samples)
    return _without_path(query.exhausted(samples), stopped, query)


def _without_path(failure, stopped, query):
    """The failure with what stopped the trees, seen in KEPT steps that are spread over the search."""
    tree = np.repeat([0, 1], [len(of) for of in stopped])
    some = np.unique(np.linspace(0, len(tree) - 1, KEPT).astype(int)) if len(tree) else []
    motions = np.array([*stopped[0], *stopped[1]])[some]
    return explained(replace(failure, blocked_motions=motions, blocked_trees=tree[some]), query.checker)


def _walk(q, target, rule, query, step, stopped=None):
    """(k, dof) short steps from q towards the target, each proven from the one before it; the last one is the target
    where it is reached. stopped: gets the first step that is not free, (2, dof)"""
    chain, left = [q], np.linalg.norm(target - q)
    while len(chain) <= STEPS and left > 0:
        ahead = chain[-1] + (target - chain[-1]) * min(1.0, step / left)
        placed = ahead if left <= step and rule.tilts(ahead[None])[0] <= rule.tolerance else rule.set_right(ahead)
        if placed is None:
            break
        remaining = float(np.linalg.norm(target - placed))
        if remaining > left - 0.1 * step and remaining > 0 or np.linalg.norm(placed - chain[-1]) > 2 * step:
            break
        chain.append(placed)
        left = remaining
    steps = np.array(chain)
    if len(steps) == 1:
        return steps[1:]
    good = rule.kept(steps[:-1], steps[1:])
    count = len(good) if good.all() else int(np.argmin(good))
    if count:
        free = query.checker.motions_valid(steps[:count], steps[1 : count + 1])
        if not free.all():
            count = int(np.argmin(free))
            if stopped is not None:
                stopped.append(steps[count : count + 2])
    return steps[1 : count + 1]


def _shortened(path, rule, query, settings, rng):
    """The path with walks in place of longer ways between two of its rows, and long straight steps for several."""
    for _ in range(CUTS * settings.shortcut_rounds):
        if len(path) < 3 or query.late():
            break
        i, j = np.sort(rng.choice(len(path), 2, replace=False))
        if j - i < 2:
            continue
        way = _walk(path[i], path[j], rule, query, settings.step)
        if len(way) and np.array_equal(way[-1], path[j]):
            new = np.concatenate([path[: i + 1], way, path[j + 1 :]])
            if path_length(new) < path_length(path) - 1e-9:
                path = new
    k = 0
    while k + 2 < len(path):  # rows that are not needed
        both = path[k][None], path[k + 2][None]
        if not query.late() and rule.kept(*both)[0] and query.checker.motions_valid(*both)[0]:
            path = np.delete(path, k + 1, axis=0)
        else:
            k += 1
    return path


def _unit(name, vector):
    given = numbers(name, vector, (3,)).astype(float)
    if not (size := np.abs(given).max()) > 1e-9:
        raise SettingsError(f"{name} is {shown(given.tolist())}; allowed: three finite numbers, not all 0")
    return given / size / np.linalg.norm(given / size)
