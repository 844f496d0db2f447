"""The grid's part of the demo: paths of many agents by the real node, checked by Dijkstra and drawn."""

import array
from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape

from gpu_planners_msgs.srv import PlanAgents

from ..errors import GpuPlannersError
from ..grid import GridMap
from ..grid.drawing import draw_map
from ..grid.maps.generated import caves_and_rooms, random_free_tiles
from ..nodes.common.map_scene import load_map
from ..nodes.grid.conversions import path_set_of
from ..verify import broken_paths, costs_to_goal
from .ahead import CONNECTIVITY
from .node import LOADING, MapClient, facts_of, ms, table_of, verdict
from .page import About, Report

ABOUT = About(
    "Paths of many agents",
    "All agents go to one goal on a map of caves and rooms; then obstacles fall on the map; then they go to 15 goals. "
    "Dijkstra's algorithm checks the costs, and some of the paths are walked tile by tile.",
    'make demo ARGS="--only grid --agents 100000 --map map.yaml"',
)
RESOLUTION = 0.05  # metres a tile of the generated map
GOALS = 16
FALLEN = 40  # obstacles that fall on the map
FALLEN_SIDE = 16  # side of one in tiles
WALKED = 200  # paths of a request that are walked tile by tile
COLUMNS = (
    "request, >agents, >with a path, >planning, >round trip, >answer, >longest path, costs by Dijkstra, paths walked"
)


class Case(NamedTuple):
    """One question of the demo.

    grid: the map that it is asked on; starts: (N, 2) tiles; goals: (K, 2) tiles; goal_of: (N,) each agent's goal
    """

    title: str
    grid: GridMap
    starts: np.ndarray
    goals: np.ndarray
    goal_of: np.ndarray

    def message(self, agents: int | None = None) -> PlanAgents.Request:
        """The request to the node, for the first agents."""
        goals = self.goals if len(self.goals) == 1 else self.goals[self.goal_of][:agents]
        places = (self.grid.centres_of(tiles)[:, :2].ravel() for tiles in (self.starts[:agents], goals))
        starts, goals = (array.array("d", place) for place in places)
        return PlanAgents.Request(start_points=starts, goal_points=goals)


def run(console: Console, options: Namespace) -> Report:
    """Ask, check and draw."""
    size, seed = options.size, options.seed
    if options.map:
        grid = load_map(options.map, CONNECTIVITY)
    else:
        grid = GridMap(caves_and_rooms(size, size, seed).costs, CONNECTIVITY, RESOLUTION)
    warm_up, *cases = _cases(grid, options.agents, seed)
    with MapClient("grid", PlanAgents, "plan_agents", {}, options) as client:
        with console.status(LOADING):
            client.wait_for_service()
            _publish(client, warm_up.grid, warm_up.message())
        answers = [_ask(client, cases[0].message())]
        change_s = _publish(client, cases[1].grid, cases[1].message(agents=1))
        answers += [_ask(client, case.message()) for case in cases[1:]]
    with console.status("checking by Dijkstra"):
        return _report(cases, answers, change_s, options)


def _publish(client, grid, request):
    """Publish a map and wait until the node answers a request on it -> seconds from the message to the answer."""
    no_map = PlanAgents.Response.NO_MAP  # until the first one has arrived
    return client.publish_map(grid, lambda stamp: _ask(client, request, no_map)[0].header.stamp == stamp)


def _ask(client, request, *allowed):
    """(response, round trip in seconds). allowed: codes besides NONE"""
    answer, round_trip = client.ask(request)
    if answer.code not in (answer.NONE, *allowed):
        raise GpuPlannersError(f"the node answered with code {answer.code}: {answer.message}")
    return answer, round_trip


def _cases(grid, agents, seed):
    """A small case that makes the node compile, then those that are shown."""
    starts, tiles = random_free_tiles(grid, agents, seed), random_free_tiles(grid, 4096, seed + 1)
    central = np.argmin(np.abs(tiles - np.array(grid.shape) / 2).max(axis=1))
    goals = np.concatenate([tiles[central][None], tiles[: GOALS - 1]])
    changed = _with_fallen_obstacles(grid, goals, seed)
    one, each = np.zeros(agents, int), np.arange(agents) % (GOALS - 1)
    return (
        Case("warm-up", grid, starts, goals[-2:], each % 2),
        Case("all to one goal", grid, starts, goals[:1], one),
        Case("again, changed map", changed, starts, goals[:1], one),
        Case(f"to {GOALS - 1} goals on it", changed, starts, goals[1:], each),
    )


