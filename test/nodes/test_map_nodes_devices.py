"""The nodes that plan on maps on several devices, here two times the CPU: requests beside each other, changes alone."""

import fleet_harness
import grid_harness
import numpy as np
import pytest
import running_node
from grid_harness import map_message, request

from gpu_planners.nodes.common import map_codes as codes
from gpu_planners_msgs.srv import PlanFleet

pytestmark = pytest.mark.ros
start_grid, start_fleet = map(running_node.starter, (grid_harness.RunningNode, fleet_harness.RunningNode))
HALL = np.zeros((256, 256), np.int8)
SLOW_S = 4.0


def many_goals(count=20_000):
    """A request that takes the node's whole time limit: each agent has a goal, and so a field, of its own."""
    tiles = np.stack(np.divmod(np.arange(count), HALL.shape[1]), axis=1)
    return request(tiles[::-1], tiles, without_steps=True)


def test_a_request_for_paths_does_not_wait_for_one_on_another_device(start_grid):
    node = start_grid(map_message(HALL), device="cpu,cpu", **{"exact.time_limit_s": SLOW_S})
    assert node.plan(request()).code == codes.NONE
    slow = node.client.call_async(many_goals())
    for _ in range(3):
        answered = node.plan(request())
        assert answered.code == codes.NONE and answered.device == "cpu" and not slow.done()
    node.publish_map(map_message(np.where(np.arange(256) == 5, 100, HALL).astype(np.int8)))
    assert slow.done()  # since the change waited for it
    both = [node.client.call_async(request()) for _ in range(4)]
    node.wait_until(lambda: all(future.done() for future in both))
    assert {future.result().codes[0] for future in both} == {codes.NO_VALID_PATH}  # on both devices
    assert node.set_parameter("device", "cpu").successful
    node.publish_map(map_message(HALL))
    assert node.plan(request()).codes[0] == codes.NONE
    node.wait_until(lambda: node.facts["requests"] == "10")


def test_a_fleet_moves_on_while_another_device_plans(start_fleet):
    node = start_fleet(np.zeros((32, 32), np.int8), device="cpu,cpu")
    agents = fleet_harness.Agents(node, {"a": (0, 0, 0)}, {"a": (7, 9)})
    agents.do_step()
    rng = np.random.default_rng(0)
    tiles = np.stack(np.divmod(np.arange(32 * 32), 32), axis=1)
    crowd = PlanFleet.Request(time_limit_s=SLOW_S, without_paths=True)
    for field in (crowd.starts, crowd.goals):
        field.header.frame_id = "map"
        field.poses = [fleet_harness.pose_at(*tile) for tile in rng.permutation(tiles)[:600]]
    slow, steps = node.client.call_async(crowd), 0
    while not slow.done():
        agents.do_step()
        steps += 1
    assert steps > 3 and slow.result().device == "cpu" and len(slow.result().codes) == 600
