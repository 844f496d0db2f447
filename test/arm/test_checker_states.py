"""A world that is changed in any order and the checkers on it: they answer as new ones made of the same obstacles, bit
for bit, and as coal."""

import pickle

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scipy.spatial.transform import Rotation
from state_machines import driven

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.errors import ObstacleError

verify = pytest.importorskip("gpu_planners.verify", reason="coal and pinocchio are the oracle")
pytest.importorskip("coal", reason="coal is the oracle")

SEEDS = st.integers(0, 2**32 - 1)
GREY = 1e-4  # metres from contact where float32 may decide either way
URDF = """<robot name="arm">
  <link name="base"/>
  <link name="upper"><collision><origin xyz="0.25 0 0"/>
    <geometry><box size="0.5 0.06 0.08"/></geometry></collision></link>
  <link name="fore"><collision><origin xyz="0.2 0 0" rpy="0 1.5708 0"/>
    <geometry><cylinder radius="0.04" length="0.3"/></geometry></collision></link>
  <link name="hand"><collision><geometry><sphere radius="0.06"/></geometry></collision></link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit velocity="1" effort="1"/></joint>
  <joint name="bend" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0.5 0 0"/>
    <axis xyz="0 1 0"/>
    <limit lower="-2.5" upper="2.5" velocity="1" effort="1"/></joint>
  <joint name="slide" type="prismatic"><parent link="fore"/><child link="hand"/><origin xyz="0.45 0 0"/>
    <axis xyz="1 0 0"/>
    <limit lower="0" upper="0.2" velocity="1" effort="1"/></joint>
</robot>"""
LOWER, UPPER = np.array([-3.0, -2.5, 0.0]), np.array([3.0, 2.5, 0.2])
ROBOT = load_urdf(URDF)
BARE = verify.CoalScene(URDF, joints=["turn", "bend", "slide"], self_pairs=[])
ALONE = CollisionChecker(ROBOT, CollisionWorld(), "cpu")
CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.6, 0.6, 0.6]]) - 0.3


def pose_at(position, rotation=None):
    T = np.eye(4)
    T[:3, 3] = position
    T[:3, :3] = np.eye(3) if rotation is None else rotation
    return T


def random_obstacle(rng, kind):
    """-> (name of a method of CollisionWorld, its arguments behind the name), the same for coal"""
    pose = pose_at(rng.uniform(-0.9, 0.9, 3), Rotation.random(random_state=rng).as_matrix())
    size = float(rng.uniform(0.05, 0.3))
    if kind == "box":
        return ("add_box", ((size, 0.1, 0.2), pose)), [{"type": "box", "size": (size, 0.1, 0.2), "pose": pose}]
    if kind == "cylinder":
        return ("add_cylinder", (size, 0.3, pose)), [{"type": "cylinder", "radius": size, "height": 0.3, "pose": pose}]
    if kind == "sphere":
        return ("add_sphere", (size, pose)), [{"type": "sphere", "radius": size, "pose": pose}]
    if kind == "convex":
        return ("add_convex", (size * CORNERS, pose)), [{"type": "convex", "vertices": size * CORNERS, "pose": pose}]
    cells = np.unique(rng.integers(-3, 3, (5, 3)), axis=0)
    centres = [pose @ pose_at(0.1 * (cell + 0.5)) for cell in cells]
    return ("add_voxels", (cells, 0.1, pose)), [{"type": "box", "size": (0.1, 0.1, 0.1), "pose": at} for at in centres]


