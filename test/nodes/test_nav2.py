"""What Nav2 meets: exact ends of paths, checks of paths, costmaps, inflation, codes. Pure functions, no node."""

import array
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

import numpy as np
import yaml
from grid_harness import map_message, pose, stamped
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage, sparse
from std_msgs.msg import Header

from gpu_planners.errors import GridMapError
from gpu_planners.grid import GridMap
from gpu_planners.nodes.common import bond, map_messages
from gpu_planners.nodes.common import map_codes as codes
from gpu_planners.nodes.common.map_messages import Poses, pose_of
from gpu_planners.nodes.common.map_scene import Frames
from gpu_planners.nodes.common.parameters import read, ros_default, rules_of
from gpu_planners.nodes.common.request_error import NotBegunError, RequestError
from gpu_planners.nodes.grid import nav2
from gpu_planners.nodes.grid.conversions import path_message
from gpu_planners.nodes.grid.footprints import blocked_outlines, read_footprint
from gpu_planners.nodes.grid.leaving import ways_out
from gpu_planners.nodes.grid.parameters import ALGORITHMS, GridParameters
from gpu_planners.nodes.grid.routes import PathCheck, blocked_ahead, cut, nearest, reached, route, unreachable_poses
from gpu_planners.nodes.grid.scene import GridScene, inflated

HEADER = Header(frame_id="map")
seeds = st.integers(0, 2**32 - 1)


def random_grid(rng, shape=(12, 15)):
    """GridMap with a quarter of its tiles blocked, anywhere and turned in any way."""
    costs = (rng.random(shape) > 0.25).astype(np.uint8)
    return GridMap(costs, resolution=rng.choice([0.05, 0.3, 1.0]), origin=(*rng.uniform(-5, 5, 2), rng.uniform(-3, 3)))


def in_metres(grid, places):
    """(K, 2) [row, col] with fractions -> x, y in the map's frame, by the definition of an OccupancyGrid's origin."""
    x, y, yaw = grid.origin
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    return places[:, ::-1] * grid.resolution @ turn.T + (x, y)


def passes_blocked(grid, start, end):
    """Does a line between places pass through the inside of a blocked tile? None: too close to tell.

    The line is clipped to one blocked tile after the other.
    """
    close = False
    for low in np.argwhere(grid.blocked):
        enter, leave = 0.0, 1.0
        for axis in (0, 1):
            way = end[axis] - start[axis]
            if way == 0:
                enter, leave = (enter, leave) if low[axis] <= start[axis] < low[axis] + 1 else (1.0, 0.0)
                continue
            times = sorted(((low[axis] - start[axis]) / way, (low[axis] + 1 - start[axis]) / way))
            enter, leave = max(enter, times[0]), min(leave, times[1])
        if leave - enter > 1e-9:
            return True
        close |= abs(leave - enter) <= 1e-9
    return None if close else False


def random_walk(rng, grid, steps):
    """(K, 2) tiles of a walk that cuts no corners, with no step back and forth."""
    free = np.argwhere(~grid.blocked)
    tiles = [free[rng.integers(len(free))]]
    padded = np.pad(~grid.blocked, 1)
    for _ in range(steps):
        row, col = tiles[-1] + 1
        moves = [
            (a, b)
            for a in (-1, 0, 1)
            for b in (-1, 0, 1)
            if (a or b) and padded[row + a, col + b] and padded[row + a, col] and padded[row, col + b]
        ]
        if not moves:
            break
        tiles.append(tiles[-1] + moves[rng.integers(len(moves))])
    return np.array(tiles)


@settings(deadline=None, max_examples=60)
@given(seeds, st.integers(0, 12))
def test_a_path_joins_its_exact_ends_through_free_tiles(seed, steps):
    rng = np.random.default_rng(seed)
    grid = random_grid(rng)
    tiles = random_walk(rng, grid, steps)
    places = tiles[[0, -1]] + rng.uniform(0.001, 0.999, (2, 2))
    ends, yaws = in_metres(grid, places), rng.uniform(-3, 3, 2)
    start, goal = (pose_of(stamped(*point, yaw)) for point, yaw in zip(ends, yaws))
    poses = path_message(grid, tiles, HEADER, start, goal).poses
    points = np.array([(p.pose.position.x, p.pose.position.y) for p in poses])
    assert points[0].tolist() == ends[0].tolist() and points[-1].tolist() == ends[1].tolist()
    looks = [2 * np.arctan2(p.pose.orientation.z, p.pose.orientation.w) for p in poses]
    assert np.allclose(np.array(looks)[[0, -1]], yaws)
    steps = np.diff(points, axis=0)[1:]
    assert np.allclose(np.exp(1j * np.array(looks[1:-1])), _directions(steps))
    inside = np.concatenate([places[:1], tiles[1:-1] + 0.5, places[1:]])
    assert not any(passes_blocked(grid, a, b) for a, b in zip(inside[:-1], inside[1:]))
    assert unreachable_poses(grid, points).tolist() == []


def _directions(steps):
    steps = steps[:, 0] + 1j * steps[:, 1]
    return steps / np.abs(steps)


