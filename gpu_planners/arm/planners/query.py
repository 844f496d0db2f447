"""What every planner does around its search: check start, goals and settings, keep the time, make the result."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import as_array, missing_name
from ...device import refuse_forked, told_if_slow
from ...errors import SettingsError, shown
from ...parallel.stopping import heeding
from ...parallel.team import NEVER, clock_ns
from ...settings import title
from ..spaces.configurations import LARGEST, TURN
from ..spaces.interface import Checker
from .result import PlanningResult, Status, path_length
from .settings import PlannerSettings

GREATEST_GOALS = 100_000  # of a query: a millisecond's work each time that something looks at all of them
FIRST_PIECE = 4  # checks before the first look at the clock, see in_pieces
FIRST_ON_CUDA = 256  # such checks on CUDA
PIECE_NS = 5_000_000  # that a piece takes
SHARE = 16  # of the time left
_warm: set[tuple] = set()  # see warm_once
_checkers: set[type] = set()  # classes of checkers that have all names
_scratches: dict[type, type] = {}  # of them, on the CPU


@dataclass(frozen=True)
class Query:
    """A checked query.

    start: (dof,) float64: continuous joints in [-pi, pi), values that were a little outside the limits at the limit;
        farther outside where the robot may stand there (`RobotModel.hard_limits`)
    goals: (G, dof) float64, the usable ones, likewise, but continuous joints the short way round from the start
    goal_numbers: (G,) their places in the caller's list
    lower, upper: (dof,) float32 bounds for sampling; for a continuous joint one turn around the start
    weights: (dof,) float32: the cost of a motion is sqrt(sum of weight * change squared)
    asked_start, asked_goals: (dof,), (all, dof) float64 as the caller gave them; the same arrays as start and goals
        where those are the same numbers
    began, deadline: of clock_ns()
    """

    start: np.ndarray
    goals: np.ndarray
    goal_numbers: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    weights: np.ndarray
    asked_start: np.ndarray
    asked_goals: np.ndarray
    began: int
    deadline: int
    checker: Any
    version: object

    def elapsed(self) -> float:
        """Seconds."""
        return (clock_ns() - self.began) / 1e9

    def late(self) -> bool:
        """Is the time up?"""
        return clock_ns() > self.deadline

    def start_collides(self) -> PlanningResult:
        """The failure, with the pairs that meet."""
        return self.failed(Status.START_IN_COLLISION, f"the start is in collision: {_pairs(self.checker, self.start)}")

    def goals_collide(self) -> PlanningResult:
        """The failure, with the pairs that meet."""
        texts: list[str] = []
        for number, goal in zip(self.goal_numbers[:3], self.goals):
            if not (texts and self.late()):  # to name the pairs takes long in a large world
                texts.append(f"goal {number}: {_pairs(self.checker, goal)}")
        more = f"; and {len(self.goals) - len(texts)} more" if len(self.goals) > len(texts) else ""
        return self.failed(Status.GOAL_IN_COLLISION, "in collision: " + "; ".join(texts) + more)

    def timed_out(self, samples: int = 0) -> PlanningResult:
        """No path within the time limit."""
        text = f"no path after {(self.deadline - self.began) / 1e9:g} s ({samples} samples)"
        return self.failed(Status.TIMED_OUT, text, samples)

    def exhausted(self, samples: int) -> PlanningResult:
        """No path within the limit of samples."""
        return self.failed(Status.SAMPLES_EXHAUSTED, f"no path after {samples} samples", samples)

    def failed(self, status: Status, message: str, samples: int = 0) -> PlanningResult:
        """Any other failure."""
        none = np.zeros((0, len(self.start)))
        return PlanningResult(status, none, samples=int(samples), time_s=self.elapsed(), message=message)

    def solved(
        self,
        path: np.ndarray,
        goal: int,
        samples: int,
        at_goal: bool = True,
        history: Any = (),
        cost: float | None = None,
    ) -> PlanningResult:
        """path: (K, dof); goal: index into self.goals; at_goal: does the path end there, or only near it?"""
        robot, number, moved = self.checker.robot, int(self.goal_numbers[goal]), []
        wide = around(robot, self.start)
        inside = np.minimum(np.maximum(path, wide.lower), wide.upper)  # a float32 may lie a hair beyond a limit
        path = np.where(robot.continuous, path, inside) if robot.continuous.any() else inside
        path[0] = self.start
        if at_goal:
            path[-1] = self.goals[goal]
        cost = path_length(path, self.weights) if cost is None else cost
        if self.start is not self.asked_start:
            moved = _moved(robot, "start", self.asked_start, self.start)
            path += np.where(robot.continuous, TURN * np.round((self.asked_start - self.start) / TURN), 0.0)
            path[0] = np.where(robot.continuous, self.asked_start, self.start)
        if at_goal and self.goals is not self.asked_goals:
            moved += _moved(robot, f"goal {number}", self.asked_goals[number], self.goals[goal])
        history, texts = np.array(history, dtype=np.float64).reshape(-1, 3), tuple(moved)
        if wide is not robot:
            out = ~robot.continuous & ((self.start < robot.lower) | (self.start > robot.upper))
            moved.append("from beyond limits: " + _names(robot, self.start, out, 0.0, robot.lower, robot.upper))
        time_s, message = self.elapsed(), "; ".join(moved)
        found = PlanningResult(Status.SOLVED, path, cost, number, int(samples), time_s, message, history, texts)
        return self.unless_changed(found)

    def unless_changed(self, found: PlanningResult) -> PlanningResult:
        """The result, or a failure where obstacles have changed since the query began."""
        if self.checker.version == self.version:
            return found
        text = "obstacles changed while the path was searched; ask again"
        return self.failed(Status.WORLD_CHANGED, text, found.samples)


def open_query(
    start: ArrayLike, goals: ArrayLike, checker, settings: PlannerSettings, check: bool = True, began: int | None = None
) -> Query | PlanningResult:
    """-> Query, or the PlanningResult that says what is wrong with start or goals.

    check: look for collisions; else the planner does, and answers with Query.start_collides and Query.goals_collide
    began: clock_ns() from when the time limit counts; none: now, after compiling

    Goals in collision or outside the limits are left out as long as one is usable. A start may be where the robot may
    stand (`RobotModel.standing_limits`), so that its path leads back within the limits.
    """
    if check:
        checker.warm_up()
    began = clock_ns() if began is None else began
    robot, version, tolerance = checker.robot, checker.version, settings.limit_tolerance
    dof, turning, deadline = robot.dof, robot.continuous, began + int(1e9 * settings.time_limit_s)
    taken, *rows = plain_rows(robot, start, goals, single=True)
    if taken.any():
        a, b, low, high = (each[0] for each in rows)
        box = low, high, weights_of(settings, dof)
        query = Query(a, b, np.arange(len(b)), *box, a, b, began, deadline, checker, version)
        return begun(query, check)

    def refuse(status, message):
        return replace(dry_query(checker), began=began).failed(status, message)

    asked_start, problem = _vectors("the start", start, robot, single=True)
    if problem:
        return refuse(Status.INVALID_START, problem)
    asked_goals, problem = _vectors("the goal", goals, robot, single=False)
    if problem:
        return refuse(Status.INVALID_GOAL, problem)
    asked_start = asked_start[0]
    lower, upper = np.where(turning, -np.inf, robot.lower), np.where(turning, np.inf, robot.upper)
    low, high = getattr(robot, "standing_limits", (robot.lower, robot.upper))
    standing = np.where(turning, -np.inf, low), np.where(turning, np.inf, high)
    outside = (asked_start < standing[0] - tolerance) | (asked_start > standing[1] + tolerance)
    if outside.any():
        names = _names(robot, asked_start, outside, tolerance, low, high)
        return refuse(Status.START_OUT_OF_LIMITS, f"the start is outside the joint limits: {names}")
    outside = (asked_goals < lower - tolerance) | (asked_goals > upper + tolerance)
    usable, bad = (np.flatnonzero(outside.any(axis=1) == wrong) for wrong in (False, True))
    if not len(usable):
        told = (_names(robot, asked_goals[i], outside[i], tolerance, robot.lower, robot.upper) for i in bad[:3])
        texts = "; ".join(f"goal {i}: {names}" for i, names in zip(bad, told))
        return refuse(Status.GOAL_OUT_OF_LIMITS, f"outside the joint limits: {texts}{_more(bad, '; and')}")

    turned = _in_one_turn(asked_start, turning)
    start = np.clip(turned, lower, upper)
    start = np.where(np.abs(turned - start) > tolerance, np.clip(turned, *standing), start)
    goals = np.clip(asked_goals[usable], lower, upper)
    if turning.any():
        goals = np.where(turning, start + _in_one_turn(_in_one_turn(goals, turning) - start, turning), goals)
    low, high = np.where(turning, start - np.pi, lower), np.where(turning, start + np.pi, upper)
    start, goals = _same(asked_start, start), _same(asked_goals, goals)
    box = low.astype(np.float32), high.astype(np.float32), weights_of(settings, dof)
    query = Query(start, goals, usable, *box, asked_start, asked_goals, began, deadline, checker, version)
    return begun(query, check)


def begun(query, check):
    """The query with the goals that keep the checker's constraint, if any, and if `check` are free; or the failure."""
    rule = getattr(query.checker, "constraint", None)
    if rule is not None:
        if broken := rule.told(query.start):
            return query.failed(Status.INVALID_START, f"the start does not keep the constraints: {broken}")
        usable = np.flatnonzero(rule.satisfied(query.goals))
        if not len(usable):
            text = f"goal {query.goal_numbers[0]} does not keep the constraints: {rule.told(query.goals[0])}"
            return query.failed(Status.INVALID_GOAL, text)
        if len(usable) < len(query.goals):
            query = replace(query, goals=query.goals[usable], goal_numbers=query.goal_numbers[usable])
    return _checked(query) if check else query


