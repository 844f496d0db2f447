"""What Nav2 asks of a grid_planner over real DDS: exact poses, routes, checks, costmaps, clearing."""

import array

import numpy as np
import pytest
from grid_harness import LATCHED, RESOLUTION, RunningNode, map_message, pose, request, stamped
from nav_msgs.msg import Goals, Path
from nav_msgs.srv import GetPlan
from rclpy.action import ActionClient
from running_node import shared, starter
from test_nav2 import in_metres, passes_blocked, press

from gpu_planners.grid import GridMap
from gpu_planners.nodes.common import map_codes as codes
from gpu_planners.verify import costs_to_goal, walk

MISSING = "nav2_msgs is not among the ROS wheels; it comes with a ROS installation"
YAW = 0.7
WALL = np.zeros((24, 30), np.int8)
WALL[4:, 14] = 100
# as Nav2 would inflate the wall: 252 beside it, less and less up to seven cells away
COSTS = np.where(WALL, 254, 252 * np.exp(-0.4 * (np.abs(np.arange(30) - 14) - 1))).astype(np.uint8)
COSTS[:, :7] = COSTS[:, 22:] = 0

node_of_module, running = shared(
    lambda: RunningNode(map_message(WALL, origin=(3.0, -4.0, YAW)), clear_costmap_service="clear")
)
start_node = starter(RunningNode)
GRID = GridMap((WALL == 0).astype(np.uint8), resolution=RESOLUTION, origin=(3.0, -4.0, YAW))


def place(row, col):
    """x, y of a place on the turned map."""
    return tuple(in_metres(GRID, np.array([[row, col]], float))[0].tolist())


def pose_fields(stamped_pose):
    p, o = stamped_pose.pose.position, stamped_pose.pose.orientation
    return [p.x, p.y, p.z, o.x, o.y, o.z, o.w]


def assert_free_and_exact(path, ends):
    """The path joins the poses of `ends` in their order, exactly, along lines that pass free tiles only."""
    poses = [pose_fields(p) for p in path.poses]
    reached = [k for end in ends for k, p in enumerate(poses) if np.allclose(p, pose_fields(end), atol=1e-12)]
    assert (
        len(reached) == len(ends) and reached[0] == 0 and reached[-1] == len(poses) - 1 and sorted(reached) == reached
    )
    x, y, yaw = GRID.origin
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    places = ((np.array(poses)[:, :2] - (x, y)) @ turn / RESOLUTION)[:, ::-1]
    assert not any(passes_blocked(GRID, a, b) for a, b in zip(places[:-1], places[1:]))
    assert path.header.frame_id == "map" and {p.header.frame_id for p in path.poses} == {"map"}


def test_get_plan_begins_and_ends_where_it_is_asked_to(running):
    client = running.client_node.create_client(GetPlan, "/grid_planner/get_plan")
    assert client.wait_for_service(10)
    start, goal = stamped(*place(20.1, 2.9), yaw=-1.0), stamped(*place(20.95, 27.3), yaw=2.0)
    assert_free_and_exact(running.call(client, GetPlan.Request(start=start, goal=goal)).plan, [start, goal])
    near = stamped(*place(20.6, 2.2), yaw=3.0)
    in_one_tile = running.call(client, GetPlan.Request(start=start, goal=near)).plan
    assert_free_and_exact(in_one_tile, [start, near])
    assert len(in_one_tile.poses) == 2
    beside = stamped(*place(20.2, 14.9), yaw=1.0)  # in the wall
    moved = running.call(client, GetPlan.Request(start=start, goal=beside, tolerance=1.0)).plan
    assert np.allclose(pose_fields(moved.poses[-1])[:2], place(20.5, 13.5))
    running.wait_until(lambda: "is occupied: the path ends at" in running.facts["last answer"])
    assert pose_fields(moved.poses[-1])[3:] == pose_fields(beside)[3:]
    start.pose.orientation.w = 7.0
    assert running.call(client, GetPlan.Request(start=start, goal=goal)).plan.poses == []
    running.wait_until(lambda: "start 0 has the orientation" in running.facts["last answer"])


