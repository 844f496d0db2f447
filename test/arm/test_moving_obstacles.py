"""Obstacles that move: their sweeps against points, and timed motions against coal, which moves them."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots_at_hand import READY, maker_of
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld, rrt_connect
from gpu_planners.arm.control.moving import MovingObstacle, after_waiting, first_contact, solve, world_during
from gpu_planners.arm.control.spline import Spline
from gpu_planners.arm.geometry.bricks import Bricks
from gpu_planners.arm.geometry.shapes import BOX_CORNERS, ConvexShape, ShapeKind
from gpu_planners.arm.geometry.sweeps import swept
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import ObstacleError, SettingsError

STEP_S = 0.02
QUICK = rrt_connect.Settings(time_limit_s=10.0)


def at(x, y=0.0, z=0.0, R=None):
    T = np.eye(4)
    T[:3, 3] = x, y, z
    if R is not None:
        T[:3, :3] = R
    return T


def shape_of(kind, rng):
    T = at(*rng.uniform(-1, 1, 3), R=Rotation.random(random_state=int(rng.integers(1 << 30))).as_matrix())
    a, b, c = rng.uniform(0.05, 0.6, 3)
    if kind == "box":
        return ConvexShape.box("it", [a, b, c], T)
    if kind == "sphere":
        return ConvexShape.sphere("it", a, T)
    if kind == "cylinder":
        return ConvexShape.cylinder("it", a, b, T)
    if kind == "bricks":
        return Bricks.of_voxels("it", rng.integers(0, 3, (6, 3)), 0.1, T)
    return ConvexShape.convex_hull("it", rng.normal(size=(12, 3)) * 0.3, T)


def surface(shape, rng):
    """(N, 3) points of a shape's surface in the frame of its pose, the outermost ones among them."""
    if isinstance(shape, Bricks):
        return np.concatenate([surface(each, rng) for each in shape.shapes])
    if shape.kind == ShapeKind.POLYTOPE:
        local = shape.vertices
    elif shape.kind == ShapeKind.BOX:
        local = shape.half_extents * BOX_CORNERS
    elif shape.kind == ShapeKind.SPHERE:
        ways = rng.normal(size=(200, 3))
        local = shape.half_extents[0] * ways / np.linalg.norm(ways, axis=1, keepdims=True)
    else:
        turn = rng.uniform(0, 2 * np.pi, 200)
        radius, half = shape.half_extents[[0, 2]]
        local = np.column_stack([radius * np.cos(turn), radius * np.sin(turn), half * rng.choice([-1, 1], 200)])
    return local @ shape.pose[:3, :3].T + shape.pose[:3, 3]


def depth(pieces, points):
    """(N,) metres by which points lie outside all pieces, at most 0 where one holds them."""
    outside = np.full(len(points), np.inf)
    for piece in pieces:
        local = (points - piece.pose[:3, 3]) @ piece.pose[:3, :3]
        h = piece.half_extents
        if piece.kind == ShapeKind.SPHERE:
            off = np.linalg.norm(local, axis=1) - h[0]
        elif piece.kind == ShapeKind.CYLINDER:
            off = np.maximum(np.hypot(*local[:, :2].T) - h[0], np.abs(local[:, 2]) - h[2])
        elif piece.kind == ShapeKind.BOX:
            off = (np.abs(local) - h).max(axis=1)
        else:
            planes = ConvexHull(piece.vertices).equations
            off = (local @ planes[:, :3].T + planes[:, 3]).max(axis=1)
        outside = np.minimum(outside, off)
    return outside


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(["box", "sphere", "cylinder", "polytope", "bricks"]),
    st.integers(0, 10_000),
    st.sampled_from(["any", "x", "z", "xy", "none"]),
)
def test_a_sweep_holds_the_shape_on_all_of_its_way_and_no_more(kind, seed, way):
    rng = np.random.default_rng(seed)
    shape = shape_of(kind, rng)
    local = rng.normal(size=3) * {"any": [1, 1, 1], "x": [1, 0, 0], "z": [0, 0, 1], "xy": [1, 1, 0], "none": 0}[way]
    displacement = shape.pose[:3, :3] @ local
    pieces = swept(shape, displacement)
    pieces = [part for each in pieces for part in (each.shapes if isinstance(each, Bricks) else [each])]
    points = surface(shape, rng)
    for share in np.linspace(0.0, 1.0, 11):
        assert depth(pieces, points + share * displacement).max() < 1e-9
    assert all(part.name.startswith("it") for part in pieces)
    if kind == "bricks":
        return
    allowed = 0.006 * shape.half_extents[0] if kind == "cylinder" else 1e-9
    hull = [surface(part, rng) for part in pieces]
    for u in rng.normal(size=(20, 3)):  # the hull of both ends reaches as far in every direction
        u /= np.linalg.norm(u)
        reach = max((points @ u).max(), (points @ u).max() + displacement @ u)
        sampled = 0.1 if kind in ("sphere", "cylinder") else 0.0  # of the curved surfaces
        assert max((each @ u).max() for each in hull) <= reach + allowed + sampled * shape.half_extents[0]


