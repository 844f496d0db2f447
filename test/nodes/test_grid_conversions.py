"""Grid messages to types and back: each field, frame and mistake, without a running node."""

import array

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

from types import SimpleNamespace

from geometry_msgs.msg import Point, Pose, Quaternion
from grid_harness import map_message, pose, poses, stamped
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nav_msgs.msg import OccupancyGrid
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners.errors import DeviceError, GridMapError, SettingsError
from gpu_planners.grid import AgentStatus, GridMap, PathSet
from gpu_planners.grid.paths import COL_STEP, ROW_STEP
from gpu_planners.nodes.common import map_codes, map_messages
from gpu_planners.nodes.common.map_scene import Frames
from gpu_planners.nodes.common.pictures import serialized_with_points
from gpu_planners.nodes.common.request_error import RequestError
from gpu_planners.nodes.grid import conversions as grid_conversions
from gpu_planners.nodes.grid.routes import near_goal
from gpu_planners.nodes.grid.topics import PATH_COLOUR, path_lines, paths_markers, straight_runs
from gpu_planners_msgs.srv import PlanAgents, PlanFleet, SubmitTasks

HEADER = Header(frame_id="map")
OCCUPANCY = map_messages.MAP_KINDS["occupancy"]


def path_set(*moves, connectivity=8, status=None, apart=10):
    """Paths of agents that start at (apart * i, 20) and go by move codes."""
    offsets = np.cumsum([0, *map(len, moves)])
    status = [0] * len(moves) if status is None else status
    starts = [(apart * i, 20) for i in range(len(moves))]
    costs = [float(len(m)) if s == 0 else np.inf for m, s in zip(moves, status)]
    return PathSet.of_moves(starts, status, costs, np.concatenate(moves).astype(np.uint8), offsets, connectivity)


def open_grid(**fields):
    return GridMap(np.ones((100, 60), np.uint8), **fields)


def test_a_map_keeps_its_values_and_place():
    values = np.array([[0, 100, -1], [7, 64, 65]], np.int8)
    data, resolution, origin = OCCUPANCY.read(map_message(values, 0.05, (1.0, -2.0, 0.7)))
    assert data.tolist() == values.tolist() and resolution == 0.05  # float32 in the message
    assert np.allclose(origin, (1.0, -2.0, 0.7))


def test_a_quaternion_of_zeros_is_no_rotation():
    message = map_message()
    message.info.origin.orientation = Quaternion(x=0.0, y=0.0, z=0.0, w=0.0)
    assert OCCUPANCY.read(message)[2] == (0.0, 0.0, 0.0)


def changed(change):
    message = map_message()
    change(message)
    return message


@pytest.mark.parametrize(
    "message, words",
    [
        (OccupancyGrid(), ["empty", "width 0", "height 0"]),
        (changed(lambda m: setattr(m, "data", m.data[:-1])), ["99 cells", "10 * 10"]),
        (changed(lambda m: setattr(m.info, "resolution", 0.0)), ["resolution", "0.0"]),
        (changed(lambda m: setattr(m.info, "resolution", float("nan"))), ["resolution", "nan"]),
        (changed(lambda m: setattr(m.info.origin.position, "x", float("inf"))), ["origin", "finite"]),
        (
            changed(lambda m: setattr(m.info.origin, "orientation", Quaternion(x=0.5, y=0.0, z=0.0, w=0.8))),
            ["tilted", "0.5"],
        ),
    ],
)
def test_malformed_maps_are_named(message, words):
    with pytest.raises(GridMapError) as error:
        OCCUPANCY.read(message)
    assert all(word in str(error.value) for word in words), str(error.value)


def update(x, y, width, height, values):
    return SimpleNamespace(x=x, y=y, width=width, height=height, data=array.array("b", values))


