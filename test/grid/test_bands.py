"""Maps that are cut into bands over ranks: fields and paths are those of one device, and of an independent Dijkstra."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from grid_paths import random_costs
from hypothesis import given, settings
from hypothesis import strategies as st
from mpi_harness import mpirun

from gpu_planners.device import cuda_problem
from gpu_planners.distributed import run
from gpu_planners.errors import GridMapError, SettingsError
from gpu_planners.grid import BandedPlanner, BlockPlanner, GridMap, MapRows, plan_bands
from gpu_planners.grid.bands import cut
from gpu_planners.grid.bands import planner as planner_module
from gpu_planners.grid.bands.agents import Pieces, unpacked
from gpu_planners.grid.exact.blocks import BITS, VALUES, FieldShape
from gpu_planners.grid.exact.streamed import Cut
from gpu_planners.grid.exact.values import DIAGONAL_8
from gpu_planners.grid.maps.generated import caves_and_rooms
from gpu_planners.grid.paths import first_words, put_step
from gpu_planners.verify import broken_paths, costs_to_goal


def assert_same(paths, expected):
    """Both have the same answers and steps, bit for bit; with several goals words may lie in another order."""
    for name in ("status", "cost", "length", "bits"):
        assert np.array_equal(getattr(paths, name), getattr(expected, name)), name
    assert all(map(np.array_equal, paths.paths(), expected.paths()))


def spiral(rows, cols):
    """Corridors one tile wide, there and back over all rows."""
    costs = np.ones((rows, cols), np.uint8)
    costs[1::2] = 0
    costs[1::4, -1] = costs[3::4, 0] = 1
    return costs


def upright_spiral(rows, cols):
    """The same over all columns: the way crosses every border in each corridor."""
    return np.ascontiguousarray(spiral(cols, rows).T)


RANK = Path(__file__).parent.parent / "rank_bands.py"
MAPS = {
    "random": lambda rows, cols, seed: random_costs(np.random.default_rng(seed), rows, cols, 0.35, 1),
    "caves and rooms": lambda rows, cols, seed: caves_and_rooms(rows, cols, seed, 4).costs,
    "corridors": lambda rows, cols, seed: spiral(rows, cols),
    "upright corridors": lambda rows, cols, seed: upright_spiral(rows, cols),
}


def on_bands(grid, ranks, work, block_size=8, shares=None, **arguments):
    """-> [work(planner)] of each rank, each in a thread."""

    def on_rank(exchange):
        share = shares[exchange.rank] if shares else 1.0
        source = MapRows(*grid.shape, lambda first, last: grid.costs[first:last])
        return work(
            BandedPlanner(source, exchange, grid.connectivity, block_size, device="cpu", share=share, **arguments)
        )

    return run(ranks, on_rank)


def assert_as_one(grid, ranks, starts, goals, block_size=8, **arguments):
    """Paths of all agents and the field of the first goal are those of a BlockPlanner, bit for bit, on every rank.

    -> PathSet, field
    """
    one = BlockPlanner(grid, block_size=block_size, device="cpu")
    expected, field = one.plan(starts, goals), one.field(np.atleast_2d(goals)[0])
    answers = on_bands(
        grid, ranks, lambda p: (p.field(np.atleast_2d(goals)[0]), p.plan(starts, goals)), block_size, **arguments
    )
    assert np.array_equal(np.concatenate([rows for rows, _ in answers]), field)
    for _, paths in answers:
        assert_same(paths, expected)
    return answers[0][1], field


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(sorted(MAPS)),
    shape=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    ranks=st.integers(1, 6),
    connectivity=st.sampled_from([4, 8]),
    highest=st.sampled_from([1, 7, 255]),
    block_size=st.sampled_from([8, 32]),
    seed=st.integers(0, 2**32 - 1),
)
def test_fields_and_paths_are_those_of_one_device_and_of_dijkstra(
    kind, shape, ranks, connectivity, highest, block_size, seed
):
    rng = np.random.default_rng(seed)
    costs = (MAPS[kind](*shape, seed) * rng.integers(1, highest + 1, shape)).astype(np.uint8)
    costs[rng.integers(shape[0]), rng.integers(shape[1])] = highest
    grid, free = GridMap(costs, connectivity), np.argwhere(costs)
    starts = free[rng.integers(len(free), size=12)]
    goals = free[rng.integers(len(free), size=3)][rng.integers(3, size=12)]
    shares = rng.random(ranks) + 0.05
    paths, field = assert_as_one(grid, ranks, starts, goals, block_size, shares=shares.tolist())
    assert np.allclose(field, costs_to_goal(costs, connectivity, goals[0]), rtol=1e-12, atol=0)
    assert not broken_paths(grid, paths, starts, goals)


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("highest", [1, 9])
def test_many_agents_share_a_goal_across_bands(connectivity, highest):
    """Every free tile is a start, unreachable ones too; agents that meet share the rest of their ways."""
    rng = np.random.default_rng(1)
    costs = random_costs(rng, 83, 61, 0.4, highest)
    grid, free = GridMap(costs, connectivity), np.argwhere(costs)
    paths, _ = assert_as_one(grid, 4, free, free[len(free) // 3])
    assert paths.solved.any() and not paths.solved.all()


@pytest.mark.parametrize("connectivity", [4, 8])
def test_a_way_that_crosses_a_border_in_each_corridor_takes_many_rounds(connectivity):
    grid = GridMap(upright_spiral(64, 41), connectivity)
    goal = (0, 0)

    def rounds(planner):
        planner.prepare(goal)
        return planner.report.rounds

    assert assert_as_one(grid, 2, [[63, 40]], goal)[0].length[0] > 20 * 60
    assert min(on_bands(grid, 2, rounds)) >= 20
    assert on_bands(grid, 1, rounds) == [0]


@pytest.mark.parametrize(("connectivity", "highest"), [(4, 1), (4, 9), (8, 1)])
def test_bands_beyond_the_memory_limit_are_planned_in_pieces(connectivity, highest):
    rng = np.random.default_rng(4)
    costs = caves_and_rooms(200, 150, 4, connectivity).costs * rng.integers(1, highest + 1, (200, 150))
    grid = GridMap(costs, connectivity)
    free = np.argwhere(grid.costs)
    limit = Cut(FieldShape.of(grid, 8), 3, 5).window.bytes_with_map
    starts, goals = free[rng.integers(len(free), size=(2, 40))]
    assert_as_one(grid, 3, starts, goals[rng.integers(2, size=40)], memory_limit_bytes=limit)

    def visits(planner):
        planner.prepare(goals[0])
        return planner.visits

    assert min(on_bands(grid, 3, visits, memory_limit_bytes=limit)) > 4
    assert on_bands(grid, 3, visits) == [None] * 3


def test_agents_who_cannot_be_planned_for_are_told_why_as_by_one_device():
    rng = np.random.default_rng(2)
    grid = GridMap(random_costs(rng, 50, 40, 0.3, 1), 8)
    starts = rng.integers(-5, 60, size=(200, 2)).astype(float)
    goals = rng.integers(0, 45, size=(200, 2)).astype(float)
    starts[::17], goals[::13], starts[3] = np.nan, np.inf, 4.7
    goals[20:] = goals[19]
    expected = BlockPlanner(grid, block_size=8, device="cpu").plan(starts, goals)
    assert len(np.unique(expected.status)) > 5
    assert [len(paths) for paths in on_bands(grid, 3, lambda planner: planner.plan([], [0, 0]))] == [0, 0, 0]
    for paths in on_bands(grid, 3, lambda planner: planner.plan(starts, goals)):
        assert_same(paths, expected)


@settings(max_examples=30, deadline=None)
@given(lengths=st.lists(st.integers(0, 70), max_size=20), bits=st.sampled_from([2, 4]), at_once=st.integers(1, 300))
def test_steps_are_unpacked_some_at_a_time(lengths, bits, at_once):
    rng = np.random.default_rng(len(lengths))
    steps = [rng.integers(4 if bits == 2 else 8, size=length) for length in lengths]
    first, total = first_words(np.array(lengths, np.int64), bits)
    words = np.zeros(total, np.uint32)
    for codes, begin in zip(steps, first, strict=True):
        for number, code in enumerate(codes):
            put_step(words, begin, number, code, bits)
    none = np.zeros(len(lengths), np.int64)
    parts = list(unpacked(Pieces(none, none, np.array(lengths, np.int64), words), bits, at_once))
    assert [i for part, _ in parts for i in range(part.start, part.stop)] == list(range(len(lengths)))
    for part, codes in parts:
        assert np.array_equal(codes, np.concatenate(steps[part]))
        assert part.stop - part.start == 1 or len(codes) <= at_once


@settings(max_examples=100, deadline=None)
@given(
    rows=st.integers(1, 3000),
    shares=st.lists(st.floats(0, 100), min_size=1, max_size=40).filter(any),
    block_size=st.sampled_from([4, 8, 16, 32]),
)
def test_bands_are_all_rows_once_in_proportion(rows, shares, block_size):
    bands = plan_bands(rows, len(shares), block_size, shares)
    assert [row for band in bands for row in range(band.first, band.last)] == list(range(rows))
    for band, share in zip(bands, shares, strict=True):
        assert band.first % block_size == 0 or band.first == rows
        assert band.top <= band.first <= band.last <= band.bottom
        assert abs(band.rows - rows * share / sum(shares)) <= 2 * block_size
        if band.rows:
            assert band.top == max(0, band.first - block_size) and band.bottom == min(rows, band.last + block_size)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0, 2), GridMapError, "number of rows is 0"),
        ((10, 0), SettingsError, "number of ranks is 0"),
        ((10, 2, 5), SettingsError, "block_size is 5: use one of"),
        ((10, 2, [8]), SettingsError, r"block_size is \[8\]: use one of"),
        ((10, 2, 8, "ab"), SettingsError, "shares is 'ab'; allowed: 2 numbers"),
        ((10, 2, 8, [1]), SettingsError, r"shares is \[1\]; allowed: 2 numbers"),
        ((10, 2, 8, [0, 0]), SettingsError, "not all 0"),
        ((10, 2, 8, [1, -1]), SettingsError, "of 0 or more"),
        ((10, 2, 8, [1, math.nan]), SettingsError, "of 0 or more"),
    ],
)
def test_bands_that_cannot_be_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        plan_bands(*arguments)


def test_a_rank_reads_its_band_and_a_block_beside_only(tmp_path):
    costs = caves_and_rooms(300, 40, 5, 4).costs
    np.save(tmp_path / "map.npy", costs)
    whole = MapRows.of_file(tmp_path / "map.npy")

    def work(exchange):
        asked = []

        def read(first, last):
            asked.append((first, last))
            return whole.read(first, last)

        planner = BandedPlanner(MapRows(300, 40, read), exchange, 4, 8, device="cpu")
        return planner.band, min(asked)[0], max(asked)[1], planner.field(np.argwhere(costs)[0])

    answers = run(4, work)
    for band, first, last, _ in answers:
        assert first >= band.first - 9 and last <= band.last + 9
    expected = BlockPlanner(GridMap(costs, 4), block_size=8, device="cpu").field(np.argwhere(costs)[0])
    assert np.array_equal(np.concatenate([rows for *_, rows in answers]), expected)


def test_a_random_map_does_not_depend_on_how_it_is_read():
    source = MapRows.random(300, 50, 0.3, seed=7)
    costs = source.read(0, 300)
    assert 0.25 < (costs == 0).mean() < 0.35 and set(np.unique(costs)) == {0, 1}
    for first, last in ((0, 1), (63, 65), (64, 128), (100, 300)):
        assert np.array_equal(source.read(first, last), costs[first:last])
    assert not np.array_equal(MapRows.random(300, 50, 0.3, seed=8).read(0, 300), costs)


def test_rows_that_are_no_costs_are_refused(tmp_path):
    grid = GridMap(np.ones((64, 16), np.uint8), 4)
    for bad, words in (
        (lambda first, last: np.full((last - first, 16), 300), r"rows 0 \.\. 39 of the map, .* is 300"),
        (lambda first, last: np.ones((last - first, 15), np.uint8), r"the shape \(40, 15\); allowed: \(40, 16\)"),
        (lambda first, last: None, "the shape None"),
    ):
        with pytest.raises(GridMapError, match=words):
            run(1, lambda exchange, bad=bad: BandedPlanner(MapRows(40, 16, bad), exchange, 4, 8, device="cpu"))
    np.save(tmp_path / "floats.npy", np.ones((3, 3)))
    (tmp_path / "text.npy").write_text("no array")
    for file, words in (("floats.npy", "float64; allowed"), ("text.npy", "allowed"), ("missing.npy", "No such file")):
        with pytest.raises(GridMapError, match=words):
            MapRows.of_file(tmp_path / file)
    for call, words in (
        (lambda: MapRows.of_file(5), "the map must be a path"),
        (lambda: MapRows.of_grid(grid.costs), "grid is .*; allowed: a GridMap"),
        (lambda: MapRows(4, 4, 5), "read is 5; allowed: a function"),
        (lambda: MapRows.random(4, 4, "x"), "density is 'x'; allowed: a number"),
        (lambda: MapRows.random(4, 4, seed=-1), "seed is -1; allowed: whole numbers"),
    ):
        with pytest.raises(GridMapError, match=words):
            call()
    for shape in ((0, 5), (5, 2**31), (5, "x")):
        with pytest.raises(GridMapError, match="number of"):
            MapRows(*shape, None)
    with pytest.raises(GridMapError, match=r"goal \[100, 0\] is not a free tile"):
        on_bands(grid, 2, lambda planner: planner.field([100, 0]))
    with pytest.raises(SettingsError, match="cannot be changed; allowed: a new BandedPlanner"):
        on_bands(grid, 2, lambda planner: planner.update([0], [0], 0))
    for rows in ((0, 40), (40, 0), 5, "ab", (0, 1, 2), (0.5, 3)):
        with pytest.raises(GridMapError, match=r"allowed: \(first, last\) within \d+ \.\. \d+, the band of rank [01]"):
            on_bands(grid, 2, lambda planner, rows=rows: planner.field([0, 0], rows))


def test_ranks_that_were_given_different_things_are_refused():
    grid = GridMap(np.ones((64, 16), np.uint8), 4)
    with pytest.raises(GridMapError, match="rank 1 was given other starts or goals than rank 0"):
        on_bands(grid, 2, lambda planner: planner.plan([[0, planner.band.rank]], [5, 5]))
    with pytest.raises(GridMapError, match="rank 1 was given another connectivity"):
        run(2, lambda e: BandedPlanner(MapRows.of_grid(grid), e, (4, 8)[e.rank], 8, device="cpu"))
    with pytest.raises(GridMapError, match=r"rows 23 \.\. 40 of the map are not the same on the ranks 0 and 1"):
        run(2, lambda e: BandedPlanner(MapRows.random(64, 16, seed=e.rank), e, 4, 8, device="cpu"))
    with pytest.raises(SettingsError, match="share is inf; allowed: a number from 0 to"):
        on_bands(grid, 2, lambda planner: None, shares=[1.0, math.inf])
    assert {planner.band.rows for planner in on_bands(grid, 2, lambda planner: planner, block_size=8.0)} == {32}


def test_a_map_that_does_not_fit_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr(cut, "available_bytes", lambda: 10**6)
    read = []
    source = MapRows(10_000, 10_000, lambda first, last: read.append(first))

    def work(exchange):
        with pytest.raises(GridMapError, match=r"10000 x 10000 tiles needs \d+ bytes .* \(ranks 0, 1\).* 1000000 left"):
            BandedPlanner(source, exchange, 8, device="cpu")
        return True

    assert run(2, work) == [True, True] and not read


def test_memory_that_is_left_is_known_here():
    left = cut.available_bytes()
    assert left is None or 2**20 < left < 2**50


def test_a_fault_of_one_rank_ends_all():
    """A file that breaks off on one rank's part: nobody waits, and the error is that rank's."""

    def read(first, last):
        if last > 200:
            raise OSError(f"row {first} cannot be read")
        return np.ones((last - first, 30), np.uint8)

    with pytest.raises(OSError, match="row .* cannot be read"):
        run(3, lambda exchange: BandedPlanner(MapRows(300, 30, read), exchange, 4, 8, device="cpu"))


def gpus():
    if cuda_problem():
        return 0
    from numba import cuda

    return len(cuda.gpus)


@pytest.mark.gpu
@pytest.mark.skipif(gpus() < 2, reason=f"this machine has {gpus()} GPUs, not two")
@pytest.mark.parametrize("limit", [None, 60_000])
def test_two_gpus_plan_as_one_device(limit):
    """Whole bands, and bands in pieces, on a GPU for each rank, beside one field on the CPU."""
    code, out, err = mpirun(2, RANK, "plans", "auto", *([limit] if limit else []), timeout_s=300)
    assert code == 0, err
    answers = json.loads(out.splitlines()[0])
    assert {answer["device"] for answer in answers} == {"cuda:0", "cuda:1"}
    assert all(answer["same"] and answer["pieces"] == (limit is not None) for answer in answers)


def test_ranks_of_mpi_plan_as_one_device():
    """Four, and then each two of them."""
    ranks = 4
    code, out, err = mpirun(ranks, RANK, "plans", timeout_s=300)
    assert code == 0, err
    answers = json.loads(out.splitlines()[0])
    assert len(answers) == ranks
    for each in answers, [answer["pair"] for answer in answers]:
        assert all(answer["same"] for answer in each)
        assert {answer["rounds"] for answer in each} == {each[0]["rounds"]} and each[0]["rounds"] > 1
        assert all(answer["bytes"] > 0 for answer in each)
    *others, last = (answer["fault"] for answer in answers)
    assert re.fullmatch(r"OSError: row \d+ cannot be read", last)
    assert all(text == f"RanksError: rank {ranks - 1} failed: {last}" for text in others)


def test_a_rank_that_dies_while_the_map_is_read_ends_all():
    code, out, err = mpirun(2, RANK, "killed", timeout_s=60)
    assert code != 0 and not out.startswith("[")  # nobody came to the end
    assert re.search(r"signal: ?9|signal 9|Killed", out + err), out + err


@pytest.mark.parametrize(("connectivity", "step"), [(4, 1), (8, DIAGONAL_8)])
def test_maps_with_more_tiles_than_costs_can_count(monkeypatch, connectivity, step):
    """It counts how far the ways on the map are; one that is too far is refused on every rank."""
    layout = VALUES if connectivity == 8 else BITS
    monkeypatch.setitem(planner_module.LONGEST, layout, 1600 * step)  # half of them on a rank
    wide = GridMap(np.ones((64, 30), np.uint8), connectivity)
    assert_as_one(wide, 8, [[63, 29]], (0, 0))
    far = GridMap(upright_spiral(64, 51), connectivity)
    with pytest.raises(GridMapError, match=r"a path to the goal \(0, 0\) costs \d+ units at the border"):
        on_bands(far, 8, lambda planner: planner.prepare((0, 0)))
    with pytest.raises(GridMapError, match=r"a rank has \d+ free tiles with costs up to 1; allowed: at most \d+"):
        on_bands(wide, 2, lambda planner: None)
