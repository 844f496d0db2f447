"""A point that must go around a wall: a planning problem whose shortest path is known in closed form."""

import math

import numpy as np
import pytest
from plane_oracle import segments_meet_boxes

from gpu_planners.device import cuda_problem
from gpu_planners.papers.dl14.image import ImageChecker

START, GOAL = np.array([0.1, 0.5]), np.array([0.9, 0.5])
WALL = np.array([[0.4, 0.2, 0.6, 0.8]])
OPTIMUM = 2 * math.hypot(0.3, 0.3) + 0.2  # around two corners of the wall
PLAIN = {"shortcut_rounds": 0, "time_limit_s": 60.0}
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem())]),
]


def walled(device="cpu", upper=(1.0, 1.0)):
    """The checker: an image of 100 x 100 pixels."""
    image = np.ones((100, 100), dtype=bool)
    image[20:80, 40:60] = False
    return ImageChecker(image, (0.0, 0.0), upper, device)


def free_by_oracle(a, b):
    """(N, 2), (N, 2) -> (N,) bool: which motions stay clear of the wall."""
    return ~segments_meet_boxes(a, b, WALL).any(axis=1)