class Worlds(RuleBasedStateMachine):
    """known: {name: (how to add it, what coal gets)} of the obstacles that should be there"""

    @initialize(seed=SEEDS)
    def make(self, seed):
        rng = np.random.default_rng(seed)
        self.q = rng.uniform(LOWER, UPPER, (24, 3))
        self.world, self.known, self.margin = CollisionWorld(), {}, 0.0
        self.checker = CollisionChecker(ROBOT, self.world, "cpu")
        self.versions = {self.world.version}

    def changed(self):
        assert self.world.version not in self.versions
        self.versions.add(self.world.version)

    @rule(
        seed=SEEDS,
        name=st.sampled_from("abcdef"),
        kind=st.sampled_from(["box", "cylinder", "sphere", "convex", "voxels"]),
    )
    def put(self, seed, name, kind):
        """A name that is there is replaced."""
        how, coal = random_obstacle(np.random.default_rng(seed), kind)
        getattr(self.world, how[0])(name, *how[1])
        self.known[name] = how, coal
        self.changed()

    @rule(name=st.sampled_from("abcdef"))
    def remove(self, name):
        if name in self.known:
            self.world.remove(name)
            del self.known[name]
            self.changed()
        else:
            with pytest.raises(ObstacleError, match=f"'{name}'"):
                self.world.remove(name)

    @rule()
    def clear(self):
        self.world.clear()
        self.known = {}
        self.changed()

    @precondition(lambda self: self.known)
    @rule(wrong=st.sampled_from(["size", "pose", "name", "flat"]))
    def what_is_refused(self, wrong):
        name, version = next(iter(self.known)), self.world.version
        with pytest.raises(ObstacleError):
            if wrong == "flat":
                self.world.add_convex(name, [[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.zeros((4, 4)))
            else:
                pose = np.zeros((4, 4)) if wrong == "pose" else np.eye(4)
                self.world.add_box("" if wrong == "name" else name, [0.1, -0.1 if wrong == "size" else 0.1, 0.1], pose)
        assert self.world.version == version

    @rule(through=st.sampled_from(["a copy", "a pickle", "a new one"]))
    def another_world(self, through):
        """In its place; a change of the world before then changes nothing."""
        before = self.world
        if through == "a new one":
            self.world = self.new_world()
        else:
            self.world = before.copy() if through == "a copy" else pickle.loads(pickle.dumps(before))
        before.add_sphere("everywhere", 3.0, np.eye(4))
        self.changed()
        self.checker.world = self.world

    @rule(margin=st.sampled_from([0.0, 0.02, 0.1]))
    def keep_a_distance(self, margin):
        self.checker.margin = self.margin = margin

    @rule()
    def pickle_the_checker(self):
        self.checker = pickle.loads(pickle.dumps(self.checker))
        self.world = self.checker.world
        self.changed()

    @rule()
    def pack_ahead(self):
        self.checker.prepare()

    @rule(thickness=st.sampled_from([0.01, 0.05]))
    def ask_a_thicker_robot(self, thickness):
        thick, fresh = (checker.thickened(thickness) for checker in (self.checker, self.new_checker()))
        self.compare(thick, fresh)
        free = self.checker.configurations_valid(self.q)
        assert not (thick.configurations_valid(self.q) & ~free).any()

    def new_world(self):
        world = CollisionWorld()
        for name, ((method, arguments), _) in self.known.items():
            getattr(world, method)(name, *arguments)
        return world

    def new_checker(self):
        return CollisionChecker(ROBOT, self.new_world(), "cpu", margin=self.margin)

    def compare(self, checker, fresh):
        free, ends = checker.configurations_valid(self.q), (self.q[:12], self.q[12:])
        assert np.array_equal(free, fresh.configurations_valid(self.q))
        assert np.array_equal(checker.motions_valid(*ends), fresh.motions_valid(*ends))
        assert np.array_equal(checker.clearances(self.q, up_to=0.2), fresh.clearances(self.q, up_to=0.2))

    @invariant()
    def the_checker_answers_as_a_new_one_and_as_coal(self):
        if not hasattr(self, "checker"):
            return
        assert self.world.names == tuple(self.known)
        fresh = self.new_checker()
        self.compare(self.checker, fresh)
        free, alone = self.checker.configurations_valid(self.q), ALONE.configurations_valid(self.q)
        assert not (free & ~alone).any()
        scene = BARE.among([{**each, "name": f"o{k}"} for k, each in enumerate(self.obstacles())])
        for q, is_free, is_alone in zip(self.q[:8], free, alone):
            distance = scene.distance(q) if self.known else np.inf
            assert not is_free or distance > self.margin - GREY, f"free at {q}, {distance} m"
            if self.margin == 0 and is_alone and distance > GREY:
                assert is_free, f"not free at {q}, {distance} m"
            names = {other for _, other in self.checker.colliding_pairs(q)}
            assert not is_alone or bool(names) != is_free
            assert not is_alone or {name.split("#")[0] for name in names} <= set(self.known)

    def obstacles(self):
        return [each for _, coal in self.known.values() for each in coal]


TestWorlds = driven(Worlds, sequences=12, steps=20)
