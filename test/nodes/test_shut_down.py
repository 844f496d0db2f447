"""The end of a node: nothing of it is left, and a process that is told to stop says nothing of it, whatever it does."""

import gc
import os
import signal
import subprocess
import sys
import time

import pytest
import rclpy
from action_msgs.msg import GoalStatus
from checkout import ROOT
from rclpy.action import ActionClient
from rclpy.node import Node
from running_node import new_context
from sensor_msgs.msg import JointState

from gpu_planners.nodes.arm.node import ArmPlannerNode
from gpu_planners.nodes.grid.node import GridPlannerNode
from gpu_planners.nodes.player.node import TrajectoryPlayer
from gpu_planners_msgs.action import Move
from gpu_planners_msgs.srv import PlanMotion

pytestmark = pytest.mark.timeout(300)
DESK = [f"robot_description_file:={ROOT / 'urdf/desk_arm.urdf'}", f"srdf_file:={ROOT / 'urdf/desk_arm.srdf'}"]
MOMENTS = {  # what the process prints before it gets the signal, how long after that, its parameters
    "importing": ("begins", 0.3, []),
    "waiting": ("waiting for robot_description", 0.5, []),
    "compiling": ("compiling (once", 1.0, [*DESK, "group:=arm"]),
}


@pytest.mark.parametrize("kind", [ArmPlannerNode, GridPlannerNode, TrajectoryPlayer])
def test_a_closed_node_is_gone_before_its_garbage_is_collected(kind):
    context = new_context()
    looking = Node("looking", context=context)
    gc.disable()
    try:
        node = kind(context=context)
        name = node.get_name()
        assert node.close()
        end = time.monotonic() + 20
        while name in looking.get_node_names():
            assert time.monotonic() < end, "its actions keep it alive"
            time.sleep(0.05)
    finally:
        gc.enable()
        looking.destroy_node()
        rclpy.shutdown(context=context)


@pytest.fixture(scope="module")
def told_to_stop(tmp_path_factory):
    """{moment: (exit code, all output)} of processes that got SIGINT twice, as from a terminal through ros2 launch."""
    folder, running = tmp_path_factory.mktemp("logs"), {}
    code = (
        "import sys; print('begins', flush=True); from gpu_planners.nodes import arm_planner; sys.exit(arm_planner())"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cold"), "PYTHONUNBUFFERED": "1"}
    try:
        for moment, (_, _, parameters) in MOMENTS.items():
            given = [word for one in ["device:=cpu", *parameters] for word in ("-p", one)]
            command = [sys.executable, "-c", code, "--ros-args", *given]
            with open(folder / moment, "w") as log:
                running[moment] = subprocess.Popen(
                    command, env=environment, stdout=log, stderr=log, start_new_session=True
                )
        ended = {}
        for moment, (text, after, _) in MOMENTS.items():
            process, end = running[moment], time.monotonic() + 120
            while text not in (folder / moment).read_text():
                assert process.poll() is None and time.monotonic() < end, (folder / moment).read_text()
                time.sleep(0.05)
            time.sleep(after)
            for _ in range(2):
                os.killpg(process.pid, signal.SIGINT)
                time.sleep(0.01)
            ended[moment] = process.wait(30), (folder / moment).read_text()
        return ended
    finally:
        for process in running.values():
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_process_that_is_told_to_stop_ends_without_a_word(told_to_stop, moment):
    code, output = told_to_stop[moment]
    assert code == 0, output
    for word in ("Traceback", "KeyboardInterrupt", "Failed", "rror"):
        assert word not in output, output


@pytest.mark.slow
def test_who_waits_is_answered_and_sees_the_node_go(tmp_path):
    """arm_planner plans for long and has trajectory_player execute a motion, and is told to stop."""
    context = new_context()
    client = Node("client", context=context)
    executor = rclpy.executors.SingleThreadedExecutor(context=context)
    executor.add_node(client)
    environment = os.environ | {"ROS_DOMAIN_ID": str(context.get_domain_id()), "PYTHONUNBUFFERED": "1"}
    processes, logs = {}, {}

    def start(name, module, *parameters):
        logs[name] = tmp_path / name
        given = [word for one in [*DESK, "group:=arm", *parameters] for word in ("-p", one)]
        command = [sys.executable, "-m", f"gpu_planners.nodes.{module}.node", "--ros-args", *given]
        with open(logs[name], "w") as log:
            processes[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def wait_until(condition, timeout=300.0):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, {name: log.read_text() for name, log in logs.items()}
            executor.spin_once(0.05)

    def end(name, how=signal.SIGTERM):
        """The process ends as it should when it is told to."""
        processes[name].send_signal(how)
        assert processes[name].wait(20) == 0 and "Traceback" not in logs[name].read_text()

    long = "optimise_s:=60.0", "time_limit_s:=90.0", "restarts:=100000"
    scene = f"scene_file:={ROOT / 'config/scenes/desk.yaml'}"
    start("arm", "arm", "device:=cpu", scene, "monitor_patience_s:=60.0", *(f"rrt_connect.{one}" for one in long))
    start("player", "player", "initial_state:=ready")
    try:
        wait_until(lambda: "ready on" in logs["arm"].read_text())
        states = []
        client.create_subscription(JointState, "/joint_states", states.append, 10)
        wait_until(lambda: states)
        names = ["shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"]
        goal = JointState(name=names, position=[-0.9, 0.55, 1.0, 1.5, 0.0, 0.0])  # round the box on the desk
        plans = client.create_client(PlanMotion, "/arm_planner/plan_motion")
        moves, feedback = ActionClient(client, Move, "/arm_planner/move"), []
        follows = None
        wait_until(lambda: plans.service_is_ready() and moves.server_is_ready())
        try:
            from control_msgs.action import FollowJointTrajectory
        except ImportError:
            moved = None  # nothing executes motions
        else:
            kind, name = FollowJointTrajectory, "/joint_trajectory_controller/follow_joint_trajectory"
            follows = ActionClient(client, kind, name)
            wait_until(follows.server_is_ready)
            sent = moves.send_goal_async(
                Move.Goal(joint_goals=[goal], velocity_scaling=0.01, time_limit_s=1.0),
                lambda message: feedback.append(message.feedback.state),
            )
            wait_until(lambda: "moving" in feedback)
            moved = sent.result().get_result_async()
        start = JointState(name=names, position=[0.0, -0.6, 1.6, 0.55, 0.0, 0.0])  # "ready"
        planned = plans.call_async(PlanMotion.Request(start=start, joint_goals=[goal]))
        time.sleep(1.0)  # until it is begun
        end("arm", signal.SIGINT)
        wait_until(lambda: planned.done() and (moved is None or moved.done()), 10)
        assert planned.result().code == -30 and "the node is ending" in planned.result().message
        if moved is not None:
            answer = moved.result()
            assert answer.status == GoalStatus.STATUS_ABORTED and answer.result.code == -30
            assert answer.result.message == "the node is ending; the robot has stopped"
            del states[:]
            wait_until(lambda: len(states) > 100)  # a second
            assert len({tuple(state.position) for state in states}) == 1
        wait_until(lambda: not plans.service_is_ready() and not moves.server_is_ready(), 5)
        end("player")
    finally:
        for process in processes.values():
            process.kill()
        executor.shutdown()
        client.destroy_node()
        rclpy.shutdown(context=context)
