"""The benchmark harness: rows where a device or a peer is missing, figures as text, and the written page."""

import json
from math import comb

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import arm_checks, arm_planners, arm_sizes, banded, grid_streamed, machine, problems, report, write_docs
from benchmarks.harness import Context, Row, exponents, seconds
from gpu_planners.errors import DeviceError

needs_data = pytest.mark.skipif(problems.missing_data() is not None, reason=problems.missing_data() or "")


def results(rows):
    columns = {"rate": "rate", "ratio": "ratio"}
    table = {"name": "configurations", "title": "Checks", "text": "What.", "columns": columns, "rows": rows}
    return {
        "machine": machine.describe(),
        "date": "2026-01-01",
        "quick": True,
        "command": "python -m benchmarks",
        "tables": [table],
    }


ROWS = [
    {
        "case": "random",
        "subject": "gpu_planners, cpu",
        "figures": {"rate": 2.5e6, "ratio": 6.25},
        "samples": [2e6, 3e6],
        "note": "",
        "quoted": "",
    },
    {
        "case": "random",
        "subject": "gpu_planners, cuda",
        "figures": {},
        "samples": [],
        "note": "no device: none",
        "quoted": "",
    },
    {"case": "any", "subject": "VAMP", "figures": {}, "samples": [], "note": "", "quoted": "6 M/s"},
]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (2.5e6, "rate", "2.5 M"),
        (39_000.0, "rate", "39 k"),
        (3.1e8, "rate", "310 M"),
        (6.25, "ratio", "6.25"),
        (0.0156, "ms", "0.0156"),
        (752.4, "ms", "752"),
        (4.837, "length", "4.84"),
        (0.92, "share", "92 %"),
        (900, "count", "900"),
        ("35/35", "text", "35/35"),
        (float("nan"), "ms", "-"),
        (None, "ms", "-"),
    ],
)
def test_figures_as_text(value, kind, text):
    assert report.number(value, kind) == text


@pytest.mark.parametrize("name", sorted(command.REGISTRY))
def test_every_column_has_a_heading_and_a_kind(name):
    for column, kind in command.REGISTRY[name].columns.items():
        assert report.HEADINGS[column]
        assert kind == "text" or report.number(0.5, kind)


def test_the_page_marks_quoted_figures_and_missing_devices(tmp_path):
    file = tmp_path / "results.json"
    report.write_json(file, results(ROWS))
    page = tmp_path / "docs" / "page.md"
    write_docs.main([str(file), "--out", str(page)])
    text = page.read_text()
    assert (
        "quoted, not measured here" in text
        and "no device" in text
        and "2.5 M" in text
        and machine.describe()["cpu"] in text
    )
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1


def test_plot(tmp_path):
    pytest.importorskip("matplotlib", reason="plots need matplotlib (extra `view`)")
    assert report.plot(tmp_path / "plot.png", results(ROWS)) is None
    assert (tmp_path / "plot.png").stat().st_size > 5000
    assert "none was measured" in report.plot(tmp_path / "none.png", results(ROWS[1:]))


def test_plot_by_size(tmp_path):
    pytest.importorskip("matplotlib", reason="plots need matplotlib (extra `view`)")
    rows = [Row(f"{n} joints", "gpu_planners, cpu", {"size": n, "rate": 1e6 / n}).as_dict() for n in (2, 4)]
    of_sizes = results(rows + ROWS[1:])
    of_sizes["tables"][0]["name"] = "sizes"
    assert report.plot(tmp_path / "plot.png", of_sizes) is None
    assert (tmp_path / "plot.png").stat().st_size > 5000


def test_exponents_of_power_laws():
    """By the upper half alone, of what was measured alone, and of costs alone."""
    rows = [
        Row(f"{n} joints", "cpu", {"size": n, "rate": 5e6 * n**-1.5, "plan_ms": 3.0 * n**2, "free": 0.5})
        for n in (8, 16, 32)
    ]
    smaller = [Row(f"{n} joints", "cpu", {"size": n, "rate": 1.0, "plan_ms": 1.0, "free": 0.5}) for n in (2, 3, 4)]
    columns = {"rate": "rate", "plan_ms": "ms", "free": "share"}
    row = exponents([*smaller, *rows, Row("64 joints", "cpu", note="failed")], columns)
    assert row.figures == {"rate": "1.50", "plan_ms": "2.00"} and row.case == "exponent, 8 joints to 32"
    assert not exponents(rows[:1], columns).figures


def test_timing_leaves_the_warm_up_out():
    calls = []
    assert len(seconds(lambda: calls.append(1), 3, warm_up=2)) == 3 and len(calls) == 5