def test_without_orientations_the_ends_look_along_the_path():
    grid = GridMap(np.ones((3, 9)))
    start, goal = pose_of(stamped(0.5, 1.2)), pose_of(stamped(2.5, 2.2))
    poses = path_message(grid, np.array([[1, 0], [1, 1], [2, 2]]), HEADER, start, goal).poses
    yaws = [2 * np.arctan2(p.pose.orientation.z, p.pose.orientation.w) for p in poses]
    assert np.allclose(yaws, [np.arctan2(0.3, 1), np.arctan2(0.7, 1), np.arctan2(0.7, 1)])


@settings(deadline=None, max_examples=60)
@given(seeds)
def test_poses_behind_obstacles_are_found(seed):
    rng = np.random.default_rng(seed)
    grid = random_grid(rng)
    places = rng.uniform(-0.5, 1, (12, 2)) * 0.5 * np.array(grid.shape) + np.array(grid.shape) / 3
    places[rng.integers(12)] = np.nan if seed % 3 == 0 else 1e300
    unreachable = set(unreachable_poses(grid, in_metres(grid, places)).tolist())
    for k, place in enumerate(places):
        inside = (place >= 0).all() and (place < grid.shape).all()
        if not inside or grid.blocked[tuple(place.astype(int))]:
            assert k in unreachable
            continue
        before = places[k - 1] if k else place
        if not np.isfinite(before).all() or not ((before >= 0) & (before < grid.shape)).all():
            assert k in unreachable
            continue
        passes = passes_blocked(grid, before, place)
        assert passes is None or (k in unreachable) == passes


def test_a_path_longer_than_what_is_looked_at_together(monkeypatch):
    monkeypatch.setattr("gpu_planners.nodes.grid.routes.MOST_CROSSINGS", 50)
    costs = np.ones((40, 40), np.uint8)
    costs[20, 20] = 0
    points = np.tile([[0.5, 0.5], [39.5, 39.5], [39.5, 0.5]], (20, 1))
    expected = [k for k in range(60) if k % 3 == 1]  # the diagonal only
    assert unreachable_poses(GridMap(costs), points).tolist() == expected


def test_the_pose_next_to_the_robot():
    points = np.array([[np.nan, 0], [5.0, 5.0], [1.0, 1.0], [np.inf, 1.0]])
    assert nearest(points, np.array([1.5, 1.0])) == 2


@settings(deadline=None, max_examples=30)
@given(seeds)
def test_inflation_is_the_formula_of_nav2s_layer(seed):
    rng = np.random.default_rng(seed)
    grid = GridMap((rng.random((9, 14)) > 0.1).astype(np.uint8), resolution=0.05)
    footprint, radius, scaling = rng.choice([0.0, 0.12]), rng.choice([0.11, 0.3]), rng.choice([0.0, 3.0, 10.0])
    costs = inflated(grid, footprint, radius, scaling, map_messages.cost_table(50, 0.8, 0)).costs
    obstacles = np.argwhere(grid.blocked)
    for row, col in np.ndindex(grid.shape):
        cells = min((np.hypot(row - r, col - c) for r, c in obstacles), default=np.inf)
        distance = cells * 0.05
        cost = int(252 * np.exp(-scaling * max(distance - footprint, 0))) if cells <= np.ceil(radius / 0.05) else 0
        expected = 0 if cells == 0 or distance < footprint - 1e-9 else round(50 + 0.8 * cost)
        assert abs(int(costs[row, col]) - expected) <= (1 if expected else 0)


def test_what_the_map_says_counts_where_it_is_more():
    costs = np.ones((1, 9), np.uint8)
    costs[0, 0], costs[0, 1:] = 0, (200, 51, 1, 1, 1, 255, 1, 1)
    table = map_messages.cost_table(50, 0.8, 0)
    done = inflated(GridMap(costs, resolution=1.0), 0.0, 2.0, 1.0, table).costs[0]
    near = [round(50 + 0.8 * int(252 * np.exp(-d))) for d in (1, 2)]
    assert done.tolist() == [0, max(200, near[0]), max(51, near[1]), 50, 50, 50, 255, 50, 50]


