"""Every bad request or map is answered with a code and a text; one bad agent does not fail the others.

Over real DDS; what the node knew before a bad request it knows after it.
"""

import array

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseArray, Quaternion
from grid_harness import RunningNode, centre, map_message, poses, request, stamped
from nav_msgs.msg import OccupancyGrid
from nav_msgs.srv import GetPlan
from PIL import Image
from rosgraph_msgs.msg import Clock
from running_node import shared, starter

from gpu_planners.device import cuda_problem
from gpu_planners.errors import SettingsError
from gpu_planners.grid import BlockPlanner
from gpu_planners.nodes.common import map_codes as codes
from gpu_planners.nodes.grid.conversions import path_set_of
from gpu_planners.nodes.grid.node import main
from gpu_planners.nodes.grid.parameters import ALGORITHMS
from gpu_planners_msgs.srv import PlanAgents

NAN, INF = float("nan"), float("inf")
BLOCKED, OUTSIDE, CLOSED_ROOM = (9 - 1, 3), (4, 10), (5, 4)


start_node = starter(RunningNode)


def node_with_limits():
    node = RunningNode(max_agents=100, max_path_poses=1000)
    node.good_words = node.plan(request()).words
    return node


node_of_module, running = shared(node_with_limits)


def assert_serves(running):
    good = running.plan(request())
    assert good.code == codes.NONE and good.words == running.good_words


def with_points(**points):
    message = request(starts=[], goals=[])
    for name, values in points.items():
        setattr(message, name, array.array("d", values))
    return message


def with_pose(name, **position):
    message = request()
    for axis, value in position.items():
        setattr(getattr(message, name).poses[0].position, axis, value)
    return message


BAD_AGENTS = {
    "start outside": (request(starts=[OUTSIDE]), codes.START_OUTSIDE_MAP, "start lies outside"),
    "start far outside": (with_pose("starts", x=1e300), codes.START_OUTSIDE_MAP, "start lies outside"),
    "start left of the map": (with_pose("starts", x=-0.01), codes.START_OUTSIDE_MAP, "start lies outside"),
    "goal outside": (request(goals=[OUTSIDE]), codes.GOAL_OUTSIDE_MAP, "goal lies outside"),
    "start on an obstacle": (request(starts=[BLOCKED]), codes.START_OCCUPIED, "start lies on a blocked"),
    "goal on an obstacle": (request(goals=[BLOCKED]), codes.GOAL_OCCUPIED, "goal lies on a blocked"),
    "no path": (request(goals=[CLOSED_ROOM]), codes.NO_VALID_PATH, "no path"),
    "start NaN": (with_pose("starts", y=NAN), codes.START_NOT_FINITE, "start has a coordinate"),
    "goal infinite": (with_pose("goals", x=INF), codes.GOAL_NOT_FINITE, "goal has a coordinate"),
    "start NaN as a point": (
        with_points(start_points=[NAN, 1.0], goal_points=[1.0, 1.0]),
        codes.START_NOT_FINITE,
        "start has",
    ),
}


@pytest.mark.parametrize("case", BAD_AGENTS)
@pytest.mark.parametrize("algorithm", ["exact", "astar"])
def test_a_bad_agent_has_a_code_and_a_text(running, case, algorithm):
    message, code, text = BAD_AGENTS[case]
    message.algorithm, message.path_agents = algorithm, [0]
    response = running.plan(message)
    assert response.code == codes.NONE and list(response.codes) == [code]
    assert text in response.message and "agent 0" in response.message
    assert text in dict(zip(response.text_codes, response.code_texts))[code]
    assert response.costs[0] == INF and response.lengths[0] == 0
    assert response.paths[0].poses == [] and len(path_set_of(response).path(0)) == 0
    assert_serves(running)


