"""ARCHITECTURE.md names files and folders that exist, and every module of the package lies somewhere it names."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def test_named_paths_exist():
    names = set(re.findall(r"`([\w./]+(?:\.py|/))`", TEXT))
    assert len(names) > 25
    known = {p.name for p in (ROOT / "gpu_planners").rglob("*.py")}
    missing = [n for n in names if not ((ROOT / n).exists() if "/" in n else n in known)]
    assert not missing, f"ARCHITECTURE.md names {missing}, which do not exist"


def test_modules_are_named():
    modules = {p.name for part in ("arm", "grid") for p in (ROOT / "gpu_planners" / part).glob("*.py")} - {"__init__.py"}
    unnamed = [m for m in sorted(modules) if m not in TEXT]
    assert not unnamed, f"ARCHITECTURE.md does not mention {unnamed}"
