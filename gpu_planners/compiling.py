"""Compiles what first answers need before anybody asks, in processes of its own, for the cache of this machine.

A part is what one kind of request needs, made by a small request of that kind. Parts that need the same code share the
work (`code_cache`), most of all in one process, which keeps what Numba finds out about functions: of two processes that
make parts of the arm each does that anew. So a process waits for a part that another one makes. Python and Numba hold
their locks while they compile, so threads would not help, and would stall a program that has other things to do.
"""

import contextlib
import heapq
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, NamedTuple

import numpy as np

from .arm import PLANNERS, CollisionChecker, CollisionWorld, MotionCheck, RobotModel, load_urdf
from .arm.collision.packing import pack_robot
from .arm.collision.scratch import SIZES
from .arm.constraints import JointRange, KeepingChecker
from .arm.planners.rrt_connect.planner import engine_for
from .arm.robot import inverse_kinematics
from .arm.trajectory import time_parameterize
from .beside import KERNELS
from .code_cache import Turn
from .distributed.processes import processes
from .fleet import FleetPlanner
from .fleet import Settings as FleetSettings
from .grid import BlockPlanner, GridMap, PoseGrid, PosePlanner
from .kernels import kernel_part
from .parts import LOOK_S, PATIENCE_S, Part, compile_in_turn, is_compiled, kind, place, turn_file, words_of
from .share import share_folder

PRODUCTS = ("arm", "grid", "fleet")
KEEPING = "rrt_connect with constraints"  # a search of its own, beside those of PLANNERS
ROBOT = "desk_arm"  # that code is compiled with where nobody gives a robot; it serves all


class Progress(NamedTuple):
    """How far it is. ended, doing: what was and is being compiled; total: parts

    left_s: seconds that it will take still, as long as the parts that have ended took; None where that is not known,
        since none has, or since a part takes longer
    spent_s: seconds that it has taken
    """

    ended: tuple[str, ...]
    doing: tuple[str, ...]
    total: int
    left_s: float | None
    spent_s: float = 0.0

    @property
    def time(self) -> str:
        """In words, the seconds that it will take or has taken."""
        return f"{self.spent_s:.0f} s so far" if self.left_s is None else f"about {self.left_s:.0f} s left"

    def __str__(self) -> str:
        return f"{len(self.ended)} of {self.total} parts compiled; now {' and '.join(self.doing)}; {self.time}"


def parts_of(products: Iterable[str], device: str) -> list[Part]:
    """The parts of products, those first that most people need first. device: as resolved"""
    made: dict[str, Callable[[], list[Part]]] = {
        "arm": lambda: _all_of_the_arm(device),
        "grid": lambda: [
            *(part for four in (4, 8) for part in grid_parts(device, "exact", four, uniform_cost=False)),
            *pose_parts(device),
        ],
        "fleet": lambda: [
            *fleet_parts(device),
            Part("whole plans of fleets, goals for whoever comes", _compile_other_goals, (device,), 12),
        ],
    }
    return [part for product in products for part in made[product]()]


def _all_of_the_arm(device):
    sizes = range(len(SIZES)) if kind(device) == "cuda" else (0,)
    parts = [part for size in sizes for part in _arm_of_size(device, size)]
    if kind(device) == "cuda":  # first, since others wait for them
        parts = [kernel_part(kernel, device, size) for size in sizes for kernel in KERNELS] + parts
    return list({part.what: part for part in parts}.values())


def _arm_of_size(device, size):
    checks, *others = arm_parts(device, size=size)
    names = "rrt_connect", "rrt", "rrt_star", "prm", KEEPING
    first, *planners = (planner_part(name, device, size=size) for name in names)
    batches = Part(f"batches of rrt_connect on {_place(device, size)}", _compile_batches, (device, size), 2)
    return [checks, first, *others, batches, *planners]


def arm_parts(
    device: str, robot: RobotModel | None = None, motion: MotionCheck | None = None, size: int = 0
) -> list[Part]:
    """What all planners need. robot: a RobotModel, or None; motion: a MotionCheck, or None for the default one; size:
    number of the least of SIZES, if no robot is given"""
    place, given = _place(device, size, robot), (device, robot, motion, size)
    return [
        Part(f"collision checks on {place}", _compile_checks, given, 20),
        Part("inverse kinematics", inverse_kinematics.warm_up, (), 5),
        Part(f"motions in time on {place}", _compile_timing, given, 3),
    ]


def planner_part(
    planner: str, device: str, robot: RobotModel | None = None, motion: MotionCheck | None = None, size: int = 0
) -> Part:
    """planner: a name in PLANNERS, or KEEPING; others: as in `arm_parts`"""
    what = f"planner {planner} on {_place(device, size, robot)}"
    return Part(what, _compile_planner, (planner, device, robot, motion, size), 18)


