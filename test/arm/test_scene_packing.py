"""Packed worlds: sizes that once wrapped, changes, far and huge obstacles, margins; distances against coal."""

import time

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.arm.collision import packing, scene_packing
from gpu_planners.arm.collision.reach import joint_ranges
from gpu_planners.device import cuda_problem
from gpu_planners.errors import ObstacleError, RobotDescriptionError, SettingsError

STICK = """
<robot name="stick">
  <link name="world"/>
  <joint name="base" type="fixed"><parent link="world"/><child link="foot"/><origin xyz="{base} 0 0"/></joint>
  <link name="foot"/>
  <joint name="turn" type="revolute"><parent link="foot"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
  <link name="arm"><collision><origin xyz="0.5 0 0"/><geometry><box size="1 0.1 0.1"/></geometry></collision></link>
  <joint name="slide" type="prismatic"><parent link="arm"/><child link="tip"/><origin xyz="1 0 0"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="{travel}" velocity="1" effort="1"/></joint>
  <link name="tip"><collision><geometry><sphere radius="0.05"/></geometry></collision></link>
</robot>"""


@pytest.fixture(
    params=[
        "cpu",
        pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem())]),
    ]
)
def device(request):
    return request.param


def stick(base=0.0, travel=0.5):
    return load_urdf(STICK.format(base=base, travel=travel))


def at(*position):
    T = np.eye(4)
    T[:3, 3] = position
    return T


def valid(checker, *q):
    return bool(checker.configurations_valid(np.array([q]))[0])


def random_hull(rng, vertices, radius):
    points = rng.normal(size=(vertices, 3))
    return radius * points / np.linalg.norm(points, axis=1)[:, None]


def test_a_hull_behind_millions_of_packed_numbers_is_seen(device):
    """Its vertices lie beyond the 2^23rd number, which the entries of the support table could once not name."""
    rng, world = np.random.default_rng(0), CollisionWorld()
    hull = random_hull(rng, 400, 0.05)
    for i in range(1100):
        world.add_convex(f"far_{i}", hull, at(50 + i, 0, 0))
    checker = CollisionChecker(stick(), world, device)
    assert valid(checker, 0.0, 0.2)
    world.add_convex("near", hull, at(1.2, 0, 0))
    assert len(checker.packed_scene.floats) > 2**23
    assert not valid(checker, 0.0, 0.2)
    assert checker.colliding_pairs([0.0, 0.2]) == [("tip_0", "near")]


def test_pairs_beyond_the_range_of_float32_keep_their_numbers(device):
    """2^24 + 1 is no float32: pair numbers once travelled as such."""
    world = CollisionWorld()
    posts = "".join(
        f'<collision><origin xyz="{0.02 + k * 0.004} 0 0"/><geometry><sphere radius="0.0016"/></geometry></collision>'
        for k in range(240)
    )
    robot = load_urdf(
        STICK.format(base=0, travel=0.5).replace(
            '<collision><origin xyz="0.5 0 0"/><geometry><box size="1 0.1 0.1"/></geometry></collision>', posts
        )
    )
    rng = np.random.default_rng(1)
    for i, position in enumerate(rng.uniform(5, 6, (72_000, 3))):
        world.add_sphere(f"far_{i}", 0.01, at(*position))
    checker = CollisionChecker(robot, world, device)
    assert checker.configurations_valid(np.zeros((1, 2)))[0]
    for k in (75, 188, 238, 239):
        world.add_sphere("near", 0.0016, at(0.02 + k * 0.004, 0, 0))
        assert len(world.shapes) * 241 > 2**24
        assert not checker.configurations_valid(np.zeros((1, 2)))[0], f"post {k}"


def test_worlds_too_large_for_their_numbers_are_refused_by_name(monkeypatch, device):
    world = CollisionWorld()
    for i in range(100):
        world.add_box(f"box_{i}", [0.1, 0.1, 0.1], at(5, i, 0))
    for limit in (150, 1500):  # pairs, then numbers
        monkeypatch.setattr(scene_packing, "GREATEST_INDEX", limit)
        with pytest.raises(ObstacleError, match=rf"100 convex shapes.*allowed: {limit}"):
            CollisionChecker(stick(), world, device).configurations_valid(np.zeros((1, 2)))


