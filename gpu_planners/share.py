"""Finds the files that are installed beside the Python package: launch, config, urdf.

They lie in the checkout (editable installs, colcon's --symlink-install) or below <prefix>/share/gpu_planners
(pip, colcon). Looking there directly needs no ROS and no sourced workspace.
"""

from pathlib import Path


def share_folder() -> Path:
    """The folder that holds launch/, config/ and urdf/. Raises FileNotFoundError."""
    package = Path(__file__).resolve().parent
    for folder in package.parents:
        for candidate in (folder, folder / "share" / "gpu_planners"):
            if (candidate / "package.xml").is_file() and (candidate / "config").is_dir():
                return candidate
    raise FileNotFoundError(f"no share/gpu_planners with package.xml and config/ above {package}: install it again")