def _place(device, size, robot=None):
    """Device and size of kernels in words, of a robot if there is one."""
    if robot is not None and kind(device) == "cuda":
        from .arm.collision.checker_cuda import size_number

        size = size_number(pack_robot(robot).buffers)
    return place(device, size)


def grid_parts(
    device: str, algorithm: str, connectivity: int, uniform_cost: bool, block_size: int = 32, settings: Any = None
) -> list[Part]:
    """For maps of a kind; arguments: as BlockPlanner and GridMap take them."""
    costs = "uniform costs" if uniform_cost else "costs"
    what = f"algorithm {algorithm}, {connectivity}-connected, {costs}, blocks of {block_size}, on {kind(device)}"
    given = device, algorithm, connectivity, uniform_cost, block_size, settings
    return [Part(what, _compile_paths, given, 8)]


def pose_parts(device: str) -> list[Part]:
    """For robots with a shape, whatever their moves. device: as PosePlanner takes it"""
    return [Part(f"paths of robots with a shape on {kind(device)}", _compile_poses, (device,), 30)]


def fleet_parts(device: str, motion: str = "four", settings: Any = None) -> list[Part]:
    """Arguments: as FleetPlanner takes them."""
    given = device, motion, settings
    return [
        Part(f"steps of fleets on {kind(device)}, {motion}", _compile_steps, given, 16),
        Part(f"whole plans of fleets, {motion}", _compile_whole_plans, given, 20),
    ]


def _compile_checks(*given):
    checker, q = _checker(*given)
    checker.warm_up()
    checker.colliding_pairs(q[0])


def _compile_planner(name, *given):
    checker, q = _checker(*given)
    if name == KEEPING:
        joint = checker.robot.joint_names[0]
        engine_for(KeepingChecker(checker, JointRange(checker.robot, {joint: (-np.inf, 1e3)})))
        return
    settings = PLANNERS[name].Settings(max_samples=256, time_limit_s=1.0)
    if name == "rrt_connect":
        engine_for(checker)  # before the checks, which another process compiles
    free = q[checker.configurations_valid(q)]
    if len(free) > 1:
        PLANNERS[name].solve(free[0], free[1:2], checker, settings)


def _compile_batches(device, size):
    engine_for(_checker(device, None, None, size)[0], many=True)


def _compile_timing(*given):
    checker, q = _checker(*given)
    limits = checker.robot.velocity, checker.robot.acceleration
    time_parameterize(q[:3], *limits, deviation=0.01, checker=checker)


def _checker(device, robot, motion, size):
    """(CollisionChecker in a world with nothing near, configurations)"""
    if robot is None:
        urdf = share_folder() / "urdf" / ROBOT
        robot = load_urdf(urdf.with_suffix(".urdf"), urdf.with_suffix(".srdf"))
    rng, world = np.random.default_rng(0), CollisionWorld()
    world.add_convex("a hull with many corners", rng.normal(size=(200, 3)), np.eye(4) + 1e3 * np.eye(4, k=3))
    q = rng.uniform(robot.lower, robot.upper, (64, robot.dof))
    checker = CollisionChecker(robot, world, device, motion or MotionCheck())
    return checker.of_size(size) if size else checker, q


def _compile_paths(device, algorithm, connectivity, uniform_cost, block_size, settings):
    costs = np.ones((64, 64), np.uint8)
    costs[0, 0] = 1 if uniform_cost else 2
    grid = GridMap(costs, connectivity)
    use_planner(BlockPlanner(grid, algorithm, block_size, device, settings), grid)


def _compile_poses(device):
    square = 0.1 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    poses = PoseGrid(np.ones((32, 32), np.uint8), square, 8, resolution=0.1)
    for algorithm in ("astar", "exact"):
        planner = PosePlanner(poses, algorithm, device)
        for cost in (0, 1):
            planner.plan([0.55, 0.55, 0.0], [2.55, 2.55, 0.0]).path(0)
            planner.update([16], [16], cost)


def use_planner(planner: BlockPlanner, grid: GridMap) -> None:
    """Make small plans and changes of the map, as requests to a BlockPlanner will."""
    free = np.argwhere(~grid.blocked)[:2].astype(float)  # as tiles of points are
    if len(free):
        planner.plan(free, free[0]).path(0)
        if planner.algorithm == "exact":
            planner.prepare(free[0])
        planner.plan(free, free)
        row, col = free[-1].astype(int)
        for cost in (0, grid.costs[row, col]):
            planner.update([row], [col], cost)
            planner.plan(free, free[0])


