"""CollisionChecker against coal in MotionBenchMaker's scenes and generated ones; its motions against dense checks."""

import numpy as np
import pytest
from robots_at_hand import READY, checker_among, maker_of, problem_of
from robots_at_hand import panda as load_panda

from benchmarks.problems import load_golden, load_problems, missing_data, robot_files
from gpu_planners.arm import CollisionChecker, CollisionWorld, MotionCheck, load_urdf
from gpu_planners.arm.spaces.interface import FREE
from gpu_planners.datasets.furniture import FAMILIES
from gpu_planners.errors import DeviceError, ObstacleError, SettingsError

needs_data = pytest.mark.skipif(missing_data() is not None, reason=str(missing_data()))
GREY = 1e-4  # metres from contact where float32 may decide either way


@pytest.fixture(scope="module")
def panda():
    return load_panda()


@needs_data
def test_configurations_agree_with_coal():
    pytest.importorskip("coal")
    from gpu_planners.verify import CoalScene

    robot = load_urdf(*robot_files("panda"))
    bare = CoalScene(*robot_files("panda"), meshes="hulls")
    compared, grey = agree_with_coal(robot, [(problem, bare) for problem in load_problems("panda")[::10]])
    assert compared > 3000 and grey < 400


@pytest.mark.parametrize("name", ["panda", "kinova", "gantry"])
def test_configurations_agree_with_coal_in_generated_scenes(name):
    """Meshes and primitives, joints that slide and joints that turn without end."""
    pytest.importorskip("coal")
    made = [problem_of(name, family) for family in FAMILIES]
    bare = made[0][0].coal_scene([])
    compared, grey = agree_with_coal(made[0][0].model, [(problem, bare) for _, problem in made])
    assert compared > 400 and grey < 40


def agree_with_coal(robot, problems):
    """Compare random configurations, ones near the problems' ends, and ones picked on the edge between free and
    colliding, where mistakes would be; -> how many were compared, and how many were too near contact to be.

    problems: [(Problem, CoalScene of the robot)]
    """
    rng, compared, grey = np.random.default_rng(0), 0, 0
    for problem, bare in problems:
        checker, scene = checker_among(robot, problem), bare.among(problem.obstacles)
        q = rng.uniform(robot.lower, robot.upper, (10_000, robot.dof))
        edge = checker.configurations_valid(q) != checker.configurations_valid(q + rng.normal(0, 0.003, q.shape))
        ends = np.concatenate([problem.start[None], problem.goals])
        near = ends[rng.integers(len(ends), size=40)] + rng.normal(0, 0.2, (40, robot.dof))
        q = np.concatenate([q[:40], q[edge][:40], ends, np.clip(near, robot.lower, robot.upper)])
        distance = np.array([scene.distance(x) for x in q])
        free, clear = checker.configurations_valid(q), checker.clearances(q, up_to=0.1)
        sure = np.abs(distance) > GREY
        wrong = np.flatnonzero(sure & (free != (distance > 0)))
        assert not len(wrong), f"{problem.name}: coal says {distance[wrong]} m, the checker {free[wrong]}"
        assert (clear[sure & free] <= distance[sure & free] + 1e-5).all()
        near = sure & free & (distance < 0.09)
        assert (clear[near] >= 0.75 * distance[near] - 1e-5).all()
        compared, grey = compared + sure.sum(), grey + (~sure).sum()
    print(f"{compared} configurations compared with coal, {grey} within {GREY} m of contact left out")
    return compared, grey


@needs_data
def test_golden_configurations():
    """Self-collision distances of the golden set, which were computed without any obstacle of ours."""
    golden = load_golden()
    checker = CollisionChecker(load_urdf(*robot_files("panda")), CollisionWorld(), "cpu")
    distance = golden["min_self_distance"]
    sure = np.abs(distance) > GREY
    assert (checker.configurations_valid(golden["q"]) == (distance > 0))[sure].all()
    assert sure.sum() > 800


def test_colliding_pairs_name_the_offenders(panda):
    checker = CollisionChecker(panda, CollisionWorld(), "cpu")
    q = READY
    assert checker.colliding_pairs(q) == []
    checker.world.add_sphere("ball", 0.05, panda.link_poses(q)["panda_hand"].reshape(4, 4))
    assert ("panda_hand_0", "ball") in checker.colliding_pairs(q)
    assert not checker.configurations_valid(q[None])[0]
    checker.world.clear()
    assert checker.configurations_valid(q[None])[0]


