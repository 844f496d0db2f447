"""The grid_planner node over real DDS: what a user asks of it, on small maps; every path is checked by Dijkstra."""

import array
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseArray
from grid_harness import LATCHED, RESOLUTION, RunningNode, cells, centre, map_message, poses, request, stamped
from nav_msgs.msg import OccupancyGrid, Path
from nav_msgs.srv import GetPlan
from rclpy.qos import QoSProfile
from running_node import DEVICE, shared, starter
from scipy import ndimage
from sensor_msgs.msg import PointCloud2
from visualization_msgs.msg import MarkerArray

from gpu_planners.errors import GridMapError
from gpu_planners.grid import BlockPlanner, GridMap
from gpu_planners.nodes.common import map_codes as codes
from gpu_planners.nodes.common.map_scene import TopicMaps
from gpu_planners.nodes.common.parameters import rules_of
from gpu_planners.nodes.common.worker import Worker
from gpu_planners.nodes.grid.conversions import path_set_of
from gpu_planners.nodes.grid.parameters import ALGORITHMS, GridParameters
from gpu_planners.nodes.grid.scene import GridScene
from gpu_planners.verify import costs_to_goal, walk

FREE = cells() == 0
OPEN = np.argwhere(FREE)
HALL = np.zeros((30, 40), np.int8)  # nothing in the way


node_of_module, running = shared(RunningNode)
start_node = starter(RunningNode)


def tiles_of(path, resolution=RESOLUTION):
    """(K, 2) tiles [row, col] of a nav_msgs/Path on a map at the origin."""
    points = np.array([(p.pose.position.y, p.pose.position.x) for p in path.poses])
    return np.rint(points / resolution - 0.5).astype(int)


def test_paths_are_shortest_and_come_packed_and_in_full(running):
    response = running.plan(request(starts=OPEN, goals=[(9, 9)], path_agents=[3, 0]))
    expected = costs_to_goal(FREE, 8, (9, 9))[tuple(OPEN.T)]
    assert response.code == codes.NONE and np.allclose(response.costs, expected)
    assert [code == codes.NONE for code in response.codes] == np.isfinite(expected).tolist()
    assert set(response.codes) == {codes.NONE, codes.NO_VALID_PATH}
    assert response.map.resolution == RESOLUTION and (response.map.height, response.map.width) == (10, 10)
    assert response.header.frame_id == "map" and response.device.startswith(DEVICE) and response.planning_time_s > 0
    paths = path_set_of(response)
    for agent in np.flatnonzero(np.isfinite(expected)):
        walk(FREE, 8, paths.path(agent), OPEN[agent], (9, 9))
        assert len(paths.path(agent)) == response.lengths[agent] + 1
    assert len(response.paths) == 2
    for path, agent in zip(response.paths, [3, 0]):
        assert path.header.frame_id == "map" and tiles_of(path).tolist() == paths.path(agent).tolist()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_request_chooses_the_algorithm(running, algorithm):
    starts, goals = OPEN[:20], OPEN[20:40]
    response = running.plan(request(starts=starts, goals=goals, algorithm=algorithm))
    expected = np.array([costs_to_goal(FREE, 8, goal)[tuple(start)] for start, goal in zip(starts, goals)])
    assert response.code == codes.NONE and response.algorithm == algorithm
    if algorithm in ("exact", "astar"):
        assert np.allclose(response.costs, expected)
    costs, paths = np.array(response.costs), path_set_of(response)
    assert np.isfinite(costs).any() and (costs >= expected - 1e-9).all()
    for agent in np.flatnonzero(np.isfinite(costs)):
        assert np.isclose(walk(FREE, 8, paths.path(agent), starts[agent], goals[agent]), costs[agent])


def test_points_give_what_poses_give(running):
    by_poses = running.plan(request(starts=OPEN, goals=OPEN[::-1]))
    by_points = request(starts=[], goals=[])
    by_points.start_points = array.array("d", np.ravel([centre(*tile) for tile in OPEN]))
    by_points.goal_points = array.array("d", np.ravel([centre(*tile) for tile in OPEN[::-1]]))
    response = running.plan(by_points)
    assert response.costs == by_poses.costs and response.words == by_poses.words and response.code == codes.NONE


def test_steps_may_be_left_out(running):
    response = running.plan(request(without_steps=True))
    assert response.costs[0] > 0 and not response.words and not response.start_tiles


