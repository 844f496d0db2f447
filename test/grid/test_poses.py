"""Robots with a shape: masks against shapely, fields against a plain Dijkstra, A*, paths and their footprints."""

import math
from unittest import mock

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pose_oracle import BOX, HOOK, MODELS, blocked_tree, cluttered, grid, meets, placed, plain_field, random_poses

from gpu_planners.device import cuda_problem
from gpu_planners.errors import GridMapError, SettingsError
from gpu_planners.grid import AgentStatus, MoveCosts, PoseGrid, PosePlanner, PoseSettings
from gpu_planners.grid.poses import astar

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem())]),
]


@pytest.mark.parametrize("footprint", [BOX, HOOK, [(0.9, 0.1), (0.1, 0.4), (-0.2, -0.3)]])
@pytest.mark.parametrize("model", MODELS)
def test_what_is_called_free_is_free_by_shapely(footprint, model):
    """At random places in the tile and angles in the sector; along moves, shifted by up to half a tile."""
    rng = np.random.default_rng(3)
    tiles = cluttered(rng)
    poses = grid(tiles, footprint, **MODELS[model])
    planner, tree = PosePlanner(poses, device="cpu"), blocked_tree(tiles)
    checked = 0
    for x, y, heading in random_poses(rng, planner, 60):
        row, col = int(y / 0.1), int(x / 0.1)
        h = int(poses.headings_of([heading])[0])
        low, high = poses.sectors[h]
        for _ in range(6):
            where = (col + rng.uniform(0, 1)) * 0.1, (row + rng.uniform(0, 1)) * 0.1
            assert not meets(tree, placed(footprint, *where, rng.uniform(low, high)))
        border = planner._layout.border
        for k, move in enumerate(poses.moves):
            if move.start == h and planner._on.words_at(*(np.array([n]) for n in (k, row + border, col + border)))[0]:
                off = rng.uniform(-0.5, 0.5, 2)
                for px, py, angle in move.poses:
                    shape = placed(footprint, (col + 0.5 + px + off[0]) * 0.1, (row + 0.5 + py + off[1]) * 0.1, angle)
                    assert not meets(tree, shape)
                checked += 1
    assert checked > 100


def test_masks_are_not_larger_than_they_need_be():
    """A tile of a state's mask is met at some place and angle, or lies within half a hundredth of a tile of that."""
    poses = grid(np.ones((5, 5), np.uint8), BOX)
    for h in range(poses.headings):
        runs = poses.masks[len(poses.moves) + h].runs
        low, high = poses.sectors[h]
        union = shapely.union_all([placed(np.array(BOX) / 0.1, 0, 0, angle) for angle in np.linspace(low, high, 60)])
        grown = union.buffer(0.03)
        for row, left, right in runs:
            for col in (left, right):
                assert grown.intersects(shapely.box(col - 1, row - 1, col + 1, row + 1))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("model", MODELS)
def test_fields_are_dijkstras_and_repaired(model, device):
    rng = np.random.default_rng(5)
    tiles = cluttered(rng, 48, 3, costs=1 if model == "omni" else 4)
    poses = grid(tiles, **MODELS[model])
    planner = PosePlanner(poses, "exact", device)
    goal = random_poses(rng, planner, 1)[0]
    for step in range(5):
        if planner.states_free(goal)[0]:
            h, row, col = int(poses.headings_of(goal[2:])[0]), int(goal[1] / 0.1), int(goal[0] / 0.1)
            seeds = [(h + g * poses.headings, row, col) for g in range(poses.gears)]
            expected = np.full((poses.headings * poses.gears, 48, 48), np.inf)
            for state, units in plain_field(poses, tiles, seeds).items():
                expected[state] = units * (0.1 / 100)
            expected = expected.reshape(poses.gears, poses.headings, 48, 48).min(axis=0)
            assert np.array_equal(planner.field(goal), expected)
            assert np.isfinite(expected).sum() > 100 or step
        else:
            with pytest.raises(GridMapError):
                planner.field(goal)
        row, col, down, right = *rng.integers(0, 40, 2), *rng.integers(1, 8, 2)
        rows, cols = (each.ravel() for each in np.mgrid[row : row + down, col : col + right])
        tiles[rows, cols] = rng.integers(0, 2, len(rows)) if step % 2 else 1
        planner.update(rows, cols, tiles[rows, cols])


