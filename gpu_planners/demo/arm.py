"""The arm's part of the demo: motions of a real robot by the real node, checked by pinocchio and coal, and drawn."""

import math
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from rich.console import Console
from rich.markup import escape
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from gpu_planners_msgs.srv import PlanMotion

from .. import verify
from ..arm import load_urdf
from ..arm.collision.scene_file import fixed_frames, load_scene
from ..arm.view.drawing import draw_path
from ..errors import GpuPlannersError
from ..nodes.arm.parameters import PLANNERS, ArmParameters
from ..nodes.common.parameters import settings_in
from ..nodes.common.ros import seconds
from ..share import example_robots_share, share_folder
from ..verify.limits import broken_rules
from .node import LOADING, NodeClient, facts_of, ms, table_of, verdict

PANDA = Path("example-robot-data/robots/panda_description")
SCENE = share_folder() / "config/scenes/panda_table_shelf.yaml"
JOINTS = tuple(f"panda_joint{number}" for number in range(1, 8))
READY = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)
FORWARD = Quaternion(x=0.0, y=math.sqrt(0.5), z=0.0, w=math.sqrt(0.5))  # the gripper points along x, into the shelf


class DemoRobot(NamedTuple):
    """Files of the demo's robot; package_dir: folder of the packages that its mesh paths name."""

    urdf: Path
    srdf: Path
    package_dir: Path
    group: str = "arm"
    tip_link: str = "panda_hand_tcp"


class DemoRequest(NamedTuple):
    """One question of the demo: a position of the gripper (x, y, z in the root frame, metres) or joint values (7,)."""

    title: str
    gripper_at: tuple[float, ...] = ()
    joint_goal: tuple[float, ...] = ()
    possible: bool = True


REQUESTS = (
    DemoRequest("reach into the upper compartment", gripper_at=(0.66, 0.00, 0.60)),
    DemoRequest("from there into the lower one", gripper_at=(0.66, 0.10, 0.20)),
    DemoRequest("back to the ready position", joint_goal=READY),
    DemoRequest("into the top of the shelf (impossible)", gripper_at=(0.66, 0.00, 0.77), possible=False),
)
COMPARED = REQUESTS[1]  # what every planner is asked, from where REQUESTS[0] ends


def demo_robot() -> DemoRobot:
    """The Panda's files, where pip or a ROS distribution has put example-robot-data."""
    try:
        share = example_robots_share()
    except FileNotFoundError as error:
        raise GpuPlannersError(f"the demo needs the Panda of example-robot-data: {error}") from None
    return DemoRobot(share / PANDA / "urdf/panda.urdf", share / PANDA / "srdf/panda.srdf", share)


def message_of(request: DemoRequest, start: Sequence[float], seed: int) -> PlanMotion.Request:
    """The request to the node, from start (7,) rad."""
    message = PlanMotion.Request(start=JointState(name=list(JOINTS), position=[float(q) for q in start]), seed=seed)
    if request.joint_goal:
        message.joint_goals = [JointState(name=list(JOINTS), position=list(request.joint_goal))]
    else:
        pose = Pose(position=Point(**dict(zip("xyz", request.gripper_at))), orientation=FORWARD)
        message.pose_goals = [PoseStamped(header=Header(frame_id="panda_link0"), pose=pose)]
    return message


MOMENT_S = 2.0  # between two motions that are shown
TIME_LIMIT_S = 4.0  # of each planner, when all are compared
SUCCESS = PlanMotion.Response.SUCCESS
COLUMNS = "request, answer, >planning, >round trip, >path, >motion, controller's rules, checked by coal"
COMPARISON = "planner, answer, checked by coal, >samples, >raw: time, >length, >shortened: time, >length"


def run(console: Console, options: Namespace) -> int:
    files = demo_robot()
    parameters = {
        "robot_description_file": files.urdf,
        "srdf_file": files.srdf,
        "package_dirs": f"['{files.package_dir}']",
        "group": files.group,
        "tip_link": files.tip_link,
        "scene_file": SCENE,
        "device": options.device,
    }
    with ArmClient("arm.node", PlanMotion, "arm_planner/plan_motion", parameters, not options.no_node) as client:
        with console.status(LOADING):
            client.wait_until_ready()
        while options.repeat:
            client.ask_all(options.seed, then=client.pause)
            options.seed += 1
        answers = client.ask_all(options.seed)
        with console.status("asking every planner; the first time on a machine each is compiled"):
            start = positions_of(answers[0][1].path)[-1] if answers[0][1].path.points else READY
            compared = client.ask_planners(start, options.seed, may_set=not options.no_node)
    with console.status("checking by coal"):
        return _report(console, answers, compared, options)


