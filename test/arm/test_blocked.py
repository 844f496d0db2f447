"""What a search without a path says of the bodies that stopped it, against coal."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, prm, rrt, rrt_connect, rrt_star
from gpu_planners.arm import upright as upright_motions
from gpu_planners.arm.planners import blocked
from gpu_planners.arm.planners.blocked import KEPT, explained
from gpu_planners.arm.planners.result import Status
from gpu_planners.device import cuda_problem

needs_gpu = pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")
URDF, SRDF = (Path(__file__).parents[2] / "urdf" / f"desk_arm.{kind}" for kind in ("urdf", "srdf"))
WALLS = {"right": ([1.0, 0.02, 4.0], [0.65, 0, 0]), "left": ([1.0, 0.02, 4.0], [-0.65, 0, 0])}
CEILING = {"ceiling": ([3.0, 3.0, 0.02], [0, 0, 0.8])}  # keeps the arm from passing above
FEW = {"max_samples": 1500, "time_limit_s": 3600.0}
PLANNERS = {"rrt_connect": rrt_connect, "rrt": rrt, "rrt_star": rrt_star, "prm": prm}


def split_room(device="cpu"):
    """A checker of the desk arm among boxes that no way leads through, and a start and a goal on their two sides."""
    robot, world = load_urdf(URDF, SRDF), CollisionWorld()
    for name, (size, position) in {**WALLS, **CEILING}.items():
        pose = np.eye(4)
        pose[:3, 3] = position
        world.add_box(name, size, pose)
    checker = CollisionChecker(robot, world, device)
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (4000, robot.dof))
    q = q[checker.configurations_valid(q)]
    y = robot.link_poses(q)[robot.tip_link][:, 1, 3]
    return checker, q[np.argmax(y > 0.3)], q[np.argmax(y < -0.3)]


def coal_counts(motions):
    """Counter of the pairs of bodies that coal finds where each motion first meets any; of 400 places of a motion."""
    verify = pytest.importorskip("gpu_planners.verify.scene", reason="needs pinocchio and coal")
    identity = [0.0, 0.0, 0.0, 1.0]
    obstacles = [
        {"type": "box", "name": name, "size": size, "position": position, "quat_xyzw": identity}
        for name, (size, position) in {**WALLS, **CEILING}.items()
    ]
    scene, counts = verify.CoalScene(URDF, SRDF, obstacles), Counter()
    for a, b in motions:
        for share in np.linspace(0, 1, 401):
            meets = np.flatnonzero(scene.pair_distances(a + share * (b - a)) < 0)
            if len(meets):
                counts.update({_links(scene.pair_names[i]) for i in meets})
                break
    return counts


def _links(pair):
    return frozenset(name if name in {**WALLS, **CEILING} else name.rsplit("_", 1)[0] for name in pair)


@pytest.mark.parametrize("name", PLANNERS)
def test_failure_names_the_bodies_that_stopped_it(name):
    checker, start, goal = split_room()
    result = PLANNERS[name].solve(start, goal, checker, PLANNERS[name].Settings(**FEW), seed=3)
    assert result.status is Status.SAMPLES_EXHAUSTED
    assert result.blocked_motions.shape == (KEPT, 2, checker.robot.dof) and len(result.blocked_trees) == KEPT
    assert not checker.motions_valid(result.blocked_motions[:, 0], result.blocked_motions[:, 1]).any()
    ours = {frozenset(pair): share * KEPT for *pair, share in result.blocked}
    theirs = coal_counts(result.blocked_motions)
    # where bodies only graze, or several meet within a 400th of a motion, the two may name different ones
    assert sum(abs(ours.get(pair, 0) - theirs[pair]) for pair in {*ours, *theirs}) <= 0.1 * KEPT
    assert [share for *_, share in result.blocked] == sorted((share for *_, share in result.blocked), reverse=True)
    first, second, _ = result.blocked[0]
    assert f"'{first}' with '{second}'" in result.message and "from the start by" in result.message
    again = PLANNERS[name].solve(start, goal, checker, PLANNERS[name].Settings(**FEW), seed=3)
    assert np.array_equal(result.blocked_motions, again.blocked_motions) and result.blocked == again.blocked


def test_trees_of_both_ends_are_told_apart():
    """Extensions of each tree begin on its own side of the walls."""
    checker, start, goal = split_room()
    result = rrt_connect.solve(start, goal, checker, rrt_connect.Settings(**FEW))
    y = checker.robot.link_poses(result.blocked_motions[:, 0])["gripper_link"][:, 1, 3]
    from_goal = result.blocked_trees == 1
    assert from_goal.any() and not from_goal.all()
    assert np.mean(y[~from_goal] > 0) > 0.9 and np.mean(y[from_goal] < 0) > 0.9


def test_sample_is_uniform_over_the_whole_search():
    """Of many searches of several seeds, as many kept extensions are from the first half as from the second."""
    checker, start, goal = split_room()
    settings = rrt_connect.Settings(**FEW, searches=1)
    half = rrt_connect.Settings(**{**FEW, "max_samples": FEW["max_samples"] // 2}, searches=1)
    kept = total = 0
    for seed in range(12):
        whole, first = (rrt_connect.solve(start, goal, checker, each, seed=seed) for each in (settings, half))
        early = {motion.tobytes() for motion in first.blocked_motions}
        kept += sum(motion.tobytes() in early for motion in whole.blocked_motions)
        total += len(whole.blocked_motions)
    assert 0.35 < kept / total < 0.65  # one half, but for the share of blocked extensions, which changes


def test_batch_leaves_naming_to_the_caller():
    checker, start, goal = split_room()
    (result,) = rrt_connect.solve_batch([start], [goal], checker, rrt_connect.Settings(**FEW))
    assert result.status is Status.SAMPLES_EXHAUSTED and not result.blocked and len(result.blocked_motions) == KEPT
    assert explained(result, checker).blocked


def test_in_large_worlds_the_pairs_of_fewer_motions_are_named(monkeypatch):
    """By how many pairs there are, not by the clock: the same search says the same on a busy machine."""
    checker, start, goal = split_room()
    result = rrt_connect.solve(start, goal, checker, rrt_connect.Settings(**FEW))
    for pairs, motions in ((checker.pair_count // 2, 1), (3 * checker.pair_count, 3)):
        monkeypatch.setattr(blocked, "PAIRS_SEEN", pairs)
        counts = [share * motions for *_, share in explained(result, checker).blocked]
        assert counts and counts == pytest.approx(np.round(counts)) and max(counts) <= motions


def test_upright_motion_names_the_bodies():
    checker, start, goal = split_room()
    robot = checker.robot
    rule = upright_motions.Upright(robot, "tool0", [0, 0, 1], [0, 0, 1], tolerance=3.0)
    settings = upright_motions.Settings(max_samples=200, time_limit_s=3600.0)
    result = upright_motions.solve(start, goal, checker, rule, settings)
    assert result.status is Status.SAMPLES_EXHAUSTED and {"left", "right", "ceiling"} & set(result.blocked[0][:2])


def test_solved_and_refused_queries_name_nothing():
    checker, start, _ = split_room()
    for result in (rrt_connect.solve(start, start, checker), rrt_connect.solve(start, start + 100, checker)):
        assert result.blocked == () and not len(result.blocked_motions) and "extensions" not in result.message


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("name", PLANNERS)
def test_cuda_names_what_the_cpu_names(name):
    checker, start, goal = split_room("cuda")
    settings = PLANNERS[name].Settings(**{**FEW, "max_samples": 20000})
    result = PLANNERS[name].solve(start, goal, checker, settings)
    assert result.status is Status.SAMPLES_EXHAUSTED and len(result.blocked_motions) == KEPT
    assert not checker.on("cpu").motions_valid(result.blocked_motions[:, 0], result.blocked_motions[:, 1]).any()
    ours = {frozenset(pair): share * KEPT for *pair, share in result.blocked}
    theirs = coal_counts(result.blocked_motions)
    assert sum(abs(ours.get(pair, 0) - theirs[pair]) for pair in {*ours, *theirs}) <= 0.1 * KEPT


@pytest.mark.gpu
@needs_gpu
def test_cuda_batch_brings_the_log_of_each_problem():
    checker, start, goal = split_room("cuda")
    settings = rrt_connect.Settings(**{**FEW, "max_samples": 5000})
    results = rrt_connect.solve_batch([start, start, start], [goal, start, goal], checker, settings)
    assert [result.solved for result in results] == [False, True, False]
    for result in (results[0], results[2]):
        assert len(result.blocked_motions) == KEPT
        assert not checker.motions_valid(result.blocked_motions[:, 0], result.blocked_motions[:, 1]).any()
        assert explained(result, checker).blocked
    assert not np.array_equal(results[0].blocked_motions, results[2].blocked_motions)  # of other seeds
