"""Fields streamed through a memory limit equal those made in one piece, bit for bit."""

import numpy as np
import pytest
from grid_paths import random_costs
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_planners.device import cuda_problem
from gpu_planners.errors import SettingsError
from gpu_planners.grid import BlockPlanner, GridMap
from gpu_planners.grid.exact import streamed as streamed_field
from gpu_planners.grid.exact.blocks import FieldShape
from gpu_planners.grid.exact.fields import Settings, open_fields
from gpu_planners.grid.exact.rounds import Request
from gpu_planners.grid.exact.streamed import Cut, StreamedFields
from gpu_planners.grid.maps.generated import caves_and_rooms
from gpu_planners.verify import broken_paths


def spiral(rows, cols, connectivity):
    """Corridors one tile wide, there and back over all rows: the way crosses every border many times."""
    costs = np.ones((rows, cols), np.uint8)
    costs[1::2] = 0
    costs[1::4, -1] = costs[3::4, 0] = 1
    return GridMap(costs, connectivity)


MAPS = {
    "caves and rooms": lambda rows, cols, connectivity, seed: caves_and_rooms(rows, cols, seed, connectivity),
    "corridors": lambda rows, cols, connectivity, seed: spiral(rows, cols, connectivity),
    "random": lambda rows, cols, connectivity, seed: GridMap(
        random_costs(np.random.default_rng(seed), rows, cols, 0.35, 1), connectivity
    ),
}


def cut_into(grid, block_size, sides, device="cpu"):
    """-> planner whose windows have so many blocks a side"""
    shape = FieldShape.of(grid, block_size)
    limit = Cut(shape, *sides).window.bytes_with_map
    cut = Cut.of(shape, limit)
    assert cut.window.bytes_with_map <= limit < shape.field_bytes and cut.down * cut.across > 1
    return BlockPlanner(grid, block_size=block_size, device=device, settings=Settings(memory_limit_bytes=limit))


def assert_same(one, streamed, starts, goal):
    """The field, and the paths from some starts and from all tiles, by both planners, bit for bit. -> PathSet"""
    for agents in (np.argwhere(one.grid.costs), starts):  # all tiles: every direction
        a, b = one.plan(agents, goal), streamed.plan(agents, goal)
        for name in ("status", "cost", "length", "first", "words"):
            assert np.array_equal(getattr(a, name), getattr(b, name)), name
    if one.grid.costs[tuple(goal)]:
        assert np.array_equal(one.field(goal), streamed.field(goal))
    return b


