"""The grid's part of the demo: paths of many agents by the real node, checked by Dijkstra and drawn."""

import array
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from nav_msgs.msg import OccupancyGrid
from rich.console import Console
from rich.markup import escape

from gpu_planners_msgs.srv import PlanAgents

from ..errors import GpuPlannersError
from ..grid import GridMap
from ..grid.drawing import draw_map
from ..grid.maps.generated import caves_and_rooms, random_free_tiles
from ..nodes.common import map_codes
from ..nodes.common.map_scene import load_map
from ..nodes.common.ros import LATCHED
from ..nodes.grid.conversions import path_set_of
from ..verify import broken_paths, costs_to_goal
from .node import LOADING, NodeClient, facts_of, map_message, ms, table_of, verdict

RESOLUTION = 0.05  # metres a tile of the generated map
GOALS = 16
FALLEN, FALLEN_SIDE = 40, 16  # obstacles that fall on the map, and their side in tiles
WALKED = 200  # paths of a request that are walked tile by tile
COLUMNS = (
    "request, >agents, >with a path, >planning, >round trip, >answer, >longest path, costs by Dijkstra, paths walked"
)


class Case(NamedTuple):
    """One question of the demo.

    starts: (N, 2) tiles; goals: (K, 2) tiles; goal_of: (N,) which goal each agent has; number: of the map asked on
    """

    title: str
    starts: np.ndarray
    goals: np.ndarray
    goal_of: np.ndarray
    number: int = 0

    def message(self, grid: GridMap, agents: int | None = None) -> PlanAgents.Request:
        """The request to the node, for the first agents."""
        goals = self.goals if len(self.goals) == 1 else self.goals[self.goal_of][:agents]
        starts, goals = (array.array("d", grid.centres_of(at)[:, :2].ravel()) for at in (self.starts[:agents], goals))
        return PlanAgents.Request(start_points=starts, goal_points=goals)


def run(console: Console, options: Namespace) -> int:
    """Ask, check, print and draw; 0 when everything passed its checks."""
    size, seed = options.size, options.seed
    grid = load_map(options.map, 8) if options.map else GridMap(caves_and_rooms(size, size, seed).costs, 8, RESOLUTION)
    maps, (warm_up, *cases) = [grid, with_fallen_obstacles(grid, seed)], demo_cases(grid, options.agents, seed)
    service, parameters = "grid_planner/plan_agents", {"device": options.device}
    with GridClient("grid.node", PlanAgents, service, parameters, not options.no_node) as client:
        with console.status(LOADING):
            client.wait_for_service()
            client.publish_map(grid, 0, warm_up.message(grid))
        answers = [client.ask(cases[0].message(grid))]
        change_s = client.publish_map(maps[1], 1, cases[1].message(grid, agents=1))
        answers += [client.ask(case.message(grid)) for case in cases[1:]]
    with console.status("checking by Dijkstra"):
        return _report(console, maps, cases, answers, change_s, options)


class GridClient(NodeClient):
    """Publishes maps and asks for paths on them."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._maps = self.node.create_publisher(OccupancyGrid, "map", LATCHED)

    def publish_map(self, grid: GridMap, number: int, request: PlanAgents.Request) -> float:
        """Publish a map and wait until the node answers a request on it -> seconds from the message to the answer."""
        message, published = map_message(grid, number + 1), time.monotonic()
        self._maps.publish(message)

        def has_it():
            answer, _ = self.ask(request)
            if answer.code != map_codes.NO_MAP:
                _refuse(answer)
            return answer.header.stamp == message.header.stamp

        self.wait_for(has_it, "the node has not taken the map")
        return time.monotonic() - published


def _refuse(answer):
    if answer.code != map_codes.NONE:
        raise GpuPlannersError(f"the node answered with code {answer.code}: {answer.message}")


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
        Case("again, changed map", starts, goals[:1], one, number=1),
        Case(f"to {GOALS - 1} goals on it", starts, goals[1:], each, number=1),
    )


def _goals(grid, seed):
    """(GOALS, 2) free tiles of the largest component, the first one nearest to the centre of the map."""
    tiles = random_free_tiles(grid, 4096, seed + 1)
    first = np.argmin(np.abs(tiles - np.array(grid.shape) / 2).max(axis=1))
    return np.concatenate([tiles[first][None], tiles[: GOALS - 1]])


def _report(console, maps, cases, answers, change_s, options):
    table, passed, shown = table_of("Requests to grid_planner/plan_agents", COLUMNS.split(", ")), [], []
    for case, (answer, round_trip) in zip(cases, answers, strict=True):
        _refuse(answer)
        grid, paths = maps[case.number], path_set_of(answer)
        wrong, costs_text, walk_text, field = _check(grid, case, paths, options.seed)
        passed.append(not wrong)
        shown.append((paths, field))
        longest = f"{grid.resolution * paths.cost[paths.solved].max(initial=0):.1f} m"
        figures = ms(answer.planning_time_s, 1), ms(round_trip), f"{paths.nbytes / 1e6:.1f} MB", longest
        table.add_row(case.title, f"{len(paths):,}", f"{paths.solved.sum():,}", *figures, costs_text, walk_text)
    grid, first = maps[0], answers[0][0]
    name = Path(options.map).name if options.map else f"caves and rooms, seed {options.seed}"
    free = f"{100 * (1 - grid.blocked.mean()):.0f} % of them free"
    facts = facts_of(
        map=f"{name}: {grid.rows:,} x {grid.cols:,} tiles of {grid.resolution} m, {free}",
        device=f"{first.device}, algorithm {first.algorithm}, {grid.connectivity} neighbours a tile",
        change=f"{FALLEN} obstacles fell on the map; {ms(change_s)} from its message to the first answer on it",
    )
    console.print(facts, table, sep="\n")
    for case, (answer, _) in [*zip(cases, answers, strict=True)][:2]:
        if any(answer.codes):
            console.print(f"[yellow]'{case.title}':[/] {escape(answer.message)}", soft_wrap=True)
    paths, field = shown[0]
    tiles, offsets = paths.paths()
    upside_down = options.map and options.map.endswith(".map")  # MovingAI's row 0 is the uppermost
    file = Path(options.grid_picture)
    file.parent.mkdir(parents=True, exist_ok=True)
    draw_map(grid, field, np.split(tiles, offsets[1:-1]), row_0_below=not upside_down).save(file)
    told = f"picture of the map, the costs to the goal and all paths to it: [bold]{escape(str(file))}[/]"
    console.print(f"\n{told}", soft_wrap=True)
    return 0 if all(passed) else 1


def _check(grid, case, paths, seed):
    """(is anything wrong, text on costs, text on paths, (rows, cols) costs to the first goal, which are compared)"""
    field = costs_to_goal(grid.costs, grid.connectivity, case.goals[0])
    compared = paths.cost[case.goal_of == 0]
    expected = field[tuple(case.starts.T)][case.goal_of == 0]
    differ = int((~np.isclose(compared, expected, rtol=1e-9)).sum())  # both are inf where there is no path
    solved = np.flatnonzero(paths.solved)
    walked = np.random.default_rng(seed).choice(solved, min(WALKED, len(solved)), replace=False)
    broken = len(broken_paths(grid, paths, case.starts, case.goals[case.goal_of], walked))
    costs_text = verdict(f"{differ:,} of {len(compared):,} differ" * bool(differ), f"{len(compared):,} equal")
    walk_text = verdict(f"{broken} of {len(walked)} are wrong" * bool(broken), f"{len(walked)}, all free")
    return differ or broken, costs_text, walk_text, field
