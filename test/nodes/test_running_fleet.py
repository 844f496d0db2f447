"""A fleet whose agents are late, deaf, dumb, come and go, on a map that changes: nobody ever meets another one."""

import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

from gpu_planners.errors import GridMapError
from gpu_planners.fleet import Guidance, Settings
from gpu_planners.fleet.execution import running
from gpu_planners.fleet.execution.places import ClosedTiles
from gpu_planners.fleet.execution.running import RunningFleet
from gpu_planners.grid import FleetPlanner, GridMap
from gpu_planners.nodes.fleet.parameters import FleetParameters

SHAPE = 9, 11
STEP_S, SILENT_S = 1.0, 3.0
MOST = 24  # agents at a time


class World:
    """Agents as they really are: {id: [tile, heading, tile they are on the way to or None, deaf until, dumb until]}"""

    def __init__(self, seed, following, late):
        self.rng, self.late = np.random.default_rng(seed), late
        self.blocked = self.rng.random(SHAPE) < 0.1
        values = FleetParameters(
            device="cpu",
            step_s=STEP_S,
            silent_after_s=SILENT_S,
            fleet=Settings(following=following, neighbourhood_search=False),
        )
        self.fleet = RunningFleet(values)
        self.fleet.take_map(self.grid())
        self.agents, self.now, self.named, self.met = {}, 0.0, 0, []
        self.known = set()  # agents that have been told what to do

    def grid(self):
        return GridMap(~self.blocked, 4)

    def occupied(self):
        """All tiles that agents touch: between two tiles they touch both."""
        return [tile for agent in self.agents.values() for tile in {agent["at"], agent["to"] or agent["at"]}]

    def free_tile(self):
        taken = set(self.occupied())
        tiles = [tuple(tile) for tile in np.argwhere(~self.blocked).tolist() if tuple(tile) not in taken]
        return tiles[self.rng.integers(len(tiles))]

    def change(self):
        """Agents come and go, fall silent, and tiles change."""
        chance = self.rng.random(5)
        if chance[0] < 0.3 and len(self.agents) < MOST:
            self.named += 1
            tile = self.free_tile()
            closed = self.fleet.planner.grid.blocked[tile]
            if not closed and tile not in self.planned():  # where an agent may come, nobody is put by hand
                self.agents[f"r{self.named}"] = {"at": tile, "heading": 0, "to": None, "deaf": 0.0, "dumb": 0.0}
        if chance[1] < 0.03 and self.agents:
            id = self.pick()
            del self.agents[id]
            self.fleet.remove([id])
        if chance[2] < self.late and self.agents and (id := self.pick()) in self.known:
            self.agents[id][("deaf", "dumb")[self.rng.integers(2)]] = self.now + self.rng.uniform(0, 8)
        if chance[3] < 0.05:
            tile = self.free_tile()
            if tile not in self.planned():
                self.blocked[tile] = True
                self.fleet.take_map(self.grid())
        if chance[4] < 0.05:
            self.blocked &= self.rng.random(SHAPE) < 0.8
            self.fleet.take_map(self.grid())

    def planned(self):
        """Tiles where agents are, and those that they may enter."""
        graph = self.fleet._graph
        return set(map(tuple, graph.held(np.arange(len(graph.planned))).tolist()))

    def pick(self):
        return [*self.agents][self.rng.integers(len(self.agents))]

    def tell(self):
        """Who is not dumb tells where it is, and some have new goals."""
        ids = [id for id, agent in self.agents.items() if agent["dumb"] <= self.now]
        points = np.array([self.point(self.agents[id]) for id in ids]).reshape(-1, 2)
        yaws = np.array([self.agents[id]["heading"] * np.pi / 2 for id in ids])
        self.fleet.take_states(ids, points, yaws, np.full(len(ids), self.now), {})
        new = [id for id in self.agents if self.rng.random() < 0.05]
        places = np.argwhere(~self.blocked)
        self.fleet.take_goals(new, places[self.rng.integers(len(places), size=len(new))][:, ::-1] + 0.5, {})

    def point(self, agent):
        share = self.rng.uniform(0.3, 0.7) if agent["to"] else 0.0  # not within the tolerance of either tile
        row, col = np.array(agent["at"]) + share * (np.array(agent["to"] or agent["at"]) - agent["at"]) + 0.5
        return col, row

    def obey(self, step):
        """Who is not deaf begins what it was told; a move takes until the agent is found not to be late."""
        for id, tile, heading in zip(step.ids, step.tiles.tolist(), step.headings):
            agent = self.agents[id]
            self.known.add(id)
            if agent["deaf"] > self.now:
                continue
            agent["heading"] = int(heading)
            if agent["to"] and np.abs(np.array(tile) - agent["at"]).sum() > 1:  # it is taken to be on the second tile
                agent["at"], agent["to"] = agent["to"], None
            assert np.abs(np.array(tile) - agent["at"]).sum() <= 1, f"{id} jumps from {agent['at']} to {tile}"
            agent["to"] = None if tuple(tile) == agent["at"] else tuple(tile)

    def go_on(self):
        for agent in self.agents.values():
            if agent["to"] and agent["deaf"] <= self.now and self.rng.random() < 0.7:
                agent["at"], agent["to"] = agent["to"], None
        tiles = self.occupied()
        if len(set(tiles)) < len(tiles):
            self.met.append(self.now)

    def run(self, seconds):
        steps = 0
        while self.now < seconds:
            self.now += 0.25
            self.change()
            self.tell()
            if self.fleet.due(self.now):
                step = self.fleet.step(self.now)
                if step is not None:
                    steps += 1
                    self.obey(step)
            self.go_on()
        return steps


