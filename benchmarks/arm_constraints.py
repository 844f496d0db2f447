"""Motions that keep a constraint on eight robots: a cup upright, a tool on a plane, in a box, along the arc of a door.

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
WIDE = 0.3  # m: half of the box's sides
DOOR, HANDLE = 0.4, 0.02  # m: from the hinge to the handle, and from that arc at most
SWING = np.linspace(-1.2, 1.2, 49)  # rad that the door is turned, at the spheres that cover the arc
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
            found.append(np.min([_outside(volume, points) for volume in part.volumes], axis=0))
    return float(np.max(found))


def _outside(volume, points):
    """(N,) m that points are outside of a box or a sphere."""
    inside, planes = (points - volume.pose[:3, 3]) @ volume.pose[:3, :3], volume.planes
    if len(planes):
        return (inside @ planes[:, :3].T + planes[:, 3]).max(axis=1)
    return np.linalg.norm(inside, axis=1) - volume.radius


def constraints(context):
    """Rows of each robot and each constraint."""
    rows = []
    for name in robots.ROBOTS:
        title = robots.ROBOTS[name].title
        if missing := robots.unavailable(name) or coal_peer.unavailable():
            rows.append(Row(title, "gpu_planners", note=missing))
            continue
        rig = robots.rig(name)
        for kind in KINDS:
            rows.append(told(_row(rig, kind, 3 if context.quick else 10, "gpu_planners, cpu", _ours)))
            for subject, (module, solve) in constraint_peers.SAMPLED.items():
                if missing := constraint_peers.unavailable(module):
                    rows.append(Row(f"{rig.title}, {kind}", subject, note=missing))
                else:
                    rows.append(told(_row(rig, kind, 3, subject, solve)))
    return rows


def _ours(problem, time_limit_s, seed):
    settings = rrt_connect.Settings(time_limit_s=time_limit_s)
    found = rrt_connect.solve(problem.start, problem.goal, problem.checker, settings, seed, constraints=problem.rule)
    return found.path if found.solved else None


def _row(rig, kind, count, subject, solve):
    from .arm_kinematics import PinocchioArm

    arm, taken, worst, points, lengths, contacts = PinocchioArm(rig, rig.tips[0]), [], [], [], [], 0
    for index in progress(range(count), f"{rig.title}, {kind}, {subject}"):
        problem = Problem(rig, kind, index)
        problem.checker.warm_up()
        began = time.perf_counter()
        path = solve(problem, TIME_LIMIT_S, index)
        if path is None:
            continue
        taken.append(time.perf_counter() - began)
        way = np.concatenate([np.linspace(a, b, SAMPLES) for a, b in zip(path, path[1:])])
        worst.append(left_by(problem.rule, np.array([arm.pose(q).homogeneous for q in way])))
        contacts += rig.coal_scene(problem.obstacles).first_collision(path) is not None
        points.append(len(path))
        lengths.append(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
    figures = {
        "solved": f"{len(taken)}/{count}",
        "time_ms": 1e3 * median(taken),
        "time_p95_ms": 1e3 * percentile(taken, 95),
        "length": median(lengths),
        "waypoints": median(points),
        "left_mm": 1e3 * max(worst, default=float("nan")),
        "contacts": contacts,
    }
    return Row(f"{rig.title}, {kind}", subject, figures, taken)


BENCHMARKS = (
    Benchmark(
        "constraints",
        "Motions that keep a constraint",
        "Among three posts, from a random free configuration to one about 0.8 rad off in each joint, with no straight "
        "way between them. The constraint follows from where the start has the tool; some problems may have no "
        "solution. Solved: within 10 s. The most that a motion leaves the constraint anywhere between its waypoints, "
        "in 1/1000 of a metre or rad, is by pinocchio at 100 places of each segment; negative: it never does. "
        "Contacts: paths that are not free by coal. Of the peers, which look at samples of a motion and call the "
        "constraint and our check of configurations in Python, the first three problems.",
        {
            "solved": "text",
            "time_ms": "ms",
            "time_p95_ms": "ms",
            "length": "length",
            "waypoints": "ratio",
            "left_mm": "ms",
            "contacts": "ratio",
        },
        constraints,
    ),
)
