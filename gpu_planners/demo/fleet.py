"""The fleet's part of the demo: agents on errands in a warehouse, moved by the real node, checked step by step."""

import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import OccupancyGrid
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from gpu_planners_msgs.msg import AgentActions, AgentGoals, AgentStates
from gpu_planners_msgs.srv import PlanFleet

from ..errors import GpuPlannersError
from ..fleet import conflicts
from ..fleet.drawing import draw_fleet, fleet_page
from ..grid import GridMap
from ..grid.maps.generated import warehouse_map
from ..nodes.common.map_messages import as_array, geometry_message, pose_list
from ..nodes.common.qos import LATCHED
from .node import NodeClient, NodeProcess

ROWS, COLS, APRON = 78, 134, 8
RESOLUTION = 1.0  # metres a tile
SILENT_AFTER_S = 60.0  # this machine may be busy
CHOICES = 4  # places, of which the nearest one becomes an agent's goal
PALLETS = 12  # tiles that are blocked for a third of the time
# rows, columns and quarter turns to the left of the actions, by heading: 0 along x, 1 along y, ...
AHEAD = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])
TURNS = {AgentActions.TURN_LEFT: 1, AgentActions.TURN_RIGHT: 3}


def run(console: Console, options: Namespace) -> int:
    """Move a fleet, check, print and draw; 0 when everything passed its checks."""
    grid = GridMap(warehouse_map(ROWS, COLS, 4, apron=APRON).costs, 4, RESOLUTION)
    warehouse = Warehouse(grid, options.fleet_agents, options.seed)
    parameters = {
        "device": options.device,
        "motion": "turning",
        "lockstep": True,
        "step_s": 1.0,
        "silent_after_s": SILENT_AFTER_S,
    }
    with NodeProcess("fleet.node", parameters, start=not options.no_node) as process:
        client = FleetClient(process, "fleet_planner", PlanFleet, "plan_fleet")
        with console.status("loading and compiling; the first time on a machine this takes a minute or two"):
            client.wait_for_service()
            client.publish_map(grid)
            warehouse.do(client.ask_step(warehouse))
        for step in track(range(1, options.fleet_steps), "steps", console=console, transient=True):
            if step in (options.fleet_steps // 3, 2 * options.fleet_steps // 3):
                client.publish_map(warehouse.change_map())
            warehouse.do(client.ask_step(warehouse))
    return _report(console, warehouse, client, options)


class Warehouse:
    """Agents that carry goods between shelves and the strips on both sides. They do what they are told, at once.

    tiles: (N, 2) [row, col]; headings: (N,) quarter turns to the left from x; goals: (N, 2)
    positions, faces, aims: the three after each step; reached: goals reached until each step
    maps: (the step from which on it counts, GridMap) of each
    """

    def __init__(self, grid: GridMap, agents: int, seed: int) -> None:
        self._rng, free = np.random.default_rng(seed), np.argwhere(~grid.blocked)
        if not 1 <= agents <= len(free) // 2:
            raise GpuPlannersError(f"there are {agents} agents; allowed: 1 to {len(free) // 2} in this warehouse")
        beside = np.pad(grid.blocked, 1)
        beside = ~grid.blocked & (beside[:-2, 1:-1] | beside[2:, 1:-1])
        sides = (free[:, 1] < APRON // 2) | (free[:, 1] >= grid.cols - APRON // 2)
        self._shelves, self._sides = np.argwhere(beside), free[sides]
        self._reserved = free  # where pallets may fall
        self.ids = [f"r{number}" for number in range(agents)]
        self.tiles = free[self._rng.permutation(len(free))[:agents]]
        self.headings, self._loaded = self._rng.integers(0, 4, agents), self._rng.random(agents) < 0.5
        self.goals = np.zeros((agents, 2), np.int64)
        self.changed = np.ones(agents, bool)  # whose goal is new
        self.maps, self.reached = [(0, grid)], [0]
        self._send(self.changed)
        self.positions, self.faces, self.aims = [self.tiles.copy()], [self.headings.copy()], [self.goals.copy()]

    def _send(self, who):
        """Give agents another errand: to a shelf without a load, to one of the sides with it."""
        for loaded, places in ((True, self._sides), (False, self._shelves)):
            some = who & (self._loaded == loaded)
            choice = places[self._rng.integers(0, len(places), (some.sum(), CHOICES))]
            far = np.abs(choice - self.tiles[some, None]).sum(axis=2)
            self.goals[some] = choice[np.arange(len(far)), far.argmin(axis=1)]
        self._loaded ^= who

    def change_map(self) -> GridMap:
        """Pallets fall where nobody is or goes; the next time they are taken away."""
        grid = self.maps[0][1]
        if len(self.maps) == 1:
            used = {*map(tuple, self.tiles.tolist()), *map(tuple, self.goals.tolist())}
            open_tiles = [tile for tile in map(tuple, self._reserved.tolist()) if tile not in used]
            rows, cols = zip(*(open_tiles[k] for k in self._rng.permutation(len(open_tiles))[:PALLETS]))
            closed = np.array(rows) * grid.cols + cols
            self._shelves, self._sides = (
                places[~np.isin(places @ [grid.cols, 1], closed)] for places in (self._shelves, self._sides)
            )
            grid = grid.changed(rows, cols, 0)
        self.maps.append((len(self.positions) - 1, grid))
        return grid

    def do(self, message: AgentActions) -> None:
        """Do what the node says; GpuPlannersError where that is not what these agents can do."""
        if sorted(message.ids) != sorted(self.ids):
            raise GpuPlannersError(f"the node moves {len(message.ids)} agents of {len(self.ids)}")
        number = np.array([int(id[1:]) for id in message.ids])
        actions = np.zeros(len(self.ids), np.uint8)
        actions[number] = np.frombuffer(message.actions, np.uint8)
        ahead = actions == AgentActions.FORWARD
        self.tiles = self.tiles + AHEAD[self.headings] * ahead[:, None]
        for action, turn in TURNS.items():
            self.headings = (self.headings + turn * (actions == action)) % 4
        told = np.frombuffer(message.tiles, np.int32).reshape(-1, 2)
        known = ahead | np.isin(actions, [AgentActions.WAIT, *TURNS])
        if not known.all() or not np.array_equal(self.tiles[number], told):
            raise GpuPlannersError(f"step {message.step}: actions and tiles of the node do not agree")
        self.changed = (self.tiles == self.goals).all(axis=1)
        self.reached.append(self.reached[-1] + int(self.changed.sum()))
        self.positions.append(self.tiles.copy())
        self.faces.append(self.headings.copy())
        self.aims.append(self.goals.copy())
        self._send(self.changed)

    def conflicts(self) -> list:
        """What the validator finds in all steps, each on the map of its time."""
        ends = [*(begin for begin, _ in self.maps[1:]), len(self.positions) - 1]
        walked = np.array(self.positions)
        return [
            each
            for (begin, grid), end in zip(self.maps, ends, strict=True)
            for each in conflicts(walked[begin : end + 1], grid.blocked)
        ]


class FleetClient(NodeClient):
    """Tells the node where agents are and go, and hears what they do next. times: seconds of each step"""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._actions: list[AgentActions] = []
        self._maps_known = 0
        self._map = self.node.create_publisher(OccupancyGrid, "map", LATCHED)
        self._states = self.node.create_publisher(AgentStates, "fleet_planner/agent_states", 10)
        self._goals = self.node.create_publisher(AgentGoals, "fleet_planner/agent_goals", 10)
        self.node.create_subscription(AgentActions, "fleet_planner/agent_actions", self._actions.append, 10)
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._hear, 10)
        self.round_trips: list[float] = []
        self.planning: list[float] = []
        self.facts: dict[str, str] = {}

    def _hear(self, message):
        for status in message.status:
            if status.name.endswith("fleet_planner"):
                self.facts = {value.key: value.value for value in status.values}

    def publish_map(self, grid: GridMap) -> None:
        """Publish a map and wait until the node has it."""
        message = OccupancyGrid(info=geometry_message(grid), data=as_array(np.where(grid.blocked, 100, 0), np.int8))
        message.header.frame_id, message.header.stamp = "map", Time(sec=self._maps_known + 1)
        self._map.publish(message)
        self._maps_known += 1
        wanted = int(self.facts.get("map changes", 0)) + 1
        self.wait_for(lambda: int(self.facts.get("map changes", 0)) >= wanted, "the node has not taken the map")

    def ask_step(self, warehouse: Warehouse) -> AgentActions:
        """Tell where all agents are, and new goals -> what the node has them do"""
        self.wait_for(
            lambda: self._states.get_subscription_count() and self._goals.get_subscription_count(),
            "no node listens to the agents",
        )
        began, grid = time.monotonic(), warehouse.maps[0][1]
        changed = np.flatnonzero(warehouse.changed)
        goals = AgentGoals(ids=[warehouse.ids[k] for k in changed])
        goals.poses = pose_list(grid.centres_of(warehouse.goals[changed]), np.zeros(len(changed)))
        states = AgentStates(ids=warehouse.ids)
        states.poses = pose_list(grid.centres_of(warehouse.tiles), warehouse.headings * (np.pi / 2))
        self._goals.publish(goals)
        self._states.publish(states)
        self.wait_for(lambda: self._actions, "the node has not begun a step")
        message = self._actions.pop(0)
        self.round_trips.append(time.monotonic() - began)
        self.planning.append(message.planning_time_s)
        return message


def _report(console, warehouse, client, options):
    found, steps = warehouse.conflicts(), len(warehouse.positions) - 1
    grid, reached = warehouse.maps[0][1], warehouse.reached[-1]
    trips, planning = 1e3 * np.array(client.round_trips[1:]), 1e3 * np.array(client.planning[1:])
    table = Table(show_header=False, box=None)
    for name, text in (
        ("map", f"warehouse of {grid.rows} x {grid.cols} tiles, {int((~grid.blocked).sum()):,} of them free"),
        ("fleet", f"{len(warehouse.ids):,} agents that turn on the spot, {steps} s of their time, a step a second"),
        ("change", f"{PALLETS} tiles are blocked from second {_changes(warehouse)}"),
        ("errands", f"{reached:,} goals reached, {60 * reached / steps:,.0f} a minute"),
        ("a step", f"planning {np.median(planning):.1f} ms (longest {planning.max():.1f}), with the messages there and "
         f"back {np.median(trips):.0f} ms"),
        (
            "validator",
            f"[red]{len(found)} conflicts, the first one {found[0]}[/]"
            if found
            else f"[green]{steps} steps of {len(warehouse.ids):,} agents: no conflict[/]",
        ),
    ):  # fmt: skip
        table.add_row(name, text)
    console.print(table)
    positions = np.array(warehouse.positions)
    page, picture = Path(options.fleet_page), Path(options.fleet_picture)
    for file in (page, picture):
        file.parent.mkdir(parents=True, exist_ok=True)
    title = f"{len(warehouse.ids):,} agents in a warehouse"
    page.write_text(
        fleet_page(grid, positions, np.array(warehouse.faces), np.array(warehouse.aims), title), encoding="utf-8"
    )
    draw_fleet(grid, positions).save(picture)
    there, end = escape(str(page)), escape(str(picture))
    console.print(
        f"\na page that plays the moves: [bold]{there}[/], a picture of the end: [bold]{end}[/]", soft_wrap=True
    )
    return 1 if found or not reached else 0


def _changes(warehouse):
    return " to ".join(str(begin) for begin, _ in warehouse.maps[1:]) or "never"
