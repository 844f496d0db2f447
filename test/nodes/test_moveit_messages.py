"""MoveIt's messages as shapes, objects, regions of goals and scenes, without a node: against formulas and pinocchio."""

import numpy as np
import pytest

pytest.importorskip("moveit_msgs.msg", reason="the ROS package moveit_msgs is not installed")
pytest.importorskip("gpu_planners_msgs.srv", reason="gpu_planners_msgs is not built: run make setup")

import time

import moveit_messages as messages
from geometry_msgs.msg import Point, TransformStamped
from moveit_msgs.msg import CollisionObject, Constraints, LinkPadding, LinkScale, OrientationConstraint
from node_harness import GROUP, ROBOT
from pinocchio_poses import pinocchio_poses
from scipy.spatial import Delaunay
from scipy.spatial.transform import Rotation
from shape_msgs.msg import Mesh, MeshTriangle, Plane, SolidPrimitive

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf
from gpu_planners.arm.collision.scene_file import fixed_frames
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.arm.robot import inverse_kinematics
from gpu_planners.errors import GpuPlannersError, ObstacleError
from gpu_planners.nodes.arm.scene_objects import SceneObject, SceneObjects, Source
from gpu_planners.nodes.common.request_error import RequestError
from gpu_planners.nodes.moveit import objects as object_messages
from gpu_planners.nodes.moveit.constraints import OrientationRegion, Region, read_constraints
from gpu_planners.nodes.moveit.goals import goals_in, project
from gpu_planners.nodes.moveit.reference import Reference
from gpu_planners.nodes.moveit.scene_messages import apply, scene_message
from gpu_planners.nodes.moveit.shapes import PLANE_REACH, read_shapes, read_volumes
from gpu_planners.share import share_folder
from gpu_planners.verify import CoalScene

TURN = Rotation.from_euler("XYZ", [0.3, -0.7, 1.1])


@pytest.fixture(scope="module")
def robot():
    return load_urdf(ROBOT, joints=GROUP)


@pytest.fixture(scope="module")
def checker(robot):
    checker = CollisionChecker(robot, CollisionWorld(), "cpu")
    checker.warm_up()
    inverse_kinematics.warm_up()  # no time limit of a test shall pay for compiling
    return checker


@pytest.fixture
def reference(robot):
    frames = fixed_frames(robot) | {"": np.eye(4)}
    return Reference(robot, frames, SceneObjects(), dict(zip(GROUP, (0.2, 0.4, -0.3))))


def solid(kind, dimensions, pose=None):
    message = CollisionObject(id="one", primitives=[SolidPrimitive(type=kind, dimensions=dimensions)])
    message.primitive_poses = [] if pose is None else [pose]
    message.pose.orientation.w = 1.0
    return message


def tetrahedron():
    corners = [(0.0, 0.0, 0.0), (0.3, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.0, 0.4)]
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    return Mesh(
        vertices=[Point(x=x, y=y, z=z) for x, y, z in corners],
        triangles=[MeshTriangle(vertex_indices=np.array(face, dtype=np.uint32)) for face in faces],
    )


INSIDE = {  # of points (N, 3) in the shape's frame, by formulas
    SolidPrimitive.BOX: lambda p, d: (np.abs(p) <= np.array(d) / 2).all(axis=1),
    SolidPrimitive.SPHERE: lambda p, d: np.linalg.norm(p, axis=1) <= d[0],
    SolidPrimitive.CYLINDER: lambda p, d: (np.hypot(p[:, 0], p[:, 1]) <= d[1]) & (np.abs(p[:, 2]) <= d[0] / 2),
    SolidPrimitive.CONE: lambda p, d: (
        (np.hypot(p[:, 0], p[:, 1]) <= d[1] * (0.5 - p[:, 2] / d[0])) & (np.abs(p[:, 2]) <= d[0] / 2)
    ),
}
SOLIDS = [
    (SolidPrimitive.BOX, [0.3, 0.5, 0.2]),
    (SolidPrimitive.SPHERE, [0.25]),
    (SolidPrimitive.CYLINDER, [0.6, 0.2]),
    (SolidPrimitive.CONE, [0.6, 0.3]),
]


