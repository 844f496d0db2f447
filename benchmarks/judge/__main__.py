"""Run a judge of the League of Robot Runners for whole instances: `python -m benchmarks.judge --round 2024`."""

import argparse
import contextlib
import datetime
import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gpu_planners.device import resolve_device
from gpu_planners.fleet import Settings, conflicts

from .. import machine, report
from ..fleet_instances import NAMES, published
from ..fleet_tasks import names_of, published_tasks, simulate_tasks
from ..harness import Row, told
from ..problems import MissingDataError, data_dir
from .prepared import GOALS, SCHEDULE, STEPPED, prepared_fleet

JUDGE = "GPU_PLANNERS_JUDGE"  # of the environment
KIT = os.environ.get(JUDGE) or "~/.cache/gpu_planners/Start-Kit"
SOURCE = "https://github.com/MAPF-Competition/Start-Kit"
BOOST = ("program-options", "system", "filesystem", "log")
PACKAGES = ("git", "cmake", "g++", "pybind11-dev", *(f"libboost-{part}-dev" for part in BOOST))


@dataclass(frozen=True)
class Round:
    """A year of the League.

    tag: of its Start-Kit; counted: what the best known are; called: what is printed before each step
    budget: seconds of a step that ours takes; limit: option for those that it may take
    entry: folder here of what the judge loads; unit_s: of its time limits; configure: commands before cmake
    judge: options of the judge; ours: those that let ours play in place of the kit's own, which then plays first, as a
        peer: no best known is published
    valid: from its verdict, were all moves and schedules valid?
    """

    tag: str
    counted: str
    called: str
    entry: str
    unit_s: float
    valid: Callable[[dict], str]
    budget: float
    configure: tuple[str, ...] = ()
    limit: str = "--planTimeLimit"
    judge: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()


def _no_errors(verdict):
    """Errors of moves, of schedules, and late steps of rounds from 2024 on."""
    found = [verdict[f"num{what}"] for what in ("PlannerErrors", "ScheduleErrors", "EntryTimeouts")]
    return "Yes" if not any(found) else "No: {} moves, {} schedules, {} late steps".format(*found)


ROUNDS = {
    2023: Round("v1.1.5", "errands", "calling python planner", ".", 1.0, lambda verdict: verdict["AllValid"], 0.05),
    2024: Round(
        "v2.1.2", "tasks", STEPPED, "round2024", 1e-3, _no_errors, 0.5, ("bash", "python/set_track.bash", "combined"),
        "--planTimeLimit", ("--logDetailLevel", "3"),
    ),
    2026: Round(
        "v3.1.0", "tasks", STEPPED, "round2026", 1e-3, _no_errors, 0.8, (), "--planCommTimeLimit",
        ("--logDetailLevel", "3"), tuple(f"--{part}Python" for part in ("planner", "scheduler", "executor")),
    ),
}  # fmt: skip
UNPUBLISHED = 1000  # steps of instances that say nothing
COLUMNS = {
    "agents": "count",
    "steps": "count",
    "finished": "count",
    "of_default": "share",
    "of_best": "share",
    "of_best_late": "share",
    "all_valid": "count",
    "step_ms": "ms",
    "step_p95_ms": "ms",
    "step_worst_ms": "ms",
    "choice_ms": "ms",
}
TEXT = (
    "Finished {counted} in the League of Robot Runners {year}, counted by its judge (Start-Kit {tag}), which checks "
    "every move. Times are the judge's, of whole steps."
)


class JudgeError(Exception):
    """The judge could not be built, or it failed."""


