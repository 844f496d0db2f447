"""Files made to exhaust or to hang the reader: each is refused soon, with little memory, by the package's own error."""

import os
import struct
import time
import tracemalloc
import zlib
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

from gpu_planners.arm.collision.scene_file import load_scene
from gpu_planners.arm.urdf.loader import load_urdf
from gpu_planners.arm.urdf.srdf_xml import read_srdf
from gpu_planners.arm.urdf.urdf_xml import read_urdf
from gpu_planners.errors import GridMapError, ObstacleError, RobotDescriptionError
from gpu_planners.files import MOST_BYTES, read_yaml
from gpu_planners.grid import load_map_yaml, load_movingai_map, load_movingai_scen
from gpu_planners.papers.dl14.image import read_image

SECONDS = 40  # tells a second from minutes, on a busy machine too
MEBIBYTES = 200
LIMIT = '<limit lower="-1" upper="2" velocity="1.5" effort="1"/>'
MAP = "image: map.pgm\nresolution: 0.05\norigin: [0, 0, 0]\nnegate: 0\noccupied_thresh: 0.65\nfree_thresh: 0.2\n"
ALIAS_BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9))
ENTITIES = (
    f'<!DOCTYPE r [<!ENTITY a "{"x" * 1000}">'
    + "".join(f'<!ENTITY a{i} "{(f"&a{i - 1};" if i else "&a;") * 10}">' for i in range(8))
    + "]>"
)


@contextmanager
def soon_and_small():
    tracemalloc.start()
    start = time.monotonic()
    try:
        yield
        assert time.monotonic() - start < SECONDS
        assert tracemalloc.get_traced_memory()[1] < MEBIBYTES * 2**20
    finally:
        tracemalloc.stop()


def refused(error, match, function, *args, **kwargs):
    with soon_and_small(), pytest.raises(error, match=match):
        function(*args, **kwargs)


def written(tmp_path, name, content):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path / name


def chain(count, inside, kind="revolute"):
    """A robot of `count` joints in a row; inside(i): what stands in joint i beside its limit."""
    links = "".join(f'<link name="l{i}"/>' for i in range(count + 1))
    return (
        '<robot name="arm">'
        + links
        + "".join(
            f'<joint name="j{i}" type="{kind}"><parent link="l{i}"/><child link="l{i + 1}"/>'
            f'<origin xyz="0 0 1"/><axis xyz="0 0 1"/>{LIMIT}{inside(i)}</joint>'
            for i in range(count)
        )
        + "</robot>"
    )


PLAIN = chain(1, lambda i: "")


# Every reader

READERS = {
    "urdf": (RobotDescriptionError, load_urdf),
    "srdf": (RobotDescriptionError, lambda file: load_urdf(PLAIN, file)),
    "scene": (ObstacleError, load_scene),
    "map": (GridMapError, load_map_yaml),
    "movingai": (GridMapError, load_movingai_map),
    "scen": (GridMapError, load_movingai_scen),
    "image": (GridMapError, lambda file: load_map_yaml(map_of(file))),
    "mesh": (ObstacleError, lambda file: load_scene(scene_of(file))),
}


def map_of(image):
    return written(image.parent, "of.yaml", MAP.replace("map.pgm", str(image)))


def scene_of(mesh):
    stl = mesh.parent / "link.stl"
    stl.symlink_to(mesh)
    return written(mesh.parent, "of.yaml", "obstacles: [{name: a, type: mesh, file: link.stl}]")


@pytest.mark.parametrize("reader", READERS)
def test_pipes_devices_and_folders_are_refused(tmp_path, reader):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    error, load = READERS[reader]
    for name in ("pipe", "device", "folder"):
        (tmp_path / "link.stl").unlink(missing_ok=True)
        refused(error, "not a regular file", load, tmp_path / name)


