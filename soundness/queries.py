"""A motion is watched while queries with other grippers come: the watch answers as coal does for the measured gripper,
and each query's plan is free for the gripper that it names."""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from gpu_planners.arm import CollisionChecker
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import GpuPlannersError
from gpu_planners.verify import CoalScene

from .harness import NEAR, Attack, Skipped, numbers

LOOKS = 4  # at a motion, each after a query
OPEN = 0.12  # m, of the fingers
LIFT = 0.3  # m, of the torso
WIDE = 0.02  # m: a watch may stop a motion that comes nearer
JOINTS = ("turn", "lift", "bend", "roll")
OTHERS = {"torso": LIFT, "grip": OPEN}


def case(run, rng, number, tally):
    """A random arm on a torso, with a gripper; neither is planned."""
    nodes = _nodes()
    with tempfile.TemporaryDirectory() as folder:
        urdf = Path(folder) / "arm.urdf"
        urdf.write_text(_arm(rng), encoding="utf-8")
        scene, values = nodes.scene(urdf, run.devices[-1])
        measured = _others(rng)
        scene.follow(measured)
        motion, path = _motion(rng, scene, nodes)
        boxes = []
        for look, part in enumerate(np.sort(rng.uniform(0.0, 0.5, LOOKS))):
            if look != 1:  # once the scene stays, so that what was found before may count
                boxes.append(_box(rng, scene.robot, path, len(boxes)))
                scene.take(scene.objects.add(nodes.obstacle(boxes[-1])))
            if look == LOOKS - 1:  # the gripper itself moves
                measured = _others(rng)
                scene.follow(measured)
            asked = _others(rng)
            planned = nodes.query(rng, scene, values, measured, asked, path)
            told = f"case {number}, measured {measured}, asked {asked}, boxes {boxes}"
            if planned is not None:
                met = _coal(urdf, scene.robot, boxes, asked).first_collision(planned, tolerance=NEAR)
                tally.check(met is None, f"a plan of a query meets {met}: {told}, path {numbers(planned)}")
            phase = float(part) * motion.duration
            verdict = scene.contact_ahead(motion, phase, {})
            rest = motion.curve.at(np.linspace(phase, motion.duration, 400)).positions
            coal = _coal(urdf, scene.robot, boxes, measured)
            if verdict:
                far = min(coal.distance(q) for q in rest[::4])
                tally.check(far < WIDE, f"the watch says '{verdict}', {far:.3g} m away: {told}")
            else:
                met = coal.first_collision(rest, tolerance=NEAR)
                tally.check(met is None, f"the watch saw nothing, where coal sees {met}: {told}, path {numbers(path)}")


def _others(rng):
    """{joint: value} of the torso and the gripper, often at an end."""
    return {name: float(rng.choice([0.0, most, rng.uniform(0.0, most)])) for name, most in OTHERS.items()}


def _motion(rng, scene, nodes):
    """(Motion, (2, dof) its ends): straight, and free of the robot itself."""
    robot = scene.robot
    checker = CollisionChecker(scene.robot, scene.objects.world, "cpu", scene.values.motion_check)
    for _ in range(100):
        path = rng.uniform(0.8 * robot.lower, 0.8 * robot.upper, (2, robot.dof))
        if checker.motions_valid(path[:1], path[1:])[0]:
            return nodes.motion(scene, time_parameterize(path, robot.velocity, robot.acceleration)), path
    raise Skipped("no free motion of the arm was drawn")


def _box(rng, robot, path, number):
    """An obstacle near a finger, somewhere on the motion."""
    q = path[0] + rng.uniform(0.3, 1.0) * (path[1] - path[0])
    T = robot.link_poses(q)[str(rng.choice(["left", "right"]))][0]
    size = rng.uniform(0.01, 0.06, 3)
    gap = rng.uniform(0.0, 0.1)
    position = T[:3, 3] + T[:3, :3] @ [rng.uniform(0.0, 0.1), gap * rng.choice([-1, 1]), 0.0]
    return {
        "type": "box",
        "name": f"box{number}",
        "size": size.tolist(),
        "position": position.tolist(),
        "quat_xyzw": [0.0, 0.0, 0.0, 1.0],
    }


def _coal(urdf, robot, boxes, others):
    links = [robot.link_names[i] for i in robot.shape_link]
    pairs = sorted({tuple(sorted((links[a], links[b]))) for a, b in robot.self_collision_pairs})
    return CoalScene(urdf, None, boxes, joints=list(JOINTS), fixed=others, self_pairs=pairs)


