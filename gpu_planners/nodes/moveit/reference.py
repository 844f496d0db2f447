"""What the frames of MoveIt's messages mean: links, objects and their parts, and what else the node knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from std_msgs.msg import ColorRGBA

from ...arm import RobotModel
from ...errors import shortened
from ..arm import codes
from ..arm.scene_objects import SceneObjects
from ..common.request_error import RequestError


@dataclass(frozen=True, eq=False)
class Beside:
    """What MoveIt's scene has beside objects and joints.

    padding: {link: metres}; the largest is kept between every link and the obstacles
    frames: {frame: (4, 4) T_root_frame} that messages have added
    colours: {object: ColorRGBA}, for those who look
    name: of the scene
    """

    padding: dict[str, float] = field(default_factory=dict)
    frames: dict[str, np.ndarray] = field(default_factory=dict)
    colours: dict[str, ColorRGBA] = field(default_factory=dict)
    name: str = ""

    @property
    def margin(self) -> float:
        """Metres kept from obstacles."""
        return max(self.padding.values(), default=0.0)


@dataclass(frozen=True, eq=False)
class Reference:
    """Frames at one state of the robot.

    frames: {frame: (4, 4) T_root_frame} of the node's scene, whose KeyError says why a frame is not known
    objects: an object is a frame, and so is "object/part"
    positions: {joint: rad or m}; a frame that moves is known where every planning joint has one
    beside: its frames come before those of the scene
    """

    robot: RobotModel
    frames: Mapping[str, np.ndarray]
    objects: SceneObjects
    positions: Mapping[str, float]
    beside: Beside = Beside()
    _links: dict[str, np.ndarray] = field(default_factory=dict)  # (4, 4) T_root_link, once one is asked for

    def with_objects(self, objects: SceneObjects) -> "Reference":
        return replace(self, objects=objects)

    def at(self, q: np.ndarray) -> "Reference":
        """The same with the planning joints at q (dof,)."""
        there = dict(zip(self.robot.joint_names, q.tolist(), strict=True))
        return replace(self, positions={**self.positions, **there}, _links={})

    def frame(self, name: str, what: str) -> np.ndarray:
        """(4, 4) T_root_frame; RequestError with FRAME_TRANSFORM_FAILURE. what: whose frame it is"""
        name = name.removeprefix("/")
        for known in (self.beside.frames, self.frames):
            if name in known:
                return known[name]
        if name in self.robot.link_names:
            return self.link(name, what)
        body, T = self.body(name)
        if body is not None:
            return (self.link(body, what) if body else np.eye(4)) @ T
        try:
            return self.frames[name]
        except KeyError as error:
            neither = f"neither a link of robot '{self.robot.name}' nor an object of the scene"
            text = f"{what} is given in frame '{name}', which is {neither}: {error.args[0]}"
            raise RequestError(codes.FRAME_TRANSFORM_FAILURE, text) from error

    def body(self, name: str) -> tuple[str | None, np.ndarray]:
        """(link that carries an object, or "" for one that stands; (4, 4) pose there of the object or its part).

        (None, identity) where there is no such object.
        """
        for known, part in ((name, ""), name.rpartition("/")[::2]):
            one = self.objects.standing.get(known) or self.objects.carried.get(known)
            if one is not None and (not part or part in one.parts):
                link = "" if known in self.objects.standing else self.objects.carried[known].link
                return link, one.pose @ (one.parts[part] if part else np.eye(4))
        return None, np.eye(4)

    def link(self, name: str, what: str) -> np.ndarray:
        """(4, 4) T_root_link; RequestError where the link is not known, or where the state is not."""
        self.check_link(name, what)
        if not self._links:
            if name == self.robot.root_link:
                return np.eye(4)
            joints = self.robot.joint_names
            for joint in joints:
                if joint not in self.positions:
                    unknown = f"the position of joint '{joint}' is not known: joint_states has brought none lately"
                    text = f"{what} depends on where link '{name}' is, but {unknown}"
                    raise RequestError(codes.ROBOT_STATE_STALE, text)
            q = np.array([self.positions[joint] for joint in joints])
            self._links.update((link, T[0]) for link, T in self.robot.link_poses(q).items())
        return self._links[name]

    def check_link(self, name: str, what: str) -> None:
        """RequestError with INVALID_LINK_NAME for a link that the robot lacks."""
        if name not in self.robot.link_names:
            lacks = f"which robot '{self.robot.name}' lacks; its links: {shortened(', '.join(self.robot.link_names))}"
            raise RequestError(codes.INVALID_LINK_NAME, f"{what} names the link '{name}', {lacks}")

    def link_and_offset(self, name: str, what: str) -> tuple[str, np.ndarray]:
        """(link, (4, 4) T_link_frame) of a link, or of a carried object or its part."""
        if name not in self.robot.link_names:
            link, T = self.body(name)
            if link:
                return link, T
        self.check_link(name, what)
        return name, np.eye(4)
