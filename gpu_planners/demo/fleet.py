"""The fleet's part of the demo: agents on errands in a warehouse, moved by the real node, checked step by step."""

import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rich.console import Console
from rich.progress import track

from gpu_planners_msgs.msg import AgentActions, AgentGoals, AgentStates
from gpu_planners_msgs.srv import PlanFleet

from ..errors import GpuPlannersError
from ..fleet.drawing import draw_fleet, fleet_page
from ..grid import GridMap
from ..grid.maps.generated import warehouse_map
from ..nodes.common.map_messages import pose_list
from ..verify import Conflict, conflicts
from .ahead import MOTION
from .node import LOADING, MapClient, facts_of, verdict
from .page import About, Report

ABOUT = About(
    "A fleet in a warehouse",
    "Robots that turn on the spot carry goods between shelves and the strips on both sides, as the node tells "
    "them. For a third of the time some tiles are blocked. A validator looks for two that meet.",
    'make demo ARGS="--only fleet --fleet-agents 2000 --fleet-steps 300"',
)
ROWS, COLS, APRON = 78, 134, 8
PARAMETERS = {"motion": MOTION, "lockstep": True, "step_s": 1.0, "silent_after_s": 60.0}  # this machine may be busy
CHOICES = 4  # places, of which the nearest one becomes an agent's goal
PALLETS = 12  # tiles that are blocked for a third of the time
# rows, columns and quarter turns to the left of the actions, by heading: 0 along x, 1 along y, ...
AHEAD = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])
TURNS = {AgentActions.TURN_LEFT: 1, AgentActions.TURN_RIGHT: 3}


