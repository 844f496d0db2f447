"""MJCF -> RobotModel and CollisionWorld, read by MuJoCo where it is installed: in a compiled model all defaults, frames
and meshes are worked out.

Of the tree of bodies, what hangs on the world and carries a planning joint is the robot; all other bodies, and the
geoms of the world itself, are obstacles. A body with several joints has a link for each; what a joint turns about need
not be the body's origin. Geoms that nothing can touch are left out. A mesh is its convex hull, as in MuJoCo.
"""

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked, numbers
from ...errors import ObstacleError, RobotDescriptionError, SettingsError, shortened, shown
from ...files import file_path
from ...ranges import GREATEST_LENGTH
from ..collision.world import CollisionWorld
from ..geometry.decomposition import convex_pieces
from ..geometry.shapes import ConvexShape
from ..robot.inertia import fault_of, pseudo_inertia
from ..robot.model import RobotModel
from ..robot.modified_dh import rotation_about, transform
from .joint_limits import PlanningLimits
from .loader import PRIMITIVES, assembled
from .notes import Note, tell
from .self_collision import ADJACENT
from .srdf_xml import Semantics
from .urdf_xml import Collision, Description, Inertial, Joint, with_mimic_leaders

EXCLUDED = "excluded by the MJCF"
HALF_SPACE = 200.0, 10.0  # m: edges and depth of the box that stands for a plane
SPHERE = 3  # subdivisions of the polyhedron around an ellipsoid, which sticks out by less than 1 %


def mujoco_module() -> Any:
    """The module mujoco; RobotDescriptionError says how to install it."""
    try:
        import mujoco
    except ImportError as error:
        raise RobotDescriptionError(
            "MJCF is read by the Python package mujoco, which is not installed: pip install 'gpu_planners[sim]'"
        ) from error
    return mujoco


@checked(RobotDescriptionError)
def load_mjcf(
    mjcf: Any,
    joints: Sequence[str] | None = None,
    fixed: Mapping[str, float] = MappingProxyType({}),
    velocity: Mapping[str, float] | ArrayLike | None = None,
    acceleration: Mapping[str, float] | ArrayLike | None = None,
    hull_tolerance: Annotated[float, SettingsError] = math.inf,
    self_collisions: bool = True,
    limits: str | os.PathLike | Mapping | PlanningLimits | None = None,
) -> RobotModel:
    """RobotModel of a robot in an MJCF; links are its bodies, and "world".

    mjcf: path, the XML text itself (starts with "<"), or a mujoco.MjModel
    joints: names of the planning joints in the order of q; default: every hinge and slide that follows no other
    fixed: {joint: value} of joints that are not planned, rad or m; others stay at their `ref`
    velocity, acceleration, self_collisions, limits: as load_urdf takes them; an MJCF has no such limits
    hull_tolerance: inf: a mesh is its hull, as in MuJoCo; else as load_urdf takes it

    Keyframes are `named_states`. A joint that an equality couples to another one follows it. Pairs of bodies that the
    MJCF excludes, or whose contype and conaffinity never meet, are not checked. An ellipsoid becomes a polyhedron
    around it. Raises RobotDescriptionError that names what cannot be planned: ball joints, a free base, equalities
    that are not linear or that close a loop through planning joints, planes, height fields and SDFs on the robot.
    """
    model = _Model(mjcf)
    names = model.planned(joints)
    description, decided = model.description(names)
    semantics = Semantics({}, {}, {}, None, model.states())
    refs = {
        name: float(np.clip(model.ref(model.joint_of[name]), *joint.range))
        for name, joint in description.joints.items()
        if name in model.joint_of and name not in names and not joint.mimic and joint.kind.plannable
    }

    def shapes():
        links, found, numbers_of = tuple(description.links), [], []
        for body in model.bodies:
            own = model.shapes(body, hull_tolerance, RobotDescriptionError)
            found += own
            numbers_of += [links.index(model.body_name(body))] * len(own)
        return tuple(found), np.array(numbers_of, dtype=np.int32)

    tell(f"the MJCF of '{description.name}'", description.notes)
    given = velocity, acceleration, limits
    return assembled(description, semantics, shapes, names, refs | dict(fixed), given, self_collisions, decided)


