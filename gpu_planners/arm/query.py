"""What every planner does before and after its search: look at start and goals, time the query, shorten the path."""

import time
from dataclasses import dataclass, replace

import numpy as np

from ..errors import SettingsError
from .path import PlanningResult, Status, path_length
from .shortcut import warm_up


@dataclass(frozen=True)
class Query:
    """A checked query.

    start: (dof,) float64;  goals: (G, dof) float64, the usable ones;  goal_numbers: (G,) their places in the caller's list
    lower, upper: (dof,) float32 bounds for sampling; for a continuous joint one turn around the start
    weights: (dof,) float32: the cost of a motion is sqrt(sum of weight * change squared)
    """

    start: np.ndarray
    goals: np.ndarray
    goal_numbers: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    weights: np.ndarray
    began: float
    checker: object = None
    version: object = None

    def elapsed(self):
        return time.perf_counter() - self.began

    def start_collides(self):
        return self.failed(Status.START_IN_COLLISION, f"the start is in collision: {_pairs(self.checker, self.start)}")

    def goals_collide(self):
        texts = [f"goal {number}: {_pairs(self.checker, goal)}" for number, goal in zip(self.goal_numbers[:3], self.goals)]
        more = f"; and {len(self.goals) - 3} more" if len(self.goals) > 3 else ""
        return self.failed(Status.GOAL_IN_COLLISION, "in collision: " + "; ".join(texts) + more)

    def failed(self, status, message, samples=0):
        return _failure(self, status, message, samples)

    def solved(self, path, goal, samples, at_goal=True, history=(), cost=None):
        """path: (K, dof); goal: index into self.goals; at_goal: does the path end there, or only near it; cost: if it is known."""
        if self.checker.version != self.version:
            return self.failed(Status.WORLD_CHANGED, "obstacles changed while the path was searched; ask again", samples)
        path = np.array(path, dtype=np.float64)
        path[0] = self.start
        if at_goal:
            path[-1] = self.goals[goal]
        cost = path_length(path, self.weights) if cost is None else cost
        return PlanningResult(Status.SOLVED, path, cost, int(self.goal_numbers[goal]), int(samples), self.elapsed(),
                              history=np.array(history, dtype=np.float64).reshape(-1, 3))


def open_query(start, goals, checker, weights=(), check=True):
    """-> Query, or the PlanningResult that says what is wrong with start or goals.

    weights: one positive number per joint, or none for 1 each; raises SettingsError when their number is another
    check: look for collisions of start and goals; a planner that does it itself answers with Query.start_collides and
        Query.goals_collide

    Goals in collision or outside the limits are left out as long as one is usable.
    """
    checker.warm_up()
    if check:  # otherwise the planner compiles its own
        warm_up(checker)
    began = time.perf_counter()
    robot, version = checker.robot, checker.version
    dof = robot.dof
    none = np.zeros((0, dof))
    no_query = Query(none, none, none, none, none, none, began)
    if len(weights) not in (0, dof):
        raise SettingsError(f"weights has {len(weights)} numbers; allowed: none, or one for each of the {dof} joints")

    def refuse(status, message):
        return _failure(no_query, status, message, 0)

    start, problem = _vectors("the start", start, dof, single=True)
    if problem:
        return refuse(Status.INVALID_START, problem)
    goals, problem = _vectors("the goal", goals, dof, single=False)
    if problem:
        return refuse(Status.INVALID_GOAL, problem)
    start = start[0]
    turn = robot.continuous
    goals = np.where(turn, start + (goals - start + np.pi) % (2 * np.pi) - np.pi, goals)
    lower, upper = np.where(turn, start - np.pi, robot.lower), np.where(turn, start + np.pi, robot.upper)

    outside = _outside(robot, start, lower, upper)
    if outside:
        return refuse(Status.START_OUT_OF_LIMITS, f"the start is outside the joint limits: {outside}")
    texts = [_outside(robot, goal, lower, upper) for goal in goals]
    inside = np.array([not text for text in texts])
    if not inside.any():
        return refuse(Status.GOAL_OUT_OF_LIMITS, "outside the joint limits: " + _each("goal", texts))
    usable = np.flatnonzero(inside)
    weights = np.asarray(weights if len(weights) else np.ones(dof), dtype=np.float32)
    query = Query(start, goals[usable], usable, lower.astype(np.float32), upper.astype(np.float32), weights, began, checker, version)
    if not check:
        return query
    free = checker.configurations_valid(np.concatenate([start[None], query.goals]))
    if not free[0]:
        return query.start_collides()
    if not free[1:].any():
        return query.goals_collide()
    return replace(query, goals=query.goals[free[1:]], goal_numbers=usable[free[1:]])


