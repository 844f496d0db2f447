"""Two links that keep their pose to each other: what is called kept is kept everywhere by pinocchio; planned motions
with an object in both hands keep theirs, free by coal."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pinocchio", reason="pinocchio (pip install pin) is the kinematics oracle")
from panda_files import READY as READY_PANDA
from panda_files import TWO_ARMS, TWO_SRDF, TWO_URDF
from pinocchio_poses import pinocchio_poses
from test_constraints import kept_by_compiled, project_compiled, rig_of

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect
from gpu_planners.arm.constraints import JointRange, KeepingChecker, RelativePose, Tilt, all_of, pose_between
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.arm.spaces.interface import space_of
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.device import cuda_problem
from gpu_planners.errors import ConfigurationError, RobotDescriptionError, SettingsError

needs_gpu = pytest.mark.skipif(bool(cuda_problem()), reason=f"no CUDA device: {cuda_problem()}")
PLACES = np.linspace(0, 1, 40)
PANDAS = [*TWO_ARMS["left"], *TWO_ARMS["right"]]
HANDS = "left_panda_link8", "right_panda_link8"
READY = np.array([*READY_PANDA, *READY_PANDA])
# a lift below both arms, a joint that follows one of the left arm, a slide in the right one
FOLLOWS = '<mimic joint="l1" multiplier="-0.5"/>'
TREE = """<robot name="tree"><link name="floor"/><link name="lift"/>
<joint name="lift_joint" type="prismatic"><parent link="floor"/><child link="lift"/><axis xyz="0 0 1"/>
  <limit lower="0" upper="1" velocity="1" effort="1"/></joint>
<joint name="turn" type="continuous"><parent link="lift"/><child link="left0"/><origin xyz="0 0.2 0.1" rpy="0.2 0 0"/>
  <axis xyz="0 0 1"/><limit velocity="1" effort="1"/></joint><link name="left0"/>
{}</robot>""".format(
    "".join(
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>{more}'
        f'<limit lower="-2" upper="2" velocity="1" effort="1"/></joint><link name="{child}"/>'
        for name, kind, parent, child, xyz, rpy, axis, more in (
            ("l1", "revolute", "left0", "left1", "0.3 0 0", "0 0.3 0", "0 1 0", ""),
            (
                "l2",
                "revolute",
                "left1",
                "left2",
                "0.3 0 0.1",
                "0.4 0 0",
                "0 0 1",
                '<mimic joint="l1" multiplier="-0.5"/>',
            ),
            ("l3", "revolute", "left2", "left_hand", "0.2 0.1 0", "0 0 0.2", "1 0 0", ""),
            ("r1", "revolute", "lift", "right1", "0 -0.2 0", "0 0 0", "0 0 1", ""),
            ("r2", "prismatic", "right1", "right2", "0.2 0 0", "0 0.2 0", "1 0 0", ""),
            ("r3", "revolute", "right2", "right3", "0.1 0 0", "0.3 0 0", "0 1 0", ""),
            ("r4", "revolute", "right3", "right_hand", "0.3 0 0.1", "0 0 0", "0 1 1", ""),
        )
    )
)


class Pair:
    """A robot with two hands: `poses(q)` by pinocchio, (N, 4, 4) of one in the other's frame."""

    def __init__(self, name):
        self.fixed = {}
        if name == "baxter":
            rig = rig_of("baxter")
            self.robot, self.urdf, self.links, self.fixed = rig.model, rig.urdf, rig.tips, rig.fixed
        elif name == "pandas":
            self.robot = load_urdf(TWO_URDF, srdf=TWO_SRDF, group="both_arms")
            self.urdf, self.links = TWO_URDF, HANDS
        else:
            self.robot, self.urdf, self.links = load_urdf(TREE, velocity=1.0), TREE, ("left_hand", "right_hand")
            if name == "arm over its base":
                self.links = "lift", "right_hand"

    def between(self, q):
        placed = pinocchio_poses(self.urdf, self.robot.joint_names, q, self.fixed)
        return np.linalg.inv(placed[self.links[0]]) @ placed[self.links[1]]

    def off(self, q, W):
        """(N, 2) metres and rad."""
        T = self.between(q)
        turned = W[:3, :3].T @ T[:, :3, :3]
        sine = np.linalg.norm(turned - turned.transpose(0, 2, 1), axis=(1, 2)) / np.sqrt(8)
        angle = np.arctan2(sine, (np.trace(turned, axis1=1, axis2=2) - 1) / 2)
        return np.stack([np.linalg.norm(T[:, :3, 3] - W[:3, 3], axis=1), angle], axis=1)