@pytest.mark.gpu
@pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem())
@pytest.mark.parametrize(
    "model, costs, room",
    [(model, 1 if model == "omni" else 3, None) for model in MODELS]
    + [("differential", 200, None), ("differential", 3, 4096), ("differential", 3, 64)],
)
def test_cuda_gives_the_bits_of_the_cpu(model, costs, room, monkeypatch):
    """Also of costs that differ much, and where the lists of states are too short"""
    if room:
        from gpu_planners.grid.poses import cuda

        monkeypatch.setattr(cuda, "LEAST_ROOM", room)
        monkeypatch.setattr(cuda, "SHARE", 1 << 40)
    rng = np.random.default_rng(6)
    tiles = cluttered(rng, 200, 60, costs=costs)
    poses = grid(tiles, **MODELS[model])
    planners = [PosePlanner(poses, "exact", device) for device in ("cpu", "cuda")]
    starts = random_poses(rng, planners[0], 50)
    goal = starts[0]
    for _ in range(4):
        fields = [planner.field(goal) for planner in planners]
        assert np.array_equal(*fields)
        paths = [planner.plan(starts, goal) for planner in planners]
        assert np.array_equal(paths[0].cost, paths[1].cost) and np.array_equal(paths[0].moves, paths[1].moves)
        row, col = rng.integers(0, 180, 2)
        rows, cols = (each.ravel() for each in np.mgrid[row : row + 20, col : col + 20])
        new = (rng.random(len(rows)) < 0.98).astype(np.uint8)
        new[np.hypot(rows - goal[1] / 0.1, cols - goal[0] / 0.1) < 15] = 1
        for planner in planners:
            planner.update(rows, cols, new)
        if not planners[0].states_free(goal)[0]:
            break


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(list(MODELS)),
    st.sampled_from([1, 5]),
    st.sampled_from([0.0, 0.35]),
    st.sampled_from([0.01, 3, 15, 40]),
)
def test_a_star_costs_what_the_field_says(seed, model, costs, tolerance, near):
    """near: how far costs-to-go are exact about the goal; what searches wrote is cleared now and then"""
    with mock.patch.object(astar, "NEAR", near), mock.patch.object(astar, "MOST_SEARCHES", 4):
        compare_a_star_with_fields(seed, model, costs, tolerance)


def compare_a_star_with_fields(seed, model, costs, tolerance):
    rng = np.random.default_rng(seed)
    poses = grid(cluttered(rng, 60, 8, costs), **MODELS[model])
    how = PoseSettings(goal_tolerance=tolerance, heading_tolerance=tolerance)
    field, search = (PosePlanner(poses, name, "cpu", how) for name in ("exact", "astar"))
    for k in range(3):
        ends = random_poses(rng, field, 6)
        if len(ends) > 1:
            one, other = field.plan(ends[1:], ends[0]), search.plan(ends[1:], ends[0])
            assert np.array_equal(one.cost, other.cost) and np.array_equal(one.status, other.status)
        rows, cols = (each.ravel() for each in np.mgrid[5 * k : 5 * k + 9, 10:30])
        for planner in (field, search):
            planner.update(rows, cols, 1 - k % 2)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("algorithm", ["exact", "astar"])
