"""The fleet_planner node over real DDS: agents that do what it says never meet, whatever some of them do."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from fleet_harness import HALL, RESOLUTION, Agents, RunningNode, pose_at, tile_of
from geometry_msgs.msg import PoseArray
from grid_harness import map_message
from nav_msgs.msg import OccupancyGrid, Path
from running_node import DEVICE, LATCHED, shared, starter
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from gpu_planners.fleet import conflicts
from gpu_planners.grid import FleetPlanner, GridMap
from gpu_planners.nodes.common import map_codes as codes
from gpu_planners.nodes.common.parameters import rules_of
from gpu_planners.nodes.fleet.parameters import FleetParameters
from gpu_planners_msgs.msg import AgentActions, AgentGoals, AgentStates
from gpu_planners_msgs.srv import PlanFleet

FIVE = {"a": (0, 0, 0), "b": (0, 9, 2), "c": (7, 0, 1), "d": (7, 9, 3), "e": (4, 5, 0)}
CROSSING = {"a": (7, 9), "b": (7, 0), "c": (0, 9), "d": (0, 0), "e": (4, 4)}
NAN, INF = float("nan"), float("inf")

node_of_module, running = shared(RunningNode)
start_node = starter(RunningNode)


@pytest.fixture
def agents(running):
    """Five agents that cross; they leave the fleet after the test."""
    five = Agents(running, FIVE, CROSSING)
    yield five
    five.silent = set()
    five.leave()


def walk(agents, until, most=60):
    """Do steps until a condition holds."""
    for _ in range(most):
        message = agents.do_step()
        if until(message):
            return message
    raise AssertionError(f"not within {most} steps")


def state(message, id):
    return message.states[list(message.ids).index(id)]


def all_there(message):
    return set(message.states) == {AgentActions.AT_GOAL}


def problem(running, *words):
    """Wait until the node's diagnostics tell of a problem with these words."""
    running.wait_until(lambda: all(word in running.problem for word in words), 30)


def no_problem(running):
    """Wait until the node's diagnostics tell of none."""
    running.forget_status()
    running.wait_until(lambda: running.problem == "", 30)


def test_agents_cross_without_a_conflict_and_arrive(running, agents):
    walk(agents, all_there)
    assert {id: tuple(tile[:2]) for id, tile in agents.tiles.items()} == CROSSING
    assert conflicts(agents.positions(), HALL != 0) == []
    running.wait_until(lambda: running.facts["goals reached"] == "5" and running.facts["agents on the map"] == "5", 30)
    assert float(running.facts["goals per minute"]) > 0 and running.problem == ""


def test_paths_have_times_and_actions_say_the_same(running, agents):
    before = {id: list(tile) for id, tile in agents.tiles.items()}
    actions = agents.do_step()
    paths = agents.paths
    assert paths.header.frame_id == "map" and paths.header.stamp.sec > 0 and actions.step_s == 1.0
    turned = {AgentActions.TURN_LEFT: 1, AgentActions.TURN_RIGHT: 3}
    ahead = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    for k, (id, path) in enumerate(zip(paths.ids, paths.paths)):
        action, (row, col, heading) = actions.actions[k], before[id]
        if action == AgentActions.WAIT:
            assert len(path.poses) == 1
        else:
            first, last = path.poses
            assert tile_of(first.pose) == before[id]
            assert last.header.stamp.sec - first.header.stamp.sec == 1
            assert last.header.stamp.nanosec == first.header.stamp.nanosec
        if action == AgentActions.FORWARD:
            row, col = row + ahead[heading][0], col + ahead[heading][1]
        heading = (heading + turned.get(action, 0)) % 4
        assert tile_of(path.poses[-1].pose) == [row, col, heading]
        assert actions.tiles[2 * k : 2 * k + 2].tolist() == [row, col] and actions.headings[k] == heading
    assert set(actions.actions) & {AgentActions.FORWARD, AgentActions.TURN_LEFT, AgentActions.TURN_RIGHT}


