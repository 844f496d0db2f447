"""Executes motions with MuJoCo's physics: joints are driven by computed torques, and contacts are MuJoCo's own.

In the model of a robot among obstacles each frame of the RobotModel is a body with one joint, each convex shape a geom.
Only pairs that the planner checks can touch: shapes of the robot with obstacles, and the robot's self-collision pairs.
A URDF's inertias are not read; bodies weigh what their shapes do at the density of water; gravity is compensated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked, numbers
from ..arm import CollisionWorld, RobotModel
from ..arm.control.spline import Spline, State
from ..arm.geometry.shapes import ConvexShape, ShapeKind
from ..errors import SettingsError, shown
from ..settings import Setting

ROBOT, OBSTACLE = 1, 2  # bits: robot and obstacles meet each other, not themselves
LIGHT_KG = 0.1  # of a body beside its shapes: one without any needs some mass
LIGHT_INERTIA = 1e-3


def mujoco_module() -> Any:
    """The module mujoco; SettingsError says how to install it."""
    try:
        import mujoco
    except ImportError as error:
        raise SettingsError(
            "physics needs the Python package mujoco, which is not installed: pip install 'gpu_planners[sim]'"
        ) from error
    return mujoco


def make_model(robot: RobotModel, world: CollisionWorld, timestep_s: float = 0.002) -> Any:
    """mujoco.MjModel; joint f is named as frame f, geoms as shapes ('robot/...' and 'world/...')."""
    mujoco = mujoco_module()
    spec = mujoco.MjSpec()
    spec.option.timestep = timestep_s
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    bodies = [spec.worldbody]
    for f, frame in enumerate(robot.frames):
        placed = _placed(mujoco, robot.T_parent_frame[f])
        body = bodies[frame["parent"] + 1].add_body(name=f"frame/{robot.frame_names[f]}", **placed)
        body.gravcomp = 1.0
        kind = mujoco.mjtJoint.mjJNT_SLIDE if frame["prismatic"] else mujoco.mjtJoint.mjJNT_HINGE
        body.add_joint(name=robot.frame_names[f], type=kind, axis=[0, 0, 1], armature=LIGHT_INERTIA)
        # so that a body without shapes has a mass
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.01, 0, 0], mass=LIGHT_KG, contype=0, conaffinity=0)
        bodies.append(body)
    for shape, f in zip(robot.shapes, robot.shape_frame, strict=True):
        _add_shape(mujoco, spec, bodies[f + 1], shape, f"robot/{shape.name}", ROBOT, OBSTACLE)
    for shape in world.shapes:
        _add_shape(mujoco, spec, spec.worldbody, shape, f"world/{shape.name}", OBSTACLE, ROBOT)
    for i, j in robot.self_collision_pairs:
        spec.add_pair(geomname1=f"robot/{robot.shapes[i].name}", geomname2=f"robot/{robot.shapes[j].name}")
    return spec.compile()


def _placed(mujoco: Any, T: np.ndarray) -> dict[str, Any]:
    """pos and quat of a pose (4, 4)."""
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(T[:3, :3]).ravel())
    return {"pos": T[:3, 3], "quat": quat}


def _add_shape(mujoco: Any, spec: Any, body: Any, shape: ConvexShape, name: str, bit: int, meets: int) -> None:
    x, y, z = (float(half) for half in shape.half_extents)
    geom, given = mujoco.mjtGeom, dict[str, Any](contype=bit, conaffinity=meets, density=1000.0)
    sizes = {
        ShapeKind.BOX: (geom.mjGEOM_BOX, [x, y, z]),
        ShapeKind.CYLINDER: (geom.mjGEOM_CYLINDER, [x, z, 0]),
        ShapeKind.SPHERE: (geom.mjGEOM_SPHERE, [x, 0, 0]),
    }
    if shape.kind == ShapeKind.POLYTOPE:
        mesh = spec.add_mesh(name=name, inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL)
        mesh.uservert = np.asarray(shape.vertices, dtype=float).ravel()
        given |= {"type": geom.mjGEOM_MESH, "meshname": name}
    elif shape.kind in sizes:
        given["type"], given["size"] = sizes[shape.kind]
    else:
        raise SettingsError(f"'{shape.name}': MuJoCo has no shape for the kind {shape.kind.name}")
    body.add_geom(name=name, **given, **_placed(mujoco, shape.pose))


STIFFNESS = 100.0  # rad/s: natural frequency of each joint's error, critically damped
TIMESTEP = Setting(0.002, "Seconds of a step", 1e-5, 0.1, unit="seconds")
UNTIL = Setting(0.0, "Seconds of the simulation", 0.0, 1e5, unit="seconds")
SETTLE_S = 0.1  # simulated after a motion


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