def test_a_costmap_keeps_paths_away_from_obstacles(start_node):
    running = start_node(map_message(press(COSTS)), map_kind="costmap")
    response = running.plan(request(starts=[(12, 13)], goals=[(12, 15)], path_agents=[0]))
    values = 1 + np.rint(251 * (np.clip(press(COSTS).astype(float), 1, 98) - 1) / 97)
    costs = np.where(COSTS < 253, np.rint(50 + 0.8 * np.where(COSTS, values, 0)), 0).astype(int)
    assert np.isclose(response.costs[0], costs_to_goal(costs, 8, (12, 15))[12, 13])
    cols = [p.pose.position.x / RESOLUTION for p in response.paths[0].poses]
    assert min(cols) < 11 and max(cols) > 18  # it goes along the wall at a distance


def test_inflation_without_a_costmap(start_node):
    running = start_node(map_message(WALL), inflation_radius=2.0, cost_scaling_factor=2.0, footprint_radius=0.6)
    obstacles = np.argwhere(WALL)
    distance = np.array(
        [[np.hypot(*(obstacles - t).T).min() for t in row] for row in np.moveaxis(np.indices(WALL.shape), 0, 2)]
    )
    metres = distance * RESOLUTION

    def expected(radius, scaling):
        inflation = np.where(
            distance <= np.ceil(radius / RESOLUTION), (252 * np.exp(-scaling * (metres - 0.6))).astype(int), 0
        )
        return np.where(metres < 0.6, 0, np.rint(50 + 0.8 * inflation)).astype(int)

    def cost():
        return running.plan(request(starts=[(20, 2)], goals=[(20, 27)])).costs[0]

    assert np.isclose(cost(), costs_to_goal(expected(2.0, 2.0), 8, (20, 27))[20, 2])
    assert running.set_parameter("cost_scaling_factor", 0.5).successful
    assert np.isclose(cost(), costs_to_goal(expected(2.0, 0.5), 8, (20, 27))[20, 2])
    running.wait_until(lambda: running.facts["requests"] == "2")
    assert running.status.message == "ready"
    assert running.set_parameter("inflation_radius", 0.0).successful
    assert np.isclose(cost(), costs_to_goal(metres >= 0.6, 8, (20, 27))[20, 2])


@pytest.fixture
def ask(running):
    """Sends a goal to one of Nav2's actions -> status, result."""
    nav2 = pytest.importorskip("nav2_msgs.action", reason=MISSING)
    clients = {
        kind: ActionClient(running.client_node, getattr(nav2, kind), name)
        for kind, name in (
            ("ComputePathToPose", "/compute_path_to_pose"),
            ("ComputePathThroughPoses", "/compute_path_through_poses"),
        )
    }

    def send(kind, **fields):
        assert clients[kind].wait_for_server(10)
        if "goals" in fields and hasattr(getattr(nav2, kind).Goal().goals, "goals"):  # since Kilted
            fields["goals"] = Goals(goals=fields["goals"])
        accepted = clients[kind].send_goal_async(getattr(nav2, kind).Goal(**fields))
        running.wait_until(accepted.done)
        answer = accepted.result().get_result_async()
        running.wait_until(answer.done)
        return answer.result().status, answer.result().result

    yield send
    for client in clients.values():
        client.destroy()


