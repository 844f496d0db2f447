"""The pool: every change of a task is an event, and the events make the pool. So a journal of them is all of it."""

from collections import OrderedDict
from typing import Any

from ...errors import SettingsError, TaskError, shown
from .task import ENDED, Name, Record, TaskEvent, TaskStatus, content_of, task_of

WAITING, ASSIGNED, BEGUN = TaskStatus.WAITING, TaskStatus.ASSIGNED, TaskStatus.BEGUN
SUBMITTED, KEPT = "submitted", "kept"
FROM = {  # event -> statuses in which a task may meet it
    "assigned": (WAITING, ASSIGNED),
    "withdrawn": (ASSIGNED,),  # its robot gets another task, or none
    "errand": (ASSIGNED, BEGUN),
    "returned": (ASSIGNED, BEGUN),  # its robot is gone; it begins anew
    "priority": (WAITING, ASSIGNED, BEGUN),
    "cancelled": (WAITING, ASSIGNED, BEGUN),
}


class Pool:
    """All tasks that are open, and the last ones that ended.

    Events are lists fit for JSON: [time, what, id, robot or None, detail or None]; "submitted" has the task as its
    detail, "kept" a whole record, as `kept` writes it.
    """

    def __init__(self, keep_ended: int):
        self.keep_ended = keep_ended
        self.open: dict[Name, Record] = {}
        self.ended: OrderedDict[Name, Record] = OrderedDict()
        self.of_robot: dict[Name, Record] = {}  # who has which
        self.submitted = 0  # so far
        self.changes = 0  # of all tasks

    def __getitem__(self, id: Name) -> Record:
        record = self.open.get(id) or self.ended.get(id)
        if record is None:
            raise TaskError(f"there is no task {shown(id)}: it was not submitted, or ended long ago")
        return record

    def check(self, event: list) -> None:
        """Raise TaskError, or SettingsError, where an event cannot be."""
        _, what, id, robot, _ = event
        if what in (SUBMITTED, KEPT):
            if id in self.open or id in self.ended:
                raise TaskError(f"there is a task {shown(id)} already; allowed: another id")
            return
        record = self[id]
        if record.status not in FROM[what]:
            raise TaskError(f"task {shown(id)} is {record.status.name}: it cannot be {what}")
        if what == "assigned" and self.of_robot.get(robot, record) is not record:
            raise SettingsError(f"robot {shown(robot)} has task {shown(self.of_robot[robot].id)} already")
        if what in ("errand", "returned", "withdrawn") and record.robot != robot:
            raise SettingsError(f"task {shown(id)} is of robot {shown(record.robot)}, not of {shown(robot)}")

    def apply(self, event: list) -> Record:
        """Let an event happen. Raises what `check` does; nothing has changed then."""
        self.check(event)
        time, what, id, robot, detail = event
        if what == KEPT:
            return self._take_kept(id, detail)
        if what == SUBMITTED:
            record = self.open[id] = Record(id, task_of(detail))
            self.submitted += 1
            detail = None
        else:
            record = self.open[id]
            getattr(self, f"_{what}")(record, robot, detail)
        record.history.append(TaskEvent(time, what, robot, detail))
        self.changes += 1
        record.changed = self.changes
        return record

    def _assigned(self, record, robot, _):
        self._let_go(record)
        record.status, record.robot, self.of_robot[robot] = ASSIGNED, robot, record

    def _withdrawn(self, record, *_):
        self._let_go(record)
        record.status = WAITING

    def _returned(self, record, *_):
        self._let_go(record)
        record.status, record.errand = WAITING, 0

    def _errand(self, record, *_):
        record.status, record.errand = BEGUN, record.errand + 1
        if record.errand == len(record.task.tiles):
            self.of_robot.pop(record.robot)
            self._end(record, TaskStatus.DONE)

    def _priority(self, record, _, priority):
        record.prefer(priority)

    def _cancelled(self, record, *_):
        self._let_go(record)
        self._end(record, TaskStatus.CANCELLED)

    def _let_go(self, record):
        if record.robot is not None:
            del self.of_robot[record.robot]
            record.robot = None

    def _end(self, record, status):
        record.status = status
        self.ended[record.id] = self.open.pop(record.id)
        while len(self.ended) > self.keep_ended:
            self.ended.popitem(last=False)

    # ---- whole records, for a journal that begins anew ----

    def kept(self) -> list[list]:
        """Events that make a pool like this one."""
        records = [*self.ended.values(), *self.open.values()]
        return [[0.0, KEPT, record.id, record.robot, _content(record)] for record in records]

    def _take_kept(self, id, content):
        history = [TaskEvent(*event) for event in content["history"]]
        status = TaskStatus(content["status"])
        record = Record(id, task_of(content["task"]), status)
        record.robot, record.errand, record.history = content["robot"], content["errand"], history
        self.submitted += 1
        if status in ENDED:
            self.ended[id] = record
        else:
            self.open[id] = record
            if record.robot is not None:
                self.of_robot[record.robot] = record
        self.changes += 1
        record.changed = self.changes
        return record


def _content(record: Record) -> dict[str, Any]:
    return {
        "task": content_of(record.task),
        "status": int(record.status),
        "robot": record.robot,
        "errand": record.errand,
        "history": [list(event) for event in record.history],
    }
