"""Answers of MoveIt's queries: inverse and forward kinematics, validity of a state."""

import time
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import ConstraintEvalResult, ContactInformation, MoveItErrorCodes
from moveit_msgs.srv import GetPositionFK, GetPositionIK, GetStateValidity
from std_msgs.msg import Header

from ...arm import CollisionChecker, RobotModel
from ...errors import ObstacleError, RobotDescriptionError
from ..arm import codes
from ..arm.conversions import seconds
from ..common.request_error import RequestError
from . import constraints as constraint_messages
from .constraints import Region, read_constraints
from .goals import Judge
from .reference import Reference
from .scene_messages import Beside
from .shapes import pose_message, read_pose
from .states import complete, state_message

SOURCE = "gpu_planners"  # of error codes
IK_TIMEOUT_S = 1.0  # where a request gives none
IK_TOLERANCE = 1e-6  # m and rad


def inverse_kinematics(
    request: Any, robot: RobotModel, checker: CollisionChecker | None, reference: Reference, positions: dict, tip: str
) -> GetPositionIK.Response:
    """Answer a PositionIKRequest whose robot_state gives {joint: position}. checker: where collisions count, else None

    tip: the link where the request names none
    """
    if request.pose_stamped_vector or request.ik_link_names:
        if len(request.pose_stamped_vector) != 1 or len(request.ik_link_names) > 1:
            raise RequestError(
                codes.INVALID_LINK_NAME,
                f"the request has {len(request.ik_link_names)} ik_link_names and "
                f"{len(request.pose_stamped_vector)} poses; allowed: one link and its pose",
            )
        pose, names = request.pose_stamped_vector[0], list(request.ik_link_names)
    else:
        pose, names = request.pose_stamped, [request.ik_link_name] if request.ik_link_name else []
    link, T_link_frame = reference.link_and_offset(names[0] if names else tip, "the request")
    try:
        T = reference.frame(pose.header.frame_id, "the pose") @ read_pose(pose.pose, "the pose")
    except ObstacleError as error:
        raise RequestError(codes.FRAME_TRANSFORM_FAILURE, str(error)) from error
    region = Region("the constraints")
    if not constraint_messages.is_empty(request.constraints):
        region = read_constraints(request.constraints, reference, "the constraints")
    judge = Judge(robot, region, checker)
    seed = [positions.get(name, middle) for name, middle in zip(robot.joint_names, (robot.lower + robot.upper) / 2)]
    limit = seconds(request.timeout) or IK_TIMEOUT_S
    started = time.monotonic()
    try:
        (found,) = robot.inverse_kinematics(  # type: ignore[misc]  # a list for a batch of poses
            (T @ np.linalg.inv(T_link_frame))[None],
            judge,
            link=link,
            seed_q=np.array(seed),
            solutions=1,
            position_tolerance=IK_TOLERANCE,
            orientation_tolerance=IK_TOLERANCE,
            time_limit_s=limit,
        )
    except RobotDescriptionError as error:
        raise RequestError(codes.INVALID_LINK_NAME, str(error)) from error
    if not len(found):
        raise _no_solution(judge, link, found.timed_out, time.monotonic() - started)
    response = GetPositionIK.Response()
    solution = positions | dict(zip(robot.joint_names, found.q[0].tolist(), strict=True))
    response.solution = state_message(robot, solution, reference.objects)
    response.error_code = code_message(codes.SUCCESS, f"link '{link}' placed")
    return response