def test_the_path_to_a_pose_is_exact(running, ask):
    from action_msgs.msg import GoalStatus

    start, goal = stamped(*place(20.1, 2.9), yaw=-1.0), stamped(*place(20.95, 27.3), yaw=2.0)
    status, result = ask("ComputePathToPose", start=start, goal=goal, use_start=True)
    assert (status, result.error_code) == (GoalStatus.STATUS_SUCCEEDED, 0)
    assert_free_and_exact(result.path, [start, goal])
    assert running.set_parameter("goal_tolerance", 1.0).successful
    beside = stamped(*place(20.2, 14.9), yaw=1.0)
    status, result = ask("ComputePathToPose", start=start, goal=beside, use_start=True)
    assert np.allclose(pose_fields(result.path.poses[-1])[:2], place(20.5, 13.5))
    assert running.set_parameter("planner_ids", ["Mine"]).successful
    for planner_id, code in (("Mine", 0), ("", 0), ("exact", 0), ("GridBased", 201)):
        status, result = ask("ComputePathToPose", start=start, goal=goal, use_start=True, planner_id=planner_id)
        assert result.error_code == code
    assert "unknown planner_id 'GridBased'; known are Mine, exact" in result.error_msg


def test_a_route_through_poses(running, ask):
    from action_msgs.msg import GoalStatus

    start = stamped(*place(20.1, 2.9), yaw=-1.0)
    goals = [stamped(*place(*at), yaw=yaw) for at, yaw in (((10.3, 5.8), 0.1), ((20.95, 27.3), 2.0), ((1.1, 1.9), 0.4))]
    status, result = ask("ComputePathThroughPoses", start=start, goals=goals, use_start=True)
    assert (status, result.error_code) == (GoalStatus.STATUS_SUCCEEDED, 0)
    assert_free_and_exact(result.path, [start, *goals])
    assert getattr(result, "last_reached_index", -1) == -1
    twice = [goals[0], goals[0], *goals[1:]]
    result = ask("ComputePathThroughPoses", start=start, goals=twice, use_start=True)[1]
    assert_free_and_exact(result.path, [start, *goals])
    poses = [pose_fields(p) for p in result.path.poses]
    assert all(a != b for a, b in zip(poses[:-1], poses[1:]))
    for wrong, code, words in (
        ([goals[0], stamped(*place(20.2, 14.9))], 306, "on the way to goal 1 of 2: "),
        ([stamped(*place(400, 3)), goals[0]], 304, "on the way to goal 0 of 2: "),
        ([], 309, "no goals"),
    ):
        status, result = ask("ComputePathThroughPoses", start=start, goals=wrong, use_start=True)
        assert (status, result.error_code) == (GoalStatus.STATUS_ABORTED, code) and not result.path.poses
        assert words in result.error_msg


def test_paths_that_are_blocked_are_not_valid_any_more(running, ask):
    srv = pytest.importorskip("nav2_msgs.srv", reason=MISSING)
    check = running.client_node.create_client(srv.IsPathValid, "/is_path_valid")
    assert check.wait_for_service(10)
    ends = {"start": stamped(*place(2.5, 2.5)), "goal": stamped(*place(2.5, 27.5))}
    path = ask("ComputePathToPose", **ends, use_start=True)[1].path

    def valid(path, looked_at=True):
        request = srv.IsPathValid.Request(path=path)
        if hasattr(request, "stop_at_first_collision"):
            request.stop_at_first_collision = False
        response = running.call(check, request)
        assert getattr(response, "success", looked_at) == looked_at
        return response.is_valid, list(response.invalid_pose_indices)

    assert valid(path) == (True, [])
    closed = WALL.copy()
    closed[:, 14] = 100
    running.publish_map(map_message(closed, origin=GRID.origin))
    # the tile in the wall's gap, and the one behind it, which the path would come to through it
    inside = [k for k, p in enumerate(path.poses) if 14 <= centre_col(p) < 15]
    assert valid(path) == (False, [*inside, inside[-1] + 1])
    long = Path(header=path.header, poses=[path.poses[0], path.poses[-1]])
    assert valid(long) == (False, [1])  # through the wall, between two free tiles
    assert valid(Path(), looked_at=False) == (False, [])
    path.header.frame_id = "moon"
    assert valid(path, looked_at=False) == (False, [])


