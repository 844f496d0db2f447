"""Simulated robots that are late, do not hear all, break down, and lose their node: nobody meets, and work goes on."""

import pytest

from benchmarks.fleets_late import ideal, run
from gpu_planners.grid.maps.generated import warehouse_map

GRID = warehouse_map(20, 40, apron=4)


@pytest.mark.parametrize(
    "faults",
    [
        {"late": 0.2},
        {"lost": 0.2},
        {"late": 0.1, "lost": 0.1, "broken": 20.0, "steps_ahead": 5},
        {"late": 0.1, "lost": 0.1, "restarts": (60.0, 100.0)},
        {"late": 0.1, "steps_ahead": 0},
    ],
    ids=str,
)
def test_nobody_meets_and_work_goes_on(faults):
    robots, fleet, errands = run(GRID, 40, 180, **faults)
    assert robots.overlaps == 0 and not fleet.clashes
    assert errands > 20 and (180 - robots.moved < 100).all()


def test_some_late_robots_cost_little():
    """A tenth of the moves take three times as long: at best a sixth is lost."""
    errands = run(GRID, 40, 300, late=0.1)[2]
    assert errands > 0.6 * ideal(GRID, 40, 300)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_three_hundred_robots_for_a_quarter_of_an_hour():
    robots, _, errands = run(warehouse_map(38, 70, apron=6), 300, 900, late=0.05, lost=0.05, broken=1.0)
    assert robots.overlaps == 0 and errands > 50
    assert (900 - robots.moved < 300).all()
