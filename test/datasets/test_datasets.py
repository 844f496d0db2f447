"""Data sets: the same rows however they were made, true by coal and pinocchio, and whole or refused."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor

import numpy as np
import pytest
import yaml
from checkout import ROOT
from pinocchio_poses import pinocchio_poses
from robots_at_hand import maker_of

from gpu_planners import cli
from gpu_planners.arm import CollisionChecker, load_urdf, rrt_connect
from gpu_planners.datasets import DatasetError, Draw, Recipe, Timing, check, load, make, making
from gpu_planners.datasets.furniture import FAMILIES
from gpu_planners.datasets.making import resolved
from gpu_planners.datasets.obstacles import Obstacle
from gpu_planners.datasets.problems import ProblemMaker
from gpu_planners.datasets.recipe import model_digest
from gpu_planners.datasets.schema import COLUMNS, digest_of
from gpu_planners.datasets.shards import DIGEST, LOCK, MANIFEST, locked, read_manifest, write_parquet
from gpu_planners.device import cuda_problem
from gpu_planners.errors import SettingsError

pa = pytest.importorskip("pyarrow", reason="data sets need pyarrow (extra `dataset`)")
import pyarrow.parquet as pq  # noqa: E402

GANTRY = str(ROOT / "urdf" / "gantry.urdf")
CPU = ["cpu"]
WALL = {"name": "wall", "type": "box", "size": [0.2, 0.6, 1.1], "position": [1.0, 0.0, 0.75]}


@pytest.fixture(scope="module")
def gantry():
    return load_urdf(GANTRY)


@pytest.fixture(scope="module")
def recipe(gantry):
    source = {"urdf": GANTRY, "package_dirs": [], "fixed": {}}
    return Recipe(gantry, "gripper_tip", source=source, timing=Timing(), draw=Draw(most=8))


@pytest.fixture(scope="module")
def whole(recipe, tmp_path_factory):
    """The folder of a data set of 90 problems in files of 40."""
    folder = tmp_path_factory.mktemp("datasets") / "whole"
    make(recipe, folder, 90, 40, devices=CPU)
    return folder


def rows_of(folder):
    """All that is the same from run to run, as Python's own values."""
    return load(folder).table.drop_columns(["time_s"]).to_pylist()


def copy_of(folder, to):
    to.mkdir()
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


def coal_obstacles(obstacles):
    return [
        {**one._asdict(), "type": one.kind, "radius": one.size[0] / 2, "height": one.size[2], "size": list(one.size)}
        for one in obstacles
    ]


def test_rows_do_not_depend_on_files_or_executors(recipe, whole, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(3) as threads:
        make(recipe, tmp_path / "other", 90, 17, devices=CPU, executor=threads)
    assert rows_of(whole) == rows_of(tmp_path / "other")
    assert [row["number"] for row in rows_of(whole)] == list(range(90))


def test_devices_are_those_of_the_workers_machines(gantry):
    """Whoever hands out the work of a cluster may have no GPU, or fewer."""
    cpu, cuda = (Recipe(gantry, "gripper_tip", device=kind) for kind in ("cpu", "cuda"))
    assert resolved(cpu) == resolved(cpu, executor=Executor()) == ["cpu"]
    assert resolved(cuda, executor=Executor()) == ["cuda:all"]
    assert resolved(cuda, "cuda:0, cuda:7", Executor()) == ["cuda:0", "cuda:7"]
    for devices in ("cpu", "auto"):
        with pytest.raises(SettingsError, match=f"the device is '{devices}', the recipe is for 'cuda'"):
            resolved(cuda, devices, Executor())


@pytest.mark.slow
def test_rows_do_not_depend_on_processes(recipe, whole, tmp_path):
    make(recipe, tmp_path / "other", 90, 40, devices=CPU, workers=2)
    assert rows_of(whole) == rows_of(tmp_path / "other")


@pytest.mark.gpu
@pytest.mark.slow
def test_two_gpus_give_the_rows_of_one(gantry, tmp_path):
    """Problems are those of the CPU; each row is as one GPU made it, whichever planned it."""
    if cuda_problem():
        pytest.skip(cuda_problem())
    from numba import cuda

    devices = [f"cuda:{number}" for number in range(len(cuda.gpus))]
    if len(devices) < 2:
        pytest.skip("there is one CUDA device, two are needed")
    recipe = Recipe(gantry, "gripper_tip", device="cuda")
    make(recipe, tmp_path / "one", 3000, devices=devices[:1])
    make(recipe, tmp_path / "two", 3000, devices=devices[:2])
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "two") and check(tmp_path / "two", gantry).errors == 0
    make(Recipe(gantry, "gripper_tip"), tmp_path / "cpu", 100, devices=CPU)
    assert np.array_equal(load(tmp_path / "cpu").start, load(tmp_path / "two").start[:100])


