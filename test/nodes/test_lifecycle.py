"""A managed node: its states and services beside those of rclpy's own lifecycle node, and grid_planner as one."""

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

import random
import threading
from types import SimpleNamespace

import rclpy
from geometry_msgs.msg import PoseArray
from grid_harness import LATCHED, RunningNode, centre, map_message, poses, request, stamped
from lifecycle_msgs.msg import Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetAvailableStates, GetAvailableTransitions, GetState
from nav_msgs.msg import OccupancyGrid, Path
from nav_msgs.srv import GetPlan
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from running_node import new_context

from gpu_planners.nodes.common import map_codes as codes
from gpu_planners.nodes.common.lifecycle import GRAPH, Lifecycle
from gpu_planners.nodes.common.request_error import NotBegunError

SERVICES = {
    "change_state": ChangeState,
    "get_state": GetState,
    "get_available_states": GetAvailableStates,
    "get_available_transitions": GetAvailableTransitions,
    "get_transition_graph": GetAvailableTransitions,
}
TRIGGERS = [(step.number, step.label) for step in GRAPH if not step.label.startswith("transition_")]


@pytest.fixture(scope="module")
def both():
    """Calls a service of a node of ours (0) and of one of rclpy's (1), and keeps the events of both."""
    context = new_context()
    ours, rclpys = Node("ours", context=context), LifecycleNode("rclpys", context=context)
    lifecycle = Lifecycle(ours, True, {})
    client = Node("client", context=context)
    executor = SingleThreadedExecutor(context=context)
    for node in (ours, rclpys, client):
        executor.add_node(node)
    events = [[], []]
    names = ("ours", "rclpys")
    for name, kept in zip(names, events):
        client.create_subscription(TransitionEvent, f"/{name}/transition_event", kept.append, 10)
    clients = {
        (which, name): client.create_client(kind, f"/{node}/{name}")
        for which, node in enumerate(names)
        for name, kind in SERVICES.items()
    }
    threading.Thread(target=executor.spin, daemon=True).start()
    assert all(each.wait_for_service(10) for each in clients.values())

    def call(which, name, **fields):
        return clients[which, name].call(SERVICES[name].Request(**fields), timeout_sec=30)

    yield SimpleNamespace(call=call, events=events, lifecycle=lifecycle)
    executor.shutdown(timeout_sec=5)
    for node in (ours, rclpys, client):
        node.destroy_node()
    rclpy.shutdown(context=context)


def known(steps):
    return {
        (step.transition.id, step.transition.label, step.start_state.id, step.start_state.label, step.goal_state.id)
        for step in steps.available_transitions
    }


def test_services_and_events_are_those_of_rclpys_node(both):
    graphs = [both.call(which, "get_transition_graph") for which in (0, 1)]
    assert known(graphs[0]) == known(graphs[1])
    states = [both.call(which, "get_available_states").available_states for which in (0, 1)]
    assert {(s.id, s.label) for s in states[0]} == {(s.id, s.label) for s in states[1]}
    rng, made = random.Random(3), 0
    for last in [False] * 40 + [True]:
        steps = [both.call(which, "get_available_transitions") for which in (0, 1)]
        assert known(steps[0]) == known(steps[1])
        now = [both.call(which, "get_state").current_state for which in (0, 1)]
        assert now[0] == now[1]
        step = rng.choice(
            [s.transition for s in steps[1].available_transitions if (s.transition.label == "shutdown") == last]
        )
        by_label = rng.random() < 0.5
        fields = Transition(label=step.label) if by_label else Transition(id=step.id)
        assert [both.call(which, "change_state", transition=fields).success for which in (0, 1)] == [True, True]
        made += 1
    assert both.call(0, "get_state").current_state.label == "finalized"
    assert known(both.call(0, "get_available_transitions")) == known(both.call(1, "get_available_transitions"))
    while min(map(len, both.events)) < 2 * made:
        both.call(0, "get_state")
    ways = [[(event.start_state, event.goal_state) for event in kept] for kept in both.events]
    assert ways[0] == ways[1]


