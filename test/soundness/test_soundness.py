"""A short form of `make soundness`: some cases of every attack, always the same ones, and none may find a wrong
answer."""

import pytest

pytest.importorskip("pinocchio", reason="the oracles need pinocchio and coal (extra `test`)")
pytest.importorskip("coal", reason="the oracles need pinocchio and coal (extra `test`)")

from soundness import limits, robots  # noqa: E402
from soundness.__main__ import NAMES, attack_named, main, run_case  # noqa: E402
from soundness.harness import ACCURACY, Attack, Run, Skipped, Tally  # noqa: E402

ROBOTS = ("panda", "ur5", "random-0", "random-1", "random-3")  # few, since each takes seconds to load
CASES = {
    "contacts": 20,
    "pairs": 8,
    "motions": 20,
    "meshes": 6,
    "worlds": 2,
    "changes": 3,
    "far": 24,
    "margins": 15,
    "paths": 2,
    "constraints": 6,
    "curves": 6,
    "timing": 12,
    "queries": 6,
    "stops": 12,
    "physics": 4,
    "grids": 4,
    "poses": 2,
    "fleets": 6,
    "tasks": 6,
    "limits": 4,
    "orders": 4,
    "arguments": 20,
}
SEED = 1


@pytest.fixture(scope="module")
def run():
    return Run(("cpu",), ROBOTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_wrong_answer(run, name, monkeypatch):
    monkeypatch.setattr(limits, "GRACE", 3.0)  # seconds: other tests have the cores
    attack, tally, number = attack_named(name), Tally(name, SEED), 0
    while tally.cases < CASES[name] and number < 20 * CASES[name]:
        run_case(run, attack, tally, number)
        number += 1
    assert not tally.wrong, "\n".join(f"{failure['what']}\n  {failure['reproduce']}" for failure in tally.failures)
    if not tally.cases:
        pytest.skip("; ".join(tally.skipped) or "nothing was attacked")
    assert tally.checks > 0
    print(tally.as_dict())


def test_wrong_answers_count_and_can_be_seen_again():
    """A tally sees an overlap called free, a proof of nothing and devices that differ; an exception is a finding."""
    tally = Tally("contacts", 7, number=3)
    tally.verdicts("robot", _verdicts([True, False, True]), [-1e-5, 3e-6, 1.0], lambda i: f"case {i}")
    assert tally.wrong == 1 and tally.checks == 3 and tally.refused == 1
    assert tally.widest == {"robot": 3e-6} and tally.deepest == 1e-5
    assert tally.failures[0]["reproduce"] == "python -m soundness --only contacts --seed 7 --case 3"
    near, apart = ACCURACY / 2, ACCURACY * 2
    tally = Tally("contacts", 7)
    tally.verdicts("robot", _verdicts([True, True], [False, False]), [near, apart], lambda i: f"case {i}")
    assert tally.apart == 1 and tally.wrong == 1

    def broken(run, rng, number, tally):
        if number == 0:
            raise Skipped("not here")
        raise ZeroDivisionError("by zero")

    tally = Tally("broken", 0)
    assert (
        not run_case(None, Attack("broken", "", broken), tally, 0)
        and tally.skipped == {"not here": 1}
        and not tally.wrong
    )
    assert run_case(None, Attack("broken", "", broken), tally, 1) and "ZeroDivisionError" in tally.failures[0]["what"]


def test_without_the_real_robots_generated_ones_are_attacked(monkeypatch):
    def missing():
        raise FileNotFoundError("example-robot-data is not installed")

    monkeypatch.setattr(robots, "example_robots_share", missing)
    run = Run(("cpu",))
    with pytest.raises(Skipped, match="panda is not in the folder of robots"):
        run.rig_named("panda")
    assert run.rig_named("random-1").robot.dof > 0


def test_the_same_seed_gives_the_same_grid_cases(tmp_path, capsys):
    counts = []
    for file in (tmp_path / "a.json", tmp_path / "b.json"):
        assert main(["--only", "grids", "--seed", "5", "--case", "2", "--json", str(file)]) == 0
        text = file.read_text()
        counts.append(text[text.index('"checks"') : text.index('"seconds"', text.index('"checks"'))])
    assert counts[0] == counts[1] and "grids" in capsys.readouterr().out


def _verdicts(*answers):
    import numpy as np

    return {device: np.array(answer) for device, answer in zip(("cpu", "cuda"), answers, strict=False)}
