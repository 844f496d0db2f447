"""The arm's half of the demo: motions of a real robot by the real node, checked by coal and drawn."""

from argparse import Namespace
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpu_planners_msgs.srv import PlanMotion

from ..arm import load_urdf
from ..arm.collision.scene_file import fixed_frames, load_scene
from ..arm.view.drawing import draw_path
from ..errors import GpuPlannersError
from ..nodes.arm.conversions import seconds
from . import scene as demo_scene
from .checks import CoalCheck, broken_rules
from .node import NodeClient, NodeProcess
from .planners import ask_planners
from .planners import table as table_of_planners

MOMENT_S = 2.0  # between two motions that are shown


def run(console: Console, options: Namespace) -> int:
    """Ask, check, print and draw; 0 when every motion passed its checks."""
    files, scene = demo_scene.demo_robot(), demo_scene.scene_file()
    parameters = {
        "robot_description_file": files.urdf,
        "srdf_file": files.srdf,
        "package_dirs": f"['{files.package_dir}']",
        "group": files.group,
        "tip_link": files.tip_link,
        "scene_file": scene,
        "device": options.device,
    }
    with NodeProcess("arm.node", parameters, start=not options.no_node) as process:
        client = ArmClient(process, "arm_planner", PlanMotion, "plan_motion")
        with console.status("loading and compiling; the first time on a machine this takes a minute or two"):
            client.wait_until_ready()
        while options.repeat:
            client.ask_all(options.seed, then=lambda response: client.pause(shown_s(response)))
            options.seed += 1
        answers = client.ask_all(options.seed)
        with console.status("asking every planner; the first time on a machine each is compiled"):
            compared, start = demo_scene.COMPARED, answers[0][1].path.points
            start = start[-1].positions if start else demo_scene.READY
            planners = ask_planners(client, compared, start, options.seed, may_set=not options.no_node)
    return _report(console, files, scene, answers, planners, options)


class ArmClient(NodeClient):
    """Asks for the motions of the demo."""

    def wait_until_ready(self) -> None:
        """Return when the node has answered a first request, which it does once it has loaded and compiled."""
        self.wait_for_service()
        answer, _ = self.ask(demo_scene.message_of(demo_scene.REQUESTS[0], demo_scene.READY, 0))
        if answer.code == PlanMotion.Response.COLLISION_CHECKING_UNAVAILABLE:
            raise GpuPlannersError(f"the node answered: {answer.message}")

    def ask_all(
        self, seed: int, then: Callable[[PlanMotion.Response], None] = lambda response: None
    ) -> list[tuple[demo_scene.DemoRequest, PlanMotion.Response, float]]:
        """[(request, response, round trip in seconds)]; each motion starts where the one before ended.

        then: called with each response before the next request
        """
        answers, start = [], demo_scene.READY
        for request in demo_scene.REQUESTS:
            response, round_trip = self.ask(demo_scene.message_of(request, start, seed))
            answers.append((request, response, round_trip))
            if response.path.points:
                start = response.path.points[-1].positions
            then(response)
        return answers


def shown_s(response: PlanMotion.Response) -> float:
    """Seconds that a viewer takes to look at an answer: the motion's own, and a moment more."""
    points = response.trajectory.points
    return (seconds(points[-1].time_from_start) if points else 0.0) + MOMENT_S


def _report(console, files, scene, answers, planners, options):
    """Print the tables, draw the longest motion; 0 when every motion passed its checks."""
    robot = load_urdf(files.urdf, srdf=files.srdf, package_dirs=[files.package_dir], group=files.group)
    world = load_scene(scene, fixed_frames(robot))
    try:
        coal_check = CoalCheck(robot, world)
    except ImportError:
        coal_check = None
    table = Table(title="Requests to arm_planner/plan_motion", title_justify="left", title_style="bold")
    for column, justify in (
        ("request", "left"),
        ("answer", "left"),
        ("planning", "right"),
        ("round trip", "right"),
        ("path", "right"),
        ("motion", "right"),
        ("controller's rules", "left"),
        ("checked by coal", "left"),
    ):
        table.add_column(column, justify=justify)
    comparison, all_passed = table_of_planners(demo_scene.COMPARED, planners, lambda r: _checks(robot, coal_check, r))
    longest = None
    for request, response, round_trip in answers:
        passed, rules, collisions = _checks(robot, coal_check, response)
        expected = (response.code == PlanMotion.Response.SUCCESS) == request.possible
        all_passed &= passed and expected
        if response.code == PlanMotion.Response.SUCCESS:
            duration = seconds(response.trajectory.points[-1].time_from_start)
            table.add_row(
                request.title,
                "[green]solved[/]",
                f"{1e3 * response.planning_time_s:.1f} ms",
                f"{1e3 * round_trip:.0f} ms",
                f"{response.path_length:.2f} rad",
                f"{duration:.1f} s",
                rules,
                collisions,
            )
            if longest is None or response.path_length > longest.path_length:
                longest = response
        else:
            table.add_row(
                request.title,
                f"[{'yellow' if expected else 'red'}]refused, code {response.code}[/]",
                "",
                f"{1e3 * round_trip:.0f} ms",
                "",
                "",
                "",
                "",
            )
    facts = Table(show_header=False, box=None)
    for row in (
        (
            "robot",
            f"{robot.name}: {robot.dof} joints, {len(robot.shapes)} convex shapes, "
            f"{len(robot.self_collision_pairs)} self-collision pairs",
        ),
        ("scene", f"{scene.name}: {len(world.names)} obstacles"),
        ("device", next((response.device for _, response, _ in answers if response.device), "unknown")),
    ):
        facts.add_row(*row)
    console.print(facts, table, comparison, sep="\n")
    for request, response, _ in answers:
        if response.code != PlanMotion.Response.SUCCESS:
            console.print(f"[yellow]'{request.title}' was refused:[/] {escape(response.message)}", soft_wrap=True)
    if longest is not None:
        picture = draw_path(robot, world, _path(longest), options.picture)
        console.print(f"\npicture of the longest motion: [bold]{escape(str(picture))}[/]", soft_wrap=True)
    return 0 if all_passed else 1


def _checks(robot, coal_check, response):
    """(passed, text on the controller's rules, text on collisions)."""
    if response.code != PlanMotion.Response.SUCCESS:
        return True, "", ""
    broken = broken_rules(robot, response.trajectory)
    rules = f"[red]{'; '.join(broken)}[/]" if broken else "[green]kept[/]"
    if coal_check is None:
        return not broken, rules, "coal is not installed"
    checked, colliding = coal_check.collisions(_path(response))
    text = f"[red]{colliding} of {checked} poses collide[/]" if colliding else f"[green]{checked} poses, all free[/]"
    return not broken and not colliding, rules, text


def _path(response):
    return np.array([point.positions for point in response.path.points])
