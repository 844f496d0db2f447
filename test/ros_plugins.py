"""Our C++ plugins, whose sources lie beside the package: what they declare, and builds of them, for tests."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from checkout import ROOT


def prefix_of(name):
    """Where a ROS package is installed, or None."""
    try:
        return get_package_prefix(name)
    except PackageNotFoundError:
        return None


def declared_class(package, source, base):
    """The name under which pluginlib's file of a package offers its class, which the sources must have.

    source: file in src/ that exports it; base: pluginlib's base class
    """
    told, cmake = ((ROOT / package / name).read_text() for name in ("planner_plugin.xml", "CMakeLists.txt"))
    library, name, kind = (re.search(rf'{key}="([\w:/]+)"', told)[1] for key in ("library path", "class name", "type"))
    assert f"add_library({library} SHARED" in cmake and "planner_plugin.xml" in cmake
    exported = (ROOT / package / "src" / source).read_text().replace("\n", "")
    assert f"PLUGINLIB_EXPORT_CLASS({kind}, {base})" in exported
    return name


def environment_with(package, make_folder, *arguments, needs=""):
    """Environment in which a process finds a package: this one's where the workspace has built it, else one with a
    build of its sources.

    make_folder: makes the folder of a build; arguments: of CMake; needs: a file that the workspace's build must have
    """
    prefix = prefix_of(package)
    if prefix and Path(prefix, needs).exists():
        return dict(os.environ)
    colcon = shutil.which("colcon") or str(Path(sys.executable).with_name("colcon"))
    if not Path(colcon).exists():
        pytest.skip("colcon is not installed: nothing builds the plugin")
    folder = make_folder("plugin")
    base = ["--base-paths", ROOT / package, "--build-base", folder / "build", "--install-base", folder / "install"]
    command = [colcon, "--log-base", folder / "log", "build", *base, "--merge-install"]
    command += ["--cmake-args", *arguments] if arguments else []
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    environment = dict(os.environ)
    for name, part in (("AMENT_PREFIX_PATH", ""), ("LD_LIBRARY_PATH", "lib")):
        environment[name] = os.pathsep.join([str(folder / "install" / part), os.environ.get(name, "")])
    return environment


def program_of(package, environment, path):
    """A file that a package has installed, by the first prefix of an environment that has it."""
    prefixes = environment["AMENT_PREFIX_PATH"].split(os.pathsep)
    found = [Path(prefix, path) for prefix in prefixes if Path(prefix, path).is_file()]
    assert found, f"{package} has installed no {path}"
    return found[0]
