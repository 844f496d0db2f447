"""The one thread of a node that plans."""

import threading

import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from gpu_planners.nodes.common.worker import Worker


def test_jobs_run_in_order_and_a_failure_is_told():
    failures, done = [], []
    worker = Worker(failures.append)
    worker.do(done.append, 1)
    worker.do(lambda: 1 / 0)
    assert worker.call(lambda: len(done)) == 1
    with pytest.raises(ZeroDivisionError):
        worker.call(lambda: 1 / 0)
    assert worker.call(threading.current_thread) is not threading.current_thread()
    assert worker.stop() and failures == ["internal error: ZeroDivisionError: division by zero"]


def test_stopping_drops_what_waits_and_does_not_wait_for_a_long_job():
    worker, busy, end, done = Worker(print), threading.Event(), threading.Event(), []
    worker.do(lambda: (busy.set(), end.wait()))
    worker.do(done.append, 1)
    assert busy.wait(10) and not worker.stop(patience_s=0.05)
    end.set()
    assert worker.stop() and not done
