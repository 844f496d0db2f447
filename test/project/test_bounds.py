"""The lowest and the highest libraries that setup.py allows plan for an arm, a grid and a fleet, and compile foreign
functions and kernels as if we were not there, each in an environment of its own."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT, copy_checkout, setup_arguments
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

(GPU,) = map(Requirement, setup_arguments()["extras_require"]["gpu"])
LIBRARIES = {each.name: each for each in (*map(Requirement, setup_arguments()["install_requires"]), GPU)}
FOREIGN = {"foreign_code.py": "differences []; loaded 0", "foreign_kernels.py": "fits True; differences []"}


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lower(requirement):
    (bound,) = (Version(each.version) for each in requirement.specifier if each.operator == ">=")
    return bound


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    return loaded("release").build(copy_checkout(folder / "checkout"), folder)[1]


@pytest.mark.slow
@pytest.mark.timeout(1800)  # two sets of libraries, and code that is compiled anew for each
@pytest.mark.parametrize("which", ["lowest-direct", "highest"])
def test_the_bounds_of_setup_py_plan(wheel, tmp_path, which):
    options = loaded("setup_environment").uv_options()
    if options is None:
        pytest.skip("uv, which chooses the lowest versions, is not installed, or does not know this machine's options")
    words, environment = options
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    python = tmp_path / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True, env=environment)
    command = (ROOT / ".venv/bin/uv", "pip", "install", "-q", "--python", python, "--resolution", which, "--no-build")
    direct = [*map(str, LIBRARIES.values()), wheel]  # what a wheel asks for is not direct
    done = subprocess.run([*command, *words, *direct], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (site,) = tmp_path.glob("venv/lib/python3*/site-packages")
    installed = {}
    for found in site.glob("*.dist-info"):
        name, _, version = found.name.removesuffix(".dist-info").partition("-")
        installed[name.replace("_", "-").lower()] = Version(version)
    print(which, {name: str(installed[name]) for name in LIBRARIES})
    if which == "lowest-direct" and sys.version_info < (3, 12):  # later Pythons have no wheels of the lowest ones
        assert {name: installed[name] for name in LIBRARIES} == {name: lower(each) for name, each in LIBRARIES.items()}
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "code")
    for program, expected in FOREIGN.items():
        command = [python, ROOT / "test" / program]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.stdout.strip() == expected, done.stdout + done.stderr
    trial = Path(ROOT, "tools/try_installed.py")
    done = subprocess.run([python, "-I", trial], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(site) in done.stdout and "gpu-planners plan" in done.stdout


def test_pages_and_files_name_the_same_bounds():
    line = re.search(r'(?m)^pip install "(numba-cuda.+?)"', (ROOT / "docs/install.md").read_text("utf-8"))
    assert Requirement(line[1]) == GPU
    pixi = re.search(r'numba-cuda = \{ version = "(.+?)"', (ROOT / "pixi.toml").read_text("utf-8"))
    assert SpecifierSet(pixi[1]) == GPU.specifier
    assert f"older than {lower(LIBRARIES['numba'])}" in (ROOT / "package.xml").read_text("utf-8")
