"""Managed nodes: their states, what they refuse, and grid_planner as one."""

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

import threading
from types import SimpleNamespace

import rclpy
from geometry_msgs.msg import PoseArray
from grid_harness import LATCHED, RunningNode, centre, map_message, poses, request, stamped
from lifecycle_msgs.msg import Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetState
from nav_msgs.msg import OccupancyGrid, Path
from nav_msgs.srv import GetPlan
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from running_node import new_context

from gpu_planners.nodes.common import map_codes as codes
from gpu_planners.nodes.common.lifecycle import ManagedNode, transition
from gpu_planners.nodes.common.request_error import NotBegunError


class Managed(Node, ManagedNode):
    """Node with one callback, which raises `error` where there is one."""

    error = None

    def __init__(self, **options):
        super().__init__("managed", **options)
        self.manage()

    @transition
    def on_activate(self):
        if self.error:
            raise self.error


@pytest.fixture
def managed():
    """(node, asks it for a transition -> success, its state over DDS, its events)"""
    context = new_context()
    node, client = Managed(context=context), Node("client", context=context)
    executor, events = SingleThreadedExecutor(context=context), []
    for each in (node, client):
        executor.add_node(each)
    client.create_subscription(TransitionEvent, "/managed/transition_event", events.append, 10)
    change = client.create_client(ChangeState, "/managed/change_state")
    state = client.create_client(GetState, "/managed/get_state")
    threading.Thread(target=executor.spin, daemon=True).start()
    assert change.wait_for_service(10) and state.wait_for_service(10)
    yield SimpleNamespace(
        node=node,
        events=events,
        change=lambda **step: change.call(ChangeState.Request(transition=Transition(**step)), timeout_sec=30).success,
        state=lambda: state.call(GetState.Request(), timeout_sec=30).current_state.label,
    )
    executor.shutdown(timeout_sec=5)
    for each in (node, client):
        each.destroy_node()
    rclpy.shutdown(context=context)


def test_states_are_changed_by_label_and_by_number(managed):
    steps = [("configure", "inactive"), (3, "active"), ("deactivate", "inactive"), (2, "unconfigured")]
    goals = []
    for step, state in [*steps, ("shutdown", "finalized")]:
        assert managed.change(**({"label": step} if isinstance(step, str) else {"id": step}))
        assert managed.state() == managed.node.lifecycle_state == state
        goals.append(state)
    assert [event.goal_state.label for event in managed.events[1::2]] == goals


def test_a_transition_that_there_is_not_is_answered(managed):
    """A node of rclpy alone would end."""
    for step in ({"id": 3}, {"id": 99}, {"label": "fly"}, {"id": 1, "label": "activate"}):
        assert not managed.change(**step)
    assert managed.state() == "unconfigured" and managed.change(label="configure")


def test_a_callback_that_raises_fails_the_transition(managed):
    managed.node.error = ValueError("no")
    assert managed.change(label="configure") and not managed.change(label="activate")
    assert managed.state() == "inactive"
    with pytest.raises(NotBegunError, match="/managed is inactive; allowed: requests while it is active"):
        managed.node.gated(lambda: None)()
    managed.node.error = None
    assert managed.change(label="activate") and managed.node.gated(lambda: 1)() == 1


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