@pytest.mark.parametrize("motion", ["four", "turning"])
def test_errands_for_life_on_a_rotated_map(start_node, motion):
    """Twenty agents; poses lie where the map's origin, turned by a right angle and more, puts its tiles."""
    yaw, x0, y0 = np.pi / 2 + 0.3, 4.0, -2.0
    running = start_node(map_message(HALL, RESOLUTION, (x0, y0, yaw)), motion=motion)
    grid = GridMap(HALL == 0, 4, RESOLUTION, (x0, y0, yaw))
    rng = np.random.default_rng(0)
    tiles = np.argwhere(HALL == 0)[rng.permutation(HALL.size)[:20]]
    states = running.publisher(AgentStates, "/fleet_planner/agent_states", 1000)
    goals = running.publisher(AgentGoals, "/fleet_planner/agent_goals", 1000)
    heard = running.received(AgentActions, "/fleet_planner/agent_actions")
    ids, walked, reached = [f"robot {k}" for k in range(20)], [tiles], 0
    faces, aims = np.zeros(20, int), np.full((20, 2), -1)

    def placed(tile, heading=0):
        (x, y, *_), pose = grid.centres_of(np.array([tile]))[0], pose_at(0, 0)
        angle = yaw + heading * np.pi / 2
        pose.position.x, pose.position.y = float(x), float(y)
        pose.orientation.z, pose.orientation.w = float(np.sin(angle / 2)), float(np.cos(angle / 2))
        return pose

    for step in range(40):
        new = (walked[-1] == aims).all(axis=1) | (aims[:, 0] < 0)
        reached += int(new.sum()) if step else 0
        aims[new] = np.argwhere(HALL == 0)[rng.integers(0, HALL.size, new.sum())]
        goals.publish(AgentGoals(ids=[ids[k] for k in np.flatnonzero(new)], poses=[placed(t) for t in aims[new]]))
        states.publish(AgentStates(ids=ids, poses=[placed(*each) for each in zip(walked[-1], faces)]))
        running.wait_until(lambda step=step: len(heard) > step, 60)
        order = [ids.index(id) for id in heard[step].ids]
        walked.append(np.zeros_like(tiles))
        walked[-1][order] = np.reshape(heard[step].tiles, (-1, 2))
        faces[order] = np.array(heard[step].headings)
    assert conflicts(np.array(walked), HALL != 0) == [] and reached > 20
    used = {action for message in heard for action in message.actions}
    four = {AgentActions.PLUS_X, AgentActions.PLUS_Y, AgentActions.MINUS_X, AgentActions.MINUS_Y}
    turning = {AgentActions.FORWARD, AgentActions.TURN_LEFT, AgentActions.TURN_RIGHT}
    assert used - {AgentActions.WAIT} == (four if motion == "four" else turning)


def test_an_agent_that_falls_silent_stands_and_comes_back(running, agents):
    assert running.set_parameter("silent_after_s", 0.3).successful
    agents.do_step()
    agents.silent = {"e"}
    agents.go({"e": (0, 5)})
    stood = tuple(agents.tiles["e"][:2])
    walk(agents, lambda message: state(message, "e") == AgentActions.SILENT)
    problem(running, "not heard of", "0.3 s", "e")
    agents.go({"a": (4, 9), "d": (4, 0)})  # along the line on which it stands
    near = {stood, *((stood[0] + r, stood[1] + c) for r, c in ((0, 1), (1, 0), (0, -1), (-1, 0)))}

    def others_there(message):
        return all(state(message, id) == AgentActions.AT_GOAL for id in "abcd")

    message = walk(agents, others_there)
    assert message.actions[list(message.ids).index("e")] == AgentActions.WAIT
    walked = agents.positions()
    assert conflicts(walked, HALL != 0) == []
    assert {tuple(tile) for tile in walked[:, 4]} <= near
    agents.silent = set()
    walk(agents, lambda message: state(message, "e") == AgentActions.AT_GOAL)
    running.wait_until(lambda: "not heard of" not in running.problem, 30)
    assert conflicts(agents.positions(), HALL != 0) == []


def test_a_tile_that_is_blocked_on_the_way(start_node):
    wall = HALL.copy()
    wall[:7, 5] = 100
    running = start_node(wall)
    agents = Agents(running, {"a": (0, 4, 0), "b": (7, 4, 0)}, {"a": (0, 6), "b": (7, 9)})
    walk(agents, lambda message: state(message, "b") == AgentActions.AT_GOAL)
    agents.go({"b": (7, 8)})
    changed = wall.copy()
    changed[7, 5], changed[0, 5] = 100, 0  # one door closes, another one opens
    running.publish_map(changed)
    before = len(agents.walked)
    walk(agents, all_there)
    assert conflicts(agents.positions()[before:], changed != 0) == []
    assert agents.tiles["a"][:2] == [0, 6]
    running.publish_map(np.where(wall == 0, 0, 100).astype(np.int8)[:, :6])  # another map: agents outside are told of
    agents.tell()
    problem(running, "agent 'a'", "(3.25, 0.25)", "outside the map")
    assert running.facts["agents on the map"] == "0" and running.facts["agents"] == "2"


