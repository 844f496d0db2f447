"""Generated problems: the same from the same seed, free by coal at both ends, and not solved by going straight."""

from dataclasses import replace

import numpy as np
import pytest
from pinocchio_poses import pinocchio_poses
from robots_at_hand import maker_of

from benchmarks import robots
from benchmarks.generated_problems import CLEARANCE, STRAIGHT, Maker, problems
from benchmarks.problems import add_obstacles, pose_of
from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.geometry.shapes import ShapeKind
from gpu_planners.arm.planners import rrt_connect
from gpu_planners.datasets.furniture import FAMILIES
from gpu_planners.errors import GpuPlannersError
from gpu_planners.share import share_folder

SOME = 1 << 15  # random configurations, where a test draws a pool of its own
MANY = pytest.param(4, marks=pytest.mark.slow)
BAXTER = pytest.param("baxter", marks=pytest.mark.slow)  # coal takes long for its pairs


def same(one, other):
    ends = np.array_equal(one.start, other.start) and np.array_equal(one.goals, other.goals)
    return ends and one.obstacles == other.obstacles and one.name == other.name


def corners(obstacle):
    """(8, 3) of the box around an obstacle, in the root frame."""
    radius = obstacle.get("radius")
    sides = obstacle.get("size") or [2 * radius, 2 * radius, obstacle.get("height", 2 * radius)]
    signs = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, -1).T
    pose = pose_of(obstacle)
    return signs * sides @ pose[:3, :3].T + pose[:3, 3]


def test_a_seed_gives_the_same_problems_in_any_order():
    rig = maker_of("gantry").rig
    one, other = Maker(rig, SOME), Maker(rig, SOME)
    forth = {(family, i): one.problem(family, i) for family in FAMILIES for i in range(2)}
    back = {(family, i): other.problem(family, i) for family in reversed(FAMILIES) for i in (1, 0)}
    assert all(same(forth[key], back[key]) for key in forth)
    starts = {tuple(problem.start) for problem in forth.values()} | {tuple(one.problem("cage", 0, seed=1).start)}
    assert len(starts) == 2 * len(FAMILIES) + 1


@pytest.mark.parametrize("count", [1, MANY])
@pytest.mark.parametrize("robot", [name if name != "baxter" else BAXTER for name in robots.ROBOTS])
def test_ends_are_free_by_coal_and_the_straight_way_is_not(robot, count):
    pytest.importorskip("coal")
    maker = maker_of(robot)
    rig, made = maker.rig, problems(robot, count)
    assert [problem.family for problem in made] == [family for family in FAMILIES for _ in range(count)]
    for problem in made:
        assert problem.joint_names == rig.model.joint_names and problem.goals.shape == (1, rig.model.dof)
        scene = rig.coal_scene(problem.obstacles)
        for q in (problem.start, problem.goals[0]):
            assert (q >= rig.model.lower).all() and (q <= rig.model.upper).all()
            assert not scene.in_collision(q), problem.name
        straight = problem.start + np.linspace(0, 1, STRAIGHT)[:, None] * (problem.goals[0] - problem.start)
        assert any(scene.in_collision(q) for q in straight), problem.name
    assert maker.refused == 0  # else a machine without coal would make other problems


@pytest.mark.parametrize("robot", ["panda", BAXTER])
def test_hard_problems_are_hard(robot):
    pytest.importorskip("coal")
    maker = maker_of(robot)
    problem = maker.problem("cage", 0, hard=True)
    checker = CollisionChecker(maker.rig.model, add_obstacles(CollisionWorld(), problem.obstacles), "cpu")
    settings = rrt_connect.Settings(shortcut_rounds=0, searches=1, time_limit_s=3600.0)
    results = [rrt_connect.solve(problem.start, problem.goals, checker, settings, seed) for seed in (2, 3, 4)]
    assert all(result.solved for result in results)
    assert np.median([result.samples for result in results]) > 500  # by seeds that did not choose it
    scene = maker.rig.coal_scene(problem.obstacles)
    assert not scene.in_collision(problem.start) and not scene.in_collision(problem.goals[0])


@pytest.mark.parametrize("robot", ["panda", "gantry"])
def test_ends_keep_their_clearance_by_coal(robot):
    pytest.importorskip("coal")
    maker = maker_of(robot)
    for problem in problems(robot, 2):
        scene = maker.rig.coal_scene(problem.obstacles)
        for q in (problem.start, problem.goals[0]):
            to_obstacles = scene.pair_distances(q)[: scene.obstacle_pairs]
            assert to_obstacles.min() > CLEARANCE * maker.pool.room.reach - 1e-4, problem.name


