"""map_server's files against the rules of nav2_map_server written pixel by pixel, and what is refused."""

import math

import numpy as np
import pytest
import yaml
from PIL import Image

from gpu_planners.errors import GridMapError
from gpu_planners.grid import GridMap, load_map_yaml, save_map_yaml
from gpu_planners.grid.maps.map_files import read_map_yaml

FIELDS = {
    "image": "map.png",
    "resolution": 0.05,
    "origin": [-1.0, 2.0, 0.3],
    "negate": 0,
    "occupied_thresh": 0.65,
    "free_thresh": 0.25,
}


def write(tmp_path, picture=None, without=(), **changes):
    file = tmp_path / "map.yaml"
    file.write_text(yaml.safe_dump({k: v for k, v in (FIELDS | changes).items() if k not in without}))
    if picture is not None:
        picture.save(tmp_path / changes.get("image", "map.png"))
    return file


def map_server(rgba, has_alpha, mode, negate, occupied, free):
    """One pixel of nav2_map_server's loadMapFromFile, channels 0 .. 1."""
    channels = list(rgba if mode == "trinary" and has_alpha else rgba[:3])
    shade = sum(channels) / len(channels)
    occupancy = shade if negate else 1 - shade
    if mode == "raw":
        value = math.floor(shade * 255 + 0.5)
        return value if value <= 100 else -1
    if mode == "scale" and rgba[3] != 1:
        return -1
    if occupied < occupancy:
        return 100
    if occupancy < free:
        return 0
    return -1 if mode == "trinary" else round((occupancy - free) / (occupied - free) * 100)


def random_picture(kind, rng):
    shape = (7, 11)
    if kind == "L":
        return Image.fromarray(rng.integers(0, 256, shape, np.uint8))
    if kind == "I;16":
        return Image.fromarray(rng.integers(0, 65536, shape, np.uint16))
    if kind == "1":
        return Image.fromarray(rng.random(shape) > 0.5)
    if kind == "P":
        return Image.fromarray(rng.integers(0, 256, (*shape, 3), np.uint8)).quantize(16)
    pixels = rng.integers(0, 256, (*shape, len(kind)), np.uint8)
    if kind.endswith("A"):
        pixels[..., -1] = np.where(rng.random(shape) < 0.6, 255, pixels[..., -1])
    return Image.fromarray(pixels, kind)