def test_tiles_of_several_cells(start_node):
    """Tiles of 5 cells of 0.1 m, on a map that is no whole number of them."""
    cells = np.zeros((41, 51), np.int8)  # 8 x 10 tiles, and some more cells
    cells[:30, 27] = 100  # blocks the sixth tile of the first six rows
    running = start_node(map_message(cells, RESOLUTION / 5), tile_size=0.42)
    wall = HALL.copy()
    wall[:6, 5] = 100
    assert running.facts["map"].startswith("9 x 11 tiles of 0.5 m")
    agents = Agents(running, {"a": (0, 4, 0)}, {"a": (0, 6)})
    walk(agents, all_there)
    assert conflicts(agents.positions(), wall != 0) == []
    assert running.set_parameter("tile_size", 0.0).successful
    running.wait_until(lambda: running.facts["map"].startswith("41 x 51 tiles"), 30)


def test_an_id_that_leaves_and_comes_back(running, agents):
    for _ in range(3):
        agents.do_step()
    agents.remove("e")
    message = walk(agents, lambda message: True)
    assert "e" not in message.ids and len(message.ids) == 4
    agents.tiles["e"] = [3, 3, 0]
    message = walk(agents, lambda message: "e" in message.ids)
    assert state(message, "e") == AgentActions.NO_GOAL  # its goal left with it
    agents.go({"e": (0, 4)})
    walk(agents, all_there)
    assert conflicts(agents.positions(), HALL != 0) == []


def test_goals_that_are_cleared(running, agents):
    goals = running.publisher(AgentGoals, "/fleet_planner/agent_goals", 1000)
    agents.do_step()
    goals.publish(AgentGoals(cleared=["a", "nobody"]))
    walk(agents, lambda message: state(message, "a") == AgentActions.NO_GOAL)


@pytest.mark.parametrize(
    "tile, words",
    [
        ((4, 12), ["(6.25, 2.25)", "outside the map"]),
        ((4, NAN), ["(nan, 2.25)", "finite"]),
        ((2, 2), ["tile [2, 2]", "agent 'b'"]),
    ],
    ids=["outside", "nan", "same tile"],
)
def test_a_new_agent_that_has_no_place_is_named_and_the_others_go_on(running, tile, words):
    agents = Agents(running, {"b": (2, 2, 0)}, {"b": (2, 2)})
    agents.do_step()
    agents.tiles["x/1"] = [*tile, 0]
    agents.tell()
    problem(running, "agent 'x/1'", *words)
    agents.remove("x/1")
    agents.go({"b": (2, 7)})
    message = walk(agents, all_there)
    assert list(message.ids) == ["b"]
    agents.tiles["x/1"] = [2, 2, 0]  # there is room for it now
    walk(agents, lambda message: "x/1" in message.ids)
    no_problem(running)
    agents.leave()


@pytest.mark.parametrize(
    "tile, words",
    [((INF, 0), ["inf", "finite"]), ((-3, 2), ["outside the map", "-1.25"]), ((7, 0), ["agent 'c'", "tile [7, 0]"])],
    ids=["infinite", "outside", "same tile"],
)
def test_an_agent_whose_state_cannot_be_stands_and_the_others_go_on(running, agents, tile, words):
    agents.go({id: start[:2] for id, start in FIVE.items()})  # where they are
    walk(agents, all_there)
    assert running.set_parameter("silent_after_s", 0.3).successful  # so long a step waits
    true_tile, agents.tiles["e"] = agents.tiles["e"], [*tile, 0]
    agents.tell()
    agents.silent = {"e"}
    message = walk(agents, lambda message: state(message, "e") == AgentActions.BAD_STATE)
    assert {state(message, id) for id in "abcd"} == {AgentActions.AT_GOAL}
    problem(running, "agent 'e'", *words)
    agents.silent, agents.tiles["e"] = set(), true_tile
    walk(agents, all_there)
    running.wait_until(lambda: "agent 'e'" not in running.problem, 30)


