"""arm and grid know neither each other nor ROS; what the code imports is what package.xml and setup.py declare."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from checkout import PACKAGE, ROOT, imports, python_files, setup_arguments, third_party

# Beside these, every name that ends with _msgs or _interfaces is ROS.
ROS_PACKAGES = {"rclpy", "ament_index_python", "launch", "launch_ros", "tf2_ros", "rosidl_runtime_py", "rcl_interfaces"}
# Used where they are installed, and said to be missing where they are not.
OPTIONAL_ROS = {"moveit_msgs", "shape_msgs", "map_msgs", "tf2_ros", "launch", "launch_ros"}
# Brought by another distribution of the extra "ros": they are no wheels of that name, or this checkout builds them.
BROUGHT_ALONG = {"rcl_interfaces", "builtin_interfaces", "gpu_planners_msgs"}
# llvmlite is a part of numba: each of its versions needs one of llvmlite.
DISTRIBUTION_OF_IMPORT = {
    "PIL": "pillow",
    "lazy_loader": "lazy-loader",
    "llvmlite": "numba",
    "yaml": "pyyaml",
    "pinocchio": "pin",
    "numba_cuda": "numba-cuda",
    "cuda": "numba-cuda",
    "paho": "paho-mqtt",
}
# Modules that are imported only where the extra that they need is asked for.
NEEDS_EXTRA = {
    "gpu_planners.arm.view.browser": "view",
    "gpu_planners.cli.view.arm_page": "view",
    "gpu_planners.arm.view.saved_page": "view",
    "gpu_planners.parallel.stream": "gpu",
    "gpu_planners.verify.paths": "verify",
    "gpu_planners.verify.scene": "verify",
    "gpu_planners.verify.shapes": "verify",
    "gpu_planners.vda5050.broker": "vda5050",
}
MODULES_OF_EXTRAS = {"coal", "matplotlib", "numba_cuda", "ompl", "pinocchio", "pyarrow", "toppra", "tqdm", "viser"}
ROSDEP_KEY = {"pillow": "python3-pil", "pyyaml": "python3-yaml"}
BY_PIP = {"lazy-loader", "numba", "ruckig", "trimesh"}  # rosdep installs none, or none that serves: docs/install.md

IMPORT_WITHOUT_ROS = """
import importlib, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in {blocked!r} or top.endswith(("_msgs", "_interfaces")):
            raise ImportError("blocked: " + name)

sys.meta_path.insert(0, Blocker())
sys.path.insert(0, {root!r})
for name in {names!r}:
    importlib.import_module(name)
