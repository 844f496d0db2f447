"""Nodes under faults that come from outside while they plan: descriptions and maps that are replaced, clients that
vanish, a thousand requests a second."""

import itertools
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from checkout import ROOT

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

import grid_harness
import node_harness
from node_harness import ROBOT, request
from running_node import LATCHED, starter
from std_msgs.msg import String

from gpu_planners.nodes.arm.codes import ABORT, GOAL_IN_COLLISION, SUCCESS
from gpu_planners.nodes.common.map_codes import NO_VALID_PATH, NONE
from gpu_planners.nodes.grid.conversions import path_set_of
from gpu_planners.verify import walk

start_arm = starter(node_harness.RunningNode)
start_grid = starter(grid_harness.RunningNode)
# The same robot with a wall of its own where the goal of `request` leads.
WALLED = ROBOT.replace(
    '<link name="plate"/>',
    '<link name="plate"><collision><origin xyz="-0.75 0.45 0.1"/><geometry><box size="0.6 0.6 0.6"/></geometry>'
    "</collision></link>",
)


def flooded(running, make, rate, seconds):
    """Ask at a rate, whatever is answered -> responses, in the order of requests."""
    futures, began = [], time.monotonic()
    for k in range(int(rate * seconds)):
        futures.append(running.client.call_async(make(k)))
        time.sleep(max(began + k / rate - time.monotonic(), 0.0))
    running.wait_until(lambda: all(future.done() for future in futures), 300)
    return [future.result() for future in futures]


@pytest.fixture
def meanwhile():
    """A function that has another one called again and again on a thread of its own, until the test ends."""
    over, threads = threading.Event(), []

    def begin(what):
        def run():
            for k in itertools.count():
                if over.is_set():
                    return
                what(k)
                time.sleep(0.003)

        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()

    yield begin
    over.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_a_thousand_requests_a_second_are_all_answered(start_arm):
    """By a motion, or at once by the code that says to ask again; then the node serves as before."""
    running = start_arm(max_waiting=50)
    assert running.plan(request()).code == SUCCESS
    responses = flooded(running, lambda k: request(seed=k), 1000, 2)
    codes = [response.code for response in responses]
    assert set(codes) <= {SUCCESS, ABORT} and codes.count(SUCCESS) >= 50
    for response in responses:
        assert (response.code == SUCCESS) == bool(response.trajectory.points)
        assert response.code == SUCCESS or "max_waiting" in response.message
    assert running.plan(request()).code == SUCCESS


def test_a_description_that_is_replaced_again_and_again_is_one_or_the_other(start_arm, meanwhile):
    running = start_arm()
    publisher = running.publisher(String, "/robot_description", LATCHED)
    texts = {text: set() for text in (ROBOT, WALLED)}
    for text, codes in texts.items():
        publisher.publish(String(data=text))
        for _ in range(20):
            time.sleep(0.05)
            codes.add(running.plan(request()).code)
    assert SUCCESS in texts[ROBOT] and GOAL_IN_COLLISION in texts[WALLED]
    meanwhile(lambda k: k % 500 or publisher.publish(String(data=(ROBOT, WALLED)[k // 500 % 2])))
    codes = [response.code for response in flooded(running, lambda k: request(seed=k), 10, 6)]
    # ABORT: asked while a robot is being read, which is told at once where that takes long
    assert {SUCCESS, GOAL_IN_COLLISION} <= set(codes) <= {SUCCESS, GOAL_IN_COLLISION, ABORT}, set(codes)


def test_paths_on_maps_that_are_replaced_again_and_again_are_of_one_of_them(start_grid, meanwhile):
    """A wall with a door now here, now there: a path goes through one of them, and is shortest on that map."""
    maps = np.zeros((2, 30, 40), np.int8)
    maps[:, :, 20] = 100
    maps[0, 3, 20] = maps[1, 26, 20] = 0
    running = start_grid(grid_harness.map_message(maps[0]))
    publisher = running.publisher(grid_harness.OccupancyGrid, "/map", LATCHED)
    messages = [grid_harness.map_message(data) for data in maps]
    meanwhile(lambda k: publisher.publish(messages[k // 4 % 2]))
    starts, goal, through = [(14, 5), (2, 2)], (14, 35), set()
    for response in flooded(running, lambda k: grid_harness.request(starts=starts, goals=[goal]), 100, 4):
        assert response.code == NONE, response.message
        paths = path_set_of(response)
        for agent, start in enumerate(starts):
            assert response.codes[agent] in (NONE, NO_VALID_PATH)
            tiles = paths.path(agent)
            door = int(tiles[tiles[:, 1] == 20][0, 0] == 26)
            walk(maps[door] == 0, 8, tiles, start, goal)
            through.add(door)
    assert through == {0, 1}


CLIENT = """
import sys, time
import rclpy
from node_harness import request
from rclpy.action import ActionClient
from rclpy.node import Node
from gpu_planners.nodes.common.ros import DEEP
from gpu_planners_msgs.action import Move
from gpu_planners_msgs.srv import PlanMotion

rclpy.init()
node = Node("passer_by")
plans = node.create_client(PlanMotion, "/arm_planner/plan_motion", qos_profile=DEEP)
moves = ActionClient(node, Move, "/arm_planner/move")
assert plans.wait_for_service(60)
for seed in range(30):
    plans.call_async(request(seed=seed))
if moves.wait_for_server(5):
    for seed in range(5):
        moves.send_goal_async(Move.Goal(joint_goals=request().joint_goals, seed=seed))
rclpy.spin_once(node, timeout_sec=0.05)
print("asked", flush=True)
time.sleep(600)
"""


def test_clients_that_vanish_leave_the_node_as_it_was(start_arm):
    """Three processes ask and are killed while their requests wait; a fourth client gets its answers."""
    running = start_arm()
    assert running.plan(request()).code == SUCCESS
    environment = {**os.environ, "ROS_DOMAIN_ID": str(running.context.get_domain_id())}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "test"), environment.get("PYTHONPATH", "")])
    threads = threading.active_count()
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", CLIENT], env=environment, stdout=subprocess.PIPE) as client:
            assert client.stdout.readline() == b"asked\n"
            client.kill()
        assert running.plan(request()).code == SUCCESS
    running.wait_until(lambda: running.node.worker.waiting == 0, 60)
    assert [response.code for response in flooded(running, lambda k: request(seed=k), 50, 1)] == [SUCCESS] * 50
    assert threading.active_count() <= threads + 1 and not running.problem