NAMES = "baxter", "pandas", "tree", "arm over its base"
TOLERANCES = {"thin": (0.002, 0.02), "wide": (0.2, 0.4)}


def motions(pair, rule, q, rng, size, count=100):
    """(N, dof) ends of motions within the limits, of some length each, that begin and end where the rule is kept."""
    low, high = pair.robot.lower, pair.robot.upper
    a, good = rule.project(np.clip(q + 0.3 * rng.normal(size=(count, pair.robot.dof)), low, high))
    a = a[good]
    way = rng.normal(size=a.shape)
    ahead = a + size * rng.random((len(a), 1)) * way / np.linalg.norm(way, axis=1)[:, None]
    b, found = rule.project(np.clip(ahead, low, high))
    return a[found], b[found]


def middle(robot, rng):
    low, high = np.where(robot.continuous, -2, robot.lower), np.where(robot.continuous, 2, robot.upper)
    return (low + high) / 2 + 0.15 * rng.uniform(-1, 1, robot.dof) * (high - low)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_is_kept_everywhere(name):
    """By pinocchio, of motions of all lengths; the proof finds nearly all that are kept at all places looked at, and
    compiled code does as NumPy does."""
    pair, rng = Pair(name), np.random.default_rng(0)
    robot, really, proven, compiled = pair.robot, 0, 0, 0
    checker = CollisionChecker(robot, CollisionWorld(), "cpu")
    for allowed in TOLERANCES.values():
        q = middle(robot, rng)
        W = pose_between(robot, q, *pair.links)
        assert np.allclose(W, pair.between(q[None])[0], atol=1e-9)
        rule = RelativePose(robot, *pair.links, W, *allowed)
        for size in (0.1, 0.4, 1.0):
            a, b = (each.astype(np.float32) for each in motions(pair, rule, q, rng, size))
            places = np.concatenate([a.astype(float) + share * (b.astype(float) - a) for share in PLACES])
            exceeds = (pair.off(places, W) - allowed).max(axis=1)
            assert (rule.satisfied(places) == (exceeds <= 1e-9)).mean() > 0.999
            worst, kept = exceeds.reshape(len(PLACES), -1).max(axis=0), rule.kept(a, b)
            assert worst[kept].max(initial=-1.0) <= 1e-8
            found, space = np.empty(len(a), dtype=bool), space_of(KeepingChecker(checker, rule))
            kept_by_compiled(a, b, space, found)
            assert worst[found].max(initial=-1.0) <= 0.0 and kept[found].all()
            really, proven, compiled = really + (worst <= 0).sum(), proven + kept.sum(), compiled + found.sum()
    assert really > 150 and proven > 0.97 * really and compiled > 0.98 * proven


@pytest.mark.parametrize("name", NAMES)
def test_projections_keep_it(name):
    """Compiled and in NumPy, from configurations that a walk asks for, within the limits."""
    pair, rng = Pair(name), np.random.default_rng(1)
    robot, q = pair.robot, middle(pair.robot, rng)
    W = pose_between(robot, q, *pair.links)
    rule, low, high = (
        RelativePose(robot, *pair.links, W),
        robot.lower.astype(np.float32),
        robot.upper.astype(np.float32),
    )
    drawn = np.clip(q + 0.15 * rng.normal(size=(100, robot.dof)), robot.lower, robot.upper)
    placed, found = rule.project(drawn)
    assert found.mean() > 0.9 and (pair.off(placed[found], W) < np.array([0.001, 0.01])).all()
    near = drawn.astype(np.float32)
    placed, found = near.copy(), np.empty(len(near), dtype=bool)
    space = space_of(KeepingChecker(CollisionChecker(robot, CollisionWorld(), "cpu"), rule))
    project_compiled(placed, near, low, high, space, found)
    placed = placed[found]
    assert found.mean() > 0.9 and (pair.off(placed, W) < np.array([0.001, 0.01])).all()
    assert (placed >= low).all() and (placed <= high).all()


TRAY = 0.1, 0.5, 0.02  # m
UPRIGHT = [0, 0, 0, 1]
POSTS = [
    {"type": "box", "name": "post", "size": [0.06, 0.3, 0.34], "position": [0.45, 0.0, 0.17], "quat_xyzw": UPRIGHT},
    {"type": "box", "name": "wall", "size": [0.3, 0.02, 0.5], "position": [0.5, 0.75, 0.25], "quat_xyzw": UPRIGHT},
]


