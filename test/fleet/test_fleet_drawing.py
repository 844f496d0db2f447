"""Pictures and pages of fleets: what is in them is what was given, and the page's script counts the same goals."""

import base64
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from gpu_planners.errors import GridMapError
from gpu_planners.fleet.drawing import draw_fleet, fleet_page
from gpu_planners.grid import GridMap
from gpu_planners.grid.maps.generated import warehouse_map

GRID = GridMap(np.array([[1, 1, 1, 0], [1, 0, 1, 1]]), 4)
# agent 0 goes along the first row, agent 1 turns, agent 2 comes at step 1
PLACES = np.array([[(0, 0), (1, 3), (-1, -1)], [(0, 1), (1, 3), (1, 2)], [(0, 2), (1, 3), (1, 2)]])
FACES = np.array([[0, 3, 0], [0, 0, 0], [0, 0, 0]])
GOALS = np.array([[(0, 2), (1, 3), (-1, -1)], [(0, 2), (-1, -1), (1, 2)], [(0, 2), (-1, -1), (1, 2)]])
STUB = r"""
const calls = {}, elements = {}, frames = [];
const paper = () => new Proxy({}, {
  get: (t, k) => (k in t ? t[k] : () => { calls[k] = (calls[k] || 0) + 1; }),
  set: (t, k, v) => { t[k] = v; return true; },
});
const element = (id) => elements[id] ??= {
  clientWidth: 400, value: "2", on: {}, getContext() { return this.paper ??= paper(); },
  addEventListener(name, f) { this.on[name] = f; },
  getBoundingClientRect: () => ({ left: 0, top: 0, width: 400, height: 200 }),
};
global.window = { addEventListener() {} };
global.document = { getElementById: element, createElement: () => element("ground"), addEventListener() {} };
global.requestAnimationFrame = (f) => frames.push(f);
global.atob = (text) => Buffer.from(text, "base64").toString("latin1");
const page = require("fs").readFileSync(process.argv[2], "utf8");
(0, eval)([...page.matchAll(/<script>([\s\S]*?)<\/script>/g)].map((m) => m[1]).join("\n"));
const first = element("clock").textContent;
for (let now = 0; frames.length && now < 5000; now += 50) frames.shift()(now);
element("time").on.input({ target: { value: "1.5" } });
element("map").on.click({ clientX: 350, clientY: 150 });
console.log(JSON.stringify({ first, end: elements.play.textContent, clock: elements.clock.textContent,
  told: elements.told.textContent, calls }));
"""


def numbers(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def test_a_page_holds_what_it_was_given_and_nothing_from_elsewhere():
    page = fleet_page(GRID, PLACES, FACES, GOALS, "Halls & <aisles>", 0.5)
    data = json.loads(re.search(r"const FLEET = (.*?);</script>", page).group(1))
    assert (data["rows"], data["cols"], data["steps"], data["agents"], data["stepSeconds"]) == (2, 4, 3, 3, 0.5)
    assert np.array_equal(np.unpackbits(numbers(data["map"], np.uint8))[:8].reshape(2, 4), GRID.blocked)
    assert np.array_equal(np.moveaxis(numbers(data["places"], "<i2").reshape(2, 3, 3), 0, -1), PLACES)
    assert np.array_equal(numbers(data["headings"], np.uint8).reshape(3, 3), FACES)
    changes = numbers(data["goals"], "<i4").reshape(4, -1).T.tolist()
    assert [0, 0, 0, 2] in changes and [1, 1, -1, -1] in changes and [1, 2, 1, 2] in changes and len(changes) == 5
    assert "Halls &amp; &lt;aisles&gt;" in page and not re.search(r"(src|href)\s*=|https?://", page)


def test_the_script_of_a_page_plays(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (tmp_path / "page.html").write_text(fleet_page(GRID, PLACES, FACES, GOALS, "x", 0.5), encoding="utf-8")
    (tmp_path / "stub.js").write_text(STUB)
    run = subprocess.run(
        [node, tmp_path / "stub.js", tmp_path / "page.html"], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert said["first"] == "0.0 s of 1 s, 1 goals reached" and said["end"] == "Play"
    assert said["clock"].startswith("0.8 s") and said["clock"].endswith("2 goals reached")
    assert said["told"] == "Agent 1 at row 1, column 3." and said["calls"]["fillRect"] > 8


def test_a_picture_of_a_step():
    picture = np.asarray(draw_fleet(GRID, PLACES, size=400)).astype(int)
    assert picture.shape == (200, 400, 3)
    wall, agent = picture[30, 350], picture[50, 250]
    assert wall.sum() < 200 and agent[2] > agent[0]
    before = np.asarray(draw_fleet(GRID, PLACES, 0, 400)).astype(int)
    assert before[150, 250].min() > 200  # agent 2 is not there yet


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((PLACES[0],), "positions"),
        ((PLACES.astype(float),), "positions"),
        ((PLACES, FACES[0]), "headings"),
        ((PLACES, None, GOALS[:1]), "goals"),
    ],
)
def test_wrong_arrays_are_named(arguments, words):
    with pytest.raises(GridMapError, match=words):
        fleet_page(GRID, *arguments)


def test_a_step_that_is_not_there_is_named():
    with pytest.raises(GridMapError, match="step is 3"):
        draw_fleet(GRID, PLACES, 3)


def test_a_warehouse_has_shelves_between_free_strips():
    grid = warehouse_map(14, 40, 4, shelf=(2, 5), aisle=1, apron=6)
    assert grid.shape == (14, 40) and grid.connectivity == 4
    assert not grid.blocked[:, :6].any() and not grid.blocked[:, -6:].any()
    assert not grid.blocked[0].any() and not grid.blocked[-1].any()
    assert grid.blocked[1:3, 6:11].all() and not grid.blocked[:, 11].any() and not grid.blocked[3].any()
    with pytest.raises(GridMapError, match="aisle"):
        warehouse_map(10, 10, aisle=0)