def open_queries(starts, goals, checkers, weights=()):
    """`open_query` without the collision check, for many problems of robots with the same joints -> list."""
    began = time.perf_counter()
    robot = checkers[0].robot
    try:
        q, g = np.array(starts, dtype=np.float64), np.array(goals, dtype=np.float64)
    except (TypeError, ValueError):  # of several shapes, or no numbers
        q = g = np.zeros(0)
    if g.ndim == 2:
        g = g[:, None]
    n, dof = len(checkers), robot.dof
    plain = np.zeros(n, dtype=bool)
    if q.shape == (n, dof) and g.ndim == 3 and g.shape[::2] == (n, dof) and len(weights) in (0, dof) and not robot.continuous.any():
        inside = ((q >= robot.lower) & (q <= robot.upper)).all(axis=1) & ((g >= robot.lower) & (g <= robot.upper)).all(axis=(1, 2))
        plain = inside & [checker.robot is robot for checker in checkers]
    lower, upper = robot.lower.astype(np.float32), robot.upper.astype(np.float32)
    weight, numbers = np.asarray(weights if len(weights) else np.ones(dof), dtype=np.float32), np.arange(g.shape[1] if g.ndim == 3 else 0)
    return [Query(q[i], g[i], numbers, lower, upper, weight, began, checkers[i], checkers[i].version) if plain[i]
            else open_query(starts[i], goals[i], checkers[i], weights, check=False) for i in range(n)]


def check_setting(settings, field, low, high, integer=False):
    """Raise SettingsError unless low <= settings.field <= high."""
    value = getattr(settings, field)
    kinds = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        kind = "an integer" if integer else "a number"
        raise SettingsError(f"{type(settings).__module__.rpartition('.')[2]}.Settings.{field} is {value!r}; "
                            f"allowed: {kind} from {low} to {high}")


def check_budgets(settings):
    """The settings that all planners share."""
    check_setting(settings, "max_samples", 1, 100_000_000, integer=True)
    check_setting(settings, "time_limit_s", 1e-3, 86_400.0)
    check_setting(settings, "shortcut_rounds", 0, 10_000, integer=True)
    for k, weight in enumerate(settings.weights):
        if not (np.isfinite(weight) and weight > 0):
            raise SettingsError(f"{type(settings).__module__.rpartition('.')[2]}.Settings.weights[{k}] is {weight!r}; allowed: positive numbers")


def _failure(query, status, message, samples):
    return PlanningResult(status, np.zeros((0, query.start.shape[-1])), samples=int(samples), time_s=query.elapsed(), message=message)


def _vectors(what, value, dof, single):
    """-> (n, dof) float64 and "", or None and what is wrong."""
    try:
        value = np.atleast_2d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        return None, f"{what} is not an array of numbers"
    if value.ndim != 2 or value.shape[1] != dof or len(value) == 0 or (single and len(value) != 1):
        allowed = f"({dof},)" if single else f"({dof},) or (G, {dof})"
        return None, f"{what} must have shape {allowed}, got {value.shape if len(value) != 1 else value.shape[1:]}"
    if not np.isfinite(value).all():
        return None, f"{what} holds a value that is not finite"
    return value, ""


def _outside(robot, q, lower, upper, slack=1e-6):
    """Names of the joints outside their limits, with value and limits; "" when there are none."""
    bad = np.flatnonzero((q < lower - slack) | (q > upper + slack))
    return ", ".join(f"{robot.joint_names[k]} = {q[k]:.4g} (allowed {lower[k]:.4g} to {upper[k]:.4g})" for k in bad)


def _pairs(checker, q):
    pairs = checker.colliding_pairs(q)
    more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
    return ", ".join(f"{a} with {b}" for a, b in pairs[:3]) + more


def _each(what, texts):
    shown = [f"{what} {i}: {text}" for i, text in enumerate(texts) if text][:3]
    return "; ".join(shown) + (f"; and {len(texts) - 3} more" if len(texts) > 3 else "")
