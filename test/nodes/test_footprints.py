"""grid_planner with the parameter footprint: paths of one robot with its heading, by shapely; checks, codes, maps."""

import math
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

import numpy as np
import shapely
from grid_harness import RunningNode, map_message, poses, request, stamped
from hypothesis import given, settings
from hypothesis import strategies as st
from nav_msgs.srv import GetPlan
from running_node import shared, starter
from shapely.geometry import Polygon
from std_msgs.msg import Header
from test_nav2 import pressed_message, raw_costmap, raw_update

from gpu_planners.errors import SettingsError
from gpu_planners.grid import GridMap, MoveCosts
from gpu_planners.nodes.common import map_codes as codes
from gpu_planners.nodes.common.map_scene import Frames
from gpu_planners.nodes.common.request_error import RequestError
from gpu_planners.nodes.grid.parameters import GridParameters
from gpu_planners.nodes.grid.pose_ends import ways
from gpu_planners.nodes.grid.pose_routes import blocked_poses, route, yaws_of
from gpu_planners.nodes.grid.routes import blocked_ahead, way
from gpu_planners.nodes.grid.scene import GridScene

BOX = "[[0.6, 0.31], [-0.6, 0.31], [-0.6, -0.31], [0.6, -0.31]]"  # 0.62 x 1.2 m
CORNERS = np.array([(0.6, 0.31), (-0.6, 0.31), (-0.6, -0.31), (0.6, -0.31)])
CELL, ORIGIN = 0.1, (3.0, -4.0, 0.7)
# an aisle of 1.1 m, wide enough for the box along it and not across it, between two rooms
HALL = np.zeros((60, 90), np.int8)
HALL[:, 35:55] = 100
HALL[30:41, 35:55] = 0

node_of_module, running = shared(
    lambda: RunningNode(map_message(HALL, CELL, ORIGIN), footprint=BOX, minimum_turning_radius=0.5)
)
start_node = starter(RunningNode)


def at(x, y, yaw=None, origin=ORIGIN):
    """A pose at metres along the columns and rows, in the map's frame."""
    cos, sin = math.cos(origin[2]), math.sin(origin[2])
    turned = None if yaw is None else yaw + origin[2]
    return stamped(origin[0] + cos * x - sin * y, origin[1] + sin * x + cos * y, turned)


def rows_of(path):
    """(K, 3) x, y, yaw of a nav_msgs/Path"""
    found = [(p.pose.position.x, p.pose.position.y, p.pose.orientation) for p in path.poses]
    return np.array([(x, y, 2 * math.atan2(o.z, o.w)) for x, y, o in found]).reshape(-1, 3)


def obstacles(data, cell=CELL):
    rows, cols = np.nonzero(np.pad(data, 1, constant_values=100))
    return shapely.STRtree(shapely.box((cols - 1) * cell, (rows - 1) * cell, cols * cell, rows * cell))


def meets(tree, x, y, yaw, corners=CORNERS, shrunk=1e-6):
    """Does the outline at a pose of the map share area with an obstacle or with what lies beyond the map?"""
    cos, sin = math.cos(yaw), math.sin(yaw)
    shape = Polygon(corners @ np.array([[cos, sin], [-sin, cos]]) + (x, y)).buffer(-shrunk)
    return len(tree.query(shape, predicate="intersects")) > 0


def in_map(poses, origin=ORIGIN):
    cos, sin = math.cos(origin[2]), math.sin(origin[2])
    away = poses[:, :2] - origin[:2]
    return np.column_stack([away @ np.array([[cos, -sin], [sin, cos]]), poses[:, 2] - origin[2]])


def between(a, b, count=6):
    """Poses from one to another, turning evenly the shorter way."""
    turn = (b[2] - a[2] + math.pi) % (2 * math.pi) - math.pi
    return [a + share * np.array([*(b[:2] - a[:2]), turn]) for share in np.linspace(0, 1, count)]


def assert_free(path, data=HALL, origin=ORIGIN, corners=CORNERS, cell=CELL):
    poses, tree = in_map(rows_of(path), origin), obstacles(data, cell)
    assert len(poses) > 1
    for a, b in zip(poses, poses[1:]):
        assert np.hypot(*(b - a)[:2]) < 1.5 * cell + 1e-9
        assert not any(meets(tree, *pose, corners) for pose in between(a, b))


