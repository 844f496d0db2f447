"""The node's worker under changes, requests, cancelling and its end, in any order.

Each job waits until it is told to go on, and notes when it began and ended; what these notes must keep is said below.
"""

import threading
import time
from collections import Counter

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from state_machines import driven

from gpu_planners.nodes.common.worker import Worker, seat

CHANGE, ASIDE, ALONE, BESIDE = "change", "aside", "alone", "beside"  # kinds of jobs
MOST_WAITING, WAIT_S = 5, 20.0


class Job:
    """kind: CHANGE, ...; number: in the order of coming; line: of a request; raises: does it end with an error?"""

    def __init__(self, kind, number, line="", raises=False, releases=False):
        self.kind, self.number, self.line, self.raises, self.releases = kind, number, line, raises, releases
        self.go_on = threading.Event()
        self.fates = []  # "begun", "ended", "refused", "cancelled"
        self.beside = set()  # jobs that ran when it began
        self.released = False

    @property
    def runs(self):
        return "begun" in self.fates and "ended" not in self.fates

    @property
    def waits(self):
        return not self.fates


class Jobs(RuleBasedStateMachine):
    """jobs: all, in the order of coming; begun: in the order of beginning; failures: texts that the worker told"""

    @initialize(seats=st.integers(1, 3), first_apart=st.booleans(), late=st.booleans())
    def make(self, seats, first_apart, late):
        """late: jobs come before the worker starts."""
        self.seats, self.first_apart = seats, first_apart and seats > 1
        self.jobs, self.begun, self.failures, self.lock = [], [], [], threading.RLock()
        self.worker = Worker(self.failures.append, lambda: MOST_WAITING, lambda: seats, first_apart)
        self.started = self.stopped = False
        if not late:
            self.start()

    @precondition(lambda self: not self.started)
    @rule()
    def start(self):
        self.worker.start()
        self.started = True

    def run(self, job):
        with self.lock:
            job.beside = {other for other in self.jobs if other.runs}
            job.seat = seat()
            job.fates.append("begun")
            self.begun.append(job)
        assert job.go_on.wait(WAIT_S)
        if job.releases:
            self.worker.release()
            with self.lock:
                job.released = True
        with self.lock:
            job.fates.append("ended")
        if job.raises:
            raise ValueError("as it should")

    # -------------------------------------------------------------------------------------------------- jobs

    @rule(raises=st.booleans(), aside=st.booleans())
    def change(self, raises, aside):
        with self.lock:
            job = Job(ASIDE if aside and self.seats > 1 else CHANGE, len(self.jobs), raises=raises)
            self.jobs.append(job)
        (self.worker.do_aside if aside else self.worker.do)(self.run, job)
        if self.stopped:
            job.fates.append("cancelled")

    @rule(line=st.sampled_from("ab"), beside=st.booleans(), releases=st.booleans())
    def ask(self, line, beside, releases):
        with self.lock:
            job = Job(BESIDE if beside else ALONE, len(self.jobs), line, releases=releases and beside)
            self.jobs.append(job)
        full = self.worker.waiting >= MOST_WAITING
        job.request = self.worker.ask(line, lambda: self.run(job), lambda error: job.fates.append("refused"), beside)
        if self.stopped:
            assert job.fates == ["refused"]
        elif full:  # unless one began just then
            assert job.fates == ["refused"] or self.worker.waiting <= MOST_WAITING

    @precondition(lambda self: any(job.line for job in self.jobs))
    @rule(data=st.data())
    def cancel(self, data):
        requests = [job for job in self.jobs if job.line]
        job = requests[data.draw(st.integers(0, len(requests) - 1))]
        if self.worker.cancel(job.request):
            assert not job.fates
            job.fates.append("cancelled")
            assert not self.worker.cancel(job.request)

    @rule(data=st.data(), all_of_them=st.booleans())
    def let_go_on(self, data, all_of_them):
        with self.lock:
            running = [job for job in self.jobs if job.runs]
        if running and not all_of_them:
            running = [running[data.draw(st.integers(0, len(running) - 1))]]
        for job in running:
            job.go_on.set()
        self.wait_until(lambda: not any(job.runs for job in running))

    @precondition(lambda self: self.started and not self.stopped)
    @rule()
    def all_end(self):
        """What waits is begun in the end, whatever came."""
        for job in self.jobs:
            job.go_on.set()
        self.wait_until(lambda: not any(job.waits or job.runs for job in self.jobs))
        assert self.worker.waiting == 0

    @precondition(lambda self: not self.stopped)
    @rule()
    def stop(self):
        """What waits is refused, and so are requests that have not ended by then."""
        with self.lock:
            before = [job for job in self.jobs if job.runs]
        ended = self.worker.stop(0.01 if before else WAIT_S)
        self.stopped = True
        assert ended or any(job.runs for job in before)
        for job in self.jobs:
            if job.waits:
                assert not job.line, "a request was neither begun nor refused"
                job.fates.append("cancelled")
            if job.runs and job.line:
                assert job.fates == ["begun", "refused"]

    def teardown(self):
        if not hasattr(self, "jobs"):
            return
        if self.started and not self.stopped:
            self.all_end()
        for job in self.jobs:
            job.go_on.set()
        assert self.worker.stop(WAIT_S)
        self.jobs_run_as_they_may()

    def wait_until(self, condition):
        end = time.monotonic() + WAIT_S
        while True:
            with self.lock:
                if condition():
                    return
            assert time.monotonic() < end, [(job.kind, job.number, job.fates) for job in self.jobs]
            time.sleep(0.001)

    # ------------------------------------------------------------------------------------- what always holds

    @invariant()
    def something_runs_where_something_waits(self):
        if getattr(self, "started", False) and not self.stopped:
            self.wait_until(lambda: any(j.runs for j in self.jobs) or not any(j.waits for j in self.jobs))

    @invariant()
    def jobs_run_as_they_may(self):
        if not hasattr(self, "jobs"):
            return
        with self.lock:
            begun, failures = list(self.begun), len(self.failures)
        for job in self.jobs:
            allowed = [], ["begun"], ["begun", "ended"], ["refused"], ["cancelled"]
            stopped = ["begun", "refused"], ["begun", "refused", "ended"], ["begun", "ended", "refused"]
            assert job.fates in [*allowed, *(stopped if self.stopped and job.line else ())]
            if job in begun:
                self.check_company(job)
        for kind, line in ((CHANGE, ""), (ASIDE, ""), (ALONE, "a"), (ALONE, "b"), (BESIDE, "a"), (BESIDE, "b")):
            numbers = [job.number for job in begun if (job.kind, job.line) == (kind, line)]
            assert numbers == sorted(numbers), f"{kind} {line}"
        for line in "ab":  # of one line in order, whatever kind they are
            numbers = [job.number for job in begun if job.line == line]
            if self.seats == 1 or not any(job.kind == BESIDE for job in begun):
                assert numbers == sorted(numbers)
        place = {job: k for k, job in enumerate(begun)}
        for request in (job for job in begun if job.line):
            for change in self.jobs[: request.number]:
                if change.kind == CHANGE:
                    assert place[change] < place[request], "a request did not see a change that came before it"
        assert failures <= sum(job.raises for job in begun)

    def check_company(self, job):
        """Those that ran when a job began may run beside it."""
        others = Counter(other.kind for other in job.beside if not other.released)
        assert others[CHANGE] == others[ALONE] == 0, f"{job.kind} began beside a job that runs alone"
        if job.kind in (CHANGE, ALONE):
            assert job.seat == 0 and not any(other.kind == ASIDE for other in job.beside)
            assert all(other.kind == BESIDE and other.releases for other in job.beside)
        elif job.kind == ASIDE:
            assert job.seat == 0 and others[ASIDE] == 0
        else:
            assert len(job.beside) < self.seats and job.seat not in {other.seat for other in job.beside}
            assert others[BESIDE] < self.seats - self.first_apart and not (self.first_apart and job.seat == 0)


TestJobs = driven(Jobs, sequences=150, steps=30)