def test_a_search_is_as_of_a_whole_chunk_however_few_problems_a_file_leaves_of_it(recipe, tmp_path, monkeypatch):
    wholes, solve_part = [], making.solve_part

    def told(batch, device):
        wholes.append(batch.whole)
        return solve_part(batch, device)

    monkeypatch.setattr(making, "solve_part", told)
    make(recipe, tmp_path / "some", 10, 4, devices=CPU)
    assert len(wholes) == 3 and len(set(wholes)) == 1


@pytest.mark.gpu
@pytest.mark.slow
def test_rows_of_a_gpu_do_not_depend_on_files(gantry, tmp_path):
    if cuda_problem():
        pytest.skip(cuda_problem())
    recipe = Recipe(gantry, "gripper_tip", device="cuda")
    for rows in (7, 200):
        make(recipe, tmp_path / str(rows), 200, rows, devices=["cuda"])
    assert rows_of(tmp_path / "7") == rows_of(tmp_path / "200")


def test_another_seed_gives_other_problems(gantry, tmp_path):
    for seed in (0, 1):
        make(Recipe(gantry, "gripper_tip", seed=seed), tmp_path / str(seed), 8, devices=CPU)
    one, other = load(tmp_path / "0"), load(tmp_path / "1")
    assert not set(map(tuple, one.start)) & set(map(tuple, other.start)) and not set(one.seed) & set(other.seed)


def test_no_two_seeds_share_a_problem(gantry):
    drawn = {
        tuple(maker.problem(number).start)
        for seed in (0, 1, 5, 2**32, 2**32 + 5, 2**63 - 1)
        for maker in [ProblemMaker(Recipe(gantry, "gripper_tip", seed=seed))]
        for number in (0, 1, 2, 3, 2**32)
    }
    assert len(drawn) == 30


def test_starts_and_goals_are_apart_by_what_is_asked_for(gantry):
    """Of the mean distance; two joints of the gantry turn without end, and go the short way."""
    maker = ProblemMaker(Recipe(gantry, "gripper_tip", draw=Draw(least=0, most=0, apart=0.0)))
    drawn = [maker.problem(number) for number in range(300)]
    change = np.abs([problem.goals[0] - problem.start for problem in drawn])
    change = np.where(gantry.continuous, np.minimum(change, 2 * np.pi - change), change)
    mean = np.linalg.norm(change, axis=1).mean()
    maker = ProblemMaker(Recipe(gantry, "gripper_tip", draw=Draw(least=0, most=0, apart=1.0)))
    change = np.abs([(one := maker.problem(number)).goals[0] - one.start for number in range(300)])
    change = np.where(gantry.continuous, np.minimum(change, 2 * np.pi - change), change)
    assert np.isclose(np.linalg.norm(change, axis=1).min(), mean, rtol=0.1)


def test_it_grows_and_goes_on(recipe, whole, tmp_path):
    make(recipe, tmp_path / "grown", 50, 40, devices=CPU)
    before = (tmp_path / "grown" / "problems-000000.parquet").stat().st_mtime_ns
    make(recipe, tmp_path / "grown", 90, 40, devices=CPU)
    assert rows_of(tmp_path / "grown") == rows_of(whole)
    assert (tmp_path / "grown" / "problems-000000.parquet").stat().st_mtime_ns == before


def test_what_is_missing_or_damaged_is_made_again(recipe, whole, tmp_path):
    folder = copy_of(whole, tmp_path / "copy")
    files = sorted(folder.glob("problems-*"))
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-100])
    (folder / ".problems-000000.parquet.unfinished").write_bytes(b"PAR1")
    with pytest.raises(DatasetError, match="not whole.*is not there"):
        load(folder)
    assert set(load(folder, partial=True).number) == set(range(80, 90))
    told = []
    make(recipe, folder, 90, 40, devices=CPU, told=lambda rows, _: told.append(rows))
    assert told[0] == 10 and told[-1] == 90
    assert rows_of(folder) == rows_of(whole) and not list(folder.glob("*.unfinished"))


