"""The command gpu-planners: what it prints, and the exit code and text of each mistake."""

import importlib.util
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from checkout import setup_arguments

from gpu_planners import __version__, cli, nodes

URDF = Path(__file__).resolve().parents[2] / "urdf" / "planar_arm.urdf"


def test_info_names_devices_and_extras(capsys):
    assert cli.main(["info"]) == 0
    printed = capsys.readouterr().out
    assert "cpu" in printed and "cuda" in printed and __version__ in printed and "extra view" in printed


def test_info_names_every_extra_whole_where_it_is_narrow(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert cli.main(["info"]) == 0
    printed = capsys.readouterr().out
    left, right = (
        "".join(re.findall(pattern, printed)).replace(" ", "") for pattern in (r"│(.*?)│", r"│ ([^│]*?) │\n")
    )
    for extra in setup_arguments()["extras_require"]:
        assert f"extra{extra}(" in left and f"'gpu_planners[{extra}]'" in right


@pytest.mark.parametrize("version, serves", [("0.62.1", False), ("0.63.0", True), ("0.68.1", True), ("0.69.0", False)])
def test_info_names_a_library_beyond_its_bounds(monkeypatch, capsys, version, serves):
    """colcon installs without looking at versions, and a distribution's Numba may be too old."""
    found = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: version if name == "numba" else found(name))
    monkeypatch.setattr(
        metadata, "requires", lambda name: ["numba<0.69,>=0.63", "trimesh[easy]<6,>=4.4", "pyyaml>=6.0"]
    )
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main(["info"]) == 0
    told = f"{version} does not serve: pip install 'numba>=0.63,<0.69'"
    printed = capsys.readouterr().out
    assert (told in printed) != serves and version in printed and printed.count("does not serve") == (not serves)


def test_info_tells_of_a_robot(tmp_path, capsys, caplog):
    srdf = tmp_path / "arm.srdf"
    srdf.write_text(
        """<robot name="planar"><group name="arm"><joint name="joint1"/><joint name="joint2"/></group>
        <virtual_joint name="v" type="fixed" parent_frame="world" child_link="base_link"/>
        <group_state name="odd" group="arm"><joint name="joint1" value="1"/></group_state></robot>"""
    )
    assert cli.main(["info", str(URDF), "--srdf", str(srdf)]) == 0
    printed = re.sub(r"\s*│\n│\s*│", "", capsys.readouterr().out)
    assert re.search(r"tip link +│ link2: it is the last link", printed)
    assert "joint3 (" in printed and "v (fixed, base_link in world)" in printed and "joint1" in printed
    assert "state 'odd' of 'arm' lacks 'joint2'" in caplog.text
    with pytest.raises(SystemExit):
        cli.main(["info", "no_such.urdf"])
    assert cli.main(["info", str(srdf)]) == 2  # the URDF has no link
    assert "no link" in capsys.readouterr().err


def test_info_tells_which_pairs_of_links_are_checked(tmp_path, capsys):
    """Two arms of one link each on a hub that both touch, wherever they stand."""
    body = '<collision><geometry><sphere radius="{}"/></geometry></collision>'
    arm = (
        '<link name="{0}">{1}</link><joint name="turn_{0}" type="revolute"><parent link="{2}"/><child link="{0}"/>'
        '<axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>'
    )
    parts = [arm.format("a", body.format(0.1), "hub"), arm.format("b", body.format(0.1), "a")]
    urdf = tmp_path / "hub.urdf"
    urdf.write_text(f'<robot name="hub"><link name="hub">{body.format(0.1)}</link>{"".join(parts)}</robot>')
    assert cli.main(["info", str(urdf)]) == 0
    printed = re.sub(r"[\s│]+", " ", capsys.readouterr().out)
    assert "checked against each other 0 0 pairs of bodies" in printed
    assert "adjacent 2 hub - a, a - b" in printed and "neutral pose" in printed and "1 hub - b" in printed