@pytest.mark.parametrize(("kind", "dimensions"), SOLIDS)
def test_a_volume_of_a_region_holds_the_points_that_the_formula_says(kind, dimensions):
    message = messages.position_constraint("hand", (0.4, -0.1, 0.3), dimensions, kind).constraint_region
    message.primitive_poses[0] = messages.pose((0.4, -0.1, 0.3), TURN)
    (volume,) = read_volumes(message, np.eye(4), "it")
    rng = np.random.default_rng(1)
    points = rng.uniform(-0.5, 0.5, (4000, 3))
    inside = INSIDE[kind](points, dimensions)
    assert 50 < inside.sum() < 3900
    world = TURN.apply(points) + (0.4, -0.1, 0.3)
    agree = volume.contains(world) == inside
    assert agree.mean() > 0.999  # what is within 1e-6 m of the surface may count as inside
    drawn = TURN.inv().apply(volume.sample(rng, 200) - (0.4, -0.1, 0.3))
    assert INSIDE[kind](drawn * (1 - 1e-9), dimensions).all()
    assert np.ptp(drawn, axis=0).min() > 0.1  # they are spread


def test_a_mesh_of_a_region_is_its_hull():
    message = messages.position_constraint("hand", (0, 0, 0)).constraint_region
    message.primitives, message.primitive_poses = [], []
    message.meshes, message.mesh_poses = [tetrahedron()], [messages.pose((0.1, 0.2, 0.3), TURN)]
    (volume,) = read_volumes(message, np.eye(4), "it")
    hull = Delaunay([(p.x, p.y, p.z) for p in tetrahedron().vertices])
    points = np.random.default_rng(1).uniform(0, 0.4, (4000, 3))
    inside = hull.find_simplex(points) >= 0
    assert 50 < inside.sum()
    assert (volume.contains(TURN.apply(points) + (0.1, 0.2, 0.3)) == inside).mean() > 0.999