@pytest.mark.parametrize("reader", READERS)
def test_too_large_files_are_refused_before_they_are_read(tmp_path, reader):
    file = written(tmp_path, "sparse", b"")
    os.truncate(file, 2**40)
    error, load = READERS[reader]
    refused(error, "has 1099511627776 bytes; allowed", load, file)


@pytest.mark.parametrize("reader", ["urdf", "srdf", "scene", "map", "movingai", "scen"])
@pytest.mark.parametrize("path", [None, 5, b"<robot/>", b"/tmp/x", [], 1.5], ids=repr)
def test_what_is_no_path_is_refused(reader, path):
    if (reader, path) != ("srdf", None):
        refused(READERS[reader][0], "must be a path", READERS[reader][1], path)


@pytest.mark.parametrize("reader", ["urdf", "scene", "map", "movingai"])
@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "~nobody-of-that-name/x"], ids=["zero byte", "long", "no user"])
def test_paths_that_name_no_file_are_refused(reader, path):
    refused(READERS[reader][0], "cannot be read", READERS[reader][1], path)


@pytest.mark.parametrize("reader", ["urdf", "srdf", "scene", "map"])
def test_what_is_no_text_is_refused(tmp_path, reader):
    refused(READERS[reader][0], "not UTF-8", READERS[reader][1], written(tmp_path, "x", b"\xff\xfe\x00<robot/>"))


# YAML

YAML = {
    "aliases": (ALIAS_BOMB, r"alias \(\*a0\) in line 2"),
    "one alias": ("a: &x [1]\nb: *x", "alias"),
    "lists": ("[" * 500_000, "more than 20 deep|maximum nesting depth"),
    "mappings": ("{a: " * 500_000, "more than 20 deep|maximum nesting depth"),
    "blocks": ("- " * 500_000, "more than 20 deep|maximum nesting depth"),
    "keys": ("? " * 500_000, "more than 20 deep|maximum nesting depth"),
    "long number": ("a: " + "9" * 5000, "5000 characters in line 1"),
    "long text": ("a: " + "x" * 10**6, "characters"),
    "sexagesimal": ("a: 1" + ":1" * 10**6, "characters"),
    "documents": ("---\n" * 500_000, "second document"),
    "bad int": ("a: !!int x", "not YAML"),
    "empty int": ("a: !!int ''", "not YAML"),
    "bad bool": ("a: !!bool x", "not YAML"),
    "bad date": ("a: 2001-02-31", "not YAML"),
    "bad time": ("a: !!timestamp x", "not YAML"),
    "list as key": ("? [1]\n: 2", "not YAML"),
    "merge": ("<<: 1", "not YAML"),
    "python": ("!!python/name:os.system", "not YAML"),
    "zero byte": ("a: \0", "not YAML"),
}


@pytest.mark.parametrize("text, words", YAML.values(), ids=YAML)
@pytest.mark.parametrize(
    "error, load, size",
    [(ObstacleError, load_scene, 4 << 20), (GridMapError, load_map_yaml, 1 << 16)],
    ids=["scene", "map"],
)
def test_hostile_yaml(tmp_path, text, words, error, load, size):
    refused(error, words if len(text) <= size else "bytes; allowed", load, written(tmp_path, "x.yaml", text))


def test_yaml_takes_powers_of_ten_for_numbers(tmp_path):
    file = written(tmp_path, "x.yaml", "[1e-3, 2E+1, -.5e1, 1.5e2, 1e, e1, 1e1x]")
    assert read_yaml(file, "a file", ValueError) == [0.001, 20.0, -5.0, 150.0, "1e", "e1", "1e1x"]


# URDF and SRDF


def test_entities_are_refused():
    for text in (f'<?xml version="1.0"?>{ENTITIES}<robot name="&a7;"/>', f"<robot>{ENTITIES}</robot>"):
        refused(RobotDescriptionError, "entity", load_urdf, text)
        refused(RobotDescriptionError, "entity", load_urdf, PLAIN, text)
    hidden = ENTITIES.replace("<!", "+ADwAIQ-")  # in UTF-7, which the text may say that it is
    refused(
        RobotDescriptionError,
        "well-formed",
        load_urdf,
        f'<?xml version="1.0" encoding="UTF-7"?>{hidden}<robot name="&a7;"/>',
    )


