"""map_server's files against both sets of rules of nav2_map_server, written pixel by pixel, and what is refused.

Pictures with few or many bits, or with a colour that stands for what is transparent, are written here byte by byte.
"""

import math
import struct
import zlib

import numpy as np
import pytest
import yaml
from PIL import Image

from gpu_planners.errors import GridMapError
from gpu_planners.grid import GridMap, load_map_yaml, save_map_yaml
from gpu_planners.grid.maps.map_files import RULES, read_map_yaml

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


def up_to_1_3_6(colour, opacity, has_alpha, mode, negate, occupied, free):
    """One pixel of loadMapFromFile of Nav2 1.3.6 and before. colour: three levels, opacity: one, 0 .. 65535"""
    channels = [*colour, opacity] if mode == "trinary" and has_alpha else colour
    shade = sum(channels) / len(channels) / 65535
    occupancy = shade if negate else 1 - shade
    if mode == "raw":
        value = math.floor(shade * 255 + 0.5)
        return value if value <= 100 else -1
    if mode == "scale" and opacity != 65535:
        return -1
    if occupied < occupancy:
        return 100
    if occupancy < free:
        return 0
    return -1 if mode == "trinary" else round((occupancy - free) / (occupied - free) * 100)


def since_1_3_7(colour, opacity, has_alpha, mode, negate, occupied, free):
    """The same since Nav2 1.3.7, with GraphicsMagick's luma and Eigen's float32."""
    f = np.float32
    parts = [f(weight * level) for weight, level in zip((0.299, 0.587, 0.114), colour)]
    luma = int(float(f(f(parts[0] + parts[1]) + parts[2])) + 0.5)
    grey = luma // 257
    if mode == "raw":
        return grey if grey <= 100 else -1
    if has_alpha and opacity // 257 < 255:
        return -1
    occupancy = f(grey) / f(255)
    occupancy = occupancy if negate else f(1) - occupancy
    if occupancy <= f(free):
        return 0
    if occupancy >= f(occupied):
        return 100
    return -1 if mode == "trinary" else math.floor((occupancy - f(free)) / f(occupied - free) * f(100) + 0.5)


ORACLES = {"nav2_1.3.6": up_to_1_3_6, "nav2_1.3.7": since_1_3_7}
SHAPE = 7, 11


def png(depth, kind, samples, **chunks):
    """A PNG file. kind: its colour type; samples: (rows, cols, channels) whole numbers; chunks: others, as bytes"""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    bits = np.unpackbits(samples.astype(">u2").view(np.uint8).reshape(*samples.shape, 2), axis=-1)[..., -depth:]
    lines = np.packbits(bits.reshape(len(samples), -1), axis=1)
    body = zlib.compress(np.pad(lines, ((0, 0), (1, 0))).tobytes())
    header = struct.pack(">2I5B", samples.shape[1], samples.shape[0], depth, kind, 0, 0, 0)
    more = b"".join(chunk(name.encode(), data) for name, data in chunks.items())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + more + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def tiff(bits, form, data, white=1):
    """An uncompressed grey TIFF. bits: of a pixel; form: 1 unsigned, 2 signed, 3 float; data: rows of bytes; white: 0
    where that is white, 1 where it is black"""
    rows, cols = SHAPE
    fields = {256: cols, 257: rows, 258: bits, 259: 1, 262: white, 273: 8, 277: 1, 278: rows, 279: len(data), 339: form}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in fields.items())
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + struct.pack("<H", len(fields)) + entries + bytes(4)