@pytest.mark.parametrize(
    "goal, words",
    [((9, 9), ["outside the map"]), ((NAN, 1), ["not finite"]), ((0, 5), ["blocked"]), ((0, 9), ["no way to it"])],
    ids=["outside", "nan", "blocked", "no way"],
)
def test_a_goal_that_cannot_be_is_named_and_the_others_go_on(start_node, goal, words):
    wall = HALL.copy()
    wall[:, 5] = 100
    running = start_node(wall)
    agents = Agents(running, {"a": (0, 0, 0), "b": (3, 0, 0)}, {"a": goal, "b": (3, 4)})
    message = walk(agents, lambda message: len(message.ids) == 2 and state(message, "b") == AgentActions.AT_GOAL)
    assert state(message, "a") == AgentActions.BAD_GOAL
    problem(running, "agent 'a'", "goal", *words)
    agents.go({"a": (0, 3)})
    walk(agents, all_there)
    no_problem(running)


@pytest.mark.parametrize(
    "message, words",
    [
        (AgentStates(ids=["a", "b"], poses=[pose_at(0, 0)]), ["2 ids and 1 poses"]),
        (AgentStates(ids=["a", "a"], poses=[pose_at(0, 0)] * 2), ["'a' comes twice"]),
        (AgentStates(ids=["a"], poses=[pose_at(0, 0)], removed=["a"]), ["'a' comes twice"]),
        (AgentStates(ids=[""], poses=[pose_at(0, 0)]), ["id of pose 0 is empty"]),
    ],
    ids=["lengths", "twice", "both", "empty"],
)
def test_a_message_that_cannot_be_is_refused_in_words(running, message, words):
    states = running.publisher(AgentStates, "/fleet_planner/agent_states", 1000)
    states.publish(message)
    problem(running, "~/agent_states was refused", *words)
    states.publish(AgentStates())
    running.wait_until(lambda: running.problem == "", 30)
    assert running.facts["agents"] == "0"


def test_another_frame_and_a_tilted_pose_are_named(running, agents):
    agents.do_step()
    states = running.publisher(AgentStates, "/fleet_planner/agent_states", 1000)
    tilted = pose_at(4, 5)
    tilted.orientation.x, tilted.orientation.w = 0.7071, 0.7071
    states.publish(AgentStates(ids=["e"], poses=[tilted]))
    agents.silent = {"e", "d"}
    states.publish(AgentStates(header=Header(frame_id="odom"), ids=["d"], poses=[pose_at(1, 1)]))
    message = walk(agents, lambda message: state(message, "d") == AgentActions.BAD_STATE, 5)
    assert state(message, "e") == AgentActions.BAD_STATE
    problem(running, "agent 'd': its pose: frame 'odom'", "agent 'e': its orientation is [0.7071")
    agents.silent = set()
    walk(agents, all_there)


def test_markers_and_map_and_topics_of_agents(start_node):
    running = start_node(agent_topics=True, marker_rate=50.0)
    markers = running.received(MarkerArray, "/fleet_planner/markers", LATCHED)
    shown = running.received(OccupancyGrid, "/fleet_planner/map", LATCHED)
    agents = Agents(running, {"red": (0, 0, 0), "no name": (5, 5, 1)}, {"red": (0, 3)})
    agents.do_step()
    paths = running.received(Path, "/red/plan")
    agents.do_step()
    running.wait_until(lambda: paths and markers and shown, 30)
    assert len(paths[-1].poses) == 2 and np.array_equal(np.reshape(shown[-1].data, HALL.shape), HALL)
    running.wait_until(lambda: sum(len(m.points) for m in markers[-1].markers if "agents" in m.ns) == 2, 30)
    lines = {marker.ns: len(marker.points) for marker in markers[-1].markers}
    assert lines["headings"] == 4 and lines["goals"] == 2
    agents.remove("red")
    agents.do_step()
    running.wait_until(lambda: not [p for p in running.node.publishers if p.topic_name == "/red/plan"], 30)


def test_reports_count_by_their_stamps(start_node):
    """Over DDS: an old report that comes last is passed over, and is not taken for a sign of life."""
    running = start_node(lockstep=False, step_s=0.2, silent_after_s=1.0, motion="four")
    states = running.publisher(AgentStates, "/fleet_planner/agent_states", 1000)
    heard = running.received(AgentActions, "/fleet_planner/agent_actions")

    def tell(stamp, tile):
        header = Header(stamp=Time(sec=stamp))
        states.publish(AgentStates(header=header, ids=["a"], poses=[pose_at(*tile)]))

    for stamp in range(100, 110):
        tell(stamp, (3, 3))
        time.sleep(0.05)
    running.wait_until(lambda: heard and "a" in heard[-1].ids, 30)
    heard.clear()
    end = time.monotonic() + 4
    while time.monotonic() < end:
        tell(50, (3, 5))
        time.sleep(0.05)
    running.wait_until(lambda: heard and heard[-1].states[0] == AgentActions.SILENT, 30)
    assert all(list(message.tiles) == list(message.start_tiles) == [3, 3] for message in heard)


