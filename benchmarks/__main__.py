"""Run the benchmarks: `python -m benchmarks`, `gpu-planners bench` or `make bench`."""

import argparse
import datetime
import sys
import time
import traceback
from pathlib import Path

from gpu_planners.distributed import Ranks, mpi
from gpu_planners.errors import RanksError

from . import (
    arm_batches,
    arm_check_batches,
    arm_checks,
    arm_clouds,
    arm_constraints,
    arm_dataset,
    arm_dense_paths,
    arm_devices,
    arm_environments,
    arm_executors,
    arm_fields,
    arm_kinematics,
    arm_lengths,
    arm_planners,
    arm_robots,
    arm_sizes,
    arm_torques,
    arm_trajectories,
    arm_two_hands,
    arm_worlds,
    banded,
    cold_start,
    dl14,
    dl14_ranks,
    fleet_lanes,
    fleet_ticks,
    fleets,
    fleets_epibt,
    fleets_late,
    fleets_one_shot,
    grid_experiments,
    grid_fields,
    grid_moving,
    grid_plots,
    grid_scenarios,
    grid_streamed,
    machine,
    planar_arm,
    poses,
    poses_nav2,
    report,
    soak,
)
from .fleet_instances import NAMES
from .harness import Context, Row, with_data
from .problems import MissingDataError, data_dir

MODULES = (
    cold_start,
    arm_checks,
    arm_check_batches,
    arm_clouds,
    arm_planners,
    arm_robots,
    arm_constraints,
    arm_two_hands,
    arm_kinematics,
    arm_batches,
    arm_devices,
    arm_environments,
    arm_executors,
    arm_dataset,
    arm_lengths,
    arm_trajectories,
    arm_dense_paths,
    arm_fields,
    arm_torques,
    arm_worlds,
    arm_sizes,
    dl14,
    dl14_ranks,
    fleet_lanes,
    fleet_ticks,
    fleets,
    fleets_epibt,
    fleets_late,
    planar_arm,
    grid_experiments,
    grid_fields,
    grid_moving,
    grid_scenarios,
    grid_streamed,
    poses,
    poses_nav2,
    banded,
    fleets_one_shot,
    soak,
)
REGISTRY = {benchmark.name: benchmark for module in MODULES for benchmark in module.BENCHMARKS}


ON_RANKS_S = 3600.0  # the ranks that a row does not need wait for those that it does


def main(arguments=None):
    """Returns the exit code: 0; 1 when a benchmark failed; 2 when every device is missing, or the folder that --data
    names, or when mpirun has started what is no benchmark of ranks. Without --data, what needs missing data is a row
    that says so."""
    options = _options(arguments)
    if mpi.launched()[0] == 1:
        return _run(options, arguments, None)
    alone = [name for name in options.only or REGISTRY if not REGISTRY[name].on_ranks]
    try:
        with Ranks(timeout_s=ON_RANKS_S) as ranks:
            if not alone:
                return _run(options, arguments, ranks)
            if ranks.rank == 0:
                text = ", ".join(name for name, benchmark in REGISTRY.items() if benchmark.on_ranks)
                print(f"error: mpirun runs only --only {text}; {alone[0]} runs without it", file=sys.stderr)
            return 2
    except RanksError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _run(options, arguments, ranks):
    """As main; of ranks, only the first one prints and writes."""
    try:
        data = options.data and str(data_dir(options.data))
    except MissingDataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    devices, missing = machine.devices(options.device)
    context = Context(devices, missing, options.quick, data, options.full, ranks, options.instances)
    if ranks and ranks.rank:
        for name in options.only if devices else ():
            REGISTRY[name].run(context)
        return 0
    for why in missing.values():
        print(why, file=sys.stderr)
    if not devices:
        return 2
    started = ["mpirun", "-n", str(ranks.size)] if ranks else []
    results = {
        "machine": machine.describe(),
        "date": datetime.date.today().isoformat(),
        "quick": options.quick,
        "command": " ".join([*started, "python -m benchmarks", *(sys.argv[1:] if arguments is None else arguments)]),
        "tables": [],
    }
    folder, failed = Path(options.out), 0
    folder.mkdir(parents=True, exist_ok=True)
    print(report.machine_line(results), end="\n\n", flush=True)
    for name in options.only or REGISTRY:
        benchmark, began = REGISTRY[name], time.perf_counter()
        try:
            rows = [row.as_dict() for row in with_data("all", lambda run=benchmark.run: run(context))]
        except Exception as error:  # the other benchmarks are still worth their time
            if ranks:
                raise  # not without the other ranks
            traceback.print_exc()
            rows, failed = [Row("all", name, note=f"failed: {type(error).__name__}: {error}").as_dict()], 1
        results["tables"].append(
            {"name": name, "title": benchmark.title, "text": benchmark.text, "columns": benchmark.columns, "rows": rows}
        )
        report.write_json(
            folder / "results.json", results
        )  # after each, so that a run cut short keeps what it measured
        print(
            report.section(results["tables"][-1]),
            f"({name}: {time.perf_counter() - began:.0f} s)\n",
            sep="\n",
            flush=True,
        )
    (folder / "results.md").write_text(report.markdown(results), encoding="utf-8")
    no_plot = report.plot(folder / "results.png", results)
    print(no_plot or f"plot: {folder / 'results.png'}")
    if not grid_plots.plot(folder / "grid.png", results):
        print(f"plot: {folder / 'grid.png'}")
    print(f"tables: {folder / 'results.md'}, figures: {folder / 'results.json'}")
    return failed


def _options(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure gpu_planners, with its peers in the same run."
    )
    parser.add_argument(
        "--device", choices=("cpu", "cuda", "all"), default="all", help="where to run (default: all that are there)"
    )
    parser.add_argument("--quick", action="store_true", help="few problems and repeats: a look, not a figure to quote")
    parser.add_argument("--full", action="store_true", help="on the CPU too what takes long there")
    parser.add_argument("--only", nargs="+", choices=tuple(REGISTRY), metavar="NAME", help=f"of {', '.join(REGISTRY)}")
    parser.add_argument(
        "--instances", nargs="+", choices=NAMES, metavar="NAME", help=f"of the benchmark fleets: of {', '.join(NAMES)}"
    )
    parser.add_argument("--out", default="out/bench", help="folder for results.json, results.md and results.png")
    parser.add_argument("--data", help="folder of the shared data (default: $GPU_PLANNERS_DATA or ../shared/data)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