def _with_fallen_obstacles(grid, goals, seed):
    """The map with some more obstacles, which leave the goals free."""
    costs, half = grid.costs.copy(), FALLEN_SIDE // 2
    corners = np.random.default_rng(seed).integers(0, np.maximum(np.array(grid.shape) - FALLEN_SIDE, 1), (FALLEN, 2))
    for row, col in corners:
        if (np.abs(goals - (row + half, col + half)).max(axis=1) > FALLEN_SIDE).all():
            costs[row : row + FALLEN_SIDE, col : col + FALLEN_SIDE] = 0
    return GridMap(costs, grid.connectivity, grid.resolution, grid.origin)


def _report(cases, answers, change_s, options):
    table, passed, fields = table_of("Requests to grid_planner/plan_agents", COLUMNS), [], []
    for case, (answer, round_trip) in zip(cases, answers, strict=True):
        paths = path_set_of(answer)
        right, costs_text, walk_text, field = _check(case, paths, options.seed)
        passed.append(right)
        fields.append(field)
        longest = f"{case.grid.resolution * paths.cost[paths.solved].max(initial=0):.1f} m"
        figures = ms(answer.planning_time_s, 1), ms(round_trip), f"{paths.nbytes / 1e6:.1f} MB", longest
        table.add_row(case.title, f"{len(paths):,}", f"{paths.solved.sum():,}", *figures, costs_text, walk_text)
    grid, first = cases[0].grid, answers[0][0]
    name = Path(options.map).name if options.map else f"caves and rooms, seed {options.seed}"
    free = f"{100 * (1 - grid.blocked.mean()):.0f} % of them free"
    facts = facts_of(
        map=f"{name}: {grid.rows:,} x {grid.cols:,} tiles of {grid.resolution} m, {free}",
        device=f"{first.device}, algorithm {first.algorithm}, {grid.connectivity} neighbours a tile",
        change=f"{FALLEN} obstacles fell on the map; {ms(change_s)} from its message to the first answer on it",
    )
    told = [(case.title, answer) for case, (answer, _) in zip(cases, answers, strict=True)][:2]
    texts = [f"[yellow]'{title}':[/] {escape(answer.message)}" for title, answer in told if any(answer.codes)]
    tiles, offsets = path_set_of(first).paths()
    upside_down = options.map and options.map.endswith(".map")  # MovingAI's row 0 is the uppermost
    picture = Path(options.out) / "demo_grid.png"
    draw_map(grid, fields[0], np.split(tiles, offsets[1:-1]), row_0_below=not upside_down).save(picture)
    return Report(all(passed), [facts, table, *texts], [(picture, "the map, the costs to the goal, all paths to it")])


def _check(case, paths, seed):
    """(does an answer pass, text on costs, text on paths, (rows, cols) costs to the first goal, which are compared)"""
    field = costs_to_goal(case.grid.costs, case.grid.connectivity, case.goals[0])
    compared = paths.cost[case.goal_of == 0]
    expected = field[tuple(case.starts.T)][case.goal_of == 0]
    differ = int((~np.isclose(compared, expected, rtol=1e-9)).sum())  # both are inf where there is no path
    solved = np.flatnonzero(paths.solved)
    walked = np.random.default_rng(seed).choice(solved, min(WALKED, len(solved)), replace=False)
    broken = len(broken_paths(case.grid, paths, case.starts, case.goals[case.goal_of], walked))
    costs_text = verdict(f"{differ:,} of {len(compared):,} differ" * bool(differ), f"{len(compared):,} equal")
    walk_text = verdict(f"{broken} of {len(walked)} are wrong" * bool(broken), f"{len(walked)}, all free")
    return not (differ or broken), costs_text, walk_text, field
