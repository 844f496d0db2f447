"""The command gpu-planners: what it prints, and the exit code and text of each mistake."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpu_planners import __version__, cli

URDF = Path(__file__).resolve().parent.parent / "urdf" / "planar_arm.urdf"


def test_info_names_devices_and_extras(capsys):
    assert cli.main(["info"]) == 0
    printed = capsys.readouterr().out
    assert "cpu" in printed and "cuda" in printed and __version__ in printed and "extra view" in printed


def test_version_and_help_as_a_process():
    answer = subprocess.run(
        [sys.executable, "-m", "gpu_planners.cli", "--version"], capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == 0 and __version__ in answer.stdout


@pytest.mark.parametrize("arguments", [[], ["dance"], ["info", "--loud"], ["view"], ["view", "no_such.urdf"]])
def test_a_wrong_command_line_ends_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_bench_passes_arguments_on_and_names_a_missing_folder(tmp_path, capsys):
    assert cli.main(["bench", "--data", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_bench_without_a_checkout_says_where_it_is(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(cli, "__file__", str(tmp_path / "gpu_planners" / "cli.py"))
    assert cli.main(["bench"]) == 2
    assert "make bench" in capsys.readouterr().err


def test_demo_without_ros_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "gpu_planners.demo.main", None)
    assert cli.main(["demo"]) == 2
    assert "make demo" in capsys.readouterr().err


def test_view_names_a_bad_path_file(tmp_path, capsys):
    pytest.importorskip("viser", reason="the browser view needs viser (extra `view`)")
    file = tmp_path / "path.csv"
    for content, word in (("0.1,0.2\n", "joint values"), ("a,b\n", "numbers"), ("", "joint values")):
        file.write_text(content)
        assert cli.main(["view", str(URDF), "--path", str(file)]) == 2
        assert word in capsys.readouterr().err


def test_view_serves_the_page():
    pytest.importorskip("viser", reason="the browser view needs viser (extra `view`)")
    from urllib.request import urlopen

    from gpu_planners.arm import CollisionWorld, load_urdf
    from gpu_planners.arm.view import browser as browser_view

    robot, world = load_urdf(URDF), CollisionWorld()
    world.add_box("box", [0.1, 0.1, 0.1], np.eye(4))
    server = browser_view.show(robot, world, np.array([robot.lower * 0.1, robot.upper * 0.1]), port=8791)
    try:
        assert b"<html" in urlopen(f"http://127.0.0.1:{server.get_port()}", timeout=20).read().lower()
    finally:
        server.stop()