@pytest.mark.parametrize("families", [list(FAMILIES)[:1], pytest.param(list(FAMILIES)[1:], marks=pytest.mark.slow)])
def test_continuous_motions_are_free_however_densely_one_looks(panda, families):
    """What is called free is free at 2001 places; what is refused comes within the step of contact somewhere."""
    rng, accepted, refused = np.random.default_rng(5), 0, 0
    for family in families:
        checker = checker_among(panda, problem_of("panda", family)[1])
        a = rng.uniform(panda.lower, panda.upper, (250, 7))
        a = a[checker.configurations_valid(a)]
        b = np.clip(a + rng.normal(0, 0.3, a.shape), panda.lower, panda.upper)
        valid = checker.motions_valid(a, b)
        for start, end, free in zip(a, b, valid):
            clear = least_clearance(checker, start, end)
            if free:
                assert clear > 0
            else:
                assert clear < checker.motion.step, f"refused although {clear} m free everywhere"
        accepted, refused = accepted + valid.sum(), refused + (~valid).sum()
    assert accepted > 50 and refused > 5


def least_clearance(checker, start, end, far=0.01, every=8):
    """Of 2001 places on a motion, up to `far` metres. Between two places, `every` apart, that have `far` on all sides,
    none is looked at: no point of a Panda, whose reach is below 1.2 m, moves as far from one to the other.
    """
    q = start + np.linspace(0, 1, 2001)[:, None] * (end - start)
    assert 1.2 * np.abs(end - start).sum() * every / 2000 < 2 * far
    ends = checker.clearances(q[::every], up_to=far) < far
    near = np.repeat(ends[:-1] | ends[1:], every)
    return checker.clearances(q[:-1][near], up_to=far).min(initial=far)


@pytest.mark.parametrize("name", ["panda", "ur5"])
def test_what_is_free_in_parts_is_free_whole(name):
    """Motions that nearly touch, found by the margin: as a search proves them, in parts or from the other end, which
    looks at other places."""
    from gpu_planners.arm.collision import checker as compiled

    robot, rng, accepted, given_up = maker_of(name).model, np.random.default_rng(8), 0, 0
    checker = checker_among(robot, problem_of(name, "shelf")[1])
    q = rng.uniform(robot.lower, robot.upper, (2000, robot.dof))
    q = q[checker.configurations_valid(q)][:300]
    a, b = (each.astype(np.float32) for each in (q, np.clip(q + rng.normal(0, 0.4, q.shape), robot.lower, robot.upper)))
    mode, step = checker.motion_args

    def proven(a, b):
        verdicts = np.empty(len(a), dtype=np.uint8)
        compiled._motions_valid(a, b, 1, np.int32(mode), step, checker.packed_scene, verdicts)
        return (verdicts == FREE).all()

    for i in [i for i in range(len(a)) if proven(a[i : i + 1], b[i : i + 1])][:25]:
        shares = np.linspace(0, 1, 9, dtype=np.float32)[:, None]
        places = a[i] + shares * (b[i] - a[i])
        places[-1] = b[i]
        for ends in ((places[:-1], places[1:]), (places[::4][:-1], places[::4][1:]), (b[i : i + 1], a[i : i + 1])):
            margins = [0.0, 0.5]
            for _ in range(16):  # to within 8 micrometres of touching
                checker.margin = sum(margins) / 2
                margins[0 if proven(*ends) else 1] = checker.margin
            checker.margin = margins[0]
            assert checker.motions_valid(a[i : i + 1], b[i : i + 1])[0], (i, checker.margin)
            accepted, given_up = accepted + 1, given_up + (not proven(a[i : i + 1], b[i : i + 1]))
        checker.margin = 0.0
    assert accepted > 60 and given_up > 3


@pytest.mark.parametrize(
    ("motion", "parts_of"),
    [
        (MotionCheck("joint", 0.05), lambda a, b: np.ceil(np.linalg.norm(b - a) / 0.05)),
        (MotionCheck("count", 20), lambda a, b: 20),
    ],
    ids=["joint", "count"],
)
def test_sampled_motions_look_where_they_say(panda, motion, parts_of):
    checker = checker_among(panda, problem_of("panda", "shelf")[1], motion)
    rng = np.random.default_rng(6)
    a = rng.uniform(panda.lower, panda.upper, (500, 7)).astype(np.float32)
    b = a + rng.normal(0, 0.3, a.shape).astype(np.float32)
    valid = checker.motions_valid(a, b)
    free = [
        checker.configurations_valid(x + np.linspace(0, 1, int(parts_of(x, y)) + 1)[:, None] * (y - x)).all()
        for x, y in zip(a, b)
    ]
    assert (valid != free).sum() <= 1  # one may be within rounding of contact
    assert 0.1 < valid.mean() < 0.9


