from . import cartesian, constraints, sequence, upright
from .collision.checker import CollisionChecker, MotionCheck
from .collision.scene_batch import SceneBatch
from .collision.world import CollisionWorld
from .planners import PLANNERS, prm, rrt, rrt_connect, rrt_star
from .planners.result import PlanningResult, Status
from .planners.results import PlanningResults
from .robot.inverse_kinematics import PoseSolutions
from .robot.model import RobotModel
from .urdf.loader import load_urdf
from .urdf.mjcf import load_mjcf, mjcf_obstacles

__all__ = [
    "PLANNERS",
    "CollisionChecker",
    "CollisionWorld",
    "MotionCheck",
    "PlanningResult",
    "PlanningResults",
    "PoseSolutions",
    "RobotModel",
    "SceneBatch",
    "Status",
    "cartesian",
    "constraints",
    "load_mjcf",
    "load_urdf",
    "mjcf_obstacles",
    "prm",
    "rrt",
    "rrt_connect",
    "rrt_star",
    "sequence",
    "upright",
]
