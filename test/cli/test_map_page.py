"""The page of a map: its server plans, and a browser shows agents that move and a goal that is dragged."""

import base64
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pytest
from chromium import Chromium, require_chromium

from gpu_planners.cli.parser import build_parser
from gpu_planners.cli.view.map_page import FleetMoves, PathMoves, open_map_page
from gpu_planners.grid.maps.movingai import load_movingai_map

SIZE = (1200, 800)


def options(*arguments):
    return build_parser().parse_args(["view", *arguments, "--device", "cpu", "--port", "0"])


@pytest.fixture(scope="module")
def map_file(tmp_path_factory):
    """A MovingAI map of two rooms with a door between them."""
    blocked = np.zeros((24, 40), bool)
    blocked[:, 20] = True
    blocked[11:13, 20] = False
    rows = ["".join(".@"[int(each)] for each in row) for row in blocked]
    file = tmp_path_factory.mktemp("map") / "rooms.map"
    file.write_text("\n".join(["type octile", "height 24", "width 40", "map", *rows]) + "\n")
    return file


def places_of(data):
    """(steps + 1, N, 2) [row, col]"""
    packed = np.frombuffer(base64.b64decode(data["places"]), "<i2")
    return np.moveaxis(packed.reshape(2, data["steps"], data["agents"]), 0, -1)


def test_ways_end_at_the_free_tile_that_is_nearest_to_the_goal(map_file):
    given = options("--map", str(map_file), "--agents", "50")
    moves = PathMoves(load_movingai_map(map_file), given, row_0_below=False)
    places = places_of(moves.more({"row": "5", "col": "19.6"}))
    assert np.array_equal(places[0], moves.starts) and (places[-1] == [5, 19]).all()
    assert not moves.grid.blocked[tuple(places.reshape(-1, 2).T)].any()
    assert (np.abs(np.diff(places, axis=0)) <= 1).all()


def test_a_fleet_moves_and_never_meets(map_file):
    """No two agents are on one tile after any step, nobody is in a wall, and most get somewhere."""
    given = options("--map", str(map_file), "--agents", "60", "--fleet")
    moves = FleetMoves(load_movingai_map(map_file, connectivity=4), given)
    first, second = (places_of(moves.more({})) for _ in range(2))
    assert np.array_equal(first[-1], second[0])
    for tiles in (*first, *second):
        assert len(np.unique(tiles, axis=0)) == 60 and not moves.grid.blocked[tuple(tiles.T)].any()
    assert (np.abs(first[-1] - first[0]).sum(axis=1) > 1).mean() > 0.5


def test_the_server_says_what_is_wrong(map_file):
    page = open_map_page(options("--map", str(map_file), "--agents", "5"))
    try:
        for address, code in (("", 200), ("nothing", 404), ("moves?row=x&col=1", 400), ("moves?row=1", 400)):
            try:
                answer = urlopen(f"http://127.0.0.1:{page.port}/{address}", timeout=60).status
            except HTTPError as error:
                answer = error.code
            assert answer == code
    finally:
        page.close()


@pytest.mark.slow
def test_agents_go_to_a_goal_that_is_dragged(map_file, tmp_path):
    require_chromium()
    page = open_map_page(options("--map", str(map_file), "--agents", "50"))
    try:
        with Chromium(tmp_path, SIZE) as browser:
            browser.open(f"http://127.0.0.1:{page.port}", "document.body.innerText.includes('50 of 50')")
            row, col = before = browser.value("moves.aim")
            ahead = 5 if col < 20 else -5
            browser.drag(on_map(browser, row, col), on_map(browser, row, col + ahead))
            browser.wait_for(f"!asking && Math.abs(moves.aim[1] - {col + ahead}) < 2")
            assert browser.value("moves.aim") != before and "50 of 50" in browser.text()
            ends = browser.value("[...Array(agents).keys()].map((agent) => place(steps - 1, agent))")
            assert ends == [browser.value("moves.aim")] * 50
            assert not [each for each in browser.messages if each["method"] == "Runtime.exceptionThrown"]
    finally:
        page.close()


def on_map(browser, row, col):
    """(x, y) pixels of the centre of a tile."""
    left, top, side = browser.value(
        "(() => { const c = canvas.getBoundingClientRect(); return [c.left, c.top, c.width / cols]; })()"
    )
    return left + (col + 0.5) * side, top + (row + 0.5) * side


@pytest.mark.slow
def test_a_fleet_goes_on_and_on(map_file, tmp_path):
    require_chromium()
    page = open_map_page(options("--map", str(map_file), "--agents", "60", "--fleet"))
    try:
        with Chromium(tmp_path, SIZE) as browser:
            browser.open(f"http://127.0.0.1:{page.port}", "document.body.innerText.includes('in 60 steps')")
            browser.value("document.getElementById('speed').value = '10'")
            browser.wait_for("document.body.innerText.includes('in 120 steps')")
            assert not [each for each in browser.messages if each["method"] == "Runtime.exceptionThrown"]
    finally:
        page.close()