def pictures():
    """{name: (bytes, colours (rows, cols, 3), opacities (rows, cols), both 0 .. 65535, whether it has opacity)}"""
    rng = np.random.default_rng(1)
    found = {}

    def add(name, content, samples, most, opacity=None):
        colours = np.broadcast_to(samples * (65535 / most), (*SHAPE, 3)).round().astype(int)
        opaque = np.full(SHAPE, 65535) if opacity is None else opacity
        found[name] = content, colours, opaque, opacity is not None

    for depth in (1, 2, 4, 8, 16):
        most = 2**depth - 1
        grey = rng.integers(0, most + 1, (*SHAPE, 1))
        see = grey[3, 4, 0]
        add(f"grey of {depth} bits", png(depth, 0, grey), grey, most)
        see_through = png(depth, 0, grey, tRNS=struct.pack(">H", see))
        add(f"see-through grey of {depth} bits", see_through, grey, most, np.where(grey[..., 0] == see, 0, 65535))
        if depth < 16:
            palette = rng.integers(0, 256, (most + 1, 3))
            opacity = np.where(rng.random(most + 1) < 0.5, 255, rng.integers(0, 256, most + 1))
            chunks = {"PLTE": palette.astype(np.uint8).tobytes()}
            colours = palette[grey[..., 0]]
            add(f"palette of {depth} bits", png(depth, 3, grey, **chunks), colours, 255)
            chunks["tRNS"] = opacity.astype(np.uint8).tobytes()
            add(
                f"see-through palette of {depth} bits",
                png(depth, 3, grey, **chunks),
                colours,
                255,
                opacity[grey[..., 0]] * 257,
            )
    for depth in (8, 16):
        levels = rng.integers(0, 256, (*SHAPE, 3)) * (257 if depth == 16 else 1)
        alpha = np.where(rng.random((*SHAPE, 1)) < 0.5, 255, rng.integers(0, 256, (*SHAPE, 1)))
        most, alpha = 2**depth - 1, alpha * (257 if depth == 16 else 1)
        add(f"colours of {depth} bits", png(depth, 2, levels), levels, most)
        see = levels[2, 5]
        opaque = np.where((levels == see).all(axis=2), 0, 65535)
        add(
            f"see-through colours of {depth} bits",
            png(depth, 2, levels, tRNS=struct.pack(">3H", *see)),
            levels,
            most,
            opaque,
        )
        opacity = (alpha[..., 0] * (65535 // most)).astype(int)
        add(
            f"colours and opacity of {depth} bits",
            png(depth, 6, np.concatenate([levels, alpha], axis=2)),
            levels,
            most,
            opacity,
        )
        grey = levels[..., :1]
        add(
            f"grey and opacity of {depth} bits",
            png(depth, 4, np.concatenate([grey, alpha], axis=2)),
            grey,
            most,
            opacity,
        )
    grey = rng.integers(0, 256, (*SHAPE, 1))
    lines = "\n".join(" ".join(map(str, row)) for row in grey[..., 0])
    add("ASCII PGM", f"P2\n# CREATOR: map_saver # 0.05 m\n11 7 # size\n255\n{lines}\n".encode(), grey, 255)
    add("PGM", b"P5\n# by hand\n11\n# and more\n7 255\n" + grey.astype(np.uint8).tobytes(), grey, 255)
    few = grey % 101
    add("PGM up to 100", b"P5 11 7 100\n" + few.astype(np.uint8).tobytes(), (few * 255 / 100).round(), 255)
    deep = rng.integers(0, 65536, (*SHAPE, 1))
    add("PGM of 16 bits", b"P5 11 7 65535\n" + deep.astype(">u2").tobytes(), deep, 65535)
    add("PGM up to 1000", b"P5 11 7 1000\n" + (deep % 1001).astype(">u2").tobytes(), deep % 1001, 1000)
    black = rng.integers(0, 2, (*SHAPE, 1))
    add("PBM", b"P1\n# 1 is black\n11 7\n" + " ".join(map(str, black.ravel())).encode(), 1 - black, 1)
    add("PPM", b"P6 11 7 255\n" + levels[..., ::-1].astype(np.uint8).tobytes(), levels[..., ::-1] % 256, 255)
    floats = (grey / 255).astype("<f4")
    add("TIFF of floats", tiff(32, 3, floats.tobytes()), grey, 255)
    add("TIFF of floats, white is 0", tiff(32, 3, floats.tobytes(), white=0), 255 - grey, 255)
    add("TIFF of 16 bits", tiff(16, 1, deep.astype("<u2").tobytes()), deep, 65535)
    add("TIFF of 16 bits, white is 0", tiff(16, 1, deep.astype("<u2").tobytes(), white=0), 65535 - deep, 65535)
    add("TIFF, white is 0", tiff(8, 1, grey.astype(np.uint8).tobytes(), white=0), 255 - grey, 255)
    twelve = np.unpackbits((deep % 4096).astype(">u2").view(np.uint8).reshape(*SHAPE, 2), axis=-1)[..., 4:]
    add("TIFF of 12 bits", tiff(12, 1, np.packbits(twelve.reshape(7, -1), axis=1).tobytes()), deep % 4096, 4095)
    return found


PICTURES = pictures()


@pytest.mark.parametrize("negate", [0, 1, True])
@pytest.mark.parametrize("mode", ["trinary", "scale", "raw"])
@pytest.mark.parametrize("kind", PICTURES)
@pytest.mark.parametrize("rules", RULES)
def test_pixels_mean_what_map_server_says(tmp_path, rules, kind, mode, negate):
    content, colours, opacities, has_alpha = PICTURES[kind]
    (tmp_path / "map.png").write_bytes(content)
    file = write(tmp_path, mode=mode, negate=negate, occupied_thresh=0.71)
    data, resolution, origin = read_map_yaml(file, rules)
    assert (resolution, origin) == (0.05, (-1.0, 2.0, 0.3)) and data.dtype == np.int8
    for row in range(7):
        for col in range(11):
            pixel = colours[6 - row, col].tolist(), int(opacities[6 - row, col])
            expected = ORACLES[rules](*pixel, has_alpha, mode, bool(negate), 0.71, 0.25)
            exact = mode != "scale" or rules == "nav2_1.3.7"
            assert abs(data[row, col] - expected) <= (not exact), (row, col)  # a half may round either way


@pytest.mark.parametrize("mode", ["trinary", "scale"])
@pytest.mark.parametrize("negate", [0, 1])
@pytest.mark.parametrize("rules", RULES)
def test_every_shade_at_thresholds_that_it_may_equal(tmp_path, rules, mode, negate):
    """The rules differ where a shade is a threshold; most tenths and shares of 255 are none in binary."""
    shades = np.arange(256, dtype=np.uint8)[None]
    Image.fromarray(shades).save(tmp_path / "map.png")
    for free, occupied in (
        (0.0, 1.0),
        (0.2, 0.8),
        (0.4, 0.6),
        (51 / 255, 204 / 255),
        (49 / 255, 206 / 255),
        (0.5, 0.5),
    ):
        if free == occupied and mode == "scale":
            continue
        file = write(tmp_path, mode=mode, negate=negate, occupied_thresh=occupied, free_thresh=free)
        data = read_map_yaml(file, rules)[0][0]
        for shade, value in enumerate(data.tolist()):
            expected = ORACLES[rules]([257 * shade] * 3, 65535, False, mode, negate, occupied, free)
            assert value == expected, (shade, free, occupied)


def test_the_newer_rules_are_those_without_a_word(tmp_path):
    file = write(tmp_path, Image.new("RGBA", (1, 1), (255, 255, 255, 0)), free_thresh=0.3)
    assert read_map_yaml(file)[0].tolist() == read_map_yaml(file, "nav2_1.3.7")[0].tolist() == [[-1]]
    assert read_map_yaml(file, "nav2_1.3.6")[0].tolist() == [[0]]
    assert load_map_yaml(file, 4, "nav2_1.3.6").costs.tolist() == [[1]]
    assert load_map_yaml(file, rules="nav2_1.3.7", unknown=7).costs.tolist() == [[7]]
    for rules in ("kilted", 1.3, None):
        with pytest.raises(GridMapError, match="rules is .*; allowed: nav2_1.3.7, nav2_1.3.6"):
            read_map_yaml(file, rules)


def test_separated_inks_are_read_as_the_colours_that_they_make(tmp_path):
    inks = Image.fromarray(
        np.array([[[0, 0, 0, 0], [0, 0, 0, 255], [0, 0, 0, 40], [255, 255, 255, 0]]], np.uint8), "CMYK"
    )
    inks.save(tmp_path / "map.tiff")
    for rules in RULES:
        assert read_map_yaml(write(tmp_path, image="map.tiff"), rules)[0].tolist() == [[0, 100, 0, 100]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (tiff(32, 1, bytes(4 * 77)), "greys are unsigned, of 32 bits; allowed: unsigned, of up to 16"),
        (tiff(32, 2, bytes(4 * 77)), "greys are signed, of 32 bits"),
        (tiff(16, 2, bytes(2 * 77)), "greys are signed, of 16 bits"),
        (tiff(8, 2, bytes(77)), "greys are signed, of 8 bits"),
        (
            tiff(32, 3, np.full(77, 255, "<f4").tobytes()),
            r"floats reach from 255.0 to 255.0; allowed: 0 \(black\) .. 1",
        ),
        (tiff(32, 3, np.full(77, np.nan, "<f4").tobytes()), "floats reach from nan"),
    ],
)
def test_greys_of_unknown_scale_are_refused(tmp_path, content, words):
    (tmp_path / "map.png").write_bytes(content)
    with pytest.raises(GridMapError, match=words):
        read_map_yaml(write(tmp_path))


@pytest.mark.parametrize("mode", ["Trinary", "TRINARY", "Scale", "sCALE", "Raw"])
def test_modes_are_known_in_any_case(tmp_path, mode):
    picture = Image.fromarray(np.arange(256, dtype=np.uint8)[None])
    got = read_map_yaml(write(tmp_path, picture, mode=mode))[0]
    assert np.array_equal(got, read_map_yaml(write(tmp_path, mode=mode.lower()))[0])


def test_numbers_and_flags_as_yaml_writes_them(tmp_path):
    Image.fromarray(np.array([[0, 255]], np.uint8)).save(tmp_path / "map.png")
    text = "image: map.png\nresolution: {}\norigin: [{}, 0, {}]\nnegate: {}\noccupied_thresh: {}\nfree_thresh: {}\n"
    for resolution, x, yaw, occupied, free in (
        ("5e-2", "1", "3.e-1", ".65", "25.e-2"),
        ("'0.05'", '"1.0"', "0.3", "'.65'", "0.25"),
    ):
        for negate, expected in {
            **dict.fromkeys(("0", "false", "False", "no", "off", "n", "N", "'0'", "0x0"), [[100, 0]]),
            **dict.fromkeys(("1", "true", "TRUE", "yes", "On", "y", "'true'", '"1"'), [[0, 100]]),
        }.items():
            (tmp_path / "map.yaml").write_text(text.format(resolution, x, yaw, negate, occupied, free))
            data, *place = read_map_yaml(tmp_path / "map.yaml")
            assert data.tolist() == expected and place == [0.05, (1.0, 0.0, 0.3)], negate


def test_a_picture_lies_beside_its_file_or_where_it_says(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    picture = Image.fromarray(np.array([[0, 255]], np.uint8))
    picture.save(tmp_path / "there.png")
    picture.save(tmp_path / "deep" / "here.png")
    monkeypatch.chdir(tmp_path / "deep")
    for image in ("deep/here.png", "./there.png", "deep/../there.png", str(tmp_path / "there.png")):
        assert read_map_yaml(write(tmp_path, image=image))[0].tolist() == [[100, 0]]


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
        ({"negate": "1.5"}, "negate is '1.5'; allowed: 0 or 1"),
        ({"resolution": "0.05 m"}, "resolution is '0.05 m'"),
        ({"resolution": True}, "resolution is True"),
        ({"origin": [0, 0, "north"]}, "origin"),
        ({"mode": 3}, "mode is 3; allowed: trinary, scale, raw"),
        ({"free_thresh": 0.7}, "free_thresh is 0.7; allowed: below occupied_thresh, 0.65 or equal to it"),
        ({"free_thresh": 0.65, "mode": "Scale"}, "free_thresh is 0.65; allowed: below occupied_thresh, 0.65$"),
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
