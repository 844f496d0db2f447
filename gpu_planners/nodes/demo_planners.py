"""The demo's comparison: one motion planned by every planner of the node, as found and shortened."""

from dataclasses import dataclass

from rich.table import Table

from gpu_planners_msgs.srv import PlanMotion

from . import demo_scene
from .arm_parameters import ARM_PARAMETERS, PLANNERS

TIME_LIMIT_S = 4.0
KINDS = {"rrt_connect": "two trees", "prm": "two graphs", "rrt": "one tree", "rrt_star": "optimising tree"}


@dataclass(frozen=True)
class Answers:
    """What one planner answered: PlanMotion responses, raw with its shortening off (None where it cannot be)."""

    planner: str
    raw: PlanMotion.Response | None
    short: PlanMotion.Response


def ask_planners(client, request, start, seed, may_set):
    """[Answers] of every planner to a DemoRequest from start (7,) rad.

    may_set: may the node's parameters be changed, to have the raw path as well
    """
    return [Answers(planner, _raw(client, planner, request, start, seed) if may_set else None,
                    client.ask(_message(planner, request, start, seed))[0]) for planner in PLANNERS]  # fmt: skip


def table(request, answers, check):
    """(rich Table, did every path pass). check(response) -> (did it pass, text on the controller's rules, on collisions)."""
    shown = Table(title=f"Every planner on one of them: {request.title}", title_justify="left", title_style="bold")
    for column in ("planner", "answer", "checked by coal"):
        shown.add_column(column)
    for column in ("samples", "raw: time", "length", "shortened: time", "length"):
        shown.add_column(column, justify="right")
    all_passed = True
    for answer in answers:
        passed, _, collisions = check(answer.short)
        all_passed &= passed
        solved = answer.short.code == PlanMotion.Response.SUCCESS
        shown.add_row(
            f"{answer.planner} ({KINDS[answer.planner]})",
            "[green]solved[/]" if solved else f"[yellow]{answer.short.status}[/]",
            collisions,
            f"{answer.short.samples:,}",
            *_figures(answer.raw),
            *_figures(answer.short),
        )
    return shown, all_passed


def _figures(response):
    if response is None or response.code != PlanMotion.Response.SUCCESS:
        return "", ""
    return f"{1e3 * response.planning_time_s:.1f} ms", f"{response.path_length:.2f} rad"


def _raw(client, planner, request, start, seed):
    """The answer with shortening off, which is then put back."""
    name = f"{planner}.shortcut_rounds"
    client.set_parameter(name, 0)
    response = client.ask(_message(planner, request, start, seed))[0]
    client.set_parameter(name, ARM_PARAMETERS.setting_defaults()[name])
    return response


def _message(planner, request, start, seed):
    message = demo_scene.message_of(request, start, seed)
    message.planner, message.time_limit_s = planner, TIME_LIMIT_S
    return message
