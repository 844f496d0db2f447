"""Pairs of shapes at which other libraries were reported to answer wrongly, or not at all. The inputs are our own."""

import itertools

import numpy as np
import pytest
from bodies import among, body, box, pose
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionWorld
from gpu_planners.errors import ConfigurationError

SKIN = 1e-4  # metres: nearer pairs may count as meeting


def test_cubes_that_penetrate_deeply_are_never_apart():
    """MattiaMontanari/openGJK #13: of 10,000 pairs of cubes that penetrate two were reported centimetres apart."""
    checker, rng = (
        among(body(box(1, 1, 1)), cube=("box", [1.0, 1.0, 1.0], pose((0.1, 0.2, 0.3), (0.4, 1.0, -0.7)))),
        (np.random.default_rng(0)),
    )
    inside = rng.uniform(-0.5, 0.5, (20_000, 3)) @ pose(turned=(0.4, 1.0, -0.7))[:3, :3].T + [0.1, 0.2, 0.3]
    turned = rng.uniform(-np.pi, np.pi, (20_000, 3))
    assert not checker.configurations_valid(np.hstack([inside, turned])).any()
    away = rng.normal(size=(20_000, 3))
    away *= rng.uniform(1.733, 2.0, (20_000, 1)) / np.linalg.norm(away, axis=1)[:, None]  # balls around both are apart
    assert checker.configurations_valid(np.hstack([away + [0.1, 0.2, 0.3], turned])).all()


def test_points_about_a_polytope_with_many_equal_faces():
    """MattiaMontanari/openGJK #54: a point inside a polytope cut from a cube, called outside."""
    corners = np.array(
        [p for p in itertools.product((-0.41, -0.17, 0.17, 0.41), repeat=3) if sorted(np.abs(p))[0] == 0.17]
    )
    corners = corners[np.abs(corners).sum(axis=1) == 0.41 + 0.41 + 0.17]
    checker = among(body(box(1e-3, 1e-3, 1e-3)), cut=("convex", corners, np.eye(4)))
    points = np.random.default_rng(1).uniform(-0.5, 0.5, (20_000, 3))
    faces = ConvexHull(corners).equations
    beyond = (points @ faces[:, :3].T + faces[:, 3]).max(axis=1)  # a lower bound of the distance
    free = checker.configurations_valid(np.hstack([points, np.zeros_like(points)]))
    assert not free[beyond < 0].any() and (beyond < 0).sum() > 3000
    assert free[beyond > 1e-3 + SKIN].all() and free.sum() > 3000


@pytest.mark.parametrize("gap", [-3e-3, 3e-3])
def test_boxes_ninety_kilometres_from_the_origin(gap):
    """MattiaMontanari/openGJK #52: single precision at coordinates of 90,000 called boxes that overlap 3 mm apart."""
    at = np.array([90_945.0, 54_122.0, 0.0])
    turned = (0.0, 0.0, 0.3)
    ahead = pose(turned=turned)[:3, 0]
    checker = among(
        body(box(0.4, 0.4, 0.3), at), other=("box", [0.4, 0.4, 0.3], pose(at + (0.4 + gap) * ahead, turned))
    )
    assert checker.configurations_valid([[0.0, 0.0, 0.0, *turned]])[0] == (gap > 0)


def test_boxes_whose_faces_are_nearly_parallel():
    """coal-library/coal #604: with a coarse tolerance the distance of two boxes that are nearly parallel is far off."""
    coal = pytest.importorskip("coal")
    rng, half = np.random.default_rng(2), np.array([0.18, 0.14, 0.18])
    checker = among(body(box(*(2 * half))), other=("box", 2 * half, np.eye(4)))
    for exponent in range(2, 8):
        turned = rng.normal(size=(40, 3)) * 10.0**-exponent
        gaps = 10 ** rng.uniform(-3, -1.3, 40)
        places, axes = np.zeros((40, 3)), rng.integers(0, 3, 40)
        places[np.arange(40), axes] = 2 * half[axes] + gaps
        q = np.hstack([places, turned])
        ours = checker.clearances(q, up_to=0.2)
        for k in range(40):
            T = pose(places[k], turned[k])
            request, result = coal.DistanceRequest(), coal.DistanceResult()
            a = coal.Transform3s(T[:3, :3], T[:3, 3])
            true = coal.distance(coal.Box(*(2 * half)), a, coal.Box(*(2 * half)), coal.Transform3s(), request, result)
            assert (0.8 * true - SKIN <= ours[k] <= true + 1e-6) if ours[k] > 0 else true < SKIN


