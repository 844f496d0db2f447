"""Executes motions with MuJoCo's physics: joints are driven by computed torques, and contacts are MuJoCo's own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arm import CollisionWorld, RobotModel
from ..arm.control.spline import Spline, State
from .model import make_model, mujoco_module

STIFFNESS = 100.0  # rad/s: natural frequency of each joint's error, critically damped
SETTLE_S = 0.1  # after a motion


class Contact(NamedTuple):
    """Two shapes that MuJoCo found to penetrate each other.

    time: seconds of the simulation; first, second: 'robot/<shape>' or 'world/<shape>'; depth: metres
    """

    time: float
    first: str
    second: str
    depth: float


@dataclass(frozen=True)
class Execution:
    """How a motion was executed.

    contacts: the deepest Contact of each pair
    error: greatest distance of a joint from where it should have been, rad or m
    positions: (dof,) at the end
    """

    contacts: tuple[Contact, ...]
    error: float
    positions: np.ndarray


class Simulation:
    """A robot among obstacles, in MuJoCo.

    robot, world: as plans are checked against; later changes of the world are not seen
    timestep_s: seconds of a step
    """

    def __init__(self, robot: RobotModel, world: CollisionWorld, timestep_s: float = 0.001) -> None:
        self._mujoco = mujoco_module()
        self._robot = robot
        self.model = make_model(robot, world, timestep_s)
        self.data = self._mujoco.MjData(self.model)
        # MuJoCo sorts bodies: where each frame of the robot has its joint
        joints = [self.model.joint(name).id for name in robot.frame_names]
        self._at = self.model.jnt_qposadr[joints]
        self._joint, self._multiplier = robot.frames["joint"], robot.frames["multiplier"]
        self._offset = robot.frames["offset"]
        self._own = np.array([robot.frame_names.index(name) for name in robot.joint_names])
        self._deepest: dict[tuple[str, str], Contact] = {}

    @property
    def time(self) -> float:
        """Seconds since the last reset."""
        return float(self.data.time)

    @property
    def state(self) -> State:
        """Of the planning joints, (dof,) each."""
        at = self._at[self._own]
        return State(self.data.qpos[at].copy(), self.data.qvel[at].copy(), self.data.qacc[at].copy())

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """Since the last reset, the deepest one of each pair."""
        return tuple(self._deepest.values())

    def reset(self, q: ArrayLike) -> None:
        """Put the robot at rest at q (dof,)."""
        self._mujoco.mj_resetData(self.model, self.data)
        self._deepest = {}
        positions, _, _ = self._targets(State(np.asarray(q, dtype=float), *np.zeros((2, self._robot.dof))))
        self.data.qpos[self._at] = positions
        self._mujoco.mj_forward(self.model, self.data)
        self._note_contacts()

    def advance(self, until: float, reference: Callable[[float], State]) -> None:
        """Step to a time. reference: called with a time for the State that the joints should have then"""
        while self.data.time + 0.5 * self.model.opt.timestep < until:
            self._mujoco.mj_step1(self.model, self.data)
            self._drive(reference(self.data.time))
            self._mujoco.mj_step2(self.model, self.data)
            self._note_contacts()

    def execute(self, motion: Spline) -> Execution:
        """Execute a motion from rest at its start."""
        self.reset(motion.positions[0])
        error = [0.0]

        def reference(time):
            wanted = motion.at(motion.start + time)
            error[0] = max(error[0], float(np.abs(self.state.positions - wanted.positions).max()))
            return wanted

        self.advance(motion.end - motion.start + SETTLE_S, reference)
        return Execution(self.contacts, error[0], self.state.positions)

    def _drive(self, wanted):
        """Computed torque: accelerate as wanted, and as corrects what is off."""
        q, v, a = self._targets(wanted)
        own = a + STIFFNESS**2 * (q - self.data.qpos[self._at]) + 2 * STIFFNESS * (v - self.data.qvel[self._at])
        accelerations, force = np.zeros(self.model.nv), np.zeros(self.model.nv)
        accelerations[self._at] = own
        self._mujoco.mj_mulM(self.model, self.data, force, accelerations)
        self.data.qfrc_applied[:] = force + self.data.qfrc_bias - self.data.qfrc_passive

    def _targets(self, wanted):
        """Positions, velocities, accelerations (F,) of every frame's joint, those that mimic others too."""
        q, v, a = (values[self._joint] * self._multiplier for values in wanted)
        return q + self._offset, v, a

    def _note_contacts(self):
        for contact in self.data.contact[: self.data.ncon]:
            if contact.dist < 0:
                pair = tuple(self.model.geom(int(geom)).name for geom in contact.geom)
                found = Contact(float(self.data.time), *pair, float(-contact.dist))
                if pair not in self._deepest or found.depth > self._deepest[pair].depth:
                    self._deepest[pair] = found
