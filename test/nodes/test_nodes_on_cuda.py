"""The three nodes on a GPU. All tests of nodes run there with GPU_PLANNERS_TEST_DEVICE=cuda."""

import fleet_harness
import grid_harness
import node_harness
import numpy as np
import pytest
import running_node
from node_harness import marker
from test_arm_planner_node import BAR, collision_by_coal
from test_fleet_planner_node import CROSSING, FIVE, tile_of
from test_fleet_planner_node import request as fleet_request
from test_grid_planner_node import FREE, OPEN
from visualization_msgs.msg import MarkerArray

from gpu_planners.device import cuda_problem
from gpu_planners.fleet import conflicts
from gpu_planners.nodes.common import map_codes as codes
from gpu_planners.verify import costs_to_goal
from gpu_planners_msgs.srv import PlanMotion

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(cuda_problem()), reason=cuda_problem())]
COMPILING_S = 600
start_arm = running_node.starter(node_harness.RunningNode)
start_grid = running_node.starter(grid_harness.RunningNode)
start_fleet = running_node.starter(fleet_harness.RunningNode)


@pytest.mark.parametrize("planner", ("rrt_connect", "rrt_star", "prm"))
def test_motions(start_arm, planner):
    node = start_arm(device="cuda")
    around = node_harness.request(planner=planner, obstacles=MarkerArray(markers=[marker(**BAR)]), time_limit_s=10.0)
    answers = []

    def answered():  # until then a planner may be compiled in another process
        answers.append(node.plan(around, COMPILING_S))
        return answers[-1].code == PlanMotion.Response.SUCCESS

    node.wait_until(answered, COMPILING_S)
    assert answers[-1].device == "cuda:0" and collision_by_coal(answers[-1], BAR) is None
    node.publish_obstacles(marker(position=(0.0, 0.5, 0.1), scale=(0.2, 0.2, 0.2)))
    node.wait_until(lambda: node.plan(node_harness.request()).code == PlanMotion.Response.START_STATE_IN_COLLISION)


def test_paths_on_a_map(start_grid):
    node = start_grid(device="cuda")
    response = node.plan(grid_harness.request(starts=OPEN, goals=[(9, 9)]), COMPILING_S)
    assert response.code == codes.NONE and response.device == "cuda:0"
    assert np.allclose(response.costs, costs_to_goal(FREE, 8, (9, 9))[tuple(OPEN.T)])


def test_a_fleet(start_fleet):
    node = start_fleet(device="cuda")
    response = node.plan(fleet_request(list(FIVE.values()), list(CROSSING.values()), time_limit_s=1.0), COMPILING_S)
    assert response.code == codes.NONE and response.device == "cuda:0", response.message
    walked = np.array([[tile_of(pose.pose)[:2] for pose in path.poses] for path in response.paths]).swapaxes(0, 1)
    assert conflicts(walked, fleet_harness.HALL != 0) == []
    assert walked[-1].tolist() == [list(goal) for goal in CROSSING.values()]
