"""Runs a real node over real DDS for tests, each on a domain of its own."""

import itertools
import os
import threading
import time

os.environ.setdefault("ROS_PYTHON_CHECK_FIELDS", "1")  # Jazzy otherwise accepts wrong field types

import pytest

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

from rcl_interfaces.srv import SetParameters
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
_domains = itertools.count(os.getpid() % 80)


def new_context():
    """A ROS context on a domain of its own."""
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=next(_domains) % 100 + 1)
    return context


def starter(running_node):
    """Fixture: a function that starts nodes with other arguments and parameters, which end with the test.

    running_node: a RunningNode class
    """

    @pytest.fixture
    def start_node():
        nodes = []
        yield lambda *arguments, **parameters: nodes.append(running_node(*arguments, **parameters)) or nodes[-1]
        for node in nodes:
            node.close()

    return start_node


class RunningNode:
    """The node under test and a client node, each with its own executor thread, as in two processes.

    kind: class of the node; name: its name; service: type and name of the service that `plan` calls
    """

    def __init__(self, kind, name, service, parameters, threads=3):
        self.context, self.name = new_context(), name
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.node = kind(context=self.context, parameter_overrides=overrides)
        self.client_node = Node("client", context=self.context)
        self.client = self.client_node.create_client(service[0], f"/{name}/{service[1]}")
        self._executors = [MultiThreadedExecutor(threads, context=self.context), SingleThreadedExecutor(context=self.context)]
        for executor, node in zip(self._executors, (self.node, self.client_node)):
            executor.add_node(node)
            threading.Thread(target=executor.spin, daemon=True).start()

    def plan(self, request, timeout=240):
        return self.call(self.client, request, timeout)

    def call(self, client, request, timeout=240):
        future = client.call_async(request)
        self.wait_until(future.done, timeout)
        return future.result()

    def set_parameter(self, name, value):
        client = self.client_node.create_client(SetParameters, f"/{self.name}/set_parameters")
        assert client.wait_for_service(10)
        request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
        return self.call(client, request).results[0]

    def wait_until(self, condition, timeout=240):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, "timed out"
            time.sleep(0.005)

    def received(self, kind, topic, qos=10):
        """List that grows with every message of a topic."""
        messages = []
        self.client_node.create_subscription(kind, topic, messages.append, qos)
        return messages

    def publisher(self, kind, topic, qos=10):
        """Publisher that the node is already connected to."""
        publisher = self.client_node.create_publisher(kind, topic, qos)
        self.wait_until(lambda: publisher.get_subscription_count() > 0)
        return publisher

    def close(self):
        for executor in self._executors:
            executor.shutdown(timeout_sec=5)
        self.node.close()
        self.client_node.destroy_node()
        rclpy.shutdown(context=self.context)
