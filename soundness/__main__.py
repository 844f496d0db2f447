"""Attack gpu_planners: `python -m soundness` or `make soundness`. docs/soundness.md says what is attacked and how."""

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

from .harness import Run, Skipped, Tally, generator
from .report import Table

NAMES = (
    "contacts",
    "pairs",
    "motions",
    "meshes",
    "worlds",
    "changes",
    "far",
    "margins",
    "paths",
    "constraints",
    "curves",
    "timing",
    "queries",
    "stops",
    "physics",
    "grids",
    "poses",
    "fleets",
    "tasks",
    "orders",
    "limits",
    "arguments",
)

TRIED = 100  # cases of an attack that are skipped before it is given up, if none is made
OWN = "gpu_planners", "soundness", "benchmarks"


def attack_named(name):
    return importlib.import_module(f".{name}", __package__).ATTACK


def run_case(run, attack, tally, number):
    """Run one case and count it; returns whether it could be made. An exception is a failure of that case."""
    tally.number, began = number, time.perf_counter()
    try:
        attack.case(run, generator(tally.seed, attack.name, number), number, tally)
        tally.cases += 1
        return True
    except Skipped as why:
        if str(why):
            tally.skipped[str(why)] += 1
        return False
    except Exception as error:  # what the package raises where no error was asked for is a finding as well
        missing = error.name.partition(".")[0] if isinstance(error, ModuleNotFoundError) and error.name else OWN[0]
        if missing not in OWN:
            tally.skipped[f"the Python package {missing} is not installed"] += 1
            return False
        tally.cases += 1
        tally.fail(f"{type(error).__name__}: {error}")
        return True
    finally:
        tally.seconds += time.perf_counter() - began


def main(arguments=None):
    """Returns the exit code: 0; 1 when anything was wrong."""
    options = _options(arguments)
    run = Run(("cpu",) if options.device == "cpu" else ("cpu", options.device), options.robots, options.robots_folder)
    attacks = [attack_named(name) for name in options.only]
    by_name = {attack.name: attack for attack in attacks}
    tallies = {name: Tally(name, options.seed, options.device) for name in by_name}
    began, following = time.perf_counter(), dict.fromkeys(tallies, options.first_case)
    compiling = dict.fromkeys(tallies, 0.0)  # seconds of an attack's first case: it compiles, or loads what is compiled
    with Table(attacks, tallies) as table:
        try:
            if options.case is not None:
                for attack in attacks:
                    run_case(run, attack, tallies[attack.name], options.case)
            while options.case is None and not (options.seconds and time.perf_counter() - began > options.seconds):
                going = [tally for tally in tallies.values() if tally.cases or tally.skipped.total() < TRIED]
                if not going:
                    break
                tally = min(going, key=lambda tally: tally.seconds - compiling[tally.name])
                run_case(run, by_name[tally.name], tally, following[tally.name])
                following[tally.name] += 1
                if tally.cases == 1 and not compiling[tally.name]:
                    compiling[tally.name] = tally.seconds
                table.update()
        except KeyboardInterrupt:
            pass
    for tally in tallies.values():
        for who, (least, median, most) in tally.as_dict()["rest_s"].items():
            print(f"{tally.name}: at rest {median:.2f} s after {who} ({least:.2f} to {most:.2f})")
        for why, times in tally.skipped.items():
            print(f"{tally.name}: {times} cases skipped: {why}")
        for failure in tally.failures:
            print(f"\nWRONG ({tally.name}): {failure['what']}\n  {failure['reproduce']}")
    if options.json:
        content = {
            "command": " ".join(["python -m soundness", *(sys.argv[1:] if arguments is None else arguments)]),
            "seconds": round(time.perf_counter() - began, 1),
            "seed": options.seed,
            "attacks": {name: tally.as_dict() for name, tally in tallies.items()},
        }
        Path(options.json).write_text(json.dumps(content, indent=1), encoding="utf-8")
    return int(any(tally.wrong for tally in tallies.values()))


def _options(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m soundness", description="Look for wrong answers of gpu_planners, against independent oracles."
    )
    parser.add_argument("--seconds", type=float, default=600, help="how long; 0: until Ctrl-C (default 600)")
    parser.add_argument(
        "--seed", type=int, default=0, help="of all cases: the same seed gives the same cases in the same order"
    )
    parser.add_argument(
        "--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=f"of {', '.join(NAMES)}"
    )
    parser.add_argument("--case", type=int, help="run this case alone, to see a failure again")
    parser.add_argument(
        "--first-case", type=int, default=0, help="number of the first case, to go on where a run ended"
    )
    parser.add_argument(
        "--device",
        default="cpu",
        help="cpu; or cuda, cuda:N: the CPU and that device, compared with each other as well",
    )
    parser.add_argument("--robots", nargs="+", metavar="NAME", help="attack only these robots")
    parser.add_argument(
        "--robots-folder", help="folder with panda_description and others (default: the installed example-robot-data)"
    )
    parser.add_argument("--json", help="file for the counts")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
