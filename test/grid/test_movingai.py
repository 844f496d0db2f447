"""MovingAI's files: what is read, and what is refused with file and line."""

import numpy as np
import pytest

from benchmarks.problems import data_dir, missing_data
from gpu_planners.errors import GridMapError
from gpu_planners.grid import load_movingai_map, load_movingai_scen

MAP = b"type octile\nheight 2\nwidth 5\nmap\n.GS@O\nTW...\n"
SCEN = b"version 1\n3\tmaps/a.map\t5\t2\t4\t1\t0\t0\t4.41421\n0\tmaps/a.map\t5\t2\t1\t0\t2\t0\t1\n"


def written(tmp_path, content):
    file = tmp_path / "a.map"
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("content", [MAP, MAP.replace(b"\n", b"\r\n"), MAP.rstrip(b"\n"), MAP + b"\n\n"])
def test_terrain(tmp_path, content):
    grid = load_movingai_map(written(tmp_path, content), 4)
    assert grid.costs.tolist() == [[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]] and grid.connectivity == 4


def test_maps_of_the_league(tmp_path):
    """Emitters and service points are free; the line with the type may be left out, as LaCAM's reader takes it."""
    body = b"height 2\r\nwidth 6\r\nmap\r\n.S@E.T\r\n@@EES.\r\n"
    for content in (b"type octile\r\n" + body, body, b"  " + body.replace(b"height 2", b"height\t02")):
        grid = load_movingai_map(written(tmp_path, content))
        assert grid.costs.tolist() == [[1, 1, 0, 1, 1, 0], [0, 0, 1, 1, 1, 1]]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"type octile\nheight 2", b"height two", "line 1: 'height two'; allowed: 'height N'"),
        (b"type octile", b"octile", "line 1: 'octile'; allowed: 'type octile'$"),
        (b"type octile", b"type tile", "line 1: 'type tile'; allowed: 'type octile'$"),
        (b"height 2", b"height two", "line 2: 'height two'; allowed: 'height N', N a whole number above 0"),
        (b"height 2", b"width 5", "line 2: 'width 5'; allowed: 'height N'"),
        (b"width 5", b"width 0", "line 3: 'width 0'"),
        (b"map\n", b"", "line 4"),
        (b".GS@O\nTW...\n", b"", "0 lines below 'map'; allowed: the 2"),
        (b"TW...\n", b"TW...\n.....\n", "3 lines below 'map'; allowed: the 2"),
        (b"TW...", b"TW..", "line 6: 4 tiles; allowed: the 5"),
        (b"TW...", b"TW.x.", "line 6: tile 3 is 'x'; allowed: E . G S free"),
        (MAP, b"", "line 1: ''"),
    ],
)
def test_malformed_maps_are_named(tmp_path, old, new, words):
    with pytest.raises(GridMapError, match=f"a.map.*{words}"):
        load_movingai_map(written(tmp_path, MAP.replace(old, new)))


def test_scenarios_have_x_first_in_the_file(tmp_path):
    for content in (SCEN, SCEN.replace(b"\t", b" "), SCEN.replace(b"\n", b"\r\n")):
        scenarios = load_movingai_scen(written(tmp_path, content))
        assert (scenarios.map_name, scenarios.map_shape, len(scenarios)) == ("maps/a.map", (2, 5), 2)
        assert scenarios.starts.tolist() == [[1, 4], [0, 1]] and scenarios.goals.tolist() == [[0, 0], [0, 2]]
        assert scenarios.buckets.tolist() == [3, 0] and scenarios.lengths.tolist() == [4.41421, 1.0]
        np.testing.assert_allclose(scenarios.precisions, 0.5e-5, rtol=1e-2)


def test_precision_of_printed_lengths(tmp_path):
    def precisions(*printed):
        lines = b"".join(b"0 m 9 9 0 0 1 1 %s\n" % text for text in printed)
        return load_movingai_scen(written(tmp_path, b"version 1\n" + lines)).precisions

    np.testing.assert_allclose(precisions(b"2.00000000", b"111.94112549"), 0.5e-8, atol=2e-7)  # eight decimals
    np.testing.assert_allclose(
        precisions(b"1234.57", b"12", b"3.41421"), [0.5e-2, 0.5e-4, 0.5e-5], rtol=1e-2
    )  # six digits
    np.testing.assert_allclose(precisions(b"4786", b"7"), [0.5e-2, 0.5e-5], rtol=1e-2)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"version 1\n", b"", "line 1.*'version 1'"),
        (b"\t4.41421", b"", "line 2.*allowed: bucket, map, width"),
        (b"4.41421", b"far", "line 2"),
        (b"4.41421", b"nan", "line 2"),
        (b"3\tmaps", b"3000000000\tmaps", "line 2"),
        (b"5\t2\t1\t0\t2", b"5\t2\t1\t0\t5", "line 3: start or goal outside.*x 0 .. 4, y 0 .. 1"),
        (b"0\tmaps/a.map", b"0\tmaps/b.map", "line 3: another map"),
        (SCEN[10:], b"", "no scenario"),
    ],
)
def test_malformed_scenarios_are_named(tmp_path, old, new, words):
    with pytest.raises(GridMapError, match=words):
        load_movingai_scen(written(tmp_path, SCEN.replace(old, new)))


def test_a_missing_file_is_named(tmp_path):
    for load in (load_movingai_map, load_movingai_scen):
        with pytest.raises(GridMapError, match="nowhere.*cannot be read"):
            load(tmp_path / "nowhere")


@pytest.mark.skipif(missing_data() is not None, reason=missing_data() or "")
def test_every_shared_scenario_begins_and_ends_on_free_tiles():
    files = sorted((data_dir() / "movingai").glob("*.scen"))
    assert len(files) == 14
    for file in files:
        scenarios = load_movingai_scen(file)
        grid = load_movingai_map(file.parent / scenarios.map_name.split("/")[-1])
        assert grid.shape == scenarios.map_shape
        for tiles in (scenarios.starts, scenarios.goals):
            assert not grid.blocked[tuple(tiles.T)].any()
