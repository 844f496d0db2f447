"""CoalScene against the golden values, and its motion bound against finite differences."""

import numpy as np
import pytest

pytest.importorskip("pinocchio", reason="needs pinocchio and coal (extra `test`)")

from benchmarks.problems import load_golden, load_problems, missing_data, robot_files  # noqa: E402
from gpu_planners.verify import CoalScene  # noqa: E402

pytestmark = pytest.mark.skipif(missing_data() is not None, reason=missing_data() or "")


def test_reproduces_the_golden_panda():
    golden, (urdf, srdf) = load_golden(), robot_files("panda")
    bare = CoalScene(urdf, srdf, meshes="hulls")
    assert {frozenset(pair) for pair in bare.pair_names} == {frozenset(pair) for pair in golden["self_pairs"]}
    every = slice(None, None, 8)
    distances = [bare.distance(q) for q in golden["q"][every]]
    np.testing.assert_allclose(distances, golden["min_self_distance"][every], atol=1e-6)
    problems = {(p.family, p.index): p for p in load_problems("panda")}
    compared, scenes = 0, {}
    for i, key in enumerate(zip(golden["family"].tolist(), golden["index"].tolist(), strict=True)):
        if key not in problems:  # golden scenes with an odd index are not in the shared set
            continue
        if key not in scenes:
            anew = CoalScene(urdf, srdf, problems[key].obstacles, meshes="hulls")
            scenes[key] = bare.among(problems[key].obstacles)
            assert scenes[key].pair_names == anew.pair_names
            q = golden["q"][i]
            assert np.array_equal(scenes[key].pair_distances(q), anew.pair_distances(q))
        assert scenes[key].in_collision(golden["q"][i]) == golden["in_collision"][i]
        assert abs(scenes[key].distance(golden["q"][i]) - golden["min_distance"][i]) < 1e-6
        compared += 1
    assert compared == 280


def test_motion_bound_holds():
    """No pair's distance changes faster than its stated bound of relative motion."""
    golden, rng = load_golden(), np.random.default_rng(0)
    problem = load_problems("panda", families=["table_pick"])[0]
    scene = CoalScene(*robot_files("panda"), problem.obstacles, meshes="hulls")
    for q in rng.uniform(golden["lower"], golden["upper"], (100, 7)):
        step = rng.normal(size=7) * 1e-3
        change = np.abs(scene.pair_distances(q + step) - scene.pair_distances(q))
        assert (change <= scene._reach @ np.abs(step) + 1e-6).all()


def test_first_collision_agrees_with_dense_sampling():
    for problem in load_problems("panda")[::70]:
        scene = CoalScene(*robot_files("panda"), problem.obstacles, meshes="hulls")
        path = np.array([problem.start, problem.goals[0]])
        found = scene.first_collision(path)
        fractions = np.linspace(0, 1, 600)
        hits = [f for f in fractions if scene.in_collision(path[0] + f * (path[1] - path[0]))]
        if hits:
            segment, fraction, _, distance = found
            assert segment == 0 and distance <= 0 and fraction <= hits[0]
            assert scene.in_collision(path[0] + fraction * (path[1] - path[0]))
        assert scene.first_collision(path[:1]) is None


def test_ur5_forearm_needs_its_raw_mesh():
    """One hull of the forearm hits the wrist at goals that the mesh allows (README of the data)."""
    hull_free = mesh_free = 0
    for problem in load_problems("ur5")[::25]:
        common = {"joints": problem.joint_names, "fixed": problem.other_joints}
        one_hull = CoalScene(*robot_files("ur5"), problem.obstacles, meshes="hulls", **common)
        mesh = CoalScene(*robot_files("ur5"), problem.obstacles, **common)
        hull_free += not one_hull.in_collision(problem.goals[0])
        mesh_free += not mesh.in_collision(problem.goals[0])
    assert mesh_free == 14 and hull_free <= mesh_free