def _checked(query):
    """The query with its goals that are free; or the failure."""
    ends = np.concatenate([query.start[None], query.goals])
    free = in_pieces(query.checker.configurations_valid, query.deadline, ends, device=query.checker.device)
    if len(free) and not free[0]:
        return query.start_collides()
    if len(free) <= len(query.goals):
        return query.timed_out()
    if not free[1:].any():
        return query.goals_collide()
    return replace(query, goals=query.goals[free[1:]], goal_numbers=query.goal_numbers[free[1:]])


def plain_rows(robot, starts, goals, single=False):
    """Queries, or a single one, as the caller gave them -> (n,) bool, whose numbers are as a Query has them, within the
    limits; starts (n, dof) and goals (n, G, dof) float64, lower and upper (n, dof) float32 of Query. n = 0 where arrays
    are of other shapes or kinds."""
    q, g = as_array(starts), as_array(goals)
    if q is None or g is None or q.dtype.kind not in "iuf" or g.dtype.kind not in "iuf":
        q = g = np.zeros(0)  # _vectors names the problem
    if single:
        q, g = q[None], g[None]
    if g.ndim == 2:
        g = g[:, None]
    dof, turning = robot.dof, robot.continuous
    fit = q.ndim == 2 and g.ndim == 3 and q.shape[1] == g.shape[2] == dof and len(q) == len(g)
    if not (fit and 0 < g.shape[1] <= GREATEST_GOALS):
        q, g = np.zeros((0, dof)), np.zeros((0, 0, dof))
    q, g = q.astype(np.float64), g.astype(np.float64)
    lower, upper = np.where(turning, q - np.pi, robot.lower), np.where(turning, q + np.pi, robot.upper)
    inside = np.where(turning, (q >= -np.pi) & (q < np.pi), (q >= robot.lower) & (q <= robot.upper))
    within = (g >= lower[:, None]) & np.where(turning, g < upper[:, None], g <= upper[:, None])
    taken = inside.all(axis=1) & within.all(axis=(1, 2))
    return taken, q, g, lower.astype(np.float32), upper.astype(np.float32)