def pressed(cost):
    """The value that nav2_costmap_2d publishes for a cost, by its documentation."""
    return {0: 0, 253: 99, 254: 100, 255: -1}.get(cost, 1 + (97 * (cost - 1)) // 251)


def test_pressed_costs_come_back():
    values = np.array([pressed(cost) for cost in range(256)], np.int8)
    back = map_messages.nav2_costs(values).astype(int)
    assert back[[0, 253, 254, 255]].tolist() == [0, 253, 254, 255] and back[1] == 1 and back[252] == 252
    assert np.abs(back - np.arange(256)).max() <= 3 and (np.diff(back) >= 0).all()
    with pytest.raises(GridMapError, match="the value 101; allowed: -1"):
        map_messages.nav2_costs(np.array([[101]], np.int8))


def test_costs_are_those_of_navfn():
    table = map_messages.cost_table(50, 0.8, 7).astype(int)
    assert table[[0, 100, 252, 253, 254, 255]].tolist() == [50, 130, 252, 0, 0, 7]
    assert (map_messages.cost_table(1, 0.0, 0)[:253] == 1).all()
    assert (
        map_messages.cost_table(200, 10.0, 0)[:253].min() == 200 and map_messages.cost_table(200, 10.0, 0).max() == 255
    )


def raw_costmap(cells, resolution=0.05):
    """What a nav2_msgs/Costmap has, for where nav2_msgs is not installed."""
    about = SimpleNamespace(size_x=cells.shape[1], size_y=cells.shape[0], resolution=resolution, origin=pose(0, 0, 0))
    return SimpleNamespace(header=HEADER, metadata=about, data=array.array("B", cells.tobytes()))


def raw_update(cells, row, col):
    return SimpleNamespace(
        header=HEADER,
        x=col,
        y=row,
        size_x=cells.shape[1],
        size_y=cells.shape[0],
        data=array.array("B", cells.tobytes()),
    )


def press(cells):
    return np.array([[pressed(cost) for cost in row] for row in cells.tolist()], np.int8)


def pressed_message(cells):
    return map_message(press(cells), 0.05)


def pressed_update(cells, row, col):
    data = array.array("b", press(cells).tobytes())
    return SimpleNamespace(header=HEADER, x=col, y=row, width=cells.shape[1], height=cells.shape[0], data=data)


@pytest.mark.parametrize("kind", ["costmap", "costmap_raw"])
@pytest.mark.parametrize("unknown", ["free", "blocked", "253"])
def test_a_costmap_with_updates_is_as_if_it_came_whole(kind, unknown):
    rng = np.random.default_rng(1)
    whole, update = (pressed_message, pressed_update) if kind == "costmap" else (raw_costmap, raw_update)
    scene = GridScene(GridParameters(map_kind=kind, unknown=unknown, device="cpu"))
    cells = rng.integers(0, 256, (20, 30)).astype(np.uint8)
    scene.take_map(whole(cells))
    scene.apply()
    for _ in range(5):
        row, col = rng.integers(0, 15, 2)
        part = rng.integers(0, 256, (4, 7)).astype(np.uint8)
        cells[row : row + 4, col : col + 7] = part
        scene.take_update(update(part, row, col))
        scene.apply()
    other = {"free": 50, "blocked": 0}.get(unknown, 253)
    expected = np.where(cells < 253, 50 + 0.8 * cells, np.where(cells == 255, other, 0))
    error = np.abs(scene.grid.costs - expected)
    assert error.max() <= (2.9 if kind == "costmap" else 0.5)  # a value stands for up to three costs
    assert scene.grid.resolution == 0.05 and scene.frame == "map"
    before = scene.grid
    scene.clear()
    scene.apply()
    assert scene.grid is before  # whoever makes the costmap clears it


@pytest.mark.parametrize("footprint", [0.0, 0.7])
def test_inflation_follows_updates(footprint):
    rng = np.random.default_rng(2)
    values = GridParameters(device="cpu", footprint_radius=footprint, inflation_radius=2.1, cost_scaling_factor=1.5)
    scene, data = GridScene(values), (rng.random((40, 50)) < 0.02).astype(np.int8) * 100
    scene.take_map(map_message(data))
    scene.apply()
    first = scene.grid.costs.copy()
    for _ in range(20):
        row, col = rng.integers(0, 35, 2)
        part = (rng.random((3, 5)) < 0.2).astype(np.int8) * 100
        data[row : row + 3, col : col + 5] = part
        scene.take_update(
            SimpleNamespace(header=HEADER, x=col, y=row, width=5, height=3, data=array.array("b", part.tobytes()))
        )
        scene.apply()
        anew = GridScene(values)
        anew.take_map(map_message(data))
        anew.apply()
        assert np.array_equal(scene.grid.costs, anew.grid.costs)
    assert not np.array_equal(scene.grid.costs, first)
    scene.clear()
    scene.apply()
    assert np.array_equal(scene.grid.costs, first)
    scene.forget()
    with pytest.raises(RequestError, match="there is no map"):
        scene.require_map()


def test_goals_in_a_row_are_moved_to_where_one_gets():
    """The second goal is occupied, and so is the third; each is reached from where the one before was moved to."""
    costs = np.ones((5, 12), np.uint8)
    costs[:, 4] = costs[2, 8] = 0
    grid = GridMap(costs)
    points = np.array([[0.5, 2.5, 0.0], [1.2, 2.2, 0.0], [4.9, 2.4, 0.0], [8.5, 2.5, 0.0]])
    ways = Poses(points, np.tile([0.0, 0.0, 0.0, 1.0], (4, 1)), "map")
    moved, texts = reached(grid, ways, 1.5)
    assert moved.points[:2].tolist() == points[:2].tolist() and moved.points[2, :2].tolist() == [3.5, 2.5]
    assert moved.points[3].tolist() == points[3].tolist()  # nothing on this side of the wall is near it
    assert len(texts) == 1 and "(4.90, 2.40) is occupied: the path ends at (3.50, 2.50)" in texts[0]
    assert reached(grid, ways, 0.0)[0].points.tolist() == points.tolist()
    for wrong in (-1.0, float("nan")):
        with pytest.raises(RequestError, match="tolerance is"):
            reached(grid, ways, wrong)


def shortest_ways_out(grid, obstacles, start, tolerance):
    """{part of the floor: length in tiles of the shortest way there}: scipy's Dijkstra over tiles that are allowed."""
    near = {tile: np.hypot(*(np.argwhere(obstacles) - tile).T).min(initial=np.inf) for tile in np.ndindex(grid.shape)}
    allowed = [tile for tile, distance in near.items() if distance >= near[start] - 1e-9]
    number = {tile: k for k, tile in enumerate(allowed)}
    links = {}
    for tile in allowed:
        if not grid.blocked[tile]:
            continue  # a way ends there
        for step in np.ndindex(3, 3):
            to = tile[0] + step[0] - 1, tile[1] + step[1] - 1
            if to not in number or to == tile or obstacles[tile[0], to[1]] or obstacles[to[0], tile[1]]:
                continue
            if grid.connectivity == 8 or tile[0] == to[0] or tile[1] == to[1]:
                links[number[tile], number[to]] = np.hypot(to[0] - tile[0], to[1] - tile[1])
    rows, cols = np.array(list(links) or np.empty((0, 2), int)).T
    graph = sparse.csr_array((list(links.values()), (rows, cols)), shape=(len(allowed),) * 2)
    lengths = sparse.csgraph.dijkstra(graph, indices=number[start])
    parts = ndimage.label(~grid.blocked)[0]
    found = {}
    for tile, k in number.items():
        if not grid.blocked[tile] and lengths[k] <= tolerance / grid.resolution + np.sqrt(2) + 1e-9:
            found[parts[tile]] = min(found.get(parts[tile], np.inf), lengths[k])
    return found


@settings(deadline=None, max_examples=40)
@given(seeds)
def test_the_way_out_of_the_footprint_is_the_shortest_and_comes_no_nearer(seed):
    rng = np.random.default_rng(seed)
    obstacles = rng.random((14, 17)) < 0.06
    bare = GridMap(~obstacles, int(rng.choice([4, 8])), 0.1)
    grid = bare.inflated(rng.choice([0.15, 0.25, 0.4]))
    starts = np.argwhere(grid.blocked & ~obstacles)
    if not len(starts):
        return
    start, tolerance = tuple(starts[rng.integers(len(starts))].tolist()), rng.choice([0.0, 0.1, 0.3])
    ways = ways_out(grid, obstacles, start, tolerance)
    parts, lengths = ndimage.label(~grid.blocked)[0], {}
    for way in ways:
        steps = np.abs(np.diff(way, axis=0))
        assert tuple(way[0]) == start and steps.max() == 1 and grid.blocked[tuple(way[:-1].T)].all()
        assert not obstacles[tuple(way.T)].any() and not grid.blocked[tuple(way[-1])]
        lengths[parts[tuple(way[-1])]] = np.hypot(*steps.T).sum()
    expected = shortest_ways_out(grid, obstacles, start, tolerance)
    assert lengths.keys() == expected.keys() and all(np.isclose(lengths[part], expected[part]) for part in expected)
    assert list(lengths.values()) == sorted(lengths.values())
    for row, col in np.argwhere(obstacles)[:1]:
        assert ways_out(grid, obstacles, (int(row), int(col)), 1.0) == []


def poses_of(*points):
    return Poses(np.pad(np.array(points, float), ((0, 0), (0, 1))), np.zeros((len(points), 4)), "map")


def test_a_start_leaves_on_the_side_of_its_goal():
    """Two walls with bands of two tiles beside them; the floor between them is nearer than that of the goal."""
    data = np.zeros((9, 20), np.int8)
    data[:, 0] = data[:, 6] = 100
    scene = GridScene(GridParameters(device="cpu", footprint_radius=2.5))
    scene.take_map(map_message(data, 1.0))
    scene.apply()
    assert np.flatnonzero(~scene.grid.blocked[4]).tolist() == [3, *range(9, 20)]
    for start, goal, tolerance, out in (
        ((2.5, 4.5), (3.5, 8.5), 0.0, [2, 3]),
        ((8.2, 4.9), (15.5, 1.5), 0.0, [8, 9]),
        ((4.5, 4.5), (15.5, 1.5), 0.0, [4, 3]),  # it cannot get there: the goal's fault, 208
        ((7.5, 4.5), (15.5, 1.5), 0.0, []),  # two steps
        ((7.5, 4.5), (15.5, 1.5), 0.6, [7, 8, 9]),
        ((0.5, 4.5), (3.5, 4.5), 9.0, []),  # in the wall itself
        ((3.5, 4.5), (3.5, 8.5), 9.0, []),  # where it may stand
    ):
        found = route(scene, poses_of(start, goal), 0.0, tolerance)
        assert found.out[:, 1].tolist() == out and set(found.out[:, 0]) <= {4}
        begin = (out[-1] + 0.5, 4.5) if out else start
        assert found.poses.points[:, :2].tolist() == [list(begin), list(goal)]
        assert [text[:5] for text in found.texts] == ["start"] * bool(out)


@pytest.mark.parametrize("kind", ["costmap", "costmap_raw"])
def test_the_inscribed_band_of_a_costmap_is_left_too(kind):
    cells = np.zeros((5, 12), np.uint8)
    cells[:, 2:7] = [200, 253, 254, 253, 130]
    cells[2, 9] = 255
    whole, update = (pressed_message, pressed_update) if kind == "costmap" else (raw_costmap, raw_update)
    scene = GridScene(GridParameters(map_kind=kind, device="cpu"))
    scene.take_map(whole(cells))
    scene.apply()

    def out(col, goal=11.5):
        way = poses_of(((col + 0.5) * 0.05, 0.1), (goal * 0.05, 0.1))
        return route(scene, way, 0.0, 0.0).out[:, 1].tolist()

    assert [out(3, 0.5), out(5), out(4), out(6), out(9)] == [[3, 2], [5, 6], [], [], []]
    scene.take_update(update(np.full((5, 1), 254, np.uint8), 0, 5))
    scene.apply()
    assert out(5) == []
    assert np.argwhere(scene.obstacles[2]).ravel().tolist() == [4, 5, 9]  # what is unknown is blocked by default


def test_a_goal_that_is_cut_off_is_moved_where_one_gets():
    costs = np.ones((20, 20), np.uint8)
    costs[5:12, 5:12] = 0
    costs[6:11, 6:11] = 1
    grid, way = GridMap(costs), poses_of((1.5, 18.5), (8.5, 8.5), (15.5, 2.5))
    assert reached(grid, way, 5.0)[0].points.tolist() == way.points.tolist()  # it is free
    moved, texts = reached(grid, way, 5.0, cut_off=True)
    outside = [tile for tile in np.argwhere(costs) if not (tile > 5).all() or not (tile < 11).all()]
    nearest_way = min(np.hypot(*(tile + 0.5 - 8.5)) for tile in outside)
    assert nearest_way == np.hypot(*(moved.points[1, :2] - 8.5)) == 4.0
    assert moved.points[[0, 2]].tolist() == way.points[[0, 2]].tolist()
    assert len(texts) == 1 and "goal (8.50, 8.50) cannot be reached: the path ends at" in texts[0]
    assert reached(grid, way, 3.9, cut_off=True)[0].points.tolist() == way.points.tolist()


def test_a_pose_does_not_come_twice():
    grid, tile = GridMap(np.ones((3, 9))), np.array([[1, 2]])

    def yaws(start, goal):
        poses = path_message(grid, tile, HEADER, pose_of(start), pose_of(goal)).poses
        assert {(p.pose.position.x, p.pose.position.y) for p in poses} == {(2.4, 1.3)}
        return [round(2 * np.arctan2(p.pose.orientation.z, p.pose.orientation.w), 9) for p in poses]

    assert yaws(stamped(2.4, 1.3, 0.5), stamped(2.4, 1.3, 0.5)) == [0.5]
    assert yaws(stamped(2.4, 1.3, 0.5), stamped(2.4, 1.3)) == [0.5] == yaws(stamped(2.4, 1.3), stamped(2.4, 1.3, 0.5))
    assert yaws(stamped(2.4, 1.3), stamped(2.4, 1.3)) == [0.0]
    assert yaws(stamped(2.4, 1.3, 0.5), stamped(2.4, 1.3, 0.7)) == [0.5, 0.7]  # it turns on the spot
    apart = path_message(grid, tile, HEADER, pose_of(stamped(2.4, 1.3)), pose_of(stamped(2.4, 1.30001))).poses
    assert len(apart) == 2


def asked(path, **fields):
    return SimpleNamespace(path=path, **fields)


@settings(deadline=None, max_examples=30)
@given(seeds)
def test_costs_that_a_request_forbids(seed):
    """Against Nav2's rule for a disc: cost >= max_cost, lethal or inscribed; unknown ones are obstacles or free."""
    rng = np.random.default_rng(seed)
    occupied = (rng.random((9, 14)) < 0.1).astype(np.int8) * 100
    occupied[rng.random(occupied.shape) < 0.1] = -1
    footprint, radius, scaling = rng.choice([0.0, 0.12]), rng.choice([0.0, 0.11, 0.3]), rng.choice([0.0, 3.0, 10.0])
    values = {"footprint_radius": footprint, "inflation_radius": radius, "cost_scaling_factor": scaling}
    scene = GridScene(GridParameters(device="cpu", unknown="253", **values))
    scene.take_map(map_message(occupied, 0.05))
    scene.apply()
    max_cost, wary = int(rng.integers(0, 256)), bool(rng.integers(2))
    floor = PathCheck(max_cost=max_cost, consider_unknown_as_obstacle=wary).floor(scene)
    obstacles = np.argwhere(occupied == 100)
    for row, col in np.ndindex(occupied.shape):
        cells = min((np.hypot(row - r, col - c) for r, c in obstacles), default=np.inf)
        cost = int(252 * np.exp(-scaling * max(cells * 0.05 - footprint, 0))) if cells <= np.ceil(radius / 0.05) else 0
        if cells == 0 or cells * 0.05 < footprint - 1e-9:
            expected = True
        elif occupied[row, col] == -1:
            expected = wary or max_cost == 0
        else:
            expected = cost >= max_cost
        assert floor.blocked[row, col] == expected


def test_costs_of_a_costmap_that_a_request_forbids():
    cells = np.arange(256, dtype=np.uint8)[None].repeat(2, 0)
    scene = GridScene(GridParameters(map_kind="costmap_raw", unknown="free", cost_factor=0.1, device="cpu"))
    scene.take_map(raw_costmap(cells))
    scene.apply()
    for max_cost in (0, 1, 100, 252, 253, 254, 255):
        blocked = PathCheck(max_cost=max_cost).floor(scene).blocked[0]
        expected = [max_cost == 0 or (cost < 255 and cost >= min(max_cost, 253)) for cost in range(256)]
        assert blocked.tolist() == expected, max_cost
    frames, row = Frames(node=None), [stamped((col + 0.5) * 0.05, 0.05) for col in (10, 120, 130)]
    path = SimpleNamespace(poses=row, header=HEADER)
    assert blocked_ahead(scene, frames, asked(path, max_cost=126), "robot") == [2]
    assert blocked_ahead(scene, frames, asked(path, max_cost=100), "robot") == [1, 2]
    assert blocked_ahead(scene, frames, asked(path, max_cost=100, stop_at_first_collision=True), "robot") == [1]
    assert blocked_ahead(scene, frames, asked(path, max_cost=100, max_lookahead_distance=4.4), "robot") == []


def overlap(polygon, low):
    """Area that a polygon (V, 2) shares with the unit square from `low` on: Sutherland and Hodgman's clipping."""
    for axis, bound, sign in ((0, low[0], 1), (0, low[0] + 1, -1), (1, low[1], 1), (1, low[1] + 1, -1)):
        clipped = []
        for a, b in zip(polygon, [*polygon[1:], *polygon[:1]]):
            inside = [sign * (p[axis] - bound) >= 0 for p in (a, b)]
            if inside[0] != inside[1]:
                clipped.append(a + (bound - a[axis]) / (b[axis] - a[axis]) * (b - a))
            if inside[1]:
                clipped.append(b)
        polygon = clipped
        if not polygon:
            return 0.0
    x, y = np.array(polygon).T
    return abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2


def meets(grid, outline, x, y, yaw):
    """Does an outline at a pose share area with a blocked tile, or leave the map? None: too close to tell"""
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    world = outline @ turn.T + (x, y)
    u, v, angle = grid.origin
    back = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    corners = ((world - (u, v)) @ back / grid.resolution)[:, ::-1]
    areas = [overlap(list(corners), low) for low in np.argwhere(np.pad(grid.blocked, 8, constant_values=True)) - 8]
    return True if max(areas) > 1e-6 else None if max(areas) > 0 else False


OUTLINES = (
    [[0.3, 0.2], [0.3, -0.2], [-0.3, -0.2], [-0.3, 0.2]],
    [[0.4, 0.0], [-0.2, 0.3], [-0.1, 0.0], [-0.2, -0.3]],  # an arrow
    [
        [0.45, 0.1],
        [0.45, 0.2],
        [-0.1, 0.2],
        [-0.1, -0.2],
        [0.45, -0.2],
        [0.45, -0.1],
        [0.1, -0.1],
        [0.1, 0.1],
    ],  # a fork
)


@settings(deadline=None, max_examples=40)
@given(seeds, st.sampled_from(OUTLINES))
def test_outlines_meet_what_they_overlap(seed, outline):
    rng = np.random.default_rng(seed)
    costs = (rng.random((9, 12)) > 0.15).astype(np.uint8)
    grid = GridMap(costs, resolution=rng.choice([0.1, 0.3]), origin=(*rng.uniform(-5, 5, 2), rng.uniform(-3, 3)))
    outline = np.array(outline)
    for place, yaw in zip(rng.uniform(0, 1, (6, 2)) * grid.shape, rng.uniform(-4, 4, 6)):
        ((x, y),) = in_metres(grid, place[None])
        expected = meets(grid, outline, x, y, yaw)
        found = blocked_outlines(grid, grid.blocked, pose_of(stamped(x, y, yaw)), outline)
        assert expected is None or (found.tolist() == [0]) == expected


def test_an_outline_is_looked_at_between_poses():
    costs = np.ones((20, 40), np.uint8)
    costs[10, 20] = 0
    grid, bar = GridMap(costs, resolution=0.1), np.array([[0.5, 0.05], [0.5, -0.05], [-0.5, -0.05], [-0.5, 0.05]])

    def blocked(*poses):
        both = [pose_of(stamped(*one)) for one in poses]
        ways = Poses(*(np.concatenate([getattr(p, name) for p in both]) for name in ("points", "quaternions")), "map")
        return blocked_outlines(grid, grid.blocked, ways, bar).tolist()

    along = ((1.0, 1.05, 0.0), (3.2, 1.05, 0.0))
    assert [blocked(one) for one in along] == [[], []] and blocked(*along) == [1]
    assert blocked((1.0, 1.3, 0.0), (3.2, 1.3, 0.0)) == []
    assert blocked((2.05, 1.4, 0.0), (2.05, 1.4, np.pi - 0.1)) == [1]  # it turns on the spot, through the tile
    assert blocked((2.05, 1.4, 0.1), (2.05, 1.4, -0.1)) == []
    assert blocked((2.05, 1.4, np.pi - 0.1), (2.05, 1.4, 0.1 - np.pi)) == []  # the shorter way
    assert blocked((0.4, 1.4, 0.0), (1.0, 1.4, 0.0), (-9.0, 1.4, 0.0), (np.nan, 0.0, 0.0)) == [
        0,
        1,
        2,
        3,
    ]  # off the map
    with pytest.raises(RequestError, match="pose 1 of the path has no orientation"):
        blocked((1.0, 1.3, 0.0), (3.2, 1.3))
    back_and_forth = [(x, 1.3, 0.0) for x in (0.7, 3.2)] * 2000
    with pytest.raises(RequestError, match="looks; allowed: 100000"):
        blocked(*back_and_forth)


def test_a_request_with_a_footprint():
    data = np.zeros((20, 40), np.int8)
    data[10, :] = 100
    data[2, 5] = -1
    scene = GridScene(GridParameters(device="cpu", footprint_radius=0.25, inflation_radius=1.0, unknown="free"))
    scene.take_map(map_message(data, 0.1))
    scene.apply()
    frames = Frames(node=None)
    path = SimpleNamespace(poses=[stamped(0.1 * k + 0.55, 0.75, 0.0) for k in range(20)], header=HEADER)
    path.poses[15].pose.orientation = pose(0, 0, np.pi / 2).orientation
    narrow = "[[0.3, 0.1], [0.3, -0.1], [-0.3,-0.1], [ -3.e-1, +.1 ]]"
    assert blocked_ahead(scene, frames, asked(path), "robot") == []
    assert blocked_ahead(scene, frames, asked(path, footprint=narrow), "robot") == [15, 16]
    assert blocked_ahead(scene, frames, asked(path, footprint=narrow, max_lookahead_distance=1.45), "robot") == []
    assert blocked_ahead(scene, frames, asked(path, footprint=narrow, max_lookahead_distance=1.55), "robot") == [15]
    assert blocked_ahead(scene, frames, asked(path, footprint=narrow, max_cost=252), "robot") == list(range(20))
    low = SimpleNamespace(poses=[stamped(0.55, 0.25, 0.0), stamped(0.95, 0.25, 0.0)], header=HEADER)
    wary = {"footprint": narrow, "consider_unknown_as_obstacle": True}
    assert blocked_ahead(scene, frames, asked(low, footprint=narrow), "robot") == []
    assert blocked_ahead(scene, frames, asked(low, **wary), "robot") == [0, 1]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "[[0.1, 0.1]]",
        "[[1, 2], [3, 4], [5]]",
        "[[1, 2], [3, 4], [5, nan]]",
        "[[1, 2] [3, 4], [5, 6]]",
        "[[1, 2], [3, 4], [5, 6]",
        "round",
    ]
    + ["[[1, 2], [3, 4], [5, 6e9]]", "1" * 10_000],
)
def test_a_footprint_that_is_none_is_refused(text):
    with pytest.raises(RequestError, match="footprint is .*; allowed: .* 3 or more corners"):
        read_footprint(text)


