"""Voxels, octrees, point clouds: the same space as cubes one by one, by coal, by OctoMap's own tree, by plain loops."""

import base64
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots_at_hand import panda
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.collision.point_cloud import near_robot, obstacle_voxels, points_in_root
from gpu_planners.arm.geometry.bricks import Bricks, cells_of, merged
from gpu_planners.arm.geometry.octree import octree_leaves
from gpu_planners.arm.geometry.shapes import ConvexShape, ShapeKind
from gpu_planners.errors import ObstacleError

T_ROOT_GRID = np.eye(4)
T_ROOT_GRID[:3, :3] = Rotation.from_euler("xyz", [0.3, -0.2, 1.0]).as_matrix()
T_ROOT_GRID[:3, 3] = [0.1, 0.2, 0.4]

# Written by OctoMap 1.10: an OcTree of random cells with a pruned block of 8 x 8 x 8, and a ColorOcTree
TREES = {  # by kind: binary, full, and the lowest cells and edge lengths of the occupied leaves, all compressed
    "OcTree": (
        "c-n1IF>V7f3}dVe9t7kIH+B?oYk_>tPZQAffcr{-Jm5;oo$7#tY)c|3`MQuR&hr7rzy>o6ga_cb!4L!Pu53s0l@+i=gB#xrUkbdM"
        "vz;+kymyJf*rN{L#4Rl+vVrF;e(D$~?<@8lFDA1~#aK#5M!5r}(Q`6+#}Ucw)VKi;#->X7{*RxloUqGeh5jS{JkaUDGwaqhv1}>h"
        "V(QX>-Qi8<bzc!z)Myk>?QScEEb=H8sq#2JEDg`^vZPV8f4Yf`T9f`}$V<TV9X?5GD=UsSE5$IKMw^p5?qc_vZqD~%K{#J?Gn;z!"
        "du_Ty_o%3Z^>Py&^cP|jQpx",
        "c-obfy-EZz6or$RB3Olaf<Y`SEu3}@B7*jo;&wiPeGtLc7ZDq)-NNndEd<|UEv$6U9rj%AuuYne*_q_z{+yd#yv@ts?a!>#W-Ng{"
        "{w#z8GT?#4cZZA1i}wihKn8Siv5OCYK>1!i4A0-E6^K9q+{p%+NPq`qamO7Qn7@3kXO7!EcgS9q3P98ki%pqIGj1raXL#y8@LkW-"
        "<U?;&9MkVv4JoWfRSDVaC>nTVwen54#%U{tTd6FeMRqW-dBH}i;qJ3<f_~UWb;K0>jud3c6_9`cL|M0ln}7oN<<?TiELdh#lUQ;y"
        "ekoe`6s&xpi!%>8XUv{iI#yC`D=JS^@#=f(B^?r2IRGB0batTI$LiiYw@N?&GM^;0jvY*Tn#9LqH(^aH$H{Ej%Oeub7DuHV1)`ml"
        "NwEt>9c|HsI~u*(@pCMq)-(;<2p(<eMjyOxx)6aLNPylng?U7qM`w#OxrcP3n()PQb&fJG#>ix35WS>@=?OsMSP9guDy6N+yWGi!"
        "HsOO$fj$`LoaL-QCY*Isv@Slgoz|}EUqTp6D+*P{i{c+Eqwqi",
        "c-ke9;Znjt421Vopdw&ZsLWV-|JMSFjt;hp3NjSd-7xp#yX114O)9?XB)oCXO5AhFS|m5RCA8e}LtJpdRy?X|7x`6iqx@d{QN209"
        "TA74CzW5UHfsHs*rFDC#NpYxm*Du*e9sLJ*7uOu4int5w*Bt3*Lc<K(h$r|AKT}wz67A~-SD{nj9&@pSYjrS(IEfP=;wN0ntK;+g"
        "Gcq}JzKA&2`BSe2{mXtDmf}I%$YEbCAH-jN2S-@(7S@?-k|gyL0sA>doa?=S=RVgbxp%x(RR`YN3>WZxQ)#5Aa=)&WtW#=(J@HN("
        "^zRIhx_hoNGP!(@#eW`Jw5|",
    ),
    "ColorOcTree": (
        "c-n1_u?Yo12t*%ivVlcdf+cQg!lnn;%E3>6aJpP512Tv+zW<H4dL)90un2V+$OP^5+c~{197~g-L1otGrIT(%Dz(nP;kjf6ow)QA"
        "B??#%yaS2i4BQS7vwd78hb~XVcmbymAIb",
        "c-m`z5n<0IBDb#@LOaliJ^-Z~p)?1SW`fcTP?`}<9wx2<rCFe~0Ghl24)YXfM9)RzI}mUe3mVOU!#@Hz+z(UNK%#yD8qt%`_>MU2"
        "M|ZCSf$(BMO9u*Q@*Fgx7oepdMl>4TKTK%;V89X2)S^4l!i$4Icst-oZ%k<73OMo~wP_6^)3XDPe8T_$p;lf$",
        "c-ke+*$#vt5Jb_7M1v9i|IakzOx&$0@P$KHdWjs`6ll41+03Kej%<4DR}HJ3HTWN#W)}NX^u$}AHi5H1PptjWp;~9kzDu(b!P{?*"
        "w&A0ea!=|g_YU>dfs!Y`ll=q!COR1",
    ),
}