def test_bad_agents_do_not_fail_the_others(running):
    tiles = [(0, 0), OUTSIDE, BLOCKED, CLOSED_ROOM, (0, 1)]
    message = request(starts=tiles, goals=[(9, 9)] * 5)
    message.starts.poses.append(poses([(NAN, 0.0)]).poses[0])
    message.goals.poses.append(poses([centre(0, 0)]).poses[0])
    response = running.plan(message)
    assert list(response.codes) == [0, 203, 205, 208, 0, 281]
    alone = running.plan(request(starts=[(0, 0), (0, 1)], goals=[(9, 9)] * 2))
    assert [response.costs[0], response.costs[4]] == list(alone.costs)
    several, single = path_set_of(response), path_set_of(alone)
    assert several.path(0).tolist() == single.path(0).tolist() and several.path(4).tolist() == single.path(1).tolist()
    assert "2 of 6" in response.message and set(response.text_codes) == {0, 203, 205, 208, 281}


def three_starts():
    return request(starts=[(0, 0), (0, 1), (0, 2)], goals=[(9, 9), (9, 8)])


def both_kinds():
    message = request()
    message.start_points = array.array("d", [1.0, 1.0])
    return message


def with_orientation(*xyzw):
    message = request()
    message.goals.poses[0].orientation = Quaternion(**dict(zip("xyzw", map(float, xyzw))))
    return message


BAD_REQUESTS = {
    "goal turned by half a rotation": (
        with_orientation(0, 0, 0, 0.5),
        codes.INVALID_REQUEST,
        ["goal 0", "0.5", "length 1"],
    ),
    "goal turned by NaN": (with_orientation(0, 0, NAN, 1), codes.INVALID_REQUEST, ["goal 0", "nan", "length 1"]),
    "more agents than allowed": (
        request(starts=[(0, 0)] * 101),
        codes.INVALID_REQUEST,
        ["101 agents", "100", "max_agents"],
    ),
    "more goals than allowed": (request(goals=[(0, 0)] * 101), codes.INVALID_REQUEST, ["101 agents", "max_agents"]),
    "more points than allowed": (
        with_points(start_points=[1.0] * 202, goal_points=[1.0, 1.0]),
        codes.INVALID_REQUEST,
        ["101 agents"],
    ),
    "more path_agents than allowed": (
        request(path_agents=[0] * 1001),
        codes.INVALID_REQUEST,
        ["1001 poses", "1000", "max_path_poses"],
    ),
    "longer paths than allowed": (
        request(path_agents=[0] * 100),
        codes.INVALID_REQUEST,
        ["1600 poses", "1000", "max_path_poses"],
    ),
    "no start": (request(starts=[]), codes.INVALID_REQUEST, ["0 starts", "1 goals"]),
    "no goal": (request(goals=[]), codes.INVALID_REQUEST, ["1 starts", "0 goals"]),
    "two goals for three starts": (three_starts(), codes.INVALID_REQUEST, ["3 starts", "2 goals"]),
    "odd points": (
        with_points(start_points=[1.0], goal_points=[1.0, 1.0]),
        codes.INVALID_REQUEST,
        ["start_points", "1 numbers"],
    ),
    "starts twice": (both_kinds(), codes.INVALID_REQUEST, ["starts twice"]),
    "another frame": (request(frame="moon"), codes.TF_ERROR, ["'moon'", "'map'", "the starts"]),
    "unknown algorithm": (request(algorithm="theta"), codes.INVALID_PLANNER, ["'theta'", *ALGORITHMS]),
    "path of an agent that is not there": (
        request(path_agents=[1]),
        codes.INVALID_REQUEST,
        ["path_agents", "agent 1", "0 to 0"],
    ),
}


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_a_bad_request_is_named_and_the_next_one_answered(running, case):
    message, code, words = BAD_REQUESTS[case]
    response = running.plan(message)
    assert response.code == code and all(word in response.message for word in words), response.message
    assert not response.codes and not response.words and not response.paths
    assert_serves(running)


