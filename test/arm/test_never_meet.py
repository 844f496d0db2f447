"""Pairs of links that are left out without an SRDF: proven never to meet, or told. Oracles: pinocchio places the links,
coal measures their distances, and a search looks for the least."""

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_urdf import random_urdf

from benchmarks.problems import missing_data, robot_files
from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.arm.geometry.gaps import Supports, gaps
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.arm.urdf.self_collision import ALWAYS, NEVER

pytest.importorskip("pinocchio", reason="pinocchio (pip install pin) is the kinematics oracle")
coal = pytest.importorskip("coal", reason="coal (pip install coal) is the distance oracle")
from gpu_planners.verify import CoalScene  # noqa: E402
from gpu_planners.verify.shapes import hull  # noqa: E402

needs_data = pytest.mark.skipif(missing_data() is not None, reason=str(missing_data()))


def left_out(robot, reason):
    return [(a, b) for a, b, why in robot.disabled_pairs if why == reason]


def checked(robot):
    return {frozenset(robot.link_names[robot.shape_link[s]] for s in pair) for pair in robot.self_collision_pairs}


def chain(*parts):
    """A robot of links l0, l1, ... , each given by (its geometry, the joint that carries the next one)."""
    text = '<robot name="chain">'
    for i, (geometry, joint) in enumerate(parts):
        text += f'<link name="l{i}">{geometry and f"<collision>{geometry}</collision>"}</link>'
        if joint:
            text += joint.format(name=f"j{i}", links=f'<parent link="l{i}"/><child link="l{i + 1}"/>')
    return text + "</robot>"


def turning(lower, upper, xyz="0 0 0", axis="0 0 1", kind="revolute", more=""):
    limit = f'<limit lower="{lower}" upper="{upper}" velocity="1" effort="1"/>'
    return (
        f'<joint name="{{name}}" type="{kind}">{{links}}<origin xyz="{xyz}"/><axis xyz="{axis}"/>{limit}{more}</joint>'
    )


def box(size, xyz="0 0 0"):
    return f'<origin xyz="{xyz}"/><geometry><box size="{size}"/></geometry>'


ARM = 6  # joints of each arm
RADIUS = 0.015  # metres, of the sphere on an arm's tip


def two_arms():
    """Two arms of six joints, 0.6 m apart, each a chain of rods with a small sphere on its tip that turns, too."""
    text = '<robot name="two"><link name="base"/>'
    for side, y in (("l", 0.3), ("r", -0.3)):
        text += f'<link name="{side}0"/><joint name="{side}m" type="fixed"><origin xyz="0 {y} 0"/>'
        text += f'<parent link="base"/><child link="{side}0"/></joint>'
        for i, axis in enumerate(("0 0 1", "0 1 0", "0 1 0", "0 0 1", "0 1 0", "1 0 0"), 1):
            z = 0.1 if i == 1 else 0.2
            rod = '<origin xyz="0 0 0.1"/><geometry><cylinder radius="0.02" length="0.14"/></geometry>'
            shape = rod if i < ARM else f'<geometry><sphere radius="{RADIUS}"/></geometry>'
            text += f'<link name="{side}{i}"><collision>{shape}</collision></link>'
            text += turning(-2.6, 2.6, f"0 0 {z}", axis).format(
                name=f"{side}j{i}", links=f'<parent link="{side}{i - 1}"/><child link="{side}{i}"/>'
            )
    return text + "</robot>"


