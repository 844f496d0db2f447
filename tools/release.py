#!/usr/bin/env python3
"""Makes a release and checks it. It uploads nothing and pushes nothing.

  tools/release.py check          name what is wrong with the versions
  tools/release.py set 0.2.0      write this version, and today's date, wherever they stand; review, then commit
  tools/release.py packages       sdist and wheel into dist/: metadata checked; each is tried in an empty environment
  tools/release.py upstream       dist/gpu_planners-VERSION-ros.tar.gz: what bloom takes, the packages side by side
  tools/release.py make           all checks, `make test-all`, the packages and docs, then the tag

CHANGELOG.rst begins with what is new, under the heading "0.2.0 (unreleased)"; `set` dates it.
"""

import argparse
import datetime
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NUMBER = r"\d+\.\d+\.\d+"
INNER = "gpu_planners_msgs", "gpu_planners_moveit", "gpu_planners_nav2"  # packages inside of gpu_planners'
MANIFESTS = "package.xml", *(f"{name}/package.xml" for name in INNER)
VERSIONS = {  # file: what the version stands between
    "gpu_planners/__init__.py": r'(?m)(?<=^__version__ = ")[^"]+',
    **dict.fromkeys(MANIFESTS, r"(?<=<version>)[^<]+"),
    "CITATION.cff": r"(?m)(?<=^version: ).+",
    "CHANGELOG.rst": rf"(?m)^{NUMBER}(?= \()",  # its first heading
}
NOBODY = "maintainer@example.com"  # a build farm sends mail about builds that fail to the address of package.xml
DATED = r"(?<= \()(\d{4}-\d\d-\d\d|unreleased)(?=\)\n-)"  # in that heading
FOREIGN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH")


def versions(root):
    """{file: the version it names, or None}"""
    found = {file: re.search(pattern, (root / file).read_text("utf-8")) for file, pattern in VERSIONS.items()}
    return {file: match and match[0] for file, match in found.items()}


def problems(root):
    """What is wrong with the versions, maintainers and dates, in words."""
    named, told = versions(root), []
    if len(set(named.values())) > 1:
        told.append("versions differ: " + ", ".join(f"{file}: {version}" for file, version in named.items()))
    for file in MANIFESTS:
        if NOBODY in (root / file).read_text("utf-8"):
            told.append(f"{file}: maintainer: {NOBODY} is nobody; fill in who receives the build farm's mail")
    date = re.search(DATED, (root / "CHANGELOG.rst").read_text("utf-8"))
    cited = re.search(r"(?m)(?<=^date-released: ).+", (root / "CITATION.cff").read_text("utf-8"))
    if not date or date[0] == "unreleased":
        told.append("CHANGELOG.rst: the first section has no date: tools/release.py set VERSION")
    elif not cited or cited[0] != date[0]:
        told.append(f"CITATION.cff: date-released is {cited and cited[0]}, the changelog's date {date[0]}")
    return told


def set_version(root, version, today):
    """Write a version and a date into all files. Refuses a changelog without a section for what is unreleased."""
    if not re.fullmatch(NUMBER, version):
        raise SystemExit(f"release: {version}: a version is three numbers, 0.2.0")
    changes = root / "CHANGELOG.rst"
    date = re.search(DATED, changes.read_text("utf-8"))
    if not date or date[0] != "unreleased":
        raise SystemExit(f'release: CHANGELOG.rst: begin it with a section "{version} (unreleased)" of what is new')
    for file, pattern in VERSIONS.items():
        text = (root / file).read_text("utf-8")
        (root / file).write_text(re.sub(pattern, version, text, count=1), "utf-8")
    text = changes.read_text("utf-8")
    heading = re.search(rf"({NUMBER} \()unreleased\)\n-+\n", text)
    dated = f"{heading[1]}{today})"
    changes.write_text(text.replace(heading[0], f"{dated}\n{'-' * len(dated)}\n", 1), "utf-8")
    citation = root / "CITATION.cff"
    text = re.sub(r"(?m)^date-released: .+\n", "", citation.read_text("utf-8"))
    citation.write_text(re.sub(r"(?m)^(version: .+\n)", rf"\1date-released: {today}\n", text), "utf-8")