def test_a_footprint_of_many_characters_is_not_read():
    for text in ("[" + "1" * 200_000, "[[" + " " * 200_000, "[1" * 100_000):
        with pytest.raises(RequestError, match="footprint has 2.* characters; allowed: 10000"):
            read_footprint(text)


def test_a_line_is_cut_at_its_length():
    line = np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0], [3.0, 10.0]])
    for distance, expected in (
        (2.5, [[0, 0], [1.5, 2]]),
        (5.0, [[0, 0], [3, 4]]),
        (8.0, [[0, 0], [3, 4], [3, 4], [3, 7]]),
        (11.0, line.tolist()),
        (12.0, line.tolist()),
        (np.inf, line.tolist()),
    ):
        assert np.allclose(cut(line, distance), expected)
    assert cut(line[:1], 2.0).tolist() == [[0, 0]]
    wild = np.array([[0.0, 0.0], [1e308, -1e308], [np.nan, 0.0]])
    assert unreachable_poses(GridMap(np.ones((3, 3))), cut(wild, 1.0)).tolist() in ([], [1])


def test_every_code_is_one_that_behaviour_trees_know():
    known = {0, *range(200, 209)}
    for name, code in vars(codes).items():
        if isinstance(code, int) and name.isupper() and name not in ("NONE", "START_TAKEN", "GOAL_TAKEN", "NO_TASK"):
            assert nav2.nav2_code(RequestError(code, "")) in known, name
            assert nav2.nav2_code(RequestError(code, ""), through_poses=True) in range(300, 309), name
    assert nav2.nav2_code(RequestError(nav2.NO_VIAPOINTS_GIVEN, ""), True) == 309
    assert nav2.nav2_code(NotBegunError("")) == codes.TIMEOUT and nav2.nav2_code(ValueError("")) == codes.UNKNOWN
    kinds = pytest.importorskip(
        "nav2_msgs.action", reason="nav2_msgs is not among the ROS wheels; it comes with a ROS installation"
    )
    for kind, offset in ((kinds.ComputePathToPose, 0), (kinds.ComputePathThroughPoses, nav2.THROUGH_POSES)):
        for name in (
            "UNKNOWN",
            "INVALID_PLANNER",
            "TF_ERROR",
            "START_OUTSIDE_MAP",
            "GOAL_OUTSIDE_MAP",
            "START_OCCUPIED",
        ):
            assert getattr(codes, name) + offset == getattr(kind.Result, name)
        for name in ("GOAL_OCCUPIED", "TIMEOUT", "NO_VALID_PATH"):
            assert getattr(codes, name) + offset == getattr(kind.Result, name)
    assert kinds.ComputePathThroughPoses.Result.NO_VIAPOINTS_GIVEN == nav2.NO_VIAPOINTS_GIVEN


