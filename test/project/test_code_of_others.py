"""Compiled code is pickles: what others could have put there is neither loaded nor kept."""

import hashlib
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_planners import code_cache

ROOT = Path(__file__).resolve().parents[2]
MODULE = "from gpu_planners.device import njit\n\n@njit\ndef twice(x):\n    return 2 * x\n\nprint(twice(21))\n"


class Evil:
    def __reduce__(self):
        return (os.system, ("echo evil >> $EVIL",))


def run(folder, evil, **more):
    (folder / "made.py").write_text(MODULE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "cache"), "EVIL": str(evil)}
    made = [sys.executable, folder / "made.py"]
    return subprocess.run(made, env=environment, capture_output=True, text=True, timeout=580, **more)


def put_evil(folder):
    data = pickle.dumps(Evil())
    files = list((folder / "cache").rglob("*.code"))
    for file in files:
        file.write_bytes(hashlib.sha256(data).digest() + data)
    return files


@pytest.mark.parametrize("opened", ["cache", "product", "file"])
def test_code_where_others_can_write_is_not_loaded(tmp_path, opened):
    evil = tmp_path / "evil"
    assert run(tmp_path, evil).stdout == "42\n"
    (file,) = put_evil(tmp_path)
    {"cache": tmp_path / "cache", "product": file.parent, "file": file}[opened].chmod(0o777)
    answer = run(tmp_path, evil)
    assert answer.stdout == "42\n" and not evil.exists()
    if opened != "file":
        assert "can be written to by others" in answer.stderr and len(answer.stderr.splitlines()) == 1
        assert pickle.dumps(Evil()) in file.read_bytes()  # nor is anything kept there
    else:
        assert pickle.dumps(Evil()) not in file.read_bytes() and not file.stat().st_mode & stat.S_IWOTH


def test_folders_and_files_are_made_so_that_others_cannot_write(tmp_path):
    assert run(tmp_path, tmp_path / "evil", preexec_fn=lambda: os.umask(0)).stdout == "42\n"
    made = [tmp_path / "cache", *(tmp_path / "cache").rglob("*")]
    assert any(file.suffix == ".code" for file in made)
    for each in made:
        if each.is_dir() or each.suffix == ".code":
            assert not each.stat().st_mode & (stat.S_IWOTH | stat.S_IWGRP), each
    assert not code_cache.open_to(tmp_path / "cache")


def test_folders_of_other_users_are_open_to_them(tmp_path, monkeypatch):
    code_cache.open_to.cache_clear()
    (tmp_path / "cache").mkdir()
    if os.geteuid():
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    else:
        os.chown(tmp_path / "cache", 12345, 12345)
    assert "its owner, user" in code_cache.open_to(tmp_path / "cache")
    code_cache.open_to.cache_clear()


def test_in_a_sticky_folder_a_folder_of_ones_own_is_closed(tmp_path):
    code_cache.open_to.cache_clear()
    tmp_path.chmod(0o1777)
    assert not code_cache.open_to(tmp_path / "mine") and (tmp_path / "mine").is_dir()
    assert "others" in code_cache.open_to(tmp_path)
    code_cache.open_to.cache_clear()
