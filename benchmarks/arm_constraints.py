"""Motions that keep a constraint: a cup upright, a tool on a plane, a point of the tool in a box, on eight robots.

How far motions leave the constraint between their waypoints is measured by pinocchio, from the URDF.
"""

import time

import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld, rrt_connect
from gpu_planners.arm.constraints import Position, Tilt, all_of

from . import coal_peer, robots
from .harness import Benchmark, Row, median, percentile, progress, told
from .problems import add_obstacles

UP = np.array([0.0, 0.0, 1.0])
TILT = 0.1  # rad
THIN = 0.01  # m: half of the plane's thickness
WIDE = 0.3  # m: half of the box's sides
POSTS = 3  # boxes among which the tool moves
DRAWN = 2000  # configurations, of which the starts of motions are taken
ENDS = 200  # configurations near the start, of which the goal is taken
SPREAD = 0.8  # rad or m: their standard deviation, so that most of them have the arm in the start's branch
SCENES = 200  # tried for a problem
SAMPLES = 100  # of each segment, at which pinocchio looks
TIME_LIMIT_S = 10.0
KINDS = {
    "cup upright within 0.1 rad": lambda robot, link, T: Tilt(robot, link, T[:3, :3].T @ UP, UP, TILT),
    "tool on a plane within 1 cm": lambda robot, link, T: _plane(robot, link, T),
    "tool in a box of 60 cm": lambda robot, link, T: Position(
        robot, link, np.zeros(3), T[:3, 3] - WIDE, T[:3, 3] + WIDE
    ),
    "cup on a plane": lambda robot, link, T: all_of(
        [Tilt(robot, link, T[:3, :3].T @ UP, UP, TILT), _plane(robot, link, T)]
    ),
}


def _plane(robot, link, T):
    ends = np.array([np.inf, np.inf, THIN])
    return Position(robot, link, np.zeros(3), T[:3, 3] - ends, T[:3, 3] + ends)


class Problem:
    """A start and a goal that keep a constraint, among posts. Which constraint follows from where the start has the
    tool: so the start keeps it."""

    def __init__(self, rig, kind, index):
        robot, link = rig.model, rig.tips[0]
        rng = np.random.default_rng([index, len(robot.joint_names), len(kind)])
        low, high = np.maximum(robot.lower, -np.pi), np.minimum(robot.upper, np.pi)
        drawn = rng.uniform(low, high, (DRAWN, robot.dof))
        places = robot.link_poses(drawn)[link][:, :3, 3]
        reach = float(np.percentile(np.linalg.norm(places - places.mean(axis=0), axis=1), 90))
        for _ in range(SCENES):
            self.obstacles = [_post(k, places[rng.integers(DRAWN)], reach) for k in range(POSTS)]
            self.checker = CollisionChecker(robot, add_obstacles(CollisionWorld(), self.obstacles), "cpu")
            self.start = drawn[rng.integers(DRAWN)]
            T = robot.link_poses(self.start)[link][0]
            self.rule = KINDS[kind](robot, link, T)
            near = self.start + rng.normal(scale=SPREAD, size=(ENDS, robot.dof))
            ends, found = self.rule.project(np.clip(near, low, high))
            ends = ends[found]
            if not self.checker.configurations_valid(self.start[None])[0]:
                continue
            ends = ends[self.checker.configurations_valid(ends)]
            moved = np.linalg.norm(robot.link_poses(ends)[link][:, :3, 3] - T[:3, 3], axis=1)
            ends = ends[moved > WIDE / 2]
            ends = ends[~self.checker.motions_valid(np.broadcast_to(self.start, ends.shape), ends)]
            if len(ends):
                self.goal = ends[rng.integers(len(ends))]
                return
        raise ValueError(f"{rig.name}: no problem in {SCENES} scenes")


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
            planes, T = part.volumes[0].planes, part.volumes[0].pose
            found.append(((points - T[:3, 3]) @ T[:3, :3] @ planes[:, :3].T + planes[:, 3]).max(axis=1))
    return float(np.max(found))


def constraints(context):
    """Rows of each robot and each constraint."""
    rows = []
    for name in robots.ROBOTS:
        title = robots.ROBOTS[name].title
        if missing := robots.unavailable(name) or coal_peer.unavailable():
            rows.append(Row(title, "gpu_planners", note=missing))
            continue
        rig = robots.rig(name)
        rows += [told(_row(rig, kind, 3 if context.quick else 10)) for kind in KINDS]
    return rows


def _row(rig, kind, count):
    from .arm_kinematics import PinocchioArm

    arm, settings = PinocchioArm(rig, rig.tips[0]), rrt_connect.Settings(time_limit_s=TIME_LIMIT_S)
    taken, worst, samples, points, contacts = [], [], [], [], 0
    for index in progress(range(count), f"{rig.title}, {kind}"):
        problem = Problem(rig, kind, index)
        problem.checker.warm_up()
        began = time.perf_counter()
        found = rrt_connect.solve(
            problem.start, problem.goal, problem.checker, settings, index, constraints=problem.rule
        )
        if not found.solved:
            continue
        taken.append(time.perf_counter() - began)
        way = np.concatenate([np.linspace(a, b, SAMPLES) for a, b in zip(found.path, found.path[1:])])
        worst.append(left_by(problem.rule, np.array([arm.pose(q).homogeneous for q in way])))
        contacts += rig.coal_scene(problem.obstacles).first_collision(found.path) is not None
        samples.append(found.samples)
        points.append(len(found.path))
    figures = {
        "solved": len(taken) / count,
        "time_ms": 1e3 * median(taken),
        "time_p95_ms": 1e3 * percentile(taken, 95),
        "samples": median(samples),
        "waypoints": median(points),
        "left_mm": 1e3 * max(worst, default=float("nan")),
        "contacts": contacts,
    }
    return Row(f"{rig.title}, {kind}", "gpu_planners, cpu", figures, taken)


BENCHMARKS = (
    Benchmark(
        "constraints",
        "Motions that keep a constraint",
        "Among three posts, from a random free configuration to one about 0.8 rad off in each joint, with no straight "
        "way between them. The constraint follows from where the start has the tool; some problems may have no "
        "solution. Solved: within 10 s. The most that a motion leaves the constraint anywhere between its waypoints, "
        "in 1/1000 of a metre or rad, is by pinocchio at 100 places of each segment; negative: it never does.",
        {
            "solved": "share",
            "time_ms": "ms",
            "time_p95_ms": "ms",
            "samples": "ratio",
            "waypoints": "ratio",
            "left_mm": "ms",
            "contacts": "ratio",
        },
        constraints,
    ),
)