"""


def import_without_ros(*names, blocked=ROS_PACKAGES):
    code = IMPORT_WITHOUT_ROS.format(blocked=set(blocked), root=str(ROOT), names=names)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=580)


def is_ros(name):
    top = name.split(".")[0]
    return top in ROS_PACKAGES or top.endswith(("_msgs", "_interfaces"))


def module_name(file):
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def outside_nodes():
    return python_files(PACKAGE, without=["nodes", "demo"])


def needs_extra(file):
    return module_name(file) in NEEDS_EXTRA or file.stem == "cuda" or file.stem.endswith("_cuda")


def requirement_name(requirement):
    return re.match(r"[A-Za-z0-9_.-]+", requirement).group(0).lower()


@pytest.fixture(scope="module")
def setup_keywords():
    pytest.importorskip("setuptools", reason="reads what setup.py declares")
    return setup_arguments()


@pytest.fixture(scope="module")
def package_xml():
    return ElementTree.parse(ROOT / "package.xml").getroot()


def test_the_library_imports_where_there_is_neither_ros_nor_any_extra():
    names = [module_name(file) for file in outside_nodes() if not needs_extra(file)]
    assert "gpu_planners.arm" in names
    done = import_without_ros(*names, blocked=ROS_PACKAGES | MODULES_OF_EXTRAS)
    assert done.returncode == 0, done.stderr


def test_the_blocker_of_the_test_above_blocks():
    for name in ("rclpy", "sensor_msgs.msg", "gpu_planners_msgs.srv"):
        assert "blocked" in import_without_ros(name).stderr


@pytest.mark.parametrize("file", outside_nodes(), ids=module_name)
def test_only_nodes_imports_ros(file):
    assert [name for name, _ in imports(file) if is_ros(name)] == []


@pytest.mark.parametrize(("layer", "forbidden"), [("arm", ("grid", "nodes", "cli")), ("grid", ("arm", "nodes", "cli"))])
def test_no_layer_reaches_back(layer, forbidden):
    found = [
        (module_name(file), name)
        for file in python_files(PACKAGE / layer)
        for name, _ in imports(file)
        if any(name == f"gpu_planners.{other}" or name.startswith(f"gpu_planners.{other}.") for other in forbidden)
    ]
    assert found == []


def test_package_xml_and_setup_py_name_the_same_libraries(setup_keywords, package_xml):
    names = {requirement_name(requirement) for requirement in setup_keywords["install_requires"]}
    declared = {element.text for element in package_xml.findall("exec_depend") if element.text.startswith("python3-")}
    assert declared == {ROSDEP_KEY.get(name, f"python3-{name}") for name in names - BY_PIP}


@pytest.mark.parametrize("file", ["docs/install.md", ".github/workflows/industrial_ci.yaml"])
def test_pip_is_asked_for_what_rosdep_does_not_install(setup_keywords, file):
    line = re.search(r"^(?:pip install| +) ?(\"lazy-loader.*)$", (ROOT / file).read_text(), re.MULTILINE)
    wanted = [each for each in setup_keywords["install_requires"] if requirement_name(each) in {*BY_PIP, "numpy"}]
    assert re.findall(r'"(.+?)"', line.group(1)) == wanted


def test_every_library_that_is_imported_is_declared(setup_keywords):
    libraries = {requirement_name(requirement) for requirement in setup_keywords["install_requires"]}
    extras = setup_keywords["extras_require"].values()
    with_extras = libraries | {requirement_name(requirement) for extra in extras for requirement in extra}
    missing = []
    for file in python_files(PACKAGE):
        for top, at_import in third_party(file):
            declared = libraries if at_import and not needs_extra(file) else with_extras
            if not is_ros(top) and DISTRIBUTION_OF_IMPORT.get(top, top) not in declared:
                missing.append((module_name(file), top))
    assert missing == []


def test_every_declared_library_is_imported(setup_keywords):
    used = {DISTRIBUTION_OF_IMPORT.get(top, top) for file in python_files(PACKAGE) for top, _ in third_party(file)}
    assert {requirement_name(requirement) for requirement in setup_keywords["install_requires"]} - used == set()


def test_every_ros_package_that_is_imported_is_declared(setup_keywords, package_xml):
    files = [*python_files(PACKAGE / "nodes"), *python_files(ROOT / "launch")]
    used = {top for file in files for top, _ in third_party(file) if is_ros(top)}
    assert used, "nodes import no ROS package: this test looks in the wrong place"
    in_package_xml = {element.text for element in package_xml.findall("exec_depend")}
    assert used - OPTIONAL_ROS - in_package_xml == set()
    for distro, extra in (("jazzy", "ros"), ("kilted", "ros-kilted")):
        names = setup_keywords["extras_require"][extra]
        wheels = {name.removeprefix(f"ros-{distro}-").replace("-", "_") for name in names}
        assert used - OPTIONAL_ROS - wheels - BROUGHT_ALONG == set()


def test_every_interface_package_that_the_messages_use_is_declared():
    folder = ROOT / "gpu_planners_msgs"
    used = set()
    for file in [*folder.rglob("*.srv"), *folder.rglob("*.msg"), *folder.rglob("*.action")]:
        used |= set(re.findall(r"^(\w+)/\w+", file.read_text(), re.MULTILINE))
        used |= {"action_msgs"} if file.suffix == ".action" else set()
    declared = {element.text for element in ElementTree.parse(folder / "package.xml").getroot().findall("depend")}
    assert used == declared
    cmake = (folder / "CMakeLists.txt").read_text()
    for name in used:
        assert f"find_package({name} REQUIRED)" in cmake
    for kind in ("srv", "msg", "action"):
        for file in folder.rglob(f"*.{kind}"):
            assert f'"{kind}/{file.name}"' in cmake