def test_a_file_in_the_place_of_another_is_made_again(recipe, whole, tmp_path):
    folder = copy_of(whole, tmp_path / "copy")
    (folder / "problems-000001.parquet").write_bytes((folder / "problems-000000.parquet").read_bytes())
    columns = pq.read_table(folder / "problems-000002.parquet").drop_columns(["cost"])
    pq.write_table(columns, folder / "problems-000002.parquet")
    with pytest.raises(DatasetError, match="'problems-000001.parquet' holds other problems"):
        load(folder)
    assert set(load(folder, partial=True).number) == set(range(40))
    make(recipe, folder, 90, 40, devices=CPU)
    assert rows_of(folder) == rows_of(whole)


def test_bits_that_flipped_are_found(whole, tmp_path):
    data, rng, file = (whole / "problems-000000.parquet").read_bytes(), np.random.default_rng(5), tmp_path / "flipped"
    rows, seen, footer = pq.read_table(whole / "problems-000000.parquet"), set(), int.from_bytes(data[-8:-4], "little")
    for place in (*rng.integers(len(data) - footer, size=20), *(len(data) - 9 - rng.integers(footer, size=60))):
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(flipped)
        try:
            seen.add(load(file).table.equals(rows))
        except DatasetError:
            seen.add("refused")
        assert place >= len(data) - footer - 8 or False not in seen  # what stands before the footer has checksums
    assert "refused" in seen


def test_a_folder_without_rows_takes_any_recipe(gantry, tmp_path):
    with pytest.raises(SettingsError, match="margin of a data set is -1.0"):
        Recipe(gantry, "gripper_tip", margin=-1.0)
    for seed, problems in ((0, 40), (1, 2)):  # the first run was ended before its first file was there
        make(Recipe(gantry, "gripper_tip", seed=seed), tmp_path / "set", problems, devices=CPU)
        for file in (tmp_path / "set").glob("problems-*"):
            file.unlink()
    assert read_manifest(tmp_path / "set")["recipe"]["seed"] == 1


def test_a_folder_has_no_more_files_than_it_can_hold(recipe, tmp_path):
    with pytest.raises(DatasetError, match="1000000000 files; allowed: 1000000, so from 1000000 rows a file"):
        make(recipe, tmp_path / "huge", 10**12, devices=CPU)
    assert not (tmp_path / "huge").exists()


def test_robots_that_move_differently_have_other_digests(tmp_path):
    joint = """<robot name="spin"><link name="base"/><link name="arm"/><joint name="j" type="{}">
        <parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
        <limit lower="-3.141592653589793" upper="3.141592653589793" effort="1" velocity="1"/></joint></robot>"""
    digests = set()
    for kind in ("revolute", "continuous"):
        (tmp_path / "robot.urdf").write_text(joint.format(kind))
        digests.add(model_digest(load_urdf(tmp_path / "robot.urdf")))
    assert len(digests) == 2


def test_a_folder_that_is_a_file_is_refused(recipe, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetError, match="is a file; allowed: a folder"):
        make(recipe, tmp_path / "file", 90, 40, devices=CPU)


def test_another_recipe_is_refused_with_what_differs(recipe, whole, gantry):
    from dataclasses import replace

    for other, word in (
        (replace(recipe, seed=3), "seed was 0, is 3"),
        (replace(recipe, draw=Draw(most=9)), "draw.most was 8, is 9"),
        (replace(recipe, timing=None), "timing was"),
        (replace(recipe, settings=rrt_connect.Settings(range=1.0)), "planner"),
        (replace(recipe, scenes=(("one", ()),)), "scenes was 'random'"),
        (replace(recipe, margin=0.01), "margin_m was 0.0, is 0.01"),
    ):
        with pytest.raises(DatasetError, match=word):
            make(other, whole, 90, 40, devices=CPU)
    with pytest.raises(DatasetError, match="rows was 40, is 41"):
        make(recipe, whole, 90, 41, devices=CPU)
    with pytest.raises(DatasetError, match="90 problems, not of 89"):
        make(recipe, whole, 89, 40, devices=CPU)