def test_a_clock_that_nobody_publishes_is_told_of(start_node):
    running = start_node(use_sim_time=True)
    problem(running, "no /clock")


def test_tiles_that_are_occupied_over_dds(running, agents):
    occupied = running.publisher(AgentStates, "/fleet_planner/occupied", 10)
    occupied.publish(AgentStates(ids=["pallet", "nowhere"], poses=[pose_at(3, 4), pose_at(NAN, 1)]))
    running.wait_until(lambda: running.facts["occupied"] == "pallet", 30)
    agents.do_step()
    problem(running, "occupies tiles as 'nowhere'", "nan")
    walk(agents, lambda message: sum(state(message, id) == AgentActions.AT_GOAL for id in message.ids) >= 4)
    assert (3, 4) not in {tuple(tile) for step in agents.positions() for tile in step.tolist()}
    occupied.publish(AgentStates(removed=["pallet", "nowhere"]))
    running.wait_until(lambda: running.facts["occupied"] == "", 30)
    agents.go({"a": (3, 4)})
    walk(agents, lambda message: agents.tiles["a"][:2] == [3, 4])
    no_problem(running)


def test_a_state_file_that_cannot_be_read_is_told_of(start_node, tmp_path):
    (tmp_path / "fleet.json").write_text("{")
    running = start_node(state_file=str(tmp_path / "fleet.json"))
    agents = Agents(running, {"a": (0, 0, 0)}, {"a": (0, 3)})
    agents.tell()
    problem(running, "state_file", "fleet.json", "Remove it")
    assert running.facts["steps"] == "0"
    (tmp_path / "fleet.json").unlink()
    walk(agents, all_there)
    no_problem(running)


def test_steps_keep_the_time_and_go_on_without_one_that_is_late(start_node):
    """With a clock: no step before its time; an agent between two tiles is told nothing new until it has arrived."""
    running = start_node(lockstep=False, step_s=0.2, silent_after_s=20.0)
    agents = Agents(running, {"a": (0, 0, 0), "b": (4, 0, 0)}, {"a": (0, 9), "b": (4, 9)})
    began = time.monotonic()
    for _ in range(3):
        agents.do_step()
    assert time.monotonic() - began > 0.3
    heard = running.received(AgentActions, "/fleet_planner/agent_actions")
    states = running.publisher(AgentStates, "/fleet_planner/agent_states", 1000)
    row, col, heading = agents.tiles["a"]
    late, planned = pose_at(row, col - 0.5), agents.tiles["b"]
    before = len(heard)
    while agents.tiles["b"][1] < 9:
        states.publish(AgentStates(ids=["a", "b"], poses=[late, pose_at(*agents.tiles["b"])]))
        running.wait_until(lambda before=before: len(heard) > before, 30)
        for message in heard[before:]:
            told = {id: k for k, id in enumerate(message.ids)}
            if "b" in told:
                agents.tiles["b"] = (*message.tiles[2 * told["b"] : 2 * told["b"] + 2], message.headings[told["b"]])
            if "a" in told:
                assert tuple(message.tiles[2 * told["a"] : 2 * told["a"] + 2]) == (row, col)
        before = len(heard)
    assert planned != agents.tiles["b"]
    walk(agents, lambda message: state(message, "a") == AgentActions.AT_GOAL)


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("motion", "six", ["motion"]),
        ("step_s", 0.0, ["step_s"]),
        ("arrival_tolerance", 0.7, ["arrival_tolerance"]),
        ("fleet.size", 99, ["size"]),
        ("fleet.horizon", 9, ["horizon"]),
        ("map_frame", "odom", ["map_frame"]),
    ],
)
def test_a_wrong_parameter_is_refused_while_running(running, name, value, words):
    result = running.set_parameter(name, value)
    assert not result.successful and all(word in result.reason for word in words), result.reason