def assert_ends(path, *given):
    """It begins, passes and ends at stamped poses exactly."""
    found, last = rows_of(path), -1
    for one in given:
        wanted = rows_of(SimpleNamespace(poses=[one]))[0]
        off = np.abs(np.column_stack([found[:, :2] - wanted[:2], np.sin(found[:, 2] - wanted[2])])).max(axis=1)
        hits = np.flatnonzero(off < 1e-9)
        assert len(hits) and hits[-1] > last, (one, off.min())
        last = hits[-1]
    assert (
        last == len(found) - 1 and np.abs(found[0, :2] - rows_of(SimpleNamespace(poses=given[:1]))[0, :2]).max() < 1e-9
    )


def scene_of(data, kind=map_message, cell=CELL, **parameters):
    values = GridParameters(device="cpu", **({"footprint": BOX} | parameters))
    scene = GridScene(values)
    scene.take_map(kind(data, cell))
    scene.apply()
    return scene, values


def planned(scene, values, *stops, tolerance=0.0, algorithm="auto"):
    frames = Frames(node=None)
    return route(scene, values, way(frames, "map", stops[0], list(stops[1:]), "robot"), algorithm, tolerance)


START, GOAL = at(1.5, 1.2, 2.0), at(7.5, 4.9, -1.5)


def test_a_plan_through_the_aisle(running):
    client = running.client_node.create_client(GetPlan, "/grid_planner/get_plan")
    assert client.wait_for_service(10)
    path = running.call(client, GetPlan.Request(start=START, goal=GOAL)).plan
    assert_ends(path, START, GOAL)
    assert_free(path)
    inside = in_map(rows_of(path))
    inside = inside[(inside[:, 0] > 4.0) & (inside[:, 0] < 5.0)]
    assert len(inside) and (np.abs(np.sin(inside[:, 2])) < 0.35).all()  # along it: the robot does not fit across
    for bad, words in (
        ({"start": at(1.5, 1.2), "goal": GOAL}, f"code {codes.INVALID_REQUEST}: the start has no orientation"),
        ({"start": at(0.2, 0.2, 0.3), "goal": GOAL}, f"code {codes.START_OCCUPIED}: the footprint"),
        ({"start": START, "goal": at(4.5, 3.55, math.pi / 2)}, f"code {codes.GOAL_OCCUPIED}: the footprint"),
        ({"start": START, "goal": at(50.0, 1.0, 0.0)}, f"code {codes.GOAL_OUTSIDE_MAP}"),
        ({"start": START, "goal": GOAL, "tolerance": -1.0}, "tolerance is -1.0; allowed: 0 or more"),
    ):
        assert running.call(client, GetPlan.Request(**bad)).plan.poses == []
        running.wait_until(lambda words=words: words in running.facts["last answer"])
    near = running.call(client, GetPlan.Request(start=START, goal=at(4.5, 3.55, math.pi / 2), tolerance=1.5)).plan
    assert_free(near)
    assert math.dist(in_map(rows_of(near))[-1, :2], (4.5, 3.55)) < 1.5 + 1e-9
    running.wait_until(lambda: "cannot be reached: the path ends at" in running.facts["last answer"])


def test_discs_are_refused_by_name(running):
    response = running.plan(request())
    assert response.code == codes.INVALID_REQUEST and "plan_agents: these agents are discs" in response.message
    assert not response.codes


