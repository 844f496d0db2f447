"""Baxter carries a bar with both hands among posts: a closed chain, whose hands keep their pose to each other.

How far they leave it between the waypoints is measured by pinocchio, from the URDF; contacts, the bar's too, by coal.
"""

import time

import numpy as np
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld, rrt_connect
from gpu_planners.arm.constraints import KeepingChecker, RelativePose
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.arm.planners.rrt_connect.planner import engine_for

from . import coal_peer, robots
from .arm_constraints import SAMPLES, columns_with, figures_of
from .harness import Benchmark, Row, progress, told
from .problems import add_obstacles

HANDS = "right_gripper", "left_gripper"
APART = 0.4  # m: the hands, which face each other along the bar
BAR = 0.06, 0.06, 0.36  # m
FRONT = (0.45, -0.15, 0.1), (0.65, 0.15, 0.5)  # m: where the middle of the bar may be
AROUND = (0.2, -0.7, -0.2), (1.0, 0.7, 0.7)  # m: where the middle of a post may be
TILTED = 0.35  # rad: how much the bar is tilted at most about each axis
READY = np.array([0.3, -0.5, 0.0, 1.2, 0.0, 0.9, 0.0, -0.3, -0.5, 0.0, 1.2, 0.0, 0.9, 0.0])
POSTS, POST = 3, (0.08, 0.08, 0.5)  # m
SCENES = 100  # and poses, tried for a problem
TIME_LIMIT_S = 30.0


def held():
    """(4, 4) pose of one hand in the other's frame."""
    W = np.diag([1.0, -1.0, -1.0, 1.0])
    W[2, 3] = APART
    return W


def bar_of(rig):
    """(RobotModel with the bar in both hands, function: obstacles -> CoalScene of it)"""
    from gpu_planners.verify import CoalScene

    robot, (hand, _), T = rig.model, HANDS, np.eye(4)
    T[2, 3] = APART / 2
    touched = [name for name in robot.link_names if "gripper" in name]
    carrying = robot.attach("bar", [ConvexShape.box("bar", BAR, np.eye(4))], hand, T, touched)
    links = [robot.link_names[i] for i in robot.shape_link]
    pairs = {(links[a], links[b]) for a, b in np.asarray(robot.self_collision_pairs).reshape(-1, 2)}
    pairs |= {("bar", link) for link in links if link not in touched}
    size = " ".join(map(str, BAR))
    text = (
        f'<link name="bar"><collision><geometry><box size="{size}"/></geometry></collision></link>'
        f'<joint name="bar_joint" type="fixed"><parent link="{hand}"/><child link="bar"/>'
        f'<origin xyz="0 0 {APART / 2}"/></joint></robot>'
    )
    urdf = rig.urdf.read_text().replace("</robot>", text)
    scene = CoalScene(**rig.coal_arguments | {"urdf": urdf, "srdf": None, "self_pairs": sorted(pairs), "obstacles": []})
    return carrying, scene.among


class Problem:
    """The bar at two random poses in front of the robot, among posts: a start and goals that hold it there, free."""

    def __init__(self, robot, index):
        rng, self.robot = np.random.default_rng(index), robot
        self.rule = RelativePose(robot, *HANDS, held())
        alone = CollisionChecker(robot, CollisionWorld(), "cpu")
        starts, goals = _reached(self.rule, alone, rng), _reached(self.rule, alone, rng)
        for _ in range(SCENES):
            self.obstacles = [_post(k, rng.uniform(*AROUND)) for k in range(POSTS)]
            self.checker = CollisionChecker(robot, add_obstacles(CollisionWorld(), self.obstacles), "cpu")
            free = self.checker.configurations_valid(starts), self.checker.configurations_valid(goals)
            if free[0].any() and free[1].any():
                self.start, self.goals = starts[free[0]][0], goals[free[1]]
                return
        raise ValueError(f"problem {index}: none in {SCENES} scenes")


