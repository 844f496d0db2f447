"""Every tutorial and every picture of the gallery runs in its short form, as a user runs it, and draws what it says."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT
from PIL import Image

SCRIPTS = sorted((ROOT / "examples").glob("*/[0-9]*.py"))


def test_there_are_tutorials_and_a_gallery():
    assert SCRIPTS
    for script in SCRIPTS:
        lines = script.read_text(encoding="utf-8").splitlines()
        assert script.parent.name == "tutorials" or len(lines) < 60, script
        assert set(lines[2]) == {"="} and len(lines[2]) >= len(lines[1]) > 0, f"{script} begins with a title"


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_makes_its_pictures(script, tmp_path):
    text = script.read_text(encoding="utf-8")
    for name in " ".join(re.findall(r"^# needs: (.+)$", text, re.MULTILINE)).split():
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed, and no package index has it")
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {**os.environ, "GPU_PLANNERS_SHORT": "1", "AMENT_PREFIX_PATH": sys.prefix, "PATH": path}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=550
    )
    assert done.returncode == 0, done.stdout + done.stderr
    files = sorted(file for file in (tmp_path / "out").iterdir() if file.suffix in (".png", ".gif", ".html"))
    assert files, "nothing was drawn"
    for file in files:
        if file.suffix == ".html":
            assert "<script" in file.read_text(encoding="utf-8"), file
        else:
            shows(file)


def shows(file: Path):
    """Is it a picture of more than one colour; do the frames of an animation differ?"""
    with Image.open(file) as picture:
        first = np.array(picture.convert("RGB"))
        assert min(first.shape[:2]) > 100 and len(np.unique(first.reshape(-1, 3), axis=0)) > 3, file
        if file.suffix == ".gif":
            picture.seek(picture.n_frames // 2)
            assert picture.n_frames > 5 and (np.array(picture.convert("RGB")) != first).any(), file