def _compile_steps(device, motion, settings):
    planner, starts = _fleet(device, motion, settings)
    planner.start(starts[:-1])
    planner.add(starts[-1:])
    goals = starts[::-1].copy()
    planner.prepare(goals)
    planner.distances(starts, np.zeros(len(starts), int), goals)
    for _ in range(3):
        planner.step(goals, budget_s=1e-3)
    planner.observe(planner.positions, planner.headings, still=[0])
    planner.step(goals)
    planner.observe(planner.positions)
    planner.update([0, 0], [0, 1], [0, 1])
    planner.step(goals)
    planner.remove([0])


def _compile_whole_plans(device, motion, settings):
    planner, starts = _fleet(device, motion, settings)
    planner.solve(starts[:2], starts[1::-1], time_limit_s=0.1)


def _compile_other_goals(device):
    planner, starts = _fleet(device, "four", None)
    planner.solve(starts[:2], starts[1::-1], time_limit_s=0.1, assign=True)
    planner.solve(starts[:2], starts[2], time_limit_s=0.1)


def _fleet(device, motion, settings):
    """(FleetPlanner on a small map, positions of nine agents)"""
    settings = settings or FleetSettings()
    apart = settings.size + settings.safety_distance
    side = 4 * apart + 2
    planner = FleetPlanner(GridMap(np.ones((side, side), np.uint8), 4), motion, device, settings)
    return planner, apart * (1 + np.stack(np.divmod(np.arange(9), 3), axis=1))


def compile_parts(
    parts: Sequence[Part],
    told: Callable[[Progress], object] = lambda progress: None,
    stopped: Callable[[], bool] = lambda: False,
) -> dict[str, str]:
    """Compile parts in as many processes as there are cores -> {what could not be compiled: why}.

    told: called now and then; stopped: asked now and then whether to leave off, which ends the processes at once
    """
    cores = len(os.sched_getaffinity(0))
    pace = _Pace(time.monotonic(), cores)
    failed: dict[str, str] = {}

    def look(waiting):
        now = time.monotonic()
        ended = tuple(part.what for part in parts if part not in waiting)
        doing = tuple(part.what for part in waiting[:cores])
        told(Progress(ended, doing, len(parts), pace.left_s(waiting, now), now - pace.began))
        if stopped():
            raise _Stopped

    with contextlib.suppress(_Stopped):
        while due := [part for part in parts if not is_compiled(part.what)]:
            taken = all(Turn.is_taken(turn_file(part.what)) for part in due)
            if not taken or time.monotonic() > pace.began + PATIENCE_S:
                break
            look(due)
            time.sleep(LOOK_S)
        if not due:
            return failed
        with processes(min(cores, len(due))) as pool:
            left: dict[Future, Part] = {pool.submit(compile_in_turn, [part]): part for part in due}
            while left:
                look(list(left.values()))
                for future in wait(left, LOOK_S, FIRST_COMPLETED).done:
                    part = left.pop(future)
                    error = future.exception()  # of the pool
                    failed |= {part.what: words_of(error)} if error else future.result()
    return failed


class _Pace:
    """How long parts take here, by those that have ended: on a busy machine ten times what they say of themselves.

    began: when the first ones did, seconds; cores: so many are compiled at once, in their order
    """

    def __init__(self, began: float, cores: int) -> None:
        self.began, self._cores = began, cores
        self._since: dict[Part, float] = {}  # of those that are being compiled
        self._took, self._weight = 0.0, 0.0  # of those that have ended, in seconds here and in their own
        self._told: float | None = None

    def left_s(self, waiting: list[Part], now: float) -> float | None:
        """Seconds until all that have not ended will have; None where nobody can know. It never becomes more but by way
        of None."""
        for part in self._since.keys() - set(waiting):
            self._took += now - self._since.pop(part)
            self._weight += part.seconds
        for part in waiting[: self._cores]:
            self._since.setdefault(part, now if self._weight else self.began)
        left = self._forecast(waiting[self._cores :], now) if self._weight else None
        if left is not None and self._told is not None and left > self._told:
            left = None
        self._told = left
        return left

    def _forecast(self, others, now):
        """Seconds, if all parts are as much slower than they say as those that have ended. others: not begun"""
        slower = self._took / self._weight
        ends = [slower * part.seconds - (now - since) for part, since in self._since.items()]
        if min(ends, default=0.0) <= 0:
            return None
        heapq.heapify(ends)
        for part in others:  # each begins when another ends
            heapq.heapreplace(ends, ends[0] + slower * part.seconds)
        return max(ends)


class _Stopped(BaseException):
    """Ends the processes."""
