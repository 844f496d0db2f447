"""Independent re-checkers: a scene built straight from the URDF file with pinocchio and coal.

Nothing here comes from gpu_planners. Conventions are those of the golden values: one convex hull for each
collision mesh unless told otherwise, primitives and obstacles exact, links that never move are checked against
moving links only, self-collision pairs are those that the SRDF leaves enabled.
"""

import copy
import heapq
import math
import xml.etree.ElementTree as ET
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import coal
import numpy as np
import pinocchio as pin
import trimesh

from benchmarks.problems import pose_of


class CoalScene:
    """A robot among obstacles, checked with coal.

    urdf, srdf: file paths; srdf None means no self-collision pairs unless `self_pairs` names them
    obstacles: dicts as in `Problem.obstacles`, also {"type": "convex", "vertices": (V, 3)}; a pose may be given
        as "pose" (4, 4) in place of position and quaternion; metres, root frame
    mesh_dir: where relative mesh paths and package:// paths start; default the URDF's folder
    decomposition: {link: [(V, 3) vertices in the link frame, ...]} pieces to use in place of the link's one hull,
        {(link, number): [...]} in place of that of its collision element `number`,
        or {link: "mesh"} for its raw triangles (then a body wholly inside the mesh is not seen)
    joints: planning joints in the order of q; default all revolute, continuous and prismatic joints that mimic none
    fixed: {joint: value} of the other joints, default 0
    self_pairs: [(link, link)] in place of the SRDF's
    """

    def __init__(
        self, urdf, srdf, obstacles, mesh_dir=None, decomposition=None, joints=None, fixed=None, self_pairs=None
    ):
        urdf = Path(urdf)
        self._tree = Tree(urdf)
        self.model = pin.buildModelFromUrdf(str(urdf))
        self.data = self.model.createData()
        self.joint_names = tuple(joints or self._tree.free_joints())
        self._fixed = dict(fixed or {})
        self._moves = self._tree.moving_groups(self.joint_names)
        self._values = self._value_map()
        self._robot_geometry = pin.GeometryModel()
        self._radius = {}  # geometry index -> largest distance of a link body's points from the origin of its joint
        self._links = self._add_links(Path(mesh_dir or urdf.parent), decomposition or {})
        self._link = dict(self._links)
        self._self_pairs = self._pairs_of_links(srdf, self_pairs)
        rates = [self._joint_rates(body) for body in range(self._robot_geometry.ngeoms)]
        self._reach_of_links = [self._pair_reach(each, {}) for each in rates]  # obstacles stand still
        self._reach_of_self_pairs = [self._pair_reach(rates[a], rates[b]) for a, b in self._self_pairs]
        self._place_among(obstacles)

    def among(self, obstacles):
        """-> the same robot among other obstacles, much faster than a new scene."""
        scene = copy.copy(self)
        scene.data = self.model.createData()
        scene._place_among(obstacles)
        return scene

    def _place_among(self, obstacles):
        self.geometry = self._robot_geometry.copy()
        self._obstacles = len(obstacles)
        moving = [body for body, link in self._links if self._moves[link]]
        pairs = [(body, obstacle) for obstacle in self._add_obstacles(obstacles) for body in moving]
        pairs = sorted(pairs) + self._self_pairs
        self.obstacle_pairs = len(pairs) - len(self._self_pairs)
        for pair in pairs:
            self.geometry.addCollisionPair(pin.CollisionPair(*pair))
        self.geometry_data = pin.GeometryData(self.geometry)
        names = [body.name for body in self.geometry.geometryObjects]
        self.pair_names = [(names[a], names[b]) for a, b in pairs]
        reach = [self._reach_of_links[a] for a, _ in pairs[: self.obstacle_pairs]] + self._reach_of_self_pairs
        self._reach = np.array(reach).reshape(len(pairs), len(self.joint_names))

    def moving_bodies(self):
        """[(name, index)] of the links' bodies that the planning joints move."""
        bodies = range(self.geometry.ngeoms - self._obstacles)
        return [(self.geometry.geometryObjects[i].name, i) for i in bodies if self._moves[self._link[i]]]

    def placed(self, q):
        """q: (dof,) -> indexable [body index] of T_root_body, pinocchio's SE3; valid until the next call."""
        self._place(q)
        return self.geometry_data.oMg

    def in_collision(self, q):
        """q: (dof,) -> bool, True where two bodies touch or overlap."""
        self._place(q)
        return bool(pin.computeCollisions(self.geometry, self.geometry_data, True))

    def distance(self, q):
        """q: (dof,) -> signed minimum distance over all pairs, metres, negative when they overlap."""
        return float(self.pair_distances(q).min(initial=np.inf))

    def self_distance(self, q):
        """As `distance`, over the self-collision pairs only."""
        return float(self.pair_distances(q)[self.obstacle_pairs :].min(initial=np.inf))

    def pair_distances(self, q):
        """q: (dof,) -> (P,) signed distances, metres, in the order of `pair_names` (obstacle pairs first)."""
        self._place(q)
        return np.array([self._pair_distance(i) for i in range(len(self.pair_names))])

    def link_pose(self, link, q):
        """(4, 4) T_root_link at q (dof,)."""
        self._place(q)
        pin.updateFramePlacements(self.model, self.data)
        return self.data.oMf[self.model.getFrameId(link)].homogeneous

    def first_collision(self, path, spacing=0.001, tolerance=0.0):
        """Follow a path (K, dof), straight in joint space between rows.

        Returns None when it is free, else (segment, fraction, (name, name), distance).

        Every pair is advanced on its own: after a check at signed distance d no point of the pair can approach
        the other by d before the joints have moved it that far, so the next check of this pair lies
        max(d, spacing) of (bounded) relative motion ahead. Hence between two checks of a pair either it is proven
        free, or no point moves farther than `spacing` metres relative to the other body.
        tolerance: overlaps up to this depth in metres are let pass.
        """
        path = np.atleast_2d(np.asarray(path, dtype=float))
        if len(path) == 1:
            path = np.concatenate([path, path])
        free_for = np.zeros(len(self.pair_names))  # metres of relative motion from here that are known to be free
        for segment, (q_from, q_to) in enumerate(pairwise(path)):
            bound = self._reach @ np.abs(q_to - q_from)  # of each pair's relative motion over the segment
            motion, placed = bound.tolist(), -1.0
            due = [(_share(free, m), i) for i, (free, m) in enumerate(zip(free_for.tolist(), motion))]
            heapq.heapify(due)  # (the share of the segment that is done when the pair is due, pair)
            while due and due[0][0] <= 1.0:
                done, i = due[0]
                if done > placed:
                    self._place(q_from + done * (q_to - q_from))
                    placed = done
                distance = self._pair_distance(i)
                if distance <= -tolerance:
                    return segment, done, self.pair_names[i], distance
                free_for[i] = motion[i] * done + max(distance, spacing)
                heapq.heapreplace(due, (max(_share(free_for[i], motion[i]), done + 1e-9), i))
            free_for -= bound
        self._place(path[-1])
        for i in range(len(self.pair_names)):
            if (distance := self._pair_distance(i)) <= -tolerance:
                return len(path) - 2, 1.0, self.pair_names[i], distance
        return None

    def _pair_distance(self, i):
        return pin.computeDistance(self.geometry, self.geometry_data, i).min_distance

    def _place(self, q):
        pin.updateGeometryPlacements(self.model, self.data, self.geometry, self.geometry_data, self._full(q))

    def _full(self, q):
        """Planning values (dof,) -> pinocchio's configuration, mimic joints followed."""
        factors, offsets, turning = self._values
        full = factors @ np.asarray(q, dtype=float) + offsets
        for at in turning:
            full[at : at + 2] = math.cos(full[at]), math.sin(full[at])
        return full

    def _value_map(self):
        """Factors (nq, dof), offsets (nq,), places: factors @ q + offsets are the joint values; from each of these
        places on stand the cosine and the sine of the value there."""
        factors, offsets, turning = np.zeros((self.model.nq, len(self.joint_names))), np.zeros(self.model.nq), []
        for joint, name in zip(list(self.model.joints)[1:], list(self.model.names)[1:]):  # the first is the universe
            leader, multiplier = self._tree.leader(name)
            at, offset = joint.idx_q, self._tree.value(name, {})
            if leader in self.joint_names:
                factors[at, self.joint_names.index(leader)] = multiplier
            else:
                offset += multiplier * self._fixed.get(leader, 0.0)
            offsets[at] = offset
            turning += [at] if joint.nq == 2 else []
        return factors, offsets, turning

    def _add_links(self, mesh_dir, decomposition):
        """Add collision bodies; returns [(geometry index, link)]."""
        added = []
        for link, number, element in self._tree.collisions():
            if (pieces := decomposition.get((link, number))) is not None:
                added += [
                    (self._add(f"{link}_{number}#{k}", link, np.eye(4), hull(piece), np.asarray(piece)), link)
                    for k, piece in enumerate(pieces)
                ]
                continue
            if decomposition.get(link) is not None and decomposition[link] != "mesh":
                if number == 0:
                    added += [
                        (self._add(f"{link}_{k}", link, np.eye(4), hull(piece), np.asarray(piece)), link)
                        for k, piece in enumerate(decomposition[link])
                    ]
                continue
            body, points = _collision_body(element, mesh_dir, raw=decomposition.get(link) == "mesh")
            added.append((self._add(f"{link}_{number}", link, _origin(element.find("origin")), body, points), link))
        return added

    def _add(self, name, link, T_link_body, body, points):
        frame = self.model.frames[self.model.getFrameId(link, pin.FrameType.BODY)]
        placement = frame.placement * pin.SE3(np.array(T_link_body))
        index = self._robot_geometry.addGeometryObject(pin.GeometryObject(name, frame.parentJoint, placement, body))
        self._radius[index] = np.linalg.norm(
            np.asarray(points) @ placement.rotation.T + placement.translation, axis=1
        ).max()
        return index

    def _add_obstacles(self, obstacles):
        indices = []
        for obstacle in obstacles:
            body, _ = obstacle_body(obstacle)
            pose = np.asarray(obstacle["pose"]) if "pose" in obstacle else pose_of(obstacle)
            name = f"{obstacle.get('name', obstacle['type'])}#{len(indices)}"
            indices.append(self.geometry.addGeometryObject(pin.GeometryObject(name, 0, pin.SE3(pose), body)))
        return indices

    def _pairs_of_links(self, srdf, self_pairs):
        """[(geometry index, geometry index)] of the bodies that may meet each other."""
        pairs, links = [], self._links
        wanted = None if self_pairs is None else {frozenset(pair) for pair in self_pairs}
        disabled = _disabled(srdf) if srdf else None
        for a, (body_a, link_a) in enumerate(links):
            for body_b, link_b in links[a + 1 :]:
                pair = frozenset((link_a, link_b))
                if self._moves[link_a] == self._moves[link_b]:
                    continue
                if pair in wanted if wanted is not None else disabled is not None and pair not in disabled:
                    pairs.append((body_a, body_b))
        return pairs

    def _pair_reach(self, rates_a, rates_b):
        """(dof,) bound of the relative motion of two bodies per unit of each planning joint (m/rad or m/m).

        A joint above both bodies moves them as one, so only joints above exactly one of them count.
        """
        reach = np.zeros(len(self.joint_names))
        for joint in rates_a.keys() ^ rates_b.keys():
            leader, multiplier = self._tree.leader(self.model.names[joint])
            if leader in self.joint_names:
                rate = rates_a.get(joint, 0.0) + rates_b.get(joint, 0.0)
                reach[self.joint_names.index(leader)] += abs(multiplier) * rate
        return reach

    def _joint_rates(self, body):
        """{joint above the body: bound of any point's motion per unit of it}: the chain's length from its axis on."""
        last = self._robot_geometry.geometryObjects[body].parentJoint
        if not last:
            return {}
        rates, distance = {}, self._radius[body]
        for joint in reversed([int(j) for j in self.model.supports[last]][1:]):
            prismatic = "P" in self.model.joints[joint].shortname().removeprefix("JointModel")
            rates[joint] = 1.0 if prismatic else distance
            slide = max(abs(self._tree.limits(self.model.names[joint]))) if prismatic else 0.0
            distance += np.linalg.norm(self.model.jointPlacements[joint].translation) + slide
        return rates


