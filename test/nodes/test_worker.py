"""The one thread of a node that plans."""

import threading
import time

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from gpu_planners.errors import StoppedError
from gpu_planners.nodes.common.worker import Worker, seat
from gpu_planners.parallel.stopping import heed


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


def test_a_request_that_raises_is_told_and_the_next_is_begun():
    held = Held()
    held.worker.ask("a", lambda: 1 / 0, print)
    held.ask("a", "next")
    assert held.finish() == ["internal error: ZeroDivisionError: division by zero", "next"]


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


def test_a_request_that_does_not_end_is_refused_when_the_worker_stops():
    held = Held()
    go_on, begun = threading.Event(), threading.Event()

    def answer():
        begun.set()
        go_on.wait(10)
        raise ValueError("what it worked with is gone")

    held.worker.ask("a", answer, lambda error: held.done.append(f"a: {error}"))
    held._go_on.set()
    assert begun.wait(10)
    assert not held.worker.stop(patience_s=0.05) and held.done == ["a: the node is ending"]
    go_on.set()
    assert held.worker.stop() and held.done == ["a: the node is ending"]


class Seats:
    """A worker with several threads whose requests wait until they are told to go on.

    done: what happened, in order: "begin a", "end a", names of changes
    """

    def __init__(self, seats, most_waiting=1000, first_apart=False):
        self.done, self.number, self._gates = [], {}, {}
        self.worker = Worker(self.done.append, lambda: most_waiting, lambda: seats, first_apart)
        self.worker.start()

    def ask(self, name, beside=True):
        self._gates[name] = threading.Event(), threading.Event()
        return self.worker.ask(
            "line", lambda: self._run(name), lambda error: self.done.append(f"{name}: {error}"), beside
        )

    def _run(self, name):
        begun, go_on = self._gates[name]
        self.done.append(f"begin {name}")
        self.number[name] = seat()
        begun.set()
        assert go_on.wait(10)
        self.done.append(f"end {name}")

    def has_begun(self, name, wait_s=10.0):
        return self._gates[name][0].wait(wait_s)

    def let_end(self, *names):
        for name in names:
            self._gates[name][1].set()

    def finish(self):
        over = threading.Event()
        self.let_end(*self._gates)
        self.worker.ask("end", over.set, print)
        assert over.wait(10) and self.worker.stop()
        return self.done


def test_requests_run_beside_each_other_on_as_many_threads_as_there_are_seats():
    seats = Seats(2)
    for name in "abc":
        seats.ask(name)
    assert seats.has_begun("a") and seats.has_begun("b") and not seats.has_begun("c", 0.1)
    assert {seats.number["a"], seats.number["b"]} == {0, 1}
    seats.let_end("b", "c")
    assert seats.has_begun("c") and seats.number["c"] == seats.number["b"]  # a is still there
    assert seats.finish()[-1] == "end a"


def test_a_change_waits_for_those_that_run_and_counts_for_those_that_wait():
    seats = Seats(2)
    seats.ask("a")
    assert seats.has_begun("a")
    seats.worker.do(lambda: seats.done.append("change"))
    for name in "bc":
        seats.ask(name)
    assert not seats.has_begun("b", 0.1) and not seats.has_begun("c", 0.01) and seats.done == ["begin a"]
    seats.let_end("a")
    assert seats.has_begun("b") and seats.has_begun("c")
    assert seats.finish()[:3] == ["begin a", "end a", "change"]


def test_a_request_that_runs_alone_is_alone_and_on_the_first_thread():
    seats = Seats(3)
    seats.ask("a")
    seats.ask("b")
    seats.ask("alone", beside=False)
    seats.ask("c")
    assert seats.has_begun("a") and seats.has_begun("b") and not seats.has_begun("alone", 0.1)
    seats.let_end("a")
    assert not seats.has_begun("alone", 0.1) and not seats.has_begun("c", 0.01)
    seats.let_end("b")
    assert seats.has_begun("alone") and seats.number["alone"] == 0 and not seats.has_begun("c", 0.1)
    seats.finish()


def test_what_requests_do_not_read_changes_beside_them_on_the_first_thread():
    seats, aside = Seats(2, first_apart=True), threading.Event()
    seats.ask("a")
    assert seats.has_begun("a") and seats.number["a"] == 1
    seats.worker.do(lambda: seats.done.append("change"))  # waits for a
    seats.ask("b")
    assert not seats.has_begun("b", 0.1)
    seats.worker.do_aside(lambda: (seats.done.append(f"aside {seat()}"), aside.set()))
    assert aside.wait(10)
    seats.worker.do_aside(lambda: 1 / 0)
    seats.let_end("a")
    assert seats.has_begun("b") and seats.number["b"] == 1
    text = "internal error: ZeroDivisionError: division by zero"
    assert sorted(seats.finish()[:5]) == sorted(["begin a", "aside 0", text, "end a", "change"])