def test_map_updates_lie_where_they_say_or_are_refused():
    row, col, data = OCCUPANCY.read_update(update(1, 2, 3, 2, range(6)), (4, 4))
    assert (row, col, data.tolist()) == (2, 1, [[0, 1, 2], [3, 4, 5]])
    for message, word in (
        (update(2, 0, 3, 1, range(3)), "columns 2 to 4"),
        (update(0, -1, 1, 1, range(1)), "rows -1"),
        (update(0, 0, 2, 2, range(3)), "3 cells"),
    ):
        with pytest.raises(GridMapError, match=word):
            OCCUPANCY.read_update(message, (4, 4))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(0, 7), max_size=40), min_size=1, max_size=6), st.sampled_from([4, 8]))
def test_a_response_gives_the_paths_back(moves, connectivity):
    moves = [np.array(m, int) % connectivity for m in moves]
    paths = path_set(*moves, connectivity=connectivity)
    response = PlanAgents.Response()
    grid_conversions.fill_paths(response, paths, with_steps=True)
    back = grid_conversions.path_set_of(response)
    for i, codes in enumerate(moves):
        steps = np.stack([ROW_STEP[codes], COL_STEP[codes]], axis=1)
        expected = (
            np.concatenate([[[10 * i, 20]], np.cumsum(steps, axis=0) + (10 * i, 20)]) if len(codes) else [[10 * i, 20]]
        )
        assert back.path(i).tolist() == np.asarray(expected).tolist()
    assert back.cost.tolist() == paths.cost.tolist() and list(response.codes) == [0] * len(moves)


def test_codes_costs_and_texts_of_agents_without_a_path():
    paths = path_set([1], [], [], status=[AgentStatus.SOLVED, AgentStatus.GOAL_BLOCKED, AgentStatus.NO_PATH])
    response = PlanAgents.Response()
    grid_conversions.fill_paths(response, paths, with_steps=False)
    assert list(response.codes) == [0, 206, 208] and list(response.costs) == [1.0, np.inf, np.inf]
    assert dict(zip(response.text_codes, response.code_texts)) == {
        0: paths.message(0),
        206: paths.message(1),
        208: paths.message(2),
    }
    assert not response.words and not response.first and not response.start_tiles
    with pytest.raises(ValueError, match="no steps"):
        grid_conversions.path_set_of(response)


def directions(path):
    """Unit vectors (K, 2) that the poses look along."""
    yaw = [2 * np.arctan2(p.pose.orientation.z, p.pose.orientation.w) for p in path.poses]
    return np.stack([np.cos(yaw), np.sin(yaw)], axis=1)


@pytest.mark.parametrize("origin", [(0.0, 0.0, 0.0), (3.0, -1.0, 0.6), (0.0, 2.0, -2.5)])
def test_poses_of_a_path_look_along_it(origin):
    grid = open_grid(resolution=0.25, origin=origin)
    tiles = path_set([1, 1, 4, 5, 2, 6, 3, 7, 0]).path(0)
    path = grid_conversions.path_message(grid, tiles, HEADER)
    points = np.array([(p.pose.position.x, p.pose.position.y) for p in path.poses])
    assert np.allclose(points, grid.centres_of(tiles))
    steps = np.diff(points, axis=0)
    assert np.allclose(directions(path)[:-1], steps / np.linalg.norm(steps, axis=1)[:, None])
    assert np.allclose(directions(path)[-1], directions(path)[-2])
    assert path.header == HEADER and all(p.header == HEADER for p in path.poses)