def filled(low, high):
    """{(x, y, z)} of the cells of boxes."""
    cells = set()
    for a, b in zip(low, high):
        cells |= {(x, y, z) for x in range(a[0], b[0]) for y in range(a[1], b[1]) for z in range(a[2], b[2])}
    return cells


coordinates = st.tuples(*[st.integers(-3, 3)] * 3)


@given(st.lists(st.tuples(coordinates, st.integers(1, 3)), max_size=40), st.sampled_from([0, 10**9]))
@settings(max_examples=150, deadline=None)
def test_merged_boxes_fill_the_same_cells(cubes, far):
    """Also where cubes lie twice, overlap, or are so far apart that their numbers do not fit into one."""
    low = np.array([cell for cell, _ in cubes], dtype=np.int64).reshape(-1, 3)
    high = low + np.array([[edge] for _, edge in cubes], dtype=np.int64).reshape(-1, 1)
    shift = np.array([0, 0, far])
    low, high = (np.concatenate([x, x + shift]) if far else x for x in (low, high))
    few_low, few_high = merged(low, high)
    assert len(few_low) <= len(low)
    near = few_low[:, 2] < 100
    expected = filled(*(x[: len(cubes)].tolist() for x in (low, high)))
    assert filled(few_low[near].tolist(), few_high[near].tolist()) == expected
    if far:
        assert filled((few_low - shift)[~near].tolist(), (few_high - shift)[~near].tolist()) == expected


def test_distinct_cubes_do_not_overlap_when_merged():
    cells = np.random.default_rng(0).integers(-6, 6, (900, 3))
    low, high = merged(np.unique(cells, axis=0), np.unique(cells, axis=0) + 1)
    assert (high - low).prod(axis=1).sum() == len(np.unique(cells, axis=0)) and len(low) < 0.8 * len(
        np.unique(cells, axis=0)
    )
    block = np.stack(np.meshgrid(*[np.arange(5)] * 3), -1).reshape(-1, 3)
    assert [x.tolist() for x in merged(block, block + 1)] == [[[0, 0, 0]], [[5, 5, 5]]]


@pytest.mark.parametrize("size", [0.05, (0.05, 0.08, 0.03)])
def test_a_checker_sees_voxels_as_it_sees_their_cubes(size):
    robot, rng = panda(), np.random.default_rng(1)
    cells = rng.integers(-16, 16, (1500, 3))
    middles = (cells + 0.5) * size @ T_ROOT_GRID[:3, :3].T + T_ROOT_GRID[:3, 3]
    cells = cells[np.linalg.norm(middles - [0, 0, 0.4], axis=1) > 0.65]
    beyond = np.eye(4)
    beyond[:3, 3] = 0.5, 0.5, 0.7
    world, cubes = CollisionWorld(), CollisionWorld()
    world.add_box("before", [0.1, 0.1, 0.1], beyond)
    world.add_voxels("cloud", cells, size, T_ROOT_GRID)
    world.add_sphere("after", 0.05, beyond)
    cubes.add_box("before", [0.1, 0.1, 0.1], beyond)
    for i, cell in enumerate(np.unique(cells, axis=0)):
        T = T_ROOT_GRID.copy()
        T[:3, 3] += T[:3, :3] @ ((cell + 0.5) * size)
        cubes.add_box(f"{i}", np.broadcast_to(size, 3), T)
    cubes.add_sphere("after", 0.05, beyond)
    assert len(world.shapes) < len(cubes.shapes)
    checker, other = CollisionChecker(robot, world, "cpu"), CollisionChecker(robot, cubes, "cpu")
    q = rng.uniform(robot.lower, robot.upper, (3000, robot.dof))
    free = checker.configurations_valid(q)
    differ = np.flatnonzero(free != other.configurations_valid(q))
    assert 0.02 < free.mean() < 0.98 and all(other.clearances(q[[i]])[0] < 1e-5 for i in differ) and len(differ) < 3
    pair = next(pairs for pairs in map(checker.colliding_pairs, q[~free]) if any("cloud#" in name for _, name in pairs))
    assert pair
    world.remove("before")  # what stays packed is used again
    world.add_box("before", [0.1, 0.1, 0.1], beyond)
    assert (checker.configurations_valid(q) == free).all()
    thick = checker.thickened(0.01)
    checker.world = CollisionWorld()
    assert checker.thickened(0.01) is thick and thick.configurations_valid(q).sum() > free.sum()
    assert checker.configurations_valid(q).sum() > free.sum()