def test_two_runs_do_not_write_one_folder(recipe, whole):
    with locked(whole), pytest.raises(DatasetError, match="another run is writing"):
        make(recipe, whole, 90, 40, devices=CPU)


def test_a_full_disk_leaves_nothing_half_written(recipe, tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    make(recipe, tmp_path / "full", 20, 20, devices=CPU)
    with monkeypatch.context() as patched:
        patched.setattr("gpu_planners.datasets.shards.os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            make(recipe, tmp_path / "full", 40, 20, devices=CPU)
    assert {file.name for file in (tmp_path / "full").iterdir()} == {LOCK, MANIFEST, "problems-000000.parquet"}
    assert make(recipe, tmp_path / "full", 20, 20, devices=CPU).missing() == []


@pytest.mark.parametrize("robot", ["panda", pytest.param("tiago", marks=pytest.mark.slow)])
def test_paths_and_poses_are_true_by_coal_and_pinocchio(robot, tmp_path):
    rig = maker_of(robot).rig
    make(Recipe(rig.model, rig.tips[0], draw=Draw(most=10, tilted=True)), tmp_path / "set", 24, devices=CPU)
    data = load(tmp_path / "set")
    assert data.joint_names == rig.model.joint_names and data.solved.sum() > 12
    for row in np.flatnonzero(data.solved)[::3]:
        scene, path = rig.coal_scene(coal_obstacles(data.obstacles_of(row))), data.path(row)
        assert scene.first_collision(path, tolerance=1e-5) is None
        assert np.array_equal(path[0], data.start[row]) and np.allclose(path[-1], data.goal[row])
        assert np.isclose(np.linalg.norm(np.diff(path, axis=0), axis=1).sum(), data.cost[row])
        for pose, q in ((data.start_pose[row], path[0]), (data.goal_pose[row], path[-1])):
            T = pinocchio_poses(rig.urdf, data.joint_names, q[None], rig.fixed)[rig.tips[0]][0]
            assert np.allclose(T[:3, 3], pose[:3], atol=1e-6)
            x, y, z, w = pose[3:]
            assert np.allclose(T[:3, 2], [2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)], atol=1e-6)


def test_pose_goals_put_the_tool_at_one_place(gantry, tmp_path):
    draw = Draw(goals="pose", solutions=3, straight=False)
    make(Recipe(gantry, "gripper_tip", draw=draw), tmp_path / "set", 12, devices=CPU)
    data = load(tmp_path / "set")
    counts = np.diff(data.offsets("goals"))
    assert counts.max() > 1
    for row in range(len(data)):
        if data.status[row] in ("no free start", "no free goal"):
            continue
        poses = pinocchio_poses(GANTRY, data.joint_names, data.of("goals", row))["gripper_tip"]
        assert np.abs(poses - poses[0]).max() < 1e-5
        checker = CollisionChecker(gantry, data.world(row), "cpu")
        assert checker.configurations_valid(data.of("goals", row)).all()
        assert not checker.motions_valid(data.start[row : row + 1], data.of("goals", row)[:1])[0]


def test_motions_keep_the_limits_and_the_path(whole, gantry, tmp_path):
    data = load(whole)
    for row in np.flatnonzero(data.solved)[:10]:
        times, positions = data.of("times", row), data.of("positions", row)
        assert times[0] == 0 and (np.diff(times) > 0).all()
        assert np.allclose(positions[[0, -1]], data.path(row)[[0, -1]])
        assert (np.abs(np.diff(positions, axis=0)) <= gantry.velocity * np.diff(times)[:, None] * (1 + 1e-6)).all()
        assert (np.abs(data.of("accelerations", row)) <= gantry.acceleration * (1 + 1e-6)).all()
    sampled = Recipe(gantry, "gripper_tip", timing=Timing(every_s=0.05, velocity=0.5, deviation=0.05))
    make(sampled, tmp_path / "sampled", 4, devices=CPU)
    data = load(tmp_path / "sampled")
    row = int(np.flatnonzero(data.solved)[0])
    assert np.allclose(np.diff(data.of("times", row))[:-1], 0.05)
    assert (np.abs(data.of("velocities", row)) <= 0.5 * gantry.velocity * (1 + 1e-6)).all()


def test_arrays_agree_with_the_rows(whole):
    data, rows = load(whole), rows_of(whole)
    assert len(data) == 90 and data.start.shape == (90, 6) and data.start_pose.shape == (90, 7)
    assert [row["status"] == "solved" for row in rows] == data.solved.tolist()
    row = int(np.flatnonzero(data.solved)[-1])
    assert np.array_equal(data.path(row), rows[row]["waypoints"]) and np.array_equal(
        data.start[row], rows[row]["start"]
    )
    even = data.resampled(30, [row])[0]
    assert np.allclose(even[[0, -1]], data.path(row)[[0, -1]])
    steps = np.linalg.norm(np.diff(even, axis=0), axis=1)
    assert steps.max() <= data.cost[row] / 29 * (1 + 1e-9)
    for kind in ("box", "cylinder", "sphere"):
        padded = data.padded_obstacles(kind)
        for row in range(0, 90, 7):
            own = [one for one in data.obstacles_of(row) if one.kind == kind]
            assert padded["there"][row].sum() == len(own)
            assert np.array_equal(padded["size"][row][: len(own)], np.array([one.size for one in own]).reshape(-1, 3))
            assert np.array_equal(
                padded["quat_xyzw"][row][: len(own)], np.array([o.quat_xyzw for o in own]).reshape(-1, 4)
            )
    with pytest.raises(DatasetError, match="no path"):
        data.resampled(30, np.flatnonzero(~data.solved)[:1]) if not data.solved.all() else data.resampled(1)
    with pytest.raises(DatasetError, match="from 2"):
        data.resampled(1)
    with pytest.raises(AttributeError, match="it has number"):
        data.speed  # noqa: B018


def test_readers_of_parquet_take_the_folder(whole):
    assert pq.read_table(whole).num_rows == 90


def test_a_file_alone_and_chosen_columns(whole):
    assert len(load(whole / "problems-000002.parquet")) == 10
    assert load(whole, columns=["start", "cost"]).columns == ["start", "cost"]
    with pytest.raises(DatasetError, match="no column 'speed'; it has number"):
        load(whole, columns=["speed"])


def test_what_is_no_data_set_or_of_another_version_is_refused(whole, tmp_path):
    (tmp_path / "text.parquet").write_text("PAR1")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "foreign.parquet")
    folder = copy_of(whole, tmp_path / "future")
    manifest = json.loads((folder / MANIFEST).read_text())
    for change, word in (
        ({"recipe": {}}, "its 'recipe' is not what was written"),
        ({"recipe": manifest["recipe"] | {"robot": 3}}, "its 'recipe.robot' is not"),
        ({"source": [1]}, "its 'source' is not"),
        ({"problems": 10**15}, "problems is 1000000000000000; allowed"),
    ):
        (folder / MANIFEST).write_text(json.dumps(manifest | change))
        for read in (load, check):
            with pytest.raises(DatasetError, match=word):
                read(folder)
    (folder / MANIFEST).write_text(json.dumps(manifest | {"format": 2}))
    for path, word in (
        (tmp_path, "no data set: it has no _dataset.json"),
        (tmp_path / "nowhere", "cannot be read"),
        (tmp_path / "text.parquet", "cannot be read"),
        (tmp_path / "foreign.parquet", "no file of a data set"),
        (folder, "format 2; this version reads format 1"),
    ):
        with pytest.raises(DatasetError, match=word):
            load(path)