@pytest.mark.parametrize("late", [0.05, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_nobody_meets_whoever_is_late_deaf_or_dumb(seed, late):
    world = World(seed, following=False, late=late)
    assert world.run(200) > 30 and len(world.agents) > 5
    assert world.met == []
    assert world.fleet.reached > 3


@pytest.mark.parametrize("seed", range(3))
def test_agents_go_on_while_parameters_change_and_the_planner_is_made_anew(seed, monkeypatch):
    monkeypatch.setattr(running, "LEAST_DEAD", -2 * MOST)  # whenever an agent leaves
    world = World(seed, following=False, late=0.05)
    for turn in range(20):
        world.run(10 * (turn + 1))
        before = world.planned()
        fleet = replace(world.fleet._values.fleet, stuck_after=100 + turn)
        world.fleet.configure(replace(world.fleet._values, fleet=fleet, steps_ahead=turn % 5))
        assert before <= world.planned() and world.fleet.on_map > 0
    assert world.met == [] and world.fleet.reached > 3


def test_a_step_before_there_is_a_map_is_refused():
    with pytest.raises(GridMapError, match="no map yet"):
        RunningFleet(FleetParameters(device="cpu")).step(0.0)


@pytest.mark.parametrize("blocked", [False, True])
def test_nobody_is_let_into_a_tile_that_was_blocked_after_it_was_planned(blocked):
    fleet = RunningFleet(FleetParameters(device="cpu", motion="four"))
    fleet.take_map(GridMap(np.ones((1, 6)), 4))
    fleet.take_goals(["first", "second"], np.array([[5.5, 0.5], [4.5, 0.5]]), {})
    for now, first in ((0.0, 1.5), (1.1, 1.5), (2.2, 1.5), (2.5, 2.1), (2.8, 2.5)):
        points = np.array([[first, 0.5], [0.5, 0.5]])
        fleet.take_states(["first", "second"], points, np.full(2, np.nan), np.full(2, now), {})
        if first == 1.5 and fleet.due(now):
            fleet.step(now)
    if blocked:
        fleet.take_map(GridMap(np.array([[1, 0, 1, 1, 1, 1]]), 4))
    news = fleet.news(2.8)
    assert (news is not None and "second" in news.ids) is not blocked


@pytest.mark.parametrize("x", [2.1, 1.9])
def test_nobody_follows_one_that_stands_between_two_tiles(x):
    """It reports to be off the centre, on the tile that it was told to go to or still on the one before."""
    values = FleetParameters(device="cpu", motion="four", silent_after_s=SILENT_S, fleet=Settings(following=False))
    fleet, now = RunningFleet(values), 0.0
    fleet.take_map(GridMap(np.ones((1, 6)), 4))
    fleet.take_goals(["first", "second"], np.array([[5.5, 0.5], [4.5, 0.5]]), {})
    points = np.array([[1.5, 0.5], [0.5, 0.5]])
    fleet.take_states(["first", "second"], points, np.full(2, np.nan), np.full(2, now), {})
    for reported in (points, np.array([[x, 0.5], [0.5, 0.5]]), np.array([[x, 0.5], [0.5, 0.5]])):
        now += STEP_S + SILENT_S + 0.1  # a step begins, although not all have done the last one
        fleet.take_states(["first", "second"], reported, np.full(2, np.nan), np.full(2, now), {})
        assert fleet.due(now)
        step = fleet.step(now)
        assert step.tiles.tolist()[1] == [0, 0]


def test_agents_that_do_what_they_are_told_keep_the_pace():
    world = World(1, following=False, late=0.0)
    assert world.run(100) > 40
    assert world.met == [] and not world.fleet.silent_ids()


def test_a_thousand_agents_that_come_and_go_leave_nothing_behind():
    fleet = RunningFleet(FleetParameters(device="cpu", motion="four", lockstep=True))
    fleet.take_map(GridMap(np.ones(SHAPE), 4))
    stays = home = np.array([[0.5, 0.5]])
    for turn in range(1000):
        ids, points = ["stays", f"r{turn}"], np.concatenate([stays, [[5.5, 4.5]]])
        fleet.remove([f"r{turn - 1}"])
        fleet.take_states(ids, points, np.full(2, np.nan), np.full(2, float(turn)), {})
        fleet.take_goals(["stays"], home if turn % 40 < 20 else home + 8, {})
        step = fleet.step(float(turn))
        assert sorted(step.ids) == sorted(ids) and fleet.on_map == 2 and not fleet.clashes
        stays = step.tiles[[step.ids.index("stays")], ::-1] + 0.5
    assert len(fleet.planner.positions) < 300 and fleet.reached > 20


def test_a_time_that_begins_anew():
    fleet = RunningFleet(FleetParameters(device="cpu", motion="four"))
    fleet.take_map(GridMap(np.ones(SHAPE), 4))
    for now in (99.0, 100.0, 2.0, 3.01):  # all agents may tell where they are before the first step
        fleet.take_states(["a"], np.array([[0.5, 0.5]]), np.array([np.nan]), np.array([now]), {})
        assert fleet.due(now) is (now in (100.0, 3.01))
        if now in (100.0, 3.01):
            assert fleet.step(now).ids == ["a"]


def test_steps_keep_their_pace():
    """A step that begins a little late does not delay those that follow; one that waited does."""
    fleet = RunningFleet(FleetParameters(device="cpu", motion="four"))
    fleet.take_map(GridMap(np.ones(SHAPE), 4))
    begins, now = [], 0.0
    while now < 20:
        now += 0.03
        fleet.take_states(["a"], np.array([[0.5, 0.5]]), np.array([np.nan]), np.array([now]), {})
        if fleet.due(now):
            fleet.step(now)
            begins.append(now)
    assert len(begins) == 19 and abs(begins[-1] - begins[0] - 18) < 0.1


def test_more_agents_than_are_allowed_are_told_of_and_forgotten():
    fleet = RunningFleet(FleetParameters(device="cpu", motion="four", lockstep=True, max_agents=2))
    fleet.take_map(GridMap(np.ones(SHAPE), 4))
    places = np.array([[k + 0.5, 0.5] for k in range(5)])
    fleet.take_states(list("abcde"), places, np.full(5, np.nan), np.zeros(5), {})
    fleet.take_goals(list("abcde"), places, {})
    assert fleet.step(0.0).ids == ["a", "b"] and len(fleet) == 2
    assert "agent 'e'" in fleet.faults[""] and "allowed: 2" in fleet.faults[""]
    assert "agent 'e'" in fleet.goal_faults[""] and len(fleet.faults) == len(fleet.goal_faults) == 1
    fleet.remove(["a"])
    fleet.take_states(["b", "c"], places[1:3], np.full(2, np.nan), np.zeros(2), {})
    fleet.take_goals(["b"], places[1:2], {})
    assert fleet.step(1.0).ids == ["b", "c"] and not fleet.faults and not fleet.goal_faults


def test_an_agent_that_is_gone_falls_silent_though_the_clock_begins_anew():
    fleet = RunningFleet(FleetParameters(device="cpu", step_s=STEP_S, silent_after_s=SILENT_S))
    fleet.take_map(GridMap(np.ones(SHAPE, bool), 4))

    def tell(now, **columns):
        points = np.array([(column + 0.5, 0.5) for column in columns.values()])
        fleet.take_states(list(columns), points, np.full(len(columns), np.nan), np.full(len(columns), now), {})

    tell(999.0, here=1, gone=5)
    tell(1000.0, here=1, gone=5)
    assert fleet.due(1000.0)
    fleet.step(1000.0)
    for now in np.arange(2.0, 8.0, 0.5):
        tell(now, here=1)
        if fleet.due(now):
            fleet.step(now)
    assert fleet.silent_ids() == ["gone"]


def test_a_step_on_a_map_that_stays_as_it_is_does_not_copy_it():
    fleet = RunningFleet(FleetParameters(device="cpu", motion="four"))
    fleet.take_map(GridMap(np.ones((2000, 2000), np.uint8), 4))
    tell = [["a"], np.array([[0.5, 0.5]]), np.array([np.nan])]
    for now in (1.0, 2.0):
        fleet.take_states(*tell, np.array([now]), {})
        fleet.step(now)
    fleet.take_states(*tell, np.array([3.0]), {})
    tracemalloc.start()
    fleet.step(3.0)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1e6  # bytes; a copy of the map has four million


def test_tiles_that_are_closed_and_opened_and_a_map_that_changes_meanwhile_are_known_to_the_planner():
    rng = np.random.default_rng(0)
    blocked = np.zeros(SHAPE, bool)
    planner = FleetPlanner(GridMap(~blocked, 4), "four", "cpu")
    closed = ClosedTiles(planner, planner.grid)
    grid = planner.grid
    for step in range(200):
        if rng.random() < 0.1:
            blocked = rng.random(SHAPE) < 0.2
            grid = GridMap(~blocked, 4)
        tiles = set(map(tuple, rng.integers(0, SHAPE, size=(2, 2)).tolist())) if step % 3 else set()
        closed.close(tiles, grid)
        expected = np.where(blocked, 0, 1)
        for tile in tiles:
            expected[tile] = 0
        assert (planner.grid.costs == expected).all()


@pytest.mark.parametrize("lockstep", [True, False])
def test_nobody_is_silent_because_a_step_took_long_to_plan(lockstep):
    """Agents that only tell when they have done what they were told."""
    fleet = RunningFleet(
        FleetParameters(device="cpu", motion="four", lockstep=lockstep, step_s=STEP_S, silent_after_s=SILENT_S)
    )
    fleet.take_map(GridMap(np.ones(SHAPE), 4))
    fleet.take_states(["a"], np.array([[0.5, 0.5]]), np.array([np.nan]), np.zeros(1), {})
    fleet.take_goals(["a"], np.array([[8.5, 0.5]]), {})
    fleet.step(0.0)
    fleet.give_out(9.0)  # so long it took
    assert not fleet.due(9.1) and fleet.due(11.9) is not lockstep  # a barrier waits for all
    fleet.take_states(["a"], np.array([[1.5, 0.5]]), np.array([np.nan]), np.full(1, 11.9), {})
    assert fleet.due(11.9) and fleet.step(11.9).ids == ["a"] and not fleet.silent_ids()
    fleet.give_out(11.95)
    for now in (13.0, 15.5, 16.5):
        if fleet.due(now):
            fleet.step(now)
            fleet.give_out(now)
    assert fleet.silent_ids() == ["a"]  # who says nothing any more is


def test_agents_get_their_step_though_there_is_no_time_for_the_fields_of_all_goals():
    fleet = RunningFleet(FleetParameters(device="cpu", motion="four", step_s=1e-3))
    n, side = 40, 300
    fleet.take_map(GridMap(np.ones((side, side)), 4))
    ids, tiles = [f"r{k}" for k in range(n)], np.stack(np.divmod(np.arange(n), 20), axis=1) * 3
    goals, moved = tiles[::-1] + 200, np.zeros(n, bool)
    for now in range(n + 1):
        fleet.take_states(ids, tiles[:, ::-1] + 0.5, np.full(n, np.nan), np.full(n, float(now)), {})
        if now == 0:
            fleet.take_goals(ids, goals[:, ::-1] + 0.5, {})
        step = fleet.step(float(now))
        there = (step.goals == goals).all(axis=1)
        assert there.all() and step.ids == ids
        if now == 0:
            assert (step.tiles == tiles).all(axis=1).any()  # some had to wait
        moved |= (step.tiles != tiles).any(axis=1)
        tiles = step.tiles
    assert moved.all()


WARMED = """
import sys
import numpy as np
from gpu_planners.grid import FleetPlanner, GridMap
from gpu_planners.compiling import fleet_parts

def compiled():
    modules = [m for name, m in sys.modules.items() if name.startswith("gpu_planners.")]
    return {(v.__module__, k): len(v.overloads) for m in modules for k, v in vars(m).items() if hasattr(v, "overloads")}

for part in fleet_parts("cpu", "turning"):
    part.run()
before = compiled()
grid, rng = GridMap(np.ones((40, 40)), 4), np.random.default_rng(0)
fleet = FleetPlanner(grid, "turning", "cpu")
tiles = np.argwhere(~grid.blocked)
fleet.start(tiles[:100])
fleet.add(tiles[200:210])
goals = rng.permutation(tiles)[:110]
for _ in range(40):
    fleet.step(goals, 1e-3)
fleet.observe(fleet.positions, still=[3])
fleet.update([30, 31], [30, 30], [0, 1])
fleet.step(goals)
print({k: v for k, v in compiled().items() if v != before.get(k, 0)})
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_after_warming_up_the_first_step_compiles_nothing():
    told = subprocess.run([sys.executable, "-c", WARMED], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "{}"


def test_guidance_of_a_file_is_used_where_it_fits(tmp_path):
    grid = GridMap(np.ones((4, 6), bool), 4)
    learnt = Guidance(np.full((4, 6, 4), 7), 7)
    learnt.save(tmp_path / "hall.npz")
    fleet = RunningFleet(FleetParameters(device="cpu", guidance_file=str(tmp_path / "hall.npz")))
    fleet.take_map(grid)
    assert (fleet.planner.guidance.moves == learnt.moves).all() and not fleet.guidance_fault
    fleet.take_map(GridMap(np.ones((5, 5), bool), 4))
    assert fleet.planner.guidance.moves.shape == (5, 5, 4) and "(4, 6) tiles" in fleet.guidance_fault
    fleet.configure(FleetParameters(device="cpu", guidance_file=str(tmp_path / "none.npz")))
    assert "none.npz" in fleet.guidance_fault
    (tmp_path / "cut.npz").write_bytes((tmp_path / "hall.npz").read_bytes()[:100])
    fleet.configure(FleetParameters(device="cpu", guidance_file=str(tmp_path / "cut.npz")))
    assert "cut.npz" in fleet.guidance_fault
    fleet.configure(FleetParameters(device="cpu"))
    assert not fleet.guidance_fault


@pytest.mark.parametrize("simulated", (False, True))
def test_in_simulated_time_nobody_waits_for_the_field_of_its_goal(simulated):
    """However short a step is; in real time a step has room for few new goals."""
    side, count = 60, 200
    fleet = RunningFleet(FleetParameters(device="cpu", step_s=0.001), simulated=simulated)
    fleet.take_map(GridMap(np.ones((side, side), np.uint8), 4))
    tiles = np.random.default_rng(0).permutation(np.argwhere(np.ones((side, side), bool)))
    ids, starts, goals = [str(k) for k in range(count)], tiles[:count], tiles[count : 2 * count]
    fleet.take_states(ids, fleet.places.points(starts), np.zeros(count), np.zeros(count), {})
    fleet.take_goals(ids, fleet.places.points(goals), {})
    step = fleet.step(1.0)
    begun = np.count_nonzero(step.ticks)
    assert begun > 0.7 * count if simulated else begun < 0.7 * count
