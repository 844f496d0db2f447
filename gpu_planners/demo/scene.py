"""What the demo plans: a Panda of example-robot-data before a shelf, and the requests that it asks."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from gpu_planners_msgs.srv import PlanMotion

from ..errors import GpuPlannersError
from ..share import example_robots_share, share_folder

PANDA = Path("example-robot-data/robots/panda_description")
SCENE = share_folder() / "config/scenes/panda_table_shelf.yaml"
JOINTS = tuple(f"panda_joint{number}" for number in range(1, 8))
READY = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)
FORWARD = Quaternion(x=0.0, y=math.sqrt(0.5), z=0.0, w=math.sqrt(0.5))  # the gripper points along x, into the shelf


class DemoRobot(NamedTuple):
    """Files of the demo's robot; package_dir: folder of the packages that its mesh paths name."""

    urdf: Path
    srdf: Path
    package_dir: Path
    group: str = "arm"
    tip_link: str = "panda_hand_tcp"


class DemoRequest(NamedTuple):
    """One question of the demo: a position of the gripper (x, y, z in the root frame, metres) or joint values (7,)."""

    title: str
    gripper_at: tuple[float, ...] = ()
    joint_goal: tuple[float, ...] = ()
    possible: bool = True


REQUESTS = (
    DemoRequest("reach into the upper compartment", gripper_at=(0.66, 0.00, 0.60)),
    DemoRequest("from there into the lower one", gripper_at=(0.66, 0.10, 0.20)),
    DemoRequest("back to the ready position", joint_goal=READY),
    DemoRequest("into the top of the shelf (impossible)", gripper_at=(0.66, 0.00, 0.77), possible=False),
)
COMPARED = REQUESTS[1]  # what every planner is asked, from where REQUESTS[0] ends


def demo_robot() -> DemoRobot:
    """The Panda's files, where pip or a ROS distribution has put example-robot-data."""
    try:
        share = example_robots_share()
    except FileNotFoundError as error:
        raise GpuPlannersError(f"the demo needs the Panda of example-robot-data: {error}") from None
    return DemoRobot(share / PANDA / "urdf/panda.urdf", share / PANDA / "srdf/panda.srdf", share)


def message_of(request: DemoRequest, start: Sequence[float], seed: int) -> PlanMotion.Request:
    """The request to the node, from start (7,) rad."""
    message = PlanMotion.Request(start=JointState(name=list(JOINTS), position=[float(q) for q in start]), seed=seed)
    if request.joint_goal:
        message.joint_goals = [JointState(name=list(JOINTS), position=list(request.joint_goal))]
    else:
        pose = Pose(position=Point(**dict(zip("xyz", request.gripper_at))), orientation=FORWARD)
        message.pose_goals = [PoseStamped(header=Header(frame_id="panda_link0"), pose=pose)]
    return message
