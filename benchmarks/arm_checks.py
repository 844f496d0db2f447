"""How many exact whole-arm checks a second: configurations, and motions, of a Panda among the shared scenes."""

import numpy as np

from gpu_planners.arm import CollisionChecker, CollisionWorld, load_urdf

from . import coal_peer, hpp_peer, mujoco_peer
from .harness import Benchmark, Row, median, places, progress, seconds
from .problems import add_obstacles, load_problems, robot_files

STEP = 0.5  # rad, of a motion
CONTACT = 1e-4  # metres: closer to contact than this, two exact methods may differ by their tolerances


def configurations(context):
    """Rows of configuration checks per second; the figures are medians over one scene of each family."""
    robot = load_urdf(*robot_files("panda", context.data))
    scenes = first_scenes(context)
    rows = []
    for mix, draw in (("random", random_configurations), ("along problem segments", along_segments)):
        peer = _coal_rates(context, robot, scenes, draw)
        best = max(peer["tree"][0], peer["brute"][0]) if peer else None
        for device, missing in context.asked_for():
            count = (20_000 if context.quick else 100_000) if device == "cpu" else (2**18 if context.quick else 2**21)
            rows += _measured(mix, device, missing, robot, scenes, draw, count, context, best, peer)
        rows += _peer_rows(mix, peer, best)
        rows.append(_mujoco_row(context, mix, robot, scenes, draw, peer, best))
    rows.append(Row("any", "VAMP, spheres, one core", quoted="6 M/s (docs/references.md); spheres, not exact"))
    return rows


def motions(context):
    """Rows of motion checks per second: random steps of 0.5 rad, in every spacing that the checker knows."""
    from gpu_planners.arm import MotionCheck

    robot = load_urdf(*robot_files("panda", context.data))
    rows = []
    checks = {
        "continuous": MotionCheck(),
        "workspace, 1 mm": MotionCheck("workspace", 1e-3),
        "joint step 0.01 rad": MotionCheck("joint", 0.01),
    }
    for case, check in checks.items():
        for device, missing in context.asked_for():
            if missing:
                rows.append(Row(case, f"gpu_planners, {device}", note=missing))
                continue
            count = (1_000 if context.quick else 5_000) if device == "cpu" else (2**14 if context.quick else 2**17)
            count //= 10 if device == "cpu" and check.mode == "workspace" else 1
            rates, valid = {}, []
            for problem in progress(first_scenes(context), f"motions, {device}"):
                rng = np.random.default_rng(problem.index)
                checker = checker_among(robot, problem, device, check)
                q_from = rng.uniform(robot.lower, robot.upper, (3 * count, robot.dof))
                q_from = q_from[checker.configurations_valid(q_from)][:count]
                q_to = stepped(rng, q_from, robot)
                valid.append(checker.motions_valid(q_from, q_to).mean())
                for where, ends in places(device, q_from, q_to):
                    taken = seconds(
                        lambda c=checker, e=ends: c.motions_valid(*e), 3 if context.quick or device == "cpu" else 7
                    )
                    rates.setdefault(where, []).append(len(q_from) / median(taken))
            rows += [
                Row(case, f"gpu_planners, {device}{where}", spread(each) | {"free": float(np.mean(valid))}, each)
                for where, each in rates.items()
            ]
    return rows + _hpp_rows(context, robot)


def _hpp_rows(context, robot):
    """hpp-core proves whole motions, too; its verdicts are compared with ours."""
    if missing := hpp_peer.unavailable():
        return [Row("continuous", "hpp-core, one core", note=missing)]
    rates, free, differing, count = {}, [], 0, 50 if context.quick else 200
    for problem in progress(first_scenes(context), "motions, hpp-core"):
        rng, checker = np.random.default_rng(problem.index), checker_among(robot, problem, "cpu")
        q_from = rng.uniform(robot.lower, robot.upper, (20 * count, robot.dof))
        q_from = q_from[checker.configurations_valid(q_from)][:count]
        q_to = stepped(rng, q_from, robot)
        ours = checker.motions_valid(q_from, q_to)
        for kind, (rate, theirs) in hpp_peer.measured(robot, checker.world, q_from, q_to).items():
            rates.setdefault(kind, []).append(rate)
            free.append(theirs.mean())
            differing += int((theirs != ours).sum())
    note = f"{differing} verdicts of {count * len(free)} differ from ours"
    return [
        Row("continuous", f"hpp-core, {kind}, one core", spread(each) | {"free": float(np.mean(free))}, each, note=note)
        for kind, each in rates.items()
    ]


def stepped(rng, q, robot):
    """q: (N, dof) -> (N, dof) a STEP away in random directions, within the limits."""
    step = rng.normal(size=q.shape)
    return np.clip(q + STEP * step / np.linalg.norm(step, axis=1, keepdims=True), robot.lower, robot.upper)


