"""Reports of a fleet's agents that are old, doubled, wrong or without a heading; a node that starts again: nobody is
sent to where another one may be."""

import json

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

from gpu_planners.errors import GpuPlannersError
from gpu_planners.fleet.execution import reports
from gpu_planners.fleet.execution.places import AgentState, new_agent
from gpu_planners.fleet.execution.rules import LateFleet
from gpu_planners.fleet.execution.running import RunningFleet
from gpu_planners.grid import GridMap
from gpu_planners.nodes.fleet.parameters import FleetParameters
from gpu_planners_msgs.msg import AgentActions
from soundness.orders import KINDS, World

WEST = np.pi


def fleet_on(costs, **parameters):
    parameters = {"device": "cpu", "motion": "four", "step_s": 1.0} | parameters
    fleet = RunningFleet(FleetParameters(**parameters))
    fleet.take_map(GridMap(np.asarray(costs, np.uint8), 4))
    return fleet


def middle(size):
    """Of an agent, from the corner of its tile, which is the middle of those that it covers, or up and left of that."""
    return 1.0 - 0.5 * (size % 2)


def tell(fleet, now, stamp=None, yaw=np.nan, size=1, **tiles):
    """Agents report from tiles (row, col), or columns of row 0, at a time, and what comes of it."""
    places = np.array([tile if np.ndim(tile) else (0, tile) for tile in tiles.values()], float)
    stamps = None if stamp is None else np.full(len(places), float(stamp))
    yaws, times = np.full(len(places), yaw), np.full(len(places), float(now))
    fleet.take_states(list(tiles), places[:, ::-1] + middle(size), yaws, times, {}, stamps)
    return fleet.step(now) if fleet.due(now) else fleet.news(now)


def goals(fleet, size=1, **tiles):
    places = np.array([tile if np.ndim(tile) else (0, tile) for tile in tiles.values()], float)
    fleet.take_goals(list(tiles), places[:, ::-1] + middle(size), {})


def told(step, id):
    """[number, tile, heading], of the action that an agent does, and the tiles ahead"""
    k = step.ids.index(id)
    first = int(step.ahead[:k].sum())
    more = step.tiles_ahead[first : first + step.ahead[k]].tolist()
    return int(step.numbers[k]), step.tiles[k].tolist(), int(step.headings[k]), more


def place(step, id):
    """[row, col] where the action that an agent does begins"""
    return step.tiles_before[step.ids.index(id)].tolist()


def state(step, id):
    return int(step.states[step.ids.index(id)])


# ---- the order of reports ----


def taken(agent, *stamped):
    """Which of reports (stamp, when it came) on one agent count, if a clock that was set back is believed after 5 s."""
    found = []
    for stamp, now in stamped:
        newer = reports.in_order(agent, np.array([stamp]), np.array([now]), 5.0)[0]
        if newer:
            agent["heard"], agent["stamp"] = now, stamp
        found.append(bool(newer))
    return found


def test_reports_count_by_their_stamps():
    agent = new_agent().reshape(1)
    assert taken(agent, (10.0, 1.0), (10.2, 1.2), (10.1, 1.3), (10.2, 1.4), (10.4, 1.5)) == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert taken(agent, (0.0, 1.6), (10.5, 1.7), (1e9, 1.8), (10.6, 1.9)) == [True, True, True, False]


def test_a_clock_that_was_set_back_is_believed_once_nothing_newer_came_for_long():
    agent = new_agent().reshape(1)
    assert taken(agent, (1000.0, 0.0)) == [True]
    times = np.arange(1, 80) * 0.2
    found = taken(agent, *((50.0 + time, time) for time in times))
    assert not any(found[:24]) and all(found[30:])
    repeated = new_agent().reshape(1)
    assert not any(
        taken(repeated, (1000.0, 0.0), *((50.0, time) for time in times))[1:]
    )  # one message, again and again


