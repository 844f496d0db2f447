"""pymoveit2's own examples, unchanged, in processes of their own, with the node in move_group's place."""

import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("moveit_msgs.msg", reason="the ROS package moveit_msgs is not installed")
pytest.importorskip("control_msgs.action", reason="the ROS package control_msgs is not installed")
pytest.importorskip("pymoveit2", reason="the package pymoveit2 is not installed")

import numpy as np
import pymoveit2
import running_node
from moveit_msgs.msg import MoveItErrorCodes
from panda_files import ARM, FINGER, READY, SRDF, URDF
from pinocchio_poses import pinocchio_poses
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from running_node import LATCHED
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from gpu_planners.nodes.arm.node import ArmPlannerNode
from gpu_planners.nodes.player.node import TrajectoryPlayer
from gpu_planners_msgs.srv import PlanMotion

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
CRASHED = "action client pointer is invalid"  # rclpy's executor waits for a client that pymoveit2 destroys
TRIES = 4


def examples():
    """The folder of pymoveit2's examples: beside the package in its sources, or where colcon puts programs."""
    sources = Path(pymoveit2.__file__).parents[1] / "examples"
    prefixes = map(Path, filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)))
    folders = [sources, *(prefix / "lib" / "pymoveit2" for prefix in prefixes)]
    return next((folder for folder in folders if (folder / "ex_joint_goal.py").is_file()), None)


EXAMPLES = examples()
if EXAMPLES is None:
    pytest.skip("pymoveit2's examples are not beside it: take its source distribution", allow_module_level=True)


class Cell(running_node.RunningNode):
    """The node as a move_group, controllers of the arm and the hand, and examples."""

    def __init__(self):
        parameters = {
            "robot_description": URDF,
            "robot_description_semantic": SRDF,
            "group": "panda_arm",
            "device": running_node.DEVICE,
            "controller_action": "panda_arm_controller/follow_joint_trajectory",
            "group_controllers": ["hand=panda_hand_controller/follow_joint_trajectory"],
        }
        kind = partial(ArmPlannerNode, cli_args=["--ros-args", "-r", "__node:=move_group"])
        super().__init__(kind, "move_group", (PlanMotion, "plan_motion"), parameters)
        self.seen = {}
        self._player_executor = SingleThreadedExecutor(context=self.context)
        self._states = self.client_node.create_publisher(JointState, "/joint_states", 100)
        self._players = [
            self._player("panda_arm_controller", ARM, READY),
            self._player("panda_hand_controller", [FINGER], [0.0]),
        ]
        self.publisher(String, "/robot_description", LATCHED).publish(String(data=URDF))
        threading.Thread(target=self._player_executor.spin, daemon=True).start()
        self.wait_until(lambda: self.status.message.startswith("ready") and {*ARM, FINGER} <= self.seen.keys())

    def _player(self, controller, joints, positions):
        """A controller."""
        overrides = {"controller": controller, "joints": joints, "initial_positions": list(positions)}
        overrides = [Parameter(name, value=value) for name, value in overrides.items()]
        states = f"{controller}/states"
        arguments = ["--ros-args", "-r", f"__node:={controller}_player", "-r", f"joint_states:={states}"]
        player = TrajectoryPlayer(context=self.context, parameter_overrides=overrides, cli_args=arguments)
        self._player_executor.add_node(player)
        self.client_node.create_subscription(JointState, states, partial(self._pass_on, len(joints)), 10)
        return player

    def _pass_on(self, count, message):
        """As a joint_state_broadcaster, tell the joints of all controllers in one message."""
        self.seen |= dict(zip(message.name[:count], message.position[:count], strict=True))
        if FINGER in self.seen and ARM[0] in self.seen:
            self.seen["panda_finger_joint2"] = self.seen[FINGER]
            told = JointState(header=message.header, name=[*self.seen], position=[*self.seen.values()])
            self._states.publish(told)

    def place(self):
        return np.array([self.seen[name] for name in ARM])

    def objects(self):
        """Names of what stands."""
        return list(self.node.scene.objects.standing)

    def done(self, name, code=0, **parameters):
        """What an example says, which ends with an exit code; None: any."""
        for _ in range(TRIES):
            status, text = self._run(name, **parameters)
            if CRASHED not in text:
                break
        assert code is None or status == code, text
        return text

    def _run(self, name, **parameters):
        given = [part for key, value in parameters.items() for part in ("-p", f"{key}:={value}")]
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / f"{name}.py"), *(["--ros-args", *given] if given else [])],
            env=os.environ | {"ROS_DOMAIN_ID": str(self.context.get_domain_id())},
            capture_output=True,
            text=True,
            timeout=100,
        )
        return done.returncode, done.stdout + done.stderr

    def close(self):
        self._player_executor.shutdown(timeout_sec=5)
        for player in self._players:
            player.close()
        super().close()


