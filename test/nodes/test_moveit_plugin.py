"""gpu_planners_moveit, MoveIt's planner plugin, as MoveIt loads it and asks it for plans of the real node.

It is built and asked where MoveIt is installed: colcon builds it with its program ask_plugin, which loads it by
pluginlib and asks from inside a callback of the one thread that spins MoveIt's node.
"""

import re
import subprocess
import threading
import time

import pytest

pytest.importorskip("moveit_msgs.msg", reason="the ROS package moveit_msgs is not installed")

import numpy as np
from checkout import ROOT
from moveit_msgs.action import MoveGroup
from moveit_msgs.msg import MoveItErrorCodes
from panda_files import ARM, READY, SRDF, URDF
from rclpy.action import ActionServer, GoalResponse
from rclpy.task import Future
from ros_plugins import declared_class, environment_with, prefix_of, program_of
from test_moveit_panda import PandaNode

from gpu_planners.nodes.arm.parameters import PLANNERS
from gpu_planners.nodes.moveit.requests import INDUSTRIAL, SOURCE
from gpu_planners.verify import CoalScene

CODES = MoveItErrorCodes
PACKAGE = ROOT / "gpu_planners_moveit"
CLASS = "gpu_planners_moveit/PlannerManager"
PROGRAM = "lib/gpu_planners_moveit/ask_plugin"
NEEDED = "moveit_core", "moveit_ros_planning"
ACTION = "gpu_planners/move_group"  # the plugin's default
GOAL = (1.2, -0.6, 0.0, -2.0, 0.0, 1.571, 0.5)
BEHIND = (-1.2, -0.6, 0.0, -2.0, 0.0, 1.571, 0.5)
BOX = "box box 0.45 0.0 0.4 0.1 0.1 0.8"  # between the two
NAMES = ("simple", "detailed", "pipeline")


def test_the_plugin_names_what_the_node_plans():
    """Also where nothing can be built."""
    source = (PACKAGE / "src/planner_manager.cpp").read_text()
    told = re.search(r"ALGORITHMS\{([^}]*)\}", source)[1]
    assert re.findall(r'"(\w+)"', told) == [*PLANNERS, *INDUSTRIAL]
    assert f'PIPELINE = "{SOURCE}"' in source and f'"{ACTION}"' in source


def test_what_is_installed_is_what_is_declared():
    assert declared_class(PACKAGE.name, "planner_manager.cpp", "planning_interface::PlannerManager") == CLASS


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """(ask_plugin, the environment in which it finds the plugin)"""
    for name in NEEDED:
        if not prefix_of(name):
            pytest.skip(f"the ROS package {name} is not installed: nothing loads the plugin")
    environment = environment_with(PACKAGE.name, tmp_path_factory.mktemp, "-DBUILD_TESTING=ON", needs=PROGRAM)
    return program_of(PACKAGE.name, environment, PROGRAM), environment


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    given = {"moveit_interface": "action", "move_group_action": ACTION, "rrt_star.max_samples": 1_000_000}
    node = PandaNode(tmp_path_factory.mktemp("panda"), group="panda_arm", **given)
    yield node
    node.close()


