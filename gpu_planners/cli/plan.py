"""gpu-planners plan: one motion from files and arguments to a timed trajectory, a picture and a page."""

import argparse
import sys
from pathlib import Path

from ..arm import CollisionChecker
from ..arm.view.drawing import draw_path
from .errors import InputError, require
from .motions import plan_motion, question_of, settings_of
from .robots import load_robot, load_world, tip_of
from .trajectory_files import WRITERS, format_of, sampled

VIEW_EXTRA = "pip install 'gpu_planners[view]'"


def run(options: argparse.Namespace, _rest: list[str]) -> None:
    """Plan and write. Everything that can be wrong with the arguments is found before the planner starts."""
    kind = format_of(options.output, options.format)
    settings = settings_of(options.planner, options.set, options.time)
    _check_outputs(options)
    robot = load_robot(options)
    world, tip = load_world(options, robot), tip_of(options, robot)
    question = question_of(options, robot)
    checker = CollisionChecker(robot, world, options.device, margin=options.margin)
    motion = plan_motion(
        checker,
        tip,
        question,
        options.planner,
        settings,
        options.seed,
        (options.velocity_scaling, options.acceleration_scaling),
    )
    result, trajectory = motion.result, sampled(motion.trajectory, options.every)
    facts = {
        "robot": robot.name,
        "planner": options.planner,
        "device": checker.device,
        "seed": options.seed,
        "goal_index": motion.goal_index,
        "planning_time_s": round(result.time_s, 6),
        "path_length": round(float(result.cost), 9),
        "duration_s": round(motion.trajectory.duration, 9),
        "path": result.path.round(9).tolist(),
    }
    _write(options.output, WRITERS[kind](robot, trajectory, facts))
    if options.picture:
        draw_path(robot, world, result.path, options.picture)
    if options.view:
        from ..arm.view.saved_page import motion_page

        _write(options.view, motion_page(robot, world, tip, motion.trajectory))
    if not options.quiet:
        print(
            f"{robot.name}: {len(result.path)} waypoints, length {result.cost:.2f}, {trajectory.duration:.2f} s long, "
            f"among {len(world.names)} obstacles, by {options.planner} on {checker.device} in "
            f"{1e3 * result.time_s:.0f} ms{'; ' + result.message if result.message else ''}",
            file=sys.stderr,
        )


def _check_outputs(options):
    if options.picture:
        require("matplotlib", "--picture", VIEW_EXTRA)
        if Path(options.picture).suffix.lower() not in (".png", ".jpg", ".jpeg", ".pdf"):
            raise InputError(f"--picture '{options.picture}': allowed endings: .png, .jpg, .pdf")
    if options.view:
        require("viser", "--view", VIEW_EXTRA)
    for file in filter(None, (options.output, options.picture, options.view)):
        if file != "-" and not Path(file).resolve().parent.is_dir():
            raise InputError(f"'{file}' cannot be written: there is no folder '{Path(file).parent}'")


def _write(file, text):
    if file == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        Path(file).write_text(text, encoding="utf-8")