def _arm(rng):
    lengths = rng.uniform(0.15, 0.4, 2)
    wide, finger = rng.uniform(0.02, 0.08), rng.uniform(0.05, 0.15)

    def link(name, size, x=0.0):
        body = f'<origin xyz="{x} 0 0"/><geometry><box size="{" ".join(map(str, size))}"/></geometry>'
        return f'<link name="{name}"><collision>{body}</collision></link>'

    def joint(name, parent, child, kind, axis, origin, limits, more=""):
        return (
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/>'
            f'<origin xyz="{origin}"/><limit lower="{limits[0]}" upper="{limits[1]}" velocity="2" effort="1"/>{more}'
            "</joint>"
        )

    follow = '<mimic joint="grip" multiplier="1"/>'
    return "".join(
        [
            '<robot name="arm"><link name="base"/>',
            link("column", (0.1, 0.1, 0.2)),
            '<link name="shoulder"/>',
            link("upper", (lengths[0], 0.05, 0.05), lengths[0] / 2),
            link("fore", (lengths[1], 0.04, 0.04), lengths[1] / 2),
            link("hand", (0.03, wide, wide), 0.015),
            link("left", (finger, 0.01, 0.02), finger / 2),
            link("right", (finger, 0.01, 0.02), finger / 2),
            joint("torso", "base", "column", "prismatic", "0 0 1", "0 0 0.2", (0, LIFT)),
            joint("turn", "column", "shoulder", "continuous", "0 0 1", "0 0 0.15", (-3, 3)),
            joint("lift", "shoulder", "upper", "revolute", "0 1 0", "0.1 0 0", (-1.5, 1.5)),
            joint("bend", "upper", "fore", "revolute", "0 1 0", f"{lengths[0]} 0 0", (-2.5, 2.5)),
            joint("roll", "fore", "hand", "revolute", "1 0 0", f"{lengths[1]} 0 0", (-3, 3)),
            joint("grip", "hand", "left", "prismatic", "0 1 0", "0.03 0.006 0", (0, OPEN)),
            joint("follow", "hand", "right", "prismatic", "0 -1 0", "0.03 -0.006 0", (0, OPEN), follow),
            "</robot>",
        ]
    )


class _Nodes:
    """What the nodes have, which need ROS's message packages."""

    def __init__(self):
        from sensor_msgs.msg import JointState

        from gpu_planners.nodes.arm import plan_service, sequence_service
        from gpu_planners.nodes.arm.conversions import trajectory_message
        from gpu_planners.nodes.arm.move_run import MotionUnderWay
        from gpu_planners.nodes.arm.parameters import ArmParameters, NodeRrtConnect
        from gpu_planners.nodes.arm.planning_scene import PlanningScene
        from gpu_planners.nodes.arm.scene_objects import SceneObject, Source
        from gpu_planners_msgs.msg import MotionSegment
        from gpu_planners_msgs.srv import PlanMotion, PlanSequence

        self.JointState, self.MotionSegment = JointState, MotionSegment
        self.PlanMotion, self.PlanSequence = PlanMotion, PlanSequence
        self.plan, self.sequence = plan_service.answer, sequence_service.answer
        self._motion = MotionUnderWay
        self._message, self._parameters, self._planner = trajectory_message, ArmParameters, NodeRrtConnect
        self._scene, self._object, self._source = PlanningScene, SceneObject, Source

    def scene(self, urdf, device):
        """(PlanningScene, ArmParameters)"""
        quick = self._planner(time_limit_s=0.5, optimise_s=0.0)
        values = self._parameters(joints=JOINTS, device=device, rrt_connect=quick)
        scene = self._scene(values)
        scene.load_robot(str(urdf), 0.0)
        return scene, values

    def obstacle(self, box):
        from gpu_planners.arm.geometry.shapes import ConvexShape

        pose = np.eye(4)
        pose[:3, 3] = box["position"]
        shape = ConvexShape.box(box["name"], box["size"], np.eye(4))
        return self._object(box["name"], (shape,), pose, self._source.SERVICE)

    def motion(self, scene, trajectory):
        message = self._message(scene.robot, trajectory)
        motion = self._motion.planned(message, scene.robot, scene.objects, 0.0)
        motion.scene = None, None  # not yet looked at
        return motion

    def query(self, rng, scene, values, measured, asked, path):
        """Ask something with a gripper of its own -> (K, dof) what is planned, None where nothing is."""
        q = path[0] + rng.random(4) * (path[1] - path[0])
        names, positions = [*JOINTS, *asked], [*map(float, path[0]), *asked.values()]
        start = self.JointState(name=names, position=positions)
        goal = self.JointState(name=list(JOINTS), position=[float(value) for value in q])
        full = dict(zip(JOINTS, path[0], strict=True)) | measured
        services = SimpleNamespace(scene=scene, values=values, measured=lambda: full)
        kind = rng.integers(4)
        if kind == 0:
            scene.robot_among(scene.objects, asked).link_poses(q)
            return None
        if kind == 1:  # as MoveIt's queries
            checker = scene.checker_for(scene.objects, 0.0, asked)
            checker.configurations_valid(q[None])
            return None
        if kind == 2:
            plan, response = self.plan, self.PlanMotion.Response()
            request = self.PlanMotion.Request(start=start, joint_goals=[goal])
        else:
            plan, response = self.sequence, self.PlanSequence.Response()
            segment = self.MotionSegment(kind=self.MotionSegment.FREE, joint_goals=[goal])
            request = self.PlanSequence.Request(start=start, segments=[segment])
        try:
            planned = plan(services, request, response)
        except GpuPlannersError:
            return None
        return None if planned is None else planned.path


def _nodes():
    try:
        return _Nodes()
    except ImportError as error:
        raise Skipped(f"the nodes need ROS's message packages: {error}") from error


ATTACK = Attack("queries", "queries with other grippers beside a motion that is watched", case)
