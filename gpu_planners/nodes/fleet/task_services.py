"""Tasks over ROS: services that submit, cancel, prioritise and tell of them, and the topic ~/task_states.

Everything here runs on the worker's first thread, as the steps do.
"""

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point

from gpu_planners_msgs import msg
from gpu_planners_msgs.srv import CancelTasks, GetTasks, PrioritizeTasks, SubmitTasks

from ...errors import GpuPlannersError, error_text
from ...fleet import Task, TaskState
from ...fleet.execution.tasks import FleetTasks
from ..common import map_codes as codes
from ..common.map_messages import Poses
from ..common.map_scene import Frames, MapScene
from ..common.planner_node import PlannerNode
from ..common.request_error import RequestError
from ..common.ros import seconds
from .conversions import NANOSECONDS, named

DEPTH = 1000  # of messages about tasks


class TaskServices:
    """say: called with a service's name and its response; counts: how many tasks wait, are begun, ..., in words"""

    def __init__(
        self, node: PlannerNode, tasks: FleetTasks, frames: Frames, scene: MapScene, say: Callable[[str, Any], Any]
    ) -> None:
        self._node, self._tasks, self._frames, self._scene, self._say = node, tasks, frames, scene, say
        self._told = 0  # number of the last change that was published
        self.counts = "none"
        self._publisher = node.create_publisher(msg.TaskStates, "~/task_states", DEPTH)
        for kind, name, answer in (
            (SubmitTasks, "submit_tasks", self._submit),
            (CancelTasks, "cancel_tasks", self._cancel),
            (PrioritizeTasks, "prioritize_tasks", self._prioritize),
            (GetTasks, "get_tasks", self._get),
        ):
            node.serve(kind, f"~/{name}", partial(self._answer, name, answer), partial(self._refused, name, kind))

    def give(self, now: float) -> None:
        """Send the agents where their tasks are, and tell what has changed."""
        with self._node.state.watched("tasks", "no tasks were given"):
            self._tasks.give(now)
        self._tell()

    def _tell(self):
        told, states = self._tasks.changed(self._told)
        if told == self._told:
            return
        self._told = told
        of = Counter(state.status.name.lower() for state in self._tasks.known(())[0] if state.kind == "task")
        self.counts = ", ".join(f"{number} {name}" for name, number in of.items())
        if self._publisher.get_subscription_count():
            places = self._tasks.places
            messages = [state_message(state, places) for state in states]
            self._publisher.publish(msg.TaskStates(header=self._scene.header(), states=messages))

    # ---- services ----

    def _answer(self, name, answer, request, response):
        self._scene.require_map()
        answer(request, response)
        self._tell()
        return self._say(name, response)

    def _refused(self, name, kind, error):
        response = kind.Response(code=codes.code_of(error), message=error_text(error))
        return self._say(name, response)

    def _submit(self, request, response):
        points = [(p.x, p.y, p.z) for task in request.tasks for p in task.errands]
        poses = Poses(np.array(points, float).reshape(-1, 3), np.zeros((len(points), 4)), request.header.frame_id)
        points = self._frames.to_map(poses, self._scene.frame, "the errands").points[:, :2]
        ends = np.cumsum([len(task.errands) for task in request.tasks])
        ids = []

        def submit(k, task):
            own = points[ends[k] - len(task.errands) : ends[k]]
            tiles = self._errands(own)
            release, due = seconds(task.release), seconds(task.due)
            given = tiles, task.priority, release or -math.inf, due or math.inf, list(task.robots) or None
            ids.append(self._tasks.submit(Task(*given), task.id, self._node.now()))

        def each(k, task):
            try:
                submit(k, task)
            except Exception:
                ids.append(task.id)
                raise

        _each(request.tasks, each, response, "tasks were taken")
        response.ids = ids

    def _errands(self, points):
        tiles = self._tasks.places.tiles(points)
        parts = self._tasks.places.part(tiles)
        for k, (point, tile, part) in enumerate(zip(points.tolist(), tiles.tolist(), parts)):
            where = f"errand {k} at ({point[0]:.2f}, {point[1]:.2f})"
            if not np.isfinite(point).all():
                raise RequestError(codes.GOAL_NOT_FINITE, f"{where} is not finite")
            if tile[0] < 0:
                raise RequestError(codes.GOAL_OUTSIDE_MAP, f"{where} is outside the map")
            if not part:
                raise RequestError(codes.GOAL_OCCUPIED, f"{where} is blocked")
        return tiles

    def _cancel(self, request, response):
        def cancel(_, id):
            self._tasks.dispatcher().cancel(id, self._node.now())

        _each(request.ids, cancel, response, "tasks were cancelled")

    def _prioritize(self, request, response):
        if len(request.ids) != len(request.priorities):
            text = f"there are {len(request.ids)} ids and {len(request.priorities)} priorities; allowed: one for each"
            raise RequestError(codes.INVALID_REQUEST, text)

        def prioritize(k, id):
            self._tasks.dispatcher().reprioritise(id, int(request.priorities[k]), self._node.now())

        _each(request.ids, prioritize, response, "tasks have their new priorities")

    def _get(self, request, response):
        states, missing = self._tasks.known(request.ids)
        response.header = self._scene.header()
        response.states = [state_message(state, self._tasks.places) for state in states]
        response.message = f"{len(states)} tasks"
        if missing:
            response.code = codes.NO_TASK
            response.message += f"; there is no {named([f'task {id!r}' for id in missing])}, or it ended long ago"


def _each(things, do, response, what):
    """Do something with each of some tasks, or ids, and say what came out."""
    for k, thing in enumerate(things):
        try:
            do(k, thing)
            code, text = codes.NONE, ""
        except GpuPlannersError as error:
            id = thing if isinstance(thing, str) else thing.id
            code, text = codes.code_of(error), f"task {k} '{id}': {error_text(error)}"
        response.codes.append(code)
        response.texts.append(text)
    failed = [text for text in response.texts if text]
    response.code = next((code for code in response.codes if code), codes.NONE)
    response.message = f"{len(things) - len(failed)} of {len(things)} {what}"
    response.message += f"; {named(failed)}" if failed else ""


def state_message(state: TaskState, places: Any) -> msg.TaskState:
    """places: Places of the map"""
    task, history = state.task, state.history
    points = places.points(task.tiles)
    told = msg.Task(id=str(state.id), priority=task.priority, robots=[str(robot) for robot in task.robots or ()])
    told.errands = [Point(x=x, y=y) for x, y in points.tolist()]
    told.release, told.due = _time(task.release), _time(task.due)
    return msg.TaskState(
        task=told,
        kind=state.kind,
        status=int(state.status),
        robot="" if state.robot is None else str(state.robot),
        errand=state.errand,
        times=[_time(event.time) for event in history],
        events=[event.what for event in history],
        robots=["" if event.robot is None else str(event.robot) for event in history],
        details=["" if event.detail is None else str(event.detail) for event in history],
    )


def _time(stamp):
    """Zeros where it is not finite, or before the clock began."""
    whole = round(stamp * NANOSECONDS) if math.isfinite(stamp) and stamp > 0 else 0
    return Time(sec=whole // NANOSECONDS, nanosec=whole % NANOSECONDS)