@pytest.mark.parametrize("negate", [0, 1, True])
@pytest.mark.parametrize("mode", ["trinary", "scale", "raw"])
@pytest.mark.parametrize("kind", ["L", "LA", "RGB", "RGBA", "I;16", "1", "P"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_pixels_mean_what_map_server_says(tmp_path, kind, mode, negate):
    picture = random_picture(kind, np.random.default_rng(len(kind)))
    data, resolution, origin = read_map_yaml(write(tmp_path, picture, mode=mode, negate=negate, occupied_thresh=0.71))
    if kind == "I;16":
        grey = np.asarray(picture)[..., None] / 65535
        channels = np.concatenate([grey, grey, grey, np.ones_like(grey)], axis=2)
    else:
        channels = np.asarray(picture.convert("RGBA")) / 255
    assert (resolution, origin) == (0.05, (-1.0, 2.0, 0.3)) and data.dtype == np.int8
    for row in range(7):
        for col in range(11):
            expected = map_server(channels[6 - row, col], kind.endswith("A"), mode, bool(negate), 0.71, 0.25)
            assert abs(data[row, col] - expected) <= (mode == "scale"), (row, col)  # a half may round either way


def test_pgm_and_costs(tmp_path):
    (tmp_path / "map.pgm").write_bytes(b"P5\n# CREATOR: map_saver\n3 2\n255\n" + bytes([254, 205, 0, 0, 254, 254]))
    file = write(tmp_path, image="map.pgm", free_thresh=0.196)
    grid = load_map_yaml(file, 4, unknown=9)
    assert grid.costs.tolist() == [[0, 1, 1], [1, 9, 0]]  # the lowest line first
    assert (grid.connectivity, grid.resolution, grid.origin) == (4, 0.05, (-1.0, 2.0, 0.3))
    assert load_map_yaml(file, unknown="free").costs[1, 1] == 1 and load_map_yaml(file).costs[1, 1] == 0
    scaled = load_map_yaml(
        write(tmp_path, image="map.pgm", mode="scale", free_thresh=0.1), highest_cost=100, occupied_from=90
    )
    assert 1 < scaled.costs[1, 1] < 50 and scaled.costs[1, 0] == 1 and scaled.costs[1, 2] == 0


@pytest.mark.parametrize("picture", [".png", ".pgm"])
@pytest.mark.parametrize("highest", [1, 100])
def test_what_is_saved_is_loaded(tmp_path, picture, highest):
    rng = np.random.default_rng(highest)
    grid = GridMap(rng.integers(0, highest + 1, (30, 41)), 8, 0.1, (3.0, -4.0, 1.0))
    assert save_map_yaml(tmp_path / "saved.yaml", grid, picture) == tmp_path / f"saved{picture}"
    back = load_map_yaml(tmp_path / "saved.yaml", occupied_from=100, highest_cost=100 if highest > 1 else 1)
    assert np.array_equal(back.costs, grid.costs) and (back.resolution, back.origin) == (grid.resolution, grid.origin)


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    with pytest.raises(GridMapError, match="cost 101; allowed in a map_server file: 0 .. 100"):
        save_map_yaml(tmp_path / "a.yaml", GridMap([[101]]))
    with pytest.raises(GridMapError, match="'.jpg'; allowed: '.png' or '.pgm'"):
        save_map_yaml(tmp_path / "a.yaml", GridMap([[1]]), ".jpg")


@pytest.mark.parametrize("missing", list(FIELDS))
def test_missing_fields_are_named(tmp_path, missing):
    with pytest.raises(GridMapError, match=f"map.yaml: {missing} is missing"):
        load_map_yaml(write(tmp_path, Image.new("L", (2, 2)), without=[missing]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image": ""}, "image is ''"),
        ({"resolution": 0}, "resolution is 0; allowed: metres"),
        ({"resolution": "coarse"}, "resolution is 'coarse'"),
        ({"origin": [0, 0]}, r"origin is \[0, 0\]; allowed: \[x, y, yaw\]"),
        ({"origin": [0, float("inf"), 0]}, "origin"),
        ({"negate": "no"}, "negate is 'no'; allowed: 0 or 1"),
        ({"negate": 2}, "negate is 2; allowed: 0 or 1"),
        ({"mode": "binary"}, "mode is 'binary'; allowed: trinary, scale, raw"),
        ({"occupied_thresh": 65}, "occupied_thresh is 65; allowed: 0 .. 1"),
        ({"free_thresh": 0.7}, "free_thresh is 0.7; allowed: below occupied_thresh, 0.65"),
    ],
)
def test_bad_fields_are_named(tmp_path, changes, words):
    with pytest.raises(GridMapError, match=words):
        load_map_yaml(write(tmp_path, **changes))


def test_bad_files_are_named(tmp_path):
    with pytest.raises(GridMapError, match="nowhere.yaml' cannot be read"):
        load_map_yaml(tmp_path / "nowhere.yaml")
    with pytest.raises(GridMapError, match="image .*map.png' cannot be read"):
        load_map_yaml(write(tmp_path))
    for content in (
        b"no picture",
        b"P5\n3 2\n0\n" + bytes(6),
        b"P5\n3 200000000000000\n255\n",
        b"P5\n3 2\n255\n" + bytes(5),
    ):
        (tmp_path / "map.png").write_bytes(content)
        with pytest.raises(GridMapError, match="image .*map.png' cannot be read"):
            load_map_yaml(write(tmp_path))
    for text, words in (("[1, 2", "is not YAML"), ("- 1", "holds list"), ("", "holds NoneType")):
        (tmp_path / "map.yaml").write_text(text)
        with pytest.raises(GridMapError, match=words):
            load_map_yaml(tmp_path / "map.yaml")
