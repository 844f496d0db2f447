"""What links carry: against coal and pinocchio, as further links of the URDF; let go, as if never taken."""

import numpy as np
import pytest
from random_urdf import random_urdf
from robots_at_hand import checker_among, problem_of
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf, rrt_connect
from gpu_planners.arm.collision.packing import pack_robot
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.errors import ObstacleError, RobotDescriptionError

GREY = 1e-4  # metres from contact where float32 may decide either way


def pose(rng, reach):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.random(random_state=rng).as_matrix(), rng.uniform(-reach, reach, 3)
    return T


def shape_of(kind, rng, T=np.eye(4)):
    a, b, c = rng.uniform(0.03, 0.12, 3)
    if kind == "box":
        return ConvexShape.box("it", [a, b, c], T), f'<box size="{a} {b} {c}"/>'
    if kind == "cylinder":
        return ConvexShape.cylinder("it", a, b, T), f'<cylinder radius="{a}" length="{b}"/>'
    return ConvexShape.sphere("it", a, T), f'<sphere radius="{a}"/>'


def element(link, geometry, T):
    """A link of a URDF that is fixed to another one."""
    xyz, rpy = (" ".join(map(str, v)) for v in (T[:3, 3], Rotation.from_matrix(T[:3, :3]).as_euler("xyz")))
    name = f"{link}_object"
    return name, (
        f'<link name="{name}"><collision><geometry>{geometry}</geometry></collision></link>'
        f'<joint name="{name}_joint" type="fixed"><parent link="{link}"/><child link="{name}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/></joint>'
    )


CASES = {
    "panda": {
        "panda_hand_tcp": ("box", ["panda_link6"]),
        "panda_link4": ("sphere", ["panda_link3", "panda_link5"]),
        "panda_link0": ("cylinder", ["panda_link1"]),
    },
    "gantry": None,
}


def carrying(name, tmp_path):
    """(robot with objects on several links, CoalScene of its URDF with these as further links, Problem)"""
    from gpu_planners.verify import CoalScene

    rig, problem = problem_of(name, "table")
    rng, robot = np.random.default_rng(5), rig.model
    cases = CASES[name] or {
        link: (kind, []) for link, kind in zip(robot.link_names[1::2], ("box", "cylinder", "sphere"))
    }
    shapes = sorted({robot.link_names[i] for i in robot.shape_link})
    pairs = {tuple(robot.link_names[robot.shape_link[s]] for s in pair) for pair in robot.self_collision_pairs}
    carried, added, objects = robot, [], []
    for link, (kind, touch_links) in cases.items():
        T_link_object, T_object_shape = pose(rng, 0.05), pose(rng, 0.05)
        shape, geometry = shape_of(kind, rng, T_object_shape)
        carried = carried.attach(f"on {link}", shape, link, T_link_object, touch_links)
        object_link, text = element(link, geometry, T_link_object @ T_object_shape)
        added.append(text)
        pairs |= {(object_link, other) for other in shapes if other not in (link, *touch_links)}
        pairs |= {(object_link, other) for other in objects}
        objects.append(object_link)
    urdf = tmp_path / "carrying.urdf"
    urdf.write_text(rig.urdf.read_text().replace("</robot>", "".join(added) + "</robot>"))
    scene = CoalScene(**rig.coal_arguments | {"urdf": urdf, "srdf": None, "self_pairs": sorted(pairs), "obstacles": []})
    return carried, scene.among(problem.obstacles), problem


@pytest.mark.parametrize("name", CASES)
def test_configurations_and_motions_agree_with_coal(name, tmp_path):
    pytest.importorskip("coal")
    robot, scene, problem = carrying(name, tmp_path)
    checker, bare = checker_among(robot, problem), checker_among(without_all(robot), problem)
    rng = np.random.default_rng(1)
    q = rng.uniform(robot.lower, robot.upper, (1500, robot.dof))
    free, free_bare = checker.configurations_valid(q), bare.configurations_valid(q)
    assert not (free & ~free_bare).any()
    matters = free != free_bare  # what is carried makes the difference
    q = np.concatenate([q[matters][:150], q[:150]])
    distance, free = np.array([scene.distance(x) for x in q]), checker.configurations_valid(q)
    sure = np.abs(distance) > GREY
    assert matters.sum() > 20 and sure.sum() > 150 and ((distance > 0) == free)[sure].all()
    ends = q[free][:40]
    motions = ends[:-1], ends[:-1] + np.clip(ends[1:] - ends[:-1], -0.4, 0.4)
    valid = checker.motions_valid(*motions)
    assert valid.sum() > 3
    for start, end in zip(motions[0][valid][:8], motions[1][valid]):
        assert scene.first_collision(np.array([start, end]), tolerance=GREY) is None


def without_all(robot):
    for name in robot.attached:
        robot = robot.detach(name)
    return robot