@pytest.mark.parametrize(("kind", "dimensions"), SOLIDS)
def test_an_object_covers_what_its_primitive_is(kind, dimensions):
    """Directions of support: how far the shape goes in each is the formula's, a cone's at most 0.2 % more."""
    (shape,), pose = read_shapes(solid(kind, dimensions, messages.pose((0.1, 0.2, 0.3), TURN)))
    rng = np.random.default_rng(0)
    points = rng.uniform(-0.5, 0.5, (200_000, 3))
    points = points[INSIDE[kind](points, dimensions)]
    directions = rng.normal(size=(200, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    reach = (TURN.apply(points) @ directions.T).max(axis=0) + directions @ (0.1, 0.2, 0.3)
    got = [support(shape.moved(pose), direction) for direction in directions]
    assert np.all(reach <= np.array(got) + 1e-9)
    assert np.all(np.array(got) <= reach + 0.03)  # the points do not reach every corner


def support(shape, direction):
    """How far a shape goes in a direction of the frame that it is posed in."""
    d, h = shape.pose[:3, :3].T @ direction, shape.half_extents
    far = {
        "BOX": lambda: np.abs(d) @ h,
        "SPHERE": lambda: h[0],
        "CYLINDER": lambda: np.hypot(d[0], d[1]) * h[0] + abs(d[2]) * h[2],
        "POLYTOPE": lambda: (shape.vertices @ d).max(),
    }[shape.kind.name]()
    return far + shape.pose[:3, 3] @ direction


def test_a_plane_is_solid_behind_its_normal():
    normal = TURN.apply([0.0, 0.0, 1.0])
    message = CollisionObject(id="floor", planes=[Plane(coef=[*(2 * normal), -1.0])])
    (shape,), pose = read_shapes(message)
    placed = shape.moved(pose)
    assert support(placed, normal) == pytest.approx(0.5)  # a x + b y + c z + d = 0 with twice the unit normal
    assert support(placed, -normal) == pytest.approx(PLANE_REACH - 0.5)
    assert support(placed, TURN.apply([1.0, 0.0, 0.0])) > PLANE_REACH - 1


def test_a_mesh_becomes_pieces_that_cover_it():
    message = CollisionObject(id="one", meshes=[tetrahedron()], mesh_poses=[messages.pose((0.1, 0, 0))])
    pieces, pose = read_shapes(message)
    corners = np.array([(p.x + 0.1, p.y, p.z) for p in tetrahedron().vertices])
    for direction in np.random.default_rng(0).normal(size=(50, 3)):
        got = max(support(piece.moved(pose), direction) for piece in pieces)
        assert got == pytest.approx((corners @ direction).max(), abs=1e-6)


def test_the_pose_of_an_objects_only_shape_is_the_objects():
    _, pose = read_shapes(solid(SolidPrimitive.BOX, [0.1, 0.2, 0.3], messages.pose((1, 2, 3))))
    assert np.allclose(pose[:3, 3], (1, 2, 3))
    message = solid(SolidPrimitive.BOX, [0.1, 0.2, 0.3], messages.pose((1, 2, 3)))
    message.pose = messages.pose((0, 0, 1))
    (shape,), pose = read_shapes(message)
    assert np.allclose(pose[:3, 3], (0, 0, 1)) and np.allclose(shape.pose[:3, 3], (1, 2, 3))


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (solid(SolidPrimitive.BOX, [0.1, 0.2]), "x, y, z"),
        (solid(SolidPrimitive.SPHERE, [-1.0]), "radius"),
        (solid(SolidPrimitive.CYLINDER, [float("nan"), 0.1]), "height, radius"),
        (solid(9, [0.1]), "type 9"),
        (
            CollisionObject(id="one", primitives=[SolidPrimitive()] * 2, primitive_poses=[messages.pose()]),
            "2 primitives",
        ),
        (CollisionObject(id="one", planes=[Plane(coef=[0.0, 0.0, 0.0, 1.0])]), "plane"),
        (CollisionObject(id="one", meshes=[Mesh()]), "vertices"),
        (CollisionObject(id="one", meshes=[Mesh(vertices=tetrahedron().vertices)]), "triangles"),
    ],
)
def test_shapes_that_are_none_are_refused(message, text):
    with pytest.raises(ObstacleError, match=text) as refusal:
        read_shapes(message)
    assert "'one'" in str(refusal.value)


def test_an_object_is_added_appended_to_moved_and_removed(reference):
    def then(message):
        return reference.with_objects(object_messages.change(message, reference))

    reference = then(messages.box("table", position=(0.5, 0.0, 0.2), frame="base"))
    T_root_base = pinocchio_poses(ROBOT, GROUP, [(0, 0, 0)])["base"][0]
    table = reference.objects.standing["table"]
    assert np.allclose(table.pose[:3, 3], (T_root_base @ (0.5, 0.0, 0.2, 1.0))[:3]) and table.source == Source.MOVEIT
    reference = then(messages.box("table", position=(0.6, 0.0, 0.2), frame="base", operation=CollisionObject.APPEND))
    table = reference.objects.standing["table"]
    assert [piece.name for piece in table.placed] == ["table#0", "table#1"]
    assert np.allclose(table.placed[1].pose[:3, 3], (T_root_base @ (0.6, 0.0, 0.2, 1.0))[:3])
    moved = CollisionObject(id="table", operation=CollisionObject.MOVE, pose=messages.pose((0.0, 1.0, 0.0)))
    reference = then(moved)
    assert np.allclose(
        reference.objects.standing["table"].placed[1].pose[:3, 3], (0.1, 1.0, 0.0)
    )  # now as the root is turned
    reference = then(CollisionObject(id="table", operation=CollisionObject.REMOVE))
    assert not reference.objects.standing