class ArmClient(NodeClient):
    """Asks for the motions of the demo."""

    def wait_until_ready(self) -> None:
        """Return when the node has answered a first request, which it does once it has loaded and compiled."""
        self.wait_for_service()
        answer, _ = self.ask(message_of(REQUESTS[0], READY, 0))
        if answer.code == PlanMotion.Response.COLLISION_CHECKING_UNAVAILABLE:
            raise GpuPlannersError(f"the node answered: {answer.message}")

    def ask_all(
        self, seed: int, then: Callable[[PlanMotion.Response], None] = lambda response: None
    ) -> list[tuple[DemoRequest, PlanMotion.Response, float]]:
        """[(request, response, round trip in seconds)]; each motion starts where the one before ended.

        then: called with each response before the next request
        """
        answers, start = [], READY
        for request in REQUESTS:
            response, round_trip = self.ask(message_of(request, start, seed))
            answers.append((request, response, round_trip))
            if response.path.points:
                start = response.path.points[-1].positions
            then(response)
        return answers

    def pause(self, response: PlanMotion.Response) -> None:
        """Take messages while a viewer looks at an answer: as long as its motion takes, and a moment more."""
        points = response.trajectory.points
        end = time.monotonic() + MOMENT_S + (seconds(points[-1].time_from_start) if points else 0.0)
        self.wait_for(lambda: time.monotonic() > end, "the motion is shown")

    def ask_planners(
        self, start: Sequence[float], seed: int, may_set: bool
    ) -> dict[str, tuple[PlanMotion.Response | None, PlanMotion.Response]]:
        """{planner: what it answers to COMPARED from start (7,) rad, first without shortening and further searches}

        may_set: may the node's parameters be changed? Else the first is None.
        """
        answers = {}
        for planner in PLANNERS:
            message = message_of(COMPARED, start, seed)
            message.planner, message.time_limit_s = planner, TIME_LIMIT_S
            rules, raw = settings_in(ArmParameters)[planner].rules, None
            if may_set:
                off = [name for name in ("shortcut_rounds", "optimise_s") if name in rules]
                for name in off:
                    self.set_parameter(f"{planner}.{name}", type(rules[name].default)(0))
                raw = self.ask(message)[0]
                for name in off:
                    self.set_parameter(f"{planner}.{name}", rules[name].default)
            answers[planner] = raw, self.ask(message)[0]
        return answers


def _judge(robot, scene, response):
    """(does an answer pass, text on the controller's rules, text on collisions). scene: None without coal"""
    if response.code != SUCCESS:
        return True, "", ""
    points = response.trajectory.points
    times, velocities = [seconds(p.time_from_start) for p in points], [p.velocities for p in points]
    broken = "; ".join(broken_rules(robot, positions_of(response.trajectory), times, velocities))
    if scene is None:
        return not broken, verdict(broken, "kept"), "coal is not installed"
    report = verify.check_path(positions_of(response.path), scene)
    hits = "" if report.free else f"hits {', '.join(report.contact.bodies)}"
    checked = verdict(hits, f"{report.configurations} poses, all free")
    return not broken and report.free, verdict(broken, "kept"), checked


def _report(console, answers, compared, options):
    """Print the tables, draw the longest motion; 0 when every motion passed its checks."""
    files = demo_robot()
    robot = load_urdf(files.urdf, srdf=files.srdf, package_dirs=[files.package_dir], group=files.group)
    world, scene = load_scene(SCENE, fixed_frames(robot)), None
    if find_spec("coal") and find_spec("pinocchio"):
        scene = verify.CoalScene(files.urdf, files.srdf, SCENE, [files.package_dir], joints=JOINTS)
    passed, table = [], table_of("Requests to arm_planner/plan_motion", COLUMNS.split(", "))
    for request, response, round_trip in answers:
        right, rules, collisions = _judge(robot, scene, response)
        expected = (response.code == SUCCESS) == request.possible
        passed.append(right and expected)
        if response.code == SUCCESS:
            duration = seconds(response.trajectory.points[-1].time_from_start)
            figures = ms(response.planning_time_s, 1), ms(round_trip), f"{response.path_length:.2f} rad"
            table.add_row(request.title, "[green]solved[/]", *figures, f"{duration:.1f} s", rules, collisions)
        else:
            told = f"[{'yellow' if expected else 'red'}]refused, code {response.code}[/]"
            table.add_row(request.title, told, "", ms(round_trip))
    comparison = table_of(f"Every planner on one of them: {COMPARED.title}", COMPARISON.split(", "))
    for planner, (raw, short) in compared.items():
        right, _, collisions = _judge(robot, scene, short)
        passed.append(right)
        told = "[green]solved[/]" if short.code == SUCCESS else f"[yellow]{short.status}[/]"
        comparison.add_row(planner, told, collisions, f"{short.samples:,}", *_figures(raw), *_figures(short))
    pairs = f"{len(robot.shapes)} convex shapes, {len(robot.self_collision_pairs)} self-collision pairs"
    facts = facts_of(
        robot=f"{robot.name}: {robot.dof} joints, {pairs}",
        scene=f"{SCENE.name}: {len(world.names)} obstacles",
        device=next((response.device for _, response, _ in answers if response.device), "unknown"),
    )
    console.print(facts, table, comparison, sep="\n")
    for request, response, _ in answers:
        if response.code != SUCCESS:
            console.print(f"[yellow]'{request.title}' was refused:[/] {escape(response.message)}", soft_wrap=True)
    if solved := [response for _, response, _ in answers if response.code == SUCCESS]:
        longest = max(solved, key=lambda response: response.path_length)
        picture = draw_path(robot, world, positions_of(longest.path), options.picture)
        console.print(f"\npicture of the longest motion: [bold]{escape(str(picture))}[/]", soft_wrap=True)
    return 0 if all(passed) else 1


def _figures(response):
    if response is None or response.code != SUCCESS:
        return "", ""
    return ms(response.planning_time_s, 1), f"{response.path_length:.2f} rad"


def positions_of(trajectory) -> np.ndarray:
    """(K, dof) of a JointTrajectory."""
    return np.array([point.positions for point in trajectory.points])
