"""Hostile arguments of swept_boxes are refused by an error of the package."""

import pytest

from gpu_planners.arm.swept import corners, swept_boxes
from gpu_planners.errors import GpuPlannersError
from soundness import arguments

PATH = [[0.0, 0.0], [0.5, 0.5]]


@pytest.mark.parametrize("kind", arguments.HOSTILE)
def test_hostile_arguments_of_swept_boxes_are_refused_by_name(kind):
    made, robot = arguments.HOSTILE[kind], arguments.robot()
    calls = (
        lambda: swept_boxes(made(), PATH),
        lambda: swept_boxes(robot, made()),
        lambda: swept_boxes(robot, PATH, made()),
        lambda: corners(made()),
    )
    for call in calls:
        try:
            call()
        except GpuPlannersError:
            continue  # any other exception is a fault