def test_what_others_put_there_is_not_cleared(reference, robot):
    """Neither by REMOVE without an id, which is MoveIt's `clear`, nor by a scene that is no diff."""
    objects = SceneObjects()
    for source in Source:
        objects = objects.add(SceneObject(source.value, (ConvexShape.sphere("it", 0.1, np.eye(4)),), np.eye(4), source))
    objects = objects.add(
        SceneObject("<octomap>", (ConvexShape.sphere("it", 0.1, np.eye(4)),), np.eye(4), Source.MOVEIT)
    )
    clear = CollisionObject(operation=CollisionObject.REMOVE)
    assert list(object_messages.change(clear, reference.with_objects(objects)).standing) == [
        "file", "cloud", "other arm", "<octomap>"
    ]  # fmt: skip
    whole = messages.scene(messages.box("new"))
    whole.is_diff = whole.robot_state.is_diff = False
    state = apply(whole, Reference(robot, {"": np.eye(4)}, objects, {}))
    assert list(state.objects.standing) == ["file", "other arm", "new"]


def test_an_octomap_without_data_clears_the_one_before(robot):
    objects = SceneObjects().add(
        SceneObject("<octomap>", (ConvexShape.sphere("it", 0.1, np.eye(4)),), np.eye(4), Source.MOVEIT)
    )
    scene = messages.scene()
    scene.world.octomap.octomap.id = "OcTree"
    for there, diff in ((objects, True), (objects, False), (SceneObjects(), True)):
        scene.is_diff = diff
        assert not apply(scene, Reference(robot, {"": np.eye(4)}, there, {})).objects.standing


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("'table': MOVE takes the field pose only", lambda scene: shape_moved(scene)),
        ("'map': the position must be finite", lambda scene: frame_at(scene, np.nan)),
        (
            "link_scale of 'hand' is nan",
            lambda scene: scene.link_scale.append(LinkScale(link_name="hand", scale=np.nan)),
        ),
    ],
)
def test_what_a_scene_may_not_say(reference, robot, words, change):
    objects = object_messages.change(messages.box("table"), reference)
    scene = messages.scene()
    change(scene)
    with pytest.raises(GpuPlannersError, match=words):
        apply(scene, Reference(robot, fixed_frames(robot) | {"": np.eye(4)}, objects, {}))


def shape_moved(scene):
    """As clients of MoveIt 1 have it: the pose of the only shape in place of the object's."""
    one = CollisionObject(id="table", operation=CollisionObject.MOVE, primitive_poses=[messages.pose((1, 0, 0))])
    scene.world.collision_objects.append(one)


def frame_at(scene, x):
    frame = TransformStamped(child_frame_id="map")
    frame.header.frame_id, frame.transform.translation.x = "plate", x
    scene.fixed_frame_transforms.append(frame)


def test_frames_of_a_scene_may_begin_with_a_slash(robot):
    scene = messages.scene(messages.box("box", position=(0.0, 0.0, 0.0), frame="map"))
    frame_at(scene, 3.0)
    scene.fixed_frame_transforms[0].child_frame_id = "/map"
    state = apply(scene, Reference(robot, fixed_frames(robot) | {"": np.eye(4)}, SceneObjects(), {}))
    assert np.allclose(state.objects.standing["box"].pose[:3, 3], (3, 0, 0))


def test_an_object_taken_up_and_put_down_stays_where_the_link_has_it(reference, robot):
    q = (0.2, 0.4, -0.3)
    T_root_hand = pinocchio_poses(ROBOT, GROUP, [q])["hand"][0]
    reference = reference.with_objects(object_messages.change(messages.box("cup", position=(0.1, 0.9, 0.2)), reference))
    before = reference.objects.standing["cup"].pose
    take = messages.attached("cup", "hand", touch_links=["finger"])
    take.object = CollisionObject(id="cup")
    objects = object_messages.change_attached(take, reference)
    assert not objects.standing and np.allclose(T_root_hand @ objects.carried["cup"].pose, before)
    assert objects.carried["cup"].touch_links == ("finger",)
    elsewhere = (1.0, -0.5, 0.7)
    there = Reference(robot, {"": np.eye(4)}, objects, dict(zip(GROUP, elsewhere)))
    objects = object_messages.change_attached(messages.attached("cup", "hand", operation=CollisionObject.REMOVE), there)
    T_new = pinocchio_poses(ROBOT, GROUP, [elsewhere])["hand"][0]
    assert np.allclose(objects.standing["cup"].pose, T_new @ np.linalg.inv(T_root_hand) @ before)