def test_an_agent_whose_reports_are_all_old_is_told_of():
    fleet = fleet_on(np.ones((1, 9)))
    tell(fleet, 0.0, 1000.0, a=2)
    tell(fleet, 1.0, 1001.0, a=2)
    steps = [
        tell(fleet, now, 5.0, a=2) for now in np.arange(1.2, 8.0, 0.2)
    ]  # a bridge sends one of them again and again
    step = next(step for step in reversed(steps) if step is not None)
    assert state(step, "a") == AgentActions.SILENT and "before it, and are passed over" in fleet.clashes["a"]


@pytest.mark.parametrize("stamped", [True, False])
def test_an_old_report_sends_nobody_into_another_one(stamped):
    """a has come from column 0 to 3 and stands there, b is to go to 0. Reports of a's from before come again."""
    fleet = fleet_on(np.ones((1, 9)))
    goals(fleet, a=3)
    at = 0
    for now in range(10):
        step = tell(fleet, float(now), now + 1 if stamped else None, a=at, b=5)
        at = told(step, "a")[1][1] if step is not None and "a" in step.ids else at
    assert at == 3
    goals(fleet, b=0)
    b, entered = 5, set()
    for k in range(100):
        now = 10.0 + 0.1 * k
        steps = [tell(fleet, now, now + 1 if stamped else None, a=3, b=b)]
        for old in (2, 1, 0):
            steps.append(tell(fleet, now, 2.0 if stamped else None, a=old))
        for step in steps:
            if step is not None and "b" in step.ids:
                assert "a" not in step.ids or place(step, "a") == [0, 3]
                _, tile, _, ahead = told(step, "b")
                entered |= {col for _, col in [tile, *ahead]}
                b = tile[1] if k % 10 == 9 else b
    assert entered <= {4, 5, 6, 7, 8}


def test_an_agent_that_was_removed_does_not_come_back_by_an_old_report():
    fleet = fleet_on(np.ones((1, 9)))
    tell(fleet, 0.0, 100.0, a=2)
    fleet.remove(["a"])
    tell(fleet, 0.1, 99.9, a=2)
    assert len(fleet) == 0
    tell(fleet, 0.2, 100.1, a=2)
    assert len(fleet) == 1


# ---- reports that contradict ----


def test_a_jump_is_doubted_and_the_robot_keeps_both_places():
    fleet = fleet_on(np.ones((3, 12)))
    for now in (0.0, 1.0):
        tell(fleet, now, a=(1, 2), b=(1, 9))
    goals(fleet, b=(1, 7))
    tell(fleet, 1.9, a=(1, 2), b=(1, 9))
    step = tell(fleet, 2.0, a=(1, 7), b=(1, 9))
    assert (
        state(step, "a") == AgentActions.BAD_STATE and "too soon" in fleet.clashes["a"] and "5 s" in fleet.clashes["a"]
    )
    assert told(step, "a")[1] == [1, 2]
    assert told(step, "b")[3] == [] and told(step, "b")[1] in ([1, 9], [1, 8], [0, 9], [2, 9])
    tell(fleet, 2.1, a=(1, 2), b=(1, 9))
    tell(fleet, 2.9, a=(1, 2), b=(1, 9))
    step = tell(fleet, 3.0, a=(1, 2), b=(1, 9))
    assert state(step, "a") != AgentActions.BAD_STATE and not fleet.clashes
    b = [1, 9]
    for k in range(8):  # the way between the two is open again
        step = tell(fleet, 3.5 + 0.5 * k, a=(1, 2), b=b)
        b = told(step, "b")[1] if step is not None and "b" in step.ids else b
    assert b == [1, 7]


def test_two_publishers_are_told_of_and_the_robot_stands():
    fleet = fleet_on(np.ones((3, 12)))
    goals(fleet, a=(1, 10))
    tell(fleet, 0.0, a=(1, 2))
    tell(fleet, 1.0, a=(1, 2))
    for k in range(20):
        tell(fleet, 1.1 + 0.1 * k, a=(1, 2) if k % 2 else (1, 8))
    assert "publisher" in fleet.clashes["a"] or "too soon" in fleet.clashes["a"]
    told_last = [tell(fleet, 4.0 + 0.1 * k, a=(1, 2)) for k in range(60)]
    step = next(step for step in reversed(told_last) if step is not None)
    assert not fleet.clashes and state(step, "a") != AgentActions.BAD_STATE


