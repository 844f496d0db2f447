"""Where agents take turns: lanes and doors that join rooms, and nothing of what random obstacles leave."""

import numpy as np
import pytest
from scipy.ndimage import label

from benchmarks.fleet_lanes import comb, ring, two_rooms
from gpu_planners.fleet.fields.next_hops import ground_of
from gpu_planners.fleet.plan.turns import lanes_of


def lanes(free):
    ground, _, place = ground_of(free)
    return lanes_of(ground, place, free.shape)[:-1]


def greatest_part(free):
    parts = label(free)[0]
    return parts == 1 + np.argmax(np.bincount(parts.ravel())[1:])


@pytest.mark.parametrize("free", [two_rooms(), comb(), ring()], ids=["two rooms", "comb", "ring"])
def test_lanes_are_found(free):
    assert lanes(free).sum() >= 6


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("share", [0.1, 0.2])
def test_random_obstacles_leave_none(seed, share):
    """There agents find ways around each other, and joint plans cost errands."""
    rng = np.random.default_rng(seed)
    assert not lanes(greatest_part(rng.random((32, 32)) > share)).any()