def test_planner_ids():
    names, algorithms = ("GridBased", "Other"), tuple(ALGORITHMS)
    for name in ("", "GridBased", "Other"):
        assert nav2.algorithm_of(name, names, algorithms, "astar") == "astar"
    assert nav2.algorithm_of("pba_star", names, algorithms, "exact") == "pba_star"
    with pytest.raises(RequestError, match="unknown planner_id 'Smac'; known are GridBased, Other, exact") as error:
        nav2.algorithm_of("Smac", names, algorithms, "exact")
    assert error.value.code == codes.INVALID_PLANNER


@pytest.mark.parametrize("with_text", [True, False])
@pytest.mark.parametrize("as_message", [True, False])
def test_actions_of_any_release_of_nav2(with_text, as_message):
    """Some releases have an error_msg, some have a list of goals and some a message that holds it."""

    def result(**fields):
        return SimpleNamespace(**{"error_code": 0} | ({"error_msg": ""} if with_text else {}) | fields)

    asked = []
    kind = SimpleNamespace(Result=result)
    logger = SimpleNamespace(warning=asked.append)
    node = SimpleNamespace(get_logger=lambda: logger)
    answer, refused, _ = nav2.answers(node, "compute_path_through_poses", kind, lambda *given: asked.append(given))
    goals = [stamped(1, 2), stamped(3, 4)]
    request = SimpleNamespace(start=stamped(0, 0), use_start=False, planner_id="x")
    request.goals = SimpleNamespace(goals=goals) if as_message else goals
    assert answer(SimpleNamespace(request=request))[1] and asked == [(None, goals, "x")]
    request.goals = SimpleNamespace(goals=[]) if as_message else []
    with pytest.raises(RequestError, match="no goals") as error:
        answer(SimpleNamespace(request=request))
    response = refused(error.value)
    assert response.error_code == 309 and getattr(response, "error_msg", "no goals").count("no goals") == 1
    assert "compute_path_through_poses: the request has no goals" in asked[-1]


