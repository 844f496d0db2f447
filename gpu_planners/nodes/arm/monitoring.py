"""What executed motions ask of the scene, on the worker: a motion, and whether the rest of it is still free."""

from trajectory_msgs.msg import JointTrajectory

from ...arm import RobotModel
from ...arm.control.following import first_contact, remaining_path
from ...arm.control.spline import Spline
from .conversions import trajectory_of
from .move_run import MotionUnderWay
from .parameters import ArmParameters
from .planning_scene import PlanningScene


def motion_of(scene: PlanningScene, robot: RobotModel, trajectory: JointTrajectory, margin: float) -> MotionUnderWay:
    """A motion that was planned among the scene's objects as they are, for a robot that need not be the scene's.

    margin: metres that it keeps
    """
    return MotionUnderWay(Spline.of(trajectory_of(trajectory)), robot, (scene.objects, robot), margin)


def contact_ahead(scene: PlanningScene, values: ArmParameters, motion: MotionUnderWay, phase: float) -> str:
    """What the motion meets after `phase` seconds in the scene as it is now, "" when all of it is proven free.

    A state of the scene in which it was free is not checked again.
    """
    state = scene.objects, scene.robot  # replaced, never changed, when the scene changes
    if all(now is before for now, before in zip(state, motion.scene, strict=True)):
        return ""
    if scene.require_robot().joint_names != motion.robot.joint_names:
        return "another robot was described"
    checker = scene.checker_for(scene.objects, values.device, values.motion_check, motion.margin)
    met = first_contact(checker, remaining_path(motion.curve, phase))
    motion.scene = motion.scene if met else state
    return met