@settings(max_examples=20, deadline=None)
@given(
    kind=st.sampled_from(sorted(MAPS)),
    blocks=st.tuples(st.integers(8, 12), st.integers(8, 12)),
    short=st.tuples(st.integers(0, 7), st.integers(0, 7)),
    sides=st.tuples(st.integers(2, 3), st.integers(2, 3)),
    connectivity=st.sampled_from([4, 8]),
    highest=st.sampled_from([1, 255]),
    block_size=st.sampled_from([8, 8, 8, 32]),  # maps of 32 have some 100,000 tiles
    overlap=st.sampled_from([2, 8]),
    seed=st.integers(0, 2**32 - 1),
)
def test_streamed_fields_are_those_of_one_piece(
    kind, blocks, short, sides, connectivity, highest, block_size, overlap, seed
):
    """Windows of 2 or 3 blocks a side that lie beside each other, or overlap by a block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed_field, "OVERLAP", overlap)
        compare_with_one_piece(kind, blocks, short, sides, connectivity, highest, block_size, seed)


def compare_with_one_piece(kind, blocks, short, sides, connectivity, highest, block_size, seed):
    rng = np.random.default_rng(seed)
    rows, cols = (count * block_size - less * block_size // 8 for count, less in zip(blocks, short, strict=True))
    grid = MAPS[kind](rows, cols, connectivity, seed)
    costs = (grid.costs * rng.integers(1, highest + 1, grid.shape)).astype(np.uint8)
    costs[rng.integers(rows), rng.integers(cols)] = highest
    grid = GridMap(costs, connectivity)
    one, streamed = BlockPlanner(grid, block_size=block_size, device="cpu"), cut_into(grid, block_size, sides)
    free = np.argwhere(costs)
    starts = free[rng.integers(len(free), size=30)]
    for goal in free[rng.integers(len(free), size=2)]:
        paths = assert_same(one, streamed, starts, goal)
        assert not broken_paths(grid, paths, starts, goal)
    changed = rng.integers([rows, cols], size=(60, 2))
    changed = changed[(changed != goal).any(1)]
    new = random_costs(rng, 1, len(changed), 0.5, highest)[0]
    for planner in (one, streamed):
        planner.update(*changed.T, new)
    starts = np.argwhere(one.grid.costs)[:: rows * cols // 40]
    if FieldShape.of(one.grid, block_size) == FieldShape.of(grid, block_size):  # else another limit would be needed
        assert_same(one, streamed, starts, goal)


def test_many_goals_are_planned_one_after_the_other():
    grid = caves_and_rooms(70, 90, seed=3)
    free = np.argwhere(grid.costs)
    starts, goals = free[::7], np.repeat(free[[5, 500, 1000]], -(-len(free[::7]) // 3), axis=0)[: len(free[::7])]
    one, streamed = BlockPlanner(grid, block_size=8, device="cpu"), cut_into(grid, 8, (4, 4))
    a, b = one.plan(starts, goals), streamed.plan(starts, goals)
    assert np.array_equal(a.cost, b.cost) and np.array_equal(a.length, b.length) and a.solved.any()
    assert not broken_paths(grid, b, starts, goals)
    assert np.array_equal(one.field(goals[0]), streamed.field(goals[0]))


def test_a_window_is_visited_again_where_the_way_comes_back():
    grid = spiral(64, 64, 4)
    cut = Cut(FieldShape.of(grid, 8), 4, 4)
    fields = StreamedFields(cut, open_fields(cut.window, "cpu"))
    fields.set_map(grid)
    fields.allocate(1)
    block, tile = cut.shape.blocks.of_tiles(62, 0)
    fields.update(Request(np.array([[block, tile, 0, 1]], np.int32), new=[0]))
    length = fields.descend(np.array([[0, 0]], np.int32), np.zeros(1, np.int32), 2)[0]
    assert length[0] > 31 * 60
    assert fields.visits > 31  # the way changes from the left to the right half in each corridor


@pytest.mark.parametrize("connectivity", [4, 8])
def test_the_least_limit_is_named(connectivity):
    grid = GridMap(np.ones((400, 400), np.uint8), connectivity)
    least = Cut(FieldShape.of(grid, 32), 2, 2).window.bytes_with_map
    with pytest.raises(
        SettingsError,
        match=f"memory_limit_bytes is {least - 1}: .* 2 x 2 blocks of 32 x 32 tiles; use at least {least}$",
    ):
        BlockPlanner(grid, device="cpu", settings=Settings(memory_limit_bytes=least - 1))
    planner = BlockPlanner(grid, device="cpu", settings=Settings(memory_limit_bytes=least))
    assert planner.plan([[0, 0]], [0, 399]).cost[0] == 399


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize(("rows", "cols"), [(5000, 5000), (200, 9000), (9000, 33)])
def test_windows_fill_the_limit(rows, cols, connectivity):
    """Windows cover the map, fit, and are not many more than the share of the field asks for."""
    shape = FieldShape.of(GridMap(np.ones((rows, cols), np.uint8), connectivity), 32)
    for share in (0.9, 0.3, 0.05):
        cut = Cut.of(shape, int(share * shape.field_bytes))
        assert cut.window.bytes_with_map <= share * shape.field_bytes
        covered = np.zeros((shape.blocks.height - 2, shape.blocks.width - 2), int)
        for window in range(cut.down * cut.across):
            top, bottom, left, right = cut.place(window)
            covered[top:bottom, left:right] += 1
        assert (covered > 0).all()
        assert cut.down * cut.across <= 2.5 / share + 1


@pytest.mark.gpu
@pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem() or "")
@pytest.mark.parametrize(
    ("connectivity", "highest", "block_size"), [(4, 1, 32), (4, 1, 8), (4, 255, 32), (8, 1, 32), (8, 255, 16)]
)
def test_streamed_on_cuda_equals_one_piece_on_the_cpu(connectivity, highest, block_size):
    rng = np.random.default_rng(5)
    costs = caves_and_rooms(300, 410, 5, connectivity).costs * rng.integers(1, highest + 1, (300, 410))
    grid = GridMap(costs, connectivity)
    free = np.argwhere(grid.costs)
    one, streamed = BlockPlanner(grid, block_size=block_size, device="cpu"), cut_into(grid, block_size, (3, 4), "cuda")
    starts = free[rng.integers(len(free), size=1000)]
    for goal in free[rng.integers(len(free), size=2)]:
        assert assert_same(one, streamed, starts, goal).solved.sum() > 500
