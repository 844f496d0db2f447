"""Where an arm's page gets its motions from: planned in this process, or by a running node."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ...arm import CollisionChecker, CollisionWorld, RobotModel, prm
from ...arm.trajectory import Trajectory
from ...errors import GpuPlannersError
from ..motions import PoseGoal, Question, plan_motion, settings_of

DRAGGED_S = 0.4  # longest search while a goal is dragged
TRIED = 400  # random configurations, for the first start and goal
FAR = 0.25  # of the mean distance between random configurations: about how far the first goal is


@dataclass(frozen=True)
class Wish:
    """What a page asks for.

    start: (dof,);  goal: (dof,) or a PoseGoal;  dragged: an answer is wanted at once, however long the path
    planner, time_s, margin, seed: as the page has them set
    """

    start: np.ndarray
    goal: np.ndarray | PoseGoal
    dragged: bool = False
    planner: str = "rrt_connect"
    time_s: float = 1.0
    margin: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Answer:
    """text: for people;  path: (K, dof), empty where there is none;  trajectory: its timing, None without a path"""

    text: str
    solved: bool = False
    path: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    trajectory: Trajectory | None = None
    took_s: float = 0.0


class LocalSource:
    """Plans in this process.

    robot, world: as they are now (a node's may change);  tip: link of pose goals;  where: a text
    turns_freely: can a goal be a place of the tool alone, whatever its orientation?
    assignments: "name=value" of the planner's settings
    """

    turns_freely = True

    def __init__(self, robot: RobotModel, world: CollisionWorld, tip: str, device: str, assignments: list[str]) -> None:
        self.robot, self.world, self.tip = robot, world, tip
        self._assignments = assignments
        self._checkers: dict[float, CollisionChecker] = {}
        self._device = device
        self.where = f"in this process, on {self._checker(0.0).device}"

    def plan(self, wish: Wish) -> Answer:
        """Answer a wish; never raises GpuPlannersError."""
        began = time.monotonic()
        try:
            text, path, timed = self._planned(wish)
        except GpuPlannersError as error:
            return Answer(str(error), took_s=time.monotonic() - began)
        return Answer(text, timed is not None, path, timed, time.monotonic() - began)

    def _planned(self, wish):
        """(text, (K, dof) path, its Trajectory or None)"""
        question = Question(wish.start, [wish.goal])
        settings = settings_of(wish.planner, self._assignments, wish.time_s, quick=wish.dragged)
        if wish.dragged:
            settings = replace(settings, time_limit_s=min(settings.time_limit_s, DRAGGED_S))
        motion = plan_motion(self._checker(wish.margin), self.tip, question, wish.planner, settings, wish.seed)
        result, timed = motion.result, motion.trajectory
        text = f"{len(result.path)} waypoints, length {result.cost:.2f}, {timed.duration:.2f} s long"
        return text, result.path, timed

    def colliding(self, q: np.ndarray) -> list[tuple[str, str]]:
        """Pairs of shapes and obstacles that meet at q (dof,)."""
        checker = self._checker(0.0)
        return [] if checker.configurations_valid(q[None])[0] else list(checker.colliding_pairs(q))

    def free(self, q: np.ndarray) -> np.ndarray:
        """(N,) bool of configurations (N, dof)."""
        return self._checker(0.0).configurations_valid(q)

    def roadmap(self, nodes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """(n, dof) configurations and (m, 2) free motions between them."""
        made = prm.build(self._checker(0.0), prm.Settings(roadmap_nodes=nodes, time_limit_s=5.0, lazy=False), seed)
        return made.nodes, made.edges[made.edge_states == 1]

    def measured(self) -> np.ndarray | None:
        """(dof,) where the real robot is; None where nobody says."""
        return None

    def listen(self, on_world: Callable[[], None]) -> None:
        """Call this, on any thread, whenever the obstacles have changed; those of this process do not."""

    def close(self) -> None:
        """End whatever was started."""

    def _checker(self, margin):
        if margin not in self._checkers:
            self._checkers = {kept: it for kept, it in self._checkers.items() if kept == 0.0}
            self._checkers[margin] = CollisionChecker(self.robot, self.world, self._device, margin=margin)
        return self._checkers[margin]


def first_start(source: LocalSource) -> np.ndarray:
    """(dof,) a free configuration: a state of the SRDF, zero, or what lies nearest to the middle of the limits."""
    robot = source.robot
    middle = (robot.lower + robot.upper) / 2
    drawn = _random(robot, 0)
    drawn = drawn[np.argsort(np.linalg.norm((drawn - middle) / _spans(robot), axis=1))]
    tried = [*robot.named_states.values(), middle, np.clip(np.zeros(robot.dof), robot.lower, robot.upper), *drawn]
    tried = np.clip(np.array(tried, dtype=float), robot.lower, robot.upper)
    free = np.flatnonzero(source.free(tried))
    return tried[free[0]] if len(free) else tried[0]


def first_goal(source: LocalSource, start: np.ndarray, seed: int = 0) -> np.ndarray:
    """(dof,) a free configuration at some distance from the start (dof,); with another seed another one."""
    robot = source.robot
    drawn = _random(robot, seed + 1)
    drawn = drawn[source.free(drawn)]
    if not len(drawn):
        return start
    distance = np.linalg.norm((drawn - start) / _spans(robot), axis=1)
    return drawn[np.argmin(np.abs(distance - FAR * np.sqrt(robot.dof)))]


def _random(robot: RobotModel, seed):
    return np.random.default_rng(seed).uniform(robot.lower, robot.upper, (TRIED, robot.dof))


def _spans(robot):
    return np.maximum(robot.upper - robot.lower, 1e-9)


class NodeSource(LocalSource):
    """Motions from a running arm_planner. This process checks what collides, among the node's obstacles.

    name: of the node
    """

    turns_freely = False

    def __init__(self, name: str) -> None:
        from ...nodes.arm.view_client import ViewClient  # the one import of ROS

        self._client = ViewClient(name)
        super().__init__(self._client.robot, self._client.world, self._client.tip, "cpu", [])
        self.where = f"by the node {self._client.name}"
        self._on_world: Callable[[], None] = lambda: None
        self._client.on_world = self._take_world

    def listen(self, on_world: Callable[[], None]) -> None:
        self._on_world = on_world
        self._take_world()

    def _planned(self, wish):
        goal = wish.goal.T if isinstance(wish.goal, PoseGoal) else wish.goal
        limit_s = min(wish.time_s, DRAGGED_S) if wish.dragged else wish.time_s
        return self._client.plan(wish.start, goal, wish.planner, limit_s, wish.margin, wish.seed)

    def measured(self) -> np.ndarray | None:
        return self._client.measured()

    def close(self) -> None:
        self._client.close()

    def _take_world(self):
        self.world = self._client.world
        self._checkers = {}
        self._on_world()