@pytest.mark.parametrize("connectivity", [4, 8])
def test_the_connectivity(start_node, connectivity):
    running = start_node(connectivity=connectivity)
    response = running.plan(request(starts=OPEN, goals=[(0, 6)]))
    assert np.allclose(response.costs, costs_to_goal(FREE, connectivity, (0, 6))[tuple(OPEN.T)])
    path = path_set_of(response).path(int(np.argmax(np.where(np.isfinite(response.costs), response.costs, 0))))
    walk(FREE, connectivity, path, path[0], (0, 6))


def test_a_rotated_origin(start_node):
    yaw, x0, y0 = 2.1, 3.0, -4.0
    running = start_node(map_message(origin=(x0, y0, yaw)))

    def placed(row, col):
        x, y = centre(row, col)
        return x0 + np.cos(yaw) * x - np.sin(yaw) * y, y0 + np.sin(yaw) * x + np.cos(yaw) * y

    message = request(path_agents=[0])
    message.starts, message.goals = poses([placed(0, 0)]), poses([placed(9, 9)], yaw=0.3)
    response = running.plan(message)
    assert np.isclose(response.costs[0], costs_to_goal(FREE, 8, (9, 9))[0, 0])
    tiles = path_set_of(response).path(0)
    walk(FREE, 8, tiles, (0, 0), (9, 9))
    sent = [(p.pose.position.x, p.pose.position.y) for p in response.paths[0].poses]
    assert np.allclose(sent, [placed(row, col) for row, col in tiles])
    last = response.paths[0].poses[-1].pose.orientation
    assert np.isclose(2 * np.arctan2(last.z, last.w), 0.3)


@pytest.mark.parametrize("unknown", ["free", "blocked", "7"])
def test_unknown_cells(start_node, unknown):
    running = start_node(unknown=unknown)
    costs = np.where(cells() == -1, {"free": 1, "blocked": 0}.get(unknown, 7), FREE)
    response = running.plan(request(starts=OPEN, goals=[(9, 0)]))
    assert np.allclose(response.costs, costs_to_goal(costs, 8, (9, 0))[tuple(OPEN.T)])
    at_unknown = running.plan(request(starts=[(3, 4)], goals=[(9, 0)])).codes[0]
    assert at_unknown == (codes.START_OCCUPIED if unknown == "blocked" else codes.NONE)


def test_occupancy_values_as_costs(start_node):
    data = np.array([[0, 20, 40], [0, 49, 60]], np.int8)
    running = start_node(map_message(data), occupied_from=50, free_below=10, highest_cost=21)
    costs = GridMap.from_occupancy(data, occupied_from=50, free_below=10, highest_cost=21).costs
    assert costs.max() > 10 and (costs == 0).sum() == 1
    response = running.plan(request(starts=np.argwhere(costs), goals=[(0, 2)]))
    assert np.allclose(response.costs, costs_to_goal(costs, 8, (0, 2))[costs > 0])


def wide_hall():
    data = HALL.copy()
    data[:12, 20] = data[16:, 20] = 100  # a wall with a door of four cells, 2 m
    return data


def test_the_footprint_closes_a_narrow_door(start_node):
    running = start_node(map_message(wide_hall()))
    through = request(starts=[(14, 2)], goals=[(14, 37)])
    assert running.plan(through).costs[0] == 35.0
    assert running.set_parameter("footprint_radius", 0.6).successful
    inflated = GridMap(wide_hall() == 0, resolution=RESOLUTION).inflated(0.6)
    response = running.plan(through)
    assert np.isclose(response.costs[0], costs_to_goal(inflated.costs, 8, (14, 37))[14, 2]) and np.isfinite(
        response.costs[0]
    )
    assert running.set_parameter("footprint_radius", 1.6).successful
    assert running.plan(through).codes[0] == codes.NO_VALID_PATH
    assert running.plan(request(starts=[(0, 18)])).codes[0] == codes.START_OCCUPIED
    assert running.set_parameter("footprint_radius", 0.0).successful
    assert running.plan(through).costs[0] == 35.0


def map_update(row, col, part, frame="map"):
    """What a map_msgs/OccupancyGridUpdate has."""
    height, width = part.shape
    update = SimpleNamespace(x=int(col), y=int(row), width=width, height=height, data=array.array("b", part.tobytes()))
    update.header = map_message(frame=frame).header
    return update


