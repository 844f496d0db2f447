"""Releases: one version everywhere; what sdist and wheel hold; the wheel plans with nothing but what it requires."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from checkout import PACKAGE, ROOT, copy_checkout, setup_arguments, shared_files

spec = importlib.util.spec_from_file_location("release", ROOT / "tools/release.py")
release = importlib.util.module_from_spec(spec)
spec.loader.exec_module(release)


@pytest.fixture
def checkout(tmp_path):
    """The files that name the version."""
    for file in release.VERSIONS:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    for file in tmp_path.rglob("package.xml"):
        file.write_text(file.read_text().replace(release.NOBODY, "somebody@planners.org"))
    return tmp_path


def test_all_files_name_the_same_version():
    assert set(release.versions(ROOT).values()) == {setup_arguments()["version"]}


@pytest.mark.parametrize("file", release.VERSIONS)
def test_a_version_that_differs_is_named(checkout, file):
    text = (checkout / file).read_text()
    (checkout / file).write_text(text.replace(release.versions(ROOT)[file], "9.8.7", 1))
    assert f"{file}: 9.8.7" in release.problems(checkout)[0]


def test_one_command_sets_the_version_everywhere(checkout):
    changes = checkout / "CHANGELOG.rst"
    release.set_version(checkout, "10.20.30", "2031-02-03")
    assert set(release.versions(checkout).values()) == {"10.20.30"} and release.problems(checkout) == []
    assert "\n10.20.30 (2031-02-03)\n---------------------\n* " in changes.read_text()
    cited = yaml.safe_load((checkout / "CITATION.cff").read_text())
    assert (cited["version"], str(cited["date-released"])) == ("10.20.30", "2031-02-03")
    with pytest.raises(SystemExit, match="begin it with a section"):  # nothing is new
        release.set_version(checkout, "10.20.31", "2031-02-04")
    (checkout / "CITATION.cff").write_text("version: 10.20.30\ndate-released: 2031-02-02\n")
    assert "2031-02-02" in release.problems(checkout)[0]


@pytest.mark.parametrize("file", release.MANIFESTS)
def test_a_release_needs_a_maintainer(checkout, file):
    """Of all packages; whoever releases fills in a real one."""
    before = release.problems(checkout)
    shutil.copy(ROOT / file, checkout / file)
    (told,) = set(release.problems(checkout)) - set(before)
    assert told.startswith(f"{file}: maintainer: {release.NOBODY}")


def test_bloom_finds_all_packages_in_what_is_released(tmp_path):
    """It looks no further below a folder with a package.xml."""
    if subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True).returncode:
        pytest.skip("no git checkout")
    with tarfile.open(release.upstream(ROOT, tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    version = setup_arguments()["version"]
    found, todo = set(), [tmp_path / f"gpu_planners-{version}"]
    while todo:
        folder = todo.pop()
        if (folder / "package.xml").exists():
            assert (folder / "CHANGELOG.rst").exists() and f"<version>{version}<" in (
                folder / "package.xml"
            ).read_text()
            found.add(folder.name)
        else:
            todo += [each for each in folder.iterdir() if each.is_dir()]
    assert found == {"gpu_planners", "gpu_planners_msgs", "gpu_planners_moveit", "gpu_planners_nav2"}


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3rc1"])
def test_what_ros_does_not_take_is_no_version(checkout, version):
    with pytest.raises(SystemExit, match="three numbers"):
        release.set_version(checkout, version, "2031-02-03")


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """(sdist, wheel), the wheel made from the sdist."""
    if int(metadata.version("setuptools").split(".")[0]) < 71:
        pytest.importorskip("wheel", reason="building a wheel needs setuptools 71 or the package wheel")
    folder = tmp_path_factory.mktemp("packages")
    return release.build(copy_checkout(folder / "checkout"), folder)


@pytest.mark.slow
def test_a_package_index_takes_the_metadata(packages):
    told = release.check_metadata(*packages)
    assert str(told.version) == setup_arguments()["version"] and "3.10" in str(told.requires_python)


@pytest.mark.slow
def test_the_sdist_holds_what_git_tracks(packages):
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no git checkout")
    with tarfile.open(packages[0]) as archive:
        held = {file.name.partition("/")[2] for file in archive if file.isfile()}
    assert {name for name in listed.stdout.splitlines() if (ROOT / name).exists()} - held == set()
    assert not [name for name in held if "__pycache__" in name or "/out/" in name]


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_its_shared_files(packages):
    names = set(zipfile.ZipFile(packages[1]).namelist())
    modules = {str(p.relative_to(ROOT)) for kind in ("*.py", "*.pyi") for p in PACKAGE.rglob(kind)}
    assert modules - names == set()
    share = "/data/share/gpu_planners/"
    assert {name.split(share)[1] for name in names if share in name} == shared_files(ROOT)
    assert not [
        name
        for name in names
        if name.startswith(("test/", "benchmarks/", "examples/", *(f"{inner}/" for inner in release.INNER)))
    ]


def required(name, extras=frozenset(), found=None):
    """{name: distribution} of a package and all that it requires, as they are installed here."""
    from packaging.requirements import Requirement

    found = {} if found is None else found
    if (name, extras) not in found:
        found[name, extras] = distribution = metadata.distribution(name)
        for requirement in map(Requirement, distribution.requires or ()):
            if not requirement.marker or any(requirement.marker.evaluate({"extra": extra}) for extra in {"", *extras}):
                required(requirement.name, frozenset(requirement.extras), found)
    return {name: distribution for (name, _), distribution in found.items()}


@pytest.mark.slow
def test_the_wheel_plans_with_nothing_but_what_it_requires(packages, tmp_path):
    """In an empty environment, with links to what is installed here: no package index is asked."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    python = tmp_path / "bin/python"
    options = ("--no-deps", "--no-index", "--disable-pip-version-check", "-q")
    # what PYTHONPATH brings would count as installed
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    install = [sys.executable, "-m", "pip", "--python", python, "install", *options, packages[1]]
    subprocess.run(install, check=True, env=environment)
    (site,) = tmp_path.glob("lib/python3*/site-packages")
    needed = required("gpu_planners")
    del needed["gpu_planners"]
    assert {"numba", "numpy", "llvmlite", "trimesh", "networkx"} <= needed.keys() and "pytest" not in needed
    for distribution in needed.values():
        for top in {file.parts[0] for file in distribution.files if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(distribution.locate_file(top)))
    trial = shutil.copy(ROOT / "tools/try_installed.py", tmp_path)
    done = subprocess.run([python, "-I", trial], cwd=tmp_path, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(site / "gpu_planners") in done.stdout and "gpu-planners plan" in done.stdout
