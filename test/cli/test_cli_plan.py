"""gpu-planners plan: its motions are free and read back as written, and every mistake is one line and a code."""

import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import yaml
from checkout import ROOT
from pinocchio_poses import pinocchio_poses
from robots_at_hand import maker_of

from gpu_planners import cli
from gpu_planners.arm import load_urdf
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.cli.errors import InputError
from gpu_planners.cli.robots import joints_like
from gpu_planners.cli.trajectory_files import WRITERS, format_of, read_path, sampled

GANTRY = str(ROOT / "urdf" / "gantry.urdf")
START, GOAL = [0.2, 0.0, 0.6, 0.0, 0.0, 0.0], [1.8, 0.1, 0.6, 1.0, 0.3, 0.0]
BOX = {"name": "wall", "type": "box", "size": [0.2, 0.6, 1.1], "position": [1.0, 0.0, 0.75]}
ARRAYS = ("times", "positions", "velocities", "accelerations")


@pytest.fixture
def scene(tmp_path):
    """A scene file with a wall between start and goal."""
    file = tmp_path / "scene.yaml"
    file.write_text(yaml.safe_dump({"obstacles": [BOX]}))
    return str(file)


def words(values):
    return [str(value) for value in values]


def plan(*arguments):
    return cli.main(["plan", GANTRY, "--device", "cpu", *arguments])


def asked(scene, *more):
    return plan("--scene", scene, "--start", *words(START), "--goal", *words(GOAL), *more)


@pytest.fixture(scope="module")
def gantry():
    return load_urdf(GANTRY)


@pytest.fixture(scope="module")
def timed(gantry):
    path = np.array([START, [0.5, 0.4, 0.1, 3.0, 1.0, -0.5], GOAL])
    return time_parameterize(path, gantry.velocity, gantry.acceleration)


def test_the_motion_is_free_and_the_same_in_every_format(scene, capsys, tmp_path):
    written = {}
    for kind in WRITERS:
        assert asked(scene, "--format", kind, "--set", "optimise_s=0", "--seed", "3") == 0
        told = capsys.readouterr()
        written[kind] = told.out
        assert "gantry:" in told.err and "among 1 obstacles" in told.err
    document = json.loads(written["json"])
    assert document["joint_names"] == list(load_urdf(GANTRY).joint_names) and document["seed"] == 3
    rows = list(csv.reader(io.StringIO(written["csv"])))
    assert rows[0][:7] == ["time", *document["joint_names"]]
    table = np.array(rows[1:], float)
    together = np.hstack([np.array(document["times"])[:, None], *(document[name] for name in ARRAYS[1:])])
    assert np.allclose(table, together, atol=1e-6)
    points = yaml.safe_load(written["yaml"])["points"]
    assert np.allclose([point["positions"] for point in points], document["positions"], atol=1e-9)
    stamps = [point["time_from_start"] for point in points]
    assert np.allclose([stamp["sec"] + 1e-9 * stamp["nanosec"] for stamp in stamps], document["times"], atol=1e-9)
    assert np.allclose(document["positions"][0], START) and np.allclose(document["positions"][-1], GOAL)
    assert not np.any(document["velocities"][-1])
    assert len(document["path"]) > 2  # around the wall
    coal = maker_of("gantry").rig.coal_scene([BOX | {"pose": pose_at(BOX["position"])}])
    assert coal.first_collision(np.array(document["path"])) is None


def test_a_pose_goal_is_reached_by_the_tool(tmp_path, capsys):
    T = [1.2, 0.1, 0.9, 1.0, 0.0, 0.0, 0.0]  # half a turn about x: the tool points down
    assert plan("--start", *words(START), "--goal-pose", *words(T), "--format", "json", "-q") == 0
    told = capsys.readouterr()
    assert not told.err
    document = json.loads(told.out)
    pose = pinocchio_poses(GANTRY, document["joint_names"], np.array(document["positions"][-1:]))["gripper_tip"][0]
    assert np.allclose(pose[:3, 3], T[:3], atol=1e-5)
    assert np.allclose(pose[:3, :3], np.diag([1.0, -1.0, -1.0]), atol=1e-5)


