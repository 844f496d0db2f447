"""The planar arm: links against rectangles by an independent float64 test, motions against dense looks, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plane_oracle import along, arm_meets_boxes

from gpu_planners.arm import MotionCheck
from gpu_planners.device import cuda_problem
from gpu_planners.errors import ObstacleError, RobotDescriptionError, SettingsError
from gpu_planners.papers.bkf11.planar import PlanarArm, PlanarChecker, equal_links, nine_link_scene

EPS = 2e-6  # metres: nearer to contact, float32 and float64 may differ
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem())]),
]


def agree(free, lengths, q, boxes):
    """Is `free` (N,) right wherever the arm is farther than EPS from contact? -> how many were compared."""
    surely_meets, maybe_meets = arm_meets_boxes(lengths, q, boxes, -EPS), arm_meets_boxes(lengths, q, boxes, EPS)
    assert not free[surely_meets].any()
    assert free[~maybe_meets].all()
    return (surely_meets | ~maybe_meets).sum()


@pytest.mark.parametrize("device", DEVICES)
def test_configurations_of_the_nine_link_scene(device):
    arm, boxes, start, goal = nine_link_scene()
    checker = PlanarChecker(arm, boxes, device)
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (20_000, 9))
    free = checker.configurations_valid(q)
    assert agree(free, arm.lengths, q.astype(np.float32), boxes) > 19_900
    assert 0.1 < free.mean() < 0.95
    assert checker.configurations_valid(np.stack([start, goal])).all()
    assert not checker.motions_valid(start[None], goal[None])[0]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(0, 6))
def test_any_arm_among_any_rectangles(seed, dof, count):
    rng = np.random.default_rng(seed)
    arm = PlanarArm(rng.uniform(0.05, 0.5, dof))
    corner = rng.uniform(-1, 1, (count, 2))
    boxes = np.concatenate([corner, corner + rng.choice([0.0, 0.1, 0.6], (count, 2))], axis=1).astype(np.float32)
    q = rng.uniform(-np.pi, np.pi, (50, dof)).astype(np.float32)
    q[:10] = np.round(q[:10] / (np.pi / 4)) * np.float32(np.pi / 4)  # links along the axes and diagonals
    agree(PlanarChecker(arm, boxes, "cpu").configurations_valid(q), arm.lengths.astype(np.float32), q, boxes)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "motion",
    [MotionCheck("count", 100), MotionCheck("count", 7), MotionCheck("joint", 0.05), MotionCheck("workspace", 0.02)],
    ids=lambda m: f"{m.mode}-{m.step:g}",
)
def test_motions_are_checked_at_equal_parts(device, motion):
    arm, boxes, *_ = nine_link_scene()
    rng = np.random.default_rng(1)
    qa = rng.uniform(-np.pi, np.pi, (400, 9))
    qb = np.clip(qa + rng.normal(0, 0.2, qa.shape), -np.pi, np.pi)
    qa, qb = qa.astype(np.float32), qb.astype(np.float32)
    free = PlanarChecker(arm, boxes, device, motion).motions_valid(qa, qb)
    beyond = np.cumsum(arm.lengths[::-1])[::-1]  # how much of the arm lies beyond each joint
    for a, b, is_free in zip(qa.astype(np.float64), qb.astype(np.float64), free):
        size = {"count": 1, "joint": np.linalg.norm(b - a), "workspace": beyond @ np.abs(b - a)}[motion.mode]
        parts = int(motion.step) if motion.mode == "count" else int(np.ceil(size / motion.step))
        points = along(a, b, parts)
        if arm_meets_boxes(arm.lengths, points, boxes, -EPS).any():
            assert not is_free
        elif not arm_meets_boxes(arm.lengths, points, boxes, EPS).any():
            assert is_free
    assert 0.1 < free.mean() < 0.95


def test_workspace_steps_bound_the_travel():
    """Between two looks no point of the arm moves farther than the step."""
    arm = equal_links(4)
    rng = np.random.default_rng(2)
    for a, b in zip(rng.uniform(-3, 3, (50, 4)), rng.uniform(-3, 3, (50, 4))):
        beyond = np.cumsum(arm.lengths[::-1])[::-1]
        parts = int(np.ceil(beyond @ np.abs(b - a) / 0.01))
        ends = arm.points(along(a, b, parts))
        assert np.linalg.norm(np.diff(ends, axis=0), axis=2).max() <= 0.01 + 1e-12


def test_points_of_the_arm():
    points = PlanarArm([1.0, 2.0], base=(0.5, -1.0)).points([[np.pi / 2, -np.pi / 2]])
    np.testing.assert_allclose(points, [[[0.5, -1.0], [0.5, 0.0], [2.5, 0.0]]], atol=1e-12)


def test_the_base_moves_the_arm():
    boxes = [[0.9, -0.1, 1.1, 0.1]]
    q = np.zeros((1, 2))
    assert not PlanarChecker(equal_links(2), boxes, "cpu").configurations_valid(q)[0]
    assert PlanarChecker(equal_links(2, base=(0.0, 0.2)), boxes, "cpu").configurations_valid(q)[0]


def test_pairs_and_changed_obstacles():
    checker = PlanarChecker(equal_links(2), [[2.0, 2.0, 3.0, 3.0], [0.7, -0.1, 0.8, 0.1]], "cpu")
    before = checker.version
    assert checker.colliding_pairs(np.zeros(2)) == [("link_2", "obstacle_2")]
    checker.set_obstacles([])
    assert checker.version != before and checker.configurations_valid(np.zeros((1, 2)))[0]
    assert checker.colliding_pairs(np.zeros(2)) == []


@pytest.mark.parametrize("obstacles", [[1.0, 2.0, 3.0], [[1, 0, 0, 1]], [[0, 0, np.nan, 1]]])
def test_bad_rectangles_are_refused(obstacles):
    with pytest.raises(ObstacleError, match="xmin, ymin, xmax, ymax"):
        PlanarChecker(equal_links(2), obstacles, "cpu")


def test_bad_arms_and_modes_are_refused():
    for lengths in ([1.0, 0.0], [], [[1.0]], [np.inf]):
        with pytest.raises(RobotDescriptionError, match="lengths"):
            PlanarArm(lengths)
    with pytest.raises(RobotDescriptionError, match="base"):
        PlanarArm([1.0], base=(0.0,))
    with pytest.raises(SettingsError, match="count, joint, workspace"):
        PlanarChecker(equal_links(2), [], "cpu", MotionCheck())
    with pytest.raises(ValueError, match=r"\(N, 2\)"):
        PlanarChecker(equal_links(2), [], "cpu").configurations_valid(np.zeros((1, 3)))