def test_voxels_agree_with_coal():
    coal = pytest.importorskip("coal")
    rng, cells = np.random.default_rng(3), np.random.default_rng(3).integers(-5, 5, (150, 3))
    bricks = Bricks.of_voxels("v", cells, 0.1, T_ROOT_GRID)
    ball, cube = coal.Sphere(0.02), coal.Box(0.1, 0.1, 0.1)
    places = []
    for cell in np.unique(cells, axis=0):
        places.append(
            coal.Transform3s(T_ROOT_GRID[:3, :3], T_ROOT_GRID[:3, 3] + T_ROOT_GRID[:3, :3] @ ((cell + 0.5) * 0.1))
        )
    distance = {}
    for point in rng.uniform(-0.6, 0.6, (60, 3)) + T_ROOT_GRID[:3, 3]:
        at = coal.Transform3s(np.eye(3), point)
        ours = min(
            coal.distance(ball, at, coal.Box(*(2 * half)), coal.Transform3s(T[:3, :3], T[:3, 3]), *fresh(coal))
            for T, half in zip(bricks.poses, bricks.half_extents)
        )
        theirs = min(coal.distance(ball, at, cube, T, *fresh(coal)) for T in places)
        distance[tuple(point)] = ours, theirs
    ours, theirs = np.array(list(distance.values())).T
    assert ((ours > 0) == (theirs > 0)).all() and (theirs <= 0).any()
    assert np.allclose(ours[theirs > 0], theirs[theirs > 0], atol=1e-6)


def fresh(coal):
    return coal.DistanceRequest(), coal.DistanceResult()


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(cells=[[0, 0]]), ["'v'", "(N, 3)", "(1, 2)"]),
        (dict(cells=[[0, 0, 0.5]]), ["'v'", "whole numbers"]),
        (dict(cells=[[0, 0, np.nan]]), ["'v'", "whole numbers"]),
        (dict(cells=[[0, 0, 1 << 50]]), ["'v'", "whole numbers"]),
        (dict(cells=[[0, 0, 10**8]]), ["'v'", "m out"]),
        (dict(size=0.0), ["'v'", "size", "above 0"]),
        (dict(size=[1.0, 1.0]), ["'v'", "size"]),
        (dict(size=np.inf), ["'v'", "size", "finite"]),
        (dict(extents=[1, 2]), ["'v'", "extents"]),
        (dict(extents=0), ["'v'", "extents"]),
        (dict(pose=np.zeros((4, 4))), ["'v'", "rigid"]),
    ],
)
def test_wrong_voxels_are_named(change, words):
    world = CollisionWorld()
    with pytest.raises(ObstacleError) as error:
        world.add_voxels(**dict(name="v", cells=[[0, 0, 0]], size=0.1, pose=np.eye(4)) | change)
    assert all(word in str(error.value) for word in words) and world.names == ()


def test_no_voxels_are_an_obstacle_without_shapes():
    world = CollisionWorld()
    world.add_voxels("cloud", np.zeros((0, 3)), 0.1, np.eye(4))
    assert world.names == ("cloud",) and world.shapes == ()
    assert CollisionChecker(panda(), world, "cpu").configurations_valid(np.zeros((1, 7))).shape == (1,)