def main(arguments=None):
    """Returns the exit code: 0; 1 where an instance failed; 2 where the judge or the data are missing."""
    options = _options(arguments)
    try:
        folder = data_dir(options.data) / f"lorr{options.year}"
        names = options.names or (NAMES if options.year == 2023 else names_of(options.year, options.data))
        instances = [instance_of(options.year, name, options.data) for name in names]
        kit = Path(options.build or kit_of(options.year)).expanduser()
        if not options.simulated:
            built(kit, options.year)
    except (JudgeError, MissingDataError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    which = ROUNDS[options.year]
    text = TEXT.format(year=options.year, tag=which.tag, counted=which.counted)
    table = {"name": "judge", "title": "By the official judge", "text": text, "columns": COLUMNS, "rows": []}
    results = {
        "machine": machine.describe(),
        "date": datetime.date.today().isoformat(),
        "quick": False,
        "command": " ".join(["python -m benchmarks.judge", *(sys.argv[1:] if arguments is None else arguments)]),
        "tables": [table],
    }
    out, device, failed = Path(options.out), resolve_device("auto"), 0
    out.mkdir(parents=True, exist_ok=True)
    for instance in instances:
        default = 0
        for ours in (False, True) if which.ours else (True,):
            subject = f"{1e3 * options.budget:g} ms a step, {device}" if ours else "the kit's own"
            subject += " (our simulator)" if options.simulated else ""
            try:
                play = simulated if options.simulated else judged
                figures = play(kit, folder, instance, options, ours)
                default = default if ours else figures["finished"]
                if default:
                    figures["of_default"] = figures["finished"] / default
                row = told(Row(instance.name, subject, figures))
            except JudgeError as error:
                row, failed = Row(instance.name, subject, note=f"failed: {error}"), 1
            table["rows"].append(row.as_dict())
        report.write_json(out / "results.json", results)  # after each, so that a run cut short keeps what it measured
        (out / "results.md").write_text(report.markdown(results), encoding="utf-8")
    print(report.machine_line(results), report.section(table), sep="\n\n")
    print(f"table: {out / 'results.md'}, figures: {out / 'results.json'}")
    return failed


def kit_of(year):
    """Folder of a round's Start-Kit."""
    return KIT if year == 2023 else f"{KIT}-{year}"


def instance_of(year, name, data):
    """An instance, by name. Raises MissingDataError."""
    return published(name, data) if year == 2023 else published_tasks(name, year, data)


def built(kit, year=2023):
    """Clone a round's Start-Kit into the folder `kit`, and build it for this Python, where it is not yet -> kit

    Raises JudgeError.
    """
    build = kit / "build"
    module = build / f"MAPF{sysconfig.get_config_var('EXT_SUFFIX')}"
    if module.exists() and (build / "lifelong").exists():
        return kit
    if not (kit / "CMakeLists.txt").exists():
        _done("git", "clone", "--quiet", "--depth", "1", "--branch", ROUNDS[year].tag, SOURCE, kit)
    if ROUNDS[year].configure:
        _done(*ROUNDS[year].configure, folder=kit)
    python = "-DPYTHON=true", f"-DPYTHON_EXECUTABLE={sys.executable}"
    if year >= 2026:
        python = f"-DPython_EXECUTABLE={sys.executable}", "-DPYBIND11_FINDPYTHON=ON", f"-Dpybind11_DIR={_pybind11()}"
        python = *python, "-DBUILD_TESTS=OFF"
    _done("cmake", "-S", kit, "-B", build, "-DCMAKE_BUILD_TYPE=Release", *python)
    _done("cmake", "--build", build, "--parallel", "2")
    if not module.exists():
        raise JudgeError(f"{build} has no {module.name}: cmake built it for another Python; remove that folder")
    return kit


def _pybind11():
    """Folder of the files of pybind11 for CMake, of this Python: Debian's is too old."""
    if importlib.util.find_spec("pybind11") is None:
        raise JudgeError("pybind11 is not there: pip install 'pybind11>=3.0.1'")
    return importlib.import_module("pybind11").get_cmake_dir()


def _done(*command, folder=None):
    """Run a command in a folder. Raises JudgeError with the end of what it said, and the packages that it may want."""
    words = [str(word) for word in command]
    print(" ".join(words), file=sys.stderr, flush=True)
    try:
        end = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder)
    except FileNotFoundError:
        raise JudgeError(f"{words[0]} is not there: {_install()}") from None
    if end.returncode:
        raise JudgeError(f"{' '.join(words)} failed:\n{end.stdout[-2000:]}{_install()}")


def _install():
    missing = [name for name in PACKAGES if not _installed(name)]
    return f"missing: apt-get install {' '.join(missing)}" if missing else ""


def _installed(package):
    with contextlib.suppress(FileNotFoundError):
        asked = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
        return subprocess.run(asked, capture_output=True, text=True).stdout == "installed"
    return False


def judged(kit, folder, instance, options, ours=True):
    """Let the judge run an instance. -> {column: figure}. Raises JudgeError

    kit: the Start-Kit's folder; folder: of the instances; options: budget, steps, preprocess, limit; ours: or the kit's
    own planner
    """
    steps = min(options.steps or instance.steps or UNPUBLISHED, instance.steps or 10**9)
    which = ROUNDS[options.year]
    if ours:  # compiles: the judge ends a process that takes longer than its limit, and what that compiled is lost
        settings = Settings(following=options.year != 2026)
        prepared_fleet(instance.free.astype(np.uint8), len(instance.starts), 0.0, options.budget, settings)
    with tempfile.TemporaryDirectory() as scratch:
        verdict = verdict_of(kit, folder / f"{instance.name}.json", steps, options, Path(scratch), ours)
    taken = 1e3 * np.array(verdict["plannerTimes"])
    finished = verdict["numTaskFinished"]
    figures = {"agents": verdict["teamSize"], "steps": steps, "finished": finished, "all_valid": which.valid(verdict)}
    if instance.best_known:
        figures["of_best"] = finished / steps / (instance.best_known / instance.steps)
    if len(taken):  # of 2026 the judge tells none
        p95 = float(np.percentile(taken, 95))
        figures |= {"step_ms": float(np.median(taken)), "step_p95_ms": p95, "step_worst_ms": float(taken.max())}
    return figures


