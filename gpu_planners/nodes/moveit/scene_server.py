"""Services and topics of MoveIt that tell and change the arm node's scene."""

from collections.abc import Callable
from functools import partial
from typing import Any

from moveit_msgs.msg import AttachedCollisionObject, CollisionObject, PlanningScene, PlanningSceneWorld, RobotState
from moveit_msgs.srv import ApplyPlanningScene, GetPlanningScene
from rclpy.qos import QoSProfile

from ...errors import error_text
from ..arm.arm_services import ArmServices
from ..arm.scene_objects import Source
from ..common.request_error import RequestError
from ..common.ros import LATCHED, optional_module, steady_clock
from . import scene_messages as scenes
from .objects import OCTOMAP, change, change_attached
from .reference import Beside, Reference

CHANGES = QoSProfile(depth=100)  # of topics that change the scene
SHOW_EVERY_S = 0.1  # monitored_planning_scene, while the scene changes


class SceneServer:
    """beside: what MoveIt's scene has beside the node's objects"""

    def __init__(self, arm: ArmServices) -> None:
        self._arm, self._scene = arm, arm.scene
        self.beside, self._published = Beside(), (None, None)

    def offer(self) -> list[tuple[Any, str, Callable[..., Any]]]:
        """Take and publish the topics -> (type, name, what answers) of the services."""
        arm, node = self._arm, self._arm.node
        self._scenes = node.create_publisher(PlanningScene, "monitored_planning_scene", LATCHED)
        topics: tuple[tuple[Any, str, Callable[[Any], None]], ...] = (
            (PlanningScene, "planning_scene", self._take_scene),
            (PlanningSceneWorld, "planning_scene_world", self._take_world),
            (CollisionObject, "collision_object", partial(self._change, change)),
            (AttachedCollisionObject, "attached_collision_object", partial(self._change, change_attached)),
        )
        for kind, name, take in topics:
            receive = partial(arm.worker.do, arm.with_robot, self._take, name, take)
            node.create_subscription(kind, name, receive, CHANGES)
        node.create_timer(SHOW_EVERY_S, self._publish_scene, clock=steady_clock())
        services: list[tuple[Any, str, Callable[..., Any]]] = [
            (GetPlanningScene, "get_planning_scene", self._tell_scene),
            (ApplyPlanningScene, "apply_planning_scene", self._apply),
        ]
        empty, missing = optional_module("std_srvs.srv", "clear_octomap")
        if missing:
            node.get_logger().info(missing)
        else:
            services.append((empty.Empty, "clear_octomap", self._clear_octomap))
        return services

    def apply(self, message: PlanningScene) -> None:
        """Change the scene; ObstacleError or RequestError names what is wrong, and then nothing is changed."""
        self._take_scene(message)
        self._arm.scene_changed(_is_whole(message))

    def _tell_scene(self, request, response):
        components = request.components.components or scenes.EVERYTHING
        response.scene = scenes.scene_message(self._current(), components)
        return response

    def _apply(self, request, response):
        self.apply(request.scene)
        response.success = True
        return response

    def _clear_octomap(self, request, response):
        """Remove what sensors saw, until they see it again."""
        objects = self._scene.objects
        seen = [one.name for one in objects.standing.values() if one.source is Source.CLOUD or one.name == OCTOMAP]
        self._scene.take(objects.remove(*seen))
        self._arm.display.show_scene(self._scene.require_robot(), self._scene.objects)
        self._arm.node.get_logger().info(f"clear_octomap: {', '.join(seen) or 'nothing was there'}")
        return response

    def _take(self, name, take, message):
        """Apply a message of a topic; a refused one changes nothing, and is told."""
        try:
            take(message)
        except Exception as error:  # whatever it is, the next message may be right
            self._arm.refuse("moveit", f"a message on {name} was refused as a whole: {error_text(error)}")
            return
        self._arm.scene_changed(isinstance(message, PlanningScene) and _is_whole(message))

    def _take_scene(self, message):
        after = scenes.apply(message, self._current())
        self._scene.take(after.objects)
        self.beside = after.beside

    def _take_world(self, message):
        self._take_scene(PlanningScene(world=message, is_diff=True, robot_state=RobotState(is_diff=True)))

    def _change(self, changed, message):
        self._scene.take(changed(message, self._current()))

    def _publish_scene(self):
        now = self._scene.objects, self.beside
        changed = any(a is not b for a, b in zip(now, self._published, strict=True))
        if self._scene.robot is not None and changed and self._scenes.get_subscription_count():
            self._published = now
            self._scenes.publish(scenes.scene_message(self._current()))

    def _current(self):
        """Reference of what is measured now, without joints where joint_states has brought none lately."""
        robot = self._scene.require_robot()
        try:
            positions = self._arm.measured() or {}
        except RequestError:  # requests that need them are told why
            positions = {}
        return Reference(robot, self._scene.frames, self._scene.objects, positions, self.beside)


def _is_whole(scene):
    return not scene.is_diff and not scenes.is_empty(scene)