def euler_xyz(R):
    """Angles a, b, c of R = Rx(a) Ry(b) Rz(c)."""
    return np.array([np.arctan2(-R[1, 2], R[2, 2]), np.arcsin(R[0, 2]), np.arctan2(-R[0, 1], R[0, 0])])


@pytest.mark.parametrize("parameterization", [0, 1])
def test_orientations_drawn_are_within_the_tolerances_and_others_are_not(reference, robot, parameterization):
    tolerance = (0.4, 0.1, 0.7)
    message = messages.orientation_constraint("hand", TURN, tolerance, "base", parameterization)
    region = read_constraints(Constraints(orientation_constraints=[message]), reference, "it")
    T_root_base = pinocchio_poses(ROBOT, GROUP, [(0, 0, 0)])["base"][0]
    wanted = T_root_base[:3, :3] @ TURN.as_matrix()

    def off(R):
        error = wanted.T @ R
        return np.abs(Rotation.from_matrix(error).as_rotvec() if parameterization else euler_xyz(error))

    drawn = region.orientations[0].sample(np.random.default_rng(0), 500)
    assert np.allclose(drawn[0], wanted)
    assert all((off(R) <= np.array(tolerance) + 1e-9).all() for R in drawn)
    assert np.max([off(R) for R in drawn], axis=0) == pytest.approx(tolerance, rel=0.1)
    q = np.random.default_rng(1).uniform(-2, 2, (500, 3))
    expected = [(off(T[:3, :3]) <= tolerance).all() for T in pinocchio_poses(ROBOT, GROUP, q)["hand"]]
    wide = messages.orientation_constraint("hand", TURN, (1.5, 1.2, 2.0), "base", parameterization)
    assert list(region.satisfied(robot, q)) == expected
    region, tolerance = read_constraints(Constraints(orientation_constraints=[wide]), reference, "it"), (1.5, 1.2, 2.0)
    expected = [(off(T[:3, :3]) <= tolerance).all() for T in pinocchio_poses(ROBOT, GROUP, q)["hand"]]
    assert 0 < sum(expected) < 500 and list(region.satisfied(robot, q)) == expected


def test_goals_of_a_position_region_put_the_point_of_the_link_there(reference, checker):
    size, centre, offset = (0.4, 0.3, 0.5), (-0.5, 0.5, 0.1), (0.05, 0.02, 0.1)
    message = messages.position_constraint("hand", centre, size, SolidPrimitive.BOX, offset=offset)
    region = read_constraints(Constraints(position_constraints=[message]), reference, "it")
    goals, _ = goals_in(region, checker, np.zeros(3), 8, time.monotonic() + 20, 0)
    assert len(goals) > 1
    points = [T @ (*offset, 1.0) for T in pinocchio_poses(ROBOT, GROUP, goals)["hand"]]
    assert (np.abs(np.array(points)[:, :3] - centre) <= np.array(size) / 2 + 2e-6).all()
    assert (goals >= checker.robot.lower).all() and (goals <= checker.robot.upper).all()


