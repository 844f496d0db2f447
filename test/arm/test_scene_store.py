"""The scenes that a CUDA device keeps, with arrays of the host in place of the device's."""

import numpy as np
import pytest
from robots_at_hand import checker_among, maker_of, problem_of

from gpu_planners.arm.collision.checker import _configurations_valid, _motions_valid
from gpu_planners.arm.planners.rrt_connect import scene_store
from gpu_planners.arm.planners.rrt_connect.scene_store import SceneStore
from gpu_planners.arm.spaces.interface import FREE, Packed, SceneParts


class Part(np.ndarray):
    """Of an array of the device: it counts what is sent to it."""

    sent = 0

    def copy_to_device(self, values):
        self[:] = values
        Part.sent += len(values)


@pytest.fixture
def asked(monkeypatch):
    """The sizes that a store asks for, and the store."""
    sizes = []
    monkeypatch.setattr(Part, "sent", 0)

    def allocate(count, dtype):
        sizes.append(count)
        return np.zeros(count, dtype).view(Part)

    return sizes, SceneStore(allocate)


def packed(rng, least):
    floats, ints = rng.integers(least, 50, size=2)
    return Packed(rng.normal(size=floats).astype(np.float32), rng.integers(1 << 20, size=ints).astype(np.int32))


SHARED = [packed(np.random.default_rng(seed), 1) for seed in range(3)]


def with_distances(ints, floats_away, ints_away):
    return np.concatenate([np.array([floats_away, ints_away], np.int32), ints[2:]])


def scene(seed):
    """One whose first ints say how far away the shared part is, or, one in four, one that shares nothing."""
    own = packed(np.random.default_rng(seed), 2)
    return SceneParts(own, SHARED[seed % 4], with_distances) if seed % 4 < 3 else SceneParts(own)


def numbers(scenes):
    """How many floats, and how many ints, they are, what they share counted once."""
    parts = [each.own for each in scenes] + list({id(each.shared): each.shared for each in scenes}.values())
    return [sum(map(len, kind)) for kind in zip(*parts)]


def assert_placed(store, scenes):
    floats, ints, places = store.placed(scenes)
    for each in scenes:
        (first, other), kept = places[id(each.own)], each.ints_of is with_distances
        assert np.array_equal(floats[first : first + len(each.own.floats)], each.own.floats)
        assert np.array_equal(ints[other : other + len(each.own.ints)][2 * kept :], each.own.ints[2 * kept :])
        if kept:
            for buffer, part, at in zip((floats, ints), each.shared, (first + ints[other], other + ints[other + 1])):
                assert np.array_equal(buffer[at : at + len(part)], part)


def test_every_scene_is_where_the_store_says_whatever_was_asked_before(asked):
    _, store = asked
    rng, scenes = np.random.default_rng(0), [scene(seed) for seed in range(60)]
    for _ in range(200):
        some = rng.permutation(60)[: rng.integers(1, 60)]
        assert_placed(store, [scenes[i] for i in some])


def test_what_is_there_is_not_sent_again(asked):
    sizes, store = asked
    first, second = [scene(seed) for seed in range(8)], [scene(seed) for seed in range(8, 12)]
    assert_placed(store, first)
    assert Part.sent == sum(numbers(first))
    assert_placed(store, first[2:5])
    assert Part.sent == sum(numbers(first))
    assert_placed(store, second)  # there is room beside them
    assert_placed(store, first + second)
    assert Part.sent == sum(numbers(first + second)) and len(sizes) == 2


def test_spare_room_is_bounded(asked, monkeypatch):
    sizes, store = asked
    monkeypatch.setattr(scene_store, "MOST_SPARE", 10)
    scenes = [scene(seed) for seed in range(30)]
    assert_placed(store, scenes)
    assert sizes == [count + 10 for count in numbers(scenes)]


def test_no_place_is_beyond_an_int32(asked, monkeypatch):
    sizes, store = asked
    scenes = [scene(seed) for seed in range(30)]
    monkeypatch.setattr(scene_store, "GREATEST", max(numbers(scenes)))
    assert_placed(store, scenes)
    assert max(sizes) == max(numbers(scenes)) < 2 * min(numbers(scenes))


@pytest.mark.parametrize("rooms", [1, 3])
def test_scenes_that_share_their_robots_give_the_same_verdicts(asked, rooms):
    """Scenes of three robots in one store, read from their places as a batch on CUDA reads them."""
    _, store = asked
    checkers = [
        checker_among(maker_of(name).model, problem_of(name, family, index)[1])
        for name in ("gantry", "panda", "ur5")
        for family in ("shelf", "cage")
        for index in range(2)
    ]
    for room in np.array_split(np.random.default_rng(0).permutation(len(checkers)), rooms):
        store.placed([checkers[i].scene_parts for i in room])
    floats, ints, places = store.placed([checker.scene_parts for checker in checkers])
    assert Part.sent < 0.5 * sum(len(part) for checker in checkers for part in checker.packed_scene)
    for checker in checkers:
        first, other = places[id(checker.scene_parts.own)]
        scene = Packed(np.array(floats[first:]), np.array(ints[other:]))
        robot, rng = checker.robot, np.random.default_rng(1)
        q = rng.uniform(robot.lower, robot.upper, (500, robot.dof)).astype(np.float32)
        assert np.array_equal(checker._pair_distances(q, scene), checker._pair_distances(q, checker.packed_scene))
        verdicts = np.empty(len(q), np.uint8)
        _configurations_valid(q, 4, scene, verdicts)
        expected = checker.configurations_valid(q)
        assert np.array_equal(verdicts == FREE, expected) and 0 < expected.sum() < len(q)
        ends = q[:100], q[:100] + np.float32(0.05)
        mode, step = checker.motion_args
        _motions_valid(*ends, 4, np.int32(mode), step, scene, verdicts[:100])
        assert np.array_equal(verdicts[:100] == FREE, checker.motions_valid(*ends))