@pytest.fixture
def make_scene():
    """Makes a GridScene with an empty hall, and other parameters than the defaults."""

    def make(**values):
        scene = GridScene(GridParameters(**{"device": "cpu"} | values))
        scene.take_map(map_message(HALL))
        scene.apply()
        return scene

    return make


@pytest.mark.parametrize("radius", [0.0, 0.8])
def test_changed_maps_are_planned_on_as_if_they_were_new(make_scene, radius):
    """Whole maps and updates, some of them at once, with a footprint about changed obstacles."""
    rng, data, scene = np.random.default_rng(4), HALL.copy(), make_scene(footprint_radius=radius)
    planners = {name: scene.planner(name) for name in ("exact", "astar")}
    for turn in range(24):
        row, col = rng.integers(0, 26), rng.integers(0, 36)
        height, width = rng.integers(1, 5, 2)
        part = np.where(rng.random((height, width)) < (0.6 if turn % 3 else 0.0), 100, 0).astype(np.int8)
        data[row : row + height, col : col + width] = part
        if turn % 4 == 1:
            scene.take_map(map_message(data))
        else:
            scene.take_update(map_update(row, col, part))
        if turn % 5 in (0, 1):
            continue  # together with the next one
        scene.apply()
        expected = GridMap(data == 0, resolution=RESOLUTION).inflated(radius)
        assert np.array_equal(scene.grid.costs, expected.costs)
        free = np.argwhere(~expected.blocked)
        for name, planner in planners.items():
            if name == "astar" and turn % 3:
                continue  # told of several changes later
            assert scene.planner(name) is planner  # repaired, not made anew
            found = planner.plan(free.astype(float), free[0].astype(float))
            assert np.allclose(found.cost, costs_to_goal(expected.costs, 8, free[0])[tuple(free.T)])


def test_a_refused_update_leaves_the_others(make_scene):
    scene, part = make_scene(), np.full((2, 3), 100, np.int8)
    scene.take_update(map_update(4, 5, part))
    for bad in (
        map_update(29, 5, part),
        map_update(4, 5, np.full((1, 1), 101, np.int8)),
        map_update(4, 5, part, "odom"),
    ):
        with pytest.raises(GridMapError):
            scene.take_update(bad)
    scene.take_update(map_update(10, 20, part))
    scene.apply()
    assert np.argwhere(scene.grid.blocked).tolist() == [
        [r, c] for r, c0 in ((4, 5), (5, 5), (10, 20), (11, 20)) for c in range(c0, c0 + 3)
    ]


def test_a_planner_is_told_once_of_all_changes_since_it_was_asked_for(make_scene, monkeypatch):
    scene, told = make_scene(), []
    planner = scene.planner("exact")
    update = planner.update
    monkeypatch.setattr(planner, "update", lambda rows, *rest: (told.append(len(rows)), update(rows, *rest)))
    for col in range(8):
        scene.take_update(map_update(3, 2 * col, np.full((1, 1), 100, np.int8)))
        scene.apply()
    scene.take_update(map_update(3, 0, np.zeros((1, 1), np.int8)))  # as it was before
    scene.apply()
    assert scene.changes == 10 and told == []
    assert scene.planner("exact") is scene.planner("exact") is planner and told == [7]


class FakeNode:
    """Keeps what is called for the messages of each topic."""

    def __init__(self, worker, problems):
        self.receive, self.values, self.worker = {}, GridParameters(), worker
        self.state = SimpleNamespace(set_problem=lambda what, text: problems.append(text), publish=lambda: None)

    def create_subscription(self, kind, topic, callback, qos):
        self.receive[topic] = callback


def test_maps_that_come_in_a_burst_are_one_change(make_scene):
    scene, problems, changed = make_scene(), [], []
    worker, busy, done = Worker(problems.append), threading.Event(), threading.Event()
    worker.start()
    node = FakeNode(worker, problems)
    maps = TopicMaps(node, scene, changed.append)
    worker.do(busy.wait)
    data = HALL.copy()
    for number in range(4):
        data[:25, 5 * number + 2] = 100
        node.receive["map"](map_message(data if number != 2 else data[:0]))  # one is bad
    busy.set()
    worker.do(done.set)
    assert done.wait(60)
    assert worker.stop()
    assert changed == [True] and scene.changes == 2 and maps.taken == 4
    assert np.array_equal(scene.grid.blocked, data != 0)
    assert "empty" in problems[2] and problems[3] == ""


