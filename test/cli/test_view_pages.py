"""The pages of gpu-planners view in a real browser without the internet: sliders move the robot, goals are dragged."""

import argparse
import time

import numpy as np
import pytest

pytest.importorskip("viser", reason="the browser view needs viser (extra `view`)")

from checkout import ROOT
from chromium import Chromium, require_chromium
from PIL import Image
from pinocchio_poses import pinocchio_poses
from scipy.spatial.transform import Rotation

from gpu_planners.arm.view.rasterizer import Camera
from gpu_planners.cli.parser import build_parser
from gpu_planners.cli.view.arm_page import open_arm_page

pytestmark = pytest.mark.slow  # a browser draws the pages
GANTRY = str(ROOT / "urdf" / "gantry.urdf")
BOX = """obstacles:
  - {name: wall, type: box, size: [0.2, 0.6, 1.1], position: [1.0, 0.0, 0.75]}
"""
PATIENCE_S = 300.0
SIZE = (1200, 800)


def options(*arguments) -> argparse.Namespace:
    return build_parser().parse_args(["view", *arguments, "--device", "cpu", "--port", "0"])


def wait_until(condition, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def drag_until(condition, drag, tries=6):
    """Drag until it has an effect: a page drawn without a GPU on a busy machine misses a hand that is too quick."""
    for _ in range(tries - 1):
        drag()
        try:
            return wait_until(condition, 20.0)
        except AssertionError:
            continue
    drag()
    wait_until(condition)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """(ArmPage of the gantry before a wall, Chromium that shows it)"""
    require_chromium()
    folder = tmp_path_factory.mktemp("view")
    (folder / "scene.yaml").write_text(BOX)
    page = open_arm_page(options(GANTRY, "--scene", str(folder / "scene.yaml"), "--start=0.2,0,0.6,0,0,0"))
    wait_until(lambda: page.answer.solved)
    with Chromium(folder, SIZE) as browser:
        browser.open(f"http://127.0.0.1:{page.server.get_port()}", "document.body.innerText.includes('wrist_roll')")
        wait_until(lambda: len(page.server.get_clients()) == 1)
        yield page, browser
    page.close()


def place_of_slider(browser, name):
    """Centre (x, y) of the thumb of the slider with a label, and the width of its track, in pixels."""
    x, y, width = browser.value(
        f"""(() => {{
            const label = [...document.querySelectorAll('label')].find(it => it.innerText.trim() === '{name}');
            let row = label; while (!row.querySelector('[role=slider]')) row = row.parentElement;
            const thumb = row.querySelector('[role=slider]').getBoundingClientRect();
            const track = row.querySelector('[role=slider]').parentElement.getBoundingClientRect();
            return [thumb.x + thumb.width / 2, thumb.y + thumb.height / 2, track.width];
        }})()"""
    )
    return (x, y), width


def test_the_page_says_what_it_shows(shown):
    page, browser = shown
    wait_until(lambda: "waypoints" in browser.text())
    for word in (*page.source.robot.joint_names, "gantry: 6 joints", "Play", "Goal"):
        assert word in browser.text()
    assert not [each for each in browser.messages if each["method"] == "Runtime.exceptionThrown"]


def test_the_scene_is_drawn(shown, tmp_path):
    """Blue of the robot, orange of the ghost and grey of the wall, in the middle of the picture."""
    page, browser = shown

    def colours():
        seen = np.asarray(Image.open(browser.picture(tmp_path / "page.png")).convert("RGB")).astype(int)[:, :800]
        red, green, blue = np.moveaxis(seen, -1, 0)
        return ((blue > red + 60) & (blue > green)).mean(), ((red > blue + 30) & (red > green + 10)).mean()

    wait_until(lambda: np.all(np.greater(colours(), (0.005, 0.002))))


def test_a_slider_moves_the_robot_and_its_motion(shown):
    page, browser = shown
    before, robot = page.answer, page.source.robot

    def pull():
        (x, y), width = place_of_slider(browser, "along_y")
        browser.drag((x, y), (x + 0.2 * width, y))

    drag_until(lambda: page.answer is not before and page.start[1] > 0.1, pull)
    wait_until(lambda: page.answer.solved and np.allclose(page.answer.path[0], page.start))
    frames = page.scene.robot_frames()
    expected = pinocchio_poses(GANTRY, robot.joint_names, page.start[None])
    assert np.allclose(frames["along_y"], expected["carriage"][0, :3, 3], atol=0.2)  # frames lie along joint axes
    assert np.isclose(frames["along_y"][1], page.start[1], atol=1e-6)


def test_a_dragged_goal_is_planned_to(shown):
    """An arrow of the handle is pulled along the screen; the motion then ends where the handle is."""
    page, browser = shown
    before = np.array(page.goal_handle.position)
    turn = Rotation.from_quat(np.asarray(page.goal_handle.wxyz)[[1, 2, 3, 0]]).as_matrix()
    answers = page.answers

    def pull():
        centre = on_screen(page, browser, before)
        ends = [on_screen(page, browser, before + 0.8 * page.goal_handle.scale * axis) for axis in turn.T]
        x, y = ends[int(np.argmax([np.hypot(*np.subtract(end, centre)) for end in ends]))]  # the one seen best
        browser.drag((x, y), (2 * x - centre[0], 2 * y - centre[1]), steps=20)

    drag_until(lambda: np.linalg.norm(page.goal_handle.position - before) > 0.02, pull)
    wait_until(lambda: not page.busy)
    assert page.answers > answers + 1  # also while it was dragged
    if page.answer.solved:
        end = page.answer.path[-1:]
        tip = pinocchio_poses(GANTRY, page.source.robot.joint_names, end)["gripper_tip"][0]
        assert np.allclose(tip[:3, 3], page.goal_handle.position, atol=1e-4)


def on_screen(page, browser, point):
    """(x, y) pixels of a point in the root frame."""
    camera = next(iter(page.server.get_clients().values())).camera
    width, height = browser.value(
        "(() => { const c = document.querySelector('canvas').getBoundingClientRect(); return [c.width, c.height]; })()"
    )
    away = camera.position - camera.look_at
    elevation = np.arcsin(away[2] / np.linalg.norm(away))
    seen = Camera(
        camera.look_at, np.linalg.norm(away), np.arctan2(away[1], away[0]), elevation, 1 / np.tan(camera.fov / 2)
    )
    return tuple(float(value) for value in seen.project(np.asarray(point), width, height)[:2])


def test_a_motion_plays(shown):
    page, browser = shown
    press(browser, "Play")
    places = set()
    wait_until(lambda: places.add(tuple(np.round(page.scene.robot_frames()["down"], 3))) or len(places) > 3)
    press(browser, "Stop")
    wait_until(lambda: not page.playing)


def press(browser, label):
    """Click on a button once it is there."""
    browser.wait_for(
        f"(() => {{ const it = [...document.querySelectorAll('button')].find(b => b.innerText.includes('{label}'));"
        " if (it) it.click(); return Boolean(it); })()"
    )