def test_a_robot_that_was_carried_away_stands_until_it_has_been_seen_there_for_long():
    fleet = fleet_on(np.ones((3, 12)), silent_after_s=3.0)
    goals(fleet, a=(1, 3))
    for now in (0.0, 1.0):
        tell(fleet, now, a=(1, 3))
    bad = []
    for k in range(60):
        now = 1.2 + 0.1 * k
        step = tell(fleet, now, a=(1, 9))
        if step is not None and "a" in step.ids:
            bad.append((now, state(step, "a") == AgentActions.BAD_STATE))
            if bad[-1][1]:
                assert told(step, "a")[1] == [1, 3] and "[1, 9]" in fleet.clashes["a"]
            last = place(step, "a")
    assert all(is_bad for now, is_bad in bad if now < 4.0) and not bad[-1][1] and last != [1, 3]


# ---- when a tile is left ----


@pytest.mark.parametrize("clearance, at", [(0.125, 0.89), (0.05, 0.96), (0.25, 0.76)])
def test_a_tile_is_left_when_the_whole_robot_is_out_of_it(clearance, at):
    """a leaves column 1 for column 2; b waits for column 1."""
    fleet = fleet_on(np.ones((1, 6)), clearance=clearance)
    goals(fleet, a=5, b=4)
    for now in (0.0, 1.0, 2.0, 3.0):
        step = tell(fleet, now, a=1, b=0)
    assert told(step, "b")[1] == [0, 0]
    for k, place in enumerate((0.2, 0.4, 0.6, at - 0.02)):
        news = tell(fleet, 3.1 + 0.2 * k, a=1 + place, b=0)
        assert news is None or "b" not in news.ids
    news = tell(fleet, 3.9, a=1 + at, b=0)
    assert told(news, "b")[1] == [0, 1]


def test_noise_that_is_found_in_the_reports_asks_for_more_of_them():
    fleet = fleet_on(np.ones((3, 30)), silent_after_s=60.0)
    rng = np.random.default_rng(0)
    goals(fleet, a=(1, 28))
    for now in np.arange(0, 20, 0.1):  # a does not move, whatever it is told
        row, col = (1, 2) + rng.normal(0, 0.2, 2)
        step = tell(fleet, now, a=(row, col))
        assert step is None or "a" not in step.ids or place(step, "a") == [1, 2]
    assert 0.15 < np.sqrt(fleet._agents["scatter"][0]) < 0.25


# ---- no heading ----


def test_who_tells_no_heading_is_told_its_turns_with_the_move_that_shows_them():
    """Each message begins with what is not known to be done, so a robot that misses any of them misses no turn."""
    fleet = fleet_on(np.ones((1, 6)), motion="turning", steps_ahead=0)
    goals(fleet, a=0)  # it looks the other way
    orders = []
    for now in np.arange(0.0, 8.0, 0.5):
        step = tell(fleet, now, a=4)
        if step is not None and "a" in step.ids:
            orders.append((*told(step, "a")[:3], len(told(step, "a")[3])))
    assert orders[-1] in ((1, [0, 4], 1, 2), (1, [0, 4], 3, 2))  # a turn, another one and a move
    assert all(number <= 1 and (number == 0 or more == 2) for number, *_, more in orders)
    step = tell(fleet, 8.0, a=3)
    assert told(step, "a")[0] >= 3 and place(step, "a") == [0, 3]


# ---- agents that stand where the map is blocked ----


@pytest.mark.parametrize("size, apart", [(1, 0), (1, 1), (2, 0), (2, 1), (3, 2)])
def test_others_keep_away_from_an_agent_whose_cell_is_blocked(size, apart):
    fleet = fleet_on(np.ones((12, 16)), fleet=LateFleet(size=size, safety_distance=apart))
    costs = np.ones((12, 16), np.uint8)
    costs[6, 8] = 0
    fleet.take_map(GridMap(costs, 4))
    stood, at, far = np.array([6, 8]), np.array([6, 1]), 0
    goals(fleet, size, b=(6, 13))
    for now in range(40):
        step = tell(fleet, float(now), size=size, a=stood, b=at)
        if step is not None and "b" in step.ids:
            at = np.array(told(step, "b")[1])
        assert np.abs(at - stood).max() >= size + apart
        far = max(far, at[1])
    assert far > 8  # it went around


