"""Write docs/benchmarks.md from the results of one or several machines, re-checking paths where theirs had no coal:

python -m benchmarks.write_docs out/bench/results.json other_machine/results.json

Several files of one machine, each with some of the benchmarks, become one chapter.
"""

import argparse
from pathlib import Path

from . import arm_planners, report

HEAD = """# Benchmarks

Measured by `make bench` on the machines named below. The column "quoted, not measured here" holds figures of other
projects from other machines. Each chapter says when it was run. This file is
written by `python -m benchmarks.write_docs`."""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks.md"))
    parser.add_argument("--data", help="folder of the shared data, for paths that are still to be re-checked")
    options = parser.parse_args(arguments)
    machines = {}
    for file in options.results:
        results = report.read_json(file)
        for table in results["tables"]:
            table["rows"] = [arm_planners.recheck(row, options.data) for row in table["rows"]]
        name = results["machine"]["gpu"] or f"{results['machine']['cpu']}, {results['machine']['cores']} cores"
        machines[name] = _joined(machines[name], results) if name in machines else results
    parts = [HEAD]
    for name, results in machines.items():
        parts.append(report.markdown(results, title=name).replace("\n## ", "\n### ").replace("# ", "## ", 1))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n\n".join(part.strip() for part in parts) + "\n", encoding="utf-8")
    print(f"wrote {options.out}")


def _joined(before, results):
    """Two runs of one machine as one: a benchmark that both have is taken from the later."""
    tables = {table["name"]: table for table in before["tables"] + results["tables"]}
    return results | {"tables": list(tables.values()), "command": f"{before['command']}`, `{results['command']}"}


if __name__ == "__main__":
    main()