def test_what_later_requests_of_is_path_valid_ask_for(running, ask):
    srv = pytest.importorskip("nav2_msgs.srv", reason=MISSING)
    fields = srv.IsPathValid.Request.get_fields_and_field_types()
    if "stop_at_first_collision" not in fields:
        pytest.skip("IsPathValid of this release of Nav2 has no fields but the path")
    check = running.client_node.create_client(srv.IsPathValid, "/is_path_valid")
    assert check.wait_for_service(10)
    straight = Path(poses=[stamped(*place(10.5, col)) for col in (10.5, 13.5, 20.5, 21.5)])
    straight.header.frame_id = "map"

    def answer(**asked):
        response = running.call(check, srv.IsPathValid.Request(path=straight, **asked))
        return response.success, response.is_valid, list(response.invalid_pose_indices)

    assert answer() == (True, False, [2])  # through the wall
    near = 3.2 * RESOLUTION
    assert answer(max_lookahead_distance=near) == (True, True, [])
    assert answer(max_lookahead_distance=near + RESOLUTION) == (True, False, [2])
    assert answer(max_lookahead_distance=near, max_cost=0) == (True, False, [0])
    assert answer(max_cost=0, stop_at_first_collision=False) == (True, False, [0, 1, 2, 3])
    for wrong, words in (
        ({"layer_name": "static"}, "layer_name is 'static'; allowed: an empty text"),
        ({"footprint": "[[0.1, 0.1]]"}, "footprint is '[[0.1, 0.1]]'; allowed:"),
        ({"max_lookahead_distance": float("nan")}, "max_lookahead_distance is nan"),
    ):
        assert answer(**wrong) == (False, False, [])
        running.wait_until(lambda words=words: words in running.facts["last answer"])


def test_poses_on_the_way_are_passed(running, ask):
    nav2 = pytest.importorskip("nav2_msgs.action", reason=MISSING)
    if not hasattr(nav2.ComputePathToPose.Goal(), "viapoints"):
        pytest.skip("ComputePathToPose of this release of Nav2 has no viapoints")
    start, goal = stamped(*place(20.1, 2.9), yaw=-1.0), stamped(*place(20.95, 27.3), yaw=2.0)
    between = [stamped(*place(10.3, 5.8), yaw=0.1), stamped(*place(1.1, 1.9))]
    result = ask("ComputePathToPose", start=start, goal=goal, viapoints=between[:1], use_start=True)[1]
    assert_free_and_exact(result.path, [start, between[0], goal])
    occupied = stamped(*place(20.2, 14.9))
    result = ask("ComputePathToPose", start=start, goal=goal, viapoints=[between[0], occupied], use_start=True)[1]
    assert result.error_code == 206 and "on the way to goal 1 of 3" in result.error_msg


def test_the_robot_is_where_tf2_says(start_node):
    nav2 = pytest.importorskip("nav2_msgs.action", reason=MISSING)
    srv = pytest.importorskip("nav2_msgs.srv", reason=MISSING)
    tf2_ros = pytest.importorskip("tf2_ros", reason="tf2_ros is not among the ROS wheels")
    from geometry_msgs.msg import TransformStamped

    running = start_node(map_message(WALL, origin=GRID.origin), robot_frame="robot")
    start, goal = stamped(*place(20.1, 2.9), yaw=-1.0), stamped(*place(20.95, 27.3), yaw=2.0)
    transform = TransformStamped(child_frame_id="robot")
    transform.header.frame_id = "map"
    transform.transform.translation.x, transform.transform.translation.y = pose_fields(start)[:2]
    transform.transform.rotation = start.pose.orientation
    broadcaster = tf2_ros.StaticTransformBroadcaster(running.client_node)
    broadcaster.sendTransform(transform)
    client = ActionClient(running.client_node, nav2.ComputePathToPose, "/compute_path_to_pose")
    assert client.wait_for_server(10)

    def path():
        accepted = client.send_goal_async(nav2.ComputePathToPose.Goal(goal=goal))
        running.wait_until(accepted.done)
        answer = accepted.result().get_result_async()
        running.wait_until(answer.done)
        return answer.result().result.path

    running.wait_until(lambda: path().poses)  # until the transform is known
    found = path()
    assert_free_and_exact(found, [start, goal])
    check = running.client_node.create_client(srv.IsPathValid, "/is_path_valid")
    assert check.wait_for_service(10)
    behind = stamped(*place(20.1, 14.5))  # in the wall, and behind the robot
    assert running.call(
        check, srv.IsPathValid.Request(path=Path(header=found.header, poses=[behind, *found.poses]))
    ).is_valid
    ahead = Path(header=found.header, poses=[*found.poses[:1], behind, *found.poses[1:]])
    response = running.call(check, srv.IsPathValid.Request(path=ahead))
    assert not response.is_valid and list(response.invalid_pose_indices) == [1, 2]
    client.destroy()