@pytest.fixture(scope="module")
def carried():
    """(Pair of Pandas, checker with a tray in both hands, CoalScene of all, rule, start, goals)"""
    pytest.importorskip("coal", reason="coal is the collision oracle")
    from benchmarks.problems import add_obstacles
    from gpu_planners.verify import CoalScene

    pair = Pair("pandas")
    bare, T = pair.robot, np.eye(4)
    hands = bare.link_poses(READY)
    T[:3, 3] = (hands[HANDS[0]][0, :3, 3] + hands[HANDS[1]][0, :3, 3]) / 2 - [0, 0, 0.14]
    T = np.linalg.inv(hands[HANDS[0]][0]) @ T
    touched = [name for name in bare.link_names if "hand" in name or "finger" in name or "link8" in name]
    robot = bare.attach("tray", [ConvexShape.box("tray", TRAY, np.eye(4))], HANDS[0], T, touched)
    xyz, size = (" ".join(f"{x:.12g}" for x in each) for each in (T[:3, 3], TRAY))
    rpy = " ".join(f"{x:.12g}" for x in _rpy(T))
    urdf = TWO_URDF.replace(
        "</robot>",
        f'<link name="tray"><collision><geometry><box size="{size}"/></geometry></collision></link>'
        f'<joint name="tray_joint" type="fixed"><parent link="{HANDS[0]}"/><child link="tray"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/></joint></robot>',
    )
    links = [bare.link_names[i] for i in bare.shape_link]
    pairs = {(links[a], links[b]) for a, b in np.asarray(bare.self_collision_pairs).reshape(-1, 2)}
    pairs |= {("tray", link) for link in links if link not in touched}
    scene = CoalScene(urdf, joints=PANDAS, self_pairs=sorted(pairs), obstacles=POSTS)
    checker = CollisionChecker(robot, add_obstacles(CollisionWorld(), POSTS), "cpu")
    rule = RelativePose(robot, *HANDS, pose_between(robot, READY, *HANDS))

    def held_at(x, y, z):
        wanted = hands[HANDS[0]][0].copy()
        wanted[:3, 3] += np.array([x, y, z]) - (hands[HANDS[0]][0] @ T)[:3, 3]
        return rule.carrying(wanted, checker, READY)

    return pair, checker, scene, rule, held_at(0.3, 0.0, 0.25), held_at(0.6, 0.05, 0.25)


def _rpy(T):
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(T[:3, :3]).as_euler("xyz")


def sampled(path, count=60):
    return np.concatenate([np.linspace(a, b, count) for a, b in zip(path, path[1:])])


def test_goals_have_the_object_where_it_is_asked_for(carried):
    pair, checker, _, rule, starts, goals = carried
    assert len(starts) and len(goals)
    for found, x in ((starts, 0.3), (goals, 0.6)):
        assert (pair.off(found, rule.pose) < [0.001, 0.01]).all() and checker.configurations_valid(found).all()
        hands = [checker.robot.link_poses(found)[link][:, :3, 3] for link in HANDS]
        assert np.abs((hands[0] + hands[1])[:, 0] / 2 - x).max() < 2e-3
    both = rule.closed(starts, checker, held=HANDS[1])
    assert len(both) and (pair.off(both, rule.pose) < [0.001, 0.01]).all()


@pytest.mark.parametrize("kind", ["a tray", "a tray that stays level", "a tray and a joint"])
def test_a_tray_is_carried_over_a_post(carried, kind):
    """By both hands, and the motion that is timed, with its corners rounded."""
    pair, checker, scene, rule, starts, goals = carried
    robot, whole = checker.robot, rule
    if kind == "a tray that stays level":
        down = robot.link_poses(READY)[HANDS[0]][0, 2, :3]
        whole = all_of([rule, Tilt(robot, HANDS[0], down, (0, 0, 1), 0.1)])
    elif kind == "a tray and a joint":
        whole = all_of([JointRange(robot, {PANDAS[5]: (1.0, 3.5)}), rule])
    starts, goals = (q[whole.satisfied(q)] for q in (starts, goals))
    assert not checker.motions_valid(starts[:1], goals[:1])[0]
    settings = rrt_connect.Settings(time_limit_s=3600.0)
    result = rrt_connect.solve(starts[0], goals, checker, settings, constraints=whole)
    assert result.solved, result.message
    assert (pair.off(sampled(result.path), rule.pose) <= TOLERANCES["thin"]).all()
    assert whole.excess(sampled(result.path)).max() <= 1e-6 and scene.first_collision(result.path) is None
    keeping = KeepingChecker(checker, whole)
    motion = time_parameterize(result.path, robot.velocity, robot.acceleration, deviation=0.1, checker=keeping)
    stops = time_parameterize(result.path, robot.velocity, robot.acceleration, checker=checker)
    played = motion.at(np.linspace(0, motion.duration, 3000))[0]
    assert motion.duration < stops.duration
    assert (pair.off(played, rule.pose) <= TOLERANCES["thin"]).all() and whole.excess(played).max() <= 1e-6
    assert scene.first_collision(played) is None
    if kind == "a tray":
        batch = rrt_connect.solve_batch([starts[0]] * 3, [goals] * 3, checker, settings, constraints=rule)
        for one in batch:
            assert one.solved and rule.kept(one.path[:-1], one.path[1:]).all()
            assert scene.first_collision(one.path) is None