def _reached(rule, checker, rng):
    """(K, dof) that hold the bar at a random pose that both hands reach."""
    for _ in range(SCENES):
        found = rule.carrying(_bar(rng) @ _moved(-APART / 2), checker, READY)
        if len(found):
            return found
    raise ValueError(f"no pose that both hands reach in {SCENES}")


def _moved(along):
    T = np.eye(4)
    T[2, 3] = along
    return T


def _bar(rng):
    """A random pose (4, 4): the right hand points to the left, along the bar."""
    T = np.eye(4)
    across = Rotation.from_matrix([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    T[:3, :3] = (Rotation.from_rotvec(TILTED * rng.uniform(-1, 1, 3)) * across).as_matrix()
    T[:3, 3] = rng.uniform(*FRONT)
    return T


def _post(number, at):
    return {
        "type": "box",
        "name": f"post{number}",
        "size": list(POST),
        "position": at.tolist(),
        "quat_xyzw": [0, 0, 0, 1],
    }


def deviation(rig, path):
    """(m, rad) by which the hands leave their pose most, by pinocchio at SAMPLES places of each segment."""
    from .arm_kinematics import PinocchioArm

    way = np.concatenate([np.linspace(a, b, SAMPLES) for a, b in zip(path, path[1:])])
    arms, off, wanted = [PinocchioArm(rig, hand) for hand in HANDS], [], held()
    for q in way:
        first, second = (arm.pose(q).homogeneous for arm in arms)
        between = np.linalg.inv(first) @ second
        turned = wanted[:3, :3].T @ between[:3, :3]
        angle = np.arctan2(np.linalg.norm(turned - turned.T) / np.sqrt(8), (np.trace(turned) - 1) / 2)
        off.append((np.linalg.norm(between[:3, 3] - wanted[:3, 3]), angle))
    return np.max(off, axis=0)


def two_hands(context):
    """One row."""
    if missing := robots.unavailable("baxter") or coal_peer.unavailable():
        return [Row("Baxter, two arms", "gpu_planners", note=missing)]
    return [told(_row(robots.rig("baxter"), 3 if context.quick else 20))]


def _row(rig, count):
    robot, among = bar_of(rig)
    runs: list[dict | None] = []
    for index in progress(range(count), "Baxter, a bar in both hands"):
        problem = Problem(robot, index)
        engine_for(KeepingChecker(problem.checker, problem.rule))  # compiled, or loaded
        settings, began = rrt_connect.Settings(time_limit_s=TIME_LIMIT_S), time.perf_counter()
        found = rrt_connect.solve(
            problem.start, problem.goals, problem.checker, settings, index, constraints=problem.rule
        )
        taken = time.perf_counter() - began
        runs.append(None)
        if found.solved:
            runs[-1] = {
                "taken": taken,
                "length": np.linalg.norm(np.diff(found.path, axis=0), axis=1).sum(),
                "waypoints": len(found.path),
                "off": deviation(rig, found.path),
                "hits": among(problem.obstacles).first_collision(found.path) is not None,
            }
    metres, angle = np.max([(0.0, 0.0), *(run["off"] for run in runs if run)], axis=0)
    off = {"off_mm": f"{1e3 * metres:.2f}", "off_mrad": f"{1e3 * angle:.1f}"}
    return Row("Baxter, a bar in both hands", "gpu_planners, cpu", *figures_of(runs, **off))


BENCHMARKS = (
    Benchmark(
        "two_hands",
        "An object in two hands",
        "A bar that both hands hold, 0.4 m apart, from one random pose in front of the robot to another one, among "
        "three posts; some problems may have no solution. Solved: within 30 s. Off: the most that one hand leaves its "
        "pose in the other's frame anywhere on the motion, by pinocchio at 100 places of each segment; allowed are 2 "
        "mm and 20 mrad. Contacts: paths that are not free by coal, with the bar.",
        columns_with("off_mm", "off_mrad"),
        two_hands,
    ),
)