def forward_kinematics(request: GetPositionFK.Request, reference: Reference) -> GetPositionFK.Response:
    """Poses of links, carried objects and their parts in the frame of the request's header, empty: the root."""
    frame = request.header.frame_id or reference.robot.root_link
    T_frame_root = np.linalg.inv(reference.frame(frame, "the request"))
    response = GetPositionFK.Response()
    for name in request.fk_link_names:
        link, T_link_frame = reference.link_and_offset(name, "the request")
        T = T_frame_root @ reference.link(link, "the request") @ T_link_frame
        response.pose_stamped.append(PoseStamped(header=Header(frame_id=frame), pose=pose_message(T)))
        response.fk_link_names.append(name)
    if not request.fk_link_names:
        raise RequestError(codes.INVALID_LINK_NAME, "the request names no link: give fk_link_names")
    response.error_code = code_message(codes.SUCCESS, f"{len(request.fk_link_names)} poses")
    return response


def validity(
    request: GetStateValidity.Request, checker: CollisionChecker, reference: Reference, positions: dict
) -> GetStateValidity.Response:
    """Is a state inside the limits, free of collision, and inside the constraints? With what touches what."""
    robot = checker.robot
    q = complete(robot, positions, "the request's robot_state")
    response = GetStateValidity.Response()
    response.contacts = [_contact(first, second, checker, reference) for first, second in checker.colliding_pairs(q)]
    response.valid = bool(checker.configurations_valid(q[None])[0]) and within_limits(robot, q)
    if not constraint_messages.is_empty(request.constraints):
        region = read_constraints(request.constraints, reference, "the constraints")
        excess = region.excesses(robot, q)[0]
        response.constraint_result = [
            ConstraintEvalResult(result=bool(far <= constraint_messages.LEAST_ANGLE), distance=float(far))
            for far in excess
        ]
        response.valid = response.valid and all(one.result for one in response.constraint_result)
    return response


def code_message(value: int, text: str) -> MoveItErrorCodes:
    """MoveItErrorCodes with its sentence."""
    return MoveItErrorCodes(val=value, message=text, source=SOURCE)


def within_limits(robot: RobotModel, q: np.ndarray) -> bool:
    """Is every joint of q (dof,) within its limits?"""
    return bool(np.all(robot.continuous | ((robot.lower - 1e-6 <= q) & (q <= robot.upper + 1e-6))))


def margin_of(beside: Beside, own: float) -> float:
    """Metres kept from obstacles: the larger of the node's margin and the scene's padding."""
    return max(beside.margin, own)


def _contact(first, second, checker, reference):
    """ContactInformation of two shapes by name. Where they touch is not computed: position and depth are 0."""
    message = ContactInformation(header=Header(frame_id=checker.robot.root_link))
    message.contact_body_1, message.body_type_1 = _body(first, checker.robot, reference.objects)
    message.contact_body_2, message.body_type_2 = _body(second, checker.robot, reference.objects)
    return message


def _body(shape, robot, objects):
    """(link or object, its type) of a shape's name."""
    name = shape.rsplit("#", 1)[0]
    for known in (shape, name):
        if known in objects.carried:
            return known, ContactInformation.ROBOT_ATTACHED
        if known in objects.standing:
            return known, ContactInformation.WORLD_OBJECT
    for index, own in zip(robot.shape_link, robot.shapes, strict=True):
        if own.name == shape:
            return robot.link_names[index], ContactInformation.ROBOT_LINK
    return name, ContactInformation.WORLD_OBJECT


def _no_solution(judge, link, timed_out, spent_s):
    if judge.colliding is not None and judge.checker is not None:
        first, second = judge.checker.colliding_pairs(judge.colliding)[0]
        return RequestError(
            codes.NO_IK_SOLUTION,
            f"every joint configuration found that places link '{link}' collides; in one of them '{first}' meets "
            f"'{second}'",
        )
    if judge.outside:
        violated = ", ".join(sorted(judge.outside))
        return RequestError(
            codes.NO_IK_SOLUTION, f"no joint configuration found that places link '{link}' satisfies: {violated}"
        )
    if timed_out:
        return RequestError(
            codes.TIMED_OUT, f"no joint configuration that places link '{link}' was found in {spent_s:.3g} s"
        )
    return RequestError(codes.NO_IK_SOLUTION, f"no joint configuration inside the limits places link '{link}' there")