def test_settings_that_do_not_go_together_are_refused_and_others_count_at_once(running, agents):
    agents.do_step()
    for name, value in (("fleet.horizon", 5), ("fleet.ticks_per_move", 2)):
        result = running.set_parameter(name, value)
        assert result.successful, result.reason
    result = running.set_parameter("fleet.horizon", 1)
    assert not result.successful and "horizon is 1 ticks" in result.reason
    walk(agents, all_there, 250)
    assert conflicts(agents.positions(), HALL != 0) == []


def test_every_parameter_is_described(running):
    for name in rules_of(FleetParameters):
        assert len(running.node.describe_parameter(name).description) > 10


def request(starts, goals, **fields):
    message = PlanFleet.Request(
        starts=PoseArray(poses=[pose_at(*tile) for tile in starts]),
        goals=PoseArray(poses=[pose_at(*tile) for tile in goals]),
    )
    for name, value in fields.items():
        setattr(message, name, value)
    return message


@pytest.mark.parametrize(
    "message, code, words",
    [
        (request([], []), codes.INVALID_REQUEST, ["0 starts"]),
        (request([(0, 0)], []), codes.INVALID_REQUEST, ["1 starts and 0 goals"]),
        (request([(0, 0)], [(1, 1)], time_limit_s=-1.0), codes.INVALID_REQUEST, ["time_limit_s is -1.0"]),
        (request([(0, 0)], [(1, 1)], step_s=NAN), codes.INVALID_REQUEST, ["step_s is nan"]),
    ],
    ids=["nothing", "lengths", "time", "step"],
)
def test_a_request_that_cannot_be_is_answered_in_words(running, message, code, words):
    response = running.plan(message, 60)
    assert response.code == code and all(word in response.message for word in words), response.message


def test_a_request_in_another_frame_or_too_many_agents(running):
    message = request([(0, 0)], [(1, 1)])
    message.goals.header.frame_id = "odom"
    response = running.plan(message, 60)
    assert response.code == codes.TF_ERROR and "the goals: frame 'odom'" in response.message
    message = request([(0, 0)], [(1, 1)])
    message.starts.poses[0].orientation.y = 3.0
    response = running.plan(message, 60)
    assert response.code == codes.INVALID_REQUEST and "agent 0 starts with the orientation" in response.message
    assert running.set_parameter("max_agents", 1).successful
    response = running.plan(request([(0, 0), (0, 1)], [(1, 1), (2, 2)]), 60)
    assert response.code == codes.INVALID_REQUEST and "max_agents" in response.message


def test_a_request_without_a_map(start_node):
    response = start_node(None).plan(request([(0, 0)], [(1, 1)]), 60)
    assert response.code == codes.NO_MAP and "map_file" in response.message


def test_plan_fleet_over_dds(running):
    starts, goals = list(FIVE.values()), list(CROSSING.values())
    response = running.plan(request(starts, goals, time_limit_s=1.0, step_s=0.5, seed=3), 300)
    assert response.code == codes.NONE, response.message
    longest = max(len(path.poses) for path in response.paths)
    walked = np.array([[tile_of(pose.pose)[:2] for pose in path.poses] for path in response.paths]).swapaxes(0, 1)
    assert conflicts(walked, HALL != 0) == [] and len(walked) == longest == response.makespan + 1
    assert walked[0].tolist() == [list(start[:2]) for start in starts]
    assert walked[-1].tolist() == [list(goal) for goal in goals]
    assert response.sum_of_costs >= response.lower_bound > 0
    away = (walked != walked[-1]).any(axis=2)
    last = np.array([np.flatnonzero(each).max(initial=-1) + 1 for each in away.T])
    assert np.allclose(response.durations, last * 0.5) or (np.array(response.durations) >= last * 0.5).all()
    times = [pose.header.stamp for pose in response.paths[0].poses]
    seconds = np.array([t.sec + 1e-9 * t.nanosec for t in times])
    assert (
        np.allclose(np.diff(seconds), 0.5) and response.header.frame_id == "map" and response.device.startswith(DEVICE)
    )
    assert list(running.plan(request(starts, goals, time_limit_s=0.5, without_paths=True), 300).paths) == []
    assert running.plan(request(starts, goals[:1]), 300).code == codes.INVALID_REQUEST  # and then a good one
    assert running.plan(request(starts, goals, time_limit_s=0.2), 300).code == codes.NONE


