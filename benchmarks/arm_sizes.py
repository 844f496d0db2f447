"""What a check, a motion and a plan cost by the size of the robot: its joints, the vertices of its hulls, its shapes
and pairs of shapes.

The arms are written here, from a seed: joints whose axes alternate, level and upright, along links that are 1.5 m long
together. The more joints an arm has, the less each of them turns, so that arms of all sizes coil alike. Trees are two
such arms on a torso, with rows of boxes along their links. And Baxter's two arms with the shared problems.
"""

import itertools
import math
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.planners import rrt_connect

from . import coal_peer, robots
from .arm_checks import CONTACT, stepped
from .harness import Benchmark, Row, exponents, median, progress, seconds, told, with_data
from .problems import add_obstacles

JOINTS = 2, 3, 5, 7, 10, 15, 20, 30
VERTICES = 8, 16, 32, 64, 125, 250, 500, 1000
JOINTS_OF_HULLS = 7  # of the arm whose links are hulls of so many vertices
TREES = (14, 56, 800), (20, 100, 2000), (30, 200, 2000), (30, 200, 10_000)  # joints, shapes, pairs that may meet
SHOULDER = 0.25  # m between the torso and each arm of a tree
LENGTH = 1.5  # m, of all links together
WIDTH = 0.04  # m, of a link across
THICKNESS = 0.08  # m, of the ellipsoids
AXES = "0 1 0", "0 0 1"
TURN = 6.0  # rad: a joint turns by TURN / sqrt(joints) both ways,
LONGEST_TURN = 2.5  # rad, but by no more than this
BOXES = 20
NEAREST = 0.5  # m, at least, from the first joint to the boxes' centres
FARTHEST = 1.4  # m, at most, from there to the boxes' centres
DRAWS = 50  # batches of random configurations among which enough free ones have to be
PLANS_LIMIT_S, BAXTER_LIMIT_S = 2.0, 10.0
SPACING = 1e-3  # m, at which coal follows motions and paths


COLUMNS = {
    "rate": "rate",
    "free": "share",
    "free_rate": "rate",
    "motions": "rate",
    "plan_ms": "ms",
    "solved": "text",
    "compared": "count",
    "differing": "count",
}


def sizes(context):
    """Rows of arms of each size on each device, and the exponent of each cost."""
    rows, every = [], 3 if context.quick else 1
    with tempfile.TemporaryDirectory() as folder:
        for device, missing in context.asked_for():
            if missing:
                rows.append(Row("all", f"gpu_planners, {device}", note=missing))
                continue
            for what, numbers in (("joints", JOINTS), ("vertices a hull", VERTICES)):
                of_device = [
                    told(_sized_row(Path(folder), what, n, device, context.quick))
                    for n in progress(numbers[::every], f"{what}, {device}")
                ]
                rows += of_device + [exponents(of_device, COLUMNS)]
            rows += [
                told(_row(tree_case(*sizes), lambda sizes=sizes: tree_arm(Path(folder), *sizes), device, context.quick))
                for sizes in progress(TREES[::every], f"trees, {device}")
            ]
            rows += with_data("Baxter", lambda device=device: [told(_baxter_row(device, context))])
    return rows


def serial_arm(folder, joints, vertices=None):
    """Rig (robots.py) of an arm whose files are written into a folder.

    vertices: None: each link is a box; else a mesh, the convex hull of so many random points of an ellipsoid
    """
    name = f"arm_{joints}_{vertices or 'boxes'}"
    (folder / name).mkdir(exist_ok=True)
    rng = np.random.default_rng([joints, vertices or 0])
    links, parent, at = ['<link name="link_0"/>'], 0, "0 0 0"
    for i, length in enumerate(_lengths(rng, joints), 1):
        if vertices is None:
            shape = _box(length)
        else:
            shape = f'<mesh filename="link_{i}.obj"/>'
            _write_hull(folder / name / f"link_{i}.obj", rng, vertices, [length, THICKNESS, THICKNESS])
        links += _link(i, parent, at, joints, [(length / 2, shape)])
        parent, at = i, f"{length:.6f} 0 0"
    return _written(folder / name, links, [(i, i + 1) for i in range(joints)], (f"link_{joints}",))