# ---- tiles that are occupied ----


def test_nobody_enters_a_tile_that_is_occupied_until_it_is_freed():
    fleet = fleet_on(np.ones((1, 6)))
    goals(fleet, a=5)
    fleet.take_occupied(["pallet"], np.array([[3.5, 0.5]]), {})
    at = 0
    for now in range(10):
        step = tell(fleet, float(now), a=at)
        at = told(step, "a")[1][1] if step is not None and step.ids else at
        assert at < 3
    fleet.free(["pallet"])
    for now in range(10, 25):
        step = tell(fleet, float(now), a=at)
        at = told(step, "a")[1][1] if step is not None and step.ids else at
    assert at == 5


def test_a_place_that_is_far_away_bars_no_more_than_the_map():
    fleet = fleet_on(np.ones((1, 9)))
    tell(fleet, 0.0, a=1, b=7)
    tell(fleet, 1.0, a=(0, 1e9), b=7)
    step = tell(fleet, 2.0, a=(0, 1e9), b=7)
    assert "b" in step.ids


def test_what_is_wrong_is_kept_of_so_many_ids_alone():
    fleet = fleet_on(np.ones((1, 6)), max_agents=10)
    for k in range(30):
        fleet.take_goals([f"r{k}"], np.zeros((1, 2)), {f"r{k}": "no tile"})
        fleet.take_occupied([f"p{k}"], np.zeros((1, 2)), {f"p{k}": "no tile"})
    assert len(fleet.goal_faults) == len(fleet.faults) == 10


# ---- a node that starts again ----


def crossing(file, **parameters):
    return fleet_on(np.ones((3, 8)), state_file=str(file), **parameters)


def run_to_middle(file):
    """b is silent at (1, 4) from 3 s on, where it was told to go on to (1, 5); a is at (1, 0) -> where b may be"""
    fleet = crossing(file, silent_after_s=100.0)
    goals(fleet, b=(1, 7))
    for now, col in ((0.0, 3), (1.0, 3), (2.0, 4), (3.0, 4)):
        step = tell(fleet, now, a=(1, 0), b=(1, col))
    _, tile, _, ahead = told(step, "b")
    assert tile == [1, 5]
    return {(1, 4), (1, 5), *map(tuple, ahead)}


def test_a_node_that_starts_again_knows_where_a_silent_robot_may_be(tmp_path):
    held = run_to_middle(tmp_path / "fleet.json")
    steps = json.loads((tmp_path / "fleet.json").read_text())["steps"]
    fleet = crossing(tmp_path / "fleet.json")
    goals(fleet, a=(1, 7))
    at, way = (1, 0), []
    for k in range(40):
        step = tell(fleet, 1000.0 + k, a=at)
        if step is not None and "a" in step.ids:
            number, tile, _, _ = told(step, "a")
            at = tuple(tile)
            way.append(at)
            assert at not in held and step.number > steps
    assert at == (1, 7) and state(step, "b") == AgentActions.SILENT
    step = tell(fleet, 1041.0, a=at, b=(1, 5))  # it is there again, and has done what the first node told it
    assert place(step, "b") == [1, 5]


def test_without_a_file_a_node_that_starts_again_does_not_know(tmp_path):
    """The test above is worth something."""
    fleet = fleet_on(np.ones((3, 8)))
    goals(fleet, a=(1, 7))
    at, way = (1, 0), []
    for k in range(20):
        step = tell(fleet, 1000.0 + k, a=at)
        if step is not None:
            at = tuple(told(step, "a")[1])
            way.append(at)
    assert (1, 4) in way


