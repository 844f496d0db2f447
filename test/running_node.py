"""Runs a real node over real DDS for tests, each on a domain of its own."""

import inspect
import itertools
import os
import threading
import time

os.environ.setdefault("ROS_PYTHON_CHECK_FIELDS", "1")  # Jazzy otherwise accepts wrong field types

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile

from gpu_planners.nodes.common.ros import DEEP

DEVICE = os.environ.get("GPU_PLANNERS_TEST_DEVICE", "cpu")  # of nodes whose test names none
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
_FIRST_DOMAIN = int(os.environ["ROS_DOMAIN_ID"])  # of this process: see conftest.py
OFFERED_S = 30  # within which a node offers a topic
_NODES = 5  # at a time, on domains of their own
_domains = itertools.cycle(range(_FIRST_DOMAIN + 1, _FIRST_DOMAIN + 1 + _NODES))
_contexts = {}  # by domain


def new_context():
    """A ROS context on a domain that no other context has now."""
    for domain in itertools.islice(_domains, _NODES):
        if domain not in _contexts or not _contexts[domain].ok():
            break
    else:
        raise RuntimeError(f"{_NODES} nodes run already: some test did not close its own")
    _contexts[domain] = rclpy.Context()
    rclpy.init(context=_contexts[domain], domain_id=domain)
    return _contexts[domain]


def shared(make):
    """Fixtures: a running node for a whole module, and the same for one test, after which it is restored.

    make: makes a RunningNode
    """

    @pytest.fixture(scope="module")
    def node_of_module():
        node = make()
        yield node
        node.close()

    @pytest.fixture
    def running(node_of_module):
        yield node_of_module
        node_of_module.restore()

    return node_of_module, running


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
    status: the latest DiagnosticStatus of the node
    """

    def __init__(self, kind, name, service, parameters):
        self.context, self.name = new_context(), name
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        try:
            self.node = kind(context=self.context, parameter_overrides=overrides)
        except Exception:
            rclpy.shutdown(context=self.context)
            raise
        self.client_node = Node("client", context=self.context)
        path = f"/{name}/{service[1]}"
        self.client = self.client_node.create_client(service[0], path, qos_profile=DEEP)  # else it keeps 10 responses
        self._executors = [SingleThreadedExecutor(context=self.context) for _ in range(2)]
        for executor, node in zip(self._executors, (self.node, self.client_node)):
            executor.add_node(node)
            threading.Thread(target=executor.spin, daemon=True).start()
        self._publishers, self._before = {}, {}
        self._statuses = self.received(DiagnosticArray, "/diagnostics")

    @property
    def status(self):
        name = self.node.get_fully_qualified_name()  # nodes of other runs may share the domain
        self.wait_until(lambda: self._own_statuses(name))
        return self._own_statuses(name)[-1]

    def _own_statuses(self, name):
        return [message.status[0] for message in self._statuses if message.status[0].name == name]

    @property
    def facts(self):
        """{key: text} that the node tells about itself."""
        return {value.key: value.value for value in self.status.values}

    @property
    def problem(self):
        return self.facts["problem"]

    def restore(self):
        """Put back the parameters that `set_parameter` changed."""
        for name, value in self._before.items():
            assert self.set_parameter(name, value).successful
        self._before = {}

    def plan(self, request, timeout=600):
        """The response to a request, which is sent again while what it needs is being compiled."""
        end = time.monotonic() + timeout
        while "compil" in (response := self.call(self.client, request, timeout)).message:
            assert time.monotonic() < end, "timed out"
            time.sleep(0.1)
        return response

    def call(self, client, request, timeout=600):
        future = client.call_async(request)
        self.wait_until(future.done, timeout)
        return future.result()

    def set_parameter(self, name, value):
        client = self.client_node.create_client(SetParameters, f"/{self.name}/set_parameters")
        assert client.wait_for_service(10)
        before = self.node.get_parameter(name).value
        parameter = Parameter(name, Parameter.Type.DOUBLE_ARRAY if value == [] else None, value)
        result = self.call(client, SetParameters.Request(parameters=[parameter.to_parameter_msg()])).results[0]
        if result.successful:
            self._before.setdefault(name, list(before) if hasattr(before, "tolist") else before)
        return result

    def answer_without_dds(self, name, request):
        """The response of a service to a request that has not gone through DDS."""
        service = next(service for service in self.node.services if service.srv_name.endswith(f"/{name}"))
        response_to, responses = inspect.getclosurevars(service.send_response).nonlocals["response_to"], []
        self.node.worker.ask("test", lambda: responses.append(response_to(request)), responses.append)
        self.wait_until(lambda: responses)
        return responses[0]

    def wait_until(self, condition, timeout=600):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, "timed out"
            time.sleep(0.005)

    def received(self, kind, topic, qos=10):
        """List that grows with every message that the node publishes on a topic."""
        messages = []
        self.client_node.create_subscription(kind, topic, messages.append, qos)
        end = time.monotonic() + OFFERED_S  # some topics the node offers when it has seen that nobody else does
        while not (publishers := [one for one in self.node.publishers if one.topic_name == topic]):
            assert time.monotonic() < end, f"the node does not publish {topic}"
            time.sleep(0.05)
        self.wait_until(lambda: all(publisher.get_subscription_count() for publisher in publishers))
        return messages

    def publisher(self, kind, topic, qos=10):
        """Publisher that the node is already connected to."""
        key = topic, str(qos)
        if key not in self._publishers:
            self._publishers[key] = self.client_node.create_publisher(kind, topic, qos)
            self.wait_until(lambda: self._publishers[key].get_subscription_count() > 0)
        return self._publishers[key]

    def close(self):
        for executor in self._executors:
            executor.shutdown(timeout_sec=5)
        self.node.close()
        self.client_node.destroy_node()
        rclpy.shutdown(context=self.context)