def test_paths_are_driven_without_contact(model, algorithm):
    rng = np.random.default_rng(8)
    tiles = cluttered(rng)
    poses = grid(tiles, **MODELS[model])
    planner, tree = PosePlanner(poses, algorithm, "cpu"), blocked_tree(tiles)
    ends = random_poses(rng, planner, 14)
    paths = planner.plan(ends[1:], ends[0])
    assert paths.solved.sum() > 5
    exact = 0
    for i in np.flatnonzero(paths.solved):
        path, directions = paths.path(i), paths.directions(i)
        steps, turns = np.diff(path[:, :2], axis=0), np.diff(path[:, 2])
        far = np.hypot(*steps.T)
        assert far.max() <= 0.1 * (1 + 1e-9) and abs(turns).max() < 0.5
        for x, y, heading in path:
            assert not meets(tree, placed(BOX, x, y, heading))
        assert planner.path_free(path)
        assert np.abs(path[0, :2] - ends[1 + i, :2]).max() <= 0.1
        assert math.dist(path[-1, :2], ends[0, :2]) < 1e-6
        # where it drives, it moves along its heading: the chord of an arc has the mean of both
        middle = path[:-1, 2] + turns / 2
        along = (steps * np.column_stack([np.cos(middle), np.sin(middle)])).sum(axis=1)
        for k in np.flatnonzero(directions[1:]):
            assert along[k] * directions[k + 1] == pytest.approx(far[k], rel=1e-3)
            assert abs(turns[k]) <= far[k] / poses.turning_radius * 1.01 + 1e-9 if poses.turning_radius else True
        flips = np.flatnonzero(directions[1:])
        changes = (directions[1:][flips][1:] != directions[1:][flips][:-1]).sum()
        assert paths.cusps(i).sum() == changes
        exact += paths.ends_at_goal(i)
    assert exact == paths.solved.sum() if model not in ("dubins", "reeds_shepp") else exact > 0


def test_a_rectangle_passes_an_aisle_and_turns_where_it_can():
    tiles = np.zeros((60, 200), np.uint8)
    tiles[20:42, 10:190] = 1  # an aisle of 1.1 m
    planner = PosePlanner(PoseGrid(tiles, BOX, resolution=0.05), device="cpu")
    paths = planner.plan([[1.2, 1.55, 0.0], [1.2, 1.55, 0.0]], [[8.8, 1.55, 0.0], [8.8, 1.55, math.pi]])
    assert paths.status.tolist() == [AgentStatus.SOLVED, AgentStatus.NO_PATH]  # it cannot turn round in the aisle
    assert np.ptp(paths.path(0)[:, 1]) < 0.25
    assert planner.path_free(paths.path(0)) and not planner.path_free([[1.2, 1.55, 0.0], [1.2, 1.55, 1.0]])


def test_changing_gears_costs_and_backwards_can_be_forbidden():
    tiles = np.zeros((60, 200), np.uint8)
    tiles[20:42, 10:190] = 1
    start, goal = [8.0, 1.55, 0.0], [2.0, 1.55, 0.0]
    costs = {}
    for name, how in {
        "free": {},
        "twice": {"reverse": 1.0},
        "never": {"reverse": 0.0},
        "change": {"change": 1.0},
    }.items():
        poses = PoseGrid(tiles, BOX, resolution=0.05, turning_radius=0.4, move_costs=MoveCosts(**how))
        paths = PosePlanner(poses, device="cpu").plan(start, goal)
        costs[name] = paths.cost[0]
        assert not paths.solved[0] or set(paths.directions(0)[1:]) == {-1}
    assert costs == {
        "free": pytest.approx(12.0),
        "twice": pytest.approx(6.0),
        "never": np.inf,
        "change": pytest.approx(12.0),
    }


def test_a_goal_region():
    tiles = np.ones((60, 60), np.uint8)
    tiles[28:32, 28:32] = 0
    goal, start = [3.0, 3.0, 0.0], [1.0, 1.0, 0.0]
    poses = grid(tiles)
    assert PosePlanner(poses, device="cpu").plan(start, goal).status[0] == AgentStatus.GOAL_BLOCKED
    settings = PoseSettings(goal_tolerance=1.2, heading_tolerance=0.6)
    for algorithm in ("exact", "astar"):
        path = PosePlanner(poses, algorithm, "cpu", settings).plan(start, goal).path(0)
        assert math.dist(path[-1, :2], goal[:2]) <= 1.2 and abs(path[-1, 2]) <= 0.6


