"""What the library logs reaches a node's log, each text once."""

import logging

import pytest

from gpu_planners.arm import load_urdf
from gpu_planners.nodes.common.library_log import forward

pytestmark = pytest.mark.ros

LOCKED = """<robot name="locked"><link name="a"/><link name="b"/><link name="c"/>
  <joint name="j1" type="continuous"><parent link="a"/><child link="b"/><limit velocity="1" effort="1"/></joint>
  <joint name="j2" type="revolute"><parent link="b"/><child link="c"/><limit lower="0" upper="0" effort="1"/></joint>
</robot>"""


class Logger:
    """The texts that a node's logger gets."""

    def __init__(self):
        self.info, self.warning, self.error = ([] for _ in range(3))
        self.told = [(name, getattr(self, name)) for name in ("info", "warning", "error")]
        for name, texts in self.told:
            setattr(self, name, texts.append)


@pytest.fixture
def handler():
    with forward(Logger()) as handler:
        yield handler


def test_the_library_tells_the_node_once(handler):
    for _ in range(2):
        load_urdf(LOCKED)
    told = dict(handler.logger.told)
    assert [text for text in told["warning"] if "held" in text] == [
        "the URDF of 'locked': joints cannot be planned; they are held: 'j2' (its limits are 0 and 0)"
    ]
    assert [text for text in told["info"] if "tip link" in text] == [
        "robot 'locked': the tip link is 'b': it is the last link that fixed joints join to joint 'j1'"
    ]
    logging.getLogger("gpu_planners.any").error("broken %s", 5)
    assert told["error"] == ["broken 5"]


def test_the_package_logs_as_before_once_a_node_has_ended():
    package = logging.getLogger("gpu_planners")
    before = package.level, list(package.handlers)
    with forward(Logger()):
        assert package.level == logging.INFO
    assert (package.level, list(package.handlers)) == before


def test_rclpy_takes_all_severities(handler):
    logger = pytest.importorskip("rclpy.logging").get_logger
    handler.logger = logger("library_log")
    for level in (logging.INFO, logging.WARNING, logging.ERROR, logging.WARNING, logging.INFO):
        logging.getLogger("gpu_planners.any").log(level, "at %d, %s", level, object())