def test_planners_batches_and_inverse_kinematics_take_what_is_carried(tmp_path):
    pytest.importorskip("coal")
    robot, scene, problem = carrying("panda", tmp_path)
    checker, rng = checker_among(robot, problem), np.random.default_rng(3)
    q = rng.uniform(robot.lower, robot.upper, (500, robot.dof))
    free = q[checker.configurations_valid(q)][:8]
    settings = rrt_connect.Settings(time_limit_s=3600.0)
    single = rrt_connect.solve(free[0], free[1], checker, settings)
    batch = rrt_connect.solve_batch(free[2:4], free[4:6], checker, settings)
    for result in (single, *batch):
        assert result.solved and scene.first_collision(result.path, tolerance=GREY) is None
    found = robot.inverse_kinematics(robot.link_poses(free[6])[robot.tip_link][0], checker, seed_q=free[6])
    assert len(found.q) and all(scene.distance(one) > -GREY for one in found.q)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_let_go_leaves_no_trace(seed):
    """In any order, of any robot, on any link: moving, fixed to the root, moved by joints that are not planned."""
    rng = np.random.default_rng(seed)
    robot = load_urdf(random_urdf(rng, 6, shapes=True))
    carried, names = robot, [f"object {i}" for i in range(4)]
    for name in names:
        shapes = [shape_of(kind, rng, pose(rng, 0.2))[0] for kind in rng.choice(["box", "cylinder", "sphere"], 2)]
        link, touched = rng.choice(robot.link_names), rng.choice(robot.link_names, 2)
        carried = carried.attach(name, shapes, link, pose(rng, 0.3), touched)
    assert carried.attached == tuple(names) and len(carried.shapes) == len(robot.shapes) + 8
    again = carried.attach("object 1", shape_of("box", rng)[0], robot.link_names[0])
    assert again.attached == ("object 0", "object 2", "object 3", "object 1")
    rest = carried
    for name in rng.permutation(names):
        rest = rest.detach(name)
        assert pairs_of(rest) == {pair for pair in pairs_of(carried) if names_in(pair) <= {*rest.attached, None}}
    assert rest.attached == ()
    for one, other in zip(pack_robot(rest).buffers, pack_robot(robot).buffers, strict=True):
        assert one.tobytes() == other.tobytes()
    q = rng.uniform(robot.lower, robot.upper, (300, robot.dof))
    verdicts = [CollisionChecker(r, CollisionWorld(), "cpu").configurations_valid(q) for r in (robot, rest, carried)]
    assert (verdicts[0] == verdicts[1]).all() and not (verdicts[2] & ~verdicts[0]).any()


def pairs_of(robot):
    return {frozenset(robot.shapes[i].name for i in pair) for pair in robot.self_collision_pairs}


def names_in(pair):
    """Names of the objects that a pair's shapes belong to; None for the robot's own."""
    return {name.split("#")[0] if name.startswith("object") else None for name in pair}


def test_pairs_are_those_that_can_meet():
    robot = load_urdf(random_urdf(np.random.default_rng(2), 6, shapes=True))
    box = shape_of("box", np.random.default_rng(0))[0]
    link, other = [robot.link_names[i] for i in np.flatnonzero(robot.link_frame >= 0)[[0, -1]]]
    carried = robot.attach("a", box, link, touch_links=[other]).attach("b", box, link).attach("c", box, other)
    frame = dict(zip(robot.link_names, robot.link_frame))
    met = {name: set() for name in "abc"}
    for pair in carried.self_collision_pairs:
        one, two = (carried.shapes[i].name for i in pair)
        for x, y in ((one, two), (two, one)):
            if x in met:
                met[x].add(y)
    own = {shape.name: robot.link_names[i] for shape, i in zip(robot.shapes, robot.shape_link)}

    def apart(link, spared=()):
        return {shape for shape, of in own.items() if frame[of] != frame[link] and of not in (link, *spared)}

    assert frame[link] != frame[other]
    assert met == {"a": apart(link, [other]) | {"c"}, "b": apart(link) | {"c"}, "c": apart(other) | {"a", "b"}}
    allowed = carried.allow_collisions([("a", "c"), ("b", other)])
    gone = pairs_of(carried) - pairs_of(allowed)
    assert gone == {frozenset("ac")} | {frozenset(("b", shape)) for shape, of in own.items() if of == other}
    assert pairs_of(robot.allow_collisions([])) == pairs_of(robot)


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(link="moon"), ["no link 'moon'", "link0"]),
        (dict(touch_links=["moon"]), ["no link 'moon'"]),
        (dict(touch_links="link1"), ["touch_links", "list", "'link1'"]),
        (dict(name=""), ["name", "non-empty"]),
        (dict(name="link1"), ["'link1' is a link"]),
        (dict(shapes=[]), ["'part'", "one ConvexShape or several"]),
        (dict(shapes=["box"]), ["'part'", "ConvexShape", "box"]),
        (dict(T_link_object=np.zeros((4, 4))), ["'part'", "rigid"]),
    ],
)
def test_wrong_arguments_are_named(change, words):
    robot = load_urdf(random_urdf(np.random.default_rng(2), 3, shapes=True))
    box = ConvexShape.box("b", [1, 1, 1], np.eye(4))
    arguments = dict(name="part", shapes=box, link="link1", T_link_object=np.eye(4), touch_links=()) | change
    with pytest.raises((ObstacleError, RobotDescriptionError)) as error:
        robot.attach(**arguments)
    assert all(word in str(error.value) for word in words)


def test_what_is_not_attached_is_named():
    robot = load_urdf(random_urdf(np.random.default_rng(2), 3, shapes=True))
    box = ConvexShape.box("b", [1, 1, 1], np.eye(4))
    with pytest.raises(ObstacleError, match="'cup'.*attached: 'part'"):
        robot.attach("part", box, "link1").detach("cup")
    with pytest.raises(RobotDescriptionError, match="'cup'"):
        robot.allow_collisions([("cup", "link1")])