def test_both_hands_are_needed(carried):
    """Without the rule the planner tears the tray; one arm's joints alone move it little or not at all."""
    pair, checker, _, rule, starts, goals = carried
    free = rrt_connect.solve(starts[0], goals, checker, rrt_connect.Settings(time_limit_s=3600.0))
    assert free.solved and pair.off(sampled(free.path), rule.pose)[:, 0].max() > 0.02
    torn = goals[0].copy()
    torn[:7] = starts[0][:7]
    refused = rrt_connect.solve(starts[0], torn, checker, constraints=rule)
    assert not refused.solved and f"link '{HANDS[1]}' is" in refused.message and "allowed: 0.002" in refused.message


@pytest.mark.slow
@pytest.mark.parametrize("index", range(3))
def test_baxter_carries_a_bar_among_posts(index):
    """Problems of the benchmark."""
    pytest.importorskip("coal", reason="coal is the collision oracle")
    from benchmarks import arm_two_hands

    rig = rig_of("baxter")
    robot, among = arm_two_hands.bar_of(rig)
    problem = arm_two_hands.Problem(robot, index)
    settings = rrt_connect.Settings(time_limit_s=3600.0)
    found = rrt_connect.solve(problem.start, problem.goals, problem.checker, settings, constraints=problem.rule)
    assert found.solved, found.message
    metres, angle = arm_two_hands.deviation(rig, found.path)
    assert metres <= 0.002 and angle <= 0.02
    assert among(problem.obstacles).first_collision(found.path) is None


@pytest.mark.gpu
@needs_gpu
def test_cuda_plans_as_the_cpu_does(carried):
    """One problem on the whole device, the same twice, and many at once."""
    pair, checker, scene, rule, starts, goals = carried
    on_cuda, settings = checker.on("cuda"), rrt_connect.Settings(time_limit_s=3600.0)
    results = [rrt_connect.solve(starts[0], goals, on_cuda, settings, seed, constraints=rule) for seed in (0, 0, 1)]
    assert np.array_equal(results[0].path, results[1].path)
    results.append(rrt_connect.solve(starts[0], goals, on_cuda, replace(settings, optimise_s=1.0), constraints=rule))
    results += rrt_connect.solve_batch([starts[0]] * 40, [goals] * 40, on_cuda, settings, constraints=rule)
    for result in results:
        assert result.solved, result.message
        assert rule.kept(result.path[:-1], result.path[1:]).all()
        assert (pair.off(sampled(result.path, 20), rule.pose) <= TOLERANCES["thin"]).all()
        assert scene.first_collision(result.path) is None


def test_what_cannot_be_is_named():
    robot = Pair("tree").robot
    q = np.zeros(robot.dof)
    W = pose_between(robot, q, "left_hand", "right_hand")
    rule = RelativePose(robot, "left_hand", "right_hand", W)
    for error, what, make in (
        (SettingsError, "position", lambda: RelativePose(robot, "left_hand", "right_hand", W, 0.0)),
        (SettingsError, "rotation", lambda: RelativePose(robot, "left_hand", "right_hand", W, 0.01, 4.0)),
        (SettingsError, "T_link_other", lambda: RelativePose(robot, "left_hand", "right_hand", np.zeros((4, 4)))),
        (RobotDescriptionError, "no link", lambda: RelativePose(robot, "left_hand", "foot", W)),
        (RobotDescriptionError, "no link", lambda: pose_between(robot, q, "left_hand", "foot")),
        (RobotDescriptionError, "relative to", lambda: RelativePose(robot, "lift", "lift", np.eye(4))),
        (ConfigurationError, "held", lambda: rule.closed(q[None], held="lift")),
        (ConfigurationError, "q", lambda: pose_between(robot, np.zeros(3), "left_hand", "right_hand")),
    ):
        with pytest.raises(error, match=what):
            make()