def test_points_near_the_robot_are_found_as_coal_finds_them():
    coal = pytest.importorskip("coal")
    rng, robot = np.random.default_rng(0), panda()
    shapes = [
        ConvexShape.box("b", [0.1, 0.2, 0.05], T_ROOT_GRID),
        ConvexShape.cylinder("c", 0.05, 0.2, np.linalg.inv(T_ROOT_GRID)),
        ConvexShape.sphere("s", 0.06, np.eye(4)),
    ]
    robot = robot.attach("part", shapes, robot.tip_link)
    q, padding = rng.uniform(robot.lower, robot.upper), 0.03
    T_root_frames = robot.frame_poses(q)[0]
    bodies = []
    for shape, frame in zip(robot.shapes, robot.shape_frame):
        T = (T_root_frames[frame] if frame >= 0 else np.eye(4)) @ shape.pose
        bodies.append((coal_body(coal, shape), coal.Transform3s(T[:3, :3], T[:3, 3])))
    middles = np.array([T.getTranslation() for _, T in bodies])
    points = middles[rng.integers(len(middles), size=500)] + rng.normal(0, 0.08, (500, 3))
    point = coal.Sphere(1e-9)
    distance = np.array(
        [
            min(coal.distance(body, T, point, coal.Transform3s(np.eye(3), p), *fresh(coal)) for body, T in bodies)
            for p in points
        ]
    )
    near = near_robot(robot, q, points, padding)
    assert (near == (distance <= padding))[np.abs(distance - padding) > 1e-6].all()
    assert (near & (distance > 0)).sum() > 30 and (distance <= 0).sum() > 30 and (~near).sum() > 30


def coal_body(coal, shape):
    if shape.kind == ShapeKind.BOX:
        return coal.Box(*(2 * shape.half_extents))
    if shape.kind == ShapeKind.CYLINDER:
        return coal.Cylinder(shape.half_extents[0], 2 * shape.half_extents[2])
    if shape.kind == ShapeKind.SPHERE:
        return coal.Sphere(shape.half_extents[0])
    from gpu_planners.verify.shapes import hull

    return hull(shape.vertices)


def test_a_cloud_becomes_the_voxels_of_the_points_that_count():
    rng, robot = np.random.default_rng(4), panda()
    q = np.clip(np.zeros(7), robot.lower, robot.upper)
    seen = rng.uniform(-1, 1, (4000, 3)).astype(np.float32)
    seen[::50] = [np.nan, np.inf, -np.inf]
    box = np.array([[-0.9, -0.9, 0.1], [0.9, 0.9, 1.2]])
    points = points_in_root(seen, T_ROOT_GRID, box)
    placed = np.array(
        [T_ROOT_GRID[:3, :3] @ p + T_ROOT_GRID[:3, 3] for p in seen.astype(float) if np.isfinite(p).all()]
    )
    assert np.allclose(points, [p for p in placed if (p >= box[0]).all() and (p <= box[1]).all()])
    voxels = obstacle_voxels(points, 0.1, robot, q, 0.05)
    rest = points[~near_robot(robot, q, points, 0.05)]
    assert {*map(tuple, voxels.cells.tolist())} == {tuple(np.floor(p / 0.1).astype(int).tolist()) for p in rest}
    assert len(voxels.cells) == len({*map(tuple, voxels.cells.tolist())})
    few = obstacle_voxels(points, 0.1, most=100)
    assert len(few.cells) <= 100 and few.size in (0.2, 0.4, 0.8)
    covered = {*map(tuple, few.cells.tolist())}
    assert all(tuple(np.floor(p / few.size).astype(int).tolist()) in covered for p in points)
    assert len(cells_of(np.zeros((0, 3)), 0.1)) == 0 and not near_robot(robot, q, np.zeros((0, 3))).any()


def tree(kind, binary):
    return zlib.decompress(base64.b85decode(TREES[kind][0 if binary else 1]))


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("binary", [True, False])
def test_octrees_are_read_as_octomap_wrote_them(kind, binary):
    cells, extents = octree_leaves("map", tree(kind, binary), binary, kind)
    leaves = sorted(map(tuple, np.column_stack([cells, extents]).tolist()))
    assert leaves == sorted(map(tuple, leaves_of(kind).tolist()))


def leaves_of(kind):
    """(N, 4) lowest cells and edge lengths that OctoMap's own iterator gave."""
    return np.frombuffer(zlib.decompress(base64.b85decode(TREES[kind][2])), np.int16).reshape(-1, 4)


@pytest.mark.parametrize("binary", [True, False])
def test_octrees_that_are_cut_off_or_go_on_are_refused(binary):
    data = tree("OcTree", binary)
    for wrong in (data[:-1], data[: len(data) // 2], data + b"\0\0", b"\xff" * 4000):
        with pytest.raises(ObstacleError, match="'map': the octree"):
            octree_leaves("map", wrong, binary, "OcTree")
    with pytest.raises(ObstacleError, match="'map'.*'Soup'.*OcTree, ColorOcTree"):
        octree_leaves("map", data, binary, "Soup")
    assert len(octree_leaves("map", b"", binary, "OcTree")[0]) == 0