def timed_by(checker, share=0.6):
    robot = checker.robot
    return lambda path: time_parameterize(
        path, share * robot.velocity, share * robot.acceleration, deviation=0.1, checker=checker
    )


def meets(rig, trajectory, size, T, velocity, begin=0.0):
    """Does the robot meet a box that moves, at times STEP_S apart? By coal."""
    for t in np.arange(0.0, trajectory.duration + STEP_S, STEP_S):
        pose = T.copy()
        pose[:3, 3] += np.asarray(velocity) * (begin + t)
        scene = rig.coal_scene([{"name": "cart", "type": "box", "size": list(size), "pose": pose}])
        if scene.in_collision(trajectory.at([t])[0][0]):
            return True
    return False


@pytest.mark.parametrize("robot", ["panda", "ur5"])
def test_what_is_called_free_of_a_moving_box_is_so_by_coal(robot):
    rig = maker_of(robot).rig
    model = rig.model
    checker = CollisionChecker(model, CollisionWorld(), "cpu")
    rng, free, met = np.random.default_rng(3), 0, 0
    low, high = np.maximum(model.lower, -2.5), np.minimum(model.upper, 2.5)
    while free + met < 8:
        ends = rng.uniform(low, high, (2, model.dof))
        if not checker.motions_valid(ends[:1], ends[1:]).all():
            continue
        motion = timed_by(checker)(ends)
        size, velocity = rng.uniform(0.1, 0.4, 3), rng.uniform(-0.6, 0.6, 3)
        middle = rng.uniform([-0.7, -0.7, 0.1], [0.7, 0.7, 0.9])  # where it is somewhere during the motion
        T = at(*(middle - velocity * rng.uniform(0, motion.duration)), R=Rotation.random(random_state=free).as_matrix())
        cart = MovingObstacle("cart", (ConvexShape.box("cart", size, T),), velocity, horizon=100.0)
        told = first_contact(checker, Spline.of(motion), [cart])
        hit = meets(rig, motion, size, T, velocity)
        assert not (hit and not told), (ends, size, T, velocity)
        if told and not hit:  # nearly: a box a little larger is met
            assert meets(rig, motion, size + 0.03, T, velocity), told
        assert ("cart" in told and "after" in told) or not told or "not proven" in told
        free, met = free + (not told), met + bool(told)
    assert free and met


@pytest.fixture(scope="module")
def crossing():
    """The Panda turns its first joint by 1.5 rad; (rig, checker, goal, where its hand is half-way)"""
    rig = maker_of("panda").rig
    q, goal = READY.copy(), READY.copy()
    q[0], goal[0] = 0.75, 1.5
    middle = rig.model.link_poses(q)["panda_hand_tcp"][0][:3, 3]
    return rig, CollisionChecker(rig.model, CollisionWorld(), "cpu"), goal, middle


@pytest.mark.parametrize("speed", [0.15, 0.6])
def test_a_cart_that_crosses_the_way_is_avoided_in_time(crossing, speed):
    """It comes from afar, radially, and goes out again the way that it faces: wherever it is, coal finds no contact."""
    rig, checker, goal, middle = crossing
    out = np.array([*middle[:2], 0.0]) / np.linalg.norm(middle[:2])
    size, T = (0.15, 0.15, 0.3), at(*(middle + out * 0.05))
    for velocity in (out * speed, np.array([-out[1], out[0], 0.0]) * speed):
        cart = MovingObstacle("cart", (ConvexShape.box("cart", size, T),), velocity, horizon=20.0)
        found = solve(READY, goal, checker, [cart], timed_by(checker), QUICK, slack=0.1)
        assert found.trajectory is not None, found.message
        assert checker.world.names == ()
        for late in (-0.1, 0.0, 0.1):
            assert not meets(rig, found.trajectory, size, T, velocity, late)
        assert np.allclose(found.trajectory.positions[-1], goal)