def tree_arm(folder, joints, shapes, pairs):
    """Rig of two arms of `joints` in all on a torso, whose files are written into a folder.

    shapes: boxes in a row along the links;  pairs: how many pairs of boxes may meet at least, if there are so many:
    those of links that are farthest from each other along the tree
    """
    name = f"tree_{joints}_{shapes}_{pairs}"
    (folder / name).mkdir(exist_ok=True)
    rng, links, place = np.random.default_rng([joints, shapes]), ['<link name="link_0"/>'], {}
    boxes_of = {i: shapes // joints + (i <= shapes % joints) for i in range(1, joints + 1)}
    half = (joints + 1) // 2
    for side, arm in ((-1, range(1, half + 1)), (1, range(half + 1, joints + 1))):
        parent, at = 0, f"0 {side * SHOULDER} 0"
        for k, (i, length) in enumerate(zip(arm, _lengths(rng, len(arm)), strict=True), 1):
            n, place[i] = boxes_of[i], (k, side)
            links += _link(i, parent, at, len(arm), [((m + 0.5) / n * length, _box(length / n)) for m in range(n)])
            parent, at = i, f"{length:.6f} 0 0"

    def apart(a, b):
        """How many joints lie between two links."""
        (k, one), (m, other) = place[a], place[b]
        return abs(k - m) if one == other else k + m

    kept, disabled = 0, [(0, i) for i in place]
    for a, b in sorted(itertools.combinations(place, 2), key=lambda both: -apart(*both)):
        if kept >= pairs or apart(a, b) < 2:
            disabled.append((a, b))
        else:
            kept += boxes_of[a] * boxes_of[b]
    return _written(folder / name, links, disabled, (f"link_{half}", f"link_{joints}"))


def tree_case(joints, shapes, pairs):
    """Its name in tables."""
    return f"tree, {joints} joints, {shapes} shapes, {pairs} pairs"


def _lengths(rng, joints):
    """Of the links of an arm, metres."""
    lengths = rng.uniform(0.8, 1.2, joints)
    return lengths * LENGTH / lengths.sum()


def _box(length):
    return f'<box size="{length:.6f} {WIDTH} {WIDTH}"/>'


def _link(i, parent, at, joints, shapes):
    """Lines of a URDF: link i and the joint before it. shapes: [(x of its centre, its element)]; joints: of the arm"""
    turn = min(LONGEST_TURN, TURN / math.sqrt(joints))
    bodies = [f'<collision><origin xyz="{x:.6f} 0 0"/><geometry>{shape}</geometry></collision>' for x, shape in shapes]
    return [
        f'<link name="link_{i}">{"".join(bodies)}</link>',
        f'<joint name="joint_{i}" type="revolute"><origin xyz="{at}"/><axis xyz="{AXES[i % 2]}"/>'
        f'<parent link="link_{parent}"/><child link="link_{i}"/>'
        f'<limit lower="{-turn:.6f}" upper="{turn:.6f}" velocity="1" effort="1"/></joint>',
    ]


def _written(folder, links, disabled, tips):
    """Rig of a robot whose URDF and SRDF are written into the folder of its name. disabled: pairs of links"""
    pairs = [f'<disable_collisions link1="link_{a}" link2="link_{b}" reason="Never"/>' for a, b in disabled]
    urdf, srdf = folder / "arm.urdf", folder / "arm.srdf"
    for file, content in ((urdf, links), (srdf, pairs)):
        file.write_text(f'<robot name="{folder.name}">\n' + "\n".join(content) + "\n</robot>\n", encoding="utf-8")
    return robots.rig_of(folder.name, urdf, folder, r"joint_\d+", tips, srdf)


def boxes():
    """[obstacle dict] around an arm, always the same."""
    rng = np.random.default_rng(0)
    ways = rng.normal(size=(BOXES, 3))
    places = ways / np.linalg.norm(ways, axis=1, keepdims=True) * rng.uniform(NEAREST, FARTHEST, (BOXES, 1))
    sides, turns = rng.uniform(0.1, 0.3, (BOXES, 3)), Rotation.random(BOXES, rng).as_quat()
    return [
        {"name": f"box_{i}", "type": "box", "position": place, "quat_xyzw": turn, "size": size}
        for i, (place, turn, size) in enumerate(zip(places, turns, sides, strict=True))
    ]


def _write_hull(file, rng, vertices, axes):
    """The convex hull of random points of an ellipsoid that begins at the origin; axes: (3,) metres."""
    points = rng.normal(size=(vertices, 3))
    points = (points / np.linalg.norm(points, axis=1, keepdims=True) + [1.0, 0.0, 0.0]) * np.asarray(axes) / 2
    lines = [f"v {x:.9f} {y:.9f} {z:.9f}" for x, y, z in points]
    lines += ["f " + " ".join(map(str, face + 1)) for face in ConvexHull(points).simplices]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _sized_row(folder, what, n, device, quick):
    sizes = (n,) if what == "joints" else (JOINTS_OF_HULLS, n)
    row = _row(f"{n} {what}", lambda: serial_arm(folder, *sizes), device, quick)
    return replace(row, figures={"size": n} | row.figures) if row.figures else row


def _row(case, rig_of, device, quick):
    subject = f"gpu_planners, {device}"
    try:
        return Row(case, subject, _measured(rig_of(), device, quick))
    except Exception as error:  # a size that the device cannot hold is a row, and the other sizes are worth their time
        return Row(case, subject, note=f"failed: {type(error).__name__}: {' '.join(str(error).split())}")


def _baxter_row(device, context):
    """Rates among the boxes; plans of its own problems whose start and goal are free."""
    rig, problems = robots.shared("baxter", context.data)
    row = _row(f"Baxter, {len(rig.model.self_collision_pairs)} pairs", lambda: rig, device, context.quick)
    if not row.figures:
        return row
    queries = []
    for problem in problems[:: 20 if context.quick else 1]:
        checker = CollisionChecker(rig.model, add_obstacles(CollisionWorld(), problem.obstacles), device)
        if checker.configurations_valid([problem.start, problem.goals[0]]).all():
            queries.append((problem.start, problem.goals[0], checker))
    return replace(row, figures=row.figures | _plans(queries, BAXTER_LIMIT_S)[0])


def _measured(rig, device, quick):
    robot, repeats = rig.model, 3 if quick else 7
    checker = CollisionChecker(robot, add_obstacles(CollisionWorld(), boxes()), device)
    checker.warm_up()
    count, moved = (20_000 if quick else 100_000, 5_000) if device == "cpu" else (2**20, 2**16)
    rng = np.random.default_rng(1)

    def draw():
        return rng.uniform(robot.lower, robot.upper, (count, robot.dof)).astype(np.float32)

    q = draw()
    valid = checker.configurations_valid(q)
    figures = {
        "rate": count / median(seconds(lambda: checker.configurations_valid(q), repeats)),
        "free": float(valid.mean()),
    }
    free = _free(checker, q[valid], draw, count // 2)
    ends = free[:moved], stepped(rng, free[:moved], robot).astype(np.float32)
    figures["free_rate"] = len(free) / median(seconds(lambda: checker.configurations_valid(free), repeats))
    figures["motions"] = len(ends[0]) / median(seconds(lambda: checker.motions_valid(*ends), repeats))
    plans, paths = _plans(_far_pairs(checker, free, 3 if quick else 30), PLANS_LIMIT_S)
    proven = checker.motions_valid(*ends)
    paths += [np.array(pair) for pair in zip(*(end[proven][: 2 if quick else 20] for end in ends), strict=True)]
    few = 50 if quick else 300
    return figures | plans | _compared(rig, q[:few], valid[:few], paths)


def _free(checker, free, draw, count):
    """(N, dof) free configurations: those given and more, `count` at most; fewer where DRAWS draws hold fewer."""
    for _ in range(DRAWS):
        if len(free) >= count:
            break
        more = draw()
        free = np.concatenate([free, more[checker.configurations_valid(more)]])
    return free[:count]


def _far_pairs(checker, free, count):
    """[(start, goal, checker)] of free configurations that no straight motion joins."""
    half = len(free) // 2
    ends = free[:half], free[half : 2 * half]
    apart = np.flatnonzero(~checker.motions_valid(*ends))[:count]
    return [(*(end[pair].astype(float) for end in ends), checker) for pair in apart]


def _plans(queries, limit_s):
    """The figures of plans for [(start, goal, checker)], and the paths found."""
    settings, taken, paths = rrt_connect.Settings(shortcut_rounds=0, time_limit_s=limit_s), [], []
    for number, (start, goal, checker) in enumerate(queries):
        if number == 0:
            rrt_connect.solve(start, goal, checker, settings)
        began = time.perf_counter()
        result = rrt_connect.solve(start, goal, checker, settings, seed=number)
        if result.solved:
            taken.append(time.perf_counter() - began)
            paths.append(result.path)
    return {"plan_ms": 1e3 * median(taken), "solved": f"{len(taken)}/{len(queries)}"}, paths


def _compared(rig, q, valid, paths):
    """How many verdicts coal gave too, and in how many it differs; {} without coal.

    q, valid: (N, dof) configurations and (N,) our verdicts;  paths: [(K, dof)] said to be free
    """
    if coal_peer.unavailable():
        return {}
    scene = rig.coal_scene(boxes())
    clear = np.array([abs(scene.distance(row)) > CONTACT for row in q])
    ours, theirs = valid[clear], np.array([not scene.in_collision(row) for row in q[clear]])
    hit = sum(scene.first_collision(path, SPACING, CONTACT) is not None for path in paths)
    return {"compared": int(clear.sum()) + len(paths), "differing": int((ours != theirs).sum()) + hit}


BENCHMARKS = (
    Benchmark(
        "sizes",
        "Size of the robot",
        f"Arms {LENGTH} m long in all among {BOXES} boxes: of so many joints, each link a box {1e3 * WIDTH:g} mm "
        f"across; and of {JOINTS_OF_HULLS} joints, each link the hull of so many random points of an ellipsoid "
        f"{1e3 * THICKNESS:g} mm across. Trees: two such arms on a torso, with rows of boxes along their links. "
        f"Baxter: both arms; its plans are MotionBenchMaker's problems, {BAXTER_LIMIT_S:g} s each. "
        "Checked a second, arrays in host memory: random configurations, of which the "
        "given share is free; free configurations alone; motions of 0.5 rad from free configurations, in exact "
        "continuous checks. Plan: RRT-Connect without shortening between random free configurations that no straight "
        f"motion joins, median over those solved within {PLANS_LIMIT_S:g} s; with two joints, many pairs have no path. "
        "Exponent: slope of log(cost) over log(size) in the upper half of the sizes. Compared with coal: random "
        "configurations, where no pair is within 0.1 mm of contact, and motions and paths said to be free, followed at "
        "1 mm.",
        COLUMNS,
        sizes,
    ),
)