def _share(free_for, motion):
    """The share of a segment with so much motion after which metres known to be free are used up."""
    return free_for / motion if motion > 0 else math.inf if free_for > 0 else 0.0


class Tree:
    """What the re-checker needs of the URDF's tree, read from the XML."""

    def __init__(self, urdf):
        self.root = ET.parse(urdf).getroot()
        self.joints = {joint.get("name"): joint for joint in self.root.findall("joint")}
        self.parent_joint = {joint.find("child").get("link"): joint for joint in self.joints.values()}

    def free_joints(self):
        return [
            name
            for name, joint in self.joints.items()
            if joint.get("type") in ("revolute", "continuous", "prismatic") and joint.find("mimic") is None
        ]

    def leader(self, name):
        """(name, multiplier) of the joint whose value a joint follows; itself when it follows none."""
        mimic = self.joints[name].find("mimic")
        if mimic is None:
            return name, 1.0
        leader, multiplier = self.leader(mimic.get("joint"))
        return leader, multiplier * float(mimic.get("multiplier", 1))

    def value(self, name, values):
        mimic = self.joints[name].find("mimic")
        if mimic is None:
            return values.get(name, 0.0)
        return float(mimic.get("multiplier", 1)) * self.value(mimic.get("joint"), values) + float(
            mimic.get("offset", 0)
        )

    def limits(self, name):
        limit = self.joints[name].find("limit")
        return (
            np.array([float(limit.get("lower", 0)), float(limit.get("upper", 0))]) if limit is not None else np.zeros(2)
        )

    def moving_groups(self, planning):
        """{link: name of the nearest joint above it that the planning joints move, None where nothing moves it}."""
        groups = {}
        for link in self.root.findall("link"):
            joint = self.parent_joint.get(link.get("name"))
            while joint is not None and (
                joint.get("type") == "fixed" or self.leader(joint.get("name"))[0] not in planning
            ):
                joint = self.parent_joint.get(joint.find("parent").get("link"))
            groups[link.get("name")] = None if joint is None else joint.get("name")
        return groups

    def collisions(self):
        for link in self.root.findall("link"):
            for number, element in enumerate(link.findall("collision")):
                yield link.get("name"), number, element