def test_every_contact_of_two_arms_tips_that_is_constructed_is_found():
    """The right tip is led to the left one by least squares on pinocchio's poses."""
    from scipy.optimize import least_squares

    text = two_arms()
    robot, scene = load_urdf(text), CoalScene(text, self_pairs=[("l6", "r6")])
    checker, tips = (
        CollisionChecker(robot, CollisionWorld(), "cpu"),
        [scene.geometry.getGeometryId(f"{s}6_0") for s in "lr"],
    )
    rng, right = np.random.default_rng(0), [robot.joint_names.index(f"rj{i}") for i in range(1, ARM + 1)]

    def apart(values, q, wanted):
        q[right] = values
        poses = scene.placed(q)
        return poses[tips[1]].translation - poses[tips[0]].translation - wanted

    found = []
    while len(found) < 30:
        q, way = rng.uniform(robot.lower, robot.upper), rng.normal(size=3)
        wanted = way / np.linalg.norm(way) * 2 * RADIUS * rng.uniform(0.2, 0.95)
        ends = np.array([robot.lower[right], robot.upper[right]])
        answer = least_squares(apart, rng.uniform(*ends), bounds=ends, args=(q, wanted), max_nfev=60)
        if answer.cost < 1e-9:
            q[right] = answer.x
            assert -2 * RADIUS < scene.distance(q) < -1e-3
            found.append(q.copy())
    assert not checker.configurations_valid(np.array(found)).any()
    assert ALWAYS not in [why for *_, why in robot.disabled_pairs]


@needs_data
def test_baxters_finger_tips_are_checked():
    robot = load_urdf(robot_files("baxter")[0])
    tips = [link for link in robot.link_names if "finger" in link and robot.link_names.index(link) in robot.shape_link]
    across = {frozenset((a, b)) for a in tips for b in tips if a[0] != b[0]}
    assert across and across <= checked(robot)


def least_distance(scene, pair, rng, tries=4):
    """The least signed distance of a pair of bodies that a search among valid configurations finds, metres."""
    low, high = np.maximum(scene.lower, -np.pi), np.minimum(scene.upper, np.pi)

    def distance(q):
        return scene.pair_distances(q)[pair]

    least = np.inf
    for _ in range(tries):
        q, step = rng.uniform(low, high), (high - low) / 2
        now = distance(q)
        while step.max() > 1e-3 and now > 0:
            news = np.clip(q + step * rng.uniform(-1, 1, (8, len(q))) * (rng.random((8, len(q))) < 0.5), low, high)
            values = [distance(new) for new in news]
            best = int(np.argmin(values))
            if values[best] < now:
                q, now = news[best], values[best]
            else:
                step = step / 2
        least = min(least, now)
    return least


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), joints=st.integers(2, 7))
def test_no_pair_that_is_proven_apart_meets(seed, joints):
    text = random_urdf(np.random.default_rng(seed), joints, almost_parallel=seed % 5 == 0, shapes=True)
    never = left_out(load_urdf(text), NEVER)
    if never:
        scene, rng = CoalScene(text, self_pairs=never), np.random.default_rng(seed)
        assert len(scene.pair_names) == len(never)
        for pair in range(len(never)):
            assert least_distance(scene, pair, rng) > 0, scene.pair_names[pair]


def test_many_pairs_of_random_robots_are_proven():
    """So that the test above tests something."""
    robots = [load_urdf(random_urdf(np.random.default_rng(seed), 5, shapes=True)) for seed in range(20)]
    assert sum(len(left_out(robot, NEVER)) for robot in robots) > 30
    assert sum(len(robot.self_collision_pairs) for robot in robots) > 30


@pytest.mark.parametrize("gap, never", [(-0.001, False), (0.02, True)])
def test_the_proof_is_as_sharp_as_two_centimetres(gap, never):
    """The corners of two bars sweep past each other: they turn about axes that are 0.5 m apart. A contact of 1 mm,
    which 10,000 random configurations would not show, keeps the pair."""
    across = 0.5 - gap
    bar = np.sqrt((across / 2) ** 2 - 0.02**2)  # half its length, its half width is 2 cm
    text = chain(
        (box(f"{2 * bar} 0.04 0.04"), turning(-3, 3)),
        ("", turning(0, 0, "0.5 0 0", kind="fixed")),
        ("", turning(-3, 3)),
        (box(f"{2 * bar} 0.04 0.04"), ""),
    )
    robot = load_urdf(text)
    assert (("l0", "l3") in left_out(robot, NEVER)) == never
    assert (frozenset(("l0", "l3")) in checked(robot)) == (not never)