ODD_NUMBERS = (NAN, INF, -INF, -0.0, 5e-324, 1e-300, -1.0, 1e-3, 1e5, 2.0**31, 2.0**63, 1e19, 1e39, 1e154, 1e300)
ODD_FLOATS = (NAN, INF, -INF, -1.0, 1e-45, 1e-30, 1e-10, 1e-3, 1e5, 1e10, 3e38)  # float32
ODD_TEXTS = ("\0", "exact\0", "x" * 100_000, "\n", "%s%n{}", "\u202e", "漢")


@pytest.mark.parametrize("algorithm", ["exact", "astar"])
def test_whatever_a_field_holds_the_node_answers_in_words(running, algorithm):
    """Past DDS too: DDS ends a text at its first NUL."""

    def asked(message):
        message.algorithm, message.path_agents = message.algorithm or algorithm, [0]
        for ask in (running.plan, lambda message: running.answer_without_dds("plan_agents", message)):
            response = ask(message)
            assert response.message.isprintable() and "internal" not in response.message, response.message
            assert len(response.message) < 3000
        return response

    for value in ODD_NUMBERS:
        for name in ("starts", "goals"):
            for part, axes in (("position", "xyz"), ("orientation", "xyzw")):
                for axis in axes:
                    message = request()
                    setattr(getattr(getattr(message, name).poses[0], part), axis, value)
                    asked(message)
        asked(with_points(start_points=[value, 1.0], goal_points=[1.0, 1.0]))
        asked(with_points(start_points=[1.0, 1.0], goal_points=[1.0, value]))
    for text in ODD_TEXTS:
        assert asked(request(algorithm=text)).code and asked(request(frame=text)).code == codes.TF_ERROR
    assert_serves(running)


def test_whatever_a_map_holds_the_node_answers_in_words(running):
    places = [
        (part, axis, value)
        for part, axes in (("position", "xyz"), ("orientation", "xyzw"))
        for axis in axes
        for value in ODD_NUMBERS
    ]
    maps = [spoilt(lambda m, p=p: setattr(getattr(m.info.origin, p[0]), p[1], p[2])) for p in places]
    maps += [spoilt(lambda m, n=n: setattr(m.info, n, 2**32 - 1)) for n in ("width", "height")]
    fine_and_coarse = [spoilt(lambda m, r=r: setattr(m.info, "resolution", r)) for r in ODD_FLOATS]
    for radius, messages in ((0.0, maps + fine_and_coarse), (1000.0, fine_and_coarse)):
        assert running.set_parameter("footprint_radius", radius).successful
        for message in messages:
            running.publish_map(message)
            assert "internal" not in running.plan(request()).message + running.status.message + running.problem
    assert running.set_parameter("footprint_radius", 0.0).successful
    running.publish_map(map_message())
    assert_serves(running)


