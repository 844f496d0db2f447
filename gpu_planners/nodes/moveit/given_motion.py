"""A trajectory that was planned before, by whomever, as ExecuteTrajectory brings it: may a controller have it?"""

import numpy as np
from builtin_interfaces.msg import Time
from moveit_msgs.msg import RobotTrajectory
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...arm import RobotModel
from ...arm.control.spline import Spline, State
from ...errors import ConfigurationError
from ..arm import codes
from ..arm.arm_services import ArmServices
from ..arm.conversions import COLUMNS
from ..arm.move_run import MotionUnderWay, TaskPlan
from ..arm.planning_scene import AS_MEASURED
from ..common.request_error import RequestError, answered_with
from ..player.trajectories import check_trajectory, curve_of

START_TOLERANCE = 0.01  # rad or m, MoveIt's allowed_start_tolerance
OUTSIDE = 1e-3  # rad or m beyond a joint's limits, where the robot itself may rest


def given_motion(arm: ArmServices, asked: RobotTrajectory, margin: float) -> TaskPlan:
    """The TaskPlan of a trajectory that begins where the robot is, that its joints can do, and that is free.

    margin: metres kept from obstacles; RequestError names what is wrong
    """
    trajectory = without_followers(asked.joint_trajectory, arm.scene.require_robot())
    group = arm.scene.group_of_joints(trajectory.joint_names)
    robot = arm.scene.robot_among(arm.scene.objects, arm.measured() or {} if group else AS_MEASURED, group)
    if asked.multi_dof_joint_trajectory.points:
        raise _wrong("joints of several degrees of freedom are not executed")
    trajectory.header.stamp = Time()
    for point in trajectory.points:
        if not np.any(point.effort):  # clients fill it with 0, which asks for nothing
            point.effort = []
    q = arm.place(robot)
    if q is None:
        raise RequestError(codes.ROBOT_STATE_STALE, "joint_states has not brought every planning joint lately")
    rest = State(q, np.zeros_like(q), np.zeros_like(q))
    with answered_with(codes.INVALID_MOTION_PLAN, ConfigurationError):
        check_trajectory(trajectory, robot.joint_names, 0.0)
        curve = curve_of(trajectory, robot.joint_names, rest, 0.0, START_TOLERANCE)
    if text := beyond_limits(curve, robot.around(q), arm.values.execution_limit_tolerance):
        raise _wrong(text)
    motion = MotionUnderWay(curve, robot, (None, None), margin)
    if met := arm.contact_ahead(motion, 0.0):
        raise _wrong(f"the trajectory is not free: {met}")
    return TaskPlan(codes.SUCCESS, "", motion, trajectory, group=group)


def without_followers(trajectory: JointTrajectory, robot: RobotModel) -> JointTrajectory:
    """A trajectory without the joints that mimic others, which clients of grippers name as well."""
    keep = [i for i, name in enumerate(trajectory.joint_names) if name not in robot.mimic_joints]
    if len(keep) == len(trajectory.joint_names):
        return trajectory
    points = []
    for point in trajectory.points:
        columns = {}
        for name in (*COLUMNS, "effort"):
            row = getattr(point, name)
            columns[name] = [row[i] for i in keep] if len(row) == len(trajectory.joint_names) else row
        points.append(JointTrajectoryPoint(time_from_start=point.time_from_start, **columns))
    return JointTrajectory(
        header=trajectory.header, joint_names=[trajectory.joint_names[i] for i in keep], points=points
    )


def beyond_limits(curve: Spline, robot: RobotModel, share: float) -> str:
    """What no joint can do of a curve, at its points or as a controller plays it between them; "" where all can.

    share: by which the limits of velocity and acceleration may be exceeded
    """
    found, slides = curve.extremes(), np.zeros(robot.dof, bool)
    slides[robot.frames["joint"]] = robot.frames["prismatic"]
    beyond = np.where(robot.continuous, -np.inf, np.maximum(robot.lower - found.low, found.high - robot.upper))
    if beyond.max() > OUTSIDE:
        j = int(beyond.argmax())
        most = found.low[j] if robot.lower[j] - found.low[j] > found.high[j] - robot.upper[j] else found.high[j]
        limits = f"its limits are {robot.lower[j]:g} and {robot.upper[j]:g}"
        return f"joint '{robot.joint_names[j]}' would go to {most:.4g} {_unit(slides[j])}; {limits}"
    for what, values, limits, at, per in (
        ("a velocity", found.speed, robot.velocity, found.speed_at, "/s"),
        ("an acceleration", found.acceleration, robot.acceleration, found.acceleration_at, "/s^2"),
    ):
        ratio = values / limits
        if ratio.max() > 1 + share:
            j = int(ratio.argmax())
            unit = _unit(slides[j]) + per
            return (
                f"joint '{robot.joint_names[j]}' would need {what} of {values[j]:.4g} {unit} at {at[j]:.4g} s; its "
                f"limit is {limits[j]:.4g} {unit}, and {100 * share:g} % more are allowed, parameter "
                "execution_limit_tolerance"
            )
    return ""


def _unit(slides):
    return "m" if slides else "rad"


def _wrong(text):
    return RequestError(codes.INVALID_MOTION_PLAN, text)