def test_fields_are_repaired_while_nobody_asks(start_node, monkeypatch):
    running, told = start_node(map_message(HALL)), []
    running.plan(request(starts=[(3, 0)], goals=[(3, 39)]))
    update = BlockPlanner.update
    monkeypatch.setattr(BlockPlanner, "update", lambda *arguments: (update(*arguments), told.append(arguments[1:3])))
    running.publish_map(map_message(wide_hall()))
    running.wait_until(lambda: told)
    assert np.array_equal(np.argwhere(wide_hall() != 0), np.transpose(told[0]))


def get_plan(running, start, goal, tolerance=0.0):
    client = running.client_node.create_client(GetPlan, "/grid_planner/get_plan")
    assert client.wait_for_service(10)
    message = GetPlan.Request(
        start=stamped(*centre(*start)), goal=stamped(*centre(*goal), yaw=1.5), tolerance=tolerance
    )
    return running.call(client, message).plan


def test_a_start_too_near_to_a_wall_leaves_it(start_node):
    """As with NavFn, which clears the robot's cell: one cell inside the band there is a path, deeper there is none."""
    data = np.zeros((100, 100), np.int8)
    data[50, :60] = 100
    running = start_node(map_message(data, 0.05), footprint_radius=0.22, inflation_radius=0.7)
    client = running.client_node.create_client(GetPlan, "/grid_planner/get_plan")
    assert client.wait_for_service(10)

    def plan(x, y, goal=(4.5, 1.0)):
        ends = {"start": stamped(x, y, yaw=0.3), "goal": stamped(*goal, yaw=1.5)}
        return running.call(client, GetPlan.Request(**ends, tolerance=0.0)).plan.poses

    def check(poses, start):
        points = np.array([(p.pose.position.x, p.pose.position.y) for p in poses])
        assert points[0].tolist() == list(start) and points[-1].tolist() == [4.5, 1.0]
        tiles = np.floor(points / 0.05).astype(int)[:, ::-1]
        assert not data[tuple(tiles.T)].any() and np.abs(np.diff(tiles, axis=0)).max() == 1
        walls = np.argwhere(data)
        metres = 0.05 * np.array([np.hypot(*(walls - tile).T).min() for tile in tiles])
        outside = int(np.argmax(metres >= 0.22))  # from there on it is as far from the wall as it must be
        assert outside > 0 and (metres[outside:] >= 0.22).all() and (np.diff(metres[: outside + 1]) > 0).all()
        return outside

    assert check(plan(1.0, 2.70), (1.0, 2.70)) == 1
    assert plan(1.0, 2.65) == [] and plan(1.0, 2.52) == []
    running.wait_until(lambda: "code 205" in running.facts["last answer"])
    assert running.set_parameter("start_tolerance", 0.1).successful
    assert check(plan(1.0, 2.66), (1.0, 2.66)) == 2 and check(plan(1.0, 2.43), (1.0, 2.43)) == 3
    assert plan(1.0, 2.52) == []  # on the wall
    running.wait_until(lambda: "code 205" in running.facts["last answer"])


def test_a_goal_that_is_cut_off_has_a_tolerance(start_node):
    data = np.zeros((20, 20), np.int8)
    data[5:12, 5:12] = 100
    data[6:11, 6:11] = 0
    running = start_node(map_message(data, 1.0))
    client = running.client_node.create_client(GetPlan, "/grid_planner/get_plan")
    assert client.wait_for_service(10)

    def plan(tolerance):
        ends = {"start": stamped(1.5, 18.5), "goal": stamped(8.5, 8.5)}
        return running.call(client, GetPlan.Request(**ends, tolerance=tolerance)).plan.poses

    end = plan(5.0)[-1].pose.position
    assert np.hypot(end.x - 8.5, end.y - 8.5) == 4.0
    running.wait_until(lambda: "cannot be reached: the path ends at" in running.facts["last answer"])
    for tolerance in (0.0, 3.9):
        assert plan(tolerance) == []
        running.wait_until(lambda: "code 208" in running.facts["last answer"])


