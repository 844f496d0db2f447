"""Quality of service that users expect of these topics; elsewhere it is reliable with depth 10."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
DEEP = QoSProfile(depth=1000)  # for requests that come at once: with ROS's own depth of 10, half of 20 were lost


def of_durability(name: str, depth: int) -> QoSProfile:
    """Reliable QoS with a durability given by a parameter: "volatile" or "transient_local"."""
    return QoSProfile(depth=depth, durability=DurabilityPolicy[name.upper()])
