"""gpu-planners dataset: random problems of a robot, planned into Parquet files; or a check of such files."""

import argparse
import hashlib
import io
import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

from rich.filesize import decimal

from ..arm import rrt_connect
from ..datasets import Draw, Recipe, Timing, check, make
from ..datasets.checking import robot_of
from ..datasets.making import CHUNK, Shared, allowed_workers, plan, resolved
from ..datasets.obstacles import read_scenes
from ..datasets.recipe import SETTINGS
from ..datasets.schema import arrow, arrow_schema
from ..datasets.shards import allowed_counts, read_manifest, write_parquet
from ..device import resolve_devices
from ..errors import GpuPlannersError
from .errors import InputError, complain
from .motions import assigned
from .progress import shown_progress
from .robots import load_robot, package_dirs, pairs, tip_of

INTERRUPTED = 130
SAMPLE = 1024  # problems of a dry run, at most
SAMPLE_S = 10.0  # a dry run begins no chunk of problems later


def run(options: argparse.Namespace, _rest: list[str]) -> int:
    arrow()  # says what is missing
    if options.check:
        return _check(options)
    if not options.urdf:
        raise InputError("there is no robot: give a URDF file, or --check FOLDER")
    if options.problems is None:
        raise InputError("it is not said how many problems: give --problems")
    allowed_counts(options.problems, options.rows)
    allowed_workers(options.workers)
    if not options.output and not options.dry_run:
        raise InputError("there is no place for the data set: give --output FOLDER, or --dry-run")
    recipe, devices = _recipe(options), options.devices.split(",")
    return _try(options, recipe, devices) if options.dry_run else _make(options, recipe, devices)


def _recipe(options):
    draw = Draw(**assigned("--draw", options.draw, Draw))
    settings = replace(SETTINGS, **assigned("--set", options.set, rrt_connect.Settings))
    timing = None if options.timing is None else Timing(**assigned("--timing", options.timing, Timing))
    device = resolve_devices(options.devices)[0].partition(":")[0]
    robot = load_robot(options)
    files = {"urdf": options.urdf, "srdf": options.srdf}
    return Recipe(
        robot,
        tip_of(options, robot),
        files={
            f"{name}_sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest()
            for name, file in files.items()
            if file
        },
        source={
            **{name: str(Path(file).resolve()) for name, file in files.items() if file},
            "package_dirs": [str(Path(folder).resolve()) for folder in package_dirs(options)],
            "fixed": pairs(options.fix, "--fix"),
        },
        scenes=tuple(scene for file in options.scenes for scene in read_scenes(file, robot)),
        draw=draw,
        settings=settings,
        timing=timing,
        seed=options.seed,
        margin=options.margin,
        device=device,
    )


def _make(options, recipe, devices):
    began, first, now, solved = time.monotonic(), None, 0, 0  # first, now: rows at the first and the latest report
    try:
        with shown_progress(options.quiet, options.problems) as update:

            def told(rows, new_solved):
                nonlocal first, now, solved
                first, now, solved = rows if first is None else first, rows, new_solved
                update(rows, f"{_rate(rows - first, time.monotonic() - began)}, {solved} of the new solved")

            given = options.output, options.problems, options.rows
            shards = make(recipe, *given, devices=devices, workers=options.workers, told=told)
    except KeyboardInterrupt:
        complain(GpuPlannersError("stopped; files that are whole stay, and the same command goes on"), INTERRUPTED)
        os._exit(INTERRUPTED)  # threads that plan would go on for seconds, for nobody
    except OSError as error:
        reason = error.strerror or error
        raise DatasetFault(f"'{error.filename or options.output}' cannot be written: {reason}") from error
    if not options.quiet:
        new, spent = now - (first or 0), time.monotonic() - began
        size = sum(shards.file(number).stat().st_size for number in range(shards.count))
        made = f"{new} new in {spent:.1f} s, {_rate(new, spent)}, {solved} solved" if new else "nothing new"
        print(
            f"{recipe.robot.name}: {shards.problems} problems in {shards.count} files, {decimal(round(size))}, in "
            f"'{options.output}'; {made}",
            file=sys.stderr,
        )
    return 0


def _try(options, recipe, devices):
    devices = resolved(recipe, devices)
    schema = arrow_schema(recipe.robot.dof, recipe.timing is not None, {"recipe": recipe.described()})
    shared = Shared(recipe, schema)
    plan(shared, (0, 1), devices[0])  # compiles
    began, count, tables = time.monotonic(), 0, []
    while count < min(SAMPLE, options.problems) and time.monotonic() - began < SAMPLE_S:
        first, count = count, min(count + CHUNK[recipe.device], options.problems)
        tables.append(plan(shared, (first, count), devices[0]))
    each, table = (time.monotonic() - began) / count, arrow().concat_tables(tables).combine_chunks()
    statuses = table["status"].to_pylist()
    files = -(-options.problems // options.rows)
    empty, whole = _bytes(table.slice(0, 0)), _bytes(table)
    row = (whole - empty) / count
    told = ", ".join(f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses))
    workers, planners = max(options.workers, len(devices)), len(devices)  # who draw; who plan, each for all cores
    rate = min(workers / each, planners / table["time_s"].to_numpy().mean())
    size, spent = row * options.problems + empty * files, options.problems / rate
    print(
        f"{recipe.robot.name}: {options.problems} problems in {files} files of up to {options.rows} rows: about "
        f"{decimal(round(size))}, {decimal(round(row))} a row, and {_duration(spent)} with {workers} "
        f"worker{'s' * (workers > 1)}, {rate:.1f} plans/s; the first {count}: {told}"
    )
    if options.output:
        wanted = Path(options.output).resolve()
        there = next(folder for folder in (wanted, *wanted.parents) if folder.is_dir())
        print(f"free in '{there}': {decimal(shutil.disk_usage(there).free)}")
    return 0


def _bytes(table):
    data = io.BytesIO()
    write_parquet(table, data)
    return len(data.getbuffer())


def _check(options):
    manifest = read_manifest(options.check)
    robot = load_robot(options) if options.urdf else robot_of(manifest)
    began = time.monotonic()
    with shown_progress(options.quiet, manifest["problems"]) as update:
        report = check(options.check, robot, lambda rows, errors: update(rows, f"{errors} errors"))
    counts = ", ".join(f"{count} {status}" for status, count in sorted(report.counts.items(), key=lambda it: -it[1]))
    for text in report.texts:
        print(text)
    if report.errors > len(report.texts):
        print(f"... and {report.errors - len(report.texts)} more errors")
    if report.errors:
        raise DatasetFault(
            f"'{options.check}' has {report.errors} errors in {report.rows} of {manifest['problems']} rows"
        )
    if not options.quiet:
        print(f"{report.rows} rows are true ({counts}); checked in {time.monotonic() - began:.1f} s", file=sys.stderr)
    return 0


class DatasetFault(OSError):
    """A data set cannot be written, or was checked and has errors: exit code 1."""


def _rate(count, seconds):
    return f"{count / max(seconds, 1e-9):.1f} plans/s"


def _duration(seconds):
    for unit, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.0f} s"
