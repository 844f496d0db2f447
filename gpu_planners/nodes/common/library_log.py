"""What the library logs, such as what it passes over in a robot's description, told by a node's logger."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MOST_REMEMBERED = 1000  # texts; a robot that is described again brings the same ones


class ToNode(logging.Handler):
    """Passes what Python's loggers get on to a node's logger, each text once.

    logger: of the node, or of its name before there is one
    """

    def __init__(self, logger: Any) -> None:
        super().__init__(logging.INFO)
        self.logger = logger
        self._told: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text in self._told:
            return
        self._told[text] = None
        if len(self._told) > MOST_REMEMBERED:
            del self._told[next(iter(self._told))]
        if record.levelno >= logging.ERROR:  # one line each, since rclpy knows a line's severity
            self.logger.error(text)
        elif record.levelno >= logging.WARNING:
            self.logger.warning(text)
        else:
            self.logger.info(text)


@contextmanager
def forward(logger: Any) -> Iterator[ToNode]:
    """Have a node's logger tell what the package logs from INFO up."""
    handler, package = ToNode(logger), logging.getLogger("gpu_planners")
    level = package.level
    package.addHandler(handler)
    package.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        package.removeHandler(handler)
        package.setLevel(level)