def in_pieces(check: Callable[..., np.ndarray], deadline: int, *arrays: np.ndarray, device: str = "cpu") -> np.ndarray:
    """check(*pieces) -> (n, ...), of the arrays (N, ...) piece by piece until the deadline -> its answers for the first
    M <= N rows. device: of the checks; on CUDA many take as long as few

    A piece takes PIECE_NS, or a SHARE-th part of the time left where that is more: on a busy machine the start of the
    threads takes longer than small pieces do."""
    answers, done, size = [], 0, FIRST_PIECE if device == "cpu" else FIRST_ON_CUDA
    while done < len(arrays[0]) and (began := clock_ns()) <= deadline:
        answers.append(check(*(array[done : done + size] for array in arrays)))
        done += size
        now = clock_ns()
        size = max(1, int(size * min(2.0, max(PIECE_NS, (deadline - now) // SHARE) / (now - began + 1))))
    return np.concatenate(answers) if answers else np.zeros(0, dtype=bool)


def warm_once(what: str, checker, run: Callable[[], object]) -> None:
    """Call run(), which compiles or loads `what`, once for checkers of a kind, before the clock of a query starts."""
    if checker.device == "cpu" and type(checker) not in _scratches:
        _scratches[type(checker)] = type(checker.new_scratch())
    of = _scratches[type(checker)] if checker.device == "cpu" else checker.scratch_sizes
    if (kind := (what, checker.device, of)) not in _warm:
        with told_if_slow(f"{what} for {checker.device}"), heeding(None):
            run()
        _warm.add(kind)


class _DryQuery(Query):
    """Nobody reads its answer, so the pairs that meet are not looked for: that would be compiled first."""

    def start_collides(self) -> PlanningResult:
        return self.failed(Status.START_IN_COLLISION, "")

    def goals_collide(self) -> PlanningResult:
        return self.failed(Status.GOAL_IN_COLLISION, "")


def dry_query(checker) -> Query:
    """A query to warm up with."""
    dof = checker.robot.dof
    q, one = np.zeros(dof), np.ones(dof, dtype=np.float32)
    return _DryQuery(
        q, q[None], np.zeros(1, dtype=int), -one, one, one, q, q[None], clock_ns(), NEVER, checker, checker.version
    )


def check_call(checker, settings: PlannerSettings, kind: type[PlannerSettings]) -> None:
    """Raise SettingsError unless `checker` is one (see spaces.interface) and `settings` are of the planner's kind.

    Their weights must be none, or one for each joint.

    GpuPlannersError in a child that was forked too late (see device.py).
    """
    refuse_forked()
    if type(checker) not in _checkers and (missing := missing_name(Checker, checker)):
        raise SettingsError(
            f"checker is {shown(checker)}, which has no {missing}; allowed: a CollisionChecker, or a checker of "
            "another space"
        )
    _checkers.add(type(checker))
    if not isinstance(settings, kind):
        raise SettingsError(f"settings is {shown(settings)}; allowed: {title(kind)}")
    if len(settings.weights) not in (0, checker.robot.dof):
        raise SettingsError(
            f"weights has {len(settings.weights)} numbers; "
            f"allowed: none, or one for each of the {checker.robot.dof} joints"
        )


def weights_of(settings, dof):
    return np.asarray(settings.weights or np.ones(dof), dtype=np.float32)


def _vectors(what, value, robot, single):
    """-> (n, dof) float64 and "", or None and what is wrong."""
    dof = robot.dof
    try:
        if len(value) > max(GREATEST_GOALS, dof):
            return None, f"{what} has {len(value)} rows; allowed: at most {GREATEST_GOALS}"
    except Exception:  # whatever an object of the caller raises
        return None, f"{what} is not an array of numbers"
    value = as_array(value)
    if value is None or (value.size and value.dtype.kind not in "iuf"):
        return None, f"{what} is not an array of numbers"
    value = np.atleast_2d(value)
    if value.ndim != 2 or value.shape[1] != dof or len(value) == 0 or (single and len(value) != 1):
        allowed = f"({dof},)" if single else f"({dof},) or (G, {dof})"
        return None, f"{what} must have shape {allowed}, got {value.shape if len(value) != 1 else value.shape[1:]}"
    with np.errstate(over="ignore"):
        value = value.astype(np.float64)
    if not np.isfinite(value).all():
        return None, f"{what} holds a value that is not finite"
    far = np.abs(value) > np.where(robot.continuous, LARGEST, np.inf)
    if far.any():
        row, k = np.argwhere(far)[0]
        joint = f"{robot.joint_names[k]} = {value[row, k]:.6g}"
        return None, f"{what} has {joint}; allowed: -{LARGEST:g} to {LARGEST:g} rad"
    return value, ""


def _more(numbers, text):
    return f"{text} {len(numbers) - 3} more" if len(numbers) > 3 else ""


def _in_one_turn(q, turning):
    """q (..., dof) with the joints that turn without end in [-pi, pi)."""
    angle = np.remainder(q, TURN)
    return np.where(turning & ((q < -np.pi) | (q >= np.pi)), np.where(angle >= np.pi, angle - TURN, angle), q)


def _same(asked, taken):
    """`asked`, if the numbers that are taken are the same."""
    return asked if np.array_equal(asked, taken) else taken


def around(robot: Any, q: np.ndarray) -> Any:
    """`RobotModel.around`; a robot of another space as it is."""
    return robot if getattr(robot, "hard_limits", None) is None else robot.around(q)


def _names(robot, q, outside, tolerance, lower, upper):
    """The joints outside their limits, with value and limits."""
    return ", ".join(
        f"{robot.joint_names[k]} = {q[k]:.6g} (allowed {lower[k]:.6g} to {upper[k]:.6g}, tolerance {tolerance:g})"
        for k in np.flatnonzero(outside)
    )


def _moved(robot, what, asked, taken):
    """A text for each value that was taken to its limit."""
    return [
        f"{what} {robot.joint_names[k]} = {float(asked[k])!r} taken to {float(taken[k])!r}"
        for k in np.flatnonzero(~robot.continuous & (asked != taken))
    ]


def _pairs(checker, q):
    pairs = checker.colliding_pairs(q)
    return ", ".join(f"{a} with {b}" for a, b in pairs[:3]) + _more(pairs, " and")
