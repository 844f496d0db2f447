"""Feeds every reader with inputs that a coverage-guided fuzzer makes: `python -m soundness.fuzz`.

libFuzzer, by atheris (extra `fuzz`), follows the branches of the readers' Python code. Each reader has a process of its
own; what it finds is kept in out/fuzz/NAME, once for each place in the code, and goes to test/corpus/NAME when it is
mended. Exit code 1: something was found.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from .readers import HOSTILE, READERS, attack, corpus, edited

HANG_S, RSS_MB = 60, 3000  # after and beyond which the fuzzer itself ends a process
LENGTH = 1 << 13  # bytes of an input, at most


def main(arguments=None):
    """Returns the exit code."""
    options = _options(arguments)
    if importlib.util.find_spec("atheris") is None:
        print("error: the fuzzer needs the Python package atheris: pip install 'gpu_planners[fuzz]'", file=sys.stderr)
        return 2
    if options.inside:
        return _fuzz(options.only[0], options.out / options.only[0], options.seconds, options.seed)
    rows, waiting, running = [], list(options.only), {}
    while waiting or running:
        while waiting and len(running) < options.jobs:
            name = waiting.pop(0)
            running[name] = _started(name, options)
        name, process = next(iter(running.items()))
        process.wait()
        errors = (options.out / f"{name}.log").read_text(errors="replace")
        del running[name]
        rows.append(_row(name, options.out / name, errors, process.returncode))
        print("| {name} | {runs} | {branches} | {found} |".format(**rows[-1]), flush=True)
    (options.out / "fuzz.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    for row in rows:
        for file, what in row["findings"].items():
            print(f"\n{row['name']}: {what}\n  {file}")
    return int(any(row["found"] for row in rows))


def _started(name, options):
    command = [sys.executable, "-m", "soundness.fuzz", "--inside", "--only", name, "--out", str(options.out)]
    command += ["--seconds", str(options.seconds), "--seed", str(options.seed)]
    environment = os.environ | {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / f"{name}.log", "wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


def _row(name, folder, errors, code):
    """What a process has done: it writes each finding when it makes it."""
    findings = {str(file): file.with_suffix(".txt").read_text() for file in folder.glob("*.input")}
    for kind in ("crash", "timeout", "oom", "leak"):
        for file in folder.glob(f"{kind}-*"):
            findings[str(file)] = {"timeout": f"longer than {HANG_S} s", "oom": f"more than {RSS_MB} MB"}.get(
                kind, kind
            )
    if code and not findings:
        findings["stderr"] = f"the process ended with {code}: {errors[-2000:]}"
    covered = re.findall(r"cov: (\d+)", errors)
    runs = re.search(r"number_of_executed_units:\s*(\d+)", errors) or re.search(r".*#(\d+)", errors, re.DOTALL)
    return {
        "name": name,
        "runs": int(runs[1]) if runs else 0,
        "branches": int(covered[-1]) if covered else 0,
        "found": len(findings),
        "findings": findings,
    }


def _fuzz(name, folder, seconds, seed):
    import atheris

    reader = READERS[name]
    with atheris.instrument_imports(include=list(reader.modules), enable_loader_override=False):
        for module in reader.modules:
            importlib.import_module(module)
        work = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
        reader.beside(work)
        seeds = corpus(name)
        for content in seeds:  # what is imported late is imported now
            attack(reader, content, work)
    folder.mkdir(parents=True, exist_ok=True)
    begun = folder / "seeds"
    begun.mkdir(exist_ok=True)
    for content in seeds:
        (begun / hashlib.sha1(content).hexdigest()).write_bytes(content)
    (folder / "words").write_text("\n".join(_words(seeds)), encoding="utf-8")
    seen = set()

    def mutated(content, longest, number):
        draw = random.Random(number)
        if draw.random() < 0.3:
            return reader.mended(atheris.Mutate(content, longest))[:longest]
        edits = [tuple(draw.randrange(1 << 20) for _ in range(3)) for _ in range(draw.randint(1, 4))]
        return reader.mended(edited(content, edits))[:longest]

    def one_input(content):
        found = attack(reader, content, work)
        if found and (kind := found.splitlines()[0]) not in seen:
            seen.add(kind)
            file = folder / f"{hashlib.sha1(content).hexdigest()[:12]}.input"
            file.write_bytes(content)
            file.with_suffix(".txt").write_text(found, encoding="utf-8")

    atheris.Setup(
        [
            "fuzz",
            f"-max_total_time={max(1, round(seconds))}",
            f"-seed={seed + 1}",
            f"-timeout={HANG_S}",
            f"-rss_limit_mb={RSS_MB}",
            f"-max_len={max(LENGTH, 2 * max(map(len, seeds)))}",
            f"-dict={folder / 'words'}",
            f"-artifact_prefix={folder}/",
            "-print_final_stats=1",
            str(begun),
        ],
        one_input,
        custom_mutator=mutated,
    )
    atheris.Fuzz()  # ends the process
    return 0


def _words(seeds):
    """A dictionary for libFuzzer: the words of the seeds, and values that nobody expects."""
    words = {word for word in HOSTILE if 0 < len(word) < 60}
    for content in seeds:
        words |= set(re.findall(rb"[A-Za-z_:]{3,40}", content)[:300])
    for word in sorted(words):
        yield (
            '"'
            + "".join(
                chr(c) if c < 128 and chr(c).isalnum() or chr(c) in " ._-<>!&*[]{}'/:" else f"\\x{c:02x}" for c in word
            )
            + '"'
        )


def _options(arguments):
    parser = argparse.ArgumentParser(prog="python -m soundness.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="for each reader (default 600)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="readers at a time")
    parser.add_argument("--only", nargs="+", choices=tuple(READERS), default=list(READERS), metavar="NAME",
                        help=f"of {', '.join(READERS)}")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
