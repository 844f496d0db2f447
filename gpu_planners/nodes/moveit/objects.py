"""Collision objects of MoveIt's messages: added, appended, moved, removed, attached, and written back."""

from dataclasses import replace

import numpy as np
from moveit_msgs.msg import AttachedCollisionObject, CollisionObject

from ...arm.geometry.shapes import ConvexShape
from ...errors import ObstacleError
from ..arm import codes
from ..arm.conversions import pose_message
from ..arm.scene_objects import CarriedObject, SceneObject, SceneObjects, Source
from ..common.request_error import RequestError
from .reference import Reference
from .shapes import read_pose, read_shapes, write_shapes

OCTOMAP = "<octomap>"  # what MoveIt calls it in its allowed collision matrix
KEPT = Source.FILE, Source.CLOUD, Source.OTHER_ARM  # what MoveIt's messages did not put there, and do not clear
SHAPES = "primitives", "primitive_poses", "meshes", "mesh_poses", "planes", "plane_poses"
ADD, REMOVE, APPEND, MOVE = CollisionObject.ADD, CollisionObject.REMOVE, CollisionObject.APPEND, CollisionObject.MOVE


def change(message: CollisionObject, reference: Reference) -> SceneObjects:
    """The objects of the reference after a CollisionObject was applied; ObstacleError or RequestError names it."""
    objects, name, operation = reference.objects, message.id, message.operation
    what = f"object '{name}'"
    if operation == REMOVE:
        if name:
            return objects.remove(name) if name in objects.standing else _unknown(name, objects)
        cleared = (one for one in objects.standing.values() if one.source not in KEPT and one.name != OCTOMAP)
        return objects.remove(*(one.name for one in cleared))
    if not name:
        raise ObstacleError("a collision object has no id")
    if operation == MOVE:
        if any(getattr(message, field) for field in SHAPES):
            raise ObstacleError(f"'{name}': MOVE takes the field pose only; to change shapes or their poses, send ADD")
        return objects.move(name, reference.frame(message.header.frame_id, what) @ read_pose(message.pose, name))
    if operation not in (ADD, APPEND):
        allowed = "allowed: 0 (ADD), 1 (REMOVE), 2 (APPEND), 3 (MOVE)"
        raise ObstacleError(f"'{name}': operation {_number(operation)} is not known; {allowed}")
    pieces, pose = read_shapes(message)
    if not pieces:
        raise ObstacleError(f"'{name}' has no shape: give primitives, meshes or planes")
    T_root_object = reference.frame(message.header.frame_id, what) @ pose
    parts = _parts(message)
    if operation == APPEND and name in objects.standing:
        T = np.linalg.inv(objects.standing[name].pose) @ T_root_object
        moved = {part: T @ T_object_part for part, T_object_part in parts.items()}
        return objects.append(name, [piece.moved(T, name) for piece in pieces], moved)
    return objects.add(SceneObject(name, pieces, T_root_object, Source.MOVEIT, parts=parts))


def change_attached(message: AttachedCollisionObject, reference: Reference) -> SceneObjects:
    """The objects of the reference after an AttachedCollisionObject was applied.

    One that is removed stands from then on where its link has it.
    """
    objects = reference.objects
    if message.object.operation != REMOVE:
        return attach(message, reference)
    for name in carried_named(message, objects):
        objects = objects.detach(name, reference.link(objects.carried[name].link, f"attached object '{name}'"))
    return objects


def attach(message: AttachedCollisionObject, reference: Reference) -> SceneObjects:
    """The objects of the reference with one more on a link: the shapes given, or the object of that id that stands.

    ADD replaces an attached or standing object of the same id, APPEND adds shapes to an attached one.
    """
    objects, given, link = reference.objects, message.object, message.link_name
    name, what = given.id, f"attached object '{given.id}'"
    reference.check_link(link, what)
    for touched in message.touch_links:
        reference.check_link(touched, f"{what}, touch_links,")
    if given.operation not in (ADD, APPEND):
        allowed = "allowed: 0 (ADD), 1 (REMOVE), 2 (APPEND)"
        raise ObstacleError(f"'{name}': operation {_number(given.operation)} of an attached object; {allowed}")
    pieces, pose = read_shapes(given)
    touch_links, before = tuple(message.touch_links), objects.carried.get(name)
    if not pieces:
        if before is not None:
            objects = objects.detach(name, reference.link(before.link, what))
            touch_links = touch_links or before.touch_links
        if name not in objects.standing:
            return _unknown(name, objects)
        return objects.attach(name, link, reference.link(link, what), touch_links)
    frame = given.header.frame_id
    T = pose if frame in ("", link) else np.linalg.inv(reference.link(link, what)) @ reference.frame(frame, what) @ pose
    solid, parts = tuple(piece for piece in pieces if isinstance(piece, ConvexShape)), _parts(given)
    if given.operation == APPEND and before is not None and before.link == link:
        T_object_new = np.linalg.inv(before.pose) @ T
        return objects.attach_new(
            replace(
                before,
                pieces=(*before.pieces, *(piece.moved(T_object_new, name) for piece in solid)),
                parts=before.parts | {part: T_object_new @ T_part for part, T_part in parts.items()},
                touch_links=tuple(dict.fromkeys((*before.touch_links, *touch_links))),
            )
        )
    if name in objects.standing:
        objects = objects.remove(name)
    return objects.attach_new(CarriedObject(name, solid, link, T, touch_links, Source.MOVEIT, parts))


def carried_named(message: AttachedCollisionObject, objects: SceneObjects) -> list[str]:
    """Names of the carried objects that an AttachedCollisionObject removes: its id, or all of its link, or all."""
    name, link = message.object.id, message.link_name
    if not name:
        return [known for known, one in objects.carried.items() if link in ("", one.link)]
    if name not in objects.carried or link not in ("", objects.carried[name].link):
        on = f" to link '{link}'" * bool(link)
        raise RequestError(codes.INVALID_OBJECT_NAME, f"no object '{name}' is attached{on}")
    return [name]


def object_message(one: SceneObject | CarriedObject, frame: str, geometry: bool = True) -> CollisionObject:
    """CollisionObject of an object. frame: that its pose is in: the root, or the link that carries it"""
    message = CollisionObject(id=one.name, operation=ADD, pose=pose_message(one.pose))
    message.header.frame_id = frame
    message.subframe_names = list(one.parts)
    message.subframe_poses = [pose_message(T) for T in one.parts.values()]
    if geometry:
        write_shapes(message, one.pieces)
    return message


def _number(operation):
    """An operation as texts have it: its field is a byte, which Python has as bytes."""
    return operation[0] if isinstance(operation, bytes) else operation


def _parts(message):
    names, poses = message.subframe_names, message.subframe_poses
    if len(names) != len(poses):
        raise ObstacleError(f"'{message.id}' has {len(names)} subframes but {len(poses)} poses of them")
    return {name: read_pose(pose, f"{message.id}/{name}") for name, pose in zip(names, poses, strict=True)}


def _unknown(name, objects):
    text = f"no object '{name}' stands in the scene; there are: {', '.join(objects.standing) or 'none'}"
    raise RequestError(codes.INVALID_OBJECT_NAME, text)
