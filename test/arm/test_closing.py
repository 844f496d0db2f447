"""How long a configuration stays free along a motion: never longer than coal says, whatever joints the robot has."""

import numpy as np
import pytest
from random_urdf import random_urdf

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.arm.collision.certify import Question, certify
from gpu_planners.arm.collision.motions import interpolate, prove, set_speeds
from gpu_planners.arm.spaces.interface import END_FREE, REFUSED, Packed, space_of
from gpu_planners.device import njit

SAMPLES = 60  # of coal on each side
MOTIONS = 12  # of each robot


@njit
def free_around(qa, qb, at, space):
    """How far back and ahead the motion qa -> qb is known to be free around `at`; the first is below 0 in collision."""
    scene = Packed(space.floats, space.ints)
    set_speeds(qa, qb, scene, space.scratch, 0)
    interpolate(qa, qb, at, space.scratch.q)
    ask = Question(True, at, at, np.float32(1) - at, True, False)
    return certify(ask, space.scratch.q, scene, space.scratch, 0)


@njit
def looks_at(qa, qb, hint, space):
    return prove(qa, qb, hint, space, 0)


def obstacles_around(rng, robot):
    """Boxes, balls and rods where the robot's shapes come; dicts as `Problem.obstacles`."""
    q = rng.uniform(robot.lower, robot.upper, (12, robot.dof))
    places = robot.frame_poses(q)[:, -1, :3, 3] + rng.normal(0, 0.3, (12, 3))
    found = []
    for i, place in enumerate(places):
        quaternion = rng.normal(size=4)
        obstacle = {"name": f"o{i}", "position": place.tolist(), "quat_xyzw": quaternion / np.linalg.norm(quaternion)}
        size = 10 ** rng.uniform(-3, -0.7, 3)
        kinds = {
            "box": {"size": size.tolist()},
            "sphere": {"radius": size[0]},
            "cylinder": {"radius": 0.3 * size[0], "height": 2 * size[1]},
        }
        kind = rng.choice(list(kinds))
        found.append(obstacle | {"type": kind} | kinds[kind])
    return found


def scenes(seed, folder):
    """-> checker and CoalScene of a random robot, with branches, joints that slide and joints that follow others."""
    pytest.importorskip("coal")
    from gpu_planners.verify import CoalScene

    problems = pytest.importorskip("benchmarks.problems")
    rng = np.random.default_rng(seed)
    file = folder / f"{seed}.urdf"
    file.write_text(random_urdf(rng, int(rng.integers(2, 9)), shapes=True))
    robot = load_urdf(file)
    links = [robot.link_names[i] for i in robot.shape_link]
    pairs = [(links[i], links[j]) for i, j in robot.self_collision_pairs]
    found = obstacles_around(rng, robot)
    checker = CollisionChecker(robot, problems.add_obstacles(CollisionWorld(), found), "cpu")
    return rng, checker, CoalScene(file, None, found, joints=robot.joint_names, self_pairs=pairs)


@pytest.mark.parametrize("seeds", [range(0, 8), range(8, 16), range(16, 24)], ids=lambda seeds: f"from {seeds[0]}")
def test_what_is_known_to_be_free_is_free(seeds, tmp_path):
    checked, tight = 0, []
    for seed in seeds:
        rng, checker, scene = scenes(seed, tmp_path)
        robot, space = checker.robot, space_of(checker)
        for _ in range(MOTIONS):
            ends = rng.uniform(robot.lower, robot.upper, (2, robot.dof)).astype(np.float32)
            ends[1] = ends[0] + (ends[1] - ends[0]) * np.float32(10 ** rng.uniform(-1.5, 0))
            at = np.float32(rng.random())
            back, ahead = free_around(*ends, at, space)
            if back < 0:
                continue
            for span, side in ((back, -1), (ahead, 1)):
                shares = np.float64(at) + side * span * np.linspace(0, 1, SAMPLES)
                gaps = [scene.distance(ends[0] + share * (ends[1] - ends[0])) for share in shares]
                assert min(gaps) > 0, f"robot {seed}: {min(gaps)} m within {span} of {at}"
                most = at if side < 0 else 1 - at
                if span < most:
                    tight.append(min(gaps) / max(gaps[0], 1e-9))
            checked += 1
    assert checked > 20 and np.percentile(tight, 25) < 0.8, "the bounds say next to nothing"


@pytest.mark.parametrize("seed", range(100, 106))
def test_what_is_proven_is_free_and_few_looks_prove_it(seed, tmp_path):
    rng, checker, scene = scenes(seed, tmp_path)
    robot, space = checker.robot, space_of(checker)
    a = rng.uniform(robot.lower, robot.upper, (40, robot.dof)).astype(np.float32)
    b = (a + rng.uniform(-0.5, 0.5, a.shape)).clip(robot.lower, robot.upper).astype(np.float32)
    looks = []
    for qa, qb in zip(a, b):
        free, count = looks_at(qa, qb, END_FREE, space)
        if free:
            looks.append(count)
            assert scene.first_collision([qa, qb], 0.0005) is None
    assert not looks or np.mean(looks) < 12


def test_collisions_that_are_kept_change_no_verdict_and_save_looks(tmp_path):
    fresh, kept = [], []
    for seed in range(100, 104):
        rng, checker, _ = scenes(seed, tmp_path)
        robot, space = checker.robot, space_of(checker)
        ends = rng.uniform(robot.lower, robot.upper, (2, 8, 1, robot.dof))
        ends = (ends + rng.normal(0, 0.1, (2, 8, 12, robot.dof))).clip(robot.lower, robot.upper)  # neighbours in turn
        for qa, qb in zip(*ends.astype(np.float32).reshape(2, -1, robot.dof)):
            fresh.append(looks_at(qa, qb, END_FREE, space_of(checker)))
            kept.append(looks_at(qa, qb, REFUSED, space))
    fresh, kept = np.array(fresh), np.array(kept)
    assert (fresh[:, 0] == kept[:, 0]).all() and 0 < fresh[:, 0].sum() < len(fresh)
    refused = fresh[:, 0] == 0
    assert kept[refused, 1].sum() < 0.8 * fresh[refused, 1].sum()