def centre_col(stamped_pose):
    x, y, yaw = GRID.origin
    dx, dy = stamped_pose.pose.position.x - x, stamped_pose.pose.position.y - y
    return (np.cos(yaw) * dx + np.sin(yaw) * dy) / RESOLUTION


def test_clearing_takes_back_updates(running, ask):
    srv = pytest.importorskip("nav2_msgs.srv", reason=MISSING)
    updates = pytest.importorskip("map_msgs.msg", reason="map_msgs is not among the ROS wheels")
    clear = running.client_node.create_client(srv.ClearEntireCostmap, "/clear")
    assert clear.wait_for_service(10)
    ends = {"start": stamped(*place(2.5, 2.5)), "goal": stamped(*place(2.5, 27.5))}
    publisher = running.publisher(updates.OccupancyGridUpdate, "/map_updates")
    wall = updates.OccupancyGridUpdate(x=14, y=0, width=1, height=4, data=array.array("b", [100] * 4))

    def is_closed():  # by an update that the node's end of the topic may not have been ready for
        publisher.publish(wall)
        return ask("ComputePathToPose", **ends, use_start=True)[1].error_code == codes.NO_VALID_PATH

    running.wait_until(is_closed)
    response = running.call(clear, srv.ClearEntireCostmap.Request())
    assert getattr(response, "success", True) is True
    assert ask("ComputePathToPose", **ends, use_start=True)[1].error_code == 0
    if hasattr(srv.ClearEntireCostmap.Request(), "plugins"):  # since Lyrical
        assert not running.call(clear, srv.ClearEntireCostmap.Request(plugins=["static"])).success
        running.wait_until(lambda: "plugins is ['static']; allowed: none" in running.facts["last answer"])


def test_a_raw_costmap_over_dds(start_node):
    msg = pytest.importorskip("nav2_msgs.msg", reason=MISSING)
    running = start_node(None, map_kind="costmap_raw")
    about = msg.CostmapMetaData(size_x=30, size_y=24, resolution=RESOLUTION, origin=pose(0, 0, 0))
    message = msg.Costmap(metadata=about, data=array.array("B", COSTS.tobytes()))
    message.header.frame_id = "map"
    running.publisher(msg.Costmap, "/map", LATCHED).publish(message)
    running.wait_until(lambda: running.facts["map messages"] == "1")
    costs = np.where(COSTS < 253, np.rint(50 + 0.8 * COSTS), 0).astype(int)

    def check():
        response = running.plan(request(starts=[(12, 13)], goals=[(12, 15)], path_agents=[0]))
        assert np.isclose(response.costs[0], costs_to_goal(costs, 8, (12, 15))[12, 13])
        tiles = [(p.pose.position.y, p.pose.position.x) for p in response.paths[0].poses]
        walk(costs, 8, np.rint(np.array(tiles) / RESOLUTION - 0.5).astype(int), (12, 13), (12, 15))

    check()
    update = msg.CostmapUpdate(x=2, y=1, size_x=20, size_y=2, data=array.array("B", [200] * 40))
    running.publisher(msg.CostmapUpdate, "/map_updates").publish(update)
    running.wait_until(lambda: running.facts["map messages"] == "2")
    costs[1:3, 2:22] = 210
    check()