def test_a_wrong_change_is_refused_and_a_right_one_counts(running):
    for name, value, words in (
        ("footprint", "[[0.1, 0.1]]", "footprint is '[[0.1, 0.1]]'; allowed: [[x, y], ...]"),
        ("footprint", "[[0, 0], [1, 1], [1, 0], [0, 1]]", "cross"),
        ("footprint_radius", 0.3, "'footprint_radius' is 0.3; allowed: 0 with the parameter footprint"),
        ("algorithm", "pba_star", "'algorithm' is 'pba_star'; allowed with the parameter footprint: exact, astar"),
        ("motion_model", "HOVER", "HOVER"),
        ("motion_model", "STATE_LATTICE", "'lattice_filepath' is ''; allowed for STATE_LATTICE: a .json file"),
    ):
        result = running.set_parameter(name, value)
        assert not result.successful and words in result.reason, result.reason
    client = running.client_node.create_client(GetPlan, "/grid_planner/get_plan")
    assert client.wait_for_service(10)
    wide = "[[0.45, 0.7], [-0.45, 0.7], [-0.45, -0.7], [0.45, -0.7]]"  # with it the robot is too wide for the aisle
    assert running.set_parameter("footprint", wide).successful
    assert running.call(client, GetPlan.Request(start=START, goal=GOAL)).plan.poses == []
    running.wait_until(lambda: f"code {codes.NO_VALID_PATH}" in running.facts["last answer"])
    assert running.set_parameter("footprint", "").successful  # a disc: a point here
    assert running.plan(request()).code == codes.NONE
    assert running.set_parameter("footprint", BOX).successful
    assert_free(running.call(client, GetPlan.Request(start=START, goal=GOAL)).plan)


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"footprint": "[]", "footprint_radius": 0.3}, ""),
        ({"footprint": BOX, "footprint_radius": 0.3}, "'footprint_radius' is 0.3"),
        ({"footprint": "box"}, "parameter footprint is 'box'"),
        ({"footprint": BOX, "motion_model": "DUBIN", "minimum_turning_radius": 0.0}, "'minimum_turning_radius' is 0"),
        (
            {"footprint": BOX, "motion_model": "STATE_LATTICE", "lattice_filepath": "a.txt"},
            "'lattice_filepath' is 'a.txt'",
        ),
        ({"angle_quantization_bins": 15}, "angle_quantization_bins"),
        ({"minimum_turning_radius": -0.1}, "minimum_turning_radius"),
        ({"move_costs": MoveCosts(reverse=0.0), "footprint": BOX}, ""),
    ],
)
def test_parameters_of_a_robot(parameters, words):
    if not words:
        assert GridParameters(**parameters).footprint == parameters["footprint"]
        return
    with pytest.raises(SettingsError, match=words):
        GridParameters(**parameters)


def test_what_does_not_fit_the_map_is_named():
    scene, values = scene_of(HALL, motion_model="STATE_LATTICE", lattice_filepath="/nowhere/lattice.json")
    with pytest.raises(SettingsError, match="/nowhere/lattice.json"):
        planned(scene, values, START, GOAL)
    scene, values = scene_of(HALL, minimum_turning_radius=100.0)
    with pytest.raises(SettingsError, match=r"turning_radius is 100.0 m; allowed: up to 200 tiles"):
        planned(scene, values, START, GOAL)


@pytest.mark.parametrize(
    "model, extra",
    [
        ("DiffDrive", {}),
        ("DUBIN", {}),
        ("REEDS_SHEPP", {}),
        ("Ackermann", {}),
        ("OMNI", {}),
        ("DIFF", {"algorithm": "astar"}),
    ],
)
def test_routes_of_each_model(model, extra):
    scene, values = scene_of(HALL, motion_model=model, minimum_turning_radius=0.5, **extra)
    flat = (0.0, 0.0, 0.0)
    stops = [at(1.5, 1.2, 0.0, flat), at(3.0, 3.55, 0.0, flat), at(7.0, 3.55, 0.0, flat)]
    path, text = planned(scene, values, *stops, algorithm=values.route_algorithm)
    assert_free(path, origin=flat)
    assert_ends(path, *stops)
    assert "cost" in text
    turns = np.diff(np.unwrap(rows_of(path)[:, 2]))
    steps = np.hypot(*np.diff(rows_of(path)[:, :2], axis=0).T)
    if model in ("DUBIN", "REEDS_SHEPP", "Ackermann"):  # beyond the first step, within the start's tile and sector
        curved = np.abs(turns) > 1e-9
        curved[0] = False
        assert (2 * np.sin(np.abs(turns[curved]) / 2) / steps[curved] < 1 / 0.5 + 1e-6).all()


