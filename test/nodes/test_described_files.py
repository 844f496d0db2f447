"""Which files a robot description may name that comes as a message: nobody reads others by publishing one."""

import numpy as np
import pytest

from gpu_planners.errors import RobotDescriptionError
from gpu_planners.nodes.arm.described_files import PACKAGES, refuse_other_files


def urdf(mesh, around="collision"):
    geometry = f"<{around}><geometry><mesh filename='{mesh}'/></geometry></{around}>"
    return f"<robot name='r'><link name='a'>{geometry}</link></robot>"


@pytest.fixture(autouse=True)
def folders(monkeypatch):
    monkeypatch.setenv(PACKAGES[0], "/opt/ros/here:/home/me/ws/install/arm")
    monkeypatch.delenv(PACKAGES[1], raising=False)


@pytest.mark.parametrize(
    "mesh",
    [
        "package://arm/meshes/a.stl",
        "file:///opt/ros/here/share/arm/a.stl",
        "file:///srv/robots/a.stl",
        "/srv/robots/deep/a.stl",
        "meshes/a.stl",
        "file:///srv/robots/x/../a.stl",
    ],
)
def test_meshes_of_packages_and_given_folders(mesh):
    refuse_other_files(urdf(mesh), ("/srv/robots",))


@pytest.mark.parametrize(
    "mesh",
    [
        "file:///etc/secret.stl",
        "/etc/secret.stl",
        "file://host/etc/secret.stl",
        "file:///srv/robots/../secret.stl",
        "file:///srv/robots/%2e%2e/secret.stl",
        "/srv/robots",
        "/srv/robots_of_others/a.stl",
        "package://arm/../../secret.stl",
        "package://../secret.stl",
        "package://arm/%2e%2e/secret.stl",
        "../secret.stl",
    ],
)
def test_other_meshes_are_refused(mesh):
    with pytest.raises(RobotDescriptionError, match=r"mesh .*allowed: package://.*/srv/robots.*package_dirs"):
        refuse_other_files(urdf(mesh), ("/srv/robots",))
    refuse_other_files(urdf(mesh, "visual"), ())  # nobody reads it


def test_a_relative_name_is_of_the_given_folders_alone():
    with pytest.raises(RobotDescriptionError, match="mesh 'meshes/a.stl'"):
        refuse_other_files(urdf("meshes/a.stl"), ())


@pytest.mark.parametrize("text", ["/etc/robot.urdf", "robot.urdf", "", "file:///etc/robot.urdf"])
def test_a_message_names_no_description(text):
    with pytest.raises(RobotDescriptionError, match="allowed: the text of a URDF"):
        refuse_other_files(text, ())


def test_what_is_not_xml_is_refused():
    rng = np.random.default_rng(0)
    for _ in range(20):
        with pytest.raises(RobotDescriptionError):
            refuse_other_files("<" + bytes(rng.integers(32, 127, 50).tolist()).decode(), ())