def test_workspace_steps_bound_every_point(panda):
    """A thin plate on a motion's way is never jumped over: steps are shorter than hand and plate are thick together."""
    checker = CollisionChecker(panda, CollisionWorld(), "cpu", MotionCheck("workspace", 0.02))
    start = READY
    end = start + np.array([1.2, 0, 0, 0, 0, 0, 0])
    assert checker.motions_valid(start[None], end[None])[0]
    hand = panda.link_poses(start + np.array([0.613, 0, 0, 0, 0, 0, 0]))["panda_hand"].reshape(4, 4)
    checker.world.add_box("plate", [0.02, 0.02, 0.002], hand)
    assert not checker.motions_valid(start[None], end[None])[0]


def test_no_point_moves_faster_than_its_bound(panda):
    """reach.frame_reach, on which all certificates rest: corners of every hull, over random short motions."""
    from gpu_planners.arm.collision.packing import pack_robot
    from gpu_planners.arm.collision.records import header

    robot = pack_robot(panda)
    counts = header(robot.buffers)
    columns = counts.moving + counts.pairs
    reach = robot.buffers.floats[counts.reach :][: counts.frames * columns].reshape(counts.frames, columns).T
    rng = np.random.default_rng(7)
    q = rng.uniform(panda.lower, panda.upper, (300, 7))
    dq = rng.normal(0, 0.2, q.shape) * (rng.random(q.shape) < 0.5)
    before, after = panda.frame_poses(q), panda.frame_poses(q + dq)
    tightest = 0.0
    hulls = [(row, s) for row, s in zip(reach[: counts.moving], robot.order) if len(panda.shapes[s].vertices)]
    assert len(hulls) >= 7
    for row, s in hulls:
        shape, f = panda.shapes[s], panda.shape_frame[s]
        points = np.column_stack(
            [shape.vertices @ shape.pose[:3, :3].T + shape.pose[:3, 3], np.ones(len(shape.vertices))]
        )
        moved = np.linalg.norm(((after[:, f] - before[:, f]) @ points.T)[:, :3], axis=1).max(axis=1)
        bound = np.abs(dq[:, panda.frames["joint"]] * panda.frames["multiplier"]) @ row
        assert (moved <= bound + 1e-9).all()
        tightest = max(tightest, (moved[bound > 0] / bound[bound > 0]).max())
    assert tightest > 0.5  # a bound that is never nearly reached would be wrong in the other way


def test_world_replaces_refuses_and_counts():
    world = CollisionWorld()
    world.add_box("table", [1, 1, 0.1], np.eye(4))
    version = world.version
    with pytest.raises(ObstacleError, match="table"):
        world.add_box("table", [1, -1, 0.1], np.eye(4))
    assert world.version == version and len(world.shapes) == 1
    world.add_sphere("table", 0.3, np.eye(4))
    assert world.names == ("table",) and world.version > version
    with pytest.raises(ObstacleError, match="chair.*table"):
        world.remove("chair")
    with pytest.raises(ObstacleError, match="name"):
        world.add_sphere("", 0.3, np.eye(4))
    with pytest.raises(ObstacleError, match="part"):
        world.add_mesh("part", "/nowhere/part.stl", np.eye(4))


def test_bad_requests_say_what_is_allowed(panda):
    with pytest.raises(DeviceError, match="auto"):
        CollisionChecker(panda, CollisionWorld(), "gpu")
    with pytest.raises(SettingsError, match="continuous, workspace, joint, count"):
        MotionCheck("fast")
    with pytest.raises(SettingsError, match="step"):
        MotionCheck("workspace", 0.0)
    with pytest.raises(SettingsError, match="step"):
        MotionCheck("joint", float("nan"))
    checker = CollisionChecker(panda, CollisionWorld(), "cpu")
    with pytest.raises(ValueError, match=r"\(N, 7\)"):
        checker.configurations_valid(np.zeros(7))
    with pytest.raises(ValueError, match="same shape"):
        checker.motions_valid(np.zeros((2, 7)), np.zeros((3, 7)))


def test_cuda_asked_for_where_there_is_none():
    from gpu_planners.device import cuda_problem, resolve_device

    if not cuda_problem():
        pytest.skip("there is a CUDA device here")
    assert resolve_device("auto") == "cpu"
    with pytest.raises(DeviceError, match="cuda"):
        resolve_device("cuda")
