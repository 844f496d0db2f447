"""gpu-planners verify: a free motion ends with 0, one that collides or breaks a limit with 3 and a word on where."""

import sys

import numpy as np
import pytest
import yaml
from checkout import ROOT

pytest.importorskip("coal", reason="needs pinocchio and coal (extra `test`)")
pytest.importorskip("pinocchio", reason="needs pinocchio and coal (extra `test`)")

from gpu_planners import cli

GANTRY = str(ROOT / "urdf" / "gantry.urdf")
JOINTS = ["along_x", "along_y", "down", "wrist_turn", "wrist_bend", "wrist_roll"]
START, GOAL = [0.2, 0.0, 0.3, 0.0, 0.0, 0.0], [1.8, 0.1, 0.3, 1.0, 0.3, 0.0]
BOX = {"name": "wall", "type": "box", "size": [0.2, 0.6, 1.1], "position": [1.0, 0.0, 0.75]}


def written(file, rows=(START, GOAL), times=(0.0, 4.0), names=JOINTS):
    """A motion as `plan` writes it."""
    rows, times = [list(map(float, row)) for row in rows], list(times)
    if file.suffix == ".csv":
        heads = ["time", *names, *(f"{name}_velocity" for name in names)]
        lines = [[t, *row, *[0.0] * len(names)] for t, row in zip(times, rows)]
        file.write_text("\n".join(",".join(map(str, line)) for line in (heads, *lines)))
    elif file.suffix == ".json":
        file.write_text(yaml.safe_dump({"joint_names": list(names), "times": times, "positions": rows}))
    elif file.suffix == ".yaml":
        stamps = [{"sec": int(t), "nanosec": round(1e9 * (t % 1))} for t in times]
        points = [{"positions": row, "time_from_start": stamp} for row, stamp in zip(rows, stamps)]
        file.write_text(yaml.safe_dump({"joint_names": list(names), "points": points}))
    else:
        np.savetxt(file, rows)
    return str(file)


@pytest.fixture
def scene(tmp_path):
    (tmp_path / "scene.yaml").write_text(yaml.safe_dump({"obstacles": [BOX]}))
    return str(tmp_path / "scene.yaml")


@pytest.mark.parametrize("kind", ["csv", "json", "yaml", "txt"])
def test_a_free_motion_is_free_and_a_wall_is_met(kind, scene, tmp_path, capsys):
    motion = written(tmp_path / f"motion.{kind}")
    assert cli.main(["verify", GANTRY, motion]) == 0
    told = capsys.readouterr()
    assert "gantry: 6 joints" in told.out and "free" in told.out and "within the limits" in told.out and not told.err
    assert cli.main(["verify", GANTRY, motion, "--scene", scene]) == 3
    told = capsys.readouterr()
    assert "collides: first" in told.out and "wall" in told.out and "deepest" in told.out
    assert (" s\n" in told.out) is (kind != "txt") and told.err == f"error: '{motion}' collides\n"


def test_limits_and_times_are_looked_at(tmp_path, capsys):
    assert cli.main(["verify", GANTRY, written(tmp_path / "fast.csv", times=(0.0, 0.1))]) == 3
    assert "breaks a limit: a velocity limit is exceeded: along_x" in capsys.readouterr().out
    assert cli.main(["verify", GANTRY, written(tmp_path / "far.txt", rows=(START, [*GOAL[:2], 9.0, *GOAL[3:]]))]) == 3
    assert "breaks a limit: a joint limit is exceeded: down is 9 in row 1" in capsys.readouterr().out


def test_joints_that_a_motion_does_not_name_stand_where_they_are_fixed(tmp_path, capsys):
    motion = written(tmp_path / "two.csv", rows=([0.2, 0.0], [1.8, 0.1]), names=JOINTS[:2])
    assert cli.main(["verify", GANTRY, motion, "--fix", "down=0.3"]) == 0
    assert "gantry: 2 joints" in capsys.readouterr().out
    np.savetxt(tmp_path / "two.txt", [[0.0, 0.2], [0.1, 1.8]])
    assert cli.main(["verify", GANTRY, str(tmp_path / "two.txt"), "--joints", "along_y", "along_x", "--hulls"]) == 0


@pytest.mark.parametrize(
    "name, text, more, word",
    [
        ("a.txt", "1 2 3", (), "3 values a row; allowed: 6 (along_x"),
        ("a.csv", "time,elbow\n0,1\n", (), "no joint 'elbow'"),
        ("a.csv", "time,down\n0,one\n", (), "no table of numbers"),
        ("a.json", "{}", (), "no table of numbers"),
        ("a.txt", "nan 0 0 0 0 0", (), "finite numbers"),
        ("a.txt", "0 0 0 0 0 0", ("--spacing", "0"), "spacing is 0.0"),
        ("a.txt", "0 0 0 0 0 0", ("--fix", "elbow=1"), "no joint 'elbow'"),
        ("a.txt", "0 0 0 0 0 0", ("--scene", GANTRY), "scene file"),
    ],
)
def test_every_mistake_is_one_line_and_2(name, text, more, word, tmp_path, capsys):
    (tmp_path / name).write_text(text)
    assert cli.main(["verify", GANTRY, str(tmp_path / name), *more]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("error: ") and told.err.count("\n") == 1 and word in told.err


def test_it_says_how_to_get_coal(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "coal", None)
    assert cli.main(["verify", GANTRY, written(tmp_path / "motion.csv")]) == 2
    assert "verify needs the Python package 'coal': pip install 'gpu_planners[verify]'" in capsys.readouterr().err