def test_a_transition_that_there_is_not_is_answered(both):
    """rclpy's node would end."""
    both.lifecycle.state = "unconfigured"
    for transition in (
        Transition(id=3),
        Transition(id=99),
        Transition(label="fly"),
        Transition(id=1, label="activate"),
    ):
        assert not both.call(0, "change_state", transition=transition).success
    assert both.call(0, "get_state").current_state.label == "unconfigured"


def test_a_callback_that_raises_fails_the_transition(both):
    def fail(state):
        raise ValueError(f"no, from {state}")

    both.lifecycle.state, both.lifecycle._callbacks = "inactive", {"activate": fail, "shutdown": fail}
    assert not both.call(0, "change_state", transition=Transition(id=3)).success
    assert both.call(0, "get_state").current_state.label == "inactive"
    with pytest.raises(NotBegunError, match="/ours is inactive; allowed: requests while it is active"):
        both.lifecycle.gated(lambda: None)()
    assert not both.call(0, "change_state", transition=Transition(label="shutdown")).success
    assert both.call(0, "get_state").current_state.label == "finalized"


def test_the_grid_planner_is_configured_activated_and_back():
    running = RunningNode(None, lifecycle=True)
    try:
        change = running.client_node.create_client(ChangeState, "/grid_planner/change_state")
        assert change.wait_for_service(10)

        def make(label):
            return running.call(change, ChangeState.Request(transition=Transition(label=label))).success

        def refused(state):
            response = running.plan(request())  # again while it is compiling
            return response.code == codes.NOT_BEGUN and f"is {state}; allowed: requests while" in response.message

        publisher = running.client_node.create_publisher(OccupancyGrid, "/map", LATCHED)
        publisher.publish(map_message())
        assert refused("unconfigured") and running.facts["map messages"] == "0"
        assert not make("activate") and make("configure") and refused("inactive")
        running.wait_until(lambda: running.facts["map messages"] == "1")
        goals = running.client_node.create_publisher(PoseArray, "/grid_planner/goals", 10)
        starts = running.client_node.create_publisher(PoseArray, "/grid_planner/starts", 10)
        running.wait_until(lambda: starts.get_subscription_count() and goals.get_subscription_count())
        starts.publish(poses([centre(0, 0)]))
        goals.publish(poses([centre(9, 9)]))
        running.wait_until(lambda: "is inactive" in running.problem)
        plans = running.received(Path, "/plan")
        assert make("activate")
        running.wait_until(lambda: plans)  # what came meanwhile is planned
        assert running.plan(request()).code == codes.NONE
        assert make("deactivate") and refused("inactive")
        get_plan = running.client_node.create_client(GetPlan, "/grid_planner/get_plan")
        ends = {"start": stamped(*centre(0, 0)), "goal": stamped(*centre(9, 9))}
        assert get_plan.wait_for_service(10) and not running.call(get_plan, GetPlan.Request(**ends)).plan.poses
        assert make("activate") and running.call(get_plan, GetPlan.Request(**ends)).plan.poses
        assert make("deactivate") and make("cleanup") and refused("unconfigured")
        running.wait_until(lambda: running.facts["map"] == "none" and running.status.message == "unconfigured")
        publisher.publish(map_message())
        assert make("configure") and make("activate")  # the map comes again, for it is latched
        running.wait_until(lambda: running.facts["map messages"] == "1")
        assert running.plan(request()).code == codes.NONE
        assert make("shutdown") and refused("finalized") and running.facts["lifecycle"] == "finalized"
    finally:
        running.close()


def test_a_node_that_nobody_manages_offers_no_lifecycle():
    running = RunningNode()
    try:
        assert running.plan(request()).code == codes.NONE
        assert not [s for s in running.node.services if s.srv_name.endswith("/change_state")]
    finally:
        running.close()
