"""The arm node on several devices, here two times the CPU: requests are answered beside each other, changes alone."""

import re

import running_node
from node_harness import RunningNode, marker, request
from test_arm_planner_node import WALLED_IN

from gpu_planners_msgs.srv import PlanMotion

start_node = running_node.starter(RunningNode)
SLOW = {"time_limit_s": 8.0, **WALLED_IN}  # nothing is found, so that all of it is used


def test_a_request_does_not_wait_for_one_on_another_device(start_node):
    node = start_node(device="cpu,cpu")
    assert node.plan(request()).code == PlanMotion.Response.SUCCESS
    assert "cpu" in node.facts["device"]
    slow, answered = node.client.call_async(request(**SLOW)), []
    for seed in range(3):  # on the other device, one after the other
        answered.append(node.plan(request(seed=seed)))
        assert not slow.done()
    assert [response.code for response in answered] == 3 * [PlanMotion.Response.SUCCESS]
    assert {response.device for response in answered} == {"cpu"}
    node.wait_until(slow.done)
    assert slow.result().code == PlanMotion.Response.TIMED_OUT
    alone = node.plan(request(seed=1))
    assert [list(p.positions) for p in alone.path.points] == [list(p.positions) for p in answered[1].path.points]


def test_an_obstacle_published_before_a_request_counts_on_every_device(start_node):
    node = start_node(device="cpu,cpu")
    slow = node.client.call_async(request(**SLOW))
    assert node.plan(request()).code == PlanMotion.Response.SUCCESS  # so the slow one has begun
    node.publish_obstacles(marker(position=(0.0, 0.5, 0.1), scale=(0.2, 0.2, 0.2)))
    node.wait_until(lambda: node.plan(request()).code == PlanMotion.Response.START_STATE_IN_COLLISION)
    assert slow.done()  # since the change waited for it
    both = [node.client.call_async(request(seed=seed)) for seed in range(4)]
    node.wait_until(lambda: all(future.done() for future in both))
    assert {future.result().code for future in both} == {PlanMotion.Response.START_STATE_IN_COLLISION}


def test_devices_may_change_while_the_node_runs(start_node):
    node = start_node(device="cpu")
    refused = node.set_parameter("device", "cpu,tpu")
    assert not refused.successful and re.search("'tpu'.*use 'auto'", refused.reason)
    assert node.set_parameter("device", "cpu, cpu, cpu").successful
    futures = [node.client.call_async(request(seed=seed)) for seed in range(6)]
    node.wait_until(lambda: all(future.done() for future in futures))
    assert {future.result().code for future in futures} == {PlanMotion.Response.SUCCESS}
    assert node.set_parameter("device", "cpu").successful
    assert node.plan(request()).code == PlanMotion.Response.SUCCESS