def test_a_goal_without_an_orientation_is_reached_with_any():
    scene, values = scene_of(HALL)
    flat = (0.0, 0.0, 0.0)
    path, _ = planned(scene, values, at(1.5, 1.2, 0.0, flat), at(7.0, 3.55, None, flat))
    assert np.abs(rows_of(path)[-1, :2] - (7.0, 3.55)).max() < 1e-9
    assert_free(path, origin=flat)
    there, _ = planned(scene, values, at(1.5, 1.2, 0.0, flat), at(1.5, 1.2, 0.0, flat))
    assert len(there.poses) == 1  # it stands there already


def test_the_leg_that_fails_is_named():
    scene, values = scene_of(HALL)
    flat = (0.0, 0.0, 0.0)
    with pytest.raises(RequestError, match="on the way to goal 1 of 2: the footprint with its margin") as caught:
        planned(scene, values, *(at(*p, flat) for p in ((1.5, 1.2, 0.0), (2.0, 3.0, 0.0), (3.55, 0.3, 0.0))))
    assert codes.code_of(caught.value) == codes.GOAL_OCCUPIED
    with pytest.raises(RequestError, match="unknown algorithm 'pba_star'; known are auto, exact, astar"):
        planned(scene, values, START, GOAL, algorithm="pba_star")


@pytest.mark.parametrize("kind", [pressed_message, lambda cells, cell=0.05: raw_costmap(cells, cell)])
def test_only_lethal_cells_of_a_costmap_block_a_footprint(kind):
    """The centre may be where the circle that fits into the footprint would touch: the outline decides."""
    cells = np.zeros((60, 60), np.uint8)
    cells[:, 28:33], cells[:, 30] = 253, 254
    raw = kind is not pressed_message
    values = GridParameters(device="cpu", footprint=BOX, map_kind="costmap_raw" if raw else "costmap")
    scene = GridScene(values)
    scene.take_map(kind(cells))
    scene.apply()
    assert np.array_equal(scene.grid.blocked, cells == 254)
    dearest = round(50 + 0.8 * 252)
    assert (scene.grid.costs[cells == 253] == dearest).all()
    disc = GridParameters(device="cpu", map_kind=values.map_kind)
    scene.configure(disc)
    assert np.array_equal(scene.grid.blocked, cells >= 253)
    scene.configure(values)
    assert np.array_equal(scene.grid.blocked, cells == 254)
    if raw:
        scene.take_update(raw_update(np.full((60, 1), 254, np.uint8), 0, 10))
        scene.apply()
        assert scene.grid.blocked[:, 10].all() and not scene.grid.blocked[:, 11].any()


def test_updates_are_taken_over_and_cost_what_nav2s_layer_says():
    """A change of the map inside, and a planner made anew on the map as it is then."""
    parameters = {"inflation_radius": 1.0, "cost_scaling_factor": 2.0, "minimum_turning_radius": 0.5}
    scene, values = scene_of(HALL, **parameters)
    flat = (0.0, 0.0, 0.0)
    stops = at(1.5, 1.2, 0.0, flat), at(7.5, 4.9, 0.0, flat)
    first = planned(scene, values, *stops)[1]
    closed = HALL.copy()
    closed[30:41, 45] = 100
    scene.take_map(map_message(closed, CELL))
    scene.apply()
    with pytest.raises(RequestError, match="no path leads"):
        planned(scene, values, *stops)
    opened = HALL.copy()
    opened[5:20, 35:55] = 0  # another aisle
    scene.take_map(map_message(opened, CELL))
    scene.apply()
    cost = planned(scene, values, *stops)[1].split(", by")[0]
    assert cost == planned(*scene_of(opened, **parameters), *stops)[1].split(", by")[0] != first.split(", by")[0]
    inside = 0.31  # of the circle in the box
    row, col = 20, 32  # 0.3 m from the wall
    assert scene.grid.costs[row, col] == 50 + round(0.8 * 252)
    row, col = 50, 30
    assert scene.grid.costs[row, col] == round(50 + 0.8 * int(252 * math.exp(-2.0 * (0.5 - inside))))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_poses_that_are_called_free_are(seed):
    """Against shapely: what meets an obstacle at a pose or between two is found; what is far from all is not."""
    rng = np.random.default_rng(seed)
    data = (rng.random((30, 40)) < 0.02).astype(np.int8) * 100
    grid = GridMap((data == 0).astype(np.uint8), resolution=CELL)
    points = np.cumsum([rng.uniform(0.8, 3, 3), *rng.uniform(-0.3, 0.4, (8, 3))], axis=0)
    message = SimpleNamespace(poses=[stamped(*p) for p in points])
    found = set(blocked_poses(grid, grid.blocked, as_poses(message), CORNERS).tolist())
    tree = obstacles(data)
    for k, pose in enumerate(points):
        passed = between(points[k - 1], pose, 40) if k else [pose]
        inside = all((0 <= p[:2]).all() and p[0] < 4 and p[1] < 3 for p in (points[max(k - 1, 0)], pose))
        if any(meets(tree, *p) for p in (passed if inside else [pose])):
            assert k in found
        elif inside and not any(meets(tree, *p, shrunk=-0.15) for p in passed):
            assert k not in found


