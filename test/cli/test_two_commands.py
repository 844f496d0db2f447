"""Set-up, `make` targets and the colcon build: what a user meets before anything is planned."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checkout import ROOT, copy_checkout, setup_arguments, shared_files

SETUP_SCRIPT = ROOT / "tools" / "setup_environment.py"
IN_VENV = Path(sys.prefix).resolve() == (ROOT / ".venv").resolve()


def run(*command, cwd=ROOT, timeout=580, **environment):
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@pytest.fixture
def set_up(tmp_path, monkeypatch):
    """The set-up script as a module, with its stamps and checkout in a temporary folder."""
    spec = importlib.util.spec_from_file_location("setup_environment", SETUP_SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "STAMPS", tmp_path / "stamps")
    monkeypatch.setattr(module, "LOGS", tmp_path / "logs")
    return module


@pytest.mark.parametrize("target", ["demo", "test", "test-all", "bench"])
def test_make_targets_set_up_first(target):
    if not shutil.which("make"):
        pytest.skip("make is not installed")
    # These tests may themselves run under make, whose flags would be handed on.
    words = ("make", "-n", "--no-print-directory", target, "PYTHON=python-of-choice")
    lines = run(*words, MAKEFLAGS="", MAKELEVEL="0").stdout.splitlines()
    assert lines[0] == "python-of-choice tools/setup_environment.py" + " --demo" * (target == "demo")
    assert lines[1].startswith(".venv/bin/python -m ")


def test_continuous_integration_runs_all_tests():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-1] == "exec make test-all"


def test_a_step_is_done_once_for_one_key(set_up):
    done = []
    for key in ("a", "a", "b", "b", "a"):
        set_up.step("wheels", key, lambda: done.append(1), "wheels")
    assert len(done) == 3


def test_a_failed_step_is_done_again(set_up):
    def fail():
        raise set_up.SetupError("no network")

    set_up.step("wheels", "old", lambda: None, "wheels")
    with pytest.raises(set_up.SetupError):
        set_up.step("wheels", "new", fail, "wheels")
    assert not set_up.is_done("wheels", "new")
    assert not set_up.is_done("wheels", "old")  # a half-done change of the environment is not the old one either


def test_the_key_of_a_folder_changes_with_any_file(set_up, tmp_path):
    folder = tmp_path / "srv"
    folder.mkdir()
    (folder / "A.srv").write_text("---\n")
    keys = [set_up.digest(folder)]
    (folder / "A.srv").write_text("uint8 x\n---\n")
    keys.append(set_up.digest(folder))
    (folder / "B.srv").write_text("---\n")
    keys.append(set_up.digest(folder))
    (folder / "B.srv").rename(folder / "C.srv")
    keys.append(set_up.digest(folder))
    assert len(set(keys)) == 4
    assert set_up.digest(folder) == keys[-1]


def test_steps_side_by_side_are_all_done_though_one_fails(set_up):
    def fail():
        raise set_up.SetupError("no network")

    with pytest.raises(set_up.SetupError, match="no network"):
        set_up.do([("wheels", "a", lambda: None, "wheels"), ("interfaces", "a", fail, "interfaces")])
    assert set_up.is_done("wheels", "a") and not set_up.is_done("interfaces", "a")


@pytest.mark.parametrize("failing", [True, False], ids=["failed", "interrupted"])
def test_what_compiles_in_the_background_ends_with_a_set_up_that_does_not(set_up, monkeypatch, failing):
    def stop():
        if failing:
            set_up.run([sys.executable, "-c", "exit('no network')"], "wheels.log")
        raise KeyboardInterrupt

    compiling = [sys.executable, "-c", "import time; time.sleep(60)"]
    steps = [
        [("libraries", "a", lambda: set_up.start(compiling, "compiling.log"), "libraries")],
        [("wheels", "a", stop, "wheels")],
    ]
    monkeypatch.setattr(set_up, "plan", lambda *_: steps)
    monkeypatch.setattr(sys, "argv", ["setup_environment.py"])
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(set_up.SetupError if failing else KeyboardInterrupt):
            set_up.main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert set_up.processes[0].wait(10) == -signal.SIGTERM


def test_uv_does_what_pip_is_configured_to_do(set_up, monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/uv").touch()
    monkeypatch.setattr(set_up, "VENV", tmp_path)
    monkeypatch.setattr(set_up, "PIP", [sys.executable, "-m", "pip"])
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    file = tmp_path / "pip.conf"
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    file.write_text(
        "[global]\nindex-url = https://a/simple\ncert = /a.pem\ntimeout = 9\n[install]\nfind-links = /b /c\n"
    )
    words, environment = set_up.uv_options()
    for option in (["--default-index", "https://a/simple"], ["--find-links", "/b"], ["--find-links", "/c"]):
        assert option in [words[k : k + 2] for k in range(len(words))], option
    assert environment == {"SSL_CERT_FILE": "/a.pem"}
    file.write_text("[global]\nclient-cert = /mine.pem\n")
    assert set_up.uv_options() is None  # in words that uv does not know: pip serves


def test_what_uv_cannot_install_is_asked_of_pip(set_up, monkeypatch):
    asked = []

    def run(command, log, **environment):
        asked.append("uv" if str(command[0]).endswith("uv") else "pip")
        if asked == ["uv"]:
            raise set_up.SetupError("no such index")

    monkeypatch.setattr(set_up, "run", run)
    monkeypatch.setattr(set_up, "uv_options", lambda: ([], {}))
    set_up.install("wheels.log", "numpy")
    assert asked == ["uv", "pip"]


def test_nothing_of_a_sourced_workspace_leaks_into_the_set_up(set_up, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/opt/ros/jazzy/lib/python3.12/site-packages")
    monkeypatch.setenv("_ROS_WHEELS_BOOTSTRAP_COMPLETE", "1")
    environment = set_up.clean_environment(AMENT_PREFIX_PATH="here")
    assert "PYTHONPATH" not in environment and "_ROS_WHEELS_BOOTSTRAP_COMPLETE" not in environment
    assert environment["AMENT_PREFIX_PATH"] == "here"


def test_an_unsuitable_python_is_refused_in_words(set_up, monkeypatch):
    monkeypatch.setattr(set_up.sys, "version_info", (3, 8, 0))
    with pytest.raises(set_up.SetupError, match=r"3\.8.*PYTHON="):
        set_up.check_machine()


def test_the_command_line_alone_chooses_the_ros_distribution():
    """A sourced workspace sets the variable, too, and says nothing about .venv."""
    if not shutil.which("make"):
        pytest.skip("make is not installed")
    words = ("make", "-n", "--no-print-directory", "setup", "PYTHON=p")
    sourced = {"MAKEFLAGS": "", "MAKELEVEL": "0", "ROS_DISTRO": "humble"}
    assert run(*words, **sourced).stdout.strip() == "p tools/setup_environment.py"
    assert (
        run(*words, "ROS_DISTRO=kilted", **sourced).stdout.strip() == "p tools/setup_environment.py --ros-distro kilted"
    )


def test_an_environment_keeps_its_ros_distribution_until_another_is_named(set_up, monkeypatch, tmp_path):
    monkeypatch.setattr(set_up, "VENV", tmp_path)
    assert set_up.chosen_distro(None) == "jazzy"
    (tmp_path / "ros_distro").write_text("kilted")
    assert set_up.chosen_distro(None) == "kilted" and set_up.chosen_distro("jazzy") == "jazzy"
    with pytest.raises(set_up.SetupError, match="ROS_DISTRO=lyrical.*allowed: jazzy, kilted"):
        set_up.chosen_distro("lyrical")


@pytest.mark.parametrize("distro, other", [("jazzy", "kilted"), ("kilted", "jazzy")])
def test_another_ros_distribution_starts_anew_and_asks_for_its_own_wheels(set_up, monkeypatch, distro, other):
    for file in ("setup.py", "setup.cfg", "pyproject.toml", "package.xml"):
        (set_up.ROOT / file).write_text("")
    keys = [[key for steps in set_up.plan(["test"], distro=each) for _, key, *_ in steps] for each in (distro, other)]
    assert set(keys[0]).isdisjoint(keys[1])
    asked = []
    monkeypatch.setattr(set_up, "install", lambda _, *requirements: asked.extend(requirements))
    set_up.install_ros(distro)
    assert f"ros-{distro}-rosidl-default-generators" in asked and "cmake>=3.22" in asked
    assert not [each for each in asked if other in each or "DISTRO" in each or "#" in each]


@pytest.mark.skipif(not IN_VENV, reason="runs in .venv, where `make setup` has just been")
def test_the_second_set_up_finds_nothing_to_do():
    started = time.monotonic()
    done = run(sys.executable, SETUP_SCRIPT, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - started < 60.0  # from nothing it takes minutes


def test_the_command_explains_itself():
    done = run(sys.executable, "-m", "gpu_planners.cli", "--help")
    assert done.returncode == 0, done.stderr
    for command in ("info", "demo", "bench", "view"):
        assert command in done.stdout


def test_the_python_examples_of_the_readme_run(tmp_path):
    """One after the other: the second goes on with the names of the first."""
    example = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL))
    done = run(sys.executable, "-c", example, cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    assert "SOLVED" in done.stdout.upper()


@pytest.mark.parametrize("absent", ["rclpy", "gpu_planners_msgs"])
@pytest.mark.parametrize("node", ["arm_planner", "grid_planner"])
def test_a_node_without_ros_says_what_is_missing(node, absent):
    code = f"import sys; sys.modules['{absent}'] = None; import gpu_planners.nodes as n; n.{node}()"
    done = run(sys.executable, "-c", code)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"'{absent}'" in done.stderr or (absent != "rclpy" and "'rclpy'" in done.stderr)


def test_a_node_with_the_ros_of_another_python_says_so():
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    code = "import sys; sys.modules['rclpy._rclpy_pybind11'] = None; import gpu_planners.nodes as n; n.grid_planner()"
    done = run(sys.executable, "-c", code)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr and "for which the ROS 2 in PYTHONPATH is not built" in done.stderr


@pytest.fixture(scope="module")
def checkout_copy(tmp_path_factory):
    return copy_checkout(tmp_path_factory.mktemp("workspace") / "src" / "gpu_planners")


@pytest.fixture(scope="module")
def colcon():
    colcon = shutil.which("colcon", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]))
    if not colcon:
        pytest.skip("colcon is not installed (make setup installs it)")
    return colcon


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (
            ("--base-paths", "src", *(f"src/gpu_planners/gpu_planners_{name}" for name in ("msgs", "moveit", "nav2"))),
            {},
        ),
        ((), {"COLCON_DEFAULTS_FILE": "src/gpu_planners/colcon_defaults.yaml"}),
    ],
    ids=["base paths", "defaults file"],
)
def test_colcon_finds_all_packages(colcon, checkout_copy, arguments, environment):
    done = run(colcon, "--log-base", "/dev/null", "list", *arguments, cwd=checkout_copy.parent.parent, **environment)
    found = sorted(tuple(line.split("\t")) for line in done.stdout.splitlines())
    assert found == [
        ("gpu_planners", "src/gpu_planners", "(ros.ament_python)"),
        ("gpu_planners_moveit", "src/gpu_planners/gpu_planners_moveit", "(ros.ament_cmake)"),
        ("gpu_planners_msgs", "src/gpu_planners/gpu_planners_msgs", "(ros.ament_cmake)"),
        ("gpu_planners_nav2", "src/gpu_planners/gpu_planners_nav2", "(ros.ament_cmake)"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("--symlink-install",)], ids=["plain", "symlink-install"])
def test_colcon_installs_executables_and_shared_files(colcon, checkout_copy, tmp_path, arguments):
    places = ("--build-base", tmp_path / "build", "--install-base", tmp_path / "install")
    only = ("--packages-select", "gpu_planners")
    done = run(colcon, "--log-base", "/dev/null", "build", *only, *places, *arguments, cwd=checkout_copy.parent.parent)
    assert done.returncode == 0, done.stderr
    prefix = tmp_path / "install" / "gpu_planners"
    ros_finds_everything(prefix)


@pytest.mark.slow
@pytest.mark.skipif(not IN_VENV, reason="runs in .venv, where `make setup` has just been")
def test_ros_finds_what_the_set_up_made():
    ros_finds_everything(Path(sys.prefix))


def ros_finds_everything(prefix):
    """Launch files, configurations and robots, and the executables, as ros2 launch and launch_ros look for them."""
    scripts = setup_arguments()["entry_points"]["console_scripts"]
    for name in (script.partition(" = ")[0] for script in scripts):
        assert os.access(prefix / "lib" / "gpu_planners" / name, os.X_OK), name
    assert (prefix / "share" / "ament_index" / "resource_index" / "packages" / "gpu_planners").is_file()
    share = prefix / "share" / "gpu_planners"
    found = {  # no link to a folder is followed
        os.path.relpath(os.path.join(folder, name), share) for folder, _, names in os.walk(share) for name in names
    }
    assert shared_files(ROOT) - found == set()
