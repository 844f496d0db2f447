"""Scene files: what a good one gives, and that every mistake is an error that names file and element."""

from pathlib import Path

import numpy as np
import pytest
import trimesh

from gpu_planners.arm import load_urdf
from gpu_planners.arm.collision.scene_file import fixed_frames, load_scene, pose_matrix
from gpu_planners.arm.geometry.shapes import ShapeKind
from gpu_planners.errors import ObstacleError

SCENES = Path(__file__).resolve().parents[2] / "config" / "scenes"
URDF = SCENES.parent.parent / "urdf"

TURNED_FRAME = pose_matrix([1.0, 2.0, 3.0], [0, 0, np.sqrt(0.5), np.sqrt(0.5)], "frame")  # 90 degrees about z


def scene_of(tmp_path, text, frames=None):
    file = tmp_path / "scene.yaml"
    file.write_text(text)
    return load_scene(file, frames)


def test_every_type_of_obstacle(tmp_path):
    trimesh.creation.box([1000.0, 1000.0, 1000.0]).export(tmp_path / "part.stl")
    world = scene_of(
        tmp_path,
        """
obstacles:
  - {name: table, type: box, size: [1.0, 0.8, 0.05], position: [0.5, 0.0, 0.2], quat_xyzw: [0, 0, 1, 0]}
  - {name: can, type: cylinder, radius: 0.03, height: 0.12, position: [0.5, 0.1, 0.285]}
  - {name: ball, type: sphere, radius: 0.05}
  - {name: wedge, type: convex, vertices: [[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]}
  - {name: part, type: mesh, file: part.stl, scale: 0.001, position: [0, 0, 1]}
""",
    )
    assert world.names == ("table", "can", "ball", "wedge", "part")
    table, can, ball, wedge, *part = world.shapes
    assert table.kind == ShapeKind.BOX and np.allclose(table.half_extents, [0.5, 0.4, 0.025])
    assert np.allclose(table.pose[:3, :3], np.diag([-1, -1, 1])) and np.allclose(table.pose[:3, 3], [0.5, 0, 0.2])
    assert can.kind == ShapeKind.CYLINDER and np.allclose(can.half_extents, [0.03, 0.03, 0.06])
    assert ball.kind == ShapeKind.SPHERE and np.allclose(ball.pose, np.eye(4))
    assert len(wedge.vertices) == 4
    corners = np.concatenate([shape.vertices @ shape.pose[:3, :3].T + shape.pose[:3, 3] for shape in part])
    assert np.allclose(corners.min(0), [-0.5, -0.5, 0.5], atol=1e-6) and np.allclose(
        corners.max(0), [0.5, 0.5, 1.5], atol=1e-6
    )


def test_poses_are_moved_from_the_named_frame_to_the_root(tmp_path):
    text = "{frame: shelf, obstacles: [{name: ball, type: sphere, radius: 0.1, position: [1, 0, 0]}]}"
    ball = scene_of(tmp_path, text, {"shelf": TURNED_FRAME}).shapes[0]
    assert np.allclose(ball.pose[:3, 3], [1.0, 3.0, 3.0])


def test_a_scene_may_be_empty(tmp_path):
    assert scene_of(tmp_path, "obstacles: []").names == ()


