"""The checkout seen by the tests of packaging and layering: its files, its imports, what setup.py declares."""

import ast
import os
import runpy
import shutil
import sys
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "gpu_planners"
NOT_SOURCE = (
    ".git",
    ".venv",
    "build",
    "install",
    "log",
    "out",
    "__pycache__",
    "*.egg-info",
    ".pytest_cache",
    ".hypothesis",
    ".ruff_cache",
)


def copy_checkout(folder):
    """A copy without what is built, where a build leaves no trace in the checkout."""
    return Path(shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_SOURCE)))


def setup_arguments():
    """The keyword arguments that setup.py gives to setuptools.setup."""
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        with mock.patch("setuptools.setup") as called:
            runpy.run_path("setup.py")
    finally:
        os.chdir(before)
    return called.call_args.kwargs


def shared_files(root):
    """What must lie in share/gpu_planners: the package's own list, found apart from setup.py."""
    files = [root / "package.xml"]
    for folder in ("launch", "config", "urdf"):
        files += [p for p in (root / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return {str(file.relative_to(root)) for file in files}


def python_files(folder, without=()):
    return [p for p in sorted(folder.rglob("*.py")) if not set(without) & set(p.relative_to(folder).parts)]


def imports(file):
    """(absolute dotted name, whether it runs when the module is imported) of every import statement of a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    lazy = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for inner in ast.walk(node)
    }
    package = file.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += node.module.split(".") if node.module else []
            names = [".".join([*base, alias.name]) for alias in node.names]
        else:
            continue
        for name in names:
            yield name, id(node) not in lazy


def third_party(file):
    """(top-level name, whether it runs at import) of what is neither the standard library nor this checkout."""
    own = {"gpu_planners", "benchmarks"} | {p.stem for p in (ROOT / "test").rglob("*.py")}
    for name, at_import in imports(file):
        top = name.split(".")[0]
        if top not in sys.stdlib_module_names and top not in own:
            yield top, at_import
