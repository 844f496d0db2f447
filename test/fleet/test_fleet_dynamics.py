"""How long robots take, beside a robot that is driven tick by tick: full speed ahead unless it has to brake."""

import math

import numpy as np
import pytest
from driven_robot import driven

from gpu_planners.errors import SettingsError
from gpu_planners.fleet.execution.dynamics import Dynamics, ends_of, profiles_of
from gpu_planners.fleet.execution.rules import Rules
from gpu_planners.fleet.execution.running import RunningFleet
from gpu_planners.grid import GridMap


@pytest.mark.parametrize("seed", range(6))
def test_as_long_as_a_robot_that_is_driven_tick_by_tick(seed):
    rng = np.random.default_rng(seed)
    robot = Dynamics(*rng.uniform((0.5, 0.3, 0.3, 0.8, 1.0), (2.5, 2.0, 2.0, 3.0, 4.0)))
    side = 0.8
    # 3 ahead, a quarter, 1 ahead, two quarters, 2 ahead (what follows is not allowed yet)
    tiles = np.array([[(0, 0), (0, 1), (0, 2), (0, 3), (0, 3), (1, 3), (1, 3), (1, 3), (0, 3), (0, 3)]])
    headings = np.array([[0, 0, 0, 0, 3, 3, 2, 1, 1, 2]])
    found = ends_of(tiles, headings, np.array([8]), profiles_of([robot]), side)[0]
    go, spin = (robot.speed, robot.acceleration, robot.deceleration), (robot.turn_speed, *[robot.turn_acceleration] * 2)
    expected, begin = [], 0.0
    for marks, limits in (
        ([side, 2 * side, 3 * side], go),
        ([math.pi / 2], spin),
        ([side], go),
        ([math.pi / 2, math.pi], spin),
        ([side], go),
    ):
        expected += [begin + seconds for seconds in driven(marks, [math.inf] * len(marks), *limits)]
        begin = expected[-1]
    assert found[:8] == pytest.approx(expected, rel=0.015) and found[8] == 0  # ticks add up


def test_without_limits_but_speed_it_is_the_way_over_the_speed():
    tiles = np.array([[(0, 0), (0, 1), (0, 2)], [(0, 0), (0, 1), (0, 1)]])
    headings = np.array([[0, 0, 0], [0, 0, 1]])
    found = ends_of(tiles, headings, np.array([2, 2]), profiles_of([Dynamics(0.5), Dynamics(2.0)]), 1.0)
    assert found == pytest.approx(np.array([[2.0, 4.0], [0.5, 0.5]]), abs=1e-4)
    with pytest.raises(SettingsError, match="speed is 0"):
        Dynamics(0)


def test_a_heavy_robot_is_given_its_time_and_a_quick_one_is_late_sooner():
    """Two robots that do nothing: the quick one is late first, the heavy one when it should have moved by its load."""
    fleet = RunningFleet(Rules(device="cpu", step_s=0.5, silent_after_s=2.0))
    fleet.take_map(GridMap(np.ones((3, 12), np.uint8), 4))
    fleet.take_dynamics({"heavy": Dynamics(0.2, 0.1, 0.1), "quick": Dynamics(2.0, 4.0, 4.0)})
    tiles = np.array([(0, 0), (2, 0)])
    late = {}
    for tick in range(200):
        now = 0.1 * tick
        fleet.take_states(["heavy", "quick"], fleet.places.points(tiles), np.zeros(2), np.full(2, now), {})
        if tick == 5:
            fleet.take_goals(["heavy", "quick"], fleet.places.points(tiles + (0, 11)), {})
        if fleet.due(now):
            fleet.step(now)
            for id in fleet.late_ids():
                late.setdefault(id, now)
    told = fleet.told("heavy")
    assert late["quick"] < 5.0 and late["heavy"] > late["quick"] + 3.0, late
    assert told.seconds > 5.0