def build(root, folder):
    """-> (sdist, wheel), the wheel built from the sdist, with setuptools as it is installed."""
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(folder)!r})"
    run(sys.executable, "-c", code, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (sdist,) = folder.glob("*.tar.gz")
    options = ("--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-q")
    run(sys.executable, "-m", "pip", "wheel", *options, "-w", folder, sdist)
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def check_metadata(sdist, wheel):
    """Both files tell a package index the same, in the words that it accepts."""
    from packaging.metadata import Metadata

    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        of_wheel = archive.read(name)
    with tarfile.open(sdist) as archive:
        of_sdist = archive.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/PKG-INFO").read()
    assert of_wheel == of_sdist, "the metadata of sdist and wheel differ"
    metadata = Metadata.from_email(of_wheel, validate=True)
    assert metadata.license_files == ["LICENSE"] and metadata.description
    assert "](docs" not in metadata.description, "README's links to files lead nowhere in a package index"
    return metadata


def try_out(package, python=sys.executable):
    """Install a wheel or an sdist into an empty environment, and plan with it away from the checkout."""
    environment = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", f"{folder}/venv", env=environment)
        options = ("--disable-pip-version-check", "-q")
        run(f"{folder}/venv/bin/python", "-m", "pip", "install", *options, package, cwd=folder, env=environment)
        trial = shutil.copy(ROOT / "tools/try_installed.py", folder)
        run(f"{folder}/venv/bin/python", trial, cwd=folder, env=environment)


def packages(root, pythons):
    """sdist and wheel of what git has, in dist/; each is tried with each Python."""
    with tempfile.TemporaryDirectory() as folder:
        clone, made = Path(folder, "clone"), Path(folder, "made")
        run("git", "clone", "-q", root, clone)
        made.mkdir()
        files = build(clone, made)
        check_metadata(*files)
        for python in pythons:
            for file in files:
                print(f"{file.name}, {python}:", flush=True)
                try_out(file, python)
        (root / "dist").mkdir(exist_ok=True)
        for file in files:
            print(shutil.copy(file, root / "dist"), f"{file.stat().st_size / 1e6:.2f} MB")


def upstream(root, folder):
    """The ROS packages of what git has, side by side with one changelog, in an archive in a folder -> its path.

    bloom and the build farm do not look inside a package, where the others lie. "tar" is bloom's word for such an
    upstream.
    """
    version = versions(root)["gpu_planners/__init__.py"]
    with tempfile.TemporaryDirectory() as place:
        top = Path(place, f"gpu_planners-{version}")
        run("git", "clone", "-q", root, top / "gpu_planners")
        shutil.rmtree(top / "gpu_planners/.git")
        for name in INNER:
            shutil.move(top / "gpu_planners" / name, top)
            shutil.copy(root / "CHANGELOG.rst", top / name)
        shutil.copy(root / "LICENSE", top)
        folder.mkdir(exist_ok=True)
        with tarfile.open(folder / f"{top.name}-ros.tar.gz", "w:gz") as archive:
            archive.add(top, top.name)
    return folder / f"{top.name}-ros.tar.gz"


def make(root, pythons):
    version, told = versions(root)["gpu_planners/__init__.py"], problems(root)
    if run("git", "status", "--porcelain", cwd=root, capture_output=True, text=True).stdout:
        told.append("there are changes that are not committed")
    if run("git", "tag", "--list", version, cwd=root, capture_output=True, text=True).stdout:
        told.append(f"the tag {version} exists")
    if told:
        sys.exit("release: " + "\nrelease: ".join(told))
    run("make", "test-all", "docs", cwd=root)
    packages(root, pythons)
    upstream(root, root / "dist")
    run("git", "tag", "-a", version, "-m", f"gpu_planners {version}", cwd=root)
    print(f"the tag {version} is made; left to do: git push origin {version}, and twine upload dist/*{version}*")


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("check", "set", "packages", "upstream", "make"))
    parser.add_argument("version", nargs="?")
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="the Pythons to try the packages with")
    options = parser.parse_args()
    if options.action == "set":
        set_version(ROOT, options.version or parser.error("which version?"), datetime.date.today().isoformat())
    if options.action == "packages":
        packages(ROOT, options.python)
    if options.action == "upstream":
        print(upstream(ROOT, ROOT / "dist"))
    if options.action == "make":
        make(ROOT, options.python)
    if options.action in ("check", "set"):
        sys.exit("\n".join(problems(ROOT)) or None)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"release: {error}")