def test_it_waits_until_the_cart_has_gone(crossing):
    """A wall that leaves the way: there is no other one, at once."""
    rig, checker, goal, middle = crossing
    out = middle[:2] / np.linalg.norm(middle[:2])
    turned = Rotation.from_euler("z", np.arctan2(out[1], out[0])).as_matrix()
    size, T = (1.6, 0.1, 3.0), at(*out * 1.1, 0.5, R=turned)
    velocity = np.array([*out, 0.0]) * 0.5
    cart = MovingObstacle("wall", (ConvexShape.box("wall", size, T),), velocity, horizon=20.0)
    stands = MovingObstacle("wall", cart.pieces, np.zeros(3))
    curve = Spline.of(timed_by(checker)(np.array([READY, goal])))
    assert "'wall'" in first_contact(checker, curve, [stands])
    found = solve(READY, goal, checker, [cart], timed_by(checker, 1.0), rrt_connect.Settings(time_limit_s=2.0))
    assert found.trajectory is not None, found.message
    assert not meets(rig, found.trajectory, size, T, velocity)


def test_what_cannot_be_done_in_time_is_refused_in_words(crossing):
    _, checker, goal, middle = crossing
    T = at(*(middle + np.array([0.0, 0.0, 1.0])))  # it comes down and stays
    cart = MovingObstacle("press", (ConvexShape.box("press", (3.0, 3.0, 0.2), T),), (0.0, 0.0, -2.0), horizon=0.6)
    found = solve(READY, goal, checker, [cart], timed_by(checker, 0.2), rrt_connect.Settings(time_limit_s=1.0))
    assert found.trajectory is None
    assert "no motion is proven free of what moves" in found.message and "'press'" in found.message


def test_proofs_end_with_the_time_limit(crossing):
    """Times along the path take all of it: a motion that nobody proves free is none."""
    _, checker, goal, _ = crossing
    far = MovingObstacle("far", (ConvexShape.box("far", [0.2] * 3, at(5.0)),), (0.1, 0.0, 0.0))
    timed = timed_by(checker)
    found = solve(
        READY, goal, checker, [far], lambda path: time.sleep(1.0) or timed(path), rrt_connect.Settings(time_limit_s=0.9)
    )
    assert found.result.solved and found.trajectory is None
    assert "there was no time to prove it free of what moves" in found.message


def test_before_and_after(crossing):
    """It stands where it has got to when the horizon is over."""
    _, checker, goal, middle = crossing
    cart = MovingObstacle("cart", (ConvexShape.box("cart", [0.2] * 3, at(*middle)),), (0.0, 0.0, 1.0), 5.0, 2.0)
    (before,), (after,) = (world_during([cart], t, t).shapes for t in (4.0, 100.0))
    assert np.allclose(before.pose[:3, 3], middle - [0, 0, 1]) and np.allclose(after.pose[:3, 3], middle + [0, 0, 2])
    curve = Spline.of(timed_by(checker)(np.array([READY, goal])))
    assert "'cart'" in first_contact(checker, curve, [cart], begin=5.0 - curve.end / 2)
    assert first_contact(checker, curve, [cart], begin=100.0) == ""
    assert first_contact(checker, curve, []) == ""


def test_a_curve_without_accelerations_is_judged_for_all_times(crossing):
    _, checker, goal, middle = crossing
    motion = timed_by(checker)(np.array([READY, goal]))
    cart = MovingObstacle("cart", (ConvexShape.box("cart", [0.2] * 3, at(*middle)),), (0, 0, 1.0), horizon=8.0)
    early = -5.0  # five seconds before it is half-way
    assert first_contact(checker, Spline.of(motion), [cart], begin=early) == ""
    assert "'cart'" in first_contact(checker, Spline(motion.times, motion.positions), [cart], begin=early)


def test_errors_name_what_is_wrong(crossing):
    pieces = (ConvexShape.sphere("ball", 0.1, np.eye(4)),)
    for wrong in ((0, 0), (np.nan, 0, 0), "fast", (1e300, 0, 0)):
        with pytest.raises(ObstacleError, match="'ball'"):
            MovingObstacle("ball", pieces, wrong)
    for since, horizon in ((np.inf, 1.0), (0.0, -1.0), (0.0, np.inf)):
        with pytest.raises(ObstacleError, match="'ball'.*horizon"):
            MovingObstacle("ball", pieces, (0, 0, 1), since, horizon)
    _, checker, goal, _ = crossing
    with pytest.raises(SettingsError, match="wait"):
        after_waiting(timed_by(checker)(np.array([READY, goal])), 0.0)