def test_a_changed_world_packs_to_the_same_as_a_new_one():
    rng = np.random.default_rng(2)
    robot = packing.pack_robot(stick())
    cache, shapes = scene_packing.SceneCache(robot), []
    for step in range(60):
        world = CollisionWorld()
        name, place = f"s{step}", at(*rng.uniform(-2, 2, 3))
        kind = step % 4
        if kind == 0:
            world.add_box(name, rng.uniform(0.1, 1, 3), place)
        elif kind == 1:
            world.add_convex(name, random_hull(rng, 40, 0.2), place)
        elif kind == 2:
            world.add_cylinder(name, 0.1, 0.5, place)
        else:
            world.add_convex(name, [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], place)
        shapes[rng.integers(len(shapes) + 1) : 0] = world.shapes
        if step % 3 == 2:
            del shapes[rng.integers(len(shapes))]
        if step % 10 == 9:
            rng.shuffle(shapes)
        margin = 0.01 * (step // 20)
        changed = cache.pack(tuple(shapes), margin).joined()
        fresh = scene_packing.SceneCache(robot).pack(tuple(shapes), margin).joined()
        assert (changed.floats == fresh.floats).all() and (changed.ints == fresh.ints).all()


def test_only_what_changed_is_packed(monkeypatch, device):
    rng, world = np.random.default_rng(3), CollisionWorld()
    checker = CollisionChecker(stick(), world, device)
    for i in range(30):
        world.add_convex(f"hull_{i}", random_hull(rng, 100, 0.1), at(3, i, 0))
    checker.configurations_valid(np.zeros((1, 2)))
    tables = []
    monkeypatch.setattr(
        packing, "support_table", lambda vertices, table=packing.support_table: tables.append(1) or table(vertices)
    )
    world.add_convex("hull_7", random_hull(rng, 100, 0.1), at(3, 7, 0))
    checker.configurations_valid(np.zeros((1, 2)))
    assert len(tables) == 1
    moved = world.shapes[3]
    world.add_convex("hull_3", moved.vertices, at(4, 4, 4))  # the same body elsewhere
    checker.configurations_valid(np.zeros((1, 2)))
    assert len(tables) <= 2


@pytest.mark.parametrize("base", [0.0, 10.0, 1e3, 1e4, 9e4])
def test_a_robot_far_from_its_root_sees_tenths_of_a_millimetre(base, device):
    world = CollisionWorld()
    checker = CollisionChecker(stick(base), world, device)
    rng, wrong, refused = np.random.default_rng(4), 0, []
    for _ in range(300):
        turn, out = rng.uniform(-3, 3), rng.uniform(0, 0.5)
        gap = rng.choice([-1, 1]) * 10 ** rng.uniform(-5, -3)
        tip = checker.robot.link_poses([turn, out])["tip"][0] @ at(0.05 + 0.1 + gap, 0, 0)
        world.add_box("wall", [0.2, 0.5, 0.5], tip)
        free = valid(checker, turn, out)
        wrong += free and gap < -1e-4
        if not free and gap > 0:
            refused.append(gap)
    print(f"{base} m away: widest gap refused {1e6 * max(refused, default=0):.1f} um")
    assert not wrong and max(refused, default=0) < 1e-4


def test_a_link_at_the_root_does_not_keep_an_arm_from_being_far_away(device):
    """It lies where the arm cannot come, so that nothing depends on its place."""
    urdf = STICK.format(base=5e3, travel=0.5).replace(
        '<link name="world"/>',
        '<link name="world"><collision><geometry><box size="1 1 1"/></geometry></collision></link>',
    )
    assert valid(CollisionChecker(load_urdf(urdf), CollisionWorld(), device), 0.0, 0.2)


def test_a_huge_box_is_cut_off_where_the_robot_cannot_come(device):
    world = CollisionWorld()
    checker = CollisionChecker(stick(), world, device)
    rng = np.random.default_rng(5)
    for size in (10.0, 1e3, 9e4):
        for _ in range(100):
            turn, out = rng.uniform(-3, 3), rng.uniform(0, 0.5)
            gap = rng.choice([-1, 1]) * 10 ** rng.uniform(-4.5, -2)
            tip = checker.robot.link_poses([turn, out])["tip"][0]
            shift = at(0.05 + size / 2 + gap, *rng.uniform(-0.4, 0.4, 2) * size)
            world.add_box("wall", [size] * 3, tip @ shift)
            assert valid(checker, turn, out) == (gap > 0), f"size {size} m, gap {gap} m"
            assert (
                abs(checker.clearances([[turn, out]], up_to=0.05)[0] - max(gap, 0)) < 0.25 * abs(gap) + 3e-5 or gap < 0
            )


def test_obstacles_that_float32_cannot_hold_near_the_robot_are_refused_by_name(device):
    world = CollisionWorld()
    checker = CollisionChecker(stick(), world, device)
    world.add_sphere("moon", 5e3, at(0, 0, -5e3 - 0.3))
    with pytest.raises(ObstacleError, match=r"'moon'.*allowed: 0.1 mm"):
        checker.configurations_valid(np.zeros((1, 2)))
    world.add_sphere("moon", 5e3, at(0, 0, -9e3))  # nowhere near
    assert valid(checker, 0.0, 0.1)
    world.add_box("wall", [0.1, 1, 1], at(1.1, 0, 0))
    assert not valid(checker, 0.0, 0.1)


def test_a_robot_that_float32_cannot_hold_is_refused_by_name(device):
    with pytest.raises(RobotDescriptionError, match=r"'tip_0'.*allowed: 0.1 mm"):
        CollisionChecker(stick(travel=5e3), CollisionWorld(), device)


def test_sliding_joints_are_looked_at_within_their_limits_only(device):
    """The bounds on speeds hold there: 300 of 300 motions through a ball were once called proven farther out."""
    world = CollisionWorld()
    robot = stick()
    checker = CollisionChecker(robot, world, device)
    world.add_sphere("ball", 0.1, at(0, 3, 0))
    rng = np.random.default_rng(6)
    turns = rng.uniform(-1, 1, (300, 1)) + [0.0, np.pi / 2]
    a, b = np.column_stack([turns[:, 1] - 1, np.full(300, 2.0)]), np.column_stack([turns[:, 1] + 1, np.full(300, 2.0)])
    assert not checker.motions_valid(a, b).any() and not checker.configurations_valid(a).any()
    low, high = joint_ranges(robot)
    inside, outside = [0.0, high[1] - 1e-4], [0.0, high[1] + 1e-4]
    assert checker.motions_valid([inside], [[1.0, 0.3]])[0] and not checker.motions_valid([outside], [[1.0, 0.3]])[0]
    assert low[1] < 0 < high[1] - 0.5


def test_values_that_are_no_numbers_are_errors_or_not_free(device):
    checker = CollisionChecker(stick(), CollisionWorld(), device)
    good = np.zeros((3, 2))
    calls = [
        lambda q, **o: checker.configurations_valid(q, **o),
        lambda q, **o: checker.motions_valid(good, q, **o),
        lambda q, **o: checker.motions_valid(q, good, **o),
    ]
    for bad in (np.nan, np.inf, -np.inf, 1e300):
        q = good.copy()
        q[1, 1] = bad
        for call in calls:
            with pytest.raises(ValueError, match=r"\[1\]: joint 'slide' is"):
                call(q)
            assert call(q, not_finite="false").tolist() == [True, False, True]
        with pytest.raises(ValueError, match=r"q\[1\]: joint 'slide' is"):
            checker.clearances(q)
        assert checker.clearances(q, not_finite="false")[1] == -1
        with pytest.raises(ValueError, match="slide"):
            checker.colliding_pairs(q[1])
    with pytest.raises(SettingsError, match="'error', 'false'"):
        checker.configurations_valid(good, not_finite="ignore")
    for nonsense in ("abc", None, [[1j, 0]], [["a", "b"]], [[0, 0], [0]], np.zeros((1, 2), object)):
        with pytest.raises(ValueError, match="^q .*(allowed|must)"):
            checker.configurations_valid(nonsense)


def test_many_turns_of_a_joint_are_taken_off_in_double_precision(device):
    urdf = STICK.format(base=0, travel=0.5).replace('type="revolute"', 'type="continuous"')
    robot, world = load_urdf(urdf), CollisionWorld()
    checker = CollisionChecker(robot, world, device)
    rng = np.random.default_rng(7)
    for i in range(20):
        angle = 2 * np.pi * i / 20
        world.add_sphere(f"ball_{i}", 0.02, at(1.3 * np.cos(angle), 1.3 * np.sin(angle), 0))
    q = np.column_stack([rng.uniform(-np.pi, np.pi, 2000), rng.uniform(0, 0.5, 2000)])
    b = q + np.column_stack([rng.uniform(-0.5, 0.5, 2000), np.zeros(2000)])
    away = np.abs(checker.clearances(q, up_to=1e-3)) > 1e-4
    free, moves = checker.configurations_valid(q), checker.motions_valid(q, b)
    assert 0.1 < free.mean() < 0.95
    for turns in (1, -3, 1000, 10**9):
        shift = np.array([2 * np.pi * turns, 0])
        assert (checker.configurations_valid(q + shift) == free)[away].all()
        assert (checker.motions_valid(q + shift, b + shift) != moves).sum() <= 4  # within rounding of grazing


@pytest.mark.parametrize("margin", [1e-4, 0.02, 0.3])
def test_margins_are_kept_from_obstacles(margin, device):
    """Distances by coal, of shapes of every kind around the arm."""
    coal = pytest.importorskip("coal")
    world = CollisionWorld()
    checker = CollisionChecker(stick(), world, device, margin=margin)
    rng, refused, frees = np.random.default_rng(8), [], 0
    for k in range(400):
        turn, out = rng.uniform(-3, 3), rng.uniform(0, 0.5)
        T = at(*rng.uniform(-1.2, 1.2, 2), rng.uniform(-0.8, 0.8))
        T[:3, :3] = Rotation.random(random_state=rng).as_matrix()
        world.clear()
        hull = random_hull(rng, 30, 0.3)
        if k % 4 == 0:
            world.add_box("thing", [0.3, 0.2, 0.5], T)
            body = coal.Box(0.3, 0.2, 0.5)
        elif k % 4 == 1:
            world.add_cylinder("thing", 0.1, 0.7, T)
            body = coal.Cylinder(0.1, 0.7)
        elif k % 4 == 2:
            world.add_sphere("thing", 0.2, T)
            body = coal.Sphere(0.2)
        else:
            world.add_convex("thing", hull, T)
            points = coal.StdVec_Vec3s()
            points.extend(list(hull))
            body = coal.Convex.convexHull(points, False, None)
        poses = checker.robot.link_poses([turn, out])
        parts = [(coal.Box(1, 0.1, 0.1), poses["arm"][0] @ at(0.5, 0, 0)), (coal.Sphere(0.05), poses["tip"][0])]
        distance = min(_coal_distance(coal, part, pose, body, T) for part, pose in parts)
        free = valid(checker, turn, out)
        assert not (free and distance < margin), f"free at {distance} m with a margin of {margin} m"
        frees += free
        if not free and distance > margin:
            refused.append(distance - margin)
        assert bool(checker.colliding_pairs([turn, out])) != free
        assert (
            checker.motions_valid([[turn, out]], [[turn, out]])[0]
            == (free and distance > margin + checker.motion.step / 2)
            or distance < margin + 1e-3
        )
    print(f"margin {margin} m: {frees} free, widest gap refused {1e6 * max(refused, default=0):.1f} um")
    assert 20 < frees < 400 and max(refused, default=0) < 5e-5


def _coal_distance(coal, a, T_a, b, T_b):
    result = coal.DistanceResult()
    placed = [coal.Transform3s(T[:3, :3], T[:3, 3]) for T in (T_a, T_b)]
    return coal.distance(a, placed[0], b, placed[1], coal.DistanceRequest(), result)


def test_margins_that_are_none_are_refused(device):
    for margin in (-0.1, np.nan, np.inf, 1e6, "1", None, True):
        with pytest.raises(SettingsError, match="margin"):
            CollisionChecker(stick(), CollisionWorld(), device, margin=margin)


def test_a_robot_of_one_joint_takes_requests_of_any_size(device):
    urdf = (
        '<robot name="bar"><link name="foot"/><link name="bar"><collision><geometry><box size="1 0.1 0.1"/></geometry>'
        "</collision></link>"
        '<joint name="turn" type="revolute"><parent link="foot"/><child link="bar"/><axis xyz="0 0 1"/>'
        '<limit lower="-3" upper="3" velocity="1" effort="1"/></joint></robot>'
    )
    world = CollisionWorld()
    world.add_sphere("ball", 0.05, at(0.4, 0, 0))
    checker = CollisionChecker(load_urdf(urdf), world, device)
    for count in (0, 1, 40, 5000):
        q = np.linspace(-1.5, 1.5, count)[:, None]
        assert (checker.configurations_valid(q) == (np.abs(q[:, 0]) > 0.3)).mean() > 0.9 or not count
        assert (checker.motions_valid(q, q) <= checker.configurations_valid(q)).all()


def test_a_margin_may_change_between_queries(device):
    world = CollisionWorld()
    checker = CollisionChecker(stick(), world, device)
    world.add_box("wall", [0.1, 1, 1], at(1.35, 0, 0))
    before = checker.version
    assert valid(checker, 0.0, 0.2)
    checker.margin = 0.1
    assert checker.version != before and not valid(checker, 0.0, 0.2)


def test_many_obstacles_change_quickly(device):
    """Packing them all takes much longer than packing the one that changes."""
    world = CollisionWorld()
    checker = CollisionChecker(stick(), world, device)
    assert valid(checker, 0.0, 0.2)  # compiles
    for i, position in enumerate(np.random.default_rng(9).uniform(3, 9, (30_000, 3))):
        world.add_box(f"box_{i}", [0.01, 0.01, 0.01], at(*position))
    first = seconds_of(lambda: valid(checker, 0.0, 0.2))
    changes = []
    for x in (1.2, 1.21, 1.22):
        world.add_box("box_500", [0.1, 0.1, 0.1], at(x, 0, 0))
        changes.append(seconds_of(lambda: valid(checker, 0.0, 0.2)))
        assert not valid(checker, 0.0, 0.2)
    assert min(changes) < first / 3


def seconds_of(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


@pytest.mark.gpu
@pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem())
def test_arrays_on_the_device_are_checked_too():
    from numba import cuda

    checker = CollisionChecker(stick(), CollisionWorld(), "cuda")
    q = np.zeros((40, 2), np.float32)
    q[7, 0] = np.nan
    on_device = cuda.to_device(q)
    with pytest.raises(ValueError, match=r"q\[7\]: joint 'turn' is nan"):
        checker.configurations_valid(on_device)
    assert (checker.configurations_valid(on_device, not_finite="false") == (np.arange(40) != 7)).all()
    assert (checker.motions_valid(on_device, on_device, not_finite="false") == (np.arange(40) != 7)).all()
    for other in (cuda.to_device(q.astype(np.float64)), cuda.to_device(np.zeros((4, 3), np.float32))):
        with pytest.raises(ValueError, match="q must be float32"):
            checker.configurations_valid(other)
    with pytest.raises(ValueError, match="computes on the CPU"):
        CollisionChecker(stick(), CollisionWorld(), "cpu").configurations_valid(on_device)