def as_poses(message):
    from gpu_planners.nodes.common.map_messages import as_poses as read

    return read([each.pose for each in message.poses], "map")


def test_is_path_valid_by_the_footprint():
    scene, _ = scene_of(HALL)
    flat = (0.0, 0.0, 0.0)
    along = [at(0.1 * k, 3.55, 0.0, flat) for k in range(10, 80)]
    frames = Frames(node=None)

    def blocked(poses, **fields):
        return blocked_ahead(
            scene, frames, SimpleNamespace(path=SimpleNamespace(poses=poses, header=HEADER), **fields), "r"
        )

    assert blocked(along) == []
    across = [*along[:35], at(4.5, 3.55, math.pi / 2, flat), *along[35:]]
    assert 35 in blocked(across)  # a pose of another heading, in the aisle
    assert blocked(across, stop_at_first_collision=True) == [min(blocked(across))]
    assert blocked(across, max_lookahead_distance=2.0) == []
    assert blocked(along[:3] + [at(1.2, 9.0, 0.0, flat)]) == [3]
    thin = "[[0.1, 0.1], [-0.1, 0.1], [-0.1, -0.1], [0.1, -0.1]]"
    assert blocked(across, footprint=thin) == []  # the request's own takes the parameter's place
    with pytest.raises(RequestError, match="pose 1 of the path has no orientation"):
        blocked([along[0], at(1.2, 3.55, None, flat)])


HEADER = Header(frame_id="map")


def test_headings_are_those_of_the_quaternions():
    message = SimpleNamespace(poses=[stamped(0, 0, 2.5), stamped(0, 0)])
    yaws = yaws_of(as_poses(message))
    assert np.isclose(yaws[0], 2.5) and math.isnan(yaws[1])


def test_topics_of_agents_are_refused_too(start_node):
    from geometry_msgs.msg import PoseArray

    running = start_node(map_message(HALL, CELL), footprint=BOX)
    for name, points in (("starts", [(1.5, 1.5)]), ("goals", [(7.5, 4.9)])):
        running.publisher(PoseArray, f"/grid_planner/{name}").publish(poses(points))
    running.wait_until(lambda: "these agents are discs" in running.facts["problem"])


