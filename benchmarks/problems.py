"""The shared problems and golden values: where the data lies, and MotionBenchMaker's problems read from it.

Used by benchmarks and by tests; imports nothing of gpu_planners, so that a re-checker built on it stays
independent of the planner.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ENVIRONMENT_VARIABLE = "GPU_PLANNERS_DATA"


class MissingDataError(FileNotFoundError):
    """The shared data is not where it was looked for; the text says where that was."""


@dataclass(frozen=True)
class Problem:
    """One planning problem.

    family, index: which problem of the set it is
    obstacles: list of dicts {name, type: box|cylinder|sphere, position (3,), quat_xyzw (4,), size | height, radius},
        metres, poses in the root frame of the robot's URDF, cylinder axis along its own z
    start: (dof,) rad;  goals: (G, dof) rad, in the order of `joint_names`
    other_joints: values of the joints outside the planning group
    hull_valid_start, hull_valid_goal: free with one hull for each mesh; None where the data does not say
    reference_length: joint-space length of a near-optimal path in a sphere model, nan where unknown
    """

    family: str
    index: int
    joint_names: tuple
    obstacles: list
    start: np.ndarray
    goals: np.ndarray
    other_joints: dict
    hull_valid_start: bool | None
    hull_valid_goal: bool | None
    reference_length: float

    @property
    def name(self):
        return f"{self.family}/{self.index}"


def data_dir(path=None):
    """The data folder: `path`, else $GPU_PLANNERS_DATA, else ../shared/data or shared/data beside a checkout.

    Raises MissingDataError that says where it looked.
    """
    root = Path(__file__).resolve().parent.parent
    given = path or os.environ.get(ENVIRONMENT_VARIABLE)
    candidates = [Path(given)] if given else [root.parent / "shared" / "data", root / "shared" / "data"]
    for candidate in candidates:
        if (candidate / "motion_bench_maker").is_dir():
            return candidate.resolve()
    looked = ", ".join(str(c) for c in candidates)
    raise MissingDataError(
        f"the shared data is not there (looked at {looked}); set {ENVIRONMENT_VARIABLE} to its folder"
    )


def missing_data():
    """Why the data cannot be used, or None: the reason for `pytest.mark.skipif`."""
    try:
        data_dir()
    except MissingDataError as error:
        return str(error)
    return None


def robot_files(robot, root=None):
    """(urdf, srdf) paths of "panda", "ur5", "fetch" or "baxter"."""
    folder = data_dir(root) / "robots" / robot
    return folder / f"{robot}.urdf", folder / f"{robot}.srdf"


def load_problems(robot, root=None, families=None):
    """All problems of a robot of `robot_files` in the order of the file, a list of Problem."""
    with open(data_dir(root) / "motion_bench_maker" / f"{robot}.json") as file:
        content = json.load(file)
    return [
        _problem(content["joint_names"], family, raw)
        for family, raws in content["problems"].items()
        if families is None or family in families
        for raw in raws
    ]


def load_golden(root=None):
    """Fields of golden/panda.npz as a dict of arrays."""
    with np.load(data_dir(root) / "golden" / "panda.npz") as content:
        return {key: content[key] for key in content.files}


def pose_of(obstacle):
    """(4, 4) T_root_obstacle of one obstacle dict."""
    x, y, z, w = np.asarray(obstacle["quat_xyzw"]) / np.linalg.norm(obstacle["quat_xyzw"])
    pose = np.eye(4)
    pose[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    pose[:3, 3] = obstacle["position"]
    return pose


def add_obstacles(world, obstacles):
    """Put the obstacles of a problem into a CollisionWorld; names repeated in the data get a number."""
    taken = set(world.names)
    for obstacle in obstacles:
        name, number = obstacle["name"], 2
        while name in taken:
            name, number = f"{obstacle['name']}_{number}", number + 1
        taken.add(name)
        pose = pose_of(obstacle)
        if obstacle["type"] == "box":
            world.add_box(name, obstacle["size"], pose)
        elif obstacle["type"] == "cylinder":
            world.add_cylinder(name, obstacle["radius"], obstacle["height"], pose)
        else:
            world.add_sphere(name, obstacle["radius"], pose)
    return world


def _problem(joint_names, family, raw):
    length = raw.get("aorrtc_ref_length")
    return Problem(
        family,
        raw["index"],
        tuple(joint_names),
        raw["obstacles"],
        np.array(raw["start"]),
        np.atleast_2d(raw["goals"]),
        raw["other_joints"],
        *(raw["valid_hull"] and bool(raw["valid_hull"][end]) for end in ("start", "goal")),
        np.nan if length is None else float(length),
    )
