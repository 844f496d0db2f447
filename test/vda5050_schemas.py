"""The JSON schemas that the VDA publishes beside the standard, where they are at hand: FOLDER/VERSION/json_schemas."""

import functools
import json
import os
import re
from pathlib import Path

import pytest
from checkout import ROOT

FOLDERS = ("GPU_PLANNERS_VDA5050", ROOT.parent / "shared" / "vda5050")


def folder():
    """Where the schemas are; skips where they are nowhere."""
    given = os.environ.get(FOLDERS[0])
    found = Path(given) if given else FOLDERS[1]
    if not found.is_dir():
        pytest.skip(f"the VDA's schemas are not here: {FOLDERS[0]} names no folder, and there is no {FOLDERS[1]}")
    return found


@functools.cache
def validator(version, name):
    jsonschema = pytest.importorskip("jsonschema")
    text = (folder() / version / "json_schemas" / f"{name}.schema").read_text("utf-8")
    schema = json.loads(re.sub(r",(\s*[}\]])", r"\1", text))  # those of 3.0.0 have commas too many
    return jsonschema.Draft202012Validator(schema)


def schema_faults(message, name):
    """[text] of what the schema of a message's version has against it."""
    found = validator(message["version"], name).iter_errors(message)
    return [f"{name} {'.'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in found]
