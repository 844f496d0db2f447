"""What a check, a motion and a plan cost by the size of the robot: its joints, and the vertices of its hulls.

The arms are written here, from a seed: joints whose axes alternate, level and upright, along links that are 1.5 m long
together. The more joints an arm has, the less each of them turns, so that arms of all sizes coil alike.
"""

import math
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.planners import rrt_connect

from . import coal_peer, robots
from .arm_checks import CONTACT, stepped
from .harness import Benchmark, Row, exponents, median, progress, seconds, told
from .problems import add_obstacles

JOINTS = 2, 3, 5, 7, 10, 15, 20, 30
VERTICES = 8, 16, 32, 64, 125, 250, 500, 1000
JOINTS_OF_HULLS = 7  # of the arm whose links are hulls of so many vertices
LENGTH, WIDTH = 1.5, 0.04  # m: of all links together, and of a link across
THICKNESS = 0.08  # m, of the ellipsoids
AXES = "0 1 0", "0 0 1"
LONGEST_TURN, TURN = 2.5, 6.0  # rad: a joint turns by TURN / sqrt(joints) both ways, at most by LONGEST_TURN
BOXES, NEAREST, FARTHEST = 20, 0.5, 1.4  # m from the first joint to the boxes' centres
DRAWS = 50  # batches of random configurations among which enough free ones have to be
PLANS_LIMIT_S = 2.0
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
                    told(_row(Path(folder), what, n, device, context.quick))
                    for n in progress(numbers[::every], f"{what}, {device}")
                ]
                rows += of_device + [exponents(of_device, COLUMNS)]
    return rows


def serial_arm(folder, joints, vertices=None):
    """Rig (robots.py) of an arm whose files are written into a folder.

    vertices: None: each link is a box; else a mesh, the convex hull of so many random points of an ellipsoid
    """
    name = f"arm_{joints}_{vertices or 'boxes'}"
    folder = folder / name
    folder.mkdir(exist_ok=True)
    rng, turn = np.random.default_rng([joints, vertices or 0]), min(LONGEST_TURN, TURN / math.sqrt(joints))
    lengths = rng.uniform(0.8, 1.2, joints)
    lengths *= LENGTH / lengths.sum()
    parts, at = ['<link name="link_0"/>'], 0.0
    for i, length in enumerate(lengths, 1):
        if vertices is None:
            shape = f'<box size="{length:.6f} {WIDTH} {WIDTH}"/>'
        else:
            shape = f'<mesh filename="link_{i}.obj"/>'
            _write_hull(folder / f"link_{i}.obj", rng, vertices, [length, THICKNESS, THICKNESS])
        parts += [
            f'<link name="link_{i}"><collision><origin xyz="{length / 2:.6f} 0 0"/><geometry>{shape}</geometry>'
            "</collision></link>",
            f'<joint name="joint_{i}" type="revolute"><origin xyz="{at:.6f} 0 0"/><axis xyz="{AXES[i % 2]}"/>'
            f'<parent link="link_{i - 1}"/><child link="link_{i}"/>'
            f'<limit lower="{-turn:.6f}" upper="{turn:.6f}" velocity="1" effort="1"/></joint>',
        ]
        at = length
    pairs = [f'<disable_collisions link1="link_{i}" link2="link_{i + 1}" reason="Adjacent"/>' for i in range(joints)]
    urdf, srdf = folder / "arm.urdf", folder / "arm.srdf"
    for file, content in ((urdf, parts), (srdf, pairs)):
        file.write_text(f'<robot name="{name}">\n' + "\n".join(content) + "\n</robot>\n", encoding="utf-8")
    return robots.rig_of(name, urdf, folder, r"joint_\d+", (f"link_{joints}",), srdf)


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


def _row(folder, what, n, device, quick):
    subject = f"gpu_planners, {device}"
    rig = serial_arm(folder, n) if what == "joints" else serial_arm(folder, JOINTS_OF_HULLS, n)
    try:
        figures = _measured(rig, device, quick)
    except Exception as error:  # a size that the device cannot hold is a row, and the other sizes are worth their time
        return Row(f"{n} {what}", subject, note=f"failed: {type(error).__name__}: {' '.join(str(error).split())}")
    return Row(f"{n} {what}", subject, {"size": n} | figures)


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
    plans, paths = _plans(checker, free, 3 if quick else 30)
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


def _plans(checker, free, count):
    """The figures of plans between free configurations that no straight motion joins, and the paths found."""
    half = len(free) // 2
    ends = free[:half], free[half : 2 * half]
    apart = np.flatnonzero(~checker.motions_valid(*ends))[:count]
    settings, taken, paths = rrt_connect.Settings(shortcut_rounds=0, time_limit_s=PLANS_LIMIT_S), [], []
    for number, pair in enumerate(apart):
        start, goal = (end[pair].astype(float) for end in ends)
        if number == 0:
            rrt_connect.solve(start, goal, checker, settings)
        began = time.perf_counter()
        result = rrt_connect.solve(start, goal, checker, settings, seed=number)
        if result.solved:
            taken.append(time.perf_counter() - began)
            paths.append(result.path)
    return {"plan_ms": 1e3 * median(taken), "solved": f"{len(taken)}/{len(apart)}"}, paths


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
        f"{1e3 * THICKNESS:g} mm across. Checked a second, arrays in host memory: random configurations, of which the "
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