@pytest.mark.parametrize("algorithm", ["exact", "astar"])
def test_a_goal_region_wider_than_the_map_takes_no_more_than_the_map(algorithm):
    costs = np.ones((20, 30), np.uint8)
    costs[:, 14] = 0
    footprint = np.array(BOX) * 0.001  # on tiles of 1 mm: a region of 100 m is 200,000 tiles wide
    robot = PoseGrid(costs, footprint, model="omni", resolution=0.001)
    settings = PoseSettings(goal_tolerance=100.0, heading_tolerance=math.pi)
    starts, goal = [(0.005, 0.01, 1.0), (0.02, 0.01, -2.0)], (0.02, 0.01, 0.0)
    paths = PosePlanner(robot, algorithm, "cpu", settings).plan(starts, goal)
    assert paths.cost.tolist() == [0.0, 0.0]
    assert PosePlanner(robot, algorithm, "cpu").plan(starts[0], goal).cost == np.inf


def test_a_path_far_from_the_map_is_not_free():
    planner = PosePlanner(PoseGrid(np.ones((20, 30), np.uint8), BOX, model="omni", resolution=1.0), device="cpu")
    for far in (1e12, -1e300, 1e308):
        assert not planner.path_free([(far, 10.0, 0.0), (10.0, 10.0, 0.0)])
        assert not planner.path_free([(10.0, 10.0, 0.0), (10.0, far, 0.0)])


def test_a_turned_map():
    rng = np.random.default_rng(1)
    tiles = cluttered(rng)
    plain = PosePlanner(grid(tiles), device="cpu")
    ends = random_poses(rng, plain, 6)
    yaw, (x, y) = 0.7, (3.0, -2.0)
    turned = PosePlanner(grid(tiles, origin=(x, y, yaw)), device="cpu")
    cos, sin = math.cos(yaw), math.sin(yaw)
    moved = np.column_stack(
        [x + cos * ends[:, 0] - sin * ends[:, 1], y + sin * ends[:, 0] + cos * ends[:, 1], ends[:, 2] + yaw]
    )
    one, other = plain.plan(ends[1:], ends[0]), turned.plan(moved[1:], moved[0])
    assert np.array_equal(one.cost, other.cost)
    i = int(np.flatnonzero(one.solved)[0])
    path, same = one.path(i), other.path(i)
    assert np.allclose(same[:, 0], x + cos * path[:, 0] - sin * path[:, 1], atol=1e-6)
    assert np.allclose(same[:, 2], path[:, 2] + yaw, atol=1e-6)


def lattice_file(tmp_path, resolution=0.1):
    """A file as Nav2's generator writes them, from moves of ours."""
    import json

    poses = grid(np.ones((3, 3), np.uint8), model="dubins", turning_radius=0.5)
    primitives = [
        {
            "trajectory_id": k,
            "start_angle_index": move.start,
            "end_angle_index": move.end,
            "poses": [[round(x * 0.1, 5), round(y * 0.1, 5), round(a, 5)] for x, y, a in move.poses],
        }
        for k, move in enumerate(poses.moves)
    ]
    file = tmp_path / "output.json"
    metadata = {"motion_model": "ackermann", "grid_resolution": resolution, "heading_angles": poses.angles.tolist()}
    file.write_text(json.dumps({"version": 1.0, "lattice_metadata": metadata, "primitives": primitives}))
    return str(file), poses