def test_the_check_agrees(whole):
    report = check(whole)
    assert report.rows == 90 and report.errors == 0 and report.texts == [] and sum(report.counts.values()) == 90


def changed(folder, to, change):
    """A copy in which rows of the first file are changed by change(list of rows)."""
    folder = copy_of(folder, to)
    file = folder / "problems-000000.parquet"
    table = pq.read_table(file)
    rows = table.to_pylist()
    change(rows)
    changed = pa.Table.from_pylist(rows, schema=table.schema)
    write_parquet(changed.replace_schema_metadata(table.schema.metadata | {DIGEST: digest_of(changed)}), file)
    return folder


def wall_in_the_way(row):
    """The tool's place in the middle of the first leg becomes a box."""
    middle = np.mean(row["waypoints"][:2], axis=0)
    tip = pinocchio_poses(GANTRY, load_urdf(GANTRY).joint_names, middle[None])["gripper_tip"][0, :3, 3]
    box = {"name": "late", "kind": "box", "size": [0.05] * 3, "position": tip.tolist(), "quat_xyzw": [0, 0, 0, 1.0]}
    row["obstacles"].append(box | {"vertices": []})


def first_solved(rows):
    return next(row for row in rows if row["status"] == "solved")


@pytest.mark.parametrize(
    "change, word",
    [
        (lambda rows: rows[5].update(number=4), "is of problem 4; expected: 5"),
        (lambda rows: rows.pop(), "has 39 rows; expected: 40: problems 0 to 39 are missing"),
        (lambda rows: wall_in_the_way(first_solved(rows)), "not free"),
        (lambda rows: first_solved(rows)["waypoints"].pop(), "does not lead from its start to its goal"),
        (lambda rows: first_solved(rows).update(cost=1e9), "its cost is 1e+09"),
        (lambda rows: first_solved(rows).update(status="time limit reached"), "its path has"),
        (lambda rows: first_solved(rows).update(status="perhaps"), "no such status"),
        (lambda rows: first_solved(rows).update(goal_pose=[0.0] * 6 + [1.0]), "goal_pose is not that of the tool"),
        (lambda rows: first_solved(rows)["times"].reverse(), "times do not grow"),
    ],
)
def test_the_check_finds_each_error(whole, tmp_path, change, word):
    report = check(changed(whole, tmp_path / "copy", change))
    assert report.errors and any(word in text for text in report.texts), report.texts


