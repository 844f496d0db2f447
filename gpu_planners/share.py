"""Finds files installed beside the Python package, without ROS: launch, config, urdf, and example-robot-data.

Our own lie in the checkout (editable installs, colcon's --symlink-install) or below <prefix>/share/gpu_planners
(pip, colcon).
"""

import importlib.metadata
import os
from pathlib import Path


def share_folder() -> Path:
    """The folder that holds launch/, config/ and urdf/. Raises FileNotFoundError."""
    package = Path(__file__).resolve().parent
    for folder in package.parents:
        for candidate in (folder, folder / "share" / "gpu_planners"):
            if (candidate / "package.xml").is_file() and (candidate / "config").is_dir():
                return candidate
    raise FileNotFoundError(f"no share/gpu_planners with package.xml and config/ above {package}: install it again")


def example_robots_share() -> Path:
    """The share folder that holds example-robot-data/robots, where pip or a ROS distribution has put it; package://
    paths of its URDFs begin there. Raises FileNotFoundError that says how to get it."""
    shares = [Path(prefix) / "share" for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(":") if prefix]
    try:
        wheel = importlib.metadata.distribution("example-robot-data")
        shares.insert(0, Path(str(wheel.locate_file("cmeel.prefix/share"))))
    except importlib.metadata.PackageNotFoundError:
        pass
    for share in shares:
        if (share / "example-robot-data" / "robots").is_dir():
            return share.resolve()
    raise FileNotFoundError("example-robot-data is not installed: pip install example-robot-data")
