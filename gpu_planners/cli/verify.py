"""gpu-planners verify: what pinocchio and coal, which share no code with the planners, say of a motion."""

import argparse

import numpy as np

from .errors import InputError, NoAnswerError, require
from .robots import package_dirs, pairs
from .trajectory_files import columns, read_table, times_of

BEYOND_POSITIONS = ("_velocity", "_acceleration")


def run(options: argparse.Namespace, _rest: list[str]) -> None:
    """Check and print. Raises NoAnswerError where the motion collides or breaks a limit."""
    for module in ("coal", "pinocchio"):
        require(module, "verify", "pip install 'gpu_planners[verify]'")
    from ..verify import CoalScene, broken_rules, check_path

    names, rows = read_table(options.motion)
    scene = CoalScene(
        options.urdf,
        options.srdf,
        options.scene or (),
        package_dirs=package_dirs(options),
        meshes="hulls" if options.hulls else "triangles",
        joints=_joints(options, names),
        fixed=pairs(options.fix, "--fix"),
    )
    if names is None and rows.shape[1] != len(scene.joint_names):
        raise InputError(
            f"'{options.motion}' has {rows.shape[1]} values a row; allowed: {len(scene.joint_names)} "
            f"({', '.join(scene.joint_names)}), or name them by --joints"
        )
    path, times = columns(options.motion, names or scene.joint_names, rows, scene.joint_names), times_of(names, rows)
    report = check_path(path, scene, spacing=options.spacing, tolerance=options.tolerance)
    broken = broken_rules(scene, path, times)

    def told(met):
        row = met.segment + met.fraction
        when = "" if times is None else f", {np.interp(row, np.arange(len(times)), times):.3f} s"
        return f"{met.bodies[0]} and {met.bodies[1]}, {1e3 * met.distance:.3g} mm, at row {row:.2f}{when}"

    pairs_told = f"{len(scene.pair_names)} pairs of bodies, {scene.obstacle_pairs} of them with obstacles"
    print(f"{scene.model.name}: {len(scene.joint_names)} joints, {pairs_told}")
    print(f"{options.motion}: {len(path)} rows, {report.configurations} configurations looked at")
    print("free" if report.free else f"collides: first {told(report.contact)}")
    if report.nearest:
        print(f"{'nearest' if report.nearest.distance > 0 else 'deepest'}: {told(report.nearest)}")
    print("\n".join(f"breaks a limit: {text}" for text in broken) or "within the limits")
    if broken or not report.free:
        raise NoAnswerError(f"'{options.motion}' {'breaks a limit' if report.free else 'collides'}")


def _joints(options, names):
    """The joints that --joints or the file names; None: all that move."""
    if options.joints or names is None:
        return [each for word in options.joints for each in word.split(",") if each] or None
    return [n for n in names if n != "time" and not any(n == f"{o}{end}" for o in names for end in BEYOND_POSITIONS)]