@pytest.mark.parametrize("name", ["samples", "seed", "message", "time_s", "scene", "obstacles", "velocities"])
def test_the_check_finds_each_changed_number(whole, tmp_path, name):
    folder = copy_of(whole, tmp_path / "copy")
    file = folder / "problems-000000.parquet"
    table = pq.read_table(file)
    rows = table.to_pylist()
    row = first_solved(rows)
    if name == "obstacles":
        row[name][0]["size"][0] *= 0.99
    elif name == "velocities":
        row[name][0][0] += 1e-9
    else:
        row[name] += "." if name == "message" else 1
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), file)
    report = check(folder)
    assert report.texts == ["'problems-000000.parquet' was changed since it was written, so that no row counts"]
    assert report.rows == 50


def test_the_check_finds_gaps_and_strangers_and_another_robot(whole, tmp_path):
    folder = copy_of(whole, tmp_path / "copy")
    (folder / "problems-000001.parquet").rename(folder / "problems-000009.parquet")
    texts = check(folder).texts
    assert any("problems 40 to 79 are missing" in text for text in texts)
    assert any("'problems-000009.parquet' belongs to no problem" in text for text in texts)
    with pytest.raises(DatasetError, match="is not the one of the data set"):
        check(folder, load_urdf(str(ROOT / "urdf/desk_arm.urdf")))


