from . import cartesian, constraints, sequence, upright
from .collision.checker import CollisionChecker, MotionCheck
from .collision.world import CollisionWorld
from .planners import PLANNERS, prm, rrt, rrt_connect, rrt_star
from .planners.result import PlanningResult, Status
from .robot.inverse_kinematics import PoseSolutions
from .robot.model import RobotModel
from .urdf.loader import load_urdf

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
    "constraints",
    "load_urdf",
    "prm",
    "rrt",
    "rrt_connect",
    "rrt_star",
    "sequence",
    "upright",
]