def test_an_error_inside_is_answered_too(running, monkeypatch):
    for error, code in (
        (RuntimeError("the device fell off"), codes.UNKNOWN),
        (MemoryError("too much"), codes.OUT_OF_MEMORY),
        (RuntimeError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY"), codes.OUT_OF_MEMORY),
    ):

        def fail(*_, error=error):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(BlockPlanner, "plan", fail)
            response = running.plan(request())
        assert response.code == code and str(error) in response.message
        assert_serves(running)


def test_get_plan_answers_bad_requests_with_an_empty_path(running):
    client = running.client_node.create_client(GetPlan, "/grid_planner/get_plan")
    assert client.wait_for_service(10)
    good = stamped(*centre(0, 0))
    for start, tolerance, code in (
        (stamped(NAN, 0), 0.0, 281),
        (stamped(-1, 0), 0.0, 203),
        (stamped(*centre(0, 0), frame="moon"), 0.0, 202),
        (good, NAN, 287),
        (good, -1.0, 287),
    ):
        response = running.call(client, GetPlan.Request(start=start, goal=stamped(*centre(9, 9)), tolerance=tolerance))
        assert response.plan.poses == []
        running.wait_until(lambda code=code: f"code {code}:" in running.facts["last answer"])
    assert_serves(running)


def spoilt(change):
    message = map_message()
    change(message)
    return message


BAD_MAPS = {
    "empty": (OccupancyGrid(), ["empty", "width 0"]),
    "too short": (spoilt(lambda m: setattr(m, "data", m.data[:50])), ["50 cells", "100"]),
    "too long": (spoilt(lambda m: m.data.extend(m.data)), ["200 cells", "100"]),
    "value out of range": (spoilt(lambda m: m.data.__setitem__(13, 101)), ["101", "(1, 3)"]),
    "value below -1": (spoilt(lambda m: m.data.__setitem__(0, -2)), ["-2", "(0, 0)"]),
    "no resolution": (spoilt(lambda m: setattr(m.info, "resolution", 0.0)), ["resolution"]),
    "origin not finite": (spoilt(lambda m: setattr(m.info.origin.position, "y", NAN)), ["origin"]),
    "tilted": (spoilt(lambda m: setattr(m.info.origin.orientation, "x", 0.7)), ["tilted"]),
}


@pytest.mark.parametrize("case", BAD_MAPS)
def test_a_bad_map_is_refused_and_the_one_before_kept(running, case):
    message, words = BAD_MAPS[case]
    running.publish_map(message)
    response = running.plan(request())
    assert response.code == codes.NONE and response.words == running.good_words
    assert "warning" in response.message and all(word in response.message for word in words), response.message
    running.publish_map(map_message())
    assert "warning" not in running.plan(request()).message


def test_no_map_yet_and_a_bad_first_one(start_node):
    running = start_node(None)
    response = running.plan(request())
    assert response.code == codes.NO_MAP and "no map" in response.message and "map_file" in response.message
    running.publish_map(OccupancyGrid())
    response = running.plan(request())
    assert response.code == codes.NO_MAP and "empty" in response.message
    running.publish_map(map_message())
    assert running.plan(request()).code == codes.NONE


def test_a_map_without_a_free_cell(start_node):
    running = start_node(map_message(np.full((3, 3), 100)))
    response = running.plan(request(starts=[(1, 1)], goals=[(0, 0)]))
    assert response.code == codes.NONE and list(response.codes) == [codes.START_OCCUPIED]


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("none.yaml", None, ["none.yaml", "no map file"]),
        ("bad.map", "type octile\nheight x", ["bad.map"]),
        ("map.txt", "", ["map.txt", ".yaml", ".map"]),
        ("map.yaml", "image: map.pgm\nresolution: wide", ["map.yaml", "resolution is 'wide'"]),
    ],
)
def test_a_bad_map_file_is_an_error_that_names_it(start_node, tmp_path, name, text, words):
    """Nothing listens to a topic then, so that nothing is waited for."""
    if text is not None:
        (tmp_path / name).write_text(text)
    running = start_node(None, map_file=str(tmp_path / name))
    response = running.plan(request())
    assert response.code == codes.NO_MAP and "map_file was refused" in response.message
    assert all(word in response.message for word in words), response.message
    running.wait_until(lambda: running.status.level == DiagnosticStatus.ERROR)
    assert "map_file was refused" in running.status.message and all(word in running.status.message for word in words)
    assert not [
        topic
        for topic, _ in running.node.get_subscriber_names_and_types_by_node("grid_planner", "/")
        if topic == "/map"
    ]


def test_the_rules_of_map_server_are_a_parameter(start_node, tmp_path):
    rows = bytes([255, 255, 255, 0] * 3)  # white, and not opaque
    Image.frombytes("RGBA", (3, 1), rows).save(tmp_path / "map.png")
    fields = "image: map.png\nresolution: 1.0\norigin: [0, 0, 0]\nnegate: 0\noccupied_thresh: 0.65\nfree_thresh: 0.3\n"
    (tmp_path / "map.yaml").write_text(fields)
    for rules, code in (("nav2_1.3.6", codes.NONE), ("nav2_1.3.7", codes.START_OCCUPIED)):
        running = start_node(None, map_file=str(tmp_path / "map.yaml"), map_rules=rules)
        response = running.plan(PlanAgents.Request(start_points=[0.5, 0.5], goal_points=[2.5, 0.5]))
        assert list(response.codes) == [code]