def test_the_last_pose_looks_as_the_goal_does():
    tiles = path_set([1, 1]).path(0)
    x, y = open_grid().centres_of(tiles[-1:])[0]
    goal = map_messages.pose_of(stamped(x, y, yaw=2.0))
    path = grid_conversions.path_message(open_grid(), tiles, HEADER, goal=goal)
    assert np.allclose(directions(path), [(1, 0), (1, 0), (np.cos(2), np.sin(2))])
    none = map_messages.pose_of(stamped(x, y, yaw=None))
    assert np.allclose(directions(grid_conversions.path_message(open_grid(), tiles, HEADER, goal=none)), [(1, 0)] * 3)
    single = grid_conversions.path_message(open_grid(), path_set([]).path(0), HEADER, goal=goal)
    assert np.allclose(directions(single), [(np.cos(2), np.sin(2))])
    assert grid_conversions.path_message(open_grid(), np.empty((0, 2), int), HEADER).poses == []


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(0, 7), max_size=12), min_size=1, max_size=5), st.integers(1, 3))
@example([[2], [2]], 2)  # the next path begins where this one would go on
def test_straight_runs_cover_exactly_the_paths(moves, apart):
    tiles, offsets = path_set(*[np.array(m, int) for m in moves], apart=apart).paths()
    covered = []
    for (r0, c0), (r1, c1) in straight_runs(tiles, offsets).tolist():
        n = max(abs(r1 - r0), abs(c1 - c0))
        assert n > 0 and {abs(r1 - r0), abs(c1 - c0)} <= {0, n}
        covered += [
            ((r0 + k * (r1 - r0) // n, c0 + k * (c1 - c0) // n), (np.sign(r1 - r0), np.sign(c1 - c0))) for k in range(n)
        ]
    expected, runs = [], 0
    for i, codes in enumerate(moves):
        path = tiles[offsets[i] : offsets[i + 1]].tolist()
        expected += [(tuple(a), (ROW_STEP[c], COL_STEP[c])) for a, c in zip(path, codes)]
        runs += sum(1 for k, c in enumerate(codes) if k == 0 or c != codes[k - 1])
    assert covered == expected and len(straight_runs(tiles, offsets)) == runs


def test_markers_are_one_list_of_lines_of_agents_that_have_a_path():
    paths = path_set([1] * 5, [2] * 3, [], [1, 2], status=[0, 0, 1, 0])
    lines = path_lines(open_grid(resolution=0.5), paths, 10)
    assert lines[:2].tolist() == [[10.25, 0.25], [12.75, 0.25]] and len(lines) == 2 * (1 + 1 + 2)
    assert len(path_lines(open_grid(), paths, 2)) == 2 * (1 + 2)  # the first and the last
    assert len(path_lines(open_grid(), path_set([], status=[1]), 10)) == 0


@pytest.mark.parametrize(
    "frame", ["map", "a_map", "of the map"]
)  # of other lengths: other bytes before what is aligned
def test_markers_are_sent_as_if_each_point_were_a_message(frame):
    header = Header(frame_id=frame)
    for count in (2, 6, 1000):
        lines = np.random.default_rng(count).normal(size=(count, 2))
        sent = paths_markers(lines, header, 0.1)
        (marker,) = deserialize_message(sent, MarkerArray).markers
        assert (
            marker.type == Marker.LINE_LIST
            and marker.action == Marker.ADD
            and marker.scale.x == 0.1
            and marker.header == header
        )
        assert [(p.x, p.y, p.z) for p in marker.points] == [(x, y, 0.0) for x, y in lines.tolist()]
        assert (
            np.isclose(marker.color.b, PATH_COLOUR.b)
            and marker.colors == []
            and marker.mesh_resource == marker.text == ""
        )  # about the points
    (none,) = deserialize_message(paths_markers(np.empty((0, 2)), header, 0.1), MarkerArray).markers
    assert none.action == Marker.DELETE and (none.ns, none.id) == (marker.ns, marker.id)


@pytest.mark.parametrize("namespace", ["paths", "p", "a longer one", ""])
def test_points_are_spliced_into_what_rclpy_serializes(namespace):
    """As rclpy serializes a message with each point as an object; only padding may hold other bytes."""
    for count in (0, 1, 2, 77):
        points = np.random.default_rng(count).normal(size=(count, 3))
        plain, spliced = (Marker(header=HEADER, ns=namespace, type=Marker.LINE_LIST) for _ in range(2))
        plain.points = [Point(x=x, y=y, z=z) for x, y, z in points.tolist()]
        expected = serialize_message(MarkerArray(markers=[plain]))
        sent = serialized_with_points(spliced, points)
        assert len(sent) == len(expected)
        assert deserialize_message(sent, MarkerArray) == deserialize_message(expected, MarkerArray)


def test_the_cloud_of_agents():
    paths = path_set([1, 1], [], status=[0, AgentStatus.START_BLOCKED])
    message = grid_conversions.agents_message(np.array([[1.0, 2.0], [3.0, 4.0]]), paths, HEADER)
    kinds = {field.datatype: kind for field, kind in zip(message.fields, ("<f4", "<f4", "<f4", "<u2", "<u4", "<f4"))}
    layout = np.dtype(
        {
            "names": [f.name for f in message.fields],
            "formats": [kinds[f.datatype] for f in message.fields],
            "offsets": [f.offset for f in message.fields],
            "itemsize": message.point_step,
        }
    )
    cloud = np.frombuffer(message.data, layout)
    assert message.width == 2 and message.row_step == len(message.data)
    assert cloud["x"].tolist() == [1, 3] and cloud["y"].tolist() == [2, 4] and cloud["code"].tolist() == [0, 205]
    assert cloud["agent"].tolist() == [0, 1] and cloud["cost"].tolist() == [2.0, np.inf]


def test_the_shown_map_has_the_place_and_the_costs():
    costs = np.array([[1, 0, 3], [2, 2, 1]], np.uint8)
    message = map_messages.map_message(GridMap(costs, resolution=0.1, origin=(1.0, 2.0, 0.5)), HEADER)
    data, resolution, origin = OCCUPANCY.read(message)
    assert data.tolist() == [[0, 100, 99], [49, 49, 0]] and resolution == 0.1 and np.allclose(origin, (1.0, 2.0, 0.5))
    uniform = map_messages.map_message(GridMap(np.array([[5, 0]], np.uint8)), HEADER)
    assert list(uniform.data) == [0, 100]


def test_poses_and_points_of_a_request():
    request = PlanAgents.Request(starts=poses([(1, 2), (3, 4)], "odom", yaw=0.5))
    request.goal_points = array.array("d", [5.0, 6.0])
    request.goals.header.frame_id = "map"
    starts = grid_conversions.request_poses(request, "starts")
    goals = grid_conversions.request_poses(request, "goals")
    assert starts.points.tolist() == [[1, 2, 0], [3, 4, 0]] and starts.frame == "odom" and len(starts) == 2
    assert np.allclose(starts.quaternions, [[0, 0, np.sin(0.25), np.cos(0.25)]] * 2)
    assert goals.points.tolist() == [[5, 6, 0]] and goals.frame == "map" and not goals.quaternions.any()
    request.start_points = array.array("d", [1.0, 2.0])
    with pytest.raises(RequestError, match="starts twice"):
        grid_conversions.request_poses(request, "starts")
    request.goal_points = array.array("d", [5.0, 6.0, 7.0])
    with pytest.raises(RequestError, match="goal_points has 3 numbers"):
        grid_conversions.request_poses(request, "goals")


class FakeTf2:
    """tf2_ros with one transform, from odom to map: a quarter turn, then 10 m along x."""

    class Buffer:
        def __init__(self, node):
            pass

        def lookup_transform(self, target, source, time, timeout):
            if (target, source) != ("map", "odom"):
                raise LookupError(f'"{source}" does not exist')
            from geometry_msgs.msg import TransformStamped

            answer = TransformStamped()
            answer.transform.translation.x = 10.0
            answer.transform.rotation = pose(0, 0, np.pi / 2).orientation
            return answer

    @staticmethod
    def TransformListener(buffer, node):
        return buffer


def test_poses_are_transformed_where_tf2_is_there(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tf2_ros", FakeTf2)
    frames = Frames(node="any")
    given = map_messages.poses_of(poses([(1, 2)], "odom", yaw=0.0))
    moved = frames.to_map(given, "map", "the starts")
    assert np.allclose(moved.points, [[8, 1, 0]]) and np.allclose(
        moved.quaternions, [[0, 0, np.sqrt(0.5), np.sqrt(0.5)]]
    )
    without = frames.to_map(map_messages.poses_of(poses([(1, 2)], "odom")), "map", "the starts")
    assert np.allclose(without.points, [[8, 1, 0]]) and not without.quaternions.any()
    with pytest.raises(RequestError, match="the goals.*'moon'.*does not exist") as error:
        frames.to_map(map_messages.poses_of(poses([(1, 2)], "moon")), "map", "the goals")
    assert error.value.code == 202


def test_without_tf2_only_the_maps_frame_is_known(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tf2_ros", None)
    frames = Frames(node=None)
    for frame in ("map", ""):
        assert frames.to_map(map_messages.poses_of(poses([(1, 2)], frame)), "map", "x").points.tolist() == [[1, 2, 0]]
    with pytest.raises(RequestError, match="the goals.*'odom'.*'map'.*tf2_ros is not installed") as error:
        frames.to_map(map_messages.poses_of(poses([(1, 2)], "odom")), "map", "the goals")
    assert error.value.code == 202


def test_the_nearest_tile_that_the_start_is_joined_to():
    """About an occupied goal lie a hundred free tiles of a closed room, which are nearer but cannot be reached."""
    costs = np.ones((40, 60), np.uint8)
    costs[10:24, 20:34] = 0
    costs[11:23, 21:33] = 1
    costs[17, 27] = 0
    grid, start, goal = GridMap(costs, resolution=0.1), np.array([[0.0, 0.0]]), np.array([[17.0, 27.0]])
    for tolerance in (0.71, 5.0):
        assert near_goal(grid, start, goal, tolerance).tolist() == [[17.0, 34.0]]
    assert near_goal(grid, start, goal, 0.6).tolist() == goal.tolist()
    assert near_goal(grid, np.array([[12.0, 22.0]]), goal, 5.0).tolist() == [[16.0, 27.0]]  # from inside
    for elsewhere in ([[np.nan, 0.0]], [[-1.0, 0.0]], [[10.0, 20.0]]):
        assert near_goal(grid, np.array(elsewhere), goal, 5.0).tolist() == goal.tolist()


def test_every_status_has_a_code_of_the_service():
    assert set(grid_conversions.CODE_OF_STATUS) == set(AgentStatus)
    assert len(set(grid_conversions.CODE_OF_STATUS.values())) == len(AgentStatus)
    constants = {name: value for name, value in vars(map_codes).items() if name.isupper() and isinstance(value, int)}
    for name, value in constants.items():
        answers = [each.Response for each in (PlanAgents, PlanFleet, SubmitTasks) if hasattr(each.Response, name)]
        assert answers and all(getattr(answer, name) == value for answer in answers), name
    assert constants["NO_VALID_PATH"] == 208 and constants["START_OUTSIDE_MAP"] == 203  # Nav2's


def test_errors_of_the_library_have_codes():
    assert map_codes.code_of(GridMapError("x")) == map_codes.NO_MAP
    assert map_codes.code_of(DeviceError("x")) == map_codes.NO_DEVICE
    assert map_codes.code_of(SettingsError("x")) == map_codes.INVALID_REQUEST
    assert map_codes.code_of(MemoryError()) == map_codes.OUT_OF_MEMORY
    assert map_codes.code_of(KeyError("x")) == map_codes.UNKNOWN
    assert map_codes.code_of(RequestError(7, "x")) == 7


def test_poses_default_to_no_orientation_given():
    assert map_messages.poses_of(poses([])).points.shape == (0, 3)
    assert Pose().orientation.w == 1.0  # a client that sets nothing asks for a goal along x