@pytest.mark.parametrize(
    "text, words",
    [
        ("[1, 2]", ["mapping"]),
        ("obstacles: {a: 1}", ["list 'obstacles'"]),
        ("obstacles: [", ["not YAML"]),
        ("{objects: []}", ["'objects'", "'obstacles'"]),
        ("{frame: moon, obstacles: []}", ["'moon'", "'base'"]),
        ("{obstacles: [{type: box}]}", ["number 0", "name"]),
        ("{obstacles: [{name: a, type: torus}]}", ["'a'", "'torus'", "'box'"]),
        ("{obstacles: [{name: a, type: box, size: [1, 1, 1], colour: red}]}", ["'a'", "'colour'"]),
        ("{obstacles: [{name: a, type: cylinder, radius: 1}]}", ["'a'", "'height'"]),
        ("{obstacles: [{name: a, type: box, size: [1, 0, 1]}]}", ["'a'", "size"]),
        ("{obstacles: [{name: a, type: box, size: [1, x, 1]}]}", ["'a'"]),
        ("{obstacles: [{name: a, type: sphere, radius: -1}]}", ["'a'", "radius"]),
        ("{obstacles: [{name: a, type: sphere, radius: .nan}]}", ["'a'", "radius"]),
        ("{obstacles: [{name: a, type: sphere, radius: 1, position: [0, 0, .inf]}]}", ["'a'", "position"]),
        ("{obstacles: [{name: a, type: sphere, radius: 1, position: [0, 0]}]}", ["'a'", "position"]),
        ("{obstacles: [{name: a, type: sphere, radius: 1, quat_xyzw: [0, 0, 0, 0]}]}", ["'a'", "quaternion"]),
        (
            "{obstacles: [{name: a, type: convex, vertices: [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]}]}",
            ["'a'", "volume"],
        ),
        ("{obstacles: 0}", ["list 'obstacles'"]),
        ("{5: 1}", ["'5'"]),
        ("{frame: [base], obstacles: []}", ["['base']"]),
        ("{obstacles: [{name: a, type: [box], size: [1, 1, 1]}]}", ["'a'", "['box']"]),
        ("{obstacles: [{name: a, type: box, size: {x: 1}}]}", ["'a'", "size", "real numbers"]),
        ("{obstacles: [{name: a, type: box, size: [1, [1], 1]}]}", ["'a'", "size"]),
        ("{obstacles: [{name: a, type: sphere, radius: yes}]}", ["'a'", "radius", "True"]),
        ("{obstacles: [{name: a, type: sphere, radius: '1'}]}", ["'a'", "radius", "'1'"]),
        ("{obstacles: [{name: a, type: sphere, radius: !!binary aGVsbG8=}]}", ["'a'", "radius"]),
        ("{obstacles: [{name: a, type: sphere, radius: 2020-01-01}]}", ["'a'", "radius"]),
        ("{obstacles: [{name: a, type: sphere, radius: " + "9" * 900 + "}]}", ["'a'", "radius"]),
        ("{obstacles: [{name: a, type: sphere, radius: 1e39}]}", ["'a'", "radius", "100000 m"]),
        ("{obstacles: [{name: a, type: sphere, radius: 1, position: [0, 2e5, 0]}]}", ["'a'", "position", "100000 m"]),
        ("{obstacles: [{name: a, type: sphere, radius: 1, position: {x: 1}}]}", ["'a'", "position"]),
        ("{obstacles: [{name: a, type: sphere, radius: 1, quat_xyzw: [0, 0, 0, .nan]}]}", ["'a'", "quaternion"]),
        ("{obstacles: [{name: a, type: sphere, radius: 1, quat_xyzw: [0, 0, 0, 1e200]}]}", ["'a'", "quaternion"]),
        ("{obstacles: [{name: a, type: convex, vertices: [[0, 0, 0], [1, 2]]}]}", ["'a'", "vertices"]),
        ("{obstacles: [{name: a, type: convex, vertices: 7}]}", ["'a'"]),
        ("{obstacles: [{name: a, type: mesh, file: 5}]}", ["'a'", "file"]),
        ("{obstacles: [{name: a, type: mesh, file: part.stl, scale: big}]}", ["'a'", "scale"]),
        ("{obstacles: [{name: a, type: mesh, file: part.stl, scale: [1, 1, 1]}]}", ["'a'", "scale"]),
        ("{obstacles: [{name: a, type: mesh, file: part.stl, scale: 0}]}", ["'a'", "scale"]),
        ("{obstacles: [{name: a, type: mesh, file: part.stl, scale: 1e9}]}", ["'a'", "100000 m"]),
        ("{obstacles: [{name: a, type: mesh, file: gone.stl}]}", ["'a'", "gone.stl"]),
        ("{obstacles: [{name: a, type: sphere, radius: 1}, {name: a, type: sphere, radius: 1}]}", ["'a'", "twice"]),
    ],
)
def test_mistakes_are_named(tmp_path, text, words):
    trimesh.creation.box().export(tmp_path / "part.stl")
    with pytest.raises(ObstacleError) as error:
        scene_of(tmp_path, text, {"base": np.eye(4)})
    assert "scene.yaml" in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_powers_of_ten_are_numbers(tmp_path):
    world = scene_of(tmp_path, "{obstacles: [{name: ball, type: sphere, radius: 5e-2, position: [1e+1, 0, -2E0]}]}")
    assert world.shapes[0].half_extents[0] == 0.05 and np.array_equal(world.shapes[0].pose[:3, 3], [10, 0, -2])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ObstacleError, match="none.yaml"):
        load_scene(tmp_path / "none.yaml")


@pytest.mark.parametrize("file", sorted(SCENES.glob("*.yaml")), ids=lambda file: file.stem)
def test_scenes_of_the_package_load(file):
    robot = {"dl14": "dl14_arm", "desk": "desk_arm"}.get(file.stem)
    frames = fixed_frames(load_urdf(URDF / f"{robot}.urdf", package_dirs=[URDF.parent])) if robot else None
    assert load_scene(file, frames).names
