"""Executes motions with MuJoCo's physics: joints are driven by computed torques, and contacts are MuJoCo's own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked, numbers
from ..arm import CollisionWorld, RobotModel
from ..arm.control.spline import Spline, State
from ..errors import SettingsError, shown
from ..settings import Setting
from .model import make_model, mujoco_module

STIFFNESS = 100.0  # rad/s: natural frequency of each joint's error, critically damped
TIMESTEP = Setting(0.002, "Seconds of a step", 1e-5, 0.1, unit="seconds")
UNTIL = Setting(0.0, "Seconds of the simulation", 0.0, 1e5, unit="seconds")
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


@checked(SettingsError)
class Simulation:
    """A robot among obstacles, in MuJoCo.

    robot, world: as plans are checked against; later changes of the world are not seen
    timestep_s: seconds of a step
    """

    def __init__(self, robot: RobotModel, world: CollisionWorld, timestep_s: float = 0.002) -> None:
        self._mujoco = mujoco_module()
        self._robot = robot
        self.model = make_model(robot, world, TIMESTEP.checked("timestep_s", timestep_s))
        self.data = self._mujoco.MjData(self.model)
        # MuJoCo sorts bodies: where each frame of the robot has its joint
        joints = [self.model.joint(name).id for name in robot.frame_names]
        self._at = self.model.jnt_qposadr[joints]
        self._joint, self._multiplier = robot.frames["joint"], robot.frames["multiplier"]
        self._offset = robot.frames["offset"]
        self._own = np.array([robot.frame_names.index(name) for name in robot.joint_names])
        self._wanted = np.zeros(self.model.nv)  # accelerations
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
        q = numbers("q", q, (self._robot.dof,)).astype(float)
        self._mujoco.mj_resetData(self.model, self.data)
        self._deepest = {}
        positions, _, _ = self._targets(State(q, *np.zeros((2, self._robot.dof))))
        self.data.qpos[self._at] = positions
        self._mujoco.mj_forward(self.model, self.data)
        self._note_contacts()

    def advance(self, until: float, reference: Callable[[np.ndarray], State]) -> float:
        """Step to a time -> greatest distance of a joint from where it should have been, rad or m.

        reference: called with times (N,) for the States (N, dof) that the planning joints should have then
        """
        step, until = self.model.opt.timestep, UNTIL.checked("until", until)
        times = self.time + step * np.arange(max(round((until - self.time) / step), 0))
        asked, error = reference(times), 0.0
        if not isinstance(asked, tuple) or len(asked) != 3:
            raise SettingsError(f"reference returned {shown(asked)}; allowed: a State")
        shape = len(times), self._robot.dof
        asked = State(*(numbers(f"what reference returned ({n})", x, shape) for n, x in zip(State._fields, asked)))
        for wanted in zip(*self._targets(asked), strict=True):
            self._mujoco.mj_step1(self.model, self.data)
            off = wanted[0] - self.data.qpos[self._at]
            self._drive(off, wanted[1] - self.data.qvel[self._at], wanted[2])
            self._mujoco.mj_step2(self.model, self.data)
            if self.data.ncon:
                self._note_contacts()
            error = max(error, float(np.abs(off[self._own]).max()))
        return error

    def execute(self, motion: Spline) -> Execution:
        """Execute a motion from rest at its start."""
        self.reset(motion.positions[0])
        duration = motion.end - motion.start + SETTLE_S
        error = self.advance(duration, lambda times: motion.at(motion.start + times))
        return Execution(self.contacts, error, self.state.positions)

    def _drive(self, off, too_slow, acceleration):
        """Computed torque: accelerate as wanted, and as corrects what is off."""
        self._wanted[self._at] = acceleration + STIFFNESS**2 * off + 2 * STIFFNESS * too_slow
        self._mujoco.mj_mulM(self.model, self.data, self.data.qfrc_applied, self._wanted)
        self.data.qfrc_applied += self.data.qfrc_bias - self.data.qfrc_passive

    def _targets(self, wanted):
        """Positions, velocities, accelerations (..., F) of every frame's joint, those that mimic others too."""
        q, v, a = (values[..., self._joint] * self._multiplier for values in wanted)
        return q + self._offset, v, a

    def _note_contacts(self):
        for contact in self.data.contact[: self.data.ncon]:
            if contact.dist < 0:
                pair = tuple(self.model.geom(int(geom)).name for geom in contact.geom)
                found = Contact(float(self.data.time), *pair, float(-contact.dist))
                if pair not in self._deepest or found.depth > self._deepest[pair].depth:
                    self._deepest[pair] = found
