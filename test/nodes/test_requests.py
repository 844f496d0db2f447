"""Requests of real nodes over DDS: many at once, too many, cancelled, and what is compiled meanwhile."""

import os
import signal
import threading
import time
from multiprocessing import active_children

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from action_msgs.msg import GoalStatus
from node_harness import ROBOT, RunningNode, request
from rclpy.action import ActionClient
from rclpy.action.server import ServerGoalHandle
from rclpy.service import Service
from running_node import LATCHED, shared, starter
from std_msgs.msg import String

from gpu_planners.compiling import KEEPING, Part, Progress
from gpu_planners.nodes.arm.codes import ABORT, SUCCESS
from gpu_planners.nodes.common.actions import Longer
from gpu_planners.nodes.common.compiling import Background
from gpu_planners.nodes.common.request_error import NotBegunError
from gpu_planners.nodes.common.ros import DEEP
from gpu_planners_msgs.action import Move
from gpu_planners_msgs.srv import AttachObjects, PlanMotion

node_of_module, running = shared(RunningNode)
start_node = starter(RunningNode)
MANY = 100


def answers(running, clients):
    """Codes of the responses to a request of each client, sent all at once."""
    futures = [client.call_async(request(seed=seed)) for seed, client in enumerate(clients)]
    running.wait_until(lambda: all(future.done() for future in futures))
    return [future.result().code for future in futures]


def test_none_of_many_requests_is_lost(running):
    running.plan(request())
    assert answers(running, [running.client] * MANY) == [SUCCESS] * MANY


def test_none_of_many_clients_is_forgotten(running):
    running.plan(request())
    create = running.client_node.create_client
    clients = [create(PlanMotion, "/arm_planner/plan_motion", qos_profile=DEEP) for _ in range(MANY)]
    running.wait_until(lambda: all(client.service_is_ready() for client in clients))
    assert answers(running, clients) == [SUCCESS] * MANY
    for client in clients:
        running.client_node.destroy_client(client)


def hold(node):
    """Keep a node's worker busy, with the scene locked -> event that ends that"""
    busy, over = threading.Event(), threading.Event()

    def keep_busy():
        with node.scene.lock:
            busy.set()
            over.wait(60)

    node.worker.do(keep_busy)
    assert busy.wait(60)
    return over


def test_one_request_too_many_is_answered_at_once(running):
    running.plan(request())
    assert running.set_parameter("max_waiting", 2).successful
    over = hold(running.node)
    futures = [running.client.call_async(request()) for _ in range(3)]
    running.wait_until(lambda: any(future.done() for future in futures), 20)
    refused = next(future.result() for future in futures if future.done())
    assert refused.code == ABORT and "2 requests wait already; allowed: 2, the parameter max_waiting" in refused.message
    over.set()
    running.wait_until(lambda: all(future.done() for future in futures))
    assert sorted(future.result().code for future in futures) == [ABORT, SUCCESS, SUCCESS]


def test_requests_that_wait_when_the_node_ends_are_answered(start_node):
    running = start_node()
    running.plan(request())
    over = hold(running.node)
    future = running.client.call_async(request())
    running.wait_until(lambda: running.node.worker.waiting)
    running.node.worker.stop(0.01)
    running.wait_until(future.done)
    assert future.result().code == ABORT and "the node is ending" in future.result().message
    over.set()


def test_a_request_that_is_under_way_when_the_node_ends_is_answered_once(start_node, monkeypatch):
    running, begun, go_on, sent = start_node(), threading.Event(), threading.Event(), []
    send = Service.send_response
    monkeypatch.setattr(Service, "send_response", lambda *arguments: sent.append(1) or send(*arguments))
    running.node.serve(
        PlanMotion,
        "~/long",
        lambda request, response: (begun.set(), go_on.wait(60), response)[-1],
        lambda error: PlanMotion.Response(message=str(error)),
    )
    client = running.client_node.create_client(PlanMotion, "/arm_planner/long")
    assert client.wait_for_service(10)
    future = client.call_async(PlanMotion.Request())
    assert begun.wait(20)
    assert not running.node.finish(0.05)
    running.wait_until(future.done, 10)
    assert future.result().message == "the node is ending"
    go_on.set()
    assert running.node.finish() and len(sent) == 1


@pytest.fixture
def countdown(start_node):
    """(running node with an action `count`, client of the action, list of the goals that were worked at)"""
    running, begun = start_node(), []

    def answer(goal):
        if goal.request.planner == "error":
            raise ValueError("a made-up error")
        begun.append(goal.request.seed)
        return Move.Result(code=SUCCESS, message=f"goal {goal.request.seed}"), True

    def refused(error):
        return Move.Result(code=ABORT if isinstance(error, NotBegunError) else 99999, message=str(error))

    running.node.act(Move, "~/count", answer, refused, lambda: Move.Result(code=Move.Result.PREEMPTED, message="over"))
    client = ActionClient(
        running.client_node, Move, "/arm_planner/count", goal_service_qos_profile=DEEP, result_service_qos_profile=DEEP
    )
    running.wait_until(client.server_is_ready)
    yield running, client, begun
    client.destroy()


