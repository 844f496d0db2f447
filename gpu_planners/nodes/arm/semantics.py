"""The SRDF as MoveIt's programs pass it on: the topic robot_description_semantic, beside the parameters.

Where no parameter gives an SRDF the node takes the topic's. Where one does the node publishes it, unless somebody else
already publishes one (a move_group does): RViz and MoveGroupInterface look there for a robot's groups.
"""

from collections.abc import Callable

from std_msgs.msg import String

from ...errors import GpuPlannersError, SettingsError, error_text
from ...files import read_text_file
from ..common.planner_node import PlannerNode
from ..common.ros import LATCHED, steady_clock
from .parameters import ArmParameters

TOPIC = "robot_description_semantic"
MOST_BYTES = 50_000_000
LOOK_S = 2.0  # until other publishers are known, and between looks for them


class SemanticsTopic:
    """The topic. take: called on the executor's thread with its messages"""

    def __init__(self, node: PlannerNode, values: ArmParameters, take: Callable[[String], None]) -> None:
        self._node, self._publisher = node, None
        if not values.srdf_file and not values.robot_description_semantic:
            node.create_subscription(String, TOPIC, take, LATCHED)
            return
        self._values = values
        self._timer = node.create_timer(LOOK_S, self._look, clock=steady_clock())

    def _look(self):
        if self._node.count_publishers(TOPIC):
            return
        self._timer.cancel()
        values = self._values
        try:
            text = values.robot_description_semantic or read_text_file(
                values.srdf_file, "an SRDF", SettingsError, MOST_BYTES
            )
        except GpuPlannersError as error:  # the robot was loaded with it, so it has gone since
            self._node.get_logger().warning(f"{TOPIC} is not published: {error_text(error)}")
            return
        self._publisher = self._node.create_publisher(String, TOPIC, LATCHED)
        self._publisher.publish(String(data=text))
