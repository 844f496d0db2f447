"""An edit compiles again what is compiled from it, and nothing else."""

import os
import shutil
import subprocess
import sys

import pytest
from checkout import ROOT

MODULES = {
    "arm": "arm.collision.motions",
    "dl14": "papers.dl14.image",
    "bkf11": "papers.bkf11.planar",
    "grid": "grid.exact.rounds",
    "ce12": "papers.ce12.pba_star_search",
    "fleet": "fleet.step.epibt",
}
DIGESTS = f"""
from gpu_planners import sources
print(*(sources.digest("gpu_planners." + module) for module in {list(MODULES.values())}))
"""
COMPILED = """
import numpy as np
from gpu_planners.arm.geometry.poses import identity
from gpu_planners.grid.maps.grid_map import cost_counts
from gpu_planners.parallel.team import deadline_in
identity(), cost_counts(np.zeros((2, 2), np.uint8)), deadline_in(5)
print(*(sum(f.stats.cache_misses.values()) for f in (identity, cost_counts, deadline_in)))
"""
EDITS = {
    "arm/sequence.py": set(),
    "arm/urdf/loader.py": set(),
    "grid/maps/movingai.py": set(),
    "grid/planner.py": {"grid"},
    "errors.py": set(),
    "nodes/common/worker.py": set(),
    "arm/collision/forward.py": {"arm"},
    "papers/bkf11/planar.py": {"bkf11"},
    "fleet/step/epibt.py": {"fleet"},
    "grid/exact/rounds.py": {"grid"},
    "papers/ce12/pba_star_search.py": {"ce12"},
    "device.py": set(MODULES),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A folder with a copy of the package."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "gpu_planners", folder / "gpu_planners", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def printed(folder, code):
    environment = {**os.environ, "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=580
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def edit(folder, file):
    with open(folder / "gpu_planners" / file, "a") as source:
        source.write("# an edit\n")


def test_an_edit_changes_the_products_that_are_compiled_from_the_file(copy):
    before = printed(copy, DIGESTS)
    assert len(set(before)) == len(MODULES)
    for file, changed in EDITS.items():
        edit(copy, file)
        after = printed(copy, DIGESTS)
        assert changed == {name for name, a, b in zip(MODULES, before, after, strict=True) if a != b}, file
        before = after


def test_an_edit_compiles_again_what_is_compiled_from_the_file(copy):
    assert printed(copy, COMPILED) == ["1", "1", "1"]
    for file, compiled in (
        ("arm/sequence.py", "000"),
        ("grid/maps/movingai.py", "000"),
        ("arm/collision/forward.py", "100"),
        ("grid/exact/bits.py", "010"),
        ("parallel/team.py", "111"),
    ):
        edit(copy, file)
        assert "".join(printed(copy, COMPILED)) == compiled, file
        assert "".join(printed(copy, COMPILED)) == "000", file


REGISTERED = """
import sys
from typing import NamedTuple
import numpy as np
from gpu_planners.device import njit
from space import Scratch

@njit
def answer(scratch):
    return scratch.number + 1

print(answer(Scratch(1)), sum(answer.stats.cache_misses.values()))
"""


def test_an_edit_of_a_type_compiles_again_what_takes_it(copy):
    """As spaces have it, whose `motion_free` is registered for the type of their scratch."""
    (copy / "made.py").write_text(REGISTERED)
    space = "from typing import NamedTuple\nclass Scratch(NamedTuple):\n    number: int\n"
    for text, misses in ((space, "1"), (space, "0"), (space + "# an edit\n", "1")):
        (copy / "space.py").write_text(text)
        assert printed(copy, "import made") == ["2", misses]