@pytest.mark.parametrize(
    "text, words",
    [
        ("<robot>" + "<a>" * 200_000, "depth"),
        ("<robot>" + "x" * MOST_BYTES, "characters; allowed"),
        (f'<robot name="{"a" * 11_000_000}"/>', "limit"),
        ("<robot name='\udcff'/>", "well-formed"),
        (PLAIN.replace('name="j0"', f'name="{"j" * 2000}"'), "2000 characters; allowed: 1000"),
        (PLAIN.replace('upper="2"', f'upper="{"9" * 5000}"'), "must be finite"),
        (PLAIN.replace('origin xyz="0 0 1"', f'origin xyz="{"9" * 5000} 0 1"'), "origin xyz.*3 finite numbers"),
        (chain(2500, lambda i: ""), "2501 elements link; allowed: 2000"),
    ],
    ids=["deep", "large", "attribute", "surrogate", "name", "limit", "origin", "links"],
)
def test_hostile_urdf(text, words):
    refused(RobotDescriptionError, words, load_urdf, text)


def test_long_chains_of_mimics_are_read():
    with soon_and_small():
        robot = load_urdf(chain(1000, lambda i: f'<mimic joint="j{i - 1}" multiplier="-1" offset="0.001"/>' * (i > 0)))
    assert robot.joint_names == ("j0",) and len(robot.frames) == 1000
    assert robot.frames["multiplier"][[998, 999]].tolist() == [1, -1]
    assert robot.frames["offset"][[998, 999]] == pytest.approx([0, 0.001])
    circle = chain(1000, lambda i: f'<mimic joint="j{i - 1 if i else 999}"/>')
    refused(RobotDescriptionError, "mimics itself", load_urdf, circle)
    growing = chain(1000, lambda i: f'<mimic joint="j{i - 1}" multiplier="10"/>' * (i > 0))
    refused(RobotDescriptionError, "beyond all numbers", load_urdf, growing)
    fast = chain(2, lambda i: '<mimic joint="j0" multiplier="6000.5"/>' * i)
    refused(RobotDescriptionError, "'j1' reaches 12001 rad .*allowed: 10000 rad", load_urdf, fast)


def srdf(*groups):
    return (
        '<robot name="arm">' + "".join(f'<group name="{name}">{inside}</group>' for name, inside in groups) + "</robot>"
    )


def test_groups_that_name_each_other():
    twice = [(f"g{i}", f'<group name="g{i + 1}"/>' * 2) for i in range(60)]
    with soon_and_small():
        assert load_urdf(PLAIN, srdf(*twice, ("g60", '<joint name="j0"/>')), group="g0").joint_names == ("j0",)
    line = [(f"g{i}", f'<group name="g{i + 1}"/>') for i in range(1500)]
    with soon_and_small():
        assert load_urdf(PLAIN, srdf(*line, ("g1500", '<joint name="j0"/>')), group="g0").joint_names == ("j0",)
    refused(RobotDescriptionError, "contains itself", load_urdf, PLAIN, srdf(*line, ("g1500", '<group name="g0"/>')))
    refused(
        RobotDescriptionError, "groups; allowed: 2000", load_urdf, PLAIN, srdf(*[(f"g{i}", "") for i in range(3000)])
    )


# Maps


def png(width, height, pixels=b""):
    def part(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(pixels, 1)) + part(b"IEND", b"")