@pytest.fixture(scope="module")
def cell():
    cell = Cell()
    yield cell
    cell.close()


@pytest.fixture(scope="module")
def arm(cell):
    with interface(cell) as arm:
        yield arm


def interface(cell, **more):
    """A MoveIt2 of the arm."""
    given = {"joint_names": ARM, "base_link_name": "panda_link0", "end_effector_name": "panda_link8"}
    made = pymoveit2.MoveIt2(cell.client_node, group_name="panda_arm", **given, **more)
    cell.wait_until(lambda: made.joint_state is not None, 20)
    return made


@pytest.fixture(autouse=True)
def tidy(cell, arm):
    """At READY, and nothing in the scene."""
    yield
    if cell.objects():
        future = arm.clear_all_collision_objects()
        cell.wait_until(lambda: future.done() and not cell.objects(), 20)
        assert arm.process_clear_all_collision_objects_future(future)
    if np.abs(cell.place() - READY).max() > 1e-3:
        assert arm.move_to_configuration(list(READY)) and arm.wait_until_executed(timeout_sec=30)


GOAL = (0.3, -0.785, 0.0, -2.0, 0.0, 1.571, 0.5)
DOWN = {"position": [0.4, 0.1, 0.5], "quat_xyzw": [1.0, 0.0, 0.0, 0.0]}


def tip(cell):
    """(4, 4) of panda_link8, by pinocchio."""
    return pinocchio_poses(URDF, ARM, [cell.place()])["panda_link8"][0]


def check_down(cell, height=0.5):
    cell.wait_until(lambda: np.abs(tip(cell)[:3, 3] - [0.4, 0.1, height]).max() < 3e-3, 5)
    assert np.abs(tip(cell)[:3, :3] - np.diag([1.0, -1.0, -1.0])).max() < 5e-3


def test_the_doctor_finds_all_that_examples_need(cell):
    text = cell.done("ex_doctor")
    assert text.count(" ok ") == 5 and "Everything an example needs is in place" in text


@pytest.mark.parametrize("given", [{}, {"joint_positions": list(GOAL)}])
def test_a_joint_goal(cell, given):
    cell.done("ex_joint_goal", **given)
    cell.wait_until(lambda: np.abs(cell.place() - (GOAL if given else READY)).max() < 2e-3, 5)


def test_a_joint_goal_that_is_cancelled(cell):
    far = [1.5, *GOAL[1:]]
    cell.done("ex_joint_goal", joint_positions=far, synchronous=False, cancel_after_secs=0.3, code=None)
    assert np.abs(cell.place() - far).max() > 0.1


def test_pose_goals_by_a_free_motion_and_by_a_line(cell):
    cell.done("ex_pose_goal", **DOWN)
    check_down(cell)
    cell.done("ex_pose_goal", **DOWN | {"position": [0.4, 0.1, 0.55]}, cartesian=True)
    check_down(cell, 0.55)


@pytest.mark.parametrize("synchronous", [True, False])
def test_kinematics(cell, synchronous):
    assert "Succeeded" in cell.done("ex_fk", joint_positions=list(GOAL), synchronous=synchronous)
    assert "Succeeded" in cell.done("ex_ik", **DOWN, synchronous=synchronous)


def test_objects_of_the_scene(cell):
    for shape, dimensions in (("box", [0.1] * 3), ("cone", [0.1, 0.05])):
        cell.done("ex_collision_primitive", shape=shape, dimensions=dimensions, position=[0.2, 0.8, 0.2])
    cell.done("ex_collision_primitive", action="move", shape="box", position=[0.2, -0.8, 0.2])
    cell.done("ex_collision_mesh", position=[0.2, 0.9, 0.5], scale=[0.05] * 3)
    assert {"box", "cone"} < set(cell.objects()) and len(cell.objects()) == 3
    assert np.allclose(cell.node.scene.objects.standing["box"].pose[:3, 3], [0.2, -0.8, 0.2])
    cell.done("ex_allow_collisions", id="box", allow=True)
    touching = frozenset({"box", "panda_link7"})
    assert touching in cell.node.scene.objects.allowed_pairs
    cell.done("ex_allow_collisions", id="box", allow=False)
    assert touching not in cell.node.scene.objects.allowed_pairs
    cell.done("ex_collision_primitive", action="remove", shape="box")
    cell.done("ex_collision_mesh", action="remove")
    assert cell.objects() == ["cone"]
    cell.done("ex_clear_planning_scene")
    assert not cell.objects()


