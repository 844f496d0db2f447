"""Which files a robot description that came as a message may have the node read: anybody may have published it."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from ...arm.urdf.xml_text import parse_xml
from ...errors import RobotDescriptionError, shown

PACKAGES = "AMENT_PREFIX_PATH", "ROS_PACKAGE_PATH"  # of folders that hold packages


def refuse_other_files(urdf: str, package_dirs: Sequence[str]) -> None:
    """RobotDescriptionError unless a message holds the text of a URDF whose collision meshes lie, by their names, in a
    package, in package_dirs, or in the folders of PACKAGES. Symbolic links there lead anywhere, as colcon's do. A
    relative name is one in package_dirs: without these it would be one in the folder that the node was started in."""
    if not urdf.lstrip().startswith("<"):
        raise RobotDescriptionError(f"robot_description holds {shown(urdf)}; allowed: the text of a URDF, XML")
    roots = [Path(os.path.abspath(os.path.expanduser(folder))) for folder in package_dirs]
    for variable in PACKAGES:
        roots += [Path(os.path.abspath(each)) for each in os.environ.get(variable, "").split(os.pathsep) if each]
    for mesh in parse_xml(urdf, "robot_description").iterfind(".//collision//mesh"):
        name = mesh.get("filename", "")
        if not _stays_inside(name, roots, bool(package_dirs)):
            raise RobotDescriptionError(
                f"the published robot_description names the mesh {shown(name)}; allowed: package://, or a file in "
                f"{', '.join(map(str, roots)) or 'no folder'}. The parameter package_dirs adds folders"
            )


def _stays_inside(name, roots, relative):
    if name.startswith("package://"):
        return ".." not in Path(unquote(name)).parts
    if name.startswith("file://"):
        name = unquote(re.sub("^file://[^/]*", "", name))
    elif "://" in name:
        return True  # the reader refuses what it does not know
    path = Path(name)
    if not path.is_absolute():
        return relative and ".." not in path.parts
    return any(root in Path(os.path.abspath(path)).parents for root in roots)