def test_nav2s_lattice_files(tmp_path):
    rng = np.random.default_rng(2)
    file, made = lattice_file(tmp_path)
    tiles = cluttered(rng)
    forwards = MoveCosts(reverse=0.0)
    ours = PosePlanner(grid(tiles, model="dubins", turning_radius=0.5), device="cpu")
    theirs = PosePlanner(grid(tiles, model=file, move_costs=forwards), device="cpu")
    assert np.allclose(theirs.poses.angles, made.angles) and len(theirs.poses.moves) == len(made.moves)
    ends = random_poses(rng, ours, 8)
    np.testing.assert_allclose(theirs.plan(ends[1:], ends[0]).cost, ours.plan(ends[1:], ends[0]).cost, rtol=0.01)
    with pytest.raises(GridMapError, match="is for 0.1 m a cell; the map has 0.05"):
        PoseGrid(tiles, BOX, model=file, resolution=0.05)
    (tmp_path / "bad.json").write_text('{"lattice_metadata": {}}')
    with pytest.raises(GridMapError, match="grid_resolution"):
        PoseGrid(tiles, BOX, model=str(tmp_path / "bad.json"))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"footprint": [(0, 0), (1, 0)]}, "three or more points"),
        ({"footprint": [(0, 0), (1, 1), (1, 0), (0, 1)]}, "sides 0 and 2 cross"),
        ({"headings": 12}, "headings is 12; allowed: 8, 16"),
        ({"model": "tank"}, "model is 'tank'; allowed: dubins"),
        ({"model": "DUBIN"}, "turning_radius is 0"),
        ({"turning_radius": math.nan}, "turning_radius is nan"),
        ({"turning_radius": 1e5}, "allowed: up to 200 tiles"),
        ({"move_costs": 3}, "move_costs is a int"),
    ],
)
def test_bad_robots_are_refused(how, words):
    with pytest.raises(GridMapError, match=words):
        PoseGrid(np.ones((9, 9), np.uint8), **({"footprint": BOX} | how))


def test_bad_questions_are_refused_or_answered_with_a_status():
    planner = PosePlanner(grid(np.pad(np.ones((40, 40), np.uint8), 3)), device="cpu")
    good = [2.0, 2.0, 0.0]
    starts = [[math.nan, 0, 0], [-5, 0, 0], [0.1, 0.1, 0], good]
    names = ["START_NOT_FINITE", "START_OUTSIDE", "START_BLOCKED", "SOLVED"]
    assert [AgentStatus(s).name for s in planner.plan(starts, good).status] == names
    goals = planner.plan([good] * 4, starts)
    assert [AgentStatus(s).name for s in goals.status] == [
        *(name.replace("START", "GOAL") for name in names[:3]),
        "SOLVED",
    ]
    assert len(goals.path(3)) == 1 and len(goals.path(0)) == 0 and "blocked" in goals.message(2)
    assert len(planner.plan(np.zeros((0, 3)), good)) == 0
    for bad in ([[1, 2]], "no", [[True, False, True]], np.zeros((2, 2, 3))):
        with pytest.raises(GridMapError):
            planner.plan(bad, good)
    with pytest.raises(GridMapError, match="goals has 3 rows"):
        planner.plan([good, good], [good] * 3)
    with pytest.raises(SettingsError, match="use one of auto, exact, astar"):
        PosePlanner(planner.poses, "hybrid")
    with pytest.raises(GridMapError, match=r"allowed: rows 0 \.\. 45"):
        planner.update([50], [1], 0)


def test_a_load_has_its_own_footprint():
    tiles = np.zeros((60, 100), np.uint8)
    tiles[20:42, 5:95] = 1
    empty = PoseGrid(tiles, BOX, resolution=0.05)
    loaded = empty.with_footprint([(0.6, 0.5), (-0.6, 0.5), (-0.6, -0.5), (0.6, -0.5)])
    ends = [[1.2, 1.55, 0.0]], [3.5, 1.55, 0.0]
    assert PosePlanner(empty, device="cpu").plan(*ends).solved[0]
    assert PosePlanner(loaded, device="cpu").plan(*ends).status[0] == AgentStatus.START_BLOCKED