def test_get_plan(running):
    path = get_plan(running, (0, 0), (9, 9))
    walk(FREE, 8, tiles_of(path), (0, 0), (9, 9))
    last = path.poses[-1].pose.orientation
    assert path.header.frame_id == "map" and np.isclose(2 * np.arctan2(last.z, last.w), 1.5)
    assert path.header.stamp.sec > 0  # when it was planned, not the map's time
    nothing = get_plan(running, (0, 0), (5, 5))  # a closed room
    assert nothing.poses == [] and nothing.header.frame_id == "map"
    running.wait_until(lambda: "208" in running.facts["last answer"] and "no path" in running.facts["last answer"])


def test_the_tolerance_of_get_plan(running):
    """The nearest free tile that can be reached counts, of a goal in a wall and of one in the closed room."""
    goal = (5, 7)
    assert get_plan(running, (0, 0), goal).poses == []
    assert get_plan(running, (0, 0), goal, tolerance=0.4).poses == []
    for tolerance in (0.5, float("inf")):
        assert tiles_of(get_plan(running, (0, 0), goal, tolerance))[-1].tolist() == [5, 8]
    parts = ndimage.label(FREE)[0]
    outside = np.argwhere(parts == parts[0, 0])
    assert FREE[5, 4] and parts[5, 4] != parts[0, 0]  # in the closed room
    nearest = np.hypot(*(outside - (5, 4)).T).min()
    end = tiles_of(get_plan(running, (0, 0), (5, 4), tolerance=(nearest + 0.01) * RESOLUTION))[-1]
    assert np.hypot(*(end - (5, 4))) == nearest and parts[tuple(end)] == parts[0, 0]
    assert get_plan(running, (0, 0), (5, 4), tolerance=(nearest - 0.01) * RESOLUTION).poses == []


def test_topics_are_planned_again_when_something_changes(start_node):
    running = start_node(map_message(HALL), robots=["red", "/fleet/blue"], plan_agent=1)
    received = {
        name: running.received(kind, name, qos)
        for name, kind, qos in (
            ("/plan", Path, 10),
            ("/red/plan", Path, 10),
            ("/fleet/blue/plan", Path, 10),
            ("/grid_planner/paths_markers", MarkerArray, LATCHED),
            ("/grid_planner/agents", PointCloud2, LATCHED),
            ("/grid_planner/map", OccupancyGrid, LATCHED),
        )
    }
    starts, goals = (running.publisher(PoseArray, f"/grid_planner/{name}") for name in ("starts", "goals"))

    def after(change):
        """The messages that follow a change, one of each topic."""
        counts = {name: len(messages) for name, messages in received.items() if name != "/grid_planner/map"}
        change()
        running.wait_until(lambda: all(len(received[name]) > count for name, count in counts.items()))
        return {name: messages[-1] for name, messages in received.items() if messages}

    starts.publish(poses([centre(14, 2), centre(3, 3)]))
    first = after(lambda: goals.publish(poses([centre(14, 37)], yaw=0.0)))
    assert tiles_of(first["/red/plan"]).tolist() == [[14, col] for col in range(2, 38)]
    assert first["/plan"] == first["/fleet/blue/plan"] and tiles_of(first["/plan"])[0].tolist() == [3, 3]
    assert first["/grid_planner/agents"].width == 2 and first["/grid_planner/paths_markers"].markers[0].points
    wall = wide_hall()
    around = after(lambda: running.publish_map(map_message(np.roll(wall, 8, axis=0))))
    walk(np.roll(wall, 8, axis=0) == 0, 8, tiles_of(around["/red/plan"]), (14, 2), (14, 37))
    assert not (wall[14] == np.roll(wall, 8, axis=0)[14]).all()  # the straight way is closed now
    running.wait_until(
        lambda: list(received["/grid_planner/map"][-1].data) == np.roll(wall, 8, axis=0).ravel().tolist()
    )
    moved = after(lambda: starts.publish(poses([centre(20, 2), centre(20, 3)])))
    assert tiles_of(moved["/red/plan"])[0].tolist() == [20, 2]
    both = after(lambda: goals.publish(poses([centre(20, 5), centre(20, 1)])))
    assert tiles_of(both["/red/plan"])[-1].tolist() == [20, 5] and tiles_of(both["/fleet/blue/plan"])[-1].tolist() == [
        20,
        1,
    ]
    closed = np.full_like(HALL, 100)
    closed[20, :4] = 0
    assert (
        get_plan(running, (0, 0), (1, 1)).poses
        and running.wait_until(lambda: len(tiles_of(received["/plan"][-1])) == 2) is None
    )
    assert received["/red/plan"][-1] == both["/red/plan"]  # a single path is none of the robots'
    none = after(lambda: running.publish_map(map_message(closed)))
    assert none["/red/plan"].poses == [] and none["/fleet/blue/plan"].poses  # one has no path any more, the other has