def tips_of(rig, q):
    """(N, tips, 3) where the tips are by pinocchio, at q (N, dof)."""
    poses = pinocchio_poses(rig.urdf, rig.model.joint_names, q, rig.fixed)
    return np.stack([poses[tip][:, :3, 3] for tip in rig.tips], axis=1)


@pytest.mark.parametrize("robot", ["panda", "kinova", "baxter", "gantry"])
def test_end_effectors_go_from_place_to_place_in_the_furniture(robot):
    """In its own frame, which a board or a post of it gives; where the tips are is pinocchio's word."""
    pytest.importorskip("coal")
    maker = maker_of(robot)
    for problem in problems(robot, 1, families=("shelf", "cage")):
        opening = maker.pool.room.opening
        T = next(pose_of(o) for o in problem.obstacles if o["name"] in ("back", "front_post0"))
        parts = (np.concatenate([corners(o) for o in problem.obstacles]) - T[:3, 3]) @ T[:3, :3]
        places = []
        for q in (problem.start, problem.goals[0]):
            tips = (tips_of(maker.rig, q[None])[0] - T[:3, 3]) @ T[:3, :3]
            assert (tips > parts.min(axis=0) - 1e-6).all() and (tips < parts.max(axis=0) + 1e-6).all(), problem.name
            places.append(tips)
        assert (np.linalg.norm(places[0] - places[1], axis=1) > 0.2 * opening).all()
        if len(maker.rig.tips) == 2:
            assert all(np.linalg.norm(tips[0] - tips[1]) > 0.2 * opening for tips in places)


def test_the_robots_have_meshes_and_joints_of_every_type():
    kinds, joints = set(), {}
    for name in robots.ROBOTS:
        model = maker_of(name).model
        kinds |= {shape.kind for shape in model.shapes}
        sliding = np.array([row["prismatic"] for row in model.dh])
        joints[name] = model.dof, int(sliding.sum()), int(model.continuous.sum())
    assert kinds >= {ShapeKind.POLYTOPE, ShapeKind.BOX, ShapeKind.CYLINDER}
    assert joints["gantry"] == (6, 3, 2) and joints["tiago"][:2] == (8, 1) and joints["kinova"][2] == 3
    assert joints["baxter"] == (14, 0, 0) and joints["panda"] == joints["xarm7"] == (7, 0, 0)
    assert joints["ur5"] == joints["ur10"] == (6, 0, 0)


def test_several_goals_lie_in_one_place():
    pytest.importorskip("coal")
    maker = maker_of("gantry")
    problem = maker.problem("shelf", 0, goals=4)
    scene = maker.rig.coal_scene(problem.obstacles)
    assert len(problem.goals) == 4 and not any(scene.in_collision(goal) for goal in problem.goals)
    at = tips_of(maker.rig, problem.goals)[:, 0]
    assert np.ptp(at, axis=0).max() < 1.5 * maker.pool.room.opening
    assert len(np.unique(problem.goals, axis=0)) == 4


@pytest.mark.parametrize("tips", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_places_are_enough_and_empty(family, tips):
    """By coal: a ball of a tenth of the opening fits into the middle of every place."""
    coal = pytest.importorskip("coal")
    from gpu_planners.verify.shapes import obstacle_shape

    for seed in range(20):
        made = FAMILIES[family](np.random.default_rng(seed), 0.4, tips)
        assert len(made.places) >= 2 * tips
        for low, high in made.places:
            assert (high - low > 0.1).all()
            ball, at = coal.Sphere(0.04), coal.Transform3s(np.eye(3), (low + high) / 2)
            for obstacle in made.obstacles:
                pose = pose_of(obstacle)
                there = coal.Transform3s(pose[:3, :3], pose[:3, 3])
                result = coal.DistanceResult()
                body = obstacle_shape(obstacle)
                assert coal.distance(ball, at, body, there, coal.DistanceRequest(), result) > 0, obstacle["name"]


def test_what_is_not_known_or_does_not_fit_is_named():
    with pytest.raises(GpuPlannersError, match="'pandas'; allowed: panda, ur5"):
        robots.rig("pandas")
    gantry = maker_of("gantry")
    with pytest.raises(GpuPlannersError, match="'sofa'; allowed: shelf, cage, table, box"):
        gantry.problem("sofa", 0)
    with pytest.raises(GpuPlannersError, match="moves the link 'frame'"):
        Maker(replace(gantry.rig, tips=("frame",)), SOME)
    folder = share_folder()
    flat = robots.rig_of("flat", folder / "urdf/planar_arm.urdf", folder, r"joint\d", ["link9"])
    with pytest.raises(GpuPlannersError, match="end effectors of '.*' reach no room"):
        Maker(flat, SOME)
