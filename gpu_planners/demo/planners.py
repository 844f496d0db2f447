"""The demo's comparison: one motion planned by every planner of the node, as found and shortened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.table import Table

from gpu_planners_msgs.srv import PlanMotion

from ..nodes.arm.parameters import PLANNERS, ArmParameters
from ..nodes.common.parameters import settings_in
from . import scene as demo_scene
from .node import NodeClient
from .scene import DemoRequest

TIME_LIMIT_S = 4.0
# response -> (did it pass, text on the controller's rules, text on collisions)
Check = Callable[[PlanMotion.Response], tuple[bool, str, str]]


@dataclass(frozen=True)
class Answers:
    """What one planner answered; raw: without shortening, None where that cannot be set."""

    planner: str
    raw: PlanMotion.Response | None
    short: PlanMotion.Response


def ask_planners(
    client: NodeClient, request: DemoRequest, start: Sequence[float], seed: int, may_set: bool
) -> list[Answers]:
    """What every planner answers to a request from start (7,) rad.

    may_set: may the node's parameters be changed, to have the raw path as well
    """
    answers = []
    for planner in PLANNERS:
        raw = _raw(client, planner, request, start, seed) if may_set else None
        answers.append(Answers(planner, raw, client.ask(_message(planner, request, start, seed))[0]))
    return answers


def table(request: DemoRequest, answers: list[Answers], check: Check) -> tuple[Table, bool]:
    """(table, did every path pass)."""
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
            answer.planner,
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
    """The answer without shortening and without further searches, which are then put back."""
    rules = settings_in(ArmParameters)[planner].rules
    off = {name: type(rules[name].default)(0) for name in ("shortcut_rounds", "optimise_s") if name in rules}
    for name, value in off.items():
        client.set_parameter(f"{planner}.{name}", value)
    response = client.ask(_message(planner, request, start, seed))[0]
    for name in off:
        client.set_parameter(f"{planner}.{name}", rules[name].default)
    return response


def _message(planner, request, start, seed):
    message = demo_scene.message_of(request, start, seed)
    message.planner, message.time_limit_s = planner, TIME_LIMIT_S
    return message