def test_a_cylinder_that_almost_touches_a_box():
    """coal-library/coal #37, flexible-collision-library/fcl #366: near contact the search reaches its last iteration,
    and the answer is whichever the caller takes that for."""
    checker = among(body("<cylinder radius='0.05' length='0.6'/>"), box=("box", [1.0, 1.0, 1.0], np.eye(4)))
    rng, gaps = np.random.default_rng(3), np.concatenate([[0.0], *[[g, -g] for g in 10.0 ** np.arange(-9, -1)]])
    for gap in gaps:
        y, z = rng.uniform(-0.4, 0.4, (2, 50))
        lies = rng.uniform(-np.pi, np.pi, 50)  # the axis lies along the face x = 0.5, turned about x
        q = np.column_stack([np.full(50, 0.55 + gap), y, z, lies, np.zeros(50), np.zeros(50)])
        free = checker.configurations_valid(q)
        assert not free.any() if gap <= 0 else free.all() or gap < SKIN, gap


@pytest.mark.parametrize("gap", [0.0, 1e-16, -1e-16, 1e-12, -1e-12, 1e-8, -1e-8, 1e-3, -1e-3])
def test_boxes_that_kiss(gap):
    """flexible-collision-library/fcl #493, #495 and RobotLocomotion/drake #18704: boxes in touch, turned so that
    rounding decides, raise an exception about a polytope without the origin."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        turned = rng.uniform(-np.pi, np.pi, 3)
        for axis in range(3):
            place = (0.25 + gap) * pose(turned=turned)[:3, axis]
            checker = among(body(box(0.25, 0.25, 0.25)), other=("box", [0.25] * 3, pose(place, turned)))
            assert checker.configurations_valid([[0, 0, 0, *turned]])[0] == (gap > SKIN)


def test_hulls_that_a_plane_keeps_apart():
    """google-deepmind/mujoco #3383: convex meshes that are clearly apart have the distance 0."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        hull, mine = (rng.normal(size=(rng.integers(8, 60), 3)) * rng.uniform(0.05, 0.4, 3) for _ in range(2))
        normal = rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        half = np.abs(mine).max(axis=0)
        turned = rng.uniform(-np.pi, np.pi, (50, 3))
        below = np.abs(np.einsum("nij,i->nj", Rotation.from_euler("XYZ", turned).as_matrix(), normal)) @ half
        gaps = rng.uniform(0.05, 0.5, 50)
        sideways = rng.normal(size=(50, 3)) * 0.2
        sideways -= np.outer(sideways @ normal, normal)
        places = np.outer((hull @ normal).max() + below + gaps, normal) + sideways
        checker = among(body(box(*(2 * half))), hull=("convex", hull, np.eye(4)))
        q = np.hstack([places, turned])
        assert checker.configurations_valid(q).all()
        assert (checker.clearances(q, up_to=0.05) > 0.8 * 0.05 - SKIN).all()


def test_hulls_with_many_vertices_in_one_plane():
    """RobotLocomotion/drake #21673: the distance of convex meshes raises an exception, which ends an optimisation."""
    rng, half = np.random.default_rng(6), np.array([0.2, 0.15, 0.1])
    points = rng.uniform(-1, 1, (240, 3))
    points[np.arange(240), np.arange(240) % 3] = rng.choice([-1.0, 1.0], 240)  # on the faces of a box
    points = np.vstack([points, list(itertools.product((-1, 1), repeat=3))]) * half
    points += rng.normal(size=points.shape) * 1e-10
    robot = body(box(0.3, 0.2, 0.1))
    hull, plain = among(robot, other=("convex", points, np.eye(4))), among(robot, other=("box", 2 * half, np.eye(4)))
    q = np.hstack([rng.uniform(-0.35, 0.35, (4000, 3)), rng.uniform(-np.pi, np.pi, (4000, 3))])
    ours, true = hull.configurations_valid(q), plain.configurations_valid(q)
    assert 300 < true.sum() < 3700
    near = plain.clearances(q, up_to=0.05) < 1e-3
    assert (ours == true)[~(near & true)].all()
    assert (hull.clearances(q[ours], up_to=0.05) > 0.0).all()


def test_what_is_not_a_number_is_named():
    """flexible-collision-library/fcl #387: a transform with NaN gives contacts at NaN."""
    checker = among(body(box(0.1, 0.1, 0.1)), other=("box", [0.1] * 3, np.eye(4)))
    q = np.zeros((3, 6))
    q[1, 4] = np.nan
    with pytest.raises(ConfigurationError, match=r"q.*1.*j4"):
        checker.configurations_valid(q)


def test_an_answer_does_not_outlive_its_question():
    """BerkeleyAutomation/python-fcl #25, flexible-collision-library/fcl #117: a result that is used again still says
    that the pair collides."""
    checker = among(body(box(0.1, 0.1, 0.1)), other=("box", [0.1] * 3, np.eye(4)))
    near, far = np.zeros((1, 6)), np.array([[1.0, 0, 0, 0, 0, 0]])
    for _ in range(3):
        assert not checker.configurations_valid(near)[0] and checker.configurations_valid(far)[0]
        assert not checker.motions_valid(near, far)[0] and checker.motions_valid(far, far)[0]
    checker.world = CollisionWorld()
    assert checker.configurations_valid(near)[0]
