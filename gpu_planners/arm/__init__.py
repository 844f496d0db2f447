"""Motion planning for robot arms: description -> model -> world -> checker -> planner -> result."""

from . import prm, rrt, rrt_connect, rrt_star
from .collision_checker import CollisionChecker, MotionCheck
from .collision_world import CollisionWorld
from .path import PlanningResult, Status
from .robot_model import RobotModel
from .urdf_loader import load_urdf

__all__ = ["CollisionChecker", "CollisionWorld", "MotionCheck", "PlanningResult", "RobotModel", "Status", "load_urdf", "prm", "rrt",
           "rrt_connect", "rrt_star"]
