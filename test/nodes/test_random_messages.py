"""Every topic, service and action of the nodes, found on the node itself, gets random messages: each request is
answered, with a text where it is refused, no answer tells of an internal error, and the node goes on serving."""

import importlib
import os

import fleet_harness
import grid_harness
import node_harness
import numpy as np
import pytest
from random_messages import random_message
from rclpy.action import ActionClient, get_action_server_names_and_types_by_node
from rclpy.qos import QoSProfile

from gpu_planners_msgs.srv import PlanFleet

TIMES = 6 * int(os.environ.get("GPU_PLANNERS_STATES", 1))  # messages of each type
OF_RCLPY = ("rcl_interfaces", "lifecycle_msgs", "type_description_interfaces", "action_msgs")
ANSWER_S = 180
QUICK = {"rrt_connect.optimise_s": 0.0}
NODES = {
    "arm": lambda: node_harness.RunningNode(**QUICK),
    "grid": grid_harness.RunningNode,
    "fleet": fleet_harness.RunningNode,
}


@pytest.fixture(scope="module", params=NODES)
def node(request):
    running = NODES[request.param]()
    yield request.param, running
    running.close()


def served(which, running):
    """Does the node answer a request that is sound, whatever it says?"""
    sound = {"arm": node_harness.request, "grid": grid_harness.request, "fleet": PlanFleet.Request}[which]()
    return running.call(running.client, sound, ANSWER_S)


def told(message):
    """All texts of a message."""
    if isinstance(message, str):
        return [message]
    if isinstance(message, list | tuple):
        return [text for each in message for text in told(each)]
    fields = getattr(message, "get_fields_and_field_types", dict)()
    return [text for name in fields for text in told(getattr(message, name))]


def internal(message):
    return [text for text in told(message) if "internal error" in text]


def of_the_node(kind):
    return not kind.__module__.startswith(OF_RCLPY)


def test_services(node):
    which, running = node
    rng, services = np.random.default_rng(1), [one for one in running.node.services if of_the_node(one.srv_type)]
    assert len(services) > 2 - (which != "arm")
    for service in services:
        client = running.client_node.create_client(service.srv_type, service.service_name)
        assert client.wait_for_service(10)
        for _ in range(TIMES):
            request = random_message(service.srv_type.Request, rng)
            response = running.call(client, request, ANSWER_S)
            assert not internal(response), (service.service_name, request, response)
            failed = getattr(response, "success", True) is False or getattr(response, "code", 1) not in (0, 1)
            assert not failed or any(told(response)), (service.service_name, request, response)
        running.client_node.destroy_client(client)
    assert not internal(served(which, running))


def test_topics(node):
    which, running = node
    rng = np.random.default_rng(2)
    for topic in list(running.node.subscriptions):
        if not of_the_node(topic.msg_type) or topic.topic_name in ("/clock", "/parameter_events"):
            continue
        publisher = running.client_node.create_publisher(
            topic.msg_type, topic.topic_name, QoSProfile(depth=100, durability=topic.qos_profile.durability)
        )
        running.wait_until(lambda publisher=publisher: publisher.get_subscription_count() > 0, 30)
        for _ in range(TIMES):
            publisher.publish(random_message(topic.msg_type, rng))
        answer = served(which, running)
        assert not internal(answer), (topic.topic_name, answer)
        assert "internal error" not in running.facts.get("problem", ""), topic.topic_name
        running.client_node.destroy_publisher(publisher)


def test_actions(node):
    which, running = node
    own = running.node.get_name(), running.node.get_namespace()
    rng, found = np.random.default_rng(3), []
    running.wait_until(lambda: running.node.get_name() in running.client_node.get_node_names(), 30)
    for name, (kind, *_) in get_action_server_names_and_types_by_node(running.client_node, *own):
        package, _, kind = kind.split("/")
        action = getattr(importlib.import_module(f"{package}.action"), kind)
        client = ActionClient(running.client_node, action, name)
        assert client.wait_for_server(30)
        for _ in range(TIMES):
            sent = client.send_goal_async(random_message(action.Goal, rng))
            running.wait_until(sent.done, ANSWER_S)
            if (handle := sent.result()).accepted:
                ended = handle.get_result_async()
                running.wait_until(ended.done, ANSWER_S)
                assert not internal(ended.result().result), name
        client.destroy()
        found.append(name)
    assert found or which != "arm"
    assert not internal(served(which, running))