def hull(points):
    """Convex hull of points (V, 3), a coal geometry."""
    bvh = coal.BVHModelOBBRSS()
    bvh.beginModel(0, 0)
    bvh.addVertices(np.ascontiguousarray(points, dtype=float))
    bvh.endModel()
    bvh.buildConvexHull(True, "Qt")
    return bvh.convex


def triangle_soup(vertices, faces):
    """Triangles as they are, a coal geometry: what lies wholly inside is not seen."""
    bvh = coal.BVHModelOBBRSS()
    bvh.beginModel(len(faces), len(vertices))
    bvh.addVertices(np.ascontiguousarray(vertices, dtype=float))
    bvh.addTriangles(np.ascontiguousarray(faces, dtype=np.int64))
    bvh.endModel()
    return bvh


def _collision_body(element, mesh_dir, raw):
    """(coal geometry, points that bound it) of one <collision>, in the frame of its <origin>."""
    shape = element.find("geometry")[0]
    if shape.tag != "mesh":
        return _primitive(
            shape.tag, {key: np.array([float(v) for v in value.split()]) for key, value in shape.attrib.items()}
        )
    return _mesh_body(_mesh_file(shape.get("filename"), mesh_dir), shape.get("scale", "1 1 1"), raw)


@lru_cache(maxsize=256)
def _mesh_body(file, scale, raw):
    mesh = trimesh.load(file, force="mesh", process=False)
    vertices = np.asarray(mesh.vertices) * [float(v) for v in scale.split()]
    return (triangle_soup(vertices, mesh.faces) if raw else hull(vertices)), vertices