def accepted(running, client, goals):
    futures = [client.send_goal_async(goal) for goal in goals]
    running.wait_until(lambda: all(future.done() for future in futures))
    handles = [future.result() for future in futures]
    assert all(handle.accepted for handle in handles)
    return handles


def results(running, handles, then=lambda: None):
    """then: called when all were asked for; rclpy's client may miss a result that is there before it has asked"""
    futures = [handle.get_result_async() for handle in handles]
    then()
    running.wait_until(lambda: all(future.done() for future in futures))
    return [future.result() for future in futures]


def test_none_of_many_goals_is_lost(countdown):
    running, client, _ = countdown
    over = hold(running.node)
    handles = accepted(running, client, [Move.Goal(seed=seed) for seed in range(MANY)])
    found = results(running, handles, over.set)
    assert [result.result.message for result in found] == [f"goal {seed}" for seed in range(MANY)]
    assert {result.status for result in found} == {GoalStatus.STATUS_SUCCEEDED}
    over = hold(running.node)
    failed = results(running, accepted(running, client, [Move.Goal(planner="error")]), over.set)[0]
    assert failed.status == GoalStatus.STATUS_ABORTED and failed.result.message == "a made-up error"


def test_a_cancelled_goal_ends_at_once(countdown):
    running, client, begun = countdown
    over = hold(running.node)
    first, second = accepted(running, client, [Move.Goal(seed=1), Move.Goal(seed=2)])
    second.cancel_goal_async()
    result = results(running, [second])[0]  # though the worker is busy
    assert result.status == GoalStatus.STATUS_CANCELED and result.result.code == Move.Result.PREEMPTED
    assert results(running, [first], over.set)[0].status == GoalStatus.STATUS_SUCCEEDED and begun == [1]


def test_a_goal_that_is_cancelled_just_when_it_ends_is_answered(countdown, monkeypatch):
    running, client, begun = countdown
    execute = ServerGoalHandle.execute
    monkeypatch.setattr(ServerGoalHandle, "execute", lambda *arguments: time.sleep(0.3) or execute(*arguments))
    goal = accepted(running, client, [Move.Goal(seed=1)])[0]
    running.wait_until(lambda: begun)
    goal.cancel_goal_async()
    answer = goal.get_result_async()
    running.wait_until(answer.done, 20)
    assert answer.result().status in (GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_CANCELED)


def test_a_goal_that_goes_on_is_begun_before_it_is_cancelled(start_node):
    running, goals, happened, begins = start_node(), [], [], threading.Event()

    def begin():
        begins.set()
        time.sleep(0.3)
        happened.append("begin")

    def cancel():
        happened.append("cancel")
        action.end(goals[0], Move.Result(message="stopped"), False)

    action = running.node.act(
        Move,
        "~/long",
        lambda goal: goals.append(goal) or Longer(begin, cancel),
        lambda error: Move.Result(),
        Move.Result,
    )
    client = ActionClient(running.client_node, Move, "/arm_planner/long")
    running.wait_until(client.server_is_ready)
    goal = accepted(running, client, [Move.Goal()])[0]
    assert begins.wait(10)
    goal.cancel_goal_async()
    answer = results(running, [goal])[0]
    assert happened == ["begin", "cancel"]
    assert answer.status == GoalStatus.STATUS_CANCELED and answer.result.message == "stopped"
    client.destroy()


def test_a_node_that_nobody_spins_ends_though_goals_wait(countdown):
    running, client, _ = countdown
    over = hold(running.node)
    accepted(running, client, [Move.Goal(), Move.Goal()])
    running._executors[0].shutdown(timeout_sec=5)
    assert not running.node.finish(0.05)
    over.set()
    assert running.node.finish()


def test_a_planner_that_cannot_be_loaded_leaves_the_node_ready(running, monkeypatch):
    device = running.plan(request(planner="rrt")).device
    monkeypatch.setattr("gpu_planners.compiling.Part.run", lambda part: 1 / 0)
    running.node.scene.warm_planners.discard(("rrt", device, ""))
    response = running.call(running.client, request(planner="rrt"))
    assert response.code != SUCCESS and "ZeroDivisionError" in response.message
    running.wait_until(lambda: running.status.message == "ready")


class Recorded:
    """In place of the processes that compile: keeps what it is asked to, and is done when the test says so."""

    def __init__(self, told, done):
        Recorded.latest, self.told, self.done, self.started = self, told, done, []

    def start(self, parts):
        self.started += parts

    def wait(self, parts):
        """Nobody waits."""

    def stop(self):
        """Nothing is under way."""