def simulated(_kit, _folder, instance, options, _ours=True):
    """`judged` without a kit: our simulator of the rules of 2024, which counts what the judge counts. Late steps are
    not counted, since nothing moves meanwhile."""
    steps = min(options.steps or instance.steps or UNPUBLISHED, instance.steps or 10**9)
    fleet = prepared_fleet(
        instance.free.astype(np.uint8), len(instance.starts), options.preprocess, options.budget, goals=GOALS
    )
    taken, share = [], SCHEDULE * options.budget
    with _bar(instance.name, steps) as step:

        def each(_, seconds):
            taken.append(1e3 * seconds)
            step()

        finished, walked, choices = simulate_tasks(fleet, instance, steps, options.budget, None, each, share)
    found = conflicts(walked)
    figures = {"agents": len(instance.starts), "steps": steps, "finished": int(finished[-1])}
    figures["all_valid"] = "Yes" if not found else f"No: {len(found)} conflicts"
    if instance.best_known:
        rate, half = instance.best_known / instance.steps, steps // 2
        figures["of_best"] = float(finished[-1] / steps / rate)
        figures["of_best_late"] = float((finished[-1] - finished[half]) / max(1, steps - 1 - half) / rate)
    p95 = float(np.percentile(taken, 95))
    figures |= {"step_ms": float(np.median(taken)), "step_p95_ms": p95, "step_worst_ms": float(max(taken))}
    return figures | {"choice_ms": 1e3 * float(np.median(choices))}


def verdict_of(kit, file, steps, options, scratch, ours=True):
    """Run the judge on an instance's file -> what it wrote, a dict. ours: or the kit's own. Raises JudgeError"""
    here, build, out = Path(__file__).resolve().parent, kit.resolve() / "build", scratch / "out.json"
    which = ROUNDS[options.year]
    paths = [
        here / which.entry,
        here.parent.parent,
        build,
        *(path for path in sys.path if path.endswith("site-packages")),
    ]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "GPU_PLANNERS_BUDGET_S": str(options.budget),
    }
    limit, preprocess = (round(seconds / which.unit_s) for seconds in (options.limit, options.preprocess))
    command = [build / "lifelong", "-i", file, "-o", out, "--simulationTime", steps, which.limit, limit]
    command += ["--preprocessTimeLimit", preprocess, *which.judge]
    command += [word for option in which.ours for word in (option, str(ours).lower())]
    said = []
    with (scratch / "errors").open("w+") as errors, _bar(file.stem, steps) as step:
        with subprocess.Popen(
            [str(word) for word in command],
            cwd=scratch,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as judge:
            try:
                for line in judge.stdout:
                    if line.startswith(which.called):
                        step()
                    else:
                        said = [*said[-9:], line]
            except BaseException:
                judge.kill()
                raise
        if judge.returncode or not out.exists():
            errors.seek(0)
            why = "preprocessing took too long" if judge.returncode == 124 else "".join(said) + errors.read()[-2000:]
            raise JudgeError(f"the judge ended with {judge.returncode}: {why}")
    return json.loads(out.read_text())


@contextlib.contextmanager
def _bar(name, steps):
    """A bar on a terminal -> what is called for each step."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    console = Console(stderr=True, quiet=not sys.stderr.isatty())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(name, total=steps)
        yield lambda: bar.advance(task)


def _options(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judge", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="instances (default: all that are published)")
    parser.add_argument(
        "--round", type=int, dest="year", default=2023, choices=sorted(ROUNDS), help="of the League (default: 2023)"
    )
    parser.add_argument("--budget", type=float, help="seconds a step (default: 0.05; of 2024 0.5, of 2026 0.8)")
    parser.add_argument("--steps", type=int, help="at most so many (default: as many as are published)")
    parser.add_argument(
        "--limit", type=int, default=1, help="whole seconds, after which a step counts as late (default: 1)"
    )
    parser.add_argument(
        "--preprocess", type=int, default=60, help="whole seconds before the first step (default: 60; published: 1800)"
    )
    parser.add_argument(
        "--build",
        help=f"folder of the judge's Start-Kit; what it lacks is cloned and built (default: ${JUDGE}, here {KIT}, "
        "and for rounds after 2023 the same with the year behind it)",
    )
    parser.add_argument(
        "--simulated", action="store_true", help="by our own simulator of the rules of 2024, without a Start-Kit"
    )
    parser.add_argument("--data", help="folder of the shared data (default: $GPU_PLANNERS_DATA or ../shared/data)")
    parser.add_argument("--out", default="out/judge", help="folder for results.json and results.md")
    options = parser.parse_args(arguments)
    if options.budget is None:
        options.budget = ROUNDS[options.year].budget
    if options.simulated and options.year != 2024:
        parser.error(f"--simulated is for --round 2024, not {options.year}")
    if options.year == 2023 and (unknown := sorted(set(options.names) - set(NAMES))):
        parser.error(f"unknown {', '.join(unknown)}; allowed: {', '.join(NAMES)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
