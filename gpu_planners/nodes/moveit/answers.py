"""Answers of MoveIt's queries: inverse and forward kinematics, validity of a state."""

from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import ConstraintEvalResult, ContactInformation, MoveItErrorCodes
from moveit_msgs.srv import GetPositionFK, GetPositionIK, GetStateValidity
from std_msgs.msg import Header

from ...arm import CollisionChecker
from ...errors import ObstacleError, RobotDescriptionError
from ..arm import codes
from ..arm.conversions import pose_message
from ..common.request_error import RequestError, answered_with
from ..common.ros import seconds
from .constraints import LEAST_ANGLE, Region, is_empty, read_constraints
from .goals import Judge, placed_at_once
from .reference import Reference
from .requests import SOURCE
from .scene_messages import complete, state_message
from .shapes import read_pose

IK_TIMEOUT_S = 1.0  # where a request gives none
LIMIT = 1e-6  # rad or m that a valid state may be beyond a joint's limits


def inverse_kinematics(
    request: Any, checker: CollisionChecker | None, reference: Reference, tip: str
) -> GetPositionIK.Response:
    """Answer a PositionIKRequest, for one link, or one of each of several arms. checker: where collisions count, else
    None; tip: the link where it names none

    reference: of its robot_state
    """
    robot, positions = reference.robot, dict(reference.positions)
    names, poses = list(request.ik_link_names), list(request.pose_stamped_vector)
    if not names and not poses:
        names, poses = [request.ik_link_name] * bool(request.ik_link_name), [request.pose_stamped]
    names = names or [tip]
    if len(names) != len(poses) or len(set(names)) < len(names):
        text = (
            f"the request has ik_link_names {names} and {len(poses)} poses; allowed: different links, a pose for each"
        )
        raise RequestError(codes.INVALID_LINK_NAME, text)
    links, T = [], np.empty((len(poses), 4, 4))
    for k, (name, pose) in enumerate(zip(names, poses, strict=True)):
        link, T_link_frame = reference.link_and_offset(name, "the request")
        with answered_with(codes.FRAME_TRANSFORM_FAILURE, ObstacleError):
            T_root_pose = reference.frame(pose.header.frame_id, "the pose") @ read_pose(pose.pose, "the pose")
        T[k] = T_root_pose @ np.linalg.inv(T_link_frame)
        links.append(link)
    region = Region("the pose")
    if not is_empty(request.constraints):
        region = read_constraints(request.constraints, reference, "the constraints")
    judge = Judge(robot, region, checker)
    seed = [positions.get(name, middle) for name, middle in zip(robot.joint_names, (robot.lower + robot.upper) / 2)]
    limit = seconds(request.timeout) or IK_TIMEOUT_S
    try:
        q = placed_at_once(T, links, judge, np.array(seed), limit)
    except RobotDescriptionError as error:
        raise RequestError(codes.INVALID_LINK_NAME, str(error)) from error
    except RequestError as why:
        code = why.code if why.code in (codes.TIMED_OUT, codes.INVALID_LINK_NAME) else codes.NO_IK_SOLUTION
        raise RequestError(code, str(why)) from why
    solution = positions | dict(zip(robot.joint_names, q.tolist(), strict=True))
    return GetPositionIK.Response(
        solution=state_message(reference, solution, reference.objects),
        error_code=code_message(codes.SUCCESS, f"placed: {', '.join(links)}"),
    )


def forward_kinematics(request: GetPositionFK.Request, reference: Reference) -> GetPositionFK.Response:
    """Poses of links, carried objects and their parts in the frame of the request's header, empty: the root."""
    if not request.fk_link_names:
        raise RequestError(codes.INVALID_LINK_NAME, "the request names no link: give fk_link_names")
    frame = request.header.frame_id or reference.robot.root_link
    T_frame_root = np.linalg.inv(reference.frame(frame, "the request"))
    response = GetPositionFK.Response()
    for name in request.fk_link_names:
        link, T_link_frame = reference.link_and_offset(name, "the request")
        T = T_frame_root @ reference.link(link, "the request") @ T_link_frame
        response.pose_stamped.append(PoseStamped(header=Header(frame_id=frame), pose=pose_message(T)))
        response.fk_link_names.append(name)
    response.error_code = code_message(codes.SUCCESS, f"{len(request.fk_link_names)} poses")
    return response


def validity(
    request: GetStateValidity.Request, checker: CollisionChecker, reference: Reference
) -> GetStateValidity.Response:
    """Is a state inside the limits, free of collision, and inside the constraints? Names what touches what."""
    robot = checker.robot
    q = complete(robot, reference.positions, "the request's robot_state")
    response = GetStateValidity.Response()
    response.contacts = [_contact(first, second, checker, reference) for first, second in checker.colliding_pairs(q)]
    inside = robot.continuous | ((robot.lower - LIMIT <= q) & (q <= robot.upper + LIMIT))
    response.valid = bool(checker.configurations_valid(q[None])[0]) and bool(inside.all())
    if not is_empty(request.constraints):
        region = read_constraints(request.constraints, reference, "the constraints")
        response.constraint_result = [
            ConstraintEvalResult(result=excess <= LEAST_ANGLE, distance=excess)
            for excess in region.excesses(robot, q)[0].tolist()
        ]
        response.valid = response.valid and all(one.result for one in response.constraint_result)
    return response


def code_message(value: int, text: str) -> MoveItErrorCodes:
    return MoveItErrorCodes(val=value, message=text, source=SOURCE)


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
