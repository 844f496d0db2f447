"""The grid's half of the demo: paths of many agents by the real node, checked by Dijkstra and drawn."""

import array
import time
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from builtin_interfaces.msg import Time
from nav_msgs.msg import OccupancyGrid
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpu_planners_msgs.srv import PlanAgents

from ..errors import GpuPlannersError
from ..grid import GridMap
from ..grid.drawing import draw_map
from ..grid.maps.generated import caves_and_rooms, random_free_tiles
from ..nodes.common import map_codes
from ..nodes.common.map_messages import as_array, geometry_message
from ..nodes.common.map_scene import load_map
from ..nodes.common.qos import LATCHED
from ..nodes.grid.conversions import path_set_of
from .grid_checks import broken_paths, costs_to_goal
from .node import PATIENCE_S, NodeClient, NodeProcess

RESOLUTION = 0.05  # metres a tile of the generated map
GOALS = 16
FALLEN, FALLEN_SIDE = 40, 16  # obstacles that fall on the map, and their side in tiles
WALKED = 200  # paths of a request that are walked tile by tile


@dataclass(frozen=True)
class Case:
    """One question of the demo.

    starts: (N, 2) tiles; goals: (K, 2) tiles; goal_of: (N,) which goal each agent has; map_number: of the map asked on
    """

    title: str
    starts: np.ndarray
    goals: np.ndarray
    goal_of: np.ndarray
    map_number: int = 0

    def first_agents(self, count: int) -> "Case":
        """The case with fewer agents."""
        return replace(self, starts=self.starts[:count], goal_of=self.goal_of[:count])

    def message(self, grid: GridMap) -> PlanAgents.Request:
        """The request to the node."""
        message = PlanAgents.Request(start_points=_points(grid, self.starts))
        message.goal_points = _points(grid, self.goals if len(self.goals) == 1 else self.goals[self.goal_of])
        return message


def run(console: Console, options: Namespace) -> int:
    """Ask, check, print and draw; 0 when everything passed its checks."""
    maps = [load_map(options.map, 8) if options.map else generated_map(options.size, options.seed)]
    maps.append(with_fallen_obstacles(maps[0], options.seed))
    warm_up, *cases = demo_cases(maps[0], options.agents, options.seed)
    with NodeProcess("grid.node", {"device": options.device}, start=not options.no_node) as process:
        client = GridClient(process, "grid_planner", PlanAgents, "plan_agents")
        with console.status("loading and compiling; the first time on a machine this takes a minute or two"):
            client.wait_for_service()
            client.publish_map(maps[0], 0, warm_up)
        answers, change_s = [], 0.0
        for case in cases:
            if case.map_number != client.map_number:
                change_s = client.publish_map(maps[case.map_number], case.map_number, case.first_agents(1))
            answers.append(client.ask(case.message(maps[0])))
    with console.status("checking by Dijkstra"):
        return _report(console, maps, cases, answers, change_s, options)


