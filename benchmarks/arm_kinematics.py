"""Inverse kinematics: one pose, and many at once; pinocchio's CLIK as the peer.

Robots of example-robot-data; where that is not installed, a Panda, a UR5 and a Fetch of the shared data. Limits of all
solutions are looked at, and pinocchio places them, some thousands where there are more.
"""

import time

import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf

from . import coal_peer, robots
from .harness import Benchmark, Row, median, percentile, progress, seconds
from .problems import load_problems, robot_files

ROBOTS = ("panda", "ur5", "xarm7", "tiago")  # of `robots.ROBOTS`
BOXES = ((0.55, 0.35, 0.3), (0.55, -0.35, 0.5), (-0.45, 0.0, 0.6))  # centres, metres; edges of 25 cm
WANTED = 1e-6  # m and rad
CLIK_STEPS = {0.1: 1000, 1.0: 100}  # length of a step, as in pinocchio's example and Newton's: iterations at most
CLIK_DAMPING = 1e-12
CLIK_STARTS = 100
PLACED = 2000  # poses whose solutions pinocchio places, at most
MANY = {"cpu": (1000,), "cuda": (100, 1000, 100_000)}  # poses at once


class PinocchioArm:
    """A robot's chain by pinocchio: poses of its tip, and one run of closed-loop inverse kinematics."""

    def __init__(self, rig, tip):
        import pinocchio as pin

        robot, full = rig.model, pin.buildModelFromUrdf(str(rig.urdf))
        values, held = pin.neutral(full), [full.getJointId(joint) for joint in rig.fixed]
        for joint, value in zip(held, rig.fixed.values()):
            values[full.joints[joint].idx_q] = value
        self._pin, self.model = pin, pin.buildReducedModel(full, held, values)
        self.data, self.frame = self.model.createData(), self.model.getFrameId(tip)
        joints = [self.model.joints[self.model.getJointId(name)] for name in robot.joint_names]
        self._q, self._v = [joint.idx_q for joint in joints], [joint.idx_v for joint in joints]
        self._endless = np.array([joint.nq == 2 for joint in joints])  # given by cosine and sine

    def pose(self, q):
        """pinocchio's pose of the tip."""
        full = self._pin.neutral(self.model)
        full[self._q] = np.where(self._endless, np.cos(q), q)
        full[np.array(self._q)[self._endless] + 1] = np.sin(np.asarray(q)[self._endless])
        self._pin.framesForwardKinematics(self.model, self.data, full)
        return self.data.oMf[self.frame]

    def miss(self, q, T):
        """Metres and rad from a pose (4, 4)."""
        M = self._pin.SE3(T).actInv(self.pose(q))
        return np.linalg.norm(M.translation), np.linalg.norm(self._pin.log3(M.rotation))

    def clik(self, q, T, step, iterations):
        """The loop of pinocchio's example of inverse kinematics, from q -> (dof,), or None where it does not end."""
        pin, goal = self._pin, self._pin.SE3(T)
        full = pin.neutral(self.model)
        full[self._q] = q
        for _ in range(iterations):
            pin.framesForwardKinematics(self.model, self.data, full)
            missing = self.data.oMf[self.frame].actInv(goal)
            error = pin.log(missing).vector
            if np.linalg.norm(error) < WANTED:
                return full[self._q]
            J = pin.computeFrameJacobian(self.model, self.data, full, self.frame)[:, self._v]
            J = -pin.Jlog6(missing.inverse()) @ J
            v = np.zeros(self.model.nv)
            v[self._v] = -J.T @ np.linalg.solve(J @ J.T + CLIK_DAMPING * np.eye(6), error)
            full = pin.integrate(self.model, full, step * v)
        return None


def inverse_kinematics(context):
    """Rows of one pose and of many poses, for each robot, and of the peer."""
    rows, unplaced = [], coal_peer.unavailable()
    for title, robot, tip, rig in _robots():
        arm = None if unplaced or rig is None else PinocchioArm(rig, tip)
        checker = CollisionChecker(robot, _boxes(), "cpu")
        for device, missing in context.asked_for():
            if missing:
                rows.append(Row(title, f"gpu_planners, {device}", note=missing))
                continue
            on, sizes = checker.on(device), MANY[device.partition(":")[0]]
            poses = _free_poses(robot, on, tip, max(sizes))
            rows.append(_one(title, robot, arm, tip, on, poses[: 30 if context.quick else 200], device))
            kinds = {
                "1 solution": dict(solutions=1),
                "1 free of collision": dict(solutions=1, checker=on),
                "8 free of collision": dict(solutions=8, checker=on),
            }
            asked = [
                (poses[:size], what)
                for size in sizes
                for what in kinds
                if size == 1000 or what == "1 free of collision"
            ]
            asked.append((_any_poses(robot, tip, max(sizes)), "1 free of collision, of any configurations"))
            for some, what in asked:
                options = kinds[what.partition(",")[0]]
                rows.append(
                    _many(
                        f"{title}, {len(some)} poses, {what}", robot, arm, tip, some, context.quick, device, **options
                    )
                )
        if arm:
            poses = _free_poses(robot, checker, tip, 50)
            rows += [_peer(title, robot, arm, poses[: 10 if context.quick else 50], step) for step in CLIK_STEPS]
    return rows