def test_nav2s_actions_and_its_check_go_by_the_footprint(running):
    """With Nav2's real messages, where they are installed."""
    nav2 = pytest.importorskip("nav2_msgs.action", reason="nav2_msgs is not among the ROS wheels")
    srv = pytest.importorskip("nav2_msgs.srv", reason="nav2_msgs is not among the ROS wheels")
    from rclpy.action import ActionClient

    def ask(kind, name, **fields):
        client = ActionClient(running.client_node, kind, name)
        assert client.wait_for_server(10)
        accepted = client.send_goal_async(kind.Goal(start=START, use_start=True, **fields))
        running.wait_until(accepted.done)
        answer = accepted.result().get_result_async()
        running.wait_until(answer.done)
        client.destroy()
        return answer.result().result

    between = at(7.0, 1.5, 0.3)
    to_pose = ask(nav2.ComputePathToPose, "/compute_path_to_pose", goal=GOAL, planner_id="GridBased")
    goals = [between, GOAL]
    if hasattr(nav2.ComputePathThroughPoses.Goal().goals, "goals"):  # since Kilted
        from nav_msgs.msg import Goals

        goals = Goals(goals=goals)
    through = ask(nav2.ComputePathThroughPoses, "/compute_path_through_poses", goals=goals)
    for result, stops in ((to_pose, (START, GOAL)), (through, (START, between, GOAL))):
        assert result.error_code == 0
        assert_free(result.path)
        assert_ends(result.path, *stops)
    blocked = ask(nav2.ComputePathToPose, "/compute_path_to_pose", goal=at(4.5, 3.55, math.pi / 2))
    assert blocked.error_code == codes.GOAL_OCCUPIED and "the footprint with its margin" in blocked.error_msg
    unknown = ask(nav2.ComputePathToPose, "/compute_path_to_pose", goal=GOAL, planner_id="rtaa_star")
    assert unknown.error_code == codes.INVALID_PLANNER and "auto, exact, astar" in unknown.error_msg

    check = running.client_node.create_client(srv.IsPathValid, "/is_path_valid")
    assert check.wait_for_service(10)
    assert running.call(check, srv.IsPathValid.Request(path=through.path)).is_valid
    inside = next(k for k, pose in enumerate(in_map(rows_of(to_pose.path))) if pose[0] > 4.5)
    to_pose.path.poses[inside] = at(4.5, 3.55, math.pi / 2)
    to_pose.path.poses[inside].header = to_pose.path.header
    response = running.call(check, srv.IsPathValid.Request(path=to_pose.path))
    assert not response.is_valid and inside in response.invalid_pose_indices


FLAT = (0.0, 0.0, 0.0)
NOSE = at(2.85, 2.0, 0.0, FLAT)  # 5 cm from the wall, where its state with the margin is not free
SIDE = at(1.5, 0.35, 0.03, FLAT)  # 2 cm from the map's edge at one corner


@pytest.mark.parametrize("model", ["DIFF", "REEDS_SHEPP", "OMNI", "DUBIN"])
def test_a_robot_that_stands_nearer_than_its_margin_leaves_and_enters(model):
    """Whatever it does is free by shapely. One that only drives forwards comes to a wall, and cannot leave it."""
    scene, values = scene_of(HALL, motion_model=model, minimum_turning_radius=0.5)
    open_floor = at(1.7, 4.2, 0.3, FLAT)
    planner = scene.planner("auto")
    poses = rows_of(SimpleNamespace(poses=[NOSE, SIDE, open_floor]))
    assert planner.states_free(poses).tolist() == [False, False, True]
    for start, goal in ((NOSE, open_floor), (open_floor, NOSE), (open_floor, SIDE)):
        code = codes.START_OCCUPIED if model == "DUBIN" and start is NOSE else codes.NONE
        if goal is SIDE and model != "OMNI":
            code = codes.GOAL_OCCUPIED  # a corner would swing into the edge
        if code:
            with pytest.raises(RequestError, match="the footprint with its margin") as caught:
                planned(scene, values, start, goal)
            assert codes.code_of(caught.value) == code
            continue
        path, _ = planned(scene, values, start, goal)
        assert_free(path, origin=FLAT)
        assert_ends(path, start, goal)
    with pytest.raises(RequestError) as caught:
        planned(scene, values, at(2.95, 2.0, 0.0, FLAT), open_floor)  # in the wall
    assert codes.code_of(caught.value) == codes.START_OCCUPIED


def test_whether_ways_there_are_costs_nothing_where_the_state_is_free():
    scene, _ = scene_of(HALL)
    planner, pose = scene.planner("auto"), np.array([1.7, 4.2, 0.3])
    (way,) = ways(planner, pose, 1.0)
    assert way.cost == 0 and np.array_equal(way.poses, pose[None])
    assert ways(planner, np.array([np.nan, 0.0, 0.0]), 1.0) == []
    near = rows_of(SimpleNamespace(poses=[NOSE]))[0]
    assert ways(planner, near, 0.0) == []
    for into in (False, True):
        for way in ways(planner, near, 1.0, into):
            ends = way.poses[::-1] if into else way.poses
            assert np.allclose(ends[0, :2], near[:2]) and np.isclose(np.cos(ends[0, 2]), 1)
            assert planner.states_free(ends[-1])[0] and 0 < way.cost <= 1.0
