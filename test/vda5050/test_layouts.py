"""Layouts in and out, and zones on them."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_planners.fleet.action_graph import ActionGraph
from gpu_planners.fleet.guidance import MOST_COST, UNIT
from gpu_planners.grid import GridMap
from gpu_planners.vda5050.errands import ErrandError, errand_of
from gpu_planners.vda5050.layout import Layout, LayoutError, read_lif, write_lif
from gpu_planners.vda5050.messages import MessageError
from gpu_planners.vda5050.zones import read_zones, tiles_in, with_zones

EAST, SOUTH, WEST, NORTH = range(4)


def lif(nodes, edges, **more):
    """nodes: {name: (x, y)}; edges: [(from, to)]"""
    layout = {
        "layoutId": "hall",
        "layoutVersion": "1",
        "nodes": [
            {"nodeId": name, "nodePosition": {"x": x, "y": y}, "vehicleTypeNodeProperties": []}
            for name, (x, y) in nodes.items()
        ],
        "edges": [
            {
                "edgeId": f"{a}-{b}",
                "startNodeId": a,
                "endNodeId": b,
                "vehicleTypeEdgeProperties": [{"vehicleTypeId": "t", "rotationAllowed": True, **extra}],
            }
            for a, b, *rest in edges
            for extra in (rest or [{}])
        ],
        "stations": [{"stationId": "dock", "interactionNodeIds": [next(iter(nodes))]}],
    }
    meta = {"projectIdentification": "p", "creator": "c", "exportTimestamp": "2026-01-01T00:00:00Z", "lifVersion": "1"}
    return {"metaInformation": meta, "layouts": [layout | more]}


def read(tmp_path, content, **options):
    file = tmp_path / "hall.lif"
    file.write_text(json.dumps(content))
    return read_lif(file, **options)


def both(*pairs):
    return [*pairs, *((b, a) for a, b in pairs)]


@pytest.mark.parametrize("yaw", [0.0, 0.3, -0.7, math.pi / 4])
@pytest.mark.parametrize("size", [0.6, 2.5])
def test_a_turned_raster_is_read_as_it_lies(tmp_path, yaw, size):
    places = {f"n{r}{c}": (r, c) for r in range(3) for c in range(4) if (r, c) != (1, 1)}
    cos, sin = math.cos(yaw), math.sin(yaw)
    points = {n: (5 + size * (cos * c - sin * r), -3 + size * (sin * c + cos * r)) for n, (r, c) in places.items()}
    pairs = [(a, b) for a in places for b in places if sum(abs(np.subtract(places[a], places[b]))) == 1]
    layout = read(tmp_path, lif(points, pairs))
    assert layout.grid.resolution == pytest.approx(size) and layout.map_id == "hall" and layout.forbidden is None
    assert sorted(layout.grid.shape) == [3, 4] and layout.grid.costs.sum() == 11
    for name, point in points.items():
        assert layout.point(layout.tile(name)) == pytest.approx(point) and layout.name(layout.tile(name)) == name
    assert layout.tile("dock") == layout.tile("n00") and layout.tile("nowhere") is None


def test_long_edges_one_way_edges_and_speeds(tmp_path):
    nodes = {"a": (0, 0), "b": (1, 0), "c": (4, 0)}
    layout = read(tmp_path, lif(nodes, [("a", "b"), ("b", "a"), ("b", "c", {"maxSpeed": 0.5})]))
    a, b, c = map(layout.tile, "abc")
    assert layout.grid.costs.sum() == 5 and abs(c[1] - b[1]) == 3
    assert layout.forbidden[c][WEST] and not layout.forbidden[b][EAST] and not layout.forbidden[b][WEST]
    assert layout.speed(b, (b[0], b[1] + 1)) == 0.5 and layout.speed(a, a) is None
    graph = ActionGraph(layout.grid.shape, 0, False, 4)
    graph.one_way = layout.forbidden
    graph.add(np.array([c]), np.array([WEST]))
    graph.plan(np.array([0]), np.array([[c[0], c[1] - 1]]), np.array([WEST]))
    graph.allow()
    assert graph.allowed[0] == 0 and layout.guidance().moves[c][WEST] == MOST_COST


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (lif({"a": (0, 0), "b": (1, 0), "c": (2.4, 0)}, both(("a", "b"), ("b", "c"))), "node 'c' at (2.4, 0) is on no"),
        (lif({"a": (0, 0), "b": (1, 0), "c": (2, 1)}, both(("a", "b"), ("b", "c"))), "edge 'b-c' is not along"),
        (lif({"a": (0, 0), "b": (1, 0)}, [("a", "z")]), "edge 'a-z' goes from 'a' to 'z'"),
        (lif({"a": (0, 0), "b": (0, 0), "c": (1, 0)}, both(("a", "c"))), "are in one place"),
        (lif({"a": (0, 0), "b": (1, 0)}, []), "has no edges"),
        ({"layouts": []}, "has no 'metaInformation'"),
        (lif({"a": (0, 0), "b": ("x", 0)}, []), "nodePosition.x is 'x'; allowed: a finite number"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path, content, text):
    with pytest.raises(LayoutError) as error:
        read(tmp_path, content)
    assert text in str(error.value) and "hall.lif" in str(error.value)


def test_one_of_several_layouts(tmp_path):
    content = lif({"a": (0, 0), "b": (1, 0)}, both(("a", "b")))
    content["layouts"].append(content["layouts"][0] | {"layoutId": "yard"})
    assert read(tmp_path, content, layout_id="yard").grid.costs.sum() == 2
    with pytest.raises(LayoutError, match="has the layouts hall, yard; allowed: one of them"):
        read(tmp_path, content)


@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_a_layout_comes_back_as_it_was_written(tmp_path_factory, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    rows, cols = rng.integers(2, 7, 2)
    free = (rng.random((rows, cols)) < 0.8).astype(np.uint8)
    free[0, :2] = free[-1, -1] = 1
    forbidden = np.zeros((rows, cols, 4), bool)
    forbidden[0, 1, WEST] = True
    origin = (rng.uniform(-9, 9), rng.uniform(-9, 9), rng.uniform(-0.7, 0.7))
    layout = Layout(
        GridMap(free, 4, rng.uniform(0.3, 3), origin), "m", {(0, 0): "home"}, forbidden, stations={"s": (0, 1)}
    )
    file = tmp_path_factory.mktemp("lif") / "l.lif"
    write_lif(file, layout)
    back = read_lif(file)
    assert (
        back.map_id == "m"
        and back.grid.costs.sum() == free.sum()
        and back.grid.resolution == pytest.approx(layout.grid.resolution, rel=1e-4)
    )
    for tile in map(tuple, np.argwhere(free).tolist()):
        there = back.tile(layout.name(tile))
        assert back.point(there) == pytest.approx(layout.point(tile), abs=1e-4)
        for way in range(4):
            assert bool(back.forbidden[there][way]) == (tile == (0, 1) and way == WEST)
    assert back.tile("s") == back.tile(layout.name((0, 1)))


# ---- zones ----


def zone_set(*zones, map_id="map"):
    return {"mapId": map_id, "zoneSetId": "z1", "zones": list(zones)}


def zone(kind, x0, y0, x1, y1, name="z", **more):
    corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    return {"zoneId": name, "zoneType": kind, "vertices": [{"x": x, "y": y} for x, y in corners], **more}


def hall(yaw=0.0):
    return Layout(GridMap(np.ones((6, 8), np.uint8), 4, 1.0, (0.0, 0.0, yaw)))


@given(st.lists(st.tuples(st.floats(-1, 9), st.floats(-1, 7)), min_size=3, max_size=3))
def test_tiles_of_a_triangle_are_those_that_dense_points_find(corners):
    corners = np.array(corners)
    (ax, ay), (bx, by) = corners[1] - corners[0], corners[2] - corners[0]
    if abs(ax * by - ay * bx) < 0.05:
        return
    grid = hall().grid
    s, t = np.meshgrid(np.linspace(1e-5, 1, 160), np.linspace(1e-5, 1, 160))
    inside = s + t < 1 - 1e-5
    points = (
        corners[0] + s[inside][:, None] * (corners[1] - corners[0]) + t[inside][:, None] * (corners[2] - corners[0])
    )
    seen = np.floor(points[:, ::-1]).astype(int)
    seen = {tuple(tile) for tile in seen.tolist() if 0 <= tile[0] < 6 and 0 <= tile[1] < 8}
    found = set(map(tuple, tiles_in(grid, corners, by_centre=False).tolist()))
    assert seen <= found
    for tile in found - seen:  # thin corners slip between the points
        assert np.abs(points[:, ::-1] - (np.array(tile) + 0.5)).max(axis=1).min() < 0.6
    centres = tiles_in(grid, corners, by_centre=True)
    assert set(map(tuple, centres.tolist())) <= found


def test_a_zone_reaches_as_far_as_it_says():
    grid, corners = hall().grid, np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    for far in (1e6, 1e20, 1e300):
        assert len(tiles_in(grid, far * corners, True)) == grid.costs.size


def test_zones_close_tiles_and_limit_speeds():
    zones = zone_set(
        zone("BLOCKED", 2.1, 1.1, 3.5, 1.9, "b"), zone("SPEED_LIMIT", 5.0, 0.0, 6.0, 6.0, "s", maximumSpeed=0.4)
    )
    found, layout = with_zones(zones, hall())
    assert np.argwhere(layout.grid.costs == 0).tolist() == [[1, 2], [1, 3]]
    assert layout.speed((3, 4), (3, 5)) == 0.4 and layout.speed((3, 3), (3, 4)) is None
    assert found.kinds == {"b": "BLOCKED", "s": "SPEED_LIMIT"} and layout.costs is None


def test_zones_where_nobody_may_stop_are_kept_from_vehicles():
    """They are not the standard's: what is sent has them no more, and errands cannot end there."""
    given = zone_set(
        zone("NO_STOPPING", 2.1, 1.1, 3.5, 1.9, "n"), zone("SPEED_LIMIT", 5, 0, 6, 6, "s", maximumSpeed=0.4)
    )
    found, layout = with_zones(given, hall())
    zones = layout.zones()
    assert np.argwhere(zones.no_stopping).tolist() == [[1, 2], [1, 3]] and zones.speeds[3, 5] == 0.4
    assert [each["zoneId"] for each in found.content["zones"]] == ["s"] and found.kinds == {"s": "SPEED_LIMIT"}
    assert found.given == given and np.isinf(zones.speeds[3, 3])
    with pytest.raises(ErrandError, match="'1_2' is in a no-stopping zone; allowed: another node"):
        errand_of({"errandId": "e", "node": "1_2"}, layout)