class GridClient(NodeClient):
    """Publishes maps and asks for paths on them."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._maps, self.map_number = self.node.create_publisher(OccupancyGrid, "map", LATCHED), -1

    def publish_map(self, grid: GridMap, number: int, case: Case) -> float:
        """Publish a map and wait until the node answers a case on it -> seconds from the message to the answer.

        number: sent as the map's time
        """
        message = OccupancyGrid(info=geometry_message(grid), data=as_array(np.where(grid.blocked, 100, 0), np.int8))
        message.header.frame_id, message.header.stamp = "map", Time(sec=number + 1)
        published = time.monotonic()
        self._maps.publish(message)
        self.map_number = number

        def has_it():
            answer, _ = self.ask(case.message(grid))
            if answer.code not in (map_codes.NONE, map_codes.NO_MAP):
                raise_refusal(answer)
            return answer.header.stamp == message.header.stamp

        self.wait_until(has_it, f"the node has not taken the map for {PATIENCE_S:.0f} s")
        return time.monotonic() - published


def raise_refusal(answer: PlanAgents.Response) -> NoReturn:
    """Raise what the node has refused."""
    raise GpuPlannersError(f"the node answered with code {answer.code}: {answer.message}")


def generated_map(size: int, seed: int) -> GridMap:
    """Caves and rooms, size x size."""
    return GridMap(caves_and_rooms(size, size, seed).costs, resolution=RESOLUTION)


def with_fallen_obstacles(grid: GridMap, seed: int) -> GridMap:
    """The map with some more obstacles, which leave the goals of demo_cases free."""
    rng, costs = np.random.default_rng(seed), grid.costs.copy()
    kept = _goals(grid, seed)
    for row, col in rng.integers(0, np.maximum(np.array(grid.shape) - FALLEN_SIDE, 1), (FALLEN, 2)):
        if (np.abs(kept - (row + FALLEN_SIDE // 2, col + FALLEN_SIDE // 2)).max(axis=1) > FALLEN_SIDE).all():
            costs[row : row + FALLEN_SIDE, col : col + FALLEN_SIDE] = 0
    return GridMap(costs, grid.connectivity, grid.resolution, grid.origin)


def demo_cases(grid: GridMap, agents: int, seed: int) -> tuple[Case, ...]:
    """A small case that makes the node compile, then those that are shown."""
    starts, goals = random_free_tiles(grid, agents, seed), _goals(grid, seed)
    one, each = np.zeros(agents, int), np.arange(agents) % (GOALS - 1)
    return (
        Case("warm-up", starts, goals[-2:], each % 2),
        Case("all to one goal", starts, goals[:1], one),
        Case("again, changed map", starts, goals[:1], one, map_number=1),
        Case(f"to {GOALS - 1} goals on it", starts, goals[1:], each, map_number=1),
    )


def _goals(grid, seed):
    """(GOALS, 2) free tiles of the largest component, the first one nearest to the centre of the map."""
    tiles = random_free_tiles(grid, 4096, seed + 1)
    first = np.argmin(np.abs(tiles - np.array(grid.shape) / 2).max(axis=1))
    return np.concatenate([tiles[first][None], tiles[: GOALS - 1]])


def _points(grid, tiles):
    return array.array("d", grid.centres_of(tiles)[:, :2].ravel())


def _report(console, maps, cases, answers, change_s, options):
    table = Table(title="Requests to grid_planner/plan_agents", title_justify="left", title_style="bold")
    table.add_column("request")
    for column in ("agents", "with a path", "planning", "round trip", "answer", "longest path"):
        table.add_column(column, justify="right")
    for column in ("costs by Dijkstra", "paths walked"):
        table.add_column(column)
    all_passed, drawn = True, None
    for case, (answer, round_trip) in zip(cases, answers, strict=True):
        if answer.code != map_codes.NONE:
            raise_refusal(answer)
        grid, paths = maps[case.map_number], path_set_of(answer)
        passed, costs_text, walk_text, field = _check(grid, case, paths, options.seed)
        all_passed &= passed
        drawn = (grid, paths, field) if case.map_number == 0 else drawn
        table.add_row(
            case.title,
            f"{len(paths):,}",
            f"{paths.solved.sum():,}",
            f"{1e3 * answer.planning_time_s:.1f} ms",
            f"{1e3 * round_trip:.0f} ms",
            f"{paths.nbytes / 1e6:.1f} MB",
            f"{grid.resolution * paths.cost[paths.solved].max(initial=0):.1f} m",
            costs_text,
            walk_text,
        )
    grid = maps[0]
    facts = Table(show_header=False, box=None)
    name = Path(options.map).name if options.map else f"caves and rooms, seed {options.seed}"
    share = 100 * (1 - grid.blocked.mean())
    facts.add_row(
        "map", f"{name}: {grid.rows:,} x {grid.cols:,} tiles of {grid.resolution} m, {share:.0f} % of them free"
    )
    facts.add_row(
        "device", f"{answers[0][0].device}, algorithm {answers[0][0].algorithm}, {grid.connectivity} neighbours a tile"
    )
    facts.add_row(
        "change",
        f"{FALLEN} obstacles fell on the map; {1e3 * change_s:.0f} ms from its message to the first answer on it",
    )
    console.print(facts, table, sep="\n")
    for case, (answer, _) in [*zip(cases, answers, strict=True)][:2]:
        if any(answer.codes):
            console.print(f"[yellow]'{case.title}':[/] {escape(answer.message)}", soft_wrap=True)
    picture = _draw(*drawn, options)
    console.print(
        f"\npicture of the map, the costs to the goal and all paths to it: [bold]{escape(str(picture))}[/]",
        soft_wrap=True,
    )
    return 0 if all_passed else 1


def _draw(grid, paths, field, options):
    tiles, offsets = paths.paths()
    upside_down = options.map and options.map.endswith(".map")  # MovingAI's row 0 is the uppermost
    image = draw_map(grid, field, np.split(tiles, offsets[1:-1]), row_0_below=not upside_down)
    file = Path(options.grid_picture)
    file.parent.mkdir(parents=True, exist_ok=True)
    image.save(file)
    return file


def _check(grid, case, paths, seed):
    """(passed, text on costs, text on paths, (rows, cols) costs to the first goal by Dijkstra)

    Of several goals, one is compared.
    """
    field = costs_to_goal(grid, case.goals[0])
    expected = field[tuple(case.starts.T)][case.goal_of == 0]
    compared = paths.cost[case.goal_of == 0]
    wrong = int((~np.isclose(compared, expected, rtol=1e-9)).sum())  # both are inf where there is no path
    solved = np.flatnonzero(paths.solved)
    walked = np.random.default_rng(seed).choice(solved, min(WALKED, len(solved)), replace=False)
    broken = broken_paths(grid, paths, walked, case.starts, case.goals[case.goal_of])
    costs_text = f"[red]{wrong:,} of {len(compared):,} differ[/]" if wrong else f"[green]{len(compared):,} equal[/]"
    walk_text = f"[red]{broken} of {len(walked)} are wrong[/]" if broken else f"[green]{len(walked)}, all free[/]"
    return not wrong and not broken, costs_text, walk_text, field