def test_topics_are_left_alone_without_replan(start_node):
    running = start_node(map_message(HALL), replan=False)
    sent = running.received(Path, "/plan")
    starts, goals = (running.publisher(PoseArray, f"/grid_planner/{name}") for name in ("starts", "goals"))
    goals.publish(poses([centre(5, 5)]))
    starts.publish(poses([centre(0, 0)]))
    running.wait_until(lambda: len(sent) == 1)
    starts.publish(poses([centre(1, 1)]))
    running.publish_map(map_message(wide_hall()))
    goals.publish(poses([centre(6, 6)]))
    running.wait_until(lambda: len(sent) == 2)
    assert tiles_of(sent[1])[0].tolist() == [1, 1] and tiles_of(sent[1])[-1].tolist() == [6, 6]


def test_starts_and_goals_may_come_before_the_map(start_node):
    running = start_node(None)
    sent = running.received(Path, "/plan")
    for name, tile in (("starts", (0, 0)), ("goals", (5, 5))):
        running.publisher(PoseArray, f"/grid_planner/{name}").publish(poses([centre(*tile)]))
    running.wait_until(lambda: "no map" in running.problem)
    running.publish_map(map_message(HALL))
    running.wait_until(lambda: sent)
    running.wait_until(lambda: not running.problem)


def test_a_map_from_a_publisher_that_does_not_latch(start_node):
    running = start_node(None, map_durability="volatile")
    running.publish_map(map_message(), qos=QoSProfile(depth=1))
    assert running.plan(request()).code == codes.NONE


def write_map_server_map(folder):
    """The drawn map as map_server's files: free white, occupied black, unknown grey."""
    from PIL import Image

    shades = np.select([cells() == 0, cells() == 100], [254, 0], 205).astype(np.uint8)[::-1]
    Image.fromarray(shades).save(folder / "rooms.pgm")
    (folder / "rooms.yaml").write_text(
        f"image: rooms.pgm\nresolution: {RESOLUTION}\norigin: [0.0, 0.0, 0.0]\nnegate: 0\n"
        "occupied_thresh: 0.65\nfree_thresh: 0.196\n"
    )
    return folder / "rooms.yaml"


def write_movingai_map(folder):
    lines = ["".join(".@"[int(value != 0)] for value in row) for row in cells()]
    (folder / "rooms.map").write_text("\n".join(["type octile", "height 10", "width 10", "map", *lines]) + "\n")
    return folder / "rooms.map"


@pytest.mark.parametrize("write", [write_map_server_map, write_movingai_map], ids=["map_server", "MovingAI"])
def test_a_map_from_a_file(start_node, tmp_path, write):
    running = start_node(None, map_file=str(write(tmp_path)), map_frame="hall")
    resolution = RESOLUTION if write is write_map_server_map else 1.0
    message = request(frame="hall", path_agents=[0])
    for pose in (*message.starts.poses, *message.goals.poses):
        pose.position.x, pose.position.y = (
            pose.position.x / RESOLUTION * resolution,
            pose.position.y / RESOLUTION * resolution,
        )
    response = running.plan(message)
    assert response.code == codes.NONE and np.isclose(response.costs[0], costs_to_goal(FREE, 8, (9, 9))[0, 0])
    walk(FREE, 8, tiles_of(response.paths[0], resolution), (0, 0), (9, 9))


