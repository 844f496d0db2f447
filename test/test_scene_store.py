"""The scenes that a CUDA device keeps, with arrays of the host in place of the device's."""

import numpy as np
import pytest

from gpu_planners.arm.planners.rrt_connect import scene_store
from gpu_planners.arm.planners.rrt_connect.scene_store import SceneStore
from gpu_planners.arm.spaces.interface import Packed


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


def scene(seed):
    rng = np.random.default_rng(seed)
    floats, ints = rng.integers(1, 50, size=2)
    return Packed(rng.normal(size=floats).astype(np.float32), rng.integers(1 << 20, size=ints).astype(np.int32))


def assert_placed(store, scenes):
    floats, ints, places = store.placed({id(each): each for each in scenes})
    for each in scenes:
        first, other = places[id(each)]
        assert np.array_equal(floats[first : first + len(each.floats)], each.floats)
        assert np.array_equal(ints[other : other + len(each.ints)], each.ints)


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
    sent = Part.sent
    assert sent == sum(len(part) for each in first for part in each)
    assert_placed(store, first[2:5])
    assert Part.sent == sent
    assert_placed(store, second)  # there is room beside them
    assert_placed(store, first + second)
    assert Part.sent == sum(len(part) for each in first + second for part in each) and len(sizes) == 2


def test_spare_room_is_bounded(asked, monkeypatch):
    sizes, store = asked
    monkeypatch.setattr(scene_store, "MOST_SPARE", 10)
    scenes = [scene(seed) for seed in range(30)]
    assert_placed(store, scenes)
    assert sizes == [sum(len(part) for part in kind) + 10 for kind in zip(*scenes)]
