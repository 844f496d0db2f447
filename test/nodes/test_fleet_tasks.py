"""Tasks over real DDS: agents that do what the node fleet_planner says do what was asked for by its services."""

import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

from builtin_interfaces.msg import Time
from fleet_harness import RESOLUTION, Agents, RunningNode
from geometry_msgs.msg import Point
from running_node import starter

from gpu_planners.nodes.common import map_codes as codes
from gpu_planners_msgs.msg import Task, TaskState, TaskStates
from gpu_planners_msgs.srv import CancelTasks, GetTasks, PrioritizeTasks, SubmitTasks

start_node = starter(RunningNode)


def point(row, col):
    return Point(x=(col + 0.5) * RESOLUTION, y=(row + 0.5) * RESOLUTION)


def task(id, *tiles, **fields):
    return Task(id=id, errands=[point(*tile) for tile in tiles], **fields)


def ask(running, kind, name, **request):
    """The response to a request, which is sent again while code is compiled."""
    client = running.client_node.create_client(kind, f"/fleet_planner/{name}")
    assert client.wait_for_service(30)
    try:
        while (response := running.call(client, kind.Request(**request))).code == codes.NOT_BEGUN:
            time.sleep(0.2)
        return response
    finally:
        running.client_node.destroy_client(client)


def states(running, *ids):
    return {state.task.id: state for state in ask(running, GetTasks, "get_tasks", ids=list(ids)).states}


def walk(running, agents, until, most=120):
    for _ in range(most):
        agents.do_step()
        if until():
            return
    raise AssertionError(f"not within {most} steps: {states(running)}")


def test_tasks_are_done_and_told_of(start_node):
    running = start_node()
    told = running.received(TaskStates, "/fleet_planner/task_states")
    answer = ask(
        running,
        SubmitTasks,
        "submit_tasks",
        tasks=[
            task("pick", (0, 0), (7, 9)),
            task("", (4, 4)),
            task("late", (0, 5), release=Time(sec=2**31 - 1)),
            task("out", (50, 0)),
            task("none"),
            task("nan", (0, float("nan"))),
            task("c only", (2, 2), robots=["c"]),
            task("pick", (1, 1)),
        ],
    )
    assert list(answer.codes) == [
        codes.NONE, codes.NONE, codes.NONE, codes.GOAL_OUTSIDE_MAP, codes.INVALID_REQUEST, codes.GOAL_NOT_FINITE,
        codes.NONE, codes.NO_TASK,
    ]  # fmt: skip
    assert answer.code == codes.GOAL_OUTSIDE_MAP and "4 of 8" in answer.message and "'out'" in answer.texts[3]
    number = answer.ids[1]
    assert number and answer.ids[0] == "pick"
    assert ask(running, SubmitTasks, "submit_tasks", tasks=[task("pick", (0, 0), (7, 9))]).code == codes.NONE
    agents = Agents(running, {"a": (0, 9, 2), "b": (7, 0, 0)})
    walk(running, agents, lambda: {states(running, id)[id].status for id in ("pick", number)} == {TaskState.DONE})
    found = states(running)
    assert {found["late"].status, found["c only"].status} == {TaskState.WAITING}
    pick = found["pick"]
    assert pick.errand == 2 and list(pick.events)[-2:] == ["errand", "errand"] and pick.robot in ("a", "b")
    assert pick.task.errands[1] == point(7, 9) and list(pick.details)[-1] == "2" and pick.times[0].sec > 0
    running.wait_until(
        lambda: any(s.task.id == "pick" and s.status == TaskState.DONE for m in list(told) for s in m.states), 30
    )
    answer = ask(running, PrioritizeTasks, "prioritize_tasks", ids=["late", "pick"], priorities=[5, 5])
    assert list(answer.codes) == [codes.NONE, codes.NO_TASK]
    assert states(running, "late")["late"].task.priority == 5
    assert ask(running, PrioritizeTasks, "prioritize_tasks", ids=["late"]).code == codes.INVALID_REQUEST
    ended = ask(running, CancelTasks, "cancel_tasks", ids=["late", "nobody"])
    assert list(ended.codes) == [codes.NONE, codes.NO_TASK] and "nobody" in ended.message
    assert states(running, "late")["late"].status == TaskState.CANCELLED
    assert ask(running, GetTasks, "get_tasks", ids=["nobody"]).code == codes.NO_TASK
    running.wait_until(lambda: "2 done" in running.facts["tasks"], 30)


def test_goals_go_before_tasks_and_gone_agents_give_theirs_back(start_node, tmp_path):
    parameters = {"task_file": str(tmp_path / "tasks"), "parking": [0.25, 0.25], "dead_after_s": 2.0}
    running = RunningNode(**parameters)
    agents = Agents(running, {"a": (0, 9, 2), "b": (7, 9, 2)}, {"b": (7, 8)})
    ask(running, SubmitTasks, "submit_tasks", tasks=[task("t", (6, 8), *[(0, 0), (7, 0)] * 4)])
    walk(running, agents, lambda: states(running, "t")["t"].status == TaskState.BEGUN)
    assert states(running, "t")["t"].robot == "a"
    walk(running, agents, lambda: agents.tiles["b"][:2] == [7, 8])
    agents.remove("a")
    walk(running, agents, lambda: states(running, "t")["t"].status == TaskState.WAITING)
    state = states(running, "t")["t"]
    assert state.errand == 0 and list(state.events)[-1] == "returned" and list(state.details)[-1] == "removed"
    running.close()
    again = start_node(**parameters)
    assert list(states(again, "t")["t"].events) == list(state.events)
    agents = Agents(again, {"c": (3, 3, 0)})
    walk(again, agents, lambda: states(again, "t")["t"].status == TaskState.DONE)
    walk(again, agents, lambda: "park:c" in states(again) and agents.tiles["c"][:2] == [0, 0])


def test_a_file_of_another_map_is_told_of_and_requests_are_answered(start_node, tmp_path):
    file = tmp_path / "tasks"
    running = RunningNode(task_file=str(file))
    assert ask(running, SubmitTasks, "submit_tasks", tasks=[task("t", (1, 1))]).code == codes.NONE
    running.close()
    other = start_node(np.zeros((3, 3), np.int8), task_file=str(file))
    answer = ask(other, SubmitTasks, "submit_tasks", tasks=[task("u", (1, 1))])
    assert answer.code != codes.NONE and "another map" in answer.message
    agents = Agents(other, {"a": (0, 0, 0)}, {"a": (2, 2)})
    walk(other, agents, lambda: agents.tiles["a"][:2] == [2, 2])  # goals are served
    other.wait_until(lambda: "another map" in other.problem, 30)
