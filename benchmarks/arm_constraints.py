"""Motions that keep a constraint on eight robots: a cup upright, a tool on a plane, a hand along the arc of a door.

How far motions leave the constraint between their waypoints is measured by pinocchio, from the URDF.
"""

import time

import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld, rrt_connect
from gpu_planners.arm.constraints import Position, Tilt, Volume, Within, all_of

from . import coal_peer, constraint_peers, robots
from .harness import Benchmark, Row, median, percentile, progress, told
from .problems import add_obstacles

UP = np.array([0.0, 0.0, 1.0])
TILT = 0.1  # rad
THIN = 0.01  # m: half of the plane's thickness
DOOR, HANDLE = 0.4, 0.02  # m: from the hinge to the handle, and from that arc at most
SWING = np.linspace(-1.2, 1.2, 49)  # rad that the door is turned, at the spheres that cover the arc
POSTS = 3  # boxes among which the tool moves
DRAWN = 2000  # configurations, of which the starts of motions are taken
SCENES = 200  # tried for a problem
WALKERS, STEPS, STRIDE = 16, 40, 0.15  # random walks from a start, in which goals lie: steps, each so long, rad or m
LOOKS = 0.25, 0.5, 0.75  # at places of a step whether it keeps the constraint
FAR = 0.15  # m from the start, where the tool is at goals
SAMPLES = 100  # of each segment, at which pinocchio looks
TIME_LIMIT_S = 10.0
LEFT = 1e-5  # m or rad: a motion that leaves its constraint by more does not keep it
PROBLEMS, OF_PEERS = 5, 1  # of each robot and constraint; the first ones are for peers, too
KINDS = {
    "cup upright within 0.1 rad": lambda robot, link, T: Tilt(robot, link, T[:3, :3].T @ UP, UP, TILT),
    "tool on a plane within 1 cm": lambda robot, link, T: _plane(robot, link, T),
    "hand along a door's arc": lambda robot, link, T: all_of(
        [Tilt(robot, link, T[:3, :3].T @ UP, UP, TILT), _arc(robot, link, T)]
    ),
}


def _plane(robot, link, T):
    ends = np.array([np.inf, np.inf, THIN])
    return Position(robot, link, np.zeros(3), T[:3, 3] - ends, T[:3, 3] + ends)


def _arc(robot, link, T):
    """The handle, which the hand may turn about, on its arc: in spheres that overlap. The hinge is on the far side."""
    away = np.append(T[:2, 3], 0.0)
    hinge = T[:3, 3] + DOOR * away / max(np.linalg.norm(away), 1e-9)
    spheres = []
    for angle in SWING:
        c, s = np.cos(angle), np.sin(angle)
        pose = np.eye(4)
        pose[:3, 3] = hinge + np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ (T[:3, 3] - hinge)
        spheres.append(Volume.sphere(HANDLE, pose))
    return Within(robot, link, np.zeros(3), spheres)


