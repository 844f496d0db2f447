"""The bounds behind constraints, on random trees of all kinds of joints and of all sizes: derivatives by differences,
poses by pinocchio."""

import numpy as np
import pytest

pytest.importorskip("pinocchio", reason="pinocchio (pip install pin) is the kinematics oracle")
from pinocchio_poses import pinocchio_poses
from random_urdf import random_urdf
from test_constraints import kept_by_compiled

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.arm.constraints import (
    JointRange,
    KeepingChecker,
    Position,
    RelativePose,
    Tilt,
    constraint,
    pose_between,
)
from gpu_planners.arm.constraints.parts import bent
from gpu_planners.arm.spaces.interface import space_of
from gpu_planners.errors import SettingsError

STEP = 2e-3  # of a motion, of differences
PLACES = np.linspace(0, 1, 101)
SLIDE = """<robot name="slide"><link name="base"/>
<joint name="turn" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
  <limit velocity="1" effort="1"/></joint><link name="arm"/>
<joint name="out" type="prismatic"><parent link="arm"/><child link="hand"/><axis xyz="1 0 0"/>
  <limit lower="0" upper="{}" velocity="1" effort="1"/></joint><link name="hand"/></robot>"""


class Tree:
    """A random robot, two of its links that joints move against each other, and configurations within its limits."""

    def __init__(self, seed, size=1.0):
        self.rng = np.random.default_rng(seed)
        while True:
            self.urdf = random_urdf(self.rng, 8, almost_parallel=seed % 5 == 4, size=size)
            self.robot = load_urdf(self.urdf, velocity=1.0)
            self.links = tuple(self.rng.permutation(self.robot.link_names)[:2])
            q = self.drawn(2)
            if np.abs(np.diff([pose_between(self.robot, each, *self.links) for each in q], axis=0)).max() > 1e-3:
                return

    def drawn(self, count):
        low, high = np.maximum(self.robot.lower, -2), np.minimum(self.robot.upper, 2)
        return self.rng.uniform(low, high, (count, self.robot.dof))

    def motions(self, count, longest=1.0):
        a = self.drawn(count)
        return a, a + self.rng.uniform(0.02, longest, (count, 1)) * (self.drawn(count) - a)

    def poses(self, q):
        return pinocchio_poses(self.urdf, self.robot.joint_names, q)


@pytest.mark.parametrize("seed", range(25))
def test_no_derivative_is_greater_than_its_bound(seed):
    """Of what PlacePart and AttitudePart measure; of the former the second one is also known where the motion is."""
    tree = Tree(seed, size=(1.0, 30.0, 0.03)[seed % 3])
    a, b = tree.motions(60)
    way, moves = b - a, np.abs(b - a)
    W = pose_between(tree.robot, a[0], *tree.links)
    place, attitude = RelativePose(tree.robot, *tree.links, W).parts
    steps = np.arange(-2, 3) * STEP
    for t in (0.2, 0.7):
        q = a + t * way
        before2, before, now, after, after2 = (place.measure(q + step * way)[:, :3] for step in steps)
        second = np.linalg.norm(after - 2 * now + before, axis=1) / STEP**2
        third = np.linalg.norm(after2 - 2 * after + 2 * before - before2, axis=1) / (2 * STEP**3)
        seconds, thirds = np.sum([chain.bends(moves) for chain in place.chains], axis=0)
        known = place.along(q, way)[:, 3] * moves.sum(axis=1) ** 2
        noise = 1e-13 * (1 + np.abs(now).max()) / STEP**3
        assert (second <= seconds * 1.001 + noise).all() and (third <= thirds * 1.001 + noise).all()
        assert np.abs(second - known).max() <= 0.01 * STEP * thirds.max() + noise
        before, now, after = (attitude.measure(q + step * way) for step in steps[1:4])
        turned, half = attitude._turned(moves), np.linalg.norm(now, axis=1) / 2
        smooth, K = bent(half, turned)
        smooth &= half < 1.4  # nearer to half a turn the vector jumps between the places
        bend = np.linalg.norm(after - 2 * now + before, axis=1) / STEP**2
        assert (bend <= 2 * K * 1.01 + 1e-6)[smooth].all()