@pytest.mark.parametrize("limit", ["SOFT", "RESTRICTED", "STRICT"])
@pytest.mark.parametrize("yaw", [0.0, 0.4])
def test_directed_zones_are_lanes(limit, yaw):
    cos, sin = math.cos(yaw), math.sin(yaw)
    turned = [(cos * x - sin * y, sin * x + cos * y) for x, y in [(2, 2), (6, 2), (6, 3), (2, 3)]]
    one = zone("DIRECTED", 0, 0, 1, 1, direction=yaw, limitation=limit)
    one["vertices"] = [{"x": x, "y": y} for x, y in turned]
    _, layout = with_zones(zone_set(one), hall(yaw))
    inside, before = (2, 3), (2, 6)
    never = np.zeros(4, bool) if layout.forbidden is None else layout.forbidden[inside]
    assert not never[EAST] and never[WEST] == (limit != "SOFT") and never[NORTH] == (limit == "STRICT")
    assert layout.costs[inside][EAST] == UNIT < layout.costs[inside][WEST]
    if limit != "SOFT":
        assert layout.forbidden[before][WEST] and not layout.forbidden[before][EAST]


def test_penalty_and_priority():
    zones = zone_set(
        zone("PENALTY", 2, 2, 3, 3, "p", penaltyFactor=0.5),
        zone("PRIORITY", 4, 2, 5, 3, "q", priorityFactor=1.0),
        zone("PENALTY", 6, 2, 7, 3, "r", penaltyFactor=1.0),
    )
    _, layout = with_zones(zones, hall())
    into = {name: layout.costs[2, col][EAST] for name, col in (("p", 1), ("q", 3), ("r", 5), ("plain", 0))}
    assert into["q"] < into["plain"] == UNIT < into["p"] < into["r"] == MOST_COST


