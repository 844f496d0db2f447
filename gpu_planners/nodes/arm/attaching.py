"""Answers one AttachObjects request: all that it asks for, or nothing."""

import numpy as np

from gpu_planners_msgs.msg import AttachedObject
from gpu_planners_msgs.srv import AttachObjects

from ...arm.geometry.shapes import ConvexShape
from ..common.request_error import RequestError, check_count
from . import codes
from .arm_services import ArmServices
from .conversions import configuration, frame_transform, pose_of
from .marker_objects import check_markers, marker_shapes
from .scene_objects import CarriedObject, SceneObjects, Source


def attach_objects(
    arm: ArmServices, request: AttachObjects.Request, response: AttachObjects.Response
) -> AttachObjects.Response:
    """Change the scene as a request asks -> the response; raises when it cannot, and then nothing has changed."""
    scene = arm.scene
    scene.require_robot()
    check_count("objects to attach", len(request.attach), "max_obstacles", scene.values, codes.FAILURE)
    check_markers([marker for one in request.attach for marker in one.shapes], scene.values)
    objects = scene.objects
    for one in request.attach:
        objects = _attached(arm, objects, one)
    for name in request.detach:
        objects = objects.detach(name, _link_pose(arm, objects.carried_object(name).link))
    for name in request.remove:
        objects = objects.remove(objects.carried_object(name).name)
    scene.take(objects)
    arm.display.show_scene(scene.require_robot(), objects)
    response.code, response.attached = codes.SUCCESS, list(objects.carried)
    done = {"attached": len(request.attach), "put down": len(request.detach), "removed": len(request.remove)}
    said = ", ".join(f"{count} {what}" for what, count in done.items() if count) or "nothing asked for"
    response.message = f"{said}; attached now: {', '.join(objects.carried) or 'nothing'}"
    return response


def _link_pose(arm, link):
    """(4, 4) T_root_link by the latest joint states."""
    positions = arm.measured()
    if positions is None:
        raise RequestError(codes.ROBOT_STATE_STALE, f"where link '{link}' is: joint_states has brought none lately")
    robot = arm.scene.robot_among(arm.scene.objects, positions)
    q = configuration(robot, positions, f"where link '{link}' is: joint_states", codes.START_STATE_INVALID)
    return robot.link_poses(q)[link][0]


def _attached(arm: ArmServices, objects: SceneObjects, one: AttachedObject) -> SceneObjects:
    robot = arm.scene.require_robot()
    held_by = tuple(getattr(one, "held_by", ()))  # interfaces built before lack it
    for link in (one.link, *one.touch_links, *held_by):
        if link not in robot.link_names:
            raise RequestError(
                codes.INVALID_LINK_NAME, f"attached object '{one.name}': robot '{robot.name}' has no link '{link}'"
            )
    if not one.shapes:
        return objects.attach(one.name, one.link, _link_pose(arm, one.link), one.touch_links, held_by)
    pieces: list[ConvexShape] = []
    for number, marker in enumerate(one.shapes):
        what = f"shape {number} of attached object '{one.name}'"
        frame, T_link_frame = marker.header.frame_id, np.eye(4)
        if frame not in ("", one.link):
            known = frame in robot.link_names
            T_root_frame = _link_pose(arm, frame) if known else frame_transform(arm.scene.frames, frame, what)
            T_link_frame = np.linalg.inv(_link_pose(arm, one.link)) @ T_root_frame
        pieces += marker_shapes(marker, what, T_link_frame @ pose_of(marker.pose, what))
    touch_links, source = (*one.touch_links, *held_by), Source.SERVICE
    return objects.attach_new(
        CarriedObject(one.name, tuple(pieces), one.link, np.eye(4), touch_links, source, held_by=held_by)
    )