def test_other_requests_go_on_while_a_planner_is_compiled(start_node, monkeypatch):
    missing = set()
    monkeypatch.setattr("gpu_planners.nodes.common.planner_node.Background", Recorded)
    monkeypatch.setattr("gpu_planners.nodes.common.planner_node.is_compiled", lambda what: what not in missing)
    running = start_node()
    device = running.plan(request()).device
    missing.add(rrt := f"planner rrt on {device.partition(':')[0]}")
    response = running.call(running.client, request(planner="rrt"))
    assert response.code == ABORT and f"{rrt}: it is being compiled" in response.message
    assert running.call(running.client, request()).code == SUCCESS
    part = Recorded.latest.started[-1]
    assert part.what == rrt
    part.run()
    Recorded.latest.done({rrt: ""})
    assert running.call(running.client, request(planner="rrt")).code == SUCCESS


def test_what_keeps_constraints_is_compiled_once_the_node_is_ready(start_node, monkeypatch):
    messages = pytest.importorskip("gpu_planners_msgs.msg")
    if not hasattr(messages, "MotionConstraint"):
        pytest.skip("gpu_planners_msgs was built before it had MotionConstraint")
    monkeypatch.setattr("gpu_planners.nodes.common.planner_node.Background", Recorded)
    monkeypatch.setattr("gpu_planners.nodes.common.planner_node.is_compiled", lambda what: KEEPING not in what)
    running = start_node()
    assert running.plan(request()).code == SUCCESS
    running.wait_until(lambda: Recorded.latest.started, 60)
    (part,) = Recorded.latest.started
    constraint = messages.MotionConstraint(joint_names=["elbow"], joint_lower=[-0.1], joint_upper=[0.6])
    response = running.call(running.client, request(constraints=[constraint]))
    assert response.code == ABORT and f"{part.what}: it is being compiled" in response.message
    assert running.call(running.client, request()).code == SUCCESS
    Recorded.latest.done({part.what: ""})  # which loads it
    running.wait_until(lambda: any(name == KEEPING for name, *_ in running.node.scene.warm_planners), 20)
    assert running.call(running.client, request(constraints=[constraint])).code == SUCCESS


def test_a_node_serves_what_is_compiled_and_tells_how_far_it_is(start_node, monkeypatch):
    missing = set()
    monkeypatch.setattr("gpu_planners.nodes.common.planner_node.Background", Recorded)
    monkeypatch.setattr("gpu_planners.nodes.common.planner_node.is_compiled", lambda what: what not in missing)
    missing.update(f"planner rrt_connect on {kind}" for kind in ("cpu", "cuda"))
    running = start_node(robot="")
    running.publisher(String, "/robot_description", LATCHED).publish(String(data=ROBOT))
    running.wait_until(lambda: Recorded.latest.started, 60)
    Recorded.latest.told(Progress(("a",), ("b",), 3, 12.0))
    expected = "compiling: 1 of 3 parts compiled; now b; about 12 s left"
    running.wait_until(lambda: running.status.message == expected, 20)
    attaching = running.client_node.create_client(AttachObjects, "/arm_planner/attach_objects")
    assert attaching.wait_for_service(10)
    assert "compil" not in running.call(attaching, AttachObjects.Request()).message
    assert running.call(running.client, request()).code == ABORT
    Recorded.latest.done(dict.fromkeys(missing, ""))
    running.wait_until(lambda: running.status.message == "ready", 60)
    assert running.call(running.client, request()).code == SUCCESS


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_compiles_in_the_background_is_a_process_that_ends_with_the_node(tmp_path):
    seen, done = [], []
    background = Background(seen.append, done.append)
    wrong = [Part("a failure", os._exit, (3,), 1), Part("what pickle does not take", lambda: None, (), 1)]
    file = tmp_path / "file"
    background.start([Part(str(file), write, (str(file),), 1), wrong[1]])  # a name that the cache has not kept
    background.start(wrong[:1])
    background.wait(wrong)
    assert (
        done[0][str(file)] == "" and "pickle" in done[0]["what pickle does not take"].lower() and done[1]["a failure"]
    )
    assert int(file.read_text()) != os.getpid()
    assert seen[-1].total == 1 and seen[0].total == 2 and "s so far" in str(seen[0])
    others = set(active_children())
    background.start([Part("a long one", signal.pause, (), 1)])
    while not (processes := set(active_children()) - others):
        time.sleep(0.01)
    background.stop()
    end = time.monotonic() + 20
    for process in processes:  # who loses a race of two threads that wait for a process is told no exit code at first
        while process.exitcode is None and time.monotonic() < end:
            time.sleep(0.01)
        assert process.exitcode == -signal.SIGTERM
    with pytest.raises(NotBegunError, match="ending"):  # whoever waits shall not compile it
        background.wait([])
    assert len(done) == 2


def write(path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(str(os.getpid()))
