"""The arm's part of the demo: motions of a real robot by the real node, checked by pinocchio and coal, and drawn."""

import math
from argparse import Namespace
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from rich.console import Console
from rich.markup import escape
from std_msgs.msg import Header

from gpu_planners_msgs.srv import PlanMotion

from .. import verify
from ..arm import load_urdf
from ..arm.collision.scene_file import fixed_frames, load_scene
from ..arm.trajectory import Trajectory
from ..arm.view.drawing import draw_path
from ..arm.view.saved_page import motion_page
from ..errors import GpuPlannersError
from ..nodes.arm.conversions import joint_state, path_of, trajectory_of
from ..nodes.arm.parameters import PLANNERS, ArmParameters
from ..nodes.common.parameters import settings_in
from ..nodes.common.ros import seconds
from ..share import example_robots_share, share_folder
from .node import LOADING, NodeClient, facts_of, ms, table_of, verdict
from .page import About, Report

PANDA = Path("example-robot-data/robots/panda_description")
SCENE = share_folder() / "config/scenes/panda_table_shelf.yaml"
ABOUT = About(
    "Motions of a robot arm",
    "A Panda is asked to reach into a shelf, from one compartment into the other, and into the shelf's top, which is "
    "impossible. coal checks what the node answers. Then every planner answers one of the requests.",
    ".venv/bin/arm_planner --ros-args -p robot_description_file:=robot.urdf",
)
TIP = "panda_hand_tcp"
JOINTS = tuple(f"panda_joint{number}" for number in range(1, 8))
READY = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)
FORWARD = Quaternion(x=0.0, y=math.sqrt(0.5), z=0.0, w=math.sqrt(0.5))  # the gripper points along x, into the shelf
REST_S = 0.5  # between the motions on the page
MOMENT_S = 2.0  # between two motions that are shown
TIME_LIMIT_S = 4.0  # of each planner, when all are compared
SUCCESS = PlanMotion.Response.SUCCESS
COLUMNS = "request, answer, >planning, >round trip, >path, >motion, controller's rules, checked by coal"
COMPARISON = "planner, answer, checked by coal, >samples, >raw: time, >length, >shortened: time, >length"


class Question(NamedTuple):
    """gripper_at: its position x, y, z in the root frame, metres; without one the arm returns to READY."""

    title: str
    gripper_at: tuple[float, ...] = ()
    possible: bool = True

    def message(self, start: Sequence[float], seed: int) -> PlanMotion.Request:
        """The request to the node, from start (7,) rad."""
        message = PlanMotion.Request(start=joint_state(JOINTS, start), seed=seed)
        if self.gripper_at:
            pose = Pose(position=Point(**dict(zip("xyz", self.gripper_at))), orientation=FORWARD)
            message.pose_goals = [PoseStamped(header=Header(frame_id="panda_link0"), pose=pose)]
        else:
            message.joint_goals = [joint_state(JOINTS, READY)]
        return message


QUESTIONS = (
    Question("reach into the upper compartment", (0.66, 0.00, 0.60)),
    Question("from there into the lower one", (0.66, 0.10, 0.20)),
    Question("back to the ready position"),
    Question("into the top of the shelf (impossible)", (0.66, 0.00, 0.77), possible=False),
)
COMPARED = QUESTIONS[1]  # what every planner is asked, from where QUESTIONS[0] ends


def demo_robot() -> dict[str, str]:
    """The Panda's files, where pip or a ROS distribution has put example-robot-data, by the launch files' arguments."""
    try:
        share = example_robots_share()
    except FileNotFoundError as error:
        raise GpuPlannersError(f"the demo needs the Panda of example-robot-data: {error}") from None
    urdf, srdf = (str(share / PANDA / f"{kind}/panda.{kind}") for kind in ("urdf", "srdf"))
    return {"urdf": urdf, "srdf": srdf, "package_dir": str(share), "group": "arm"}


def run(console: Console, options: Namespace) -> Report:
    """Ask, check and draw."""
    files = demo_robot()
    parameters = {
        "robot_description_file": files["urdf"],
        "srdf_file": files["srdf"],
        "package_dirs": [files["package_dir"]],
        "group": files["group"],
        "tip_link": TIP,
        "scene_file": SCENE,
    }
    with NodeClient("arm", PlanMotion, "plan_motion", parameters, options) as client:
        with console.status(LOADING):
            judge = Judge(files)  # while the node does the same
            client.wait_for_service()
            answer, _ = client.ask(QUESTIONS[0].message(READY, 0))  # answered once the node has loaded and compiled
            if answer.code == PlanMotion.Response.COLLISION_CHECKING_UNAVAILABLE:
                raise GpuPlannersError(f"the node answered: {answer.message}")
        while options.repeat:
            for _, response, _ in _ask_all(client, options.seed):
                _pause(client, response)
            options.seed += 1
        answers = list(_ask_all(client, options.seed))
        files = _draw(console, judge, answers, Path(options.out))
        with console.status("asking every planner; the first time on a machine each is compiled"):
            path = answers[0][1].path
            compared = _ask_planners(client, path_of(path)[-1] if path.points else READY, options)
    with console.status("checking by coal"):
        passed, shown = _report(judge, answers, compared)
    return Report(passed, shown, files)