def test_diagnostics_say_when_the_node_is_ready(running):
    running.wait_until(lambda: running.status.level == DiagnosticStatus.OK)
    assert running.status.name == "/grid_planner" and running.status.message == "ready"
    assert running.facts["map"].startswith("10 x 10")


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("block_size", 12, ["block_size", "12", "4, 8, 16, 32"]),
        ("algorithm", "dijkstra", ["dijkstra", "exact", "astar"]),
        ("footprint_radius", -1.0, ["footprint_radius"]),
        ("unknown", "maybe", ["unknown"]),
        ("map_frame", "odom", ["map_frame"]),
    ],
)
def test_a_wrong_parameter_is_refused_while_running(running, name, value, words):
    result = running.set_parameter(name, value)
    assert not result.successful and all(word in result.reason for word in words), result.reason
    assert running.plan(request()).code == codes.NONE


@pytest.mark.parametrize("block_size", [8, 32])
def test_the_block_size_takes_effect(running, block_size):
    assert running.set_parameter("block_size", block_size).successful
    response = running.plan(request(starts=OPEN, goals=[(9, 9)], algorithm="exact"))
    assert np.allclose(response.costs, costs_to_goal(FREE, 8, (9, 9))[tuple(OPEN.T)])


def test_every_parameter_is_described(running):
    for name in rules_of(GridParameters):
        descriptor = running.node.describe_parameter(name)
        assert len(descriptor.description) > 10
        value = running.node.get_parameter(name).value
        if isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value):
            assert (
                len([*descriptor.integer_range, *descriptor.floating_point_range]) == 1
                or descriptor.additional_constraints
            )


def test_a_quarter_of_a_million_agents(start_node):
    """262,144 agents in one request of plain numbers; a sample of the answer is checked tile by tile."""
    rng = np.random.default_rng(0)
    data = np.where(rng.random((128, 128)) < 0.2, 100, 0).astype(np.int8)
    data[64, 64] = 0
    running = start_node(map_message(data), algorithm="exact")
    starts = rng.integers(0, 128, (262_144, 2))
    message = request(starts=[], goals=[(64, 64)])
    message.start_points = array.array("d", ((starts[:, ::-1] + 0.5) * RESOLUTION).ravel())
    response = running.plan(message)
    expected = costs_to_goal(data == 0, 8, (64, 64))[tuple(starts.T)]
    blocked = data[tuple(starts.T)] != 0
    assert response.code == codes.NONE and len(response.codes) == len(starts)
    assert np.allclose(response.costs, expected)
    found = np.frombuffer(response.codes, np.uint16)
    assert np.array_equal(found == codes.START_OCCUPIED, blocked) and np.array_equal(
        found == codes.NONE, np.isfinite(expected)
    )
    paths = path_set_of(response)
    for agent in rng.choice(np.flatnonzero(np.isfinite(expected)), 50):
        walk(data == 0, 8, paths.path(agent), starts[agent], (64, 64))


def test_stopping_does_not_wait_for_a_long_job(start_node, monkeypatch):
    running, at_it, end = start_node(), threading.Event(), threading.Event()
    monkeypatch.setattr(BlockPlanner, "plan", lambda *_: (at_it.set(), end.wait()))
    running.client.call_async(request())
    assert at_it.wait(20)
    assert not running.node.close(patience_s=0.05)
    end.set()
    assert running.node.close()


def test_map_updates_over_dds(start_node):
    updates = pytest.importorskip(
        "map_msgs.msg", reason="map_msgs is not among the ROS wheels; it comes with a ROS installation"
    )
    running = start_node(map_message(HALL))
    assert running.plan(request(starts=[(14, 2)], goals=[(14, 37)])).costs[0] == 35.0
    message = updates.OccupancyGridUpdate(x=20, y=0, width=1, height=25, data=array.array("b", [100] * 25))
    running.publisher(updates.OccupancyGridUpdate, "/map_updates").publish(message)
    running.wait_until(lambda: running.facts["map changes"] == "2")
    shown = running.received(OccupancyGrid, "/grid_planner/map", LATCHED)
    publisher = running.publisher(updates.OccupancyGridUpdate, "/map_updates", 1000)
    taken = int(running.facts["map messages"])
    data = HALL.copy()
    data[:25, 20] = 100
    for row, col in np.ndindex(10, 20):  # a burst of which none is lost
        data[row, col] = 100 * ((row + col) % 2)
        publisher.publish(
            updates.OccupancyGridUpdate(x=col, y=row, width=1, height=1, data=array.array("b", [data[row, col]]))
        )
    running.wait_until(lambda: int(running.facts["map messages"]) == taken + 200)
    running.wait_until(lambda: shown and np.array_equal(np.reshape(shown[-1].data, data.shape) == 100, data != 0))
    response = running.plan(request(starts=[(14, 2)], goals=[(14, 37)]))
    assert np.isclose(response.costs[0], costs_to_goal(data == 0, 8, (14, 37))[14, 2])