def test_version_and_help_as_a_process():
    answer = subprocess.run(
        [sys.executable, "-m", "gpu_planners.cli", "--version"], capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == 0 and __version__ in answer.stdout


@pytest.mark.parametrize(
    "arguments", [[], ["dance"], ["info", "--loud"], ["plan"], ["view", "no_such.urdf"], ["completion", "tcsh"]]
)
def test_a_wrong_command_line_ends_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_an_unknown_argument_is_named_with_its_command(capsys):
    with pytest.raises(SystemExit):
        cli.main(["plan", str(URDF), "--devices", "cpu"])
    assert "of plan: --devices cpu; 'gpu-planners plan --help' lists" in capsys.readouterr().err


@pytest.mark.parametrize(
    "there, missing, said",
    [
        ((), "sensor_msgs", "'rclpy'; source a ROS 2 installation"),
        (("rclpy",), "sensor_msgs", "'sensor_msgs'; apt install ros-jazzy-sensor-msgs"),
        (("rclpy",), "PIL", "'PIL'; pip install pillow"),
    ],
)
def test_a_node_says_how_to_get_what_is_missing(there, missing, said, monkeypatch):
    """Without ROS that is ROS, not the first package of messages that is imported."""

    def import_module(name):
        if name not in there:
            raise ModuleNotFoundError(name=missing if name.startswith("gpu_planners.") else name)

    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("importlib.import_module", import_module)
    with pytest.raises(SystemExit, match=said):
        nodes.arm_planner()


def test_an_error_is_red_where_colours_are_wanted(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for name, value, red in (("TERM", "xterm", True), ("NO_COLOR", "1", False), ("TERM", "dumb", False)):
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv(name, value)
        cli.errors.complain(ValueError("so"), 2)
        assert ("\033" in capsys.readouterr().err) == red


def test_bench_passes_arguments_on_and_names_a_missing_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))  # it sets them for its process
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert cli.main(["bench", "--data", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_bench_without_a_checkout_says_where_it_is(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("gpu_planners.cli.bench.ROOT", tmp_path)
    assert cli.main(["bench"]) == 2
    assert "make bench" in capsys.readouterr().err


def test_demo_without_ros_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "gpu_planners.demo.main", None)
    assert cli.main(["demo"]) == 2
    assert "make demo" in capsys.readouterr().err


@pytest.mark.parametrize("shell, word", [("bash", "complete "), ("zsh", "compdef"), ("fish", "complete --command")])
def test_completion_is_printed_for_each_shell(shell, word, capsys):
    assert cli.main(["completion", shell]) == 0
    assert word in capsys.readouterr().out


def test_the_line_for_completion_can_be_copied_from_a_narrow_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    with pytest.raises(SystemExit):
        cli.main(["completion", "--help"])
    assert '  eval "$(gpu-planners completion bash)"\n' in capsys.readouterr().out


@pytest.mark.parametrize(
    "line, expected",
    [
        ("gpu-planners pl", "plan"),
        ("gpu-planners dataset --dr", "--dry-run"),
        ("gpu-planners plan --planner r", "rrt_star"),
    ],
)
def test_a_shell_is_told_what_may_follow(line, expected):
    """As argcomplete's shell code asks: the answer comes on file descriptor 8."""
    asking = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    command = ["bash", "-c", f"{sys.executable} -m gpu_planners.cli 8>&1 9>&2 1>/dev/null"]
    answer = subprocess.run(command, env=os.environ | asking, capture_output=True, text=True, timeout=300)
    assert expected in answer.stdout.split(), answer


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["view"], "--node NAME"),
        (["view", str(URDF), "--node", "/arm"], "one of"),
        (["view", str(URDF), "--group", "arm"], "no group 'arm'"),
        (["view", str(URDF), "--joints", "elbow_*"], "fits no joint"),
        (["view", str(URDF), "--set", "speed=3"], "max_samples"),
        (["view", str(URDF), "--port", "65536"], "allowed: 0 to 65535"),
        (["view", str(URDF), "--host", "192.0.2.1"], "allowed: an address of this machine"),
        (["view", str(URDF), "--host", "no such host"], "allowed: an address of this machine"),
    ],
)
def test_view_names_what_is_wrong_in_one_line(arguments, word, capsys):
    pytest.importorskip("viser", reason="the browser view needs viser (extra `view`)")
    assert cli.main(arguments) == 2
    printed = capsys.readouterr().err
    assert word in printed and printed.startswith("error: ") and printed.count("\n") == 1


@pytest.mark.parametrize("more, word", [(["--device", "tpu"], "'tpu'"), (["--fleet", "--agents", "9999"], "up to")])
def test_the_page_of_a_map_names_what_is_wrong_before_there_is_a_server(more, word, capfd):
    pytest.importorskip("viser", reason="the browser view needs viser (extra `view`)")
    hall = URDF.parent.parent / "config" / "maps" / "hall.yaml"
    assert cli.main(["view", "--map", str(hall), *more]) == 2
    out, printed = capfd.readouterr()
    assert word in printed and printed.startswith("error: ") and (out + printed).count("\n") == 1


def test_view_names_a_bad_path_file(tmp_path, capsys):
    pytest.importorskip("viser", reason="the browser view needs viser (extra `view`)")
    file = tmp_path / "path.csv"
    for content, word in (("0.1,0.2\n", "joint values"), ("a,b\n", "numbers"), ("", "joint values")):
        file.write_text(content)
        assert cli.main(["view", str(URDF), "--path", str(file)]) == 2
        assert word in capsys.readouterr().err


def test_learn_writes_guidance_beside_the_map(tmp_path, capsys):
    from gpu_planners.fleet import FleetPlanner, Guidance
    from gpu_planners.grid import GridMap
    from gpu_planners.grid.maps.map_files import save_map_yaml

    grid = GridMap([[1] * 6] * 5, 4)
    save_map_yaml(tmp_path / "hall.yaml", grid)
    assert cli.main(["learn", str(tmp_path / "hall.yaml"), *"-n 6 --rounds 2 --steps 9 --children 4".split()]) == 0
    assert "hall.guidance.npz': " in capsys.readouterr().err
    FleetPlanner(grid, "turning", "cpu", guidance=Guidance.load(tmp_path / "hall.guidance.npz"))


@pytest.mark.parametrize(
    "arguments, word",
    [
        (["-n", "0"], "agents is 0"),
        (["-n", "2", "--rounds", "0"], "rounds is 0"),
        (["-n", "2", "--workers", "-1"], "workers is -1"),
        (["-n", "2", "--devices", "tpu"], "'tpu'"),
        (["-n", "2", "--set", "speed=3"], "horizon"),
        (["-n", "2", "-o", "no/folder/here.npz"], "here.npz"),
        (["-n", "99999999"], "agents is 99999999"),
    ],
)
def test_learn_names_what_is_wrong_in_one_line(arguments, word, capsys):
    hall = URDF.parent.parent / "config" / "maps" / "hall.yaml"
    assert cli.main(["learn", str(hall), *arguments]) == 2
    printed = capsys.readouterr().err
    assert word in printed and printed.startswith("error: ") and printed.count("\n") == 1