@pytest.mark.parametrize(
    ("zones", "text"),
    [
        (zone_set(map_id="other"), "mapId is 'other'; allowed: 'map'"),
        (zone_set(zone("SPEED_LIMIT", 0, 0, 1, 1)), "zone 'z' has no 'maximumSpeed'"),
        (zone_set(zone("SPEED_LIMIT", 0, 0, 1, 1, maximumSpeed=0)), "maximumSpeed is 0; allowed: more than 0"),
        (zone_set(zone("PENALTY", 0, 0, 1, 1, penaltyFactor=2.0)), "penaltyFactor is 2; allowed: 0 .. 1"),
        (zone_set(zone("DIRECTED", 0, 0, 1, 1, direction=0.7, limitation="SOFT")), "direction is 0.7 rad; allowed"),
        (zone_set(zone("DIRECTED", 0, 0, 1, 1, direction=0.0, limitation="HARD")), "limitation is 'HARD'; allowed"),
        (zone_set(zone("MAGIC", 0, 0, 1, 1)), "zones[0].zoneType is 'MAGIC'; allowed: BLOCKED"),
        (zone_set(zone("BLOCKED", 0, 0, 1, 1), zone("BLOCKED", 0, 0, 1, 1)), "zone 'z' comes twice"),
        (
            zone_set(
                zone("DIRECTED", 0, 0, 3, 1, "a", direction=0.0, limitation="SOFT"),
                zone("BIDIRECTED", 2, 0, 4, 1, "b", direction=0.0, limitation="SOFT"),
            ),
            "zones 'b' and 'a' overlap",
        ),
    ],
)
def test_zones_that_cannot_be_kept_are_refused_by_name(tmp_path, zones, text):
    with pytest.raises((LayoutError, MessageError)) as error:
        with_zones(zones, hall())
    assert text in str(error.value)
    file = tmp_path / "zones.json"
    file.write_text(json.dumps({"zoneSet": zones}))
    with pytest.raises(LayoutError, match=r"zones\.json"):
        read_zones(file, hall())