def run(console: Console, options: Namespace) -> Report:
    """Move a fleet, check and draw."""
    grid, steps = warehouse_map(ROWS, COLS, 4, apron=APRON), options.fleet_steps
    if steps < 2:
        raise GpuPlannersError(f"--fleet-steps is {steps}; allowed: 2 or more")
    warehouse = Warehouse(grid, options.fleet_agents, options.seed)
    with FleetClient("fleet", PlanFleet, "plan_fleet", PARAMETERS, options) as client:
        with console.status(LOADING):
            client.wait_for_service()
            client.send_map(grid)
            warehouse.do(client.ask_step(warehouse))
        for step in track(range(1, steps), "steps", console=console, transient=True):
            if step in (steps // 3, 2 * steps // 3):
                client.send_map(warehouse.change_map())
            warehouse.do(client.ask_step(warehouse))
    return _report(warehouse, client.times, Path(options.out))


class Warehouse:
    """Agents that carry goods between shelves and the strips on both sides. They do what they are told, at once.

    tiles, goals: (N, 2) [row, col]; headings: (N,) quarter turns to the left from x; changed: (N,) is the goal new?
    history: (tiles, headings, goals) after each step; maps: (the step from which on it counts, GridMap) of each
    """

    def __init__(self, grid: GridMap, agents: int, seed: int) -> None:
        self._rng, free = np.random.default_rng(seed), np.argwhere(~grid.blocked)
        if not 1 <= agents <= len(free) // 2:
            raise GpuPlannersError(f"there are {agents} agents; allowed: 1 to {len(free) // 2} in this warehouse")
        beside = np.pad(grid.blocked, 1)
        beside = ~grid.blocked & (beside[:-2, 1:-1] | beside[2:, 1:-1])
        sides = (free[:, 1] < APRON // 2) | (free[:, 1] >= grid.cols - APRON // 2)
        self._shelves, self._sides = np.argwhere(beside), free[sides]
        self.ids = [f"r{number}" for number in range(agents)]
        self.tiles = free[self._rng.permutation(len(free))[:agents]]
        self.headings, self._loaded = self._rng.integers(0, 4, agents), self._rng.random(agents) < 0.5
        self.goals, self.changed = np.zeros((agents, 2), np.int64), np.ones(agents, bool)
        self.maps = [(0, grid)]
        self._send(self.changed)
        self.history = [(self.tiles, self.headings, self.goals.copy())]

    def _send(self, who):
        """Give agents another errand: to a shelf without a load, to one of the sides with it."""
        for loaded, places in ((True, self._sides), (False, self._shelves)):
            some = who & (self._loaded == loaded)
            choice = places[self._rng.integers(0, len(places), (some.sum(), CHOICES))]
            far = np.abs(choice - self.tiles[some, None]).sum(axis=2)
            self.goals[some] = choice[np.arange(len(far)), far.argmin(axis=1)]
        self._loaded ^= who

    def change_map(self) -> GridMap:
        """Pallets fall where nobody is and no goods go; the next time they are taken away."""
        grid = self.maps[0][1]
        if len(self.maps) == 1:
            closed = grid.blocked.copy()
            for places in (self.tiles, self._shelves, self._sides):
                closed[tuple(places.T)] = True
            rows, cols = self._rng.permutation(np.argwhere(~closed))[:PALLETS].T
            grid = grid.changed(rows, cols, 0)
        self.maps.append((len(self.history) - 1, grid))
        return grid

    def do(self, message: AgentActions) -> None:
        """Do what the node says; GpuPlannersError where that is not what these agents can do."""
        if sorted(message.ids) != sorted(self.ids):
            raise GpuPlannersError(f"the node moves {len(message.ids)} agents of {len(self.ids)}")
        number = np.array([int(id[1:]) for id in message.ids])
        start = np.frombuffer(message.start_tiles, np.int32).reshape(-1, 2)
        if not np.array_equal(self.tiles[number], start):
            raise GpuPlannersError(f"step {message.step}: the node tells agents to begin where they are not")
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
        self.history.append((self.tiles, self.headings, self.goals.copy()))
        self._send(self.changed)

    def conflicts(self) -> list[Conflict]:
        """What the validator finds in all steps, each on the map of its time."""
        ends = [*(begin for begin, _ in self.maps[1:]), len(self.history) - 1]
        walked, found = np.array([tiles for tiles, *_ in self.history]), []
        for (begin, grid), end in zip(self.maps, ends, strict=True):
            found += conflicts(walked[begin : end + 1], grid.blocked)
        return found


class FleetClient(MapClient):
    """Tells the node where agents are and go, and hears what they do next.

    times: (planning, with the messages there and back) of each step, seconds
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.times: list[tuple[float, float]] = []
        self._actions: list[AgentActions] = []
        self._states = self.node.create_publisher(AgentStates, "fleet_planner/agent_states", 10)
        self._goals = self.node.create_publisher(AgentGoals, "fleet_planner/agent_goals", 10)
        self.node.create_subscription(AgentActions, "fleet_planner/agent_actions", self._actions.append, 10)
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._hear, 10)
        self._changes = 0  # of the map that the node has

    def _hear(self, message):
        for status in message.status:
            if status.name.endswith("fleet_planner"):
                self._changes = int({value.key: value.value for value in status.values}.get("map changes", 0))

    def send_map(self, grid: GridMap) -> None:
        before = self._changes
        self.publish_map(grid, lambda _: self._changes > before)

    def ask_step(self, warehouse: Warehouse) -> AgentActions:
        """Tell where all agents are, and new goals -> what the node has them do"""
        topics = self._states, self._goals
        self.wait_for(lambda: all(each.get_subscription_count() for each in topics), "no node listens to the agents")
        began, grid = time.monotonic(), warehouse.maps[0][1]
        changed = np.flatnonzero(warehouse.changed)
        places = pose_list(grid.centres_of(warehouse.goals[changed]), np.zeros(len(changed)))
        self._goals.publish(AgentGoals(ids=[warehouse.ids[k] for k in changed], poses=places))
        places = pose_list(grid.centres_of(warehouse.tiles), warehouse.headings * (np.pi / 2))
        self._states.publish(AgentStates(ids=warehouse.ids, poses=places))
        self.wait_for(lambda: self._actions, "the node has not begun a step")
        message = self._actions.pop(0)
        self.times.append((message.planning_time_s, time.monotonic() - began))
        return message


def _report(warehouse, times, folder):
    positions, headings, goals = map(np.array, zip(*warehouse.history))
    reached = int((positions[1:] == goals[1:]).all(axis=2).sum())
    found, steps, agents = warehouse.conflicts(), len(positions) - 1, f"{len(warehouse.ids):,} agents"
    grid, (planning, trips) = warehouse.maps[0][1], 1e3 * np.array(times[1:]).T
    changes = " to ".join(str(begin) for begin, _ in warehouse.maps[1:]) or "never"
    facts = facts_of(
        map=f"warehouse of {grid.rows} x {grid.cols} tiles, {int((~grid.blocked).sum()):,} of them free",
        fleet=f"{agents} that turn on the spot, {steps} s of their time, a step a second",
        change=f"{PALLETS} tiles are blocked from second {changes}",
        errands=f"{reached:,} goals reached, {60 * reached / steps:,.0f} a minute",
        a_step=f"planning {np.median(planning):.1f} ms (longest {planning.max():.1f}), with the messages there and "
        f"back {np.median(trips):.0f} ms",
        validator=verdict(
            f"{len(found)} conflicts, the first one {found[:1]}" * bool(found),
            f"{steps} steps of {agents}: no conflict",
        ),
    )
    page, picture = folder / "demo_fleet.html", folder / "demo_fleet.png"
    page.write_text(fleet_page(grid, positions, headings, goals, f"{agents} in a warehouse"), encoding="utf-8")
    draw_fleet(grid, positions).save(picture)
    files = [(page, "the moves: press play, click an agent to follow it"), (picture, "the end")]
    return Report(not found and reached > 0, [facts], files)
