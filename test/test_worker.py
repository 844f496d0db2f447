"""The one thread of a node that plans."""

import threading

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from gpu_planners.nodes.common.worker import Worker


class Held:
    """A worker that is busy until it is told to go on.

    done: names of jobs in the order in which they ran, and texts of requests that were refused
    """

    def __init__(self, most_waiting=1000):
        self.done, self._go_on, busy = [], threading.Event(), threading.Event()
        self.worker = Worker(self.done.append, lambda: most_waiting)
        self.worker.do(lambda: (busy.set(), self._go_on.wait(10)))
        self.worker.start()
        assert busy.wait(10)

    def change(self, name):
        self.worker.do(self.done.append, name)

    def ask(self, line, name):
        return self.worker.ask(line, lambda: self.done.append(name), lambda error: self.done.append(f"{name}: {error}"))

    def finish(self):
        """Go on -> what was done once all of it is"""
        over = threading.Event()
        self._go_on.set()
        while not over.is_set():
            self.worker.ask("end", lambda: None if self.worker.waiting else over.set(), print)
            over.wait(0.01)
        assert self.worker.stop()
        return self.done


def test_changes_are_made_in_order_and_a_failure_is_told():
    held = Held()
    held.change(1)
    held.worker.do(lambda: 1 / 0)
    held.change(2)
    assert held.finish() == [1, "internal error: ZeroDivisionError: division by zero", 2]


def test_a_request_sees_the_changes_that_came_before_it():
    held = Held()
    held.ask("a", "a0")
    held.change("before a1")
    held.ask("a", "a1")
    held.change("after a1")
    held.ask("a", "a2")
    done = held.finish()
    assert done.index("before a1") < done.index("a1") and done.index("after a1") < done.index("a2")
    assert done.index("after a1") < done.index("a1")  # it was there before a1 began


def test_requests_are_not_starved_by_changes_that_bring_more_changes():
    held, left = Held(), iter(range(1000))

    def change(number):
        held.done.append(number)
        if (following := next(left, None)) is not None:
            held.worker.do(change, following)

    held.worker.do(change, -1)
    held.ask("a", "a0")
    held.ask("a", "a1")
    done = held.finish()
    assert done.index("a1") < 10


def test_lines_take_turns():
    held = Held()
    for number in range(100):
        held.ask("many", number)
    held.ask("few", "first")
    held.ask("few", "second")
    done = held.finish()
    assert done.index("first") <= 2 and done.index("second") <= 4
    assert [name for name in done if name not in ("first", "second")] == list(range(100))


def test_too_many_and_cancelled_requests_are_not_begun():
    held = Held(most_waiting=3)
    requests = [held.ask("a", f"a{number}") for number in range(5)]
    assert held.done == [f"a{k}: 3 requests wait already; allowed: 3, the parameter max_waiting" for k in (3, 4)]
    assert held.worker.cancel(requests[1]) and not held.worker.cancel(requests[1])
    assert held.finish()[2:] == ["a0", "a2"]


def test_requests_do_not_wait_for_what_takes_long():
    held, compiled, told = Held(), threading.Event(), threading.Event()

    def compile_it():
        with held.worker.refusing("compiling", 0.01):
            compiled.wait(10)

    held.worker.do(compile_it)
    held.worker.ask("a", lambda: None, lambda error: (held.done.append(f"early: {error}"), told.set()))
    held._go_on.set()
    assert told.wait(10)
    held.ask("a", "late")
    assert held.done == ["early: compiling", "late: compiling"]
    compiled.set()
    held.worker.do(told.clear)
    while told.is_set():
        pass
    held.ask("a", "then")
    assert held.finish()[2:] == ["then"]


def test_stopping_refuses_what_waits_and_does_not_wait_for_a_long_job():
    held = Held()
    held.change(1)
    held.ask("a", "a0")
    assert not held.worker.stop(patience_s=0.05)
    assert held.done == ["a0: the node is ending"]
    held.ask("a", "a1")
    held._go_on.set()
    assert held.worker.stop() and held.done == ["a0: the node is ending", "a1: the node is ending"]