class Judge:
    """The robot and its scene, as they are planned with, and as coal knows them. files: of demo_robot"""

    def __init__(self, files: dict[str, str]) -> None:
        urdf, srdf, package_dirs = files["urdf"], files["srdf"], [files["package_dir"]]
        self.robot = load_urdf(urdf, srdf=srdf, package_dirs=package_dirs, group=files["group"])
        self.world, self._scene = load_scene(SCENE, fixed_frames(self.robot)), None
        if find_spec("coal") and find_spec("pinocchio"):
            self._scene = verify.CoalScene(urdf, srdf, SCENE, package_dirs, joints=JOINTS)

    def check(self, response: PlanMotion.Response) -> tuple[bool, str, str]:
        """(does an answer pass, text on the controller's rules, text on collisions)"""
        if response.code != SUCCESS:
            return True, "", ""
        motion = trajectory_of(response.trajectory)
        broken = "; ".join(verify.broken_rules(self.robot, motion.positions, motion.times, motion.velocities))
        kept = verdict(broken, "kept")
        if self._scene is None:
            return not broken, kept, "coal is not installed"
        report = verify.check_path(path_of(response.path), self._scene)
        hits = "" if report.free else f"hits {', '.join(report.contact.bodies)}"
        return not broken and report.free, kept, verdict(hits, f"{report.configurations} poses, all free")


def _ask_all(client, seed) -> Iterator[tuple[Question, PlanMotion.Response, float]]:
    """Yields (question, response, round trip in seconds); each motion starts where the one before ended."""
    start: Sequence[float] = READY
    for question in QUESTIONS:
        response, round_trip = client.ask(question.message(start, seed))
        yield question, response, round_trip
        if response.path.points:
            start = response.path.points[-1].positions


def _pause(client, response):
    """Take messages while a viewer looks at an answer: as long as its motion takes, and a moment more."""
    points = response.trajectory.points
    client.pause(MOMENT_S + (seconds(points[-1].time_from_start) if points else 0.0))


def _ask_planners(client, start, options):
    """{planner: its responses to COMPARED from start (7,) rad, first without shortening and further searches}

    The first is None where the node is not ours, whose parameters stay as they are.
    """
    answers = {}
    for planner in PLANNERS:
        message = COMPARED.message(start, options.seed)
        message.planner, message.time_limit_s = planner, TIME_LIMIT_S
        rules, raw = settings_in(ArmParameters)[planner].rules, None
        if not options.no_node:
            defaults = {name: rules[name].default for name in ("shortcut_rounds", "optimise_s") if name in rules}
            for name, value in defaults.items():
                client.set_parameter(f"{planner}.{name}", type(value)(0))
            raw, _ = client.ask(message)
            for name, value in defaults.items():
                client.set_parameter(f"{planner}.{name}", value)
        answers[planner] = raw, client.ask(message)[0]
    return answers


def _draw(console, judge, answers, folder):
    """A picture of the longest motion, and a page that plays all of them, one after the other."""
    solved = [response for _, response, _ in answers if response.code == SUCCESS]
    if not solved:
        return []
    path = max(solved, key=lambda response: response.path_length).path
    picture = draw_path(judge.robot, judge.world, path_of(path), folder / "demo.png")
    console.print(f"picture of the longest motion: [bold]{escape(str(picture))}[/]\n", soft_wrap=True)
    page = folder / "demo_arm.html"
    motions = joined([trajectory_of(response.trajectory) for response in solved])
    page.write_text(motion_page(judge.robot, judge.world, TIP, motions), encoding="utf-8")
    return [(page, "the motions, one after the other: turn the view with the mouse"), (picture, "the longest motion")]


def _report(judge, answers, compared):
    """(did every motion pass its checks, tables and texts)"""
    passed, refused, robot = [], [], judge.robot
    table = table_of("Requests to arm_planner/plan_motion", COLUMNS)
    for question, response, round_trip in answers:
        passed.append((response.code == SUCCESS) == question.possible)
        if response.code == SUCCESS:
            right, *checks = judge.check(response)
            passed.append(right)
            planning, length = _figures(response)
            motion = f"{seconds(response.trajectory.points[-1].time_from_start):.1f} s"
            table.add_row(question.title, "[green]solved[/]", planning, ms(round_trip), length, motion, *checks)
        else:
            refused.append(f"[yellow]'{question.title}' was refused:[/] {escape(response.message)}")
            told = f"[{'red' if question.possible else 'yellow'}]refused, code {response.code}[/]"
            table.add_row(question.title, told, "", ms(round_trip))
    comparison = table_of(f"Every planner on one of them: {COMPARED.title}", COMPARISON)
    for planner, (raw, short) in compared.items():
        right, _, collisions = judge.check(short)
        passed.append(right)
        told = "[green]solved[/]" if short.code == SUCCESS else f"[yellow]{short.status}[/]"
        comparison.add_row(planner, told, collisions, f"{short.samples:,}", *_figures(raw), *_figures(short))
    pairs = f"{len(robot.shapes)} convex shapes, {len(robot.self_collision_pairs)} self-collision pairs"
    facts = facts_of(
        robot=f"{robot.name}: {robot.dof} joints, {pairs}",
        scene=f"{SCENE.name}: {len(judge.world.names)} obstacles",
        device=next((response.device for _, response, _ in answers if response.device), "unknown"),
    )
    return all(passed), [facts, table, comparison, *refused]


def joined(motions: list[Trajectory]) -> Trajectory:
    """One motion after the other, with a rest between."""
    begins = np.cumsum([0.0, *(motion.duration + REST_S for motion in motions[:-1])])
    times = [begin + motion.times for begin, motion in zip(begins, motions, strict=True)]
    rows = ([getattr(motion, name) for motion in motions] for name in ("positions", "velocities", "accelerations"))
    return Trajectory(*map(np.concatenate, (times, *rows)))


def _figures(response):
    if response is None or response.code != SUCCESS:
        return "", ""
    return ms(response.planning_time_s, 1), f"{response.path_length:.2f} rad"
