"""Torques that move a robot and what it carries, and the limits of its motors."""

import functools
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import Numbers, checked, instance, number, numbers
from ...errors import SettingsError, shortened, shown
from ..robot.inertia import fault_of, inertias_about_origin, pseudo_inertia
from ..robot.model import RobotModel
from ..robot.modified_dh import transform
from .newton_euler import Bodies, torques_of

log = logging.getLogger(__name__)

GRAVITY = (0.0, 0.0, -9.80665)  # m/s^2, where the root's z axis points up
GREATEST = 1e9  # kg, kg m^2, m/s^2, N m
__all__ = ("InverseDynamics", "Payload", "TorqueLimits")


@checked()
@dataclass(frozen=True, eq=False)
class Payload:
    """What a link carries.

    mass: kg
    centre: (3,) centre of mass in the link's frame, metres
    inertia: (3, 3) about the centre, in the axes of the link's frame, kg m^2; None: a point
    link: its name; "": the robot's tip link
    """

    mass: float
    centre: ArrayLike = (0.0, 0.0, 0.0)
    inertia: ArrayLike | None = None
    link: str = ""

    def __post_init__(self) -> None:
        number("mass", self.mass, 0.0, GREATEST, " kg")
        centre = numbers("centre", self.centre, (3,)).astype(float)
        inertia = np.zeros((3, 3)) if self.inertia is None else numbers("inertia", self.inertia, (3, 3)).astype(float)
        if not np.allclose(inertia, inertia.T, rtol=1e-6, atol=0.0):
            raise SettingsError(f"inertia is {shown(inertia.tolist())}; allowed: a symmetric matrix")
        if fault := fault_of(self.mass, inertia):
            raise SettingsError(f"inertia: {fault}; allowed: what a body can have")
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "inertia", inertia)

    @property
    def J(self) -> np.ndarray:
        """(4, 4) pseudo-inertia in the link's frame (`robot.inertia`)."""
        return pseudo_inertia(self.mass, np.asarray(self.inertia), transform(p=np.asarray(self.centre)))


@checked()
class InverseDynamics:
    """Torques that the motors of a robot's planning joints give to move it, by recursive Newton-Euler.

    They are those of rigid bodies: without friction, without the inertia of rotors, without contacts. What joints weigh
    that are not planned counts where they stand; what `RobotModel.attach` put on a link counts only as a payload.
    """

    def __init__(
        self,
        robot: RobotModel,
        payloads: Iterable[Payload] = (),
        gravity: Annotated[ArrayLike, Numbers((3,))] = GRAVITY,
    ) -> None:
        """payloads: what links carry; gravity: (3,) in the root link's frame, m/s^2

        Raises SettingsError where no link that moves has a mass, RobotDescriptionError for an unknown link. What is
        wrong with inertias of the URDF is told in a warning.
        """
        self.robot, self.gravity = robot, np.asarray(gravity, dtype=float)
        self.payloads = tuple(instance("payloads", each, Payload, "Payloads") for each in payloads)
        J = robot.frame_inertia.copy()
        if not (J[:, 3, 3] > 0).any():
            raise SettingsError(f"robot '{robot.name}': no link that planning joints move has a mass (<inertial>)")
        moved = {link for link, frame in zip(robot.link_names, robot.link_frame) if frame >= 0}
        _warn_once(robot.name, tuple(f"link '{link}' ({why})" for link, why in robot.inertia_faults if link in moved))
        for payload in self.payloads:
            link = robot.link_index(payload.link or robot.tip_link)
            if (frame := robot.link_frame[link]) >= 0:
                J[frame] += robot.T_frame_link[link] @ payload.J @ robot.T_frame_link[link].T
        inertia, frames, T = inertias_about_origin(J), robot.frames, robot.T_parent_frame
        self.bodies = Bodies(
            np.concatenate([T[:, :3, :3].reshape(-1, 9), T[:, :3, 3]], axis=1),
            np.stack([frames["parent"], frames["joint"], frames["prismatic"]], axis=1).astype(np.int32),
            np.stack([frames["multiplier"], frames["offset"]], axis=1),
            np.column_stack([J[:, 3, 3], J[:, :3, 3], inertia[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]]),
            np.column_stack(
                [np.linalg.norm(x, axis=1) for x in (T[:, :3, 3], J[:, :3, 3])]
                + [np.linalg.norm(inertia, 2, axis=(1, 2))]
            ),
            self.gravity,
        )

    def torques(
        self, q: ArrayLike, velocity: ArrayLike | None = None, acceleration: ArrayLike | None = None
    ) -> np.ndarray:
        """(N, dof) torques or forces, N m or N, at configurations q (N, dof) or (dof,), rad or m.

        velocity, acceleration: like q, per s and per s^2; None: the robot stands still, or keeps its velocity
        """
        q = self.robot.as_configurations(q)
        rows = [np.zeros_like(q) if x is None else self.robot.as_configurations(x) for x in (velocity, acceleration)]
        if any(x.shape != q.shape for x in rows):
            told = ", ".join(str(len(x)) for x in (q, *rows))
            raise SettingsError(f"q, velocity and acceleration have {told} rows; allowed: the same number")
        return torques_of(self.bodies, *(np.ascontiguousarray(x) for x in (q, *rows)))


@checked()
class TorqueLimits:
    """How strongly the motors of a robot's planning joints may push, for `time_parameterize`."""

    def __init__(
        self,
        robot: RobotModel,
        limits: Mapping[str, float] | ArrayLike | None = None,
        payloads: Iterable[Payload] = (),
        gravity: Annotated[ArrayLike, Numbers((3,))] = GRAVITY,
    ) -> None:
        """limits: {joint: limit} or (dof,), N m or N; others are the efforts of the URDF

        payloads, gravity: as InverseDynamics takes them
        Raises SettingsError that names a joint without a limit, and what InverseDynamics raises.
        """
        self.dynamics = InverseDynamics(robot, payloads, gravity)
        self.limits = _limits(robot, limits)


def _limits(robot: Any, given: Any) -> np.ndarray:
    """(dof,) limits, all above 0."""
    if given is not None and not isinstance(given, Mapping):
        limits = numbers("limits", given, (robot.dof,)).astype(float)
    else:
        if unknown := (given or {}).keys() - set(robot.joint_names):
            raise SettingsError(
                f"limits: {shown(min(map(str, unknown)))} is no planning joint; allowed: {', '.join(robot.joint_names)}"
            )
        limits = np.array([(given or {}).get(name, own) for name, own in zip(robot.joint_names, robot.effort)], float)
        for name, limit in zip(robot.joint_names, limits):
            if limit == 0 and name not in (given or {}):
                raise SettingsError(
                    f"joint '{name}' has no <limit effort> above 0 in the URDF of '{robot.name}': give "
                    f"limits={{'{name}': ...}}, N m or N"
                )
    for name, limit in zip(robot.joint_names, limits):
        if not 0 < limit <= GREATEST:
            raise SettingsError(f"limits: {limit:g} for joint '{name}'; allowed: above 0, up to {GREATEST:g} N m or N")
    return limits


@functools.lru_cache(maxsize=1000)
def _warn_once(robot: str, faults: tuple[str, ...]) -> None:
    if faults:
        log.warning("the URDF of '%s' has inertias that no body has: %s", robot, shortened("; ".join(faults)))