def _measured(mix, device, missing, robot, scenes, draw, count, context, best, peer):
    subject = f"gpu_planners, {device}"
    if missing:
        return [Row(mix, subject, note=missing)]
    rates, differing = {}, 0
    for number, problem in enumerate(progress(scenes, f"configurations, {device}")):
        checker = checker_among(robot, problem, device)
        for where, (q,) in places(device, draw(robot, problem, count)):
            taken = seconds(lambda c=checker, q=q: c.configurations_valid(q), 5 if context.quick else 15, warm_up=2)
            rates.setdefault(where, []).append(count / median(taken))
        if peer:
            valid = checker.configurations_valid(peer["q"][number])
            differing += int((valid[peer["clear"][number]] != peer["valid"][number][peer["clear"][number]]).sum())
    rows = []
    for where, each in rates.items():
        figures = spread(each)
        if peer:
            figures |= {
                "ratio": median(each) / best,
                "compared": int(sum(c.sum() for c in peer["clear"])),
                "differing": differing,
            }
        rows.append(Row(mix, subject + where, figures, each))
    return rows


def spread(rates):
    return {"rate": median(rates), "lowest": min(rates), "highest": max(rates)}


def _coal_rates(context, robot, scenes, draw):
    """{tree, brute: (median rate, rates)}, the verdicts, and where they are clear of contact; None without coal."""
    if coal_peer.unavailable():
        return None
    count = 300 if context.quick else 800
    rates, answer = {"tree": [], "brute": []}, {"q": [], "valid": [], "clear": []}
    for problem in progress(scenes, "coal"):
        scene = coal_peer.scene("panda", problem.obstacles, context.data)
        q = draw(robot, problem, count)
        for kind in rates:
            valid = coal_peer.validity(scene, broad_phase=kind == "tree")
            taken = seconds(lambda v=valid, q=q: coal_peer.all_valid(v, q), 3 if context.quick else 5)
            rates[kind].append(count / median(taken))
        answer["q"].append(q)
        answer["valid"].append(coal_peer.all_valid(valid, q))
        answer["clear"].append(np.array([abs(scene.distance(row)) > CONTACT for row in q]))
    return answer | {kind: (median(values), values) for kind, values in rates.items()}


def _peer_rows(mix, peer, best):
    if peer is None:
        return [Row(mix, "coal, one core", note=coal_peer.unavailable())]
    names = {"tree": "coal, one core, AABB tree", "brute": "coal, one core, pair by pair"}
    return [
        Row(mix, names[kind], spread(rates) | {"ratio": rate / best}, rates)
        for kind, (rate, rates) in ((kind, peer[kind]) for kind in names)
    ]


def _mujoco_row(context, mix, robot, scenes, draw, peer, best):
    """MuJoCo's C code on one core; its verdicts are compared with coal's, too."""
    subject = "MuJoCo (C), one core, all contacts"
    if missing := mujoco_peer.unavailable():
        return Row(mix, subject, note=missing)
    rates, differing, count = [], 0, 300 if context.quick else 800
    for number, problem in enumerate(progress(scenes, "mujoco")):
        valid = mujoco_peer.validity(robot, add_obstacles(CollisionWorld(), problem.obstacles))
        q = peer["q"][number] if peer else draw(robot, problem, count)
        taken = seconds(lambda v=valid, q=q: mujoco_peer.all_valid(v, q), 3 if context.quick else 5)
        rates.append(len(q) / median(taken))
        if peer:
            clear = peer["clear"][number]
            differing += int((mujoco_peer.all_valid(valid, q)[clear] != peer["valid"][number][clear]).sum())
    figures = spread(rates)
    if peer:
        compared = int(sum(clear.sum() for clear in peer["clear"]))
        figures |= {"ratio": median(rates) / best, "compared": compared, "differing": differing}
    return Row(mix, subject, figures, rates)


def first_scenes(context):
    """One problem of each family."""
    first = {}
    for problem in load_problems("panda", context.data):
        first.setdefault(problem.family, problem)
    return list(first.values())[: 3 if context.quick else None]


def checker_among(robot, problem, device, *motion):
    return CollisionChecker(robot, add_obstacles(CollisionWorld(), problem.obstacles), device, *motion)


def random_configurations(robot, problem, count):
    return np.random.default_rng(problem.index).uniform(robot.lower, robot.upper, (count, robot.dof))


def along_segments(robot, problem, count):
    """Configurations on straight lines from the start to the goal and to random ones, as planners check them."""
    rng = np.random.default_rng(problem.index + 1)
    ends = np.concatenate([problem.goals, rng.uniform(robot.lower, robot.upper, (count // 50 + 1, robot.dof))])
    to = np.repeat(ends, 50, axis=0)[:count]
    share = np.tile(np.linspace(0, 1, 50), len(ends))[:count, None]
    return problem.start + share * (to - problem.start)


RATE = {"rate": "rate", "lowest": "rate", "highest": "rate"}

BENCHMARKS = (
    Benchmark(
        "configurations",
        "Configuration checks per second",
        "Panda hulls among one MotionBenchMaker scene of each family, exact "
        "verdicts, float32 arrays in host memory unless a row says otherwise, verdicts to host memory; median, lowest "
        "and highest over the scenes. "
        "Ratio: to coal's better variant on one core in the same run. MuJoCo's convex narrow phase finds all contacts. "
        "Verdicts are compared with coal's where no pair is within 0.1 mm of contact.",
        RATE | {"ratio": "ratio", "compared": "count", "differing": "count"},
        configurations,
    ),
    Benchmark(
        "motions",
        "Motion checks per second",
        "Straight joint-space motions of 0.5 rad from free configurations, the same scenes, float32 arrays likewise. "
        "hpp-core proves whole motions as well; its hulls are triangle meshes, its seconds those of its thread.",
        RATE | {"free": "share"},
        motions,
    ),
)