def _mesh_file(name, mesh_dir):
    if name.startswith("package://"):
        name = name[len("package://") :]
        return mesh_dir / name if (mesh_dir / name).exists() else mesh_dir / name.split("/", 1)[1]
    return mesh_dir / name.removeprefix("file://")


def obstacle_body(obstacle):
    """(coal geometry, points that bound it or None) of an obstacle as in `CoalScene`, at the origin."""
    if obstacle["type"] == "convex":
        return hull(obstacle["vertices"]), None
    keys = {"box": ["size"], "cylinder": ["radius", "height"], "sphere": ["radius"]}[obstacle["type"]]
    return _primitive(
        obstacle["type"], {("length" if key == "height" else key): np.atleast_1d(obstacle[key]) for key in keys}
    )


def _primitive(kind, sizes):
    if kind == "box":
        half = sizes["size"] / 2
        return coal.Box(*(float(s) for s in sizes["size"])), _corners(half)
    radius = float(sizes["radius"][0])
    if kind == "sphere":
        return coal.Sphere(radius), _corners(np.full(3, radius / np.sqrt(3)))  # corners at distance `radius`
    length = float(sizes["length"][0])
    return coal.Cylinder(radius, length), _corners(np.array([radius, radius, length / 2]))


def _corners(half):
    return np.array(np.meshgrid(*[[-h, h] for h in half])).reshape(3, -1).T


def _origin(element):
    """(4, 4) of a URDF <origin>: fixed-axis roll, pitch, yaw."""
    pose = np.eye(4)
    if element is not None:
        pose[:3, :3] = pin.rpy.rpyToMatrix(*(float(v) for v in element.get("rpy", "0 0 0").split()))
        pose[:3, 3] = [float(v) for v in element.get("xyz", "0 0 0").split()]
    return pose


def _disabled(srdf):
    return {frozenset((e.get("link1"), e.get("link2"))) for e in ET.parse(srdf).getroot().findall("disable_collisions")}
