"""hpp-core's continuous validation as a peer, on one core: it proves whole straight motions, as we do.

It runs in a process of its own, by the interpreter that the variable HPP_PYTHON names (pip install hpp-python): its
libraries are found by LD_LIBRARY_PATH alone. It gets a URDF of our hulls, with the obstacles on its root link; it reads
hulls as triangle meshes, which is not its fastest form.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

KINDS = {"Progressive": 1e-3, "Dichotomy": 0.0}  # and the tolerances, metres: the first wants one above 0
INERTIA = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"


def unavailable():
    """Why hpp-core cannot be measured here, or None."""
    done = subprocess.run([_python(), "-c", "import pyhpp.core"], env=_environment(), capture_output=True, timeout=120)
    return "skipped: HPP_PYTHON names no Python with hpp-python" if done.returncode else None


def measured(robot, world, q_from, q_to):
    """{kind: (motions per second of processor time, (N,) bool of those proven free)} of a RobotModel among a
    CollisionWorld."""
    with tempfile.TemporaryDirectory(prefix="hpp") as name:
        folder = Path(name)
        (folder / "robot.urdf").write_text(_urdf(robot, world, folder), encoding="utf-8")
        (folder / "robot.srdf").write_text(_srdf(robot), encoding="utf-8")
        np.savez(folder / "motions.npz", q_from=q_from, q_to=q_to)
        done = subprocess.run(
            [_python(), __file__, folder], env=_environment(), capture_output=True, text=True, timeout=1800
        )
        if done.returncode:
            raise RuntimeError(f"hpp-core ended with {done.returncode}: {done.stderr[-2000:]}")
        found = json.loads(done.stdout.splitlines()[-1])
    return {kind: (rate, np.array(free)) for kind, (rate, free) in found.items()}


def _python():
    return os.environ.get("HPP_PYTHON", sys.executable)


def _environment():
    text = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    site = subprocess.run([_python(), "-c", text], capture_output=True, text=True, timeout=60).stdout.strip()
    return {**os.environ, "LD_LIBRARY_PATH": f"{site}/cmeel.prefix/lib", "PYTHONPATH": ""}


def _link(f):
    return "root" if f < 0 else f"frame{f}"


def _origin(T):
    from scipy.spatial.transform import Rotation

    x, r = T[:3, 3], Rotation.from_matrix(T[:3, :3]).as_euler("xyz")
    return f"<origin xyz='{x[0]} {x[1]} {x[2]}' rpy='{r[0]} {r[1]} {r[2]}'/>"


def _collision(shape, number, folder):
    import trimesh

    x, y, z = shape.half_extents
    if shape.kind.name == "POLYTOPE":
        trimesh.convex.convex_hull(shape.vertices).export(folder / f"{number}.stl")
        geometry = f"<mesh filename='{folder}/{number}.stl'/>"
    else:
        geometry = {
            "BOX": f"<box size='{2 * x} {2 * y} {2 * z}'/>",
            "CYLINDER": f"<cylinder radius='{x}' length='{2 * z}'/>",
            "SPHERE": f"<sphere radius='{x}'/>",
        }[shape.kind.name]
    return f"<collision>{_origin(shape.pose)}<geometry>{geometry}</geometry></collision>"


def _urdf(robot, world, folder):
    shapes = [*zip(robot.shapes, robot.shape_frame, strict=True), *((shape, -1) for shape in world.shapes)]
    parts = {f: "" for f in range(-1, len(robot.frames))}
    for number, (shape, f) in enumerate(shapes):
        parts[int(f)] += _collision(shape, number, folder)
    lines = [f"<link name='{_link(f)}'>{INERTIA}{text}</link>" for f, text in parts.items()]
    for f, frame in enumerate(robot.frames):
        kind, j = "prismatic" if frame["prismatic"] else "revolute", frame["joint"]
        lines.append(
            f"<joint name='joint{f}' type='{kind}'><parent link='{_link(frame['parent'])}'/><child link='{_link(f)}'/>"
            f"{_origin(robot.T_parent_frame[f])}<axis xyz='0 0 1'/>"
            f"<limit lower='{robot.lower[j]}' upper='{robot.upper[j]}' effort='1' velocity='1'/></joint>"
        )
    return f"<robot name='robot'>{''.join(lines)}</robot>"


def _srdf(robot):
    """Leaves out the pairs of links that we do not check."""
    own = {tuple(sorted((robot.shape_frame[i], robot.shape_frame[j]))) for i, j in robot.self_collision_pairs}
    frames, lines = range(-1, len(robot.frames)), []
    for a in frames:
        for b in frames:
            if 0 <= a < b and (a, b) not in own:
                lines.append(f"<disable_collisions link1='{_link(a)}' link2='{_link(b)}' reason=''/>")
    return f"<robot name='robot'>{''.join(lines)}</robot>"


def _main(folder):
    import pyhpp.core
    import pyhpp.pinocchio.urdf
    from pinocchio import SE3
    from pyhpp.pinocchio import Device

    device = Device("robot")
    files = f"{folder}/robot.urdf", f"{folder}/robot.srdf"
    pyhpp.pinocchio.urdf.loadModel(device, 0, "robot", "anchor", *files, SE3.Identity())
    problem = pyhpp.core.Problem(device)  # must live as long as what it is given to
    straight, motions = pyhpp.core.Straight(problem), np.load(f"{folder}/motions.npz")
    paths, found = [straight(a, b) for a, b in zip(motions["q_from"], motions["q_to"], strict=True)], {}
    for kind, tolerance in KINDS.items():
        validation, began = getattr(pyhpp.core, kind)(device, tolerance), time.thread_time()
        free = [bool(validation.validate(path, False)[0]) for path in paths]
        found[kind] = len(paths) / (time.thread_time() - began), free
    print(json.dumps(found))


if __name__ == "__main__":
    _main(sys.argv[1])