def test_nav2s_action(start_node, monkeypatch):
    nav2 = pytest.importorskip(
        "nav2_msgs.action", reason="nav2_msgs is not among the ROS wheels; it comes with a ROS installation"
    )
    from action_msgs.msg import GoalStatus
    from rclpy.action import ActionClient

    running = start_node()
    client = ActionClient(running.client_node, nav2.ComputePathToPose, "/compute_path_to_pose")
    assert client.wait_for_server(10)

    def ask(start, goal, cancel=False, **fields):
        message = nav2.ComputePathToPose.Goal(
            start=stamped(*centre(*start)), goal=stamped(*centre(*goal)), use_start=True
        )
        for name, value in fields.items():
            setattr(message, name, value)
        accepted = client.send_goal_async(message)
        running.wait_until(accepted.done)
        if cancel:
            cancelled = accepted.result().cancel_goal_async()
            running.wait_until(cancelled.done)
            cancel()
        answer = accepted.result().get_result_async()
        running.wait_until(answer.done)
        return answer.result().status, answer.result().result

    status, result = ask((0, 0), (9, 9), planner_id="GridBased")
    assert status == GoalStatus.STATUS_SUCCEEDED and result.error_code == 0
    walk(FREE, 8, tiles_of(result.path), (0, 0), (9, 9))
    for goal, fields, code in (
        ((5, 5), {}, codes.NO_VALID_PATH),
        ((2, 8), {}, codes.GOAL_OCCUPIED),
        ((9, 12), {}, codes.GOAL_OUTSIDE_MAP),
        ((9, 9), {"planner_id": "theta"}, codes.INVALID_PLANNER),
        ((9, 9), {"use_start": False}, codes.TF_ERROR),
    ):
        status, result = ask((0, 0), goal, **fields)
        assert (status, result.error_code, result.path.poses) == (GoalStatus.STATUS_ABORTED, code, [])
    busy, plan = threading.Event(), BlockPlanner.plan
    monkeypatch.setattr(BlockPlanner, "plan", lambda *arguments: (busy.wait(), plan(*arguments))[1])
    ends = {"start": stamped(*centre(0, 0)), "goal": stamped(*centre(9, 9))}
    client.send_goal_async(nav2.ComputePathToPose.Goal(**ends, use_start=True))  # keeps the worker busy
    many = [client.send_goal_async(nav2.ComputePathToPose.Goal(goal=stamped(*centre(9, 9)))) for _ in range(10)]
    running.wait_until(lambda: all(accepted.done() for accepted in many))
    assert running.set_parameter("plan_agent", 1).successful  # goals that wait leave the executor its threads
    status, result = ask((0, 0), (9, 9), cancel=busy.set)
    assert status == GoalStatus.STATUS_CANCELED and result.path.poses == []
    assert ask((0, 0), (9, 9))[0] == GoalStatus.STATUS_SUCCEEDED


def test_poses_in_other_frames_by_tf2(start_node):
    tf2_ros = pytest.importorskip(
        "tf2_ros", reason="tf2_ros is not among the ROS wheels; it comes with a ROS installation"
    )
    from geometry_msgs.msg import TransformStamped

    running = start_node()
    transform = TransformStamped(child_frame_id="odom")
    transform.header.frame_id = "map"
    transform.transform.translation.x, transform.transform.rotation.z, transform.transform.rotation.w = (
        5.0,
        np.sqrt(0.5),
        np.sqrt(0.5),
    )
    broadcaster = tf2_ros.StaticTransformBroadcaster(running.client_node)  # a quarter turn, then 5 m along x
    broadcaster.sendTransform(transform)
    x, y = centre(0, 2)
    message = request(path_agents=[0])
    message.starts = poses([(y, 5.0 - x)], frame="odom")
    running.wait_until(lambda: running.plan(message).code != codes.TF_ERROR)  # until the transform is known
    response = running.plan(message)
    walk(FREE, 8, tiles_of(response.paths[0]), (0, 2), (9, 9))
    message.starts.header.frame_id = "moon"
    assert running.plan(message).code == codes.TF_ERROR
