"""Pictures: what is in front is what is seen, and the files are pictures of the size asked for."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need matplotlib (extra `view`)")

from checkout import ROOT  # noqa: E402
from PIL import Image  # noqa: E402
from robots_at_hand import problem_of  # noqa: E402

from benchmarks.problems import add_obstacles  # noqa: E402
from gpu_planners.arm import CollisionWorld, load_urdf
from gpu_planners.arm.geometry.shapes import ConvexShape
from gpu_planners.arm.view import drawing
from gpu_planners.arm.view.drawing import along_path, draw_path, shape_triangles
from gpu_planners.arm.view.rasterizer import Camera, Layer, render
from gpu_planners.errors import SettingsError

RED, BLUE = np.array([1.0, 0, 0]), np.array([0, 0, 1.0])


def box(x, colour, opacity=1.0):
    pose = np.eye(4)
    pose[0, 3] = x
    triangles = shape_triangles(ConvexShape.box("box", [0.1, 1, 1], pose))
    return Layer(triangles, np.tile(colour, (len(triangles), 1)), opacity)


@pytest.mark.parametrize(
    ("shape", "volume"),
    [
        (ConvexShape.box("b", [1, 2, 3], np.eye(4)), 6.0),
        (ConvexShape.cylinder("c", 0.5, 2.0, np.eye(4)), np.pi / 2),
        (ConvexShape.sphere("s", 1.0, np.eye(4)), 4 / 3 * np.pi),
    ],
)
def test_triangles_face_outwards_and_enclose_the_volume(shape, volume):
    triangles = shape_triangles(shape)
    enclosed = np.einsum("ni,ni->n", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2])).sum() / 6
    assert 0.95 * volume < enclosed < 1.001 * volume


def test_nearer_bodies_hide_farther_ones_and_glass_mixes():
    camera = Camera(np.zeros(3), 6.0, azimuth=0.0, elevation=0.3)  # looks along -x

    def middle(*layers):
        return render(layers, camera, (80, 60), ground=-2.0)[30, 40]

    assert middle(box(0, RED), box(1, BLUE)).argmax() == 2 and middle(box(1, BLUE), box(0, RED)).argmax() == 2
    assert middle(box(1, RED), box(0, BLUE)).argmax() == 0
    glass = middle(box(0, RED), box(1, BLUE, 0.5))
    assert glass[0] > 0.2 and glass[2] > 0.2


def test_along_path_is_even_and_keeps_the_ends():
    path = np.array([[0, 0], [1, 0], [1, 3.0]])
    points = along_path(path, 5)
    np.testing.assert_allclose(points, [[0, 0], [1, 0], [1, 1], [1, 2], [1, 3]])
    assert len(along_path(path[:1], 5)) == 1


@pytest.mark.parametrize("name", ["desk_arm", "dl14_arm"])  # a metre, and some metres large
def test_the_way_of_the_tool_is_seen_however_large_the_robot_is(name, monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(drawing, "render", lambda *given: drawn.append(given) or render(*given))
    robot = load_urdf(ROOT / "urdf" / f"{name}.urdf")
    draw_path(robot, CollisionWorld(), np.stack([np.zeros(robot.dof), np.full(robot.dof, 0.4)]), tmp_path / "path.png")
    layers, camera, size, _ = drawn[0]
    tube = layers[-1].triangles[-20:].reshape(-1, 3)  # the last ring and the one before
    wide = camera.project(np.stack([tube.min(0), tube.max(0)]), *size)[:, :2]
    assert 3 < np.linalg.norm(wide[1] - wide[0]) < 20, "pixels"


def test_draws_a_panda(tmp_path):
    rig, problem = problem_of("panda", "table")
    robot, world = rig.model, add_obstacles(CollisionWorld(), problem.obstacles)
    path = np.array([problem.start, problem.goals[0]])
    file = draw_path(robot, world, path, tmp_path / "new folder" / "path.png", size=(300, 200))
    picture = np.asarray(Image.open(file))
    assert picture.shape[:2] == (200, 300) and picture[..., :3].std() > 10
    draw_path(robot, CollisionWorld(), path[0], tmp_path / "alone.png", size=(150, 100))
    for bad in (path[:, :5], np.full((2, 7), np.nan), np.zeros((0, 7))):
        with pytest.raises(SettingsError, match="path"):
            draw_path(robot, world, bad, tmp_path / "bad.png")
    assert not (tmp_path / "bad.png").exists()
