"""fleet_planner with agents of unlike sizes, over real DDS: states, markers, plans, and messages that are refused."""

import numpy as np
from fleet_harness import HALL, RESOLUTION, Agents, RunningNode, pose_at
from geometry_msgs.msg import PoseArray
from running_node import shared
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners.nodes.common import map_codes as codes
from gpu_planners_msgs.msg import AgentStates
from gpu_planners_msgs.srv import PlanFleet

SIZES = {"small": 1, "large": 3, "other": 1, "big": 3}

node_of_module, running = shared(RunningNode)


class SizedAgents(Agents):
    def tell(self, removed=()):
        telling = {id: tile for id, tile in self.tiles.items() if id not in self.silent}
        message = AgentStates(ids=list(telling), removed=list(removed), sizes=[SIZES[id] for id in telling])
        message.poses = [pose_at(*tile) for tile in telling.values()]
        self._states.publish(message)


def boxes(tiles, sizes):
    """(N, 4) first and last rows and columns"""
    low = np.array(tiles)[:, :2] - (np.array(sizes)[:, None] - 1) // 2
    return np.column_stack([low, low + np.array(sizes)[:, None] - 1])


def meet(found):
    """Does any of these boxes meet another one, or reach beyond the hall?"""
    if (found[:, :2] < 0).any() or (found[:, 2:] >= HALL.shape).any():
        return True
    pairs = [(a, b) for k, a in enumerate(found) for b in found[k + 1 :]]
    return any((a[:2] <= b[2:]).all() and (b[:2] <= a[2:]).all() for a, b in pairs)


def test_agents_of_unlike_sizes_cross_and_their_bodies_never_meet(running):
    starts = {"small": (0, 0, 0), "large": (1, 8, 2), "other": (7, 0, 0), "big": (6, 3, 0)}
    goals = {"small": (7, 9), "large": (6, 1), "other": (3, 9), "big": (1, 6)}
    agents = SizedAgents(running, starts, goals)
    markers = running.received(MarkerArray, "/fleet_planner/markers")
    for _ in range(150):
        agents.do_step()
        if {id: tuple(tile[:2]) for id, tile in agents.tiles.items()} == goals:
            break
    assert {id: tuple(tile[:2]) for id, tile in agents.tiles.items()} == goals
    sizes = [SIZES[id] for id in starts]
    for tiles in agents.walked:
        assert not meet(boxes([tiles[id] for id in starts], sizes)), tiles
    running.wait_until(lambda: markers, 60)
    cubes = [one for one in markers[-1].markers if one.type == Marker.CUBE_LIST and one.action == Marker.ADD]
    assert {round(one.scale.x / 0.7 / RESOLUTION) for one in cubes} == {1, 3}
    agents.leave()


def test_sizes_that_cannot_be_are_refused_by_name(running):
    states = running.publisher(AgentStates, "/fleet_planner/agent_states", 1000)
    for sizes, text in (([1, 3], "1 ids and 2 sizes"), ([16], "the size of 'a' is 16; allowed: 0 to 15 tiles")):
        states.publish(AgentStates(ids=["a"], poses=[pose_at(2, 2)], sizes=sizes))
        running.wait_until(lambda text=text: text in running.problem, 30)
    states.publish(AgentStates(ids=["a"], poses=[pose_at(2, 2)], sizes=[0]))
    states.publish(AgentStates(removed=["a"]))
    running.wait_until(lambda: running.problem == "", 30)


def test_a_request_for_agents_of_unlike_sizes(running):
    starts, goals = [(0, 0), (1, 8), (6, 1)], [(7, 9), (6, 6), (1, 1)]

    def ask(sizes):
        posed = {name: PoseArray(poses=[pose_at(*tile) for tile in tiles]) for name, tiles in
                 (("starts", starts), ("goals", goals))}  # fmt: skip
        return running.plan(PlanFleet.Request(sizes=sizes, time_limit_s=2.0, **posed))

    answer = ask([0, 3, 3])
    assert answer.code == codes.NONE, answer.message
    places = [[(p.pose.position.y, p.pose.position.x) for p in path.poses] for path in answer.paths]
    for step in zip(*places, strict=True):
        assert not meet(boxes(np.floor(np.array(step) / RESOLUTION).astype(int), [1, 3, 3]))
    for sizes in ([3], [0, 3, 16]):
        answer = ask(sizes)
        assert answer.code == codes.INVALID_REQUEST and "sizes is" in answer.message
    assert ask([3, 3, 3]).code == codes.START_OCCUPIED  # the first one reaches beyond the map
