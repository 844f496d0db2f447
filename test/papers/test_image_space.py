"""The configuration space read from an image: every pixel that a motion touches, by an independent float64 test."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plane_oracle import blocked_boxes, segments_meet_boxes

from gpu_planners.device import cuda_problem
from gpu_planners.errors import ObstacleError, RobotDescriptionError
from gpu_planners.papers.dl14.image import ImageChecker, PointRobot

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem())]),
]
MARGIN = 4e-3  # pixels: nearer to a blocked one, a motion may be refused


def agree(checker, qa, qb):
    """Are the motions' answers right wherever they stay MARGIN away from blocked pixels or really touch one?"""
    free = checker.motions_valid(qa, qb)
    boxes = blocked_boxes(checker.image, checker.robot.lower, checker.robot.upper)
    pixel = ((checker.robot.upper - checker.robot.lower) / checker.image.shape[::-1]).max()
    touches = segments_meet_boxes(qa, qb, boxes, -1e-5 * pixel).any(axis=1)
    near = segments_meet_boxes(qa, qb, boxes, MARGIN * pixel).any(axis=1)
    assert not free[touches].any()
    assert free[~near].all()
    return free


@pytest.mark.parametrize("device", DEVICES)
def test_motions_on_a_large_image(device):
    rng = np.random.default_rng(0)
    image = rng.random((150, 90)) > 0.02
    checker = ImageChecker(image, (-1.0, 2.0), (3.0, 7.0), device)
    qa = rng.uniform([-1, 2], [3, 7], (3000, 2)).astype(np.float32)
    qb = np.clip(qa + rng.normal(0, 0.4, qa.shape), [-1, 2], [3, 7]).astype(np.float32)
    qb[:300, 0], qb[300:600, 1] = qa[:300, 0], qa[300:600, 1]  # upright and level ones
    assert 0.1 < agree(checker, qa, qb).mean() < 0.9
    assert np.array_equal(checker.motions_valid(qa, qb), checker.motions_valid(qb, qa))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 70), st.integers(1, 9), st.sampled_from([0.0, 0.1, 0.5]))
def test_any_image(seed, columns, rows, blocked):
    rng = np.random.default_rng(seed)
    checker = ImageChecker(rng.random((rows, columns)) >= blocked, device="cpu")
    ends = rng.uniform(0, [columns, rows], (2, 60, 2)).astype(np.float32)
    ends[:, :20] = np.round(ends[:, :20])  # corners of pixels
    agree(checker, *ends)


def test_nothing_is_free_outside():
    checker = ImageChecker(np.ones((3, 5), dtype=bool), device="cpu")
    corners = np.array([[0, 0], [5, 0], [0, 3], [5, 3]], dtype=float)
    assert checker.configurations_valid(corners).all()
    assert not checker.configurations_valid((corners - [2.5, 1.5]) * 1.01 + [2.5, 1.5]).any()
    assert not checker.motions_valid(np.full((1, 2), 1.0), np.array([[7.0, 1.0]]))[0]


def test_row_0_is_the_top():
    image = np.ones((3, 5), dtype=bool)
    image[0, 4] = False
    checker = ImageChecker(image, device="cpu")
    assert not checker.configurations_valid([[4.5, 2.5]])[0]
    assert checker.configurations_valid([[4.5, 0.5], [0.5, 2.5]]).all()
    assert (
        checker.colliding_pairs([4.5, 2.5]) == [("point", "pixel (0, 4)")] and checker.colliding_pairs([0.5, 0.5]) == []
    )


def test_images_of_any_kind(tmp_path):
    image = np.random.default_rng(3).random((20, 31)) > 0.5
    kinds = [image, image.astype(np.uint8) * 255, image.astype(np.float32), np.where(image, 129, 127).astype(np.uint8)]
    pillow = pytest.importorskip("PIL.Image")
    pillow.fromarray(kinds[1]).save(tmp_path / "map.png")
    for given_image in (*kinds, tmp_path / "map.png"):
        assert np.array_equal(ImageChecker(given_image, device="cpu").image, image)


def test_a_changed_image_is_seen():
    checker = ImageChecker(np.ones((4, 4), dtype=bool), device="cpu")
    before, q = checker.version, np.array([[2.5, 2.5]])
    assert checker.configurations_valid(q)[0]
    checker.set_image(np.zeros((4, 4), dtype=bool))
    assert checker.version != before and not checker.configurations_valid(q)[0]


def test_bad_images_and_bounds_are_refused():
    for image in (np.ones((2, 2, 3), dtype=bool), np.ones((0, 4), dtype=bool)):
        with pytest.raises(ObstacleError, match=r"\(rows, columns\)"):
            ImageChecker(image, device="cpu")
    with pytest.raises(RobotDescriptionError, match="lower"):
        PointRobot((0.0, 1.0), (1.0, 1.0))
    with pytest.raises(RobotDescriptionError, match="upper"):
        PointRobot((0.0, 1.0), (1.0, np.inf))