def test_steps_go_on_while_what_whole_plans_need_is_compiled(start_node, monkeypatch):
    missing, stopped = {"whole plans of fleets, turning"}, threading.Event()
    monkeypatch.setattr("gpu_planners.nodes.common.planner_node.is_compiled", lambda what: what not in missing)

    def compile_parts(parts, told, is_stopped):
        assert {part.what for part in parts} == missing
        stopped.wait(120)
        missing.clear()
        return {}

    monkeypatch.setattr("gpu_planners.nodes.common.compiling.compile_parts", compile_parts)
    running = start_node()
    try:
        walk(Agents(running, FIVE, CROSSING), all_there)
        assert running.status.message.startswith("compiling")
        response = running.call(running.client, request(list(FIVE.values()), list(CROSSING.values())), 60)
        assert response.code == codes.NOT_BEGUN and "it is being compiled" in response.message
    finally:
        stopped.set()
    running.wait_until(lambda: running.status.message == "ready", 60)
    assert running.plan(request(list(FIVE.values()), list(CROSSING.values())), 300).code == codes.NONE


def test_a_plan_that_cannot_be_is_told_at_once_and_with_its_own_code(start_node):
    lane = np.zeros((1, 10), np.int8)
    running = start_node(lane)
    response = running.plan(request([(0, 0), (0, 9)], [(0, 9), (0, 0)], time_limit_s=600.0), 60)
    assert response.code == codes.NO_VALID_PATH and codes.TIMEOUT not in response.codes
    assert "no plan exists in which every agent reaches its goal" in response.message
    assert "agent 0" in response.message and "that is proven" in response.message


def test_steps_and_maps_go_on_while_a_whole_plan_is_made(start_node, monkeypatch):
    began, go_on = threading.Event(), threading.Event()
    solve = FleetPlanner.solve

    def slowly(self, *arguments, **more):
        began.set()
        assert go_on.wait(120)
        return solve(self, *arguments, **more)

    wall = HALL.copy()
    wall[:7, 5] = 100
    running = start_node(wall)
    agents = Agents(running, {"a": (0, 4, 0), "b": (7, 4, 0)}, {"a": (0, 3), "b": (7, 9)})
    walk(agents, all_there)
    monkeypatch.setattr(FleetPlanner, "solve", slowly)
    answer = running.client.call_async(request([(0, 0)], [(7, 9)], time_limit_s=0.5))
    try:
        running.wait_until(began.is_set, 60)
        agents.go({"a": (0, 4), "b": (7, 8)})
        walk(agents, all_there)
        changed = wall.copy()
        changed[7, 5], changed[0, 5] = 100, 0
        running.publish_map(changed)  # returns when it was taken
        agents.go({"a": (0, 6)})
        before = len(agents.walked)
        walk(agents, all_there)
        assert conflicts(agents.positions()[before:], changed != 0) == [] and not answer.done()
    finally:
        go_on.set()
    running.wait_until(answer.done, 60)
    assert answer.result().code == codes.NONE  # by the map as it was: through the door that has closed since


@pytest.mark.parametrize(
    "start, goal, code, words",
    [
        ((9, 9), (0, 0), codes.START_OUTSIDE_MAP, "start is outside"),
        ((0, 0), (9, 9), codes.GOAL_OUTSIDE_MAP, "goal is outside"),
        ((0, 5), (0, 0), codes.START_OCCUPIED, "start is blocked"),
        ((0, 0), (0, 5), codes.GOAL_OCCUPIED, "goal is blocked"),
        ((NAN, 0), (0, 0), codes.START_NOT_FINITE, "start is not finite"),
        ((0, 0), (INF, 0), codes.GOAL_NOT_FINITE, "goal is not finite"),
        ((3, 0), (0, 0), codes.START_TAKEN, "starts there"),
        ((0, 0), (3, 4), codes.GOAL_TAKEN, "has that goal"),
        ((0, 0), (0, 9), codes.NO_VALID_PATH, "no path"),
    ],
)
def test_plan_fleet_names_the_agent_at_fault_and_plans_the_others(start_node, start, goal, code, words):
    wall = HALL.copy()
    wall[:, 5] = 100
    running = start_node(wall)
    response = running.plan(request([(3, 0), start], [(3, 4), goal], time_limit_s=0.5), 300)
    assert list(response.codes) == [codes.NONE, code] and response.code == code
    assert "agent 1" in response.message and words in response.message and words in response.texts[1]
    assert tile_of(response.paths[0].poses[-1].pose)[:2] == [3, 4]


ZONES = {  # {kind: what its zone says beside its corners}, over the tiles (0 .. 2, 4)
    "BLOCKED": {},
    "NO_STOPPING": {},
    "DIRECTED": {"direction": 0.0, "directedLimitation": "STRICT"},
    "SPEED_LIMIT": {"maximumSpeed": 0.25},
}