def test_a_tool_that_may_turn_about_its_axis_and_two_links_are_placed(reference, checker):
    """An arm of three joints reaches few poses: only the tolerances let it."""
    T = pinocchio_poses(ROBOT, GROUP, [(0.8, 0.6, -0.4)])
    free_about_z = (0.05, 0.05, 3.2)
    turned = Rotation.from_matrix(T["hand"][0, :3, :3]) * Rotation.from_euler("z", 0.5)
    message = Constraints(
        position_constraints=[messages.position_constraint("hand", T["hand"][0, :3, 3], (0.02,))],
        orientation_constraints=[messages.orientation_constraint("hand", turned, free_about_z)],
    )
    both = messages.pose_goal("hand", T["hand"][0], radius=0.05, tolerance=0.5)
    both.position_constraints.append(messages.position_constraint("fore", T["fore"][0, :3, 3], (0.05,)))
    for asked in (message, both):
        region = read_constraints(asked, reference, "it")
        goals, _ = goals_in(region, checker, np.zeros(3), 8, time.monotonic() + 20, 0)
        poses = pinocchio_poses(ROBOT, GROUP, goals)
        assert (np.linalg.norm(poses["hand"][:, :3, 3] - T["hand"][0, :3, 3], axis=1) <= 0.05 + 2e-6).all()
    assert (np.linalg.norm(poses["fore"][:, :3, 3] - T["fore"][0, :3, 3], axis=1) <= 0.05 + 2e-6).all()


def test_goals_of_bands_are_spread_over_them(reference, checker):
    message = messages.joint_goal((1.0, 0.5), 0.3, GROUP[:2])
    region = read_constraints(message, reference, "it")
    goals, _ = goals_in(region, checker, np.array([0.0, 0.0, 0.4]), 8, time.monotonic() + 20, 0)
    assert len(goals) == 8 and (np.abs(goals[:, :2] - (1.0, 0.5)) <= 0.3 + 1e-9).all()
    assert np.isin(0.4, goals[:, 2])  # nothing is asked of the third joint: it may stay


