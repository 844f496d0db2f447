"""Write docs/benchmarks.md from the results of one or several machines:

python -m benchmarks.write_docs out/bench/results.json other_machine/results.json
"""

import argparse
from pathlib import Path

from . import report

HEAD = """# Benchmarks

Measured by `make bench` on the machines named below. The column "quoted, not measured here" holds figures of other
projects from other machines. This file is written by `python -m benchmarks.write_docs`."""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks.md"))
    options = parser.parse_args(arguments)
    parts = [HEAD]
    for file in options.results:
        results = report.read_json(file)
        name = results["machine"]["gpu"] or f"{results['machine']['cpu']}, {results['machine']['cores']} cores"
        parts.append(report.markdown(results, title=name).replace("\n## ", "\n### ").replace("# ", "## ", 1))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n\n".join(part.strip() for part in parts) + "\n", encoding="utf-8")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
