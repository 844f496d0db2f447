"""What README and docs say in code exists: mypy checks their Python, their names are looked up. The site builds."""

import os
import re
import subprocess
import sys

import pytest
from checkout import ROOT

FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/concepts").glob("*.md"))]
GIVEN = """
from typing import Any
import numpy as np
from gpu_planners.arm import CollisionChecker, rrt_connect
from gpu_planners.arm.collision.world import CollisionWorld
from gpu_planners.arm.robot.model import RobotModel
robot: RobotModel
world: CollisionWorld
checker: CollisionChecker
checkers: list[CollisionChecker]
settings: rrt_connect.Settings
start: Any; goal: Any; starts: Any; goals: Any; trajectory: Any; pose: Any; cells: Any; T_hand_cup: Any
distances: Any; indices: Any; blocks: Any; T_root_grid: Any; shapes: Any; T_hand_tray: Any; T_root_left_hand: Any
"""


def python_of(file):
    """The Python blocks of a document, one after the other."""
    return re.findall(r"^```python\n(.*?)```", file.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_python_of_the_documents_is_right(tmp_path):
    """Every import, attribute and argument, with the types of the package."""
    modules = []
    for file in FILES:
        if blocks := python_of(file):
            given = "" if file.name == "README.md" else GIVEN
            modules.append(tmp_path / f"{file.stem}_md.py")
            modules[-1].write_text(given + "\n".join(blocks), encoding="utf-8")
    assert len(modules) > 4
    config = ("--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache"))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *config, *map(str, modules)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=580,
    )
    assert done.returncode in (0, 1), done.stderr
    kinds = r"attr-defined|call-arg|call-overload|import-not-found|import|name-defined"
    assert re.findall(rf".*_md\.py:.*\[(?:{kinds})\]", done.stdout) == []


def test_names_in_the_text_of_the_readme_are_used_somewhere():
    """Words with an underscore in code spans: each occurs in a file that is no document."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no git checkout")
    words = {"composition_interfaces", "launch_xml", "launch_yaml"}  # others' packages
    for name in listed.stdout.split():
        if name.endswith((".py", ".yaml", ".xml", ".srv", ".msg", ".action", ".txt", ".urdf", ".srdf")):
            words.update(re.findall(r"\w+", name + " " + (ROOT / name).read_text(encoding="utf-8")))
    text = re.sub(r"```.*?```", "", FILES[0].read_text(encoding="utf-8"), flags=re.DOTALL)
    spans = " ".join(re.findall(r"`([^`\n]+)`", text))
    assert set(re.findall(r"[A-Za-z]\w*_\w+", spans)) - words == set()


def test_the_commands_of_figures_exist():
    """What stands after `--only`, and in decisions.md's records, is a benchmark or an attack of soundness."""
    from benchmarks.__main__ import REGISTRY

    texts = [file.read_text(encoding="utf-8") for file in FILES]
    named = {
        name
        for text in texts
        for names in re.findall(r"(?<!demo ARGS=\")--only ([a-z0-9_ ]+)", text)
        for name in names.split()
    }
    records = next(text for text in texts if text.startswith("# Decisions")).split("## Tried")[0]
    named |= {name for names in re.findall(r"\((`\w+`(?:, `\w+`)*)\)", records) for name in re.findall(r"\w+", names)}
    attacks = {file.stem for file in (ROOT / "soundness").glob("*.py")}
    assert len(named) > 20 and not named - REGISTRY.keys() - attacks


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    """Tutorials and gallery are not run, so their pages lack pictures. Broken links between pages are warnings."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed: pip install 'gpu_planners[docs]'")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "--keep-going",
            "-q",
            "-d",
            tmp_path / "doctrees",
            "docs",
            tmp_path / "site",
        ],
        cwd=ROOT,
        env={**os.environ, "SITE_RUNS": ""},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    reference = (tmp_path / "site/reference/arm.html").read_text(encoding="utf-8")
    assert "gpu_planners.arm.rrt_connect.solve" in reference and "max_samples" in reference
    for page in ("parameters.html#", "messages.html", "launch.html", "commands.html"):
        text = (tmp_path / "site/reference" / page.rstrip("#")).read_text(encoding="utf-8")
        assert "arm_planner" in text or "gpu-planners" in text