def test_a_pair_that_nearly_always_meets_stays():
    """Two fingers that meet in the neutral pose, and are free in one of fifty configurations only."""
    finger = box("0.3 0.02 0.02", "0.2 0 0")
    robot = load_urdf(chain((finger, turning(-0.001, 0.001)), ("", turning(-0.35, 0.41)), (finger, "")))
    assert checked(robot) == {frozenset(("l0", "l2"))} and not robot.touching_pairs
    checker = CollisionChecker(robot, CollisionWorld(), "cpu")
    assert checker.configurations_valid([[0.0, 0.0], [0.0, 0.409]]).tolist() == [False, True]


def test_links_that_meet_everywhere_are_left_out_and_told_by_name(caplog):
    hub = '<geometry><sphere radius="0.1"/></geometry>'
    text = chain((hub, turning(-1, 1)), (hub, turning(-1, 1, axis="0 1 0")), (hub, "")).replace("chain", "touching")
    with caplog.at_level(logging.WARNING):
        robot = load_urdf(text)
    assert left_out(robot, ALWAYS) == [("l0", "l2")] and "neutral pose" in ALWAYS
    assert not len(robot.self_collision_pairs)
    assert any("'touching'" in told and "l0 and l2" in told for told in caplog.messages)
    assert robot.touching_pairs == (("l0", "l2"),)
    disabled = '<robot name="x"><disable_collisions link1="l0" link2="l1" reason="Adjacent"/></robot>'
    assert checked(load_urdf(text, disabled)) == {frozenset(("l0", "l2"))}  # an SRDF decides alone


def test_links_that_only_touch_everywhere_are_told(caplog):
    """Discs of one stack turn on each other; nothing overlaps."""
    disc = '<geometry><cylinder radius="0.1" length="0.04"/></geometry>'
    text = chain((disc, turning(-1, 1)), ("", turning(-1, 1, "0 0 0.04")), (disc, "")).replace("chain", "stack")
    robot = load_urdf(text)
    assert robot.touching_pairs == (("l0", "l2"),)


def test_a_joint_that_mimics_brings_links_together():
    """The follower turns three times as far as its leader: within the leader's limits alone they would be apart."""
    mimic = '<mimic joint="j0" multiplier="{}"/>'
    arms = [box("0.3 0.02 0.02", "0.25 0 0"), box("0.3 0.02 0.02", "-0.25 0 0")]
    for multiplier, meets in ((3.2, True), (0.5, False)):
        text = chain(
            (arms[0], turning(-0.5, 0.9, "0 0 0")),
            ("", turning(0, 0, "0 0 0", more=mimic.format(multiplier))),
            (arms[1], ""),
        )
        robot = load_urdf(text)
        assert (frozenset(("l0", "l2")) in checked(robot)) == meets
        scene = CoalScene(text, self_pairs=[("l0", "l2")])
        assert (min(scene.distance([q]) for q in np.linspace(-0.5, 0.9, 500)) < 0) == meets


@pytest.mark.parametrize("kind, meets", [("prismatic", True), ("continuous", False)])
def test_a_joint_without_limits_that_is_not_planned_may_stand_anywhere(kind, meets):
    """A slide comes everywhere; a wheel turns on its own axle."""
    joint = turning(0, 0, "0 0 1", kind=kind).replace("<limit", "<ignored")
    text = chain((box("0.1 0.1 0.1"), turning(-1, 1)), ("", joint), (box("0.2 0.1 0.1"), ""))
    robot = load_urdf(text, joints=["j0"])
    assert (frozenset(("l0", "l2")) in checked(robot)) == meets


