"""A MuJoCo model of a robot among obstacles, from the same description that plans are checked against.

Each frame of the RobotModel is a body with one joint, each convex shape a geom. Only pairs that the planner checks can
touch: shapes of the robot with obstacles, and the robot's self-collision pairs. A URDF's inertias are not read; bodies
weigh what their shapes do at the density of water, and gravity is compensated.
"""

from typing import Any

import numpy as np

from ..arm import CollisionWorld, RobotModel
from ..arm.geometry.shapes import ConvexShape, ShapeKind
from ..arm.robot.modified_dh import row_transform
from ..errors import SettingsError

ROBOT, OBSTACLE = 1, 2  # bits: robot and obstacles meet each other, not themselves
LIGHT_KG, LIGHT_INERTIA = 0.1, 1e-3  # of a body beside its shapes: one without any needs some


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
        T_parent_body = robot.T_parent_base[f] @ row_transform(frame["a"], frame["alpha"], frame["d"], frame["theta"])
        body = bodies[frame["parent"] + 1].add_body(name=f"frame/{robot.frame_names[f]}", **_placed(T_parent_body))
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


def _placed(T: np.ndarray) -> dict[str, Any]:
    """pos and quat of a pose (4, 4)."""
    mujoco = mujoco_module()
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(T[:3, :3]).ravel())
    return {"pos": T[:3, 3], "quat": quat}


def _add_shape(mujoco: Any, spec: Any, body: Any, shape: ConvexShape, name: str, bit: int, meets: int) -> None:
    given = {"name": name, "contype": bit, "conaffinity": meets, "density": 1000.0, **_placed(shape.pose)}
    x, y, z = (float(half) for half in shape.half_extents)
    if shape.kind == ShapeKind.BOX:
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[x, y, z], **given)
    elif shape.kind == ShapeKind.CYLINDER:
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_CYLINDER, size=[x, z, 0], **given)
    elif shape.kind == ShapeKind.SPHERE:
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[x, 0, 0], **given)
    elif shape.kind == ShapeKind.POLYTOPE:
        mesh = spec.add_mesh(name=name, inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL)
        mesh.uservert = np.asarray(shape.vertices, dtype=float).ravel()
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name, **given)
    else:
        raise SettingsError(f"'{shape.name}': MuJoCo has no shape for the kind {shape.kind.name}")