def _robots():
    """Yield title, robot, tip, Rig or None."""
    found = [name for name in ROBOTS if not robots.unavailable(name)]
    for name in found:
        rig = robots.rig(name)
        yield robots.ROBOTS[name].title, rig.model, rig.tips[0], rig
    for name in () if found else ("panda", "ur5", "fetch"):
        if name in robots.SHARED:
            robot = robots.shared(name)[0].model
        else:
            urdf, srdf = robot_files(name)
            robot = load_urdf(urdf, srdf, [urdf.parent], list(load_problems(name)[0].joint_names))
        yield f"{name} of the shared data", robot, robot.tip_link, None


def _one(name, robot, arm, tip, checker, poses, device):
    options = dict(link=tip, solutions=8, device=device)
    robot.inverse_kinematics(poses[0], checker, **options)
    taken, answers = [], []
    for T in poses:
        began = time.perf_counter()
        answers.append(robot.inverse_kinematics(T, checker, **options))
        taken.append(time.perf_counter() - began)
    figures = {"time_ms": 1e3 * median(taken), "time_p95_ms": 1e3 * percentile(taken, 95)}
    figures |= _checked(robot, arm, poses, [found.q for found in answers])
    return Row(f"{name}, one pose, 8 free of collision", f"gpu_planners, {device}", figures, taken)


def _many(case, robot, arm, tip, poses, quick, device, **options):
    def solve():
        return robot.inverse_kinematics(poses, link=tip, device=device, **options)

    answers = [found.q for found in solve()]
    taken = seconds(solve, 3 if quick else 7)
    of_second = 1 / median(taken)
    figures = {"time_ms": 1e3 * median(taken), "pose_rate": len(poses) * of_second}
    figures["solution_rate"] = sum(map(len, answers)) * of_second
    return Row(case, f"gpu_planners, {device}", figures | _checked(robot, arm, poses, answers))


def _peer(name, robot, arm, poses, step):
    """From random starts one after the other, until one is led to the pose within the limits."""
    rng, answers, began = np.random.default_rng(1), [], time.perf_counter()
    for T in progress(poses, f"CLIK, {name}"):
        found = np.zeros((0, robot.dof))
        for _ in range(CLIK_STARTS):
            q = arm.clik(rng.uniform(robot.lower, robot.upper), T, step, CLIK_STEPS[step])
            if q is not None and (q >= robot.lower).all() and (q <= robot.upper).all():
                found = q[None]
                break
        answers.append(found)
    taken = time.perf_counter() - began
    figures = {"time_ms": 1e3 * taken, "solution_rate": sum(map(len, answers)) / taken}
    subject = f"pinocchio's CLIK in Python, step {step:g}, one core"
    return Row(f"{name}, {len(poses)} poses, 1 solution", subject, figures | _checked(robot, arm, poses, answers))


def _checked(robot, arm, poses, answers):
    """Figures of the answers; errors by pinocchio, where it is there."""
    assert all((q >= robot.lower).all() and (q <= robot.upper).all() for q in answers)
    figures = {
        "solved": float(np.mean([len(q) > 0 for q in answers])),
        "solutions": float(np.mean([len(q) for q in answers])),
    }
    if arm:
        placed = zip(answers[:PLACED], poses)
        errors = np.array([arm.miss(row, T) for q, T in placed for row in q]).reshape(-1, 2).max(axis=0)
        figures |= {"error_um": 1e6 * float(errors[0]), "error_urad": 1e6 * float(errors[1])}
    return figures


def _boxes():
    world = CollisionWorld()
    for number, centre in enumerate(BOXES):
        pose = np.eye(4)
        pose[:3, 3] = centre
        world.add_box(f"box{number}", (0.25, 0.25, 0.25), pose)
    return world


def _free_poses(robot, checker, tip, count):
    """(count, 4, 4) poses of random configurations that touch nothing."""
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (20 * count, robot.dof))
    return robot.link_poses(q[checker.configurations_valid(q)][:count])[tip]


def _any_poses(robot, tip, count):
    """(count, 4, 4) poses of random configurations: some have no answer that touches nothing."""
    return robot.link_poses(np.random.default_rng(0).uniform(robot.lower, robot.upper, (count, robot.dof)))[tip]


BENCHMARKS = (
    Benchmark(
        "inverse_kinematics",
        "Inverse kinematics",
        "Poses of random configurations that touch nothing, among three boxes; distinct solutions inside the limits, "
        "within 1e-6 m and 1e-6 rad. Worst errors by pinocchio. A UR5 has 8 solutions at most, some of which collide. "
        "CLIK is the loop of pinocchio's example, from random starts until one ends inside the limits.",
        {
            "time_ms": "ms",
            "time_p95_ms": "ms",
            "pose_rate": "rate",
            "solution_rate": "rate",
            "solved": "share",
            "solutions": "ratio",
            "error_um": "ms",
            "error_urad": "ms",
        },
        inverse_kinematics,
    ),
)