def test_what_hangs_on_the_frame_of_a_joint_is_adjacent():
    """A bare link that is fixed to a link is a part of it; one with a shape is a link of its own."""
    hub, arm = box("0.2 0.2 0.2"), box("0.3 0.1 0.1", "0.2 0 0")
    fixed = turning(0, 0, "0 0 0.1", kind="fixed")
    for bare in ("", box("0.01 0.01 0.01")):
        robot = load_urdf(chain((hub, fixed), (bare, turning(-2, 2)), (arm, "")))
        assert (("l0", "l2", "adjacent") in robot.disabled_pairs) == (bare == "")
    robot = load_urdf(chain((hub, turning(-2, 2)), ("", fixed), (arm, "")))
    assert ("l0", "l2", "adjacent") in robot.disabled_pairs


def test_pairs_do_not_depend_on_random_numbers():
    text = random_urdf(np.random.default_rng(3), 7, shapes=True)
    robot = load_urdf(text)
    np.random.seed(123)
    again = load_urdf(text)
    assert again.disabled_pairs == robot.disabled_pairs
    np.testing.assert_array_equal(again.self_collision_pairs, robot.self_collision_pairs)


def coal_shape(shape):
    h = shape.half_extents
    kinds = {
        "BOX": lambda: coal.Box(*(2 * h)),
        "SPHERE": lambda: coal.Sphere(h[0]),
        "CYLINDER": lambda: coal.Cylinder(h[0], 2 * h[2]),
        "POLYTOPE": lambda: hull(shape.vertices),
    }
    return kinds[shape.kind.name]()


def test_bounds_of_gaps_hold_and_are_sharp():
    rng, shapes = np.random.default_rng(1), []

    def pose(far):
        T = np.eye(4)
        T[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        T[:3, :3] *= np.linalg.det(T[:3, :3])
        T[:3, 3] = far * rng.normal(size=3)
        return T

    for k in range(24):
        size, at = rng.uniform(0.02, 0.3, 3), pose(0.1)
        makers = (
            lambda s=size, T=at: ConvexShape.box("box", s, T),
            lambda s=size, T=at: ConvexShape.cylinder("cylinder", s[0], s[1], T),
            lambda s=size, T=at: ConvexShape.sphere("sphere", s[0], T),
            lambda s=size, T=at: ConvexShape.convex_hull("hull", rng.normal(size=(30, 3)) * s, T),
        )
        shapes.append(makers[k % 4]())
    a, b = rng.integers(len(shapes), size=(2, 1500))
    T = np.array([pose(0.5) for _ in a])
    n = np.tile([0.0, 0.0, 1.0], (len(a), 1))
    bodies = [(coal_shape(shape), shape.pose) for shape in shapes]
    true = np.array(
        [
            coal.distance(
                bodies[i][0],
                coal.Transform3s(bodies[i][1][:3, :3], bodies[i][1][:3, 3]),
                bodies[j][0],
                coal.Transform3s((M @ bodies[j][1])[:3, :3], (M @ bodies[j][1])[:3, 3]),
                coal.DistanceRequest(),
                coal.DistanceResult(),
            )
            for i, j, M in zip(a, b, T, strict=True)
        ]
    )
    apart, supports = true > 1e-4, Supports(shapes)
    assert 0.5 < apart.mean() < 1
    for share in (0.99, 1.01):
        lower, upper, found = gaps(supports, a, b, T, n, np.maximum(share * true, 1e-4))
        assert (
            (lower <= upper + 1e-12).all()
            and (lower <= np.maximum(true, 0) + 1e-6).all()
            and (upper >= true - 1e-6).all()
        )
        assert (
            (lower > share * true)[apart].mean() > 0.99 if share < 1 else (upper <= share * true)[apart].mean() > 0.99
        )
        assert (upper[true < -1e-3] < 1e-6).mean() > 0.99 and not (lower[true < -1e-3] > 0).any()
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-9)