def test_missing_device_is_a_row_and_a_message(monkeypatch, tmp_path, capsys):
    def resolve(device):
        if device != "cpu":
            raise DeviceError("no driver")
        return device

    monkeypatch.setattr("gpu_planners.device.resolve_device", resolve)
    there, missing = machine.devices("all")
    assert there == ("cpu",) and missing == {"cuda": "no device: no driver"}
    (row,) = grid_streamed.streamed(Context((), missing, quick=True))
    assert row.subject == "gpu_planners, cuda" and row.note == "no device: no driver" and not row.figures
    (tmp_path / "motion_bench_maker").mkdir()
    assert command.main(["--device", "cuda", "--data", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "no driver" in capsys.readouterr().err


def test_a_wrong_data_folder_ends_with_2(tmp_path, capsys):
    assert command.main(["--data", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_missing_data_is_a_row_and_not_the_end(tmp_path, monkeypatch):
    """What needs the shared data says so; what needs none has figures, and a file that names the reason stays whole."""
    monkeypatch.setenv(problems.ENVIRONMENT_VARIABLE, str(tmp_path / "nowhere"))
    monkeypatch.setattr(arm_planners.robots, "ROBOTS", {"gantry": arm_planners.robots.ROBOTS["gantry"]})
    only = ["prm", "rrt_connect"]
    assert command.main(["--quick", "--device", "cpu", "--only", *only, "--out", str(tmp_path)]) == 0
    prm, rrt_connect = (table["rows"] for table in report.read_json(tmp_path / "results.json")["tables"])
    assert len(prm) == 1 and "the shared data is not there" in prm[0]["note"] and "nowhere" in prm[0]["note"]
    missing = [row for row in rrt_connect if "the shared data is not there" in row["note"]]
    assert {row["case"] for row in missing} == set(arm_planners.ROBOT_NAMES.values())
    assert not any(row["figures"] for row in missing)
    (gantry,) = (row for row in rrt_connect if row["case"].startswith("Gantry"))
    solved, asked = map(int, gantry["figures"]["solved"].split("/"))
    assert asked == 4 and solved >= 2 and gantry["figures"]["plan_ms"] > 0 and gantry["figures"]["samples"] > 0
    if not arm_planners.coal_peer.unavailable():
        assert gantry["figures"]["valid"] == f"{solved}/{solved}"
    assert "the shared data is not there" in (tmp_path / "results.md").read_text()


def test_a_robot_that_is_not_installed_is_a_row(monkeypatch):
    monkeypatch.setattr(arm_planners.robots, "unavailable", lambda name: "example-robot-data is not installed")
    (row,) = arm_planners._generated_rows("panda", Context(("cpu",), {}, quick=True))
    assert row.case.startswith("Panda") and row.note == "example-robot-data is not installed" and not row.figures


def test_paths_of_generated_problems_are_rechecked_by_coal():
    """A path that begins elsewhere is not valid: the problem has become another one."""
    pytest.importorskip("coal")
    arm = arm_planners.generated_arm("gantry", 1)
    one, other = arm.problems[:2]
    for path, valid in (([one.start] * 2, "1/1"), ([one.start, one.goals[0]], "0/1"), ([other.start] * 2, "0/1")):
        row = arm_planners.checked_row("case", "who", {}, [], {arm.key(one): [np.array(path)]}, Context((), {}))
        assert row.figures["valid"] == valid and not row.unchecked


@pytest.mark.parametrize("vertices", [None, 8, 125])
def test_arms_of_a_size(tmp_path, vertices):
    """The files make the robot that the table names: joints, lengths, vertices of hulls, and which links can meet."""
    rig = arm_sizes.serial_arm(tmp_path, 5, vertices)
    robot = rig.model
    assert robot.dof == 5 and len(robot.shapes) == 5 and len(robot.self_collision_pairs) == comb(5, 2) - 4
    tip = robot.link_index("link_5")
    at = robot.frame_poses(np.zeros((1, 5)))[0][robot.link_frame[tip]] @ robot.T_frame_link[tip]
    assert 0.8 / 1.2 / 5 * 1.5 < 1.5 - at[0, 3] < 1.2 / 0.8 / 5 * 1.5
    if vertices:
        assert [len(shape.vertices) for shape in robot.shapes] == [vertices] * 5
    again = arm_sizes.serial_arm(tmp_path, 5, vertices).model
    np.testing.assert_array_equal(again.frames, robot.frames)


def test_sizes_agree_with_coal_and_outlast_a_size_that_fails(tmp_path, monkeypatch):
    """The whole way through, on two sizes of each kind, of which one does not fit."""
    checker = arm_sizes.CollisionChecker

    def small(robot, *others):
        if robot.dof > 7:
            raise DeviceError("too\nlarge")
        return checker(robot, *others)

    monkeypatch.setattr(arm_sizes, "CollisionChecker", small)
    monkeypatch.setattr(arm_sizes, "JOINTS", (3, 4, 5, 8))
    monkeypatch.setattr(arm_sizes, "VERTICES", (8, 16, 32, 64))
    monkeypatch.setattr(arm_sizes, "TREES", ((6, 30, 100),))
    assert command.main(["--quick", "--device", "cpu", "--only", "sizes", "--out", str(tmp_path)]) == 0
    (table,) = report.read_json(tmp_path / "results.json")["tables"]
    three, eight, none, *of_vertices, exponent, tree, baxter = table["rows"]
    assert "DeviceError: too large" in eight["note"] and not eight["figures"] and not none["figures"]
    assert baxter["case"].startswith("Baxter") and (baxter["note"] or baxter["figures"])
    for row in (three, *of_vertices, tree):
        figures = row["figures"]
        assert min(figures["rate"], figures["free_rate"], figures["motions"]) > 0 and 0.1 < figures["free"] < 1
        if not arm_sizes.coal_peer.unavailable():
            assert figures["compared"] > 45 and figures["differing"] == 0
    assert of_vertices[1]["figures"]["solved"] == "3/3"
    assert set(exponent["figures"]) == {"rate", "free_rate", "motions", "plan_ms"}


@needs_data
def test_configurations_agree_with_coal(tmp_path):
    """The whole way through, on few configurations: compared with coal where it is installed."""
    assert command.main(["--quick", "--device", "cpu", "--only", "configurations", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "results.json").read_text())["tables"][0]["rows"]
    ours = [row for row in rows if row["subject"] == "gpu_planners, cpu"]
    assert len(ours) == 2 and all(row["figures"]["rate"] > 0 for row in ours)
    if any(row["subject"].startswith("coal") and row["figures"] for row in rows):
        assert all(row["figures"]["compared"] > 500 and row["figures"]["differing"] == 0 for row in ours)


@needs_data
def test_batches_of_checks_agree_with_coal(tmp_path):
    """Ours always; mujoco_warp's where it is installed."""
    assert command.main(["--quick", "--device", "cpu", "--only", "check_batches", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "results.json").read_text())["tables"][0]["rows"]
    ours = [row for row in rows if row["subject"] == "gpu_planners, cpu"]
    theirs = [row for row in rows if row["subject"] == "mujoco_warp, cpu"]
    assert len(ours) == len(theirs) == 2
    for row in ours + [row for row in theirs if "skipped" not in row["note"]]:
        figures = row["figures"]
        assert figures["compared"] > 500 and figures["false_free"] == figures["false_hit"] == 0


@needs_data
def test_configurations_along_segments_start_at_the_start():
    problem = problems.load_problems("panda")[0]

    class Robot:
        lower, upper, dof = np.full(7, -1.0), np.full(7, 1.0), 7

    q = arm_checks.along_segments(Robot, problem, 120)
    assert q.shape == (120, 7)
    np.testing.assert_allclose(q[[0, 49]], [problem.start, problem.goals[0]])


@needs_data
def test_paths_are_rechecked_by_coal():
    pytest.importorskip("coal")
    problem = problems.load_problems("panda")[0]
    standing, straight = [problem.start, problem.start], [problem.start, problem.goals[0]]
    row = arm_planners.checked_row(
        "case", "who", {}, [], {"panda/" + problem.name: [np.array(standing)]}, Context((), {})
    )
    assert row.figures["valid"] == "1/1" and not row.unchecked and row.note == ""
    row = arm_planners.checked_row(
        "case", "who", {}, [], {"panda/" + problem.name: [np.array(standing), np.array(straight)]}, Context((), {})
    )
    assert row.figures["valid"] == "0/1"


@needs_data
def test_paths_wait_for_a_machine_with_coal(monkeypatch):
    problem = problems.load_problems("ur5", families=["box"])[0]
    monkeypatch.setattr(arm_planners.coal_peer, "unavailable", lambda: "skipped: coal is not installed")
    row = arm_planners.checked_row(
        "case", "who", {}, [], {"ur5/" + problem.name: [np.array([problem.start] * 2)]}, Context((), {}), "slow"
    )
    assert "valid" not in row.figures and "not re-checked here" in row.note and row.unchecked
    monkeypatch.undo()
    if not arm_planners.coal_peer.unavailable():
        again = arm_planners.recheck(row.as_dict())
        assert again["figures"]["valid"] == "1/1" and again["note"] == "slow" and not again["unchecked"]


def test_runs_of_one_machine_become_one_chapter(tmp_path):
    files = [tmp_path / f"{number}.json" for number in range(3)]
    for file, name, subject in zip(files, ("checks", "batch", "batch"), ("one", "two", "three"), strict=True):
        content = results([ROWS[0] | {"subject": subject}])
        content["tables"][0] |= {"name": name, "title": name}
        report.write_json(file, content | {"command": f"run {subject}"})
    write_docs.main([*map(str, files), "--out", str(tmp_path / "page.md")])
    text = (tmp_path / "page.md").read_text()
    assert (
        text.count("\n## ") == 1
        and text.count("### ") == 2
        and "| one |" in text
        and "| three |" in text
        and "| two |" not in text
    )
    assert all(f"`run {subject}`" in text for subject in ("one", "two", "three"))


def test_bands_are_measured_and_identical(monkeypatch):
    monkeypatch.setattr(banded, "SMALL", (banded.Case(200), banded.Case(100, corner=True)))
    (benchmark,) = banded.BENCHMARKS
    rows = benchmark.run(Context(("cpu",), {"cuda": "no GPU here"}, quick=True))
    assert [row.note for row in rows] == ["", "", "no GPU here", "no GPU here"]
    for row in rows[:2]:
        assert set(row.figures) == set(benchmark.columns) and row.figures["identical"] == "yes"
        assert row.figures["ranks"] == "2" and row.figures["solved"] > 0.5
