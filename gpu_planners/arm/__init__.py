"""Motion planning for robot arms: description -> model -> world -> checker -> planner -> result."""

from . import cartesian, sequence, upright
from .collision.checker import CollisionChecker, MotionCheck
from .collision.world import CollisionWorld
from .planners import prm, rrt_connect
from .planners.protocol import Planner
from .planners.result import PlanningResult, Status
from .planners.tree import rrt, rrt_star
from .robot.inverse_kinematics import PoseSolutions
from .robot.model import RobotModel
from .urdf.loader import load_urdf

PLANNERS: dict[str, Planner] = {"rrt_connect": rrt_connect, "prm": prm, "rrt": rrt, "rrt_star": rrt_star}

__all__ = [
    "PLANNERS",
    "CollisionChecker",
    "CollisionWorld",
    "MotionCheck",
    "PlanningResult",
    "PoseSolutions",
    "RobotModel",
    "Status",
    "cartesian",
    "load_urdf",
    "prm",
    "rrt",
    "rrt_connect",
    "rrt_star",
    "sequence",
    "upright",
]
