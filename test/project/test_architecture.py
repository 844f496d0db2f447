"""ARCHITECTURE.md is true: its floors hold for every import, nothing imports in circles, and what it names exists."""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

from checkout import PACKAGE, ROOT, python_files

TEXT = (ROOT / "ARCHITECTURE.md").read_text()
OPTIONAL = ("cuda", "_cuda", "stream", "drawing", "browser")  # ends of the names of modules that may be imported lazily


def module_name(file):
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for file in python_files(PACKAGE)}


def import_statements(node, lazy=False):
    """(import statement, whether it stands in a function) of everything below a node."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, lazy
        elif isinstance(child, (ast.stmt, ast.ExceptHandler)):
            yield from import_statements(child, lazy or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)))


def imported_modules(file):
    """{module of the package: whether it is imported when `file` is}; a name from a package's __init__ counts as the
    package."""
    package = file.relative_to(ROOT).with_suffix("").parts[:-1]
    found = {}
    for node, lazy in import_statements(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base = ".".join(base + (node.module.split(".") if node.module else []))
            names = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names]
        for name in names:
            if name in MODULES:
                found[name] = found.get(name, False) or not lazy
    return found


@functools.cache
def all_imports():
    return {name: imported_modules(file) for name, file in MODULES.items()}


@functools.cache
def floors():
    """The table "Floors": [[names of packages and modules], ...], the lowest first."""
    table = TEXT[TEXT.index("| floor |") :].split("\n\n")[0]
    return [re.findall(r"`([\w.]+)`", row.split("|")[1]) for row in table.splitlines()[2:]]


@functools.cache
def floor_of(module):
    """The number of the floor that the longest name of the table gives a module."""
    short = module.removeprefix("gpu_planners").removeprefix(".")
    places = {name: number for number, row in enumerate(floors()) for name in row}
    fitting = [name for name in places if short == name or short.startswith(name + ".")]
    assert fitting, f"ARCHITECTURE.md gives {module} no floor"
    return places[max(fitting, key=len)], max(fitting, key=len)


def test_the_table_was_read():
    names = [name for row in floors() for name in row]
    assert len(names) > 20 and len(names) == len(set(names)) and {"errors", "arm.collision", "nodes.grid"} <= set(names)
    missing = [name for name in names if f"gpu_planners.{name}" not in MODULES]
    assert not missing, f"the table of floors names {missing}, which do not exist"


def test_a_module_imports_only_from_lower_floors_or_its_own_package():
    wrong = []
    for module, found in all_imports().items():
        if module != "gpu_planners":
            floor, own = floor_of(module)
            for name in found.keys() - {"gpu_planners"}:
                other, package = floor_of(name)
                if other > floor or (other == floor and package != own):
                    wrong.append(f"{module} imports {name}")
    assert wrong == []


def test_nothing_of_production_imports_or_loads_the_papers():
    importing = [(module, name) for module, found in all_imports().items() for name in found if in_papers(name)]
    assert [pair for pair in importing if not in_papers(pair[0])] == []
    run = subprocess.run([sys.executable, "-c", PLAN], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.stdout.strip() == "[]", run.stderr


PLAN = """
import sys
import numpy as np
from gpu_planners.arm import prm
from gpu_planners.grid import BlockPlanner, GridMap
prm.solve
for algorithm in ("exact", "astar"):
    BlockPlanner(GridMap(np.ones((5, 5), np.uint8)), algorithm, device="cpu").plan([[0, 0]], [4, 4])
print([name for name in sys.modules if name.startswith("gpu_planners.papers")])
"""


def in_papers(module):
    return module.startswith("gpu_planners.papers")


def circles(graph):
    """Strongly connected components of more than one node, by Tarjan's algorithm."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in graph[node]:
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            group = []
            while not group or group[-1] != node:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    for node in graph:
        if node not in number:
            visit(node)
    return found


def test_circles_are_found():
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a"]}) == [["b", "c"]]


def test_no_module_imports_in_a_circle():
    """Imports inside functions count. A package's __init__ is not followed: it only gathers names."""
    packages = {name for name, file in MODULES.items() if file.name == "__init__.py"}
    graph = {name: [other for other in found if other not in packages] for name, found in all_imports().items()}
    assert circles(graph) == []


def test_no_package_imports_in_a_circle():
    graph = {}
    for module, found in all_imports().items():
        if module != "gpu_planners":
            own = floor_of(module)[1]
            packages = {floor_of(name)[1] for name in found if name != "gpu_planners"} - {own}
            graph[own] = graph.get(own, set()) | packages
    assert circles(graph) == []


def test_only_optional_things_are_imported_lazily():
    lazy = [(m, name) for m, found in all_imports().items() for name, at_import in found.items() if not at_import]
    allowed = [
        pair
        for pair in lazy
        if pair[1].endswith(OPTIONAL) or pair[0].startswith(("gpu_planners.cli", "gpu_planners.nodes"))
    ]
    assert set(lazy) == set(allowed)


def test_named_paths_exist():
    names = set(re.findall(r"`([\w./]+(?:\.py|\.md|/))`", TEXT))
    assert len(names) > 10
    places = [ROOT, PACKAGE]
    missing = [name for name in names if not any((Path(place) / name).exists() for place in places)]
    assert not missing, f"ARCHITECTURE.md names {missing}, which do not exist"


def test_nothing_refers_to_files_outside_the_project():
    outside = re.compile(r"\b(DESIGN|STYLE|GPU_NOTES|ROS_NOTES|MOTION_BOUNDS|FLEETS|PEERS)(\.md)?\b")
    found = []
    for file in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *(p for f in FOLDERS for p in (ROOT / f).rglob("*.py"))]:
        if file != Path(__file__).resolve() and outside.search(file.read_text(encoding="utf-8")):
            found.append(str(file.relative_to(ROOT)))
    assert found == []


FOLDERS = ("gpu_planners", "test", "benchmarks", "soundness", "tools", "launch")
