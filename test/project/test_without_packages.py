"""Where optional packages are missing, test files are skipped in words; none is an error."""

import subprocess
import sys

import pytest
from checkout import ROOT
from conftest import OPTIONAL

COLLECT = """
import re, sys
import pytest

class Blocker:
    def pytest_collection(self):  # by then pytest has put a finder of its own in front
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if re.fullmatch({blocked!r}, name.split(".")[0]):
            raise ModuleNotFoundError("blocked: " + name, name=name)

sys.path.insert(0, "test")  # conftest
without = ("no:cacheprovider", "no:hypothesispytest", "no:xdist")
plugins = [f"-p{{name}}" for name in without]
sys.exit(pytest.main(["--collect-only", "-qq", "-rs", *plugins, *{arguments!r}], [Blocker()]))
"""
ROS = [words for words, brings in OPTIONAL.items() if "ROS" in brings or "colcon" in brings]


def collect(*arguments, blocked=()):
    code = COLLECT.format(blocked="|".join(f"(?:{words})" for words in blocked), arguments=[str(a) for a in arguments])
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=580)


@pytest.mark.slow
@pytest.mark.parametrize("blocked", [ROS, OPTIONAL.keys() - ROS], ids=["ROS", "all others"])
def test_every_file_is_collected_or_skipped_with_the_reason(blocked):
    done = collect(blocked=blocked)
    assert done.returncode == 0, done.stdout + done.stderr
    reasons = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert len(reasons) > 3 and all("install" in line or "extra" in line for line in reasons), reasons


@pytest.mark.parametrize("line", ["import no_such_module", "from json import no_such"])
def test_any_other_import_that_fails_is_an_error(tmp_path, line):
    file = tmp_path / "test_it.py"
    file.write_text(line)
    done = collect("-pconftest", f"--rootdir={tmp_path}", file)
    assert done.returncode == 2 and "ImportError while importing" in done.stdout, done.stdout + done.stderr
