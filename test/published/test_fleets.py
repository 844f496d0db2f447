"""Fleets that others were reported to bring to a stop. The inputs are our own."""

import numpy as np

from gpu_planners.fleet import FleetPlanner
from gpu_planners.grid import GridMap
from gpu_planners.verify import conflicts

HALL = """
##########
#........#
#.######.#
#........#
####.#####
##########
"""  # two ways, and a bay


def test_two_robots_that_swap_again_and_again():
    """open-rmf/rmf_ros2 #503: two robots that patrol between each other's places come to a deadlock after some time."""
    tiles = np.array([[c == "." for c in row] for row in HALL.split()], np.uint8)
    fleet = FleetPlanner(GridMap(tiles, connectivity=4), motion="four", device="cpu")
    ends = np.array([[3, 1], [3, 8]])
    fleet.start(ends)
    at, goals, swaps, waited, seen = ends.copy(), ends[::-1].copy(), 0, 0, [ends.copy()]
    moves = np.array([[0, 1], [1, 0], [0, -1], [-1, 0], [0, 0]])
    while swaps < 60:
        at = at + moves[np.asarray(fleet.step(goals, budget_s=0.2))]
        seen.append(at.copy())
        there = (at == goals).all(axis=1)
        waited += 1
        assert waited < 100, f"no swap for 100 steps, after {swaps}"
        if there.all():
            goals, swaps, waited = goals[::-1].copy(), swaps + 1, 0
    assert not conflicts(np.array(seen), tiles == 0)