class Response(SimpleNamespace):
    """A response or result with the fields of some release, as they are by default."""

    of_release: dict = {}

    def __init__(self, **given):
        super().__init__(**(self.of_release | given))


def response_of(**fields):
    return type("Response", (Response,), {"of_release": fields})


def test_fields_of_later_actions_are_read_and_set():
    asked, node = [], SimpleNamespace()
    for fields in ({}, {"last_reached_index": 7}):
        kind = SimpleNamespace(Result=response_of(error_code=0, **fields))
        answer = nav2.answers(node, "compute_path_to_pose", kind, lambda *given: asked.append(given))[0]
        request = SimpleNamespace(start=stamped(0, 0), use_start=True, planner_id="", goal=stamped(1, 2))
        result, succeeded = answer(SimpleNamespace(request=request))
        assert succeeded and getattr(result, "last_reached_index", -1) == -1
        assert asked.pop() == (request.start, [request.goal], "")
        request.viapoints = [stamped(5, 6), stamped(7, 8)]
        answer(SimpleNamespace(request=request))
        assert asked.pop() == (request.start, [*request.viapoints, request.goal], "")


@pytest.mark.parametrize("fields", [{}, {"success": False}])
def test_services_say_that_they_succeeded_where_they_can(monkeypatch, fields):
    kind = SimpleNamespace(Response=response_of(is_valid=True, **fields))
    monkeypatch.setitem(sys.modules, "nav2_msgs", SimpleNamespace(srv=None))
    monkeypatch.setitem(sys.modules, "nav2_msgs.srv", SimpleNamespace(IsPathValid=kind))
    served, told = [], []
    node = SimpleNamespace(serve=lambda *given, beside: served.append(given))
    given = lambda request, response: response, lambda *text: told.append(text)
    assert nav2.offer_service(node, "is_path_valid", "IsPathValid", *given, is_valid=False) == ""
    _, name, answer, refuse = served[0]
    assert name == "is_path_valid"
    good, bad = answer(None, kind.Response()), refuse(RequestError(codes.INVALID_REQUEST, "the map has no layers"))
    assert good.is_valid and vars(good).keys() == vars(bad).keys() == {"is_valid", *fields}
    assert getattr(good, "success", True) is True and getattr(bad, "success", False) is False and not bad.is_valid
    assert told == [("is_path_valid", "the map has no layers", False)]


