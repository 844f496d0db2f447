"""A node as a process: start it, spin it, and end cleanly on Ctrl-C, SIGTERM and ros2 launch's signals.

rclpy's own signal handlers are not installed: they shut ROS down at once, below callbacks and jobs that still log and
answer. Here a signal only asks the process to end, from whatever it does; then the node is closed, and ROS after it.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from ...errors import SettingsError
from .library_log import forward

PATIENCE_S = 2.0  # for the job under way when the node is told to stop
LAST_WORDS_S = 0.2  # for the executor to send what answers the goals of actions
LONGEST_S = 4.0  # from the signal to the end of the process; ros2 launch sends SIGTERM after 5 s


def run(make_node: Callable[[], Any], name: str, arguments: list[str] | None = None) -> int:
    """Run a node until it is told to stop -> the exit code of the process. To be called on the main thread.

    make_node: called for a BaseNode, none of whose callbacks may wait, for one thread runs them all
    """
    asked = threading.Event()
    _take_signals(asked)
    try:
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:  # rcl's, for what is behind --ros-args, and for parameter files that it cannot read
        rclpy.logging.get_logger(name).fatal(f"wrong ROS arguments: {error}")
        return 1
    with forward(rclpy.logging.get_logger(name)) as library:
        try:
            node = make_node()
        except (SettingsError, ParameterException) as error:
            rclpy.logging.get_logger(name).fatal(f"wrong parameter: {error}")
            rclpy.try_shutdown()
            return 1
        library.logger = node.get_logger()
        return _spin(node, asked)


def _spin(node: Any, asked: threading.Event) -> int:
    """Spin a node until it is asked to end, and close it and ROS -> the exit code of the process."""
    over = threading.Event()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    failed: list[BaseException] = []

    def spin() -> None:
        try:
            while not over.is_set():
                executor.spin_once()
        except BaseException as error:  # of a callback: raised below
            failed.append(error)
            asked.set()

    spinning = threading.Thread(target=spin, name="executor", daemon=True)
    spinning.start()
    asked.wait()
    ended = node.finish(PATIENCE_S)
    time.sleep(LAST_WORDS_S)
    over.set()
    executor.wake()
    spinning.join()
    if failed:
        raise failed[0]
    executor.shutdown()
    node.destroy_node()  # clients see it go at once; of a process that ends without this after 20 s
    rclpy.try_shutdown()
    if not ended:
        sys.stdout.flush()
        os._exit(0)  # a normal exit would wait for the worker thread
    for one in (signal.SIGINT, signal.SIGTERM):  # from here on Python would take them as it does by default
        signal.signal(one, signal.SIG_IGN)
    return 0


def _take_signals(asked: threading.Event) -> None:
    """Have the first signal set an event, and the process end some seconds later, whatever it does then."""

    def take(*_: Any) -> None:
        if not asked.is_set():
            asked.set()
            watchdog = threading.Timer(LONGEST_S, os._exit, [0])
            watchdog.daemon = True
            watchdog.start()

    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, take)