def bulge(x):
    """Of a way (K, 3) the middle of its ends, a unit vector from there to its middle, how far; None: near."""
    middle = (x[0] + x[-1]) / 2
    away = x[len(x) // 2] - middle
    size = np.linalg.norm(away)
    return (middle, away / size, size) if size > 1e-3 else None


def rules_that_a_way_leaves(tree, T, between):
    """Constraints whose limit a motion passes between its ends, by 1e-8 m or rad. T: (K, 4, 4) poses of the first link;
    between: of the second one in its frame"""
    robot, inf = tree.robot, np.inf
    if found := bulge(T[:, :3, 3]):
        pose = np.eye(4)
        pose[:3, :3] = np.linalg.qr(np.column_stack([found[1], np.eye(3)[np.argsort(np.abs(found[1]))[:2]].T]))[0]
        if np.linalg.det(pose[:3, :3]) < 0:
            pose[:3, 2] *= -1
        along = T[:, :3, 3] @ pose[:3, 0]
        away = np.sign(pose[:3, 0] @ found[1])
        ends = [-inf, (away * along).max() - 1e-8]
        lower, upper = ends if away > 0 else [-ends[1], inf]
        yield Position(robot, tree.links[0], np.zeros(3), [lower, -inf, -inf], [upper, inf, inf], pose)
    if found := bulge(T[:, :3, 2]):
        tilt = np.arctan2(np.linalg.norm(np.cross(T[:, :3, 2], -found[1]), axis=1), -T[:, :3, 2] @ found[1]).max()
        if tilt < 3.0:
            yield Tilt(robot, tree.links[0], (0, 0, 1), -found[1], tilt - 1e-7)
    if found := bulge(between[:, :3, 3]):
        W = between[len(between) // 2].copy()
        W[:3, 3] = found[0] - 0.9 * found[1]
        off = np.linalg.norm(between[:, :3, 3] - W[:3, 3], axis=1).max() - 1e-8
        if off <= 1.0:
            yield RelativePose(robot, *tree.links, W, off, 3.0)


@pytest.mark.parametrize("size", [0.03, 1.0, 30.0, 1000.0])
def test_what_leaves_its_constraint_by_nothing_is_not_kept(size):
    """Nothing proves what passes a limit by 1e-8 m or rad between its ends, by pinocchio. float32 is off by more, on
    large robots by millimetres."""
    checked = 0
    for seed in range(12):
        tree = Tree(100 + seed, size)
        checker = CollisionChecker(tree.robot, CollisionWorld(), "cpu")
        a, b = (each.astype(np.float32) for each in tree.motions(12, longest=0.5))
        places = np.concatenate([a.astype(float) + share * (b.astype(float) - a) for share in PLACES])
        poses = tree.poses(places)
        for i in range(len(a)):
            T, other = (poses[link][i :: len(a)] for link in tree.links)
            for rule in rules_that_a_way_leaves(tree, T, np.linalg.inv(T) @ other):
                excess, found = rule.excess(places[i :: len(a)]), np.empty(1, dtype=bool)
                if max(excess[0], excess[-1]) > -2e-4 * size - 2e-5:
                    continue  # a motion may come as near to the limit as its end
                ends = a[i : i + 1], b[i : i + 1]
                kept_by_compiled(*ends, space_of(KeepingChecker(checker, rule)), found)
                assert excess.max() > 5e-9 and not found[0] and not rule.kept(*ends)[0]
                checked += 1
    assert checked > 20


@pytest.mark.parametrize("seed", range(4))
def test_proofs_in_pieces_are_the_same(seed, monkeypatch):
    """However many intervals are looked at at once: memory is bounded, answers are equal."""
    tree = Tree(200 + seed)
    a, b = tree.motions(300)
    W = pose_between(tree.robot, a[0], *tree.links)
    rule = RelativePose(tree.robot, *tree.links, W, 1.0, 2.5)
    expected = rule.kept(a, b)
    monkeypatch.setattr(constraint, "PIECE", 7)
    assert np.array_equal(rule.kept(a, b), expected) and 0 < expected.sum()


def test_beyond_a_slide_nothing_is_proven():
    """Levers hold where a slide may stand: farther out the same turn takes the hand farther."""
    robot = load_urdf(SLIDE.format(0.5), velocity=1.0)
    rule = Position(robot, "hand", np.zeros(3), [0, -np.inf, -1], [np.inf, np.inf, 1])
    assert rule.kept([[0.0, 0.3]], [[0.4, 0.5]])[0] and not rule.kept([[0.0, 40.0]], [[0.4, 40.0]])[0]
    longer = load_urdf(SLIDE.format(40.0), velocity=1.0)
    assert KeepingChecker(
        CollisionChecker(robot, CollisionWorld(), "cpu"),
        Position(longer, "hand", np.zeros(3), [0, -np.inf, -1], [np.inf, np.inf, 1]),
    )
    with pytest.raises(SettingsError, match="'out'.*slides farther"):
        KeepingChecker(CollisionChecker(longer, CollisionWorld(), "cpu"), rule)


@pytest.mark.parametrize("ends", [(-4.0, 4.0), (-np.inf, 1.0), (0.0, 2 * np.pi), (-np.inf, np.inf)])
def test_a_range_of_a_whole_turn_holds_anything(ends):
    """Of a joint that turns without end."""
    robot = load_urdf(SLIDE.format(0.5), velocity=1.0)
    rule, checker = JointRange(robot, {"turn": ends}), CollisionChecker(robot, CollisionWorld(), "cpu")
    a, b = np.array([[-3.0, 0.1], [2.0, 0.2], [9.0, 0.0]]), np.array([[3.0, 0.1], [2.5, 0.3], [-9.0, 0.0]])
    assert rule.satisfied(a).all() and rule.kept(a, b).all() and rule.project(a)[1].all()
    found = np.empty(2, dtype=bool)
    kept_by_compiled(*(q[:2].astype(np.float32) for q in (a, b)), space_of(KeepingChecker(checker, rule)), found)
    assert found.all()


def test_far_volumes_are_rounded_by_much():
    """A plane that is told from a kilometre away: float32 misplaces it, which the proof knows."""
    robot = load_urdf(SLIDE.format(0.5), velocity=1.0)
    far = np.eye(4)
    far[:3, 3] = 4e3, 3e3, 1e3
    for edge in np.linspace(0.4, 0.4001, 30):
        upper = [edge - 4e3, np.inf, np.inf]
        rule = Position(robot, "hand", np.zeros(3), [-np.inf] * 3, upper, far)
        checker, found = KeepingChecker(CollisionChecker(robot, CollisionWorld(), "cpu"), rule), np.empty(1, dtype=bool)
        a, b = np.array([[0.3, 0.3]], np.float32), np.array([[-0.3, 0.41]], np.float32)
        kept_by_compiled(a, b, space_of(checker), found)
        places = np.concatenate([a.astype(float) + share * (b.astype(float) - a) for share in PLACES])
        assert not found[0] or rule.excess(places).max() <= 0