def test_rows_say_why_there_is_no_problem(gantry, tmp_path):
    room = Obstacle("room", "box", (50.0,) * 3, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    make(Recipe(gantry, "gripper_tip", scenes=(("full", (room,)),)), tmp_path / "full", 3, devices=CPU)
    data = load(tmp_path / "full")
    assert (data.status == "no free start").all() and all("meets 'room'" in text for text in data.message)
    assert np.isnan(data.start).all() and np.isnan(data.goal).all() and not data.solved.any()
    make(Recipe(gantry, "gripper_tip", draw=Draw(apart=2.0)), tmp_path / "far", 3, devices=CPU)
    data = load(tmp_path / "far")
    assert (data.status == "no free goal").all() and all("too near" in text for text in data.message)
    for name in ("full", "far"):
        assert check(tmp_path / name, gantry).errors == 0


def test_furniture_stands_where_the_tool_reaches_into_it(gantry, tmp_path):
    draw = Draw(furniture=tuple(FAMILIES), ends="furniture", per_scene=3)
    make(recipe := Recipe(gantry, "gripper_tip", draw=draw), tmp_path / "whole", 90, 45, devices=CPU)
    make(recipe, tmp_path / "other", 90, 7, devices=CPU)
    data = load(tmp_path / "whole")
    assert rows_of(tmp_path / "whole") == rows_of(tmp_path / "other") and check(tmp_path / "whole", gantry).errors == 0
    assert data.solved.mean() > 0.8
    maker = ProblemMaker(recipe)
    for row in np.flatnonzero(data.solved):
        scene = maker.scene(int(data.number[row]))
        assert data.obstacles_of(row) == scene.obstacles and len(scene.obstacles) >= 4
        low, high, turn, origin = scene.places
        for pose in (data.start_pose[row], data.goal_pose[row]):
            at = turn.T @ (pose[:3] - origin)
            assert ((low < at) & (at < high)).all(axis=1).any()
    loose = Recipe(gantry, "gripper_tip", draw=Draw(furniture=("table",)))
    make(loose, tmp_path / "loose", 8, devices=CPU)
    assert {"plate"} <= {one.name for one in load(tmp_path / "loose").obstacles_of(0)}


def test_wrong_recipes_are_refused(gantry):
    for settings, word in (
        (dict(seed=-1), "seed of a data set is -1"),
        (dict(seed=1.5), "seed"),
        (dict(device="tpu"), "tpu"),
        (dict(settings=rrt_connect.Settings(optimise_s=1.0)), "optimise_s"),
        (dict(timing=Timing(every_s=1e-6, velocity=1e-3)), "every_s is 1e-06, but .* for 100000 times"),
    ):
        with pytest.raises(SettingsError, match=word):
            Recipe(gantry, "gripper_tip", **settings)
    for values in (
        dict(least=5, most=4),
        dict(kinds=()),
        dict(kinds=("cone",)),
        dict(apart=float("nan")),
        dict(tries=1),
        dict(furniture=("sofa",)),
        dict(ends="furniture"),
    ):
        with pytest.raises(SettingsError, match="Draw"):
            Draw(**values)


def test_docs_have_the_columns():
    text = (ROOT / "docs/datasets.md").read_text()
    for column in COLUMNS:
        assert f"| `{column.name}` | {column.unit} | {column.text} |" in text, column.name
    for name, rule in (*Draw.rules.items(), *Timing.rules.items()):
        assert f"| `{name}` | " in text and rule.text in text, name


# The command


def command(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "gpu_planners.cli", "dataset", *map(str, arguments)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def test_the_command_makes_checks_and_tells(tmp_path, capsys):
    (tmp_path / "scene.yaml").write_text(yaml.safe_dump({"obstacles": [WALL]}))
    problems = {"problems": {"table": [{"obstacles": [WALL]}, {"obstacles": []}]}}
    (tmp_path / "set.json").write_text(json.dumps(problems))
    folder, scenes = str(tmp_path / "out"), [str(tmp_path / "scene.yaml"), str(tmp_path / "set.json")]
    asked = [
        "dataset",
        GANTRY,
        "-n",
        "12",
        "--rows",
        "8",
        "--devices",
        "cpu",
        "--scenes",
        *scenes,
        "--draw",
        "apart=1e-3",
    ]
    assert cli.main([*asked, "-o", folder, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "12 problems in 2 files" in told and "a row" in told and not (tmp_path / "out").exists()
    assert cli.main([*asked, "-o", folder]) == 0
    assert re.search(r"12 problems in 2 files, .* plans/s", capsys.readouterr().err)
    assert set(load(folder).scene) <= {0, 1, 2} and load(folder).facts["recipe"]["scenes"]["count"] == 3
    assert [name.rpartition("/")[2] for name in read_manifest(folder)["source"]["scenes"]] == ["scene.yaml", "0", "1"]
    again = asked[: asked.index("--scenes")] + ["--draw", "apart=1e-3", "-o", folder]
    again += ["--scenes", str(tmp_path / "." / "scene.yaml"), "--scenes", os.path.relpath(tmp_path / "set.json")]
    assert cli.main(again) == 0 and "nothing new" in capsys.readouterr().err
    assert cli.main([*asked, "-o", folder, "--seed", "4"]) == 2 and "seed was 0, is 4" in capsys.readouterr().err
    assert cli.main(["dataset", "--check", folder]) == 0 and "12 rows are true" in capsys.readouterr().err
    (tmp_path / "out" / "problems-000001.parquet").unlink()
    assert cli.main(["dataset", "--check", folder]) == 1
    told = capsys.readouterr()
    assert "problems 8 to 11 are missing" in told.out and "1 errors in 8 of 12 rows" in told.err


def test_ctrl_c_while_the_command_is_imported_is_a_code(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("gpu_planners.cli.importlib.import_module", interrupted)
    assert cli.main(["dataset"]) == 130


@pytest.mark.parametrize(
    "arguments, word",
    [
        ((), "no robot"),
        ((GANTRY,), "give --problems"),
        ((GANTRY, "-n", "0"), "the number of problems is 0"),
        ((GANTRY, "-n", "5", "--rows", "0", "--dry-run"), "the number of rows is 0"),
        ((GANTRY, "-n", "5", "--workers", "-1", "--dry-run"), "workers is -1"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--scenes", "{nothing}"), "has no problems"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--timing", "every_s=-1", "--timing", "velocity=1"), "every_s"),
        ((GANTRY, "-n", "5"), "--output"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--rows", "0"), "rows is 0"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--draw", "most=nan"), "Draw.most"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--draw", "apart=.nan"), "Draw.apart is nan"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--draw", "speed=1"), "per_scene"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--draw", "kinds=cone"), "box, cylinder, sphere"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--timing", "every_s=-1"), "every_s"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--set", "optimise_s=1"), "optimise_s"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--devices", "tpu"), "tpu"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--workers", "-1"), "workers is -1"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--seed", "-1"), "seed of a data set is -1"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--margin", "nan"), "margin"),
        ((GANTRY, "-n", "5", "-o", "{out}", "--tip", "nose"), "nose"),
        (("--check", "{out}"), "no data set"),
    ],
)
def test_every_mistake_is_one_line_and_a_code(arguments, word, capsys, tmp_path):
    (nothing := tmp_path / "nothing.json").write_text('{"problems": {}}')
    assert cli.main(["dataset", *(word.format(out=tmp_path / "out", nothing=nothing) for word in arguments)]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("error: ") and told.err.count("\n") == 1 and word in told.err
    assert not list((tmp_path / "out").glob("problems-*"))


def test_where_nothing_can_be_written_the_command_says_so(tmp_path):
    code = (
        "import resource, sys; from gpu_planners import cli\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000)); sys.exit(cli.main())"
    )
    asked = ["dataset", GANTRY, "-n", "300", "--rows", "300", "--devices", "cpu", "-o", str(tmp_path / "out")]
    # -B: else Python writes its own files cut off, too
    ended = subprocess.run([sys.executable, "-B", "-c", code, *asked], capture_output=True, text=True, timeout=200)
    assert ended.returncode == 1 and ended.stderr.count("\n") == 1 and "File too large" in ended.stderr, ended.stderr
    assert not list((tmp_path / "out").glob("*problems*"))
    (tmp_path / "file").write_text("")
    assert cli.main(["dataset", GANTRY, "-n", "3", "--devices", "cpu", "-o", str(tmp_path / "file" / "out")]) == 1


@pytest.mark.slow
def test_a_run_that_is_ended_again_and_again_gives_the_same_rows(gantry, tmp_path):
    """At random moments, by kill -9 and by Ctrl-C, with worker processes and without."""
    make(Recipe(gantry, gantry.tip_link, draw=Draw(per_scene=2), timing=Timing()), tmp_path / "whole", 300, devices=CPU)
    asked = [GANTRY, "-n", 300, "--rows", 20, "--devices", "cpu", "--draw", "per_scene=2", "--timing"]
    rng, ended, folder = np.random.default_rng(), 0, tmp_path / "ended"
    for workers, how in ((0, signal.SIGKILL), (2, signal.SIGKILL), (0, signal.SIGINT), (2, signal.SIGINT)):
        run = command(*asked, "-o", folder, "--workers", workers, start_new_session=True)
        end, begun = time.monotonic() + 120, len(list(folder.glob("problems-*")))
        while len(list(folder.glob("problems-*"))) == begun and run.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.4))
        if run.poll() is None:
            ended += 1
            run.send_signal(how) if how == signal.SIGKILL else os.killpg(run.pid, how)  # as a terminal does
        _, told = run.communicate(timeout=60)  # its workers, who share the pipe, have ended, too
        if how == signal.SIGINT and " problems in " not in told:  # else it came when all was done
            assert run.returncode == 130 and told.count("\n") == 1 and "goes on" in told, told
    assert ended
    _, told = (run := command(*asked, "-o", folder)).communicate(timeout=300)
    assert run.returncode == 0, told
    assert rows_of(folder) == rows_of(tmp_path / "whole")
    assert all(file.name in (LOCK, MANIFEST) or file.suffix == ".parquet" for file in folder.iterdir())