def test_the_goals_own_values_come_first_and_then_what_is_nearest(reference, robot, tmp_path):
    """Which is nearest among free configurations is what coal says of a dense grid of them."""
    start, wanted, tolerance = np.array([-1.0, 0.3, 0.0]), np.array([1.0, 0.5, 0.2]), 0.4
    region = read_constraints(messages.joint_goal(wanted, tolerance), reference, "it")
    goals, first = goals_in(region, CollisionChecker(robot, CollisionWorld(), "cpu"), start, 8, np.inf, 0)
    assert first == 1 and len(goals) == 8 and np.array_equal(goals[0], wanted)
    far = np.linalg.norm(goals - wanted, axis=1)
    assert (np.diff(far) >= 0).all()
    at = pinocchio_poses(ROBOT, GROUP, [wanted])["hand"][0, :3, 3]
    block = {"type": "box", "name": "block", "size": (0.06, 0.06, 0.06), "position": tuple(at)}
    urdf = tmp_path / "small.urdf"
    urdf.write_text(ROBOT)
    coal = CoalScene(urdf, None, [block | {"quat_xyzw": (0, 0, 0, 1)}], joints=GROUP, self_pairs=[])
    around = np.stack(np.meshgrid(*[np.linspace(-tolerance, tolerance, 17)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    around = around[np.argsort(np.linalg.norm(around, axis=1), kind="stable")]
    assert coal.distance(wanted) <= 0
    nearest = next(np.linalg.norm(off) for off in around if coal.distance(wanted + off) > 1e-3)
    world = CollisionWorld()
    pose = np.eye(4)
    pose[:3, 3] = at
    world.add_box("block", block["size"], pose)
    goals, first = goals_in(region, CollisionChecker(robot, world, "cpu"), start, 8, np.inf, 0)
    assert first == 1 and coal.distance(goals[0]) > 0
    assert np.linalg.norm(goals[0] - wanted) <= nearest + 0.05


def test_a_search_may_begin_where_angles_flip():
    """Half a turn away from what is wanted, angles jump from pi to -pi, and differences of them are huge."""
    arm, rng = load_urdf(share_folder() / "urdf/dl14_arm.urdf"), np.random.default_rng(0)
    for q in rng.uniform(-3.0, 3.0, (40, arm.dof)):
        q = np.clip(q, arm.lower, arm.upper)
        wanted = arm.link_poses(q)[arm.tip_link][0, :3, :3] @ np.diag([1.0, -1.0, -1.0])
        turned = OrientationRegion("it", arm.tip_link, np.eye(3), wanted, np.full(3, 0.01), False)
        region = Region("it", orientations=(turned,))
        found = project(region, arm, np.r_[[q], rng.uniform(arm.lower, arm.upper, (63, arm.dof))], rng, np.inf)
        assert region.satisfied(arm, found).all()


def test_a_frame_that_moves_counts_where_the_state_has_it(reference, robot):
    constraint = messages.position_constraint("hand", (0.1, 0.0, 0.0), (0.05,), frame="fore")
    region = read_constraints(Constraints(position_constraints=[constraint]), reference, "it")
    T_root_fore = pinocchio_poses(ROBOT, GROUP, [(0.2, 0.4, -0.3)])["fore"][0]
    assert np.allclose(region.positions[0].volumes[0].centre, (T_root_fore @ (0.1, 0, 0, 1))[:3])


@pytest.mark.parametrize(
    ("constraints", "code", "text"),
    [
        (Constraints(), -16, "constrains nothing"),
        (messages.joint_goal((1.0,), names=["knee"]), -16, "'knee'"),
        (messages.joint_goal((1.0,), -0.1, ["elbow"]), -16, "tolerance"),
        (messages.joint_goal((9.0,), 0.1, ["elbow"]), -27, "-2.5 to 2.5"),
        (messages.pose_goal("foot", np.eye(4)), -18, "'foot'"),
        (messages.pose_goal("hand", np.eye(4), frame="moon"), -21, "'moon'"),
        (Constraints(position_constraints=[messages.position_constraint("hand", (0, 0, 0), (-1.0,))]), -16, "radius"),
        (Constraints(orientation_constraints=[OrientationConstraint(link_name="hand")]), -16, "unit quaternion"),
        (
            Constraints(orientation_constraints=[messages.orientation_constraint("hand", TURN, parameterization=7)]),
            -16,
            "parameterization 7",
        ),
    ],
)
def test_constraints_that_cannot_be_are_refused(reference, constraints, code, text):
    message = constraints
    if text == "unit quaternion":
        message.orientation_constraints[0].orientation.w = 0.0
    with pytest.raises(RequestError, match=text) as refusal:
        read_constraints(message, reference, "goal 0")
    assert refusal.value.code == code and "goal 0" in str(refusal.value)


def test_a_scene_that_is_written_and_read_again_is_the_same(robot, reference):
    frames = fixed_frames(robot) | {"": np.eye(4)}
    told = messages.scene(
        messages.box("table"),
        solid_object("can", SolidPrimitive.CYLINDER, [0.3, 0.1]),
        CollisionObject(id="wedge", meshes=[tetrahedron()], pose=messages.pose((0, 0, 1), TURN)),
        attach=[messages.attached("tool", touch_links=["fore"])],
    )
    state = apply(told, Reference(robot, frames, SceneObjects(), {}))
    again = apply(scene_message(state), Reference(robot, frames, SceneObjects(), {}))
    assert list(again.objects.standing) == ["table", "can", "wedge"]
    rng = np.random.default_rng(0)
    for one, other in zip(state.objects.world.shapes, again.objects.world.shapes, strict=True):
        for direction in rng.normal(size=(20, 3)):
            assert support(one, direction) == pytest.approx(support(other, direction), abs=1e-9)
    tool = again.objects.carried["tool"]
    assert tool.link == "hand" and tool.touch_links == ("fore",)
    assert np.allclose(tool.pose, state.objects.carried["tool"].pose)


def solid_object(name, kind, dimensions):
    message = solid(kind, dimensions, messages.pose((0.3, 0.2, 0.1), TURN))
    message.id = name
    return message


@pytest.mark.parametrize(
    "fields", [{"robot_model_name": "another", "name": "x"}, {"link_padding": [LinkPadding(link_name="foot")]}]
)
def test_a_scene_for_another_robot_is_refused(robot, fields):
    with pytest.raises(GpuPlannersError):
        apply(messages.scene(**fields), Reference(robot, {"": np.eye(4)}, SceneObjects(), {}))