def test_what_changes_aside_is_not_starved_by_changes_that_bring_more_changes():
    seats, go_on = Seats(2), threading.Event()

    def change(number):
        seats.done.append(number)
        if number < 1000:
            seats.worker.do(change, number + 1)

    seats.worker.do(go_on.wait, 10)
    seats.worker.do(change, 0)
    seats.worker.do_aside(seats.done.append, "aside")
    go_on.set()
    assert seats.finish()[:3] == [0, "aside", 1]


def test_what_came_before_the_start_is_begun():
    begun = threading.Event()
    worker = Worker(print, seats=lambda: 2, first_apart=True)
    worker.ask("a", begun.set, print, beside=True)
    worker.start()
    assert begun.wait(10) and worker.stop()


def test_one_thread_takes_everything_in_turns():
    seats = Seats(1, first_apart=True)
    seats.ask("a")
    assert seats.has_begun("a") and seats.number["a"] == 0
    seats.worker.do_aside(lambda: seats.done.append("aside"))
    assert seats.finish() == ["begin a", "end a", "aside"]


def test_what_waits_for_a_seat_is_bounded():
    seats = Seats(2, most_waiting=2)
    for name in "abcd":
        seats.ask(name)
        if name in "ab":
            assert seats.has_begun(name)
    seats.ask("e")
    assert seats.done[-1].startswith("e: 2 requests wait already")
    seats.let_end("a", "b", "c", "d")
    assert seats.has_begun("d")
    seats.finish()


def test_a_request_that_waits_for_a_seat_can_be_cancelled():
    seats = Seats(2)
    for name in "ab":
        seats.ask(name)
        assert seats.has_begun(name)
    request = seats.ask("c")
    assert seats.worker.cancel(request) and not seats.worker.cancel(request)
    assert "begin c" not in seats.finish()


def test_a_request_that_is_cancelled_while_it_runs_is_told_to_stop():
    """It heeds that where it can; what comes next does not."""
    begun, ended, texts, worker = threading.Event(), threading.Event(), [], Worker(print)

    def compute():
        begun.set()
        try:
            while not ended.wait(0.01):
                heed()
        except StoppedError as error:
            texts.append(str(error))

    worker.start()
    request = worker.ask("a", compute, print)
    assert begun.wait(10) and not worker.cancel(request)
    over = threading.Event()
    worker.ask("a", lambda: (heed(), texts.append("next"), over.set()), print)
    assert over.wait(10) and texts == ["stopped before its end: nobody waits for it any more", "next"]
    ended.set()
    assert worker.stop()


def test_stopping_waits_for_all_threads():
    seats = Seats(2)
    for name in "ab":
        seats.ask(name)
        assert seats.has_begun(name)
    assert not seats.worker.stop(0.01)
    seats.let_end("a")
    assert not seats.worker.stop(0.05)
    seats.let_end("b")
    assert seats.worker.stop()


def test_changes_and_steps_do_not_wait_for_a_request_that_has_read_what_it_needs():
    seats = Seats(2, first_apart=True)
    begun, go_on, changing, end_change = (threading.Event() for _ in range(4))

    def answer():
        seats.worker.release()
        seats.worker.release()  # once is enough
        begun.set()
        assert go_on.wait(10)
        seats.done.append("answered")

    def change():
        changing.set()
        assert end_change.wait(10)
        seats.done.append("changed")

    seats.worker.ask("line", answer, print, beside=True)
    assert begun.wait(10)
    seats.worker.do(change)
    assert changing.wait(10)  # while the request is being answered
    go_on.set()
    while not seats.done:  # it ends while the change runs, which goes on alone
        time.sleep(0.01)
    stepped = threading.Event()
    seats.worker.do_aside(stepped.set)
    seats.ask("next")
    assert not seats.has_begun("next", 0.1) and not stepped.is_set()
    end_change.set()
    assert seats.has_begun("next") and stepped.wait(10)
    another = threading.Event()
    seats.worker.do(another.set)
    assert not another.wait(0.1)  # "next" has not released it
    assert seats.finish() == ["answered", "changed", "begin next", "end next"] and another.is_set()