def test_what_a_check_of_a_path_asks_for():
    assert PathCheck.of(SimpleNamespace(path=None)) == PathCheck()
    check = PathCheck.of(SimpleNamespace(max_cost=7, max_lookahead_distance=2.0, stop_at_first_collision=True))
    assert check == PathCheck(max_cost=7, max_lookahead_distance=2.0, stop_at_first_collision=True)
    for field, value in (("layer_name", "static"), ("max_lookahead_distance", np.nan)):
        with pytest.raises(RequestError, match=f"{field} is .*; allowed: ") as error:
            PathCheck.of(SimpleNamespace(**{field: value}))
        assert error.value.code == codes.INVALID_REQUEST


def test_the_parameters_for_nav2_are_parameters_of_the_node():
    sections = yaml.safe_load((Path(__file__).resolve().parents[2] / "config/nav2.yaml").read_text())
    given = sections["planner_server"]["ros__parameters"]
    known = rules_of(GridParameters)
    values = read(GridParameters, {name: ros_default(rule) for name, rule in known.items()} | given)
    assert given.keys() <= known.keys() and values.lifecycle and values.inflation_radius > values.footprint_radius > 0
    manager = sections["lifecycle_manager_navigation"]["ros__parameters"]
    # as of Nav2's own nodes: the node keeps a bond
    assert manager["bond_timeout"] == bond.TIMEOUT_S and "planner_server" in manager["node_names"]