@checked(ObstacleError)
def mjcf_obstacles(mjcf: Any, robot: RobotModel, qpos: ArrayLike | None = None) -> CollisionWorld:
    """The obstacles of an MJCF: the world's geoms and all bodies that are no links of the robot, each by its name, with
    the pose of its body (`CollisionWorld.pose_of`), as `SceneBatch.set_poses` moves it.

    mjcf: as of load_mjcf; qpos: (nq,) where everything stands; default: the model's qpos0

    Geoms of the world have their own names, or "world#0", ... A plane is a box below it, 200 m wide and 10 m deep.
    Raises ObstacleError for height fields, SDFs, and planes that move.
    """
    model = _Model(mjcf)
    mujoco, mj = model.mujoco, model.mj
    data = mujoco.MjData(mj)
    if qpos is not None:
        data.qpos[:] = numbers("qpos", qpos, (mj.nq,), ObstacleError)
    mujoco.mj_kinematics(mj, data)
    world = CollisionWorld()
    for body in range(mj.nbody):
        if model.body_name(body) in robot.link_names and body:
            continue
        for name, own in model.obstacles(body):
            pose = transform(data.xmat[body].reshape(3, 3), data.xpos[body])
            world.add_shapes(name, own, pose)
    return world


class _Model:
    """A compiled model."""

    def __init__(self, mjcf):
        self.mujoco = mujoco = mujoco_module()
        if isinstance(mjcf, mujoco.MjModel):
            self.mj = mjcf
        else:
            try:
                if isinstance(mjcf, str) and mjcf.lstrip().startswith("<"):
                    self.mj = mujoco.MjModel.from_xml_string(mjcf)
                else:
                    path = file_path(mjcf, "the MJCF, where it is no XML text nor an MjModel,", RobotDescriptionError)
                    self.mj = mujoco.MjModel.from_xml_path(str(path))
            except ValueError as error:
                raise RobotDescriptionError(f"MuJoCo does not read the MJCF: {shortened(str(error))}") from error
        mj, kinds = self.mj, mujoco.mjtJoint
        self.joint_of = {self.joint_name(j): j for j in range(mj.njnt)}
        self._hinge, self._slide, self._free = int(kinds.mjJNT_HINGE), int(kinds.mjJNT_SLIDE), int(kinds.mjJNT_FREE)
        self.bodies: list[int] = []  # of the robot, parents first
        self.mimics = self._mimics()

    def _name(self, kind, number):
        return self.mujoco.mj_id2name(self.mj, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind}"), int(number))

    def body_name(self, body):
        return self._name("BODY", body) or f"body{body}"

    def joint_name(self, joint):
        return self._name("JOINT", joint) or f"joint{joint}"

    def geom_name(self, geom):
        return self._name("GEOM", geom) or f"geom {geom} of body '{self.body_name(self.mj.geom_bodyid[geom])}'"

    def ref(self, joint):
        return self.mj.qpos0[self.mj.jnt_qposadr[joint]]

    def _moves(self, joint):
        return self.mj.jnt_type[joint] in (self._hinge, self._slide)

    def _active(self, kind):
        """Numbers of the equalities of a kind that are active."""
        mj, wanted = self.mj, int(getattr(self.mujoco.mjtEq, f"mjEQ_{kind}"))
        return [e for e in range(mj.neq) if mj.eq_type[e] == wanted and mj.eq_active0[e]]

    def _mimics(self):
        """{joint: (leader, multiplier, offset), or a constant, or a text: why it cannot be followed}"""
        mj, found = self.mj, {}
        for e in self._active("JOINT"):
            follower, leader, factors = int(mj.eq_obj1id[e]), int(mj.eq_obj2id[e]), mj.eq_data[e][:5]
            name = self.joint_name(follower)
            if leader < 0:
                found[name] = float(self.ref(follower) + factors[0])
            elif np.any(factors[2:] != 0):
                found[name] = f"the equality that couples it to '{self.joint_name(leader)}' is not linear"
            else:
                offset = self.ref(follower) + factors[0] - factors[1] * self.ref(leader)
                found[name] = self.joint_name(leader), float(factors[1]), float(offset)
        return found

    def planned(self, joints):
        """Names of the planning joints."""
        if joints is None:
            joints = [name for name, j in self.joint_of.items() if self._moves(j) and name not in self.mimics]
        for name in joints:
            if name not in self.joint_of:
                known = shortened(", ".join(self.joint_of)) or "none"
                raise RobotDescriptionError(f"the MJCF has no joint {shown(name)}; its joints: {known}")
            if not self._moves(self.joint_of[name]):
                raise RobotDescriptionError(f"joint '{name}' is no hinge and no slide: not plannable")
            if isinstance(self.mimics.get(name), tuple):
                raise RobotDescriptionError(f"joint '{name}' follows '{self.mimics[name][0]}': plan that one")
            if name in self.mimics:
                raise RobotDescriptionError(f"joint '{name}' is held or coupled by an equality: not plannable")
        if not joints:
            raise RobotDescriptionError("the MJCF has no joint to plan")
        return tuple(joints)

    def description(self, names):
        """Description of the robot, and {pair of its links: why it is not checked}."""
        mj, notes = self.mj, []
        roots = {int(self._root(mj.jnt_bodyid[self.joint_of[name]])) for name in names}
        self.bodies = [b for b in range(1, mj.nbody) if self._root(b) in roots]
        links: dict[str, tuple[Collision, ...]] = {"world": ()}
        joints: dict[str, Joint] = {}
        for body in self.bodies:
            self._add_body(body, links, joints, names)
        self._refuse_loops(names)
        inertials = {self.body_name(b): self._inertial(b) for b in self.bodies if mj.body_mass[b] > 0}
        touching = [b for b in self.bodies if not links[self.body_name(b)]]
        seen = tuple(self.body_name(b) for b in touching if mj.body_geomnum[b])
        name = mj.names[: mj.names.index(b"\0")].decode() or "robot"
        joints = with_mimic_leaders(joints)
        notes += [
            Note("joints cannot be planned; they are held", f"'{j.name}' ({j.held})") for j in joints.values() if j.held
        ]
        found = Description(name, "world", links, joints, seen, inertials, tuple(notes))
        return found, self._excluded(tuple(links))

    def _root(self, body):
        """The child of the world that carries a body."""
        while self.mj.body_parentid[body] != 0:
            body = self.mj.body_parentid[body]
        return int(body)

    def _add_body(self, body, links, joints, names):
        """Add the link of a body and its joints, and a link between each two."""
        mj, name = self.mj, self.body_name(body)
        if name in links:
            raise RobotDescriptionError(f"body '{name}' has the name of another link; allowed: names of their own")
        parent = self.body_name(mj.body_parentid[body]) if mj.body_parentid[body] else "world"
        T = transform(self._rotation(mj.body_quat[body]), mj.body_pos[body])
        first, count = int(mj.body_jntadr[body]), int(mj.body_jntnum[body])
        for j in range(first, first + count):
            joint_name, anchor = self.joint_name(j), mj.jnt_pos[j]
            if mj.jnt_type[j] == self._free:
                joints[joint_name] = self._fixed(joint_name, "floating", parent, name, T)
                links[name] = self._collisions(body)
                return
            if not self._moves(j):
                raise RobotDescriptionError(f"joint '{joint_name}' of body '{name}' is a ball joint: not plannable")
            last = j == first + count - 1 and not anchor.any()
            child = name if last else f"{name}/{joint_name}"
            joints[joint_name] = self._joint(j, parent, child, T @ transform(p=anchor))
            links[child] = self._collisions(body) if last else ()
            parent, T = child, transform(p=-anchor)
            if last:
                return
        joints[f"{name}/fixed"] = self._fixed(f"{name}/fixed", "fixed", parent, name, T)
        links[name] = self._collisions(body)

    @staticmethod
    def _fixed(name, kind, parent, child, T):
        return Joint(name, kind, parent, child, T, np.array([1.0, 0, 0]), None, 0.0, 0.0, None)

    def _joint(self, j, parent, child, T):
        """A hinge or a slide, whose value is 0 where MuJoCo's is."""
        mj, name, axis = self.mj, self.joint_name(j), self.mj.jnt_axis[j].copy()
        slides, limited, ref = mj.jnt_type[j] == self._slide, bool(mj.jnt_limited[j]), float(self.ref(j))
        T = T @ (transform(p=-ref * axis) if slides else transform(rotation_about(axis, -ref)))
        limits = tuple(mj.jnt_range[j].tolist()) if limited else None
        kind, held, coupled = (
            "prismatic" if slides else "revolute" if limited else "continuous",
            "",
            self.mimics.get(name),
        )
        mimic = coupled if isinstance(coupled, tuple) else None
        if isinstance(coupled, str):
            raise RobotDescriptionError(f"joint '{name}': {coupled}")
        if isinstance(coupled, float):
            held, limits = f"an equality holds it at {coupled:g}", (coupled, coupled)
            kind = "prismatic" if slides else "revolute"
        elif slides and not limited and not mimic:
            held, limits = "it slides without end", (-GREATEST_LENGTH, GREATEST_LENGTH)
        elif limited and limits[0] == limits[1] and not mimic:
            held = f"its limits are {limits[0]:g} and {limits[1]:g}"
        fault = f"its range is {limits[0]:g} to {limits[1]:g}" if limits and limits[0] > limits[1] else ""
        effort = float(mj.jnt_actfrcrange[j, 1]) if mj.jnt_actfrclimited[j] else 0.0
        return Joint(name, kind, parent, child, T, axis, limits, 0.0, 0.0, mimic, held, fault, effort)

    def _refuse_loops(self, names):
        """Equalities that would have to move with planning joints."""
        mj = self.mj
        for kind in ("CONNECT", "WELD", "DISTANCE"):
            for e in self._active(kind):
                ends = [int(mj.eq_obj1id[e]), int(mj.eq_obj2id[e])]
                if mj.eq_objtype[e] != int(self.mujoco.mjtObj.mjOBJ_BODY):
                    ends = [int(mj.site_bodyid[s]) if kind != "DISTANCE" else int(mj.geom_bodyid[s]) for s in ends]
                moved = [self._planned_above(body, names) for body in ends]
                if moved[0] != moved[1]:
                    told = " and ".join(f"'{self.body_name(body)}'" for body in ends)
                    joint = sorted(moved[0] ^ moved[1])[0]
                    raise RobotDescriptionError(
                        f"an equality ({kind.lower()}) ties {told}, which joint '{joint}' moves against each other: "
                        "loops are not planned; plan other joints"
                    )
        for e in self._active("TENDON"):
            for tendon in (t for t in (mj.eq_obj1id[e], mj.eq_obj2id[e]) if t >= 0):
                first = mj.tendon_adr[tendon]
                wraps = range(first, first + mj.tendon_num[tendon])
                of = {self.joint_name(mj.wrap_objid[w]) for w in wraps if mj.wrap_type[w] == 1}  # mjWRAP_JOINT
                if of & set(names):
                    raise RobotDescriptionError(
                        f"an equality of tendons couples joint '{sorted(of & set(names))[0]}': not plannable"
                    )

    def _planned_above(self, body, names):
        """The planning joints that move a body, followers counting as their leaders."""
        found, mj = set(), self.mj
        while body > 0:
            for j in range(mj.body_jntadr[body], mj.body_jntadr[body] + mj.body_jntnum[body]):
                name = self.joint_name(j)
                leader = self.mimics.get(name)
                found.add(leader[0] if isinstance(leader, tuple) else name)
            body = int(mj.body_parentid[body])
        return found & set(names)

    def _inertial(self, body):
        mj = self.mj
        T, inertia = transform(self._rotation(mj.body_iquat[body]), mj.body_ipos[body]), np.diag(mj.body_inertia[body])
        fault = fault_of(float(mj.body_mass[body]), inertia)
        return Inertial(pseudo_inertia(float(mj.body_mass[body]), inertia, T), fault)

    def _rotation(self, quat):
        R = np.zeros(9)
        self.mujoco.mju_quat2Mat(R, np.ascontiguousarray(quat))
        return R.reshape(3, 3)

    def states(self):
        """{keyframe: {joint: value}}"""
        mj = self.mj
        moving = [(name, int(mj.jnt_qposadr[j])) for name, j in self.joint_of.items() if self._moves(j)]
        return {
            self._name("KEY", k) or f"key{k}": {name: float(mj.key_qpos[k][at]) for name, at in moving}
            for k in range(mj.nkey)
        }

    def _geoms(self, body):
        """Numbers of a body's geoms that something can touch."""
        mj, first = self.mj, self.mj.body_geomadr[body]
        paired = {int(g) for g in (*mj.pair_geom1, *mj.pair_geom2)}
        own = range(first, first + mj.body_geomnum[body]) if mj.body_geomnum[body] else ()
        return [g for g in own if mj.geom_contype[g] or mj.geom_conaffinity[g] or g in paired]

    def _collisions(self, body):
        mj = self.mj
        return tuple(
            Collision("geom", transform(self._rotation(mj.geom_quat[g]), mj.geom_pos[g]), mj.geom_size[g].copy())
            for g in self._geoms(body)
        )

    def _excluded(self, links):
        """{pair of links: EXCLUDED} of those that MuJoCo never lets touch."""
        mj, found = self.mj, {}
        excluded = {(int(s) >> 16, int(s) & 0xFFFF) for s in mj.exclude_signature}
        paired = {
            frozenset((int(mj.geom_bodyid[a]), int(mj.geom_bodyid[b]))) for a, b in zip(mj.pair_geom1, mj.pair_geom2)
        }
        for a, b in itertools.combinations(self.bodies, 2):
            masks = [(mj.geom_contype[self._geoms(x)], mj.geom_conaffinity[self._geoms(x)]) for x in (a, b)]
            (types_a, affine_a), (types_b, affine_b) = masks
            meet = bool(((types_a[:, None] & affine_b) | (types_b & affine_a[:, None])).any())
            pair = sorted((links.index(self.body_name(a)), links.index(self.body_name(b))))
            if frozenset((a, b)) in paired:
                continue
            if not meet or (a, b) in excluded or (b, a) in excluded:
                found[tuple(pair)] = EXCLUDED
            elif self._adjacent(a, b):
                found[tuple(pair)] = ADJACENT
        return found

    def _adjacent(self, a, b):
        """Does a joint, or several of one body, join them, as MuJoCo filters parents and children? Of what stands on
        the world it filters nothing; here the body that carries the joint is adjacent, and nothing else there."""
        weld, parent = self.mj.body_weldid, self.mj.body_parentid
        for one, other in ((a, b), (b, a)):
            carrier = parent[weld[other]]  # of a body on the world: the world
            if carrier and (one == carrier or (weld[carrier] and weld[one] == weld[carrier])):
                return True
        return False

    def shapes(self, body, hull_tolerance, error, prefix=None):
        """ConvexShapes of a body's geoms, in its frame."""
        found, name = [], prefix or self.body_name(body)
        for n, g in enumerate(self._geoms(body)):
            T = transform(self._rotation(self.mj.geom_quat[g]), self.mj.geom_pos[g])
            try:
                pieces = self._geom(g, f"{name}_{n}", hull_tolerance)
            except ObstacleError as fault:
                raise error(f"{self.geom_name(g)}: {fault}") from fault
            found += [piece.moved(T) for piece in pieces]
        return found

    def _geom(self, g, name, hull_tolerance):
        """ConvexShapes in the geom's frame."""
        mj, kinds = self.mj, self.mujoco.mjtGeom
        kind, (a, b, c) = kinds(int(mj.geom_type[g])), mj.geom_size[g].tolist()
        if kind == kinds.mjGEOM_BOX:
            return PRIMITIVES["box"](name, [2 * a, 2 * b, 2 * c])
        if kind == kinds.mjGEOM_SPHERE:
            return PRIMITIVES["sphere"](name, [a])
        if kind == kinds.mjGEOM_CYLINDER:
            return PRIMITIVES["cylinder"](name, [a, 2 * b])
        if kind == kinds.mjGEOM_CAPSULE:
            return PRIMITIVES["capsule"](name, [a, 2 * b])
        if kind == kinds.mjGEOM_ELLIPSOID:
            return [ConvexShape.convex_hull(name, _around_sphere() * [a, b, c], np.eye(4))]
        if kind == kinds.mjGEOM_MESH:
            mesh = mj.geom_dataid[g]
            first, faces = mj.mesh_vertadr[mesh], mj.mesh_faceadr[mesh]
            points = mj.mesh_vert[first : first + mj.mesh_vertnum[mesh]].astype(np.float64)
            if math.isinf(hull_tolerance):
                return [ConvexShape.convex_hull(name, points, np.eye(4))]
            import trimesh

            triangles = mj.mesh_face[faces : faces + mj.mesh_facenum[mesh]]
            return list(convex_pieces(name, trimesh.Trimesh(points, triangles), np.eye(4), hull_tolerance))
        raise ObstacleError(f"its type is {kind.name.removeprefix('mjGEOM_').lower()}; allowed: primitives and meshes")

    def obstacles(self, body):
        """[(name, shapes in the body's frame)]"""
        mj, plane = self.mj, int(self.mujoco.mjtGeom.mjGEOM_PLANE)
        geoms = self._geoms(body)
        if body:
            own = self.shapes(body, math.inf, ObstacleError)
            return [(self.body_name(body), own)] if own else []
        found = []
        for n, g in enumerate(geoms):
            name = self._name("GEOM", g) or f"world#{n}"
            T = transform(self._rotation(mj.geom_quat[g]), mj.geom_pos[g])
            try:
                if mj.geom_type[g] == plane:
                    wide, deep = HALF_SPACE
                    pieces = [ConvexShape.box(name, [wide, wide, deep], transform(p=np.array([0, 0, -deep / 2])))]
                else:
                    pieces = self._geom(g, name, math.inf)
            except ObstacleError as fault:
                raise ObstacleError(f"{self.geom_name(g)}: {fault}") from fault
            found.append((name, [piece.moved(T) for piece in pieces]))
        return found


def _around_sphere():
    """(V, 3) corners of a polyhedron around the sphere of radius 1."""
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=SPHERE)
    nearest = np.einsum("fi,fi->f", ball.face_normals, ball.triangles[:, 0]).min()
    return np.asarray(ball.vertices) / (nearest * (1 - 1e-9))
