"""A robot among obstacles as pinocchio and coal know it: pinocchio reads the URDF and its meshes, coal measures.

A motion is followed by conservative advancement: two bodies that are d apart cannot meet before some point of one has
moved by d relative to the other, and how far joints move points is bounded by the lengths of their chains.
"""

import copy
import heapq
import itertools
import math
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import coal
import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..arguments import Numbers, checked
from ..errors import ConfigurationError, ObstacleError, RobotDescriptionError, SettingsError, shortened, shown
from . import shapes

Configuration = Annotated[ArrayLike, Numbers((None,)), ConfigurationError]
MOVABLE = ("revolute", "continuous", "prismatic")
SAMPLES = 200  # configurations; pairs of links that overlap in all of them touch by design
_LOADER = coal.CachedMeshLoader(coal.BV_OBBRSS)


class Meeting(NamedTuple):
    """Two bodies somewhere on a path.

    segment, fraction: it is this share of the way from row `segment` to the next one
    bodies: <link>_<number of its collision element> or the name of an obstacle
    distance: signed, metres, negative where they overlap; of two meshes that overlap, that of their hulls
    """

    segment: int
    fraction: float
    bodies: tuple[str, str]
    distance: float


@checked(RobotDescriptionError)
class CoalScene:
    """A robot among obstacles.

    joint_names: the planned joints, in the order of q; lower, upper, velocity: (dof,) their limits, rad or m, infinite
    where there are none; model: pinocchio's; geometry: pinocchio's, the bodies of links and then those of obstacles
    pair_names: (body, body) of each pair that is checked, first the `obstacle_pairs` ones with obstacles
    """

    def __init__(
        self,
        urdf: str | os.PathLike,
        srdf: str | os.PathLike | None = None,
        obstacles: str | os.PathLike | Sequence[Mapping[str, Any]] = (),
        package_dirs: Sequence[str | os.PathLike] = (),
        meshes: str | Mapping[str, Any] = "triangles",
        joints: Sequence[str] | None = None,
        fixed: Mapping[str, float] | None = None,
        self_pairs: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        """urdf: a file or its text; srdf: a file, which disables pairs of links
        obstacles: a scene file, or mappings with its keys, whose pose may also be "pose", (4, 4) in the root frame
        package_dirs: folders of packages, or packages, in which the URDF's paths of meshes are looked up
        meshes: "triangles", as they are; "hulls", one for each mesh; or {body: [(V, 3) points of a piece's hull, in the
            link's frame]}, others as hulls
        joints: names in the order of q; None: all that move and follow no other one
        fixed: {joint: value} of others, 0 where not named
        self_pairs: links that may meet; None: those that the SRDF does not disable, without one all but neighbours
            and pairs that overlap everywhere that it looks

        Raises RobotDescriptionError or ObstacleError that name what is wrong.
        """
        try:
            root = shapes.read_xml(urdf, "URDF")
            shapes.find_meshes(root, urdf, package_dirs)
            text = ET.tostring(root, encoding="unicode")
            self._joints = {joint.get("name", ""): joint for joint in root.findall("joint")}
            self.model = pin.buildModelFromXML(text)
            self._fixed = dict(fixed or {})
            self._name_joints(joints)
            self._robot = self._bodies_of(text, meshes)
            self.data = self.model.createData()
            self._self_pairs = self._pairs_of_links(srdf, self_pairs)
        except (ET.ParseError, ValueError, RuntimeError, RecursionError, KeyError, AttributeError, TypeError) as error:
            if isinstance(error, RobotDescriptionError):
                raise
            raise RobotDescriptionError(f"URDF {shown(str(urdf))}: {shortened(error)}") from error
        rates = [self._rates(body) for body in self._robot.geometryObjects]
        self._reach_of_body = [self._reach_of(each) for each in rates]  # obstacles stand still
        self._reach_of_self_pairs = [self._reach_of(_apart(rates[a], rates[b])) for a, b in self._self_pairs]
        self._place_among(obstacles)

    def among(self, obstacles: str | os.PathLike | Sequence[Mapping[str, Any]]) -> "CoalScene":
        """Put the robot among other obstacles, much faster than a new scene would."""
        scene = copy.copy(self)
        scene.data = self.model.createData()
        scene._place_among(obstacles)
        return scene

    @property
    def moving(self) -> list[int]:
        """Indices, in `geometry`, of the links' bodies that the planned joints move."""
        return [i for i, body in enumerate(self._robot.geometryObjects) if self._group(body.parentJoint)]

    def placed(self, q: Configuration) -> Any:
        """Poses T_root_body by index, pinocchio's SE3, at q (dof,); valid until the next call."""
        pin.updateGeometryPlacements(self.model, self.data, self.geometry, self.geometry_data, self._full(q))
        return self.geometry_data.oMg

    def in_collision(self, q: Configuration) -> bool:
        """Do two bodies touch or overlap at q (dof,)?"""
        self.placed(q)
        return bool(pin.computeCollisions(self.geometry, self.geometry_data, True))

    def distance(self, q: Configuration) -> float:
        """Signed minimum distance over all pairs at q (dof,), metres, negative when two overlap; inf without pairs."""
        return float(self.pair_distances(q).min(initial=np.inf))

    def pair_distances(self, q: Configuration) -> np.ndarray:
        """(P,) signed distances at q (dof,), metres, in the order of `pair_names`."""
        self.placed(q)
        return np.array([self._pair_distance(i) for i in range(len(self.pair_names))])

    def first_collision(self, path: ArrayLike, spacing: float = 0.001, tolerance: float = 0.0) -> Meeting | None:
        """Where two bodies on a path first overlap by `tolerance` metres or more; None where it is free.

        path: (K, dof), straight between rows; spacing: as in `measured`
        """
        return next((each for each in self.measured(path, spacing) if each.distance <= -tolerance), None)

    def measured(self, path: ArrayLike, spacing: float = 0.001, least: bool = False) -> Iterator[Meeting]:
        """Distances along a path (K, dof), straight between rows, in its order; the last row is measured for all pairs.

        Between two of a pair it cannot meet, or no point moves over `spacing` metres relative to the other body. What
        is more than `spacing` apart by the hulls of meshes is as far apart as these.
        least: also measure wherever two may be nearer than any two were before
        """
        path = self._path(path)
        if not (isinstance(spacing, float) and 1e-6 <= spacing < math.inf):
            raise SettingsError(f"spacing is {shown(spacing)}; allowed: a number of metres from 1e-6")
        return self._measured(path, spacing, least)

    def _measured(self, path, spacing, least):
        free_for = np.zeros(len(self.pair_names))  # metres of relative motion for which pairs need no look
        enough = nearest = math.inf
        for segment, (q_from, q_to) in enumerate(itertools.pairwise(path)):
            bound = self._reach @ np.abs(q_to - q_from)  # of each pair's relative motion over the segment
            motion, placed = bound.tolist(), -1.0
            due = [(_share(free, m), i) for i, (free, m) in enumerate(zip(free_for.tolist(), motion))]
            heapq.heapify(due)  # (the share of the segment that is done when the pair is due, pair)
            while due and due[0][0] <= 1.0:
                done, i = due[0]
                if done > placed:
                    self.placed(q_from + done * (q_to - q_from))
                    placed = done
                distance = self._pair_distance(i, enough)
                yield Meeting(segment, done, self.pair_names[i], distance)
                nearest = min(nearest, distance) if least else 0.0
                enough = max(nearest, spacing)
                free_for[i] = motion[i] * done + max(distance - nearest, spacing)
                heapq.heapreplace(due, (max(_share(free_for[i], motion[i]), done + 1e-9), i))
            free_for -= bound
        self.placed(path[-1])
        for i, names in enumerate(self.pair_names):
            yield Meeting(len(path) - 2, 1.0, names, self._pair_distance(i, enough))

    def _path(self, path):
        rows = np.atleast_2d(np.asarray(path, dtype=float))
        if rows.ndim != 2 or rows.shape[1] != len(self.joint_names) or not len(rows) or not np.isfinite(rows).all():
            raise ConfigurationError(
                f"path has the shape {rows.shape}; allowed: finite rows of {len(self.joint_names)} joint values"
            )
        return rows if len(rows) > 1 else np.concatenate([rows, rows])

    def _pair_distance(self, i, enough=math.inf):
        """Signed distance of a pair, where it was `placed`; that of hulls where these are more than `enough` apart."""
        a, b = self._pairs[i]
        if i in self._bounded and enough < math.inf:
            bound = self._signed_distance(self._hulls.get(a), a, self._hulls.get(b), b)
            if bound > enough:
                return bound
        found = pin.computeDistance(self.geometry, self.geometry_data, i).min_distance
        if found == 0 and a in self._hulls and b in self._hulls:  # coal does not tell how deep two meshes overlap
            return min(self._signed_distance(self._hulls[a], a, self._hulls[b], b), 0.0)
        return found if found > shapes.ABSURD else self._signed_distance(None, a, None, b)

    def _signed_distance(self, shape_a, a, shape_b, b):
        """Of two bodies, or of what stands for them."""
        objects, poses = self.geometry.geometryObjects, self.geometry_data.oMg
        T_a, T_b = (coal.Transform3s(poses[k].rotation, poses[k].translation) for k in (a, b))
        return shapes.signed_distance(shape_a or objects[a].geometry, T_a, shape_b or objects[b].geometry, T_b)[0]

    def _full(self, q):
        """Planned values (dof,) -> pinocchio's configuration, mimic joints followed."""
        q = np.asarray(q, dtype=float)
        if q.shape != (len(self.joint_names),):
            raise ConfigurationError(f"q has the shape {q.shape}; allowed: ({len(self.joint_names)},)")
        factors, offsets, turning = self._values
        full = factors @ q + offsets
        for at in turning:
            full[at : at + 2] = math.cos(full[at]), math.sin(full[at])
        return full

    def _leader(self, name):
        """(joint, multiplier, offset) that give a joint its value; itself where it follows none."""
        mimic = self._joints[name].find("mimic")
        if mimic is None:
            return name, 1.0, 0.0
        leader, factor, offset = self._leader(mimic.get("joint"))
        multiplier = float(mimic.get("multiplier", 1))
        return leader, multiplier * factor, multiplier * offset + float(mimic.get("offset", 0))

    def _name_joints(self, wanted):
        """Set the planned joints, their limits, and the map from their values to pinocchio's configurations."""
        model = self.model
        places = dict(zip(list(model.names)[1:], list(model.joints)[1:]))  # the first is the universe
        free = [n for n, j in self._joints.items() if j.get("type") in MOVABLE and j.find("mimic") is None]
        self.joint_names = tuple(free if wanted is None else wanted)
        unknown = [n for n in self.joint_names if n not in free] + [n for n in self._fixed if n not in self._joints]
        if unknown:
            raise RobotDescriptionError(f"no joint {shown(unknown[0])} moves by itself; allowed: {', '.join(free)}")
        if not np.isfinite([*self._fixed.values()]).all():
            raise RobotDescriptionError(f"fixed is {shown(self._fixed)}; allowed: finite values")
        if len(set(self.joint_names)) < len(self.joint_names):
            raise RobotDescriptionError(f"joints {shown(list(self.joint_names))} has one twice")
        turns = [places[name].nq == 2 for name in self.joint_names]
        at = [places[name].idx_q for name in self.joint_names]
        self.lower = np.where(turns, -np.inf, model.lowerPositionLimit[at])
        self.upper = np.where(turns, np.inf, model.upperPositionLimit[at])
        speeds = model.velocityLimit[[places[name].idx_v for name in self.joint_names]]
        self.velocity = np.where(speeds > 0, speeds, np.inf)  # 0 stands for unknown in many files
        factors, offsets, turning = np.zeros((model.nq, len(self.joint_names))), pin.neutral(model), []
        for name, joint in places.items():
            if joint.nv > 1:  # planar and floating joints stand still
                continue
            leader, multiplier, offset = self._leader(name)
            if leader in self.joint_names:
                factors[joint.idx_q, self.joint_names.index(leader)] = multiplier
            else:
                offset += multiplier * self._fixed.get(leader, 0.0)
            offsets[joint.idx_q] = offset
            turning += [joint.idx_q] if joint.nq == 2 else []
        self._values = factors, offsets, turning

    def _bodies_of(self, text, meshes):
        """The links' bodies, pinocchio's GeometryModel."""
        if isinstance(meshes, str) and meshes not in ("triangles", "hulls"):
            raise RobotDescriptionError(f"meshes is {shown(meshes)}; allowed: 'triangles', 'hulls' or pieces of bodies")
        pieces, bodies = {} if isinstance(meshes, str) else meshes, pin.GeometryModel()
        read = pin.buildGeomFromUrdfString(self.model, text, pin.GeometryType.COLLISION, mesh_loader=_LOADER)
        for body in read.geometryObjects:
            parts = [(body.name, body.placement, body.geometry)]
            if body.name in pieces:
                T_joint_link, hulls = self.model.frames[body.parentFrame].placement, map(shapes.hull, pieces[body.name])
                parts = [(f"{body.name}#{k}", T_joint_link, each) for k, each in enumerate(hulls)]
            elif shapes.is_mesh(body.geometry) and meshes != "triangles":
                parts = [(body.name, body.placement, shapes.hull_of(body.geometry))]
            for name, placement, shape in parts:
                new = pin.GeometryObject(name, body.parentJoint, body.parentFrame, placement, shape)
                bodies.addGeometryObject(new)
        return bodies

    def _place_among(self, obstacles):
        self.geometry = self._robot.copy()
        added, moving = self._add_obstacles(obstacles), self.moving
        pairs = [(body, obstacle) for body in moving for obstacle in added] + self._self_pairs
        self.obstacle_pairs = len(moving) * len(added)
        for pair in pairs:
            self.geometry.addCollisionPair(pin.CollisionPair(*pair))
        self.geometry_data = pin.GeometryData(self.geometry)
        bodies = enumerate(self.geometry.geometryObjects)
        self._hulls = {i: shapes.hull_of(body.geometry) for i, body in bodies if shapes.is_mesh(body.geometry)}
        self._pairs = pairs
        self._bounded = {i for i, pair in enumerate(pairs) if not self._hulls.keys().isdisjoint(pair)}
        names = [body.name for body in self.geometry.geometryObjects]
        self.pair_names = [(names[a], names[b]) for a, b in pairs]
        reach = [self._reach_of_body[body] for body in moving for _ in added] + self._reach_of_self_pairs
        self._reach = np.array(reach).reshape(len(pairs), len(self.joint_names))

    def _add_obstacles(self, obstacles):
        file, T_root_frame = "", pin.SE3.Identity()
        if isinstance(obstacles, (str, os.PathLike)):
            file, frames = obstacles, {each.name: each for each in self.model.frames if not each.parentJoint}
            frame, obstacles = shapes.read_scene(file, frames)
            T_root_frame = frames[frame].placement if frame else T_root_frame
        if not isinstance(obstacles, Sequence):
            raise ObstacleError(f"obstacles are {shown(obstacles)}; allowed: a scene file, or a list of mappings")
        indices, taken = [], set()
        for number, obstacle in enumerate(obstacles):
            try:
                name = str(obstacle.get("name", obstacle["type"]))
                while name in taken or self.geometry.existGeometryName(name):
                    name = f"{name}#{number}"
                taken.add(name)
                body = pin.GeometryObject(
                    name, 0, T_root_frame * shapes.pose_of(obstacle), shapes.obstacle_shape(obstacle, Path(file).parent)
                )
            except (KeyError, ValueError, TypeError, AttributeError, RuntimeError, OSError) as error:
                told = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
                raise ObstacleError(
                    f"{file}{': ' if file else ''}obstacle {number}, {shown(obstacle)}: {shortened(told)}"
                ) from error
            indices.append(self.geometry.addGeometryObject(body))
        return indices

    def _pairs_of_links(self, srdf, self_pairs):
        """[(index, index)] of the links' bodies that may meet each other."""
        link = [self.model.frames[body.parentFrame].name for body in self._robot.geometryObjects]
        group = [self._group(body.parentJoint) for body in self._robot.geometryObjects]
        pairs = [pair for pair in itertools.combinations(range(len(link)), 2) if group[pair[0]] != group[pair[1]]]
        links_of = {pair: frozenset((link[pair[0]], link[pair[1]])) for pair in pairs}
        if self_pairs is not None:
            wanted = {frozenset(pair) for pair in self_pairs}
            return [pair for pair in pairs if links_of[pair] in wanted]
        if srdf is not None:
            left_out = {
                frozenset((e.get("link1"), e.get("link2")))
                for e in shapes.read_xml(srdf, "SRDF").iter("disable_collisions")
            }
            return [pair for pair in pairs if links_of[pair] not in left_out]
        ends = [(joint.find("parent"), joint.find("child")) for joint in self._joints.values()]
        neighbours = {frozenset((parent.get("link"), child.get("link"))) for parent, child in ends}
        pairs = [pair for pair in pairs if links_of[pair] not in neighbours]
        return [pair for pair, share in zip(pairs, self._share_of_overlaps(pairs)) if share < 1]

    def _share_of_overlaps(self, pairs):
        """(P,) in which share of random configurations two bodies overlap."""
        geometry = self._robot.copy()
        for pair in pairs:
            geometry.addCollisionPair(pin.CollisionPair(*pair))
        data, found = pin.GeometryData(geometry), np.zeros(len(pairs))
        low, high = np.maximum(self.lower, -np.pi), np.minimum(self.upper, np.pi)
        for q in np.random.default_rng(0).uniform(low, np.maximum(low, high), (SAMPLES, len(low))):
            pin.updateGeometryPlacements(self.model, self.data, geometry, data, self._full(q))
            pin.computeCollisions(geometry, data, False)
            found += [result.isCollision() for result in data.collisionResults]
        return found / SAMPLES

    def _group(self, joint):
        """The nearest joint from `joint` to the root that the planned joints move; 0 where there is none."""
        return next((j for j in self._above(joint) if self._leader(self.model.names[j])[0] in self.joint_names), 0)

    def _above(self, joint):
        """A joint and those above it, up to the root."""
        return [int(j) for j in self.model.supports[joint]][:0:-1] if joint else []

    def _rates(self, body):
        """{joint above a body: bound of any point's motion per unit of it}: the chain's length from its axis on."""
        distance, rates = shapes.radius_about(body.geometry, body.placement), {}
        for joint in self._above(body.parentJoint):
            slides = self._joints[self.model.names[joint]].get("type") == "prismatic"
            rates[joint] = 1.0 if slides else distance
            distance += np.linalg.norm(self.model.jointPlacements[joint].translation)
            if slides:
                at = self.model.joints[joint].idx_q
                distance += max(abs(self.model.lowerPositionLimit[at]), abs(self.model.upperPositionLimit[at]))
        return rates

    def _reach_of(self, rates):
        """(dof,) bound of a relative motion per unit of each planned joint (m/rad or m/m). rates: as of `_rates`"""
        reach = np.zeros(len(self.joint_names))
        for joint, rate in rates.items():
            leader, multiplier, _ = self._leader(self.model.names[joint])
            if leader in self.joint_names:
                reach[self.joint_names.index(leader)] += abs(multiplier) * rate
        return reach


def _apart(rates_a, rates_b):
    """The joints above exactly one of two bodies: one above both moves them as one."""
    return {joint: rates_a.get(joint, 0.0) + rates_b.get(joint, 0.0) for joint in rates_a.keys() ^ rates_b.keys()}


def _share(free_for, motion):
    """The share of a segment with so much motion after which metres known to be free are used up."""
    return free_for / motion if motion > 0 else math.inf if free_for > 0 else 0.0