def test_a_query_file_holds_start_and_goals(tmp_path, capsys, gantry):
    query = {"start": dict(zip(gantry.joint_names, START)), "goals": [{"position": [1.2, 0.1, 0.9]}, GOAL]}
    (tmp_path / "query.yaml").write_text(yaml.safe_dump(query))
    assert plan("--query", str(tmp_path / "query.yaml"), "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    end = np.array(document["positions"][-1])
    if document["goal_index"] == 1:
        assert np.allclose(end, GOAL)
    else:
        tip = pinocchio_poses(GANTRY, document["joint_names"], end[None])["gripper_tip"][0, :3, 3]
        assert np.allclose(tip, [1.2, 0.1, 0.9], atol=1e-5)


def test_files_are_written_and_read_back(scene, tmp_path, gantry, capsys):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib (extra `view`)")
    pytest.importorskip("viser", reason="the page needs viser (extra `view`)")
    motion, picture, page = (str(tmp_path / name) for name in ("motion.yaml", "motion.png", "motion.html"))
    assert asked(scene, "-o", motion, "--picture", picture, "--view", page, "--every", "0.05") == 0
    assert capsys.readouterr().out == ""
    path, times = read_path(motion, gantry)
    assert np.allclose(path[0], START) and np.allclose(path[-1], GOAL) and np.allclose(np.diff(times)[:-1], 0.05)
    assert (tmp_path / "motion.png").stat().st_size > 20_000
    assert "__VISER_EMBED_DATA__" in (tmp_path / "motion.html").read_text()


@pytest.mark.parametrize("kind", [*WRITERS, "npy", "txt"])
def test_paths_are_read_as_they_were_written(kind, gantry, timed, tmp_path):
    file = tmp_path / f"path.{kind}"
    if kind == "npy":
        np.save(file, timed.positions)
    elif kind == "txt":
        np.savetxt(file, timed.positions)
    else:
        file.write_text(WRITERS[kind](gantry, timed, {}))
    path, times = read_path(file, gantry)
    assert np.allclose(path, timed.positions, atol=1e-6)
    assert times is None if kind in ("npy", "txt") else np.allclose(times, timed.times, atol=1e-6)


def test_columns_are_found_by_name(gantry, timed, tmp_path):
    rows = list(csv.reader(io.StringIO(WRITERS["csv"](gantry, timed, {}))))
    (tmp_path / "turned.csv").write_text("\n".join(",".join(reversed(row)) for row in rows))
    path, times = read_path(tmp_path / "turned.csv", gantry)
    assert np.allclose(path, timed.positions, atol=1e-6) and np.allclose(times, timed.times, atol=1e-6)


def test_samples_lie_on_the_motion(timed):
    even = sampled(timed, 0.01)
    assert np.allclose(np.diff(even.times)[:-1], 0.01) and even.times[-1] == timed.duration
    assert np.allclose(even.positions, timed.at(even.times)[0])
    for every in (0.0, -1.0, np.nan, 1e-9):
        with pytest.raises(InputError, match="--every"):
            sampled(timed, every)


def test_joints_are_chosen_by_patterns():
    assert joints_like(GANTRY, ["wrist_*", "down"]) == ["down", "wrist_turn", "wrist_bend", "wrist_roll"]
    assert joints_like(GANTRY, ["along_y,along_x"]) == ["along_x", "along_y"]
    with pytest.raises(InputError, match="'arm_\\*' fits no joint"):
        joints_like(GANTRY, ["wrist_*", "arm_*"])


def test_the_format_follows_the_file():
    assert [format_of(file, None) for file in ("-", "a.yml", "b.JSON", "c.csv")] == ["csv", "yaml", "json", "csv"]
    with pytest.raises(InputError, match="allowed: .csv"):
        format_of("a.bag", None)


GOOD = ("--start", *words(START), "--goal", *words(GOAL))


@pytest.mark.parametrize(
    "arguments, code, word",
    [
        (("--goal", *words(GOAL)), 2, "no start"),
        (("--start", *words(START)), 2, "0 goals"),
        (("--start", "0.2", "0", "--goal", *words(GOAL)), 2, "2 values"),
        (("--start", "-0.2,.5,-1e-3", "--goal", *words(GOAL)), 2, "3 values"),
        (("--start", "-1e-3", "-.5", "--goal", *words(GOAL)), 2, "2 values"),
        (("--start", "home", "--goal", *words(GOAL)), 2, "'home'"),
        (("--start=0,0,0,0,0,nan", "--goal", *words(GOAL)), 2, "wrist_roll is nan"),
        (("--start", "down=0.3", "--goal", *words(GOAL)), 2, "lacks along_x"),
        (("--start", "elbow=0.3", "--goal", *words(GOAL)), 2, "unknown joints elbow"),
        (("--start", *words(START), "--goal-pose", "1", "2"), 2, "2 values"),
        (("--start", *words(START), "--goal-pose", *words([1, 0, 1, 1, 1, 1, 1])), 2, "length 1"),
        (("--start", *words(START), "--goal-pose", "1", "0", "1", "--frame", "bridge"), 2, "not fixed"),
        ((*GOOD, "--tip", "nose"), 2, "nose"),
        ((*GOOD, "--device", "tpu"), 2, "tpu"),
        ((*GOOD, "--margin=-1"), 2, "margin"),
        ((*GOOD, "--time", "0"), 2, "time_limit_s"),
        ((*GOOD, "--set", "speed=9"), 2, "max_samples"),
        ((*GOOD, "--set", "batch=many"), 2, "batch"),
        ((*GOOD, "--velocity-scaling", "2"), 2, "velocity scaling"),
        ((*GOOD, "--group", "arm"), 2, "no SRDF"),
        ((*GOOD, "-o", "no/such/folder/motion.csv"), 2, "no/such/folder"),
        ((*GOOD, "-o", "motion.bag"), 2, ".bag"),
        ((*GOOD, "--picture", "motion.gif"), 2, ".gif"),
        (("--start", *words([0.2, 0, 5, 0, 0, 0]), "--goal", *words(GOAL)), 3, "down"),
        (("--start", *words(START), "--goal-pose", "9", "0", "1"), 3, "within the joint limits"),
    ],
)
def test_every_mistake_is_one_line_and_a_code(arguments, code, word, capsys):
    assert plan(*arguments) == code
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("error: ") and told.err.count("\n") == 1 and word in told.err


def test_what_collides_is_named(scene, capsys):
    within = [1.0, 0.0, 0.6, 0.0, 0.0, 0.0]
    assert plan("--scene", scene, "--start", *words(START), "--goal", *words(within)) == 3
    assert "wall" in capsys.readouterr().err


def test_a_query_file_with_a_mistake_is_named(tmp_path, capsys):
    for text, word in (
        ("[1, 2]", "mapping"),
        ("start: [0]\nspeed: 1", "speed"),
        ("goals: 3", "mapping"),
        ("{", "YAML"),
    ):
        (tmp_path / "query.yaml").write_text(text)
        assert plan("--query", str(tmp_path / "query.yaml"), *GOOD) == 2
        assert word in capsys.readouterr().err


def test_a_reader_that_has_left_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "gpu_planners.cli", "plan", GANTRY, "--device", "cpu", *GOOD, "-q"]
    planning = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=300)
    os.close(writer)
    assert planning.returncode == 141 and planning.stderr == ""


def pose_at(position):
    T = np.eye(4)
    T[:3, 3] = position
    return T
