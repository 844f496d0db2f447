"""A node as a process: start it, spin it, and end cleanly on Ctrl-C, SIGTERM and ros2 launch's signals."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor

from ...errors import SettingsError

PATIENCE_S = 2.0  # for the job under way when the node is told to stop; ros2 launch sends SIGTERM after 5 s


def run(make_node: Callable[[], Any], name: str, arguments: list[str] | None = None) -> int:
    """Run a node until it is told to stop -> the exit code of the process.

    make_node: called without arguments; no callback of the node may wait, for one thread runs them all; its
        close(patience_s) says whether all work has ended
    """
    rclpy.init(args=arguments)
    try:
        node = make_node()
    except (SettingsError, ParameterException) as error:
        rclpy.logging.get_logger(name).fatal(f"wrong parameter: {error}")
        rclpy.try_shutdown()
        return 1
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        try:
            executor.spin()
        except RuntimeError:  # rclpy's RCLError, where the signal came as it began to wait
            if rclpy.ok():
                raise
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ros2 launch sends a second one, which would break the clean-up
    if not node.close(PATIENCE_S):
        sys.stdout.flush()
        os._exit(0)  # a normal exit would wait for the worker thread
    rclpy.try_shutdown()
    return 0