class Problem:
    """A start and a goal that keep a constraint, among posts. Which constraint follows from where the start has the
    tool: so the start keeps it. The goal lies on a random walk from the start, of free steps that keep the constraint
    where it is looked at: so there is a way, while of two random configurations many are of parts that no way joins.
    """

    def __init__(self, rig, kind, index):
        robot, link = rig.model, rig.tips[0]
        rng = np.random.default_rng([index, len(robot.joint_names), len(kind)])
        self.low, self.high = np.maximum(robot.lower, -np.pi), np.minimum(robot.upper, np.pi)
        drawn = rng.uniform(self.low, self.high, (DRAWN, robot.dof))
        places = robot.link_poses(drawn)[link][:, :3, 3]
        reach = float(np.percentile(np.linalg.norm(places - places.mean(axis=0), axis=1), 90))
        for _ in range(SCENES):
            self.obstacles = [_post(k, places[rng.integers(DRAWN)], reach) for k in range(POSTS)]
            self.checker = CollisionChecker(robot, add_obstacles(CollisionWorld(), self.obstacles), "cpu")
            self.start = drawn[rng.integers(DRAWN)]
            if not self.checker.configurations_valid(self.start[None])[0]:
                continue
            T = robot.link_poses(self.start)[link][0]
            self.rule = KINDS[kind](robot, link, T)
            ends = self._walked(rng)
            moved = np.linalg.norm(robot.link_poses(ends)[link][:, :3, 3] - T[:3, 3], axis=1)
            ends = ends[moved > FAR]
            ends = ends[~self.checker.motions_valid(np.broadcast_to(self.start, ends.shape), ends)]
            if len(ends):
                far = np.argsort(np.linalg.norm(ends - self.start, axis=1))[-1 - len(ends) // 4 :]
                self.goal = ends[rng.choice(far)]
                return
        raise ValueError(f"{rig.name}: no problem in {SCENES} scenes")

    def _walked(self, rng):
        """(WALKERS * STEPS, dof) where random walks have been."""
        q, places = np.repeat(self.start[None], WALKERS, axis=0), []
        targets = rng.uniform(self.low, self.high, q.shape)
        for _ in range(STEPS):
            way = targets - q
            step = way * np.minimum(1.0, STRIDE / np.maximum(np.linalg.norm(way, axis=1), 1e-9))[:, None]
            ahead, found = self.rule.project(q + step)
            goes = found & (np.linalg.norm(ahead - q, axis=1) < 2 * STRIDE)
            goes &= np.all([self.rule.satisfied(q + t * (ahead - q)) for t in LOOKS], axis=0)
            goes[goes] = self.checker.motions_valid(q[goes], ahead[goes])
            q = np.where(goes[:, None], ahead, q)
            targets = np.where(goes[:, None], targets, rng.uniform(self.low, self.high, q.shape))
            places.append(q)
        return np.concatenate(places)


def _post(number, at, reach):
    size = [0.12 * reach, 0.12 * reach, 0.8 * reach]
    return {
        "type": "box",
        "name": f"post{number}",
        "size": size,
        "position": np.array(at).tolist(),
        "quat_xyzw": [0, 0, 0, 1],
    }


def left_by(rule, poses):
    """The most that a constraint of KINDS is exceeded by at poses (N, 4, 4) of its link, m or rad, negative: kept."""
    found = []
    for part in rule.parts:
        if hasattr(part, "axis"):
            found.append(np.arccos(np.clip(poses[:, :3, :3] @ part.axis @ part.direction, -1, 1)) - part.tolerance)
        else:
            points = poses[:, :3, :3] @ part.point + poses[:, :3, 3]
            found.append(np.min([_outside(volume, points) for volume in part.volumes], axis=0))
    return float(np.max(found))


def _outside(volume, points):
    """(N,) m that points are outside of a box or a sphere."""
    inside, planes = (points - volume.pose[:3, 3]) @ volume.pose[:3, :3], volume.planes
    if len(planes):
        return (inside @ planes[:, :3].T + planes[:, 3]).max(axis=1)
    return np.linalg.norm(inside, axis=1) - volume.radius


def constraints(context):
    """Rows of each robot and each constraint; with peers, of all robots together."""
    rows, count = [], 2 if context.quick else PROBLEMS
    rigs = []
    for name in robots.ROBOTS:
        if missing := robots.unavailable(name) or coal_peer.unavailable():
            rows.append(Row(robots.ROBOTS[name].title, "gpu_planners", note=missing))
        else:
            rigs.append(robots.rig(name))
    for kind in KINDS:
        runs, shared = [], []
        for rig in rigs:
            problems = [(rig, Problem(rig, kind, index), index) for index in range(count)]
            runs.append(_run(problems, OURS, _ours))
            rows.append(told(_row(f"{rig.title}, {kind}", OURS, runs[-1])))
            shared += problems[:OF_PEERS]
        if not shared:
            continue
        case = f"the first of each robot, {kind}"
        rows.append(told(_row(case, OURS, [found for run in runs for found in run[:OF_PEERS]])))
        for subject, (module, solve) in constraint_peers.SAMPLED.items():
            if missing := constraint_peers.unavailable(module):
                rows.append(Row(case, subject, note=missing))
            else:
                rows.append(told(_row(case, subject, _run(shared, subject, solve))))
    return rows


OURS = "gpu_planners, cpu"


def _ours(problem, time_limit_s, seed):
    settings = rrt_connect.Settings(time_limit_s=time_limit_s)
    found = rrt_connect.solve(problem.start, problem.goal, problem.checker, settings, seed, constraints=problem.rule)
    return found.path if found.solved else None


def _run(problems, subject, solve):
    """[figures of a path, or None] of problems [(rig, Problem, seed)]."""
    from .arm_kinematics import PinocchioArm

    runs: list[dict | None] = []
    for rig, problem, seed in progress(problems, subject):
        problem.checker.warm_up()
        if subject == OURS and not runs:
            solve(problem, 1e-3, seed)  # compiles, which no query is charged for
        began = time.perf_counter()
        path = solve(problem, TIME_LIMIT_S, seed)
        taken = time.perf_counter() - began
        if path is None:
            runs.append(None)
            continue
        arm = PinocchioArm(rig, rig.tips[0])
        way = np.concatenate([np.linspace(a, b, SAMPLES) for a, b in zip(path, path[1:])])
        runs.append(
            {
                "taken": taken,
                "length": np.linalg.norm(np.diff(path, axis=0), axis=1).sum(),
                "waypoints": len(path),
                "left": left_by(problem.rule, np.array([arm.pose(q).homogeneous for q in way])),
                "hits": rig.coal_scene(problem.obstacles).first_collision(path) is not None,
            }
        )
    return runs


def figures_of(runs, **more):
    """Of runs [figures of a path, or None]: what this benchmark and `arm_two_hands` have in common. more: behind it"""
    solved = [run for run in runs if run]
    taken, length, points = ([run[what] for run in solved] for what in ("taken", "length", "waypoints"))
    figures = {
        "solved": f"{len(solved)}/{len(runs)}",
        "time_ms": 1e3 * median(taken),
        "time_p95_ms": 1e3 * percentile(taken, 95),
        "length": median(length),
        "waypoints": median(points),
        "contacts": f"{sum(run['hits'] for run in solved)}/{len(solved)}",
    }
    return figures | more, taken


def columns_with(*more):
    """Formats of what `figures_of` gives; more: columns of text before the last one."""
    first = {"solved": "text", "time_ms": "ms", "time_p95_ms": "ms", "length": "length", "waypoints": "count"}
    return first | dict.fromkeys(more, "text") | {"contacts": "text"}


def _row(case, subject, runs):
    solved = [run for run in runs if run]
    worst = f"{1e3 * max(run['left'] for run in solved):.2f}" if solved else "-"
    leaving = f"{sum(run['left'] > LEFT for run in solved)}/{len(solved)}"
    return Row(case, subject, *figures_of(runs, left_mm=worst, leaving=leaving))


BENCHMARKS = (
    Benchmark(
        "constraints",
        "Motions that keep a constraint",
        "Among three posts, from a random free configuration to one on a random walk that keeps the constraint: so "
        "there is a way; no straight one is free. The constraint follows from where the start has the tool. Solved: "
        "within 10 s. Left by: the most that a motion leaves the constraint anywhere between its waypoints, in 1/1000 "
        "of a metre or rad, by pinocchio at 100 places of each segment, negative: it never does; and how many motions "
        "leave it. Contacts: paths that are not free by coal, followed at 1 mm. The peers look at samples of a motion, "
        "and call the constraint and our check of configurations in Python.",
        columns_with("left_mm", "leaving"),
        constraints,
    ),
)