def test_without_a_clock_there_is_a_problem(start_node):
    running = start_node(map_message(), use_sim_time=True)
    running.wait_until(lambda: "no /clock" in running.problem, 60)
    assert running.status.level == DiagnosticStatus.WARN
    running.publisher(Clock, "/clock").publish(Clock(clock=Time(sec=5)))
    running.wait_until(lambda: not running.problem, 60)
    assert running.status.level == DiagnosticStatus.OK


def test_bad_topics_are_reported_until_they_are_right(running, monkeypatch):
    starts, goals = (running.publisher(PoseArray, f"/grid_planner/{name}") for name in ("starts", "goals"))
    starts.publish(poses([centre(0, 0)] * 3))
    goals.publish(poses([centre(9, 9)] * 2))
    running.wait_until(lambda: "3 starts and 2 goals" in running.problem)
    goals.publish(poses([centre(9, 9)], frame="moon"))
    running.wait_until(lambda: "'moon'" in running.problem)
    starts.publish(poses([centre(0, 0)] * 101))
    running.wait_until(lambda: "101 agents" in running.problem and "max_agents" in running.problem)
    starts.publish(poses([centre(0, 0)]))
    goals.publish(poses([centre(9, 9)]))
    running.wait_until(lambda: not running.problem)
    monkeypatch.setattr(BlockPlanner, "plan", None)
    starts.publish(poses([centre(0, 0)]))
    running.wait_until(lambda: "internal error: TypeError" in running.problem)
    monkeypatch.undo()
    starts.publish(poses([centre(0, 1)]))
    running.wait_until(lambda: not running.problem)
    assert_serves(running)


@pytest.mark.skipif(not cuda_problem(), reason="this machine has a CUDA device")
def test_a_device_that_is_not_there_is_refused(running):
    result = running.set_parameter("device", "cuda")
    assert not result.successful and "parameter 'device'" in result.reason
    assert_serves(running)


@pytest.mark.parametrize(
    "parameters, word",
    [
        ({"algorithm": "theta"}, "theta"),
        ({"block_size": 12}, "12"),
        ({"map_durability": "firm"}, "firm"),
        ({"unknown": "0"}, "unknown"),
        ({"connectivity": 6}, "connectivity"),
        ({"robots": ["red", "/red/"]}, "twice"),
        ({"robots": ["two words"]}, "robots"),
        ({"clear_costmap_service": "two words"}, "'clear_costmap_service' is 'two words'; allowed: a name of ROS"),
        ({"free_below": 80}, "free_below"),
    ],
)
def test_a_wrong_parameter_at_the_start_is_an_error(parameters, word):
    with pytest.raises(SettingsError, match=word):
        RunningNode(None, **parameters)


@pytest.mark.parametrize(
    "given, words", [("block_size:=12", ["'12'", "4, 8, 16, 32"]), ("highest_cost:=300", ["highest_cost", "255"])]
)
def test_the_program_ends_with_a_text_on_a_wrong_parameter(capfd, given, words):
    assert main(["--ros-args", "-p", given]) == 1
    said = capfd.readouterr().err
    assert "wrong parameter" in said and all(word in said for word in words)


@pytest.mark.parametrize(
    "given", [("--frobnicate",), ("--params-file", "/none.yaml"), ("--log-level", "loud"), ("-r", "__node:=two words")]
)
def test_the_program_ends_with_a_text_on_arguments_that_ros_cannot_read(capfd, given):
    assert main(["--ros-args", *given]) == 1
    said = capfd.readouterr().err
    assert "wrong ROS arguments" in said and given[-1] in said