@pytest.fixture
def ask(program, node, tmp_path):
    """Gives commands to the program -> (lines, standard error)."""

    def ask(*commands, start=READY, **parameters):
        (tmp_path / "panda.urdf").write_text(URDF)
        (tmp_path / "panda.srdf").write_text(SRDF)
        given = {"planning_plugin": CLASS, "planning_plugins": f"[{CLASS}]", "server_timeout_s": 60.0} | parameters
        arguments = [part for key, value in given.items() for part in ("-p", f"gpu_planners.{key}:={value}")]
        lines = ["group panda_arm", "time 5", f"start {words(start)}", *commands]
        done = subprocess.run(
            [program[0], tmp_path / "panda.urdf", tmp_path / "panda.srdf", "--ros-args", *arguments],
            input="\n".join(lines) + "\n",
            env=program[1] | {"ROS_DOMAIN_ID": str(node.context.get_domain_id())},
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines(), done.stderr

    return ask


def words(values):
    return " ".join(map(str, values))


def answers(lines):
    """[(code, text, (K, 1 + dof) seconds and positions of ARM, if there are some)] of the plans."""
    plans, rows, order = [], [], []
    for line in lines:
        kind, *told = line.split(" ")
        if kind == "joints":
            order = told
        elif kind == "point":
            rows.append([float(value) for value in told])
        elif kind == "end":
            path = np.array(rows)[:, [0, *(1 + order.index(name) for name in ARM)]] if rows else None
            plans.append((int(told[0]), " ".join(told[1:]), path))
            rows = []
    return plans


slow = pytest.mark.slow
limited = pytest.mark.timeout(1200)  # the node may have to be compiled, and MoveIt's headers are long


@slow
@limited
def test_plans_around_what_moveit_has_in_its_scene(ask):
    """By both kinds of response and by MoveIt's pipeline; the node has never heard of the box."""
    lines, errors = ask(BOX, f"start {words(BEHIND)}", f"goal {words(GOAL)}", *(f"plan {how}" for how in NAMES))
    obstacle = {"type": "box", "size": (0.1, 0.1, 0.8), "position": (0.45, 0.0, 0.4), "quat_xyzw": (0, 0, 0, 1)}
    coal, found = CoalScene(URDF, None, [obstacle], joints=ARM, self_pairs=[]), answers(lines)
    assert len(found) == len(NAMES), errors
    assert coal.first_collision([BEHIND, GOAL]) is not None  # there is something to go around
    for code, text, path in found:
        assert code == CODES.SUCCESS, (text, errors)
        assert (np.diff(path[:, 0]) > 0).all() and path[0, 0] == 0
        assert np.abs(path[0, 1:] - BEHIND).max() < 1e-4 and np.abs(path[-1, 1:] - GOAL).max() < 1e-3
        assert coal.first_collision(path[:, 1:], tolerance=1e-4) is None  # the program prints six digits


@slow
@limited
def test_what_the_robot_holds_counts(ask):
    """An object that MoveIt's robot holds meets one that the hand alone would pass."""
    shelf = "box shelf 0.31 0.0 0.2 0.1 0.4 0.02"
    tool = ["box tool 0.307 0.0 0.35 0.02 0.02 0.3", "attach panda_hand tool"]
    free, held = answers(ask(shelf, f"goal {words(READY)}", "plan simple", *tool, "plan simple")[0])
    assert free[0] == CODES.SUCCESS and held[0] == CODES.START_STATE_IN_COLLISION, (free[:2], held[:2])
    assert "tool" in held[1] and "shelf" in held[1]


@slow
@limited
def test_codes_and_texts_of_the_node_pass_through(ask):
    lines, errors = ask(
        f"start {words(BEHIND)}",
        "box wall 0.307 0.0 0.5 0.1 0.1 0.3",
        f"goal {words(READY)}",
        "plan simple",
        f"goal {words(GOAL)}",
        "planner nonsense",
        "plan detailed",
        "group nobody",
        "plan simple",
    )
    inside, unknown, nobody = answers(lines)
    assert inside[0] == CODES.GOAL_IN_COLLISION and "wall" in inside[1]
    assert unknown[0] == CODES.PLANNING_FAILED and "nonsense" in unknown[1] and "nonsense" in errors
    assert nobody[0] == CODES.INVALID_GROUP_NAME and "panda_arm" in nobody[1]


@slow
@limited
def test_terminate_cancels_the_goal(ask):
    """RRT* makes paths shorter for as long as it may. The next plan waits for it, and works."""
    simple = [BOX, f"start {words(BEHIND)}", f"goal {words(GOAL)}", "plan simple"]  # when it has found the node
    end = time.monotonic() + 600
    while True:
        lines, errors = ask(*simple, "planner rrt_star", "time 8", "plan simple 1.0", "planner", "plan simple")
        before, stopped, after = answers(lines)
        if "being compiled" not in stopped[1] or time.monotonic() > end:
            break
        time.sleep(2)
    assert (stopped[0], stopped[1]) == (CODES.PREEMPTED, "cancelled"), errors  # by the node
    assert before[0] == after[0] == CODES.SUCCESS, errors


@slow
@limited
def test_an_absent_node_is_named(ask):
    lines, errors = ask(
        f"goal {words(GOAL)}", "plan simple", move_group_action="nowhere/move_group", server_timeout_s=0.3
    )
    ((code, text, path),) = answers(lines)
    assert code == CODES.COMMUNICATION_FAILURE and path is None
    assert "/nowhere/move_group" in text and "arm_planner" in text and text in errors


@pytest.fixture(params=["silent", "refuses", "leaves"])
def stranger(request, node):
    """(its kind, its action), of a server that takes a goal and never answers, takes none, or goes away meanwhile"""
    kind, action, never = request.param, f"{request.param}/move_group", Future()

    async def execute(goal):
        if kind == "leaves":
            threading.Timer(1.0, server.destroy).start()
        await never

    def take(goal):
        return GoalResponse.REJECT if kind == "refuses" else GoalResponse.ACCEPT

    server = ActionServer(node.client_node, MoveGroup, action, execute, goal_callback=take)
    yield kind, action
    if kind != "leaves":
        server.destroy()


@slow
@limited
def test_a_server_that_gives_no_answer_is_named(ask, stranger):
    kind, action = stranger
    code, text = {
        "silent": (CODES.TIMED_OUT, f"/{action} gave no answer within "),
        "refuses": (CODES.ABORT, f"/{action} takes no goal now"),
        "leaves": (CODES.COMMUNICATION_FAILURE, f"the node that serves /{action} went away while it planned"),
    }[kind]
    limits = ["time 1" if kind == "silent" else "time 60", f"goal {words(GOAL)}"]
    lines, errors = ask(*limits, "plan simple", move_group_action=action, answer_margin_s=0.5)
    (answer,) = answers(lines)
    assert answer[0] == code and answer[1].startswith(text) and answer[2] is None, errors
    if kind == "silent":  # longer on a busy machine
        assert float(re.match(r"\d+\.\d+", answer[1].removeprefix(text))[0]) >= 1.5


@slow
@limited
def test_a_wrong_parameter_is_named(program, tmp_path):
    (tmp_path / "panda.urdf").write_text(URDF)
    (tmp_path / "panda.srdf").write_text(SRDF)
    files = [tmp_path / "panda.urdf", tmp_path / "panda.srdf"]
    wrong = ["--ros-args", "-p", "gpu_planners.server_timeout_s:=-1.0"]
    done = subprocess.run([program[0], *files, *wrong], env=program[1], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "gpu_planners.server_timeout_s is -1.0" in done.stderr


@slow
@limited
def test_rviz_is_told_the_planners(ask):
    assert ask("algorithms")[0] == [" ".join([SOURCE, *PLANNERS, *INDUSTRIAL])]