@pytest.mark.parametrize(
    "kind, step_s, words",
    [
        ("BLOCKED", 1.0, ""),
        ("NO_STOPPING", 1.0, "NO_STOPPING zones, and agents may wait anywhere in a plan"),
        ("DIRECTED", 1.0, "lanes that nobody may drive against"),
        ("SPEED_LIMIT", 1.0, "0.25 m/s, and agents go 0.5 m/s; allowed: step_s of at least 2 s"),
        ("SPEED_LIMIT", 2.0, ""),
        ("none", 1.0, "zones_file cannot be used"),
    ],
)
def test_plan_fleet_keeps_zones_or_refuses_by_name(start_node, tmp_path, kind, step_s, words):
    """What zones close is closed for plans too; what plans cannot keep is refused, with the kind of zone."""
    corners = [{"x": x, "y": y} for x, y in ((2.1, 0.1), (2.4, 0.1), (2.4, 1.4), (2.1, 1.4))]
    zone = {"zoneId": "z", "zoneType": kind, "vertices": corners} | ZONES.get(kind, {})
    (tmp_path / "zones.json").write_text(json.dumps({"mapId": "any", "zoneSetId": "z", "zones": [zone]}))
    running = start_node(zones_file=str(tmp_path / "zones.json"))
    response = running.plan(request([(0, 0)], [(0, 9)], time_limit_s=0.5, step_s=step_s), 300)
    assert response.code == (codes.INVALID_REQUEST if words else codes.NONE) and words in response.message
    tiles = [tile_of(pose.pose)[:2] for path in response.paths for pose in path.poses]
    assert words or tiles[-1] == [0, 9]
    assert kind != "BLOCKED" or not any(tile in tiles for tile in ([0, 4], [1, 4], [2, 4]))


def test_kill_and_restart(tmp_path):
    """A node that is killed says nothing; the next one takes over agents where they are. It ends cleanly on Ctrl-C."""
    import rclpy
    from rclpy.node import Node
    from running_node import new_context

    from gpu_planners.grid.maps.map_files import save_map_yaml

    save_map_yaml(tmp_path / "hall.yaml", GridMap(HALL == 0, resolution=RESOLUTION))
    context = new_context()
    client, heard = Node("client", context=context), []
    client.create_subscription(AgentActions, "/fleet_planner/agent_actions", heard.append, 10)
    states = client.create_publisher(AgentStates, "/fleet_planner/agent_states", 10)
    goals = client.create_publisher(AgentGoals, "/fleet_planner/agent_goals", 10)
    executor = rclpy.executors.SingleThreadedExecutor(context=context)
    executor.add_node(client)
    command = [sys.executable, "-m", "gpu_planners.nodes.fleet.node", "--ros-args", "-p", "lockstep:=true"]
    command += ["-p", f"map_file:={tmp_path / 'hall.yaml'}", "-p", "device:=cpu"]
    environment = os.environ | {"ROS_DOMAIN_ID": str(context.get_domain_id())}
    tile, walked = [0, 0, 0], [[0, 0]]

    def start():
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def do_steps(count):
        """Tell until there is an answer, and do it."""
        nonlocal tile
        for _ in range(count):
            heard.clear()
            end = time.monotonic() + 120
            while not heard:
                assert time.monotonic() < end
                goals.publish(AgentGoals(ids=["a"], poses=[pose_at(5, 5)]))
                states.publish(AgentStates(ids=["a"], poses=[pose_at(*tile)]))
                executor.spin_once(0.5)
            tile = [*heard[-1].tiles, heard[-1].headings[0]]
            walked.append(tile[:2])

    process = start()
    try:
        do_steps(4)
        process.kill()
        process.wait(10)
        process = start()
        do_steps(14)
        assert tile[:2] == [5, 5] and heard[-1].step < 100
        assert conflicts(np.array(walked)[:, None], HALL != 0) == []
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert "Traceback" not in process.stdout.read()
    finally:
        process.kill()
        executor.shutdown()
        client.destroy_node()
        rclpy.shutdown(context=context)


def test_a_wrong_parameter_ends_the_start_in_words():
    command = [sys.executable, "-m", "gpu_planners.nodes.fleet.node", "--ros-args", "-p", "motion:=six"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 1 and "motion" in run.stderr and "four, turning" in run.stderr