def test_on_another_map_the_places_of_silent_robots_stay_occupied(tmp_path):
    run_to_middle(tmp_path / "fleet.json")
    fleet = RunningFleet(FleetParameters(device="cpu", motion="four", state_file=str(tmp_path / "fleet.json")))
    fleet.take_map(GridMap(np.ones((5, 9)), 4))
    assert fleet.occupied_ids() == ["a", "b"]
    goals(fleet, a=(1, 7))
    at = (1, 0)
    for k in range(40):
        step = tell(fleet, 1000.0 + k, a=at)
        at = tuple(told(step, "a")[1]) if step is not None and step.ids else at
        assert at not in ((1, 4), (1, 5))
    assert at == (1, 7) and fleet.occupied_ids() == ["b"]
    fleet.remove(["b"])  # somebody has carried it away
    assert fleet.occupied_ids() == []


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "JSONDecodeError"),
        (b"\xff\xfe", "UnicodeDecodeError"),
        (b"[" * 100_000, "Error"),
        (b'{"format": 99}', "format is 99"),
        (b'{"format": 1}', "frame"),
        (None, "tiles side by side"),
    ],
    ids=["empty", "bytes", "deep", "format", "fields", "jump"],
)
def test_a_file_that_cannot_be_read_is_told_of_and_nobody_moves_until_it_is_gone(tmp_path, content, words):
    file = tmp_path / "fleet.json"
    if content is None:
        run_to_middle(file)
        kept = json.loads(file.read_text())
        kept["agents"][1][2][-1][1] = 0
        content = json.dumps(kept).encode()
    file.write_bytes(content)
    fleet = crossing(file)
    goals(fleet, a=(1, 7))
    assert [tell(fleet, float(now), a=(1, 0)) for now in range(3)] == [None] * 3
    assert words in fleet.state_fault and str(file) in fleet.state_fault and "Remove it" in fleet.state_fault
    assert file.read_bytes() == content
    file.unlink()
    steps = [tell(fleet, float(now), a=(1, 0)) for now in range(3, 6)]
    assert steps[-1].ids == ["a"] and not fleet.state_fault and file.exists()


def test_a_file_that_is_put_right_is_taken_up(tmp_path):
    file = tmp_path / "fleet.json"
    run_to_middle(file)
    right = file.read_text()
    file.write_text(right[:-9])
    fleet = crossing(file)
    assert tell(fleet, 0.0, a=(1, 0)) is None and fleet.state_fault
    fleet.take_occupied(["pallet"], np.array([[7.5, 2.5]]), {})
    fleet.keep()
    assert file.read_text() == right[:-9]  # what is in it is not lost
    file.write_text(right)
    tell(fleet, 1.0, a=(1, 0))
    step = tell(fleet, 2.0, a=(1, 0))
    assert not fleet.state_fault and state(step, "b") == AgentActions.SILENT and fleet.occupied_ids() == ["pallet"]
    assert (fleet._graph.barred[:, 2, 7] != 0).all()


def test_where_nothing_can_be_kept_nobody_is_told_anything(tmp_path):
    (tmp_path / "file").write_text("")
    fleet = crossing(tmp_path / "file" / "fleet.json")
    goals(fleet, a=(1, 7))
    with pytest.raises(GpuPlannersError, match="state_file"):
        for now in range(3):
            tell(fleet, float(now), a=(1, 0))


# ---- all of it, by robots, networks and an oracle that share nothing with the node ----


def attacked(kind, seconds, tmp_path, **parameters):
    world = World(1, KINDS[kind], folder=tmp_path if KINDS[kind].restarts else None, **parameters)
    world.run(seconds)
    assert world.wrong == [] and world.errands > 0
    return world


@pytest.mark.parametrize("kind", ["doubled, unstamped", "noisy", "no heading, numbers alone", "together"])
def test_no_two_robots_come_nearer_than_they_may(kind, tmp_path):
    attacked(kind, 20.0, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(len(KINDS)), ids=list(KINDS))
def test_no_two_robots_come_nearer_than_they_may_for_a_minute(number, tmp_path):
    """`python -m soundness --only orders` goes on for as long as one likes, with other sizes, motions and seeds."""
    kind = [*KINDS][number]
    size, motion = ((1, "turning"), (2, "four" if KINDS[kind].turned else "turning"))[number % 2]
    attacked(kind, 60.0, tmp_path, size=size, motion=motion)


def test_states_have_the_numbers_of_the_message():
    assert {state.name: state.value for state in AgentState} == {
        name: getattr(AgentActions, name) for name in AgentState.__members__
    }