PICTURES = {
    "pgm of 10^18": b"P5\n1000000000 1000000000\n255\n",
    "pgm of 10^9": b"P5\n1000000000 1\n255\n",
    "pgm of 30000^2": b"P5\n30000 30000\n255\n",
    "pgm of 5000 digits": b"P5\n" + b"9" * 5000 + b" 1\n255\n",
    "pgm of nothing": b"P5\n0 0\n255\n",
    "plain pgm": b"P2\n16384 16384\n255\n1 2 3",
    "png of 2^62": png(2**31 - 1, 2**31 - 1),
    "png that inflates": png(40000, 40000, bytes(40000 * 5001)),
    "empty": b"",
    "cut short": png(100, 100)[:40],
}


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_hostile_pictures(tmp_path, picture):
    written(tmp_path, "map.pgm", picture)
    refused(GridMapError, "image .*cannot be read", load_map_yaml, written(tmp_path, "map.yaml", MAP))


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("0.05", "1" + "0" * 800, "resolution"),
        ("0.05", "yes", "resolution"),
        ("0.05", "[1]", "resolution"),
        ("[0, 0, 0]", "[0, 0, " + "9" * 900 + "]", "origin"),
        ("negate: 0", "negate: [0]", "negate"),
        ("0.65", ".nan", "occupied_thresh"),
        ("negate: 0", "negate: 0\nmode: [raw]", "mode"),
        ("map.pgm", "5", "image"),
        ("map.pgm", '"a\\0"', "image"),
        ("map.pgm", "x" * 900, "image"),
    ],
)
def test_odd_fields_of_maps(tmp_path, old, new, words):
    refused(GridMapError, words, load_map_yaml, written(tmp_path, "map.yaml", MAP.replace(old, new)))


@pytest.mark.parametrize("height", ["1000000000", "999999999", "9" * 5000, "0" * 100_000])
def test_sizes_in_headers_of_movingai(tmp_path, height):
    text = f"type octile\nheight {height}\nwidth {height}\nmap\n..\n"
    refused(GridMapError, "height", load_movingai_map, written(tmp_path, "a.map", text))


def test_long_numbers_in_scenarios(tmp_path):
    for number in ("9" * 5000, "-" + "9" * 5000, "1e400"):
        text = f"version 1\n3\tm\t{number}\t2\t0\t0\t0\t0\t1\n"
        refused(GridMapError, "line 2", load_movingai_scen, written(tmp_path, "a.scen", text))


def test_a_large_map_is_read_in_strips(tmp_path, monkeypatch):
    from gpu_planners.grid.maps import map_files

    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (300, 100), np.uint8)
    written(tmp_path, "map.pgm", b"P5\n100 300\n255\n" + pixels.tobytes())
    file = written(tmp_path, "map.yaml", MAP.replace("negate: 0", "negate: 0\nmode: scale"))
    whole = map_files.read_map_yaml(file)[0]
    monkeypatch.setattr(map_files, "STRIP", 700)
    assert np.array_equal(map_files.read_map_yaml(file)[0], whole)


@pytest.mark.parametrize("kind", ["EPS", "GIF"])
def test_pictures_go_by_few_formats(tmp_path, kind):
    """EPS would start Ghostscript, and a GIF of few bytes has a screen of gigabytes."""
    Image.new("L", (4, 4)).save(tmp_path / "map.pgm", format=kind)
    refused(GridMapError, "image .*cannot be read", load_map_yaml, written(tmp_path, "map.yaml", MAP))
    with pytest.raises(ObstacleError, match="cannot be read"):
        read_image(tmp_path / "map.pgm")


def test_defaults_of_unknown_links_are_no_pairs():
    links = [f'<link name="l{i}"/>' for i in range(3)]
    joints = [
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<axis xyz="0 0 1"/>{LIMIT}</joint>'
        for i in range(2)
    ]
    description = read_urdf(f'<robot name="r">{"".join(links + joints)}</robot>')
    names = "".join(f'<disable_default_collisions link="{name}"/>' for name in ("x", "l0", "y"))
    disabled = read_srdf(f'<robot name="r">{names}</robot>', description).disabled
    assert disabled.keys() == {frozenset({"l0", other}) for other in ("l0", "l1", "l2")}