def test_an_orientation_that_is_kept(cell):
    for offset in (0.5, 0.3):  # the first one is its default, and all that the tolerance allows
        cell.done("ex_orientation_path_constraint", **{} if offset == 0.5 else {"goal_joint_offset": offset})
        cell.wait_until(lambda angle=offset: np.abs(cell.place()[0] - angle) < 2e-3, 5)


def test_the_gripper_and_a_session(cell):
    cell.done("ex_gripper", action="open")
    assert abs(cell.seen[FINGER] - 0.035) < 1e-3
    cell.done("ex_gripper", action="close")
    assert abs(cell.seen[FINGER]) < 1e-3
    cell.done("ex_session", **DOWN, gripper=True)
    check_down(cell)


def test_servo_is_not_served(cell):
    assert "servo_node" in cell.done("ex_servo", code=1)


# ---- its classes ----


def test_plans_by_name(cell, arm):
    for pipeline, planner in (("ompl", "RRTConnect"), ("", "rrt_connect"), ("pilz_industrial_motion_planner", "PTP")):
        arm.pipeline_id, arm.planner_id = pipeline, planner
        trajectory = arm.plan(joint_positions=list(GOAL), timeout_sec=60)
        assert np.allclose(trajectory.points[-1].positions, GOAL, atol=2e-3)
    arm.pipeline_id, arm.planner_id = "chomp", ""
    assert arm.plan(joint_positions=list(GOAL), timeout_sec=60) is None
    arm.pipeline_id, arm.planner_id = "", ""
    trajectory = arm.plan(position=(0.4, 0.1, 0.5), target_link="panda_hand", timeout_sec=60)
    end = pinocchio_poses(URDF, ARM, [trajectory.points[-1].positions])["panda_hand"][0]
    assert np.abs(end[:3, 3] - (0.4, 0.1, 0.5)).max() < 1.1e-3
    assert arm.plan(joint_positions=list(GOAL), start_joint_state=list(GOAL), timeout_sec=60) is not None


def test_motions_by_either_action(cell, arm):
    assert arm.move_to_configuration(list(GOAL)) and arm.wait_until_executed(timeout_sec=30)
    with interface(cell, use_move_group_action=True) as other:
        assert other.move_to_configuration(list(READY)) and other.wait_until_executed(timeout_sec=30)
    cell.wait_until(lambda: np.abs(cell.place() - READY).max() < 2e-3, 5)
    assert arm.move_to_configuration([1.5, *READY[1:]])
    cell.wait_until(lambda: cell.place()[0] > 0.1, 10)
    arm.stop_all_trajectory_execution()
    assert not arm.wait_until_executed(timeout_sec=30) and cell.place()[0] < 1.4
    assert arm.reset_controller(list(READY)) and not arm.wait_until_executed(timeout_sec=30)  # a jump
    assert arm.get_last_execution_error_code().val == MoveItErrorCodes.INVALID_MOTION_PLAN


def test_path_constraints(cell, arm):
    arm.set_path_position_constraint((0.4, 0.0, 0.5), tolerance=0.5)
    assert arm.plan(joint_positions=list(GOAL), timeout_sec=60) is not None
    arm.set_path_joint_constraint([0.6], [ARM[0]], tolerance=0.1)  # the start does not keep it
    assert arm.plan(joint_positions=list(GOAL), timeout_sec=60) is None


def test_what_the_hand_carries(cell, arm):
    arm.add_collision_box(
        "cup", (0.03, 0.03, 0.1), position=(0.0, 0.0, 0.2), quat_xyzw=(0, 0, 0, 1), frame_id="panda_hand"
    )
    cell.wait_until(lambda: "cup" in cell.objects(), 10)
    arm.attach_collision_object("cup", "panda_hand", touch_links=["panda_leftfinger", "panda_rightfinger"])
    cell.wait_until(lambda: "cup" in cell.node.scene.objects.carried, 10)
    assert arm.plan(joint_positions=list(GOAL), timeout_sec=60) is not None
    arm.detach_all_collision_objects()
    cell.wait_until(lambda: not cell.node.scene.objects.carried and "cup" in cell.objects(), 10)
    arm.remove_collision_object("cup")
    cell.wait_until(lambda: not cell.objects(), 10)
