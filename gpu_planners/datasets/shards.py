"""The folder of a data set: files of a fixed number of rows, each whole or not there, and a manifest.

    _dataset.json            the manifest: what the rows depend on, how many there are, how many a file has; readers of
                             Parquet folders leave out what begins with _ or .
    problems-000000.parquet  rows 0 to rows - 1, then the next file
    .lock                    held by the run that writes

A name stands for a whole file whatever ends a run (`files.write_whole`).
"""

import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..arguments import whole
from ..errors import GpuPlannersError
from ..files import UNFINISHED, file_path, locked_file, read_json, write_whole
from .recipe import FORMAT, differences
from .schema import arrow, arrow_schema, digest_of, facts_of, plain_floats

MANIFEST, LOCK = "_dataset.json", ".lock"
MOST_PROBLEMS, MOST_ROWS, MOST_FILES = 10**12, 1_000_000, 1_000_000
MOST_BYTES = 256 * 2**20  # of the manifest, which has the names of all scenes
DIGEST = b"gpu_planners.rows"  # of the metadata in each file: of its rows
NEEDED = {  # of the manifest, beside the numbers of problems and rows
    "recipe": {"draw", "margin_m", "planner", "timing"},
    "recipe.robot": {"joint_names", "model_sha256", "name", "tip"},
    "source": {"scenes"},
}


class DatasetError(GpuPlannersError):
    """A data set is malformed, of another version, or not what was asked for; the text names the file and the value."""


class Shards:
    """The files of one data set. manifest: {format, problems, rows, recipe, source}"""

    def __init__(self, folder: str | os.PathLike, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = Path(folder), manifest
        self.problems, self.rows = manifest["problems"], manifest["rows"]

    @property
    def count(self) -> int:
        """How many files the data set has when it is whole."""
        return -(-self.problems // self.rows)

    def file(self, number: int) -> Path:
        """The path of a file by its number, from 0."""
        return self.folder / f"problems-{number:06d}.parquet"

    def span(self, number: int) -> tuple[int, int]:
        """The first problem of a file and that after its last."""
        return number * self.rows, min((number + 1) * self.rows, self.problems)

    def missing(self) -> list[int]:
        """Numbers of files that are not there or not as they should be."""
        return [number for number in range(self.count) if problem_of_file(self, number)]

    def write(self, number: int, table: Any) -> None:
        """Write a file; it has its name only when all of it is on the disk. OSError where that is full."""
        data = io.BytesIO()
        write_parquet(table.replace_schema_metadata(table.schema.metadata | {DIGEST: digest_of(table)}), data)
        write_whole(self.file(number), data.getbuffer())


def problem_of_file(shards: Shards, number: int) -> str:
    """Why a file does not hold the rows that it should, or "". Reads the end of the file, not the rows."""
    pa, file = arrow(), shards.file(number)
    first, last = shards.span(number)
    try:
        metadata = pa.parquet.read_metadata(file)
        schema = metadata.schema.to_arrow_schema()
        facts = facts_of(schema.with_metadata(metadata.metadata))
    except FileNotFoundError:
        return "is not there"
    except (OSError, pa.ArrowException, ValueError) as error:
        return f"cannot be read: {error}"
    recipe = shards.manifest["recipe"]
    if facts is None or facts.get("format") != FORMAT or facts.get("recipe") != recipe:
        return "is of another data set"
    if not schema.equals(arrow_schema(len(recipe["robot"]["joint_names"]), recipe["timing"] is not None, {})):
        return "has other columns"
    if metadata.num_rows != last - first:
        return f"has {metadata.num_rows} rows; expected: {last - first}"
    parts = [metadata.row_group(part).column(0).statistics for part in range(metadata.num_row_groups)]
    if not all(part and part.has_min_max for part in parts) or (parts[0].min, parts[-1].max) != (first, last - 1):
        return "holds other problems"
    return ""


def write_parquet(table: Any, file: Any) -> None:
    """Write a table as every file of a data set is; the same table gives the same bytes."""
    arrow().parquet.write_table(
        table,
        file,
        row_group_size=MOST_ROWS,
        compression="zstd",
        use_dictionary=["status", "message", "obstacles.list.element.name", "obstacles.list.element.kind"],
        use_byte_stream_split=plain_floats(table.schema),
        write_page_checksum=True,
    )


def read_manifest(folder: str | os.PathLike) -> dict[str, Any]:
    """The manifest of a folder. Raises DatasetError where there is none, or it is of another version."""
    file = file_path(folder, "a data set", DatasetError) / MANIFEST
    if not file.is_file():
        raise DatasetError(f"'{folder}' is no data set: it has no {MANIFEST}")
    manifest = read_json(file, "data set", DatasetError, MOST_BYTES)
    if not isinstance(manifest, dict):
        raise DatasetError(f"'{file}' is not the file of a data set")
    if manifest.get("format") != FORMAT:
        raise DatasetError(f"'{file}' is of format {manifest.get('format')}; this version reads format {FORMAT}")
    if not all(isinstance(manifest.get(name), int) and manifest[name] > 0 for name in ("problems", "rows")):
        raise DatasetError(f"'{file}' does not say how many problems and rows there are")
    if lost := [name for name, words in NEEDED.items() if not words <= _keys(manifest, name)]:
        raise DatasetError(f"'{file}' is damaged: its '{lost[0]}' is not what was written")
    allowed_counts(manifest["problems"], manifest["rows"])
    return manifest


def _keys(document, path):
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document.keys() if isinstance(document, dict) else set()


def allowed_counts(problems: int, rows: int) -> None:
    """Raise DatasetError for impossible numbers of problems, or of rows of a file."""
    for name, value, most in (("problems", problems, MOST_PROBLEMS), ("rows", rows, MOST_ROWS)):
        whole(f"the number of {name}", value, 1, most, error=DatasetError)
    if problems > rows * MOST_FILES:
        raise DatasetError(
            f"{problems} problems in files of {rows} rows are {-(-problems // rows)} files; allowed: {MOST_FILES}, "
            f"so from {-(-problems // MOST_FILES)} rows a file"
        )


def open_shards(
    folder: str | os.PathLike, problems: int, rows: int, recipe: dict[str, Any], source: dict[str, Any]
) -> Shards:
    """Begin a data set, or continue one, under `locked`.

    Raises DatasetError where the folder holds files of another recipe, of other sizes, or of a larger data set.
    """
    folder = Path(folder)
    manifest = {"format": FORMAT, "problems": problems, "rows": rows, "recipe": recipe, "source": source}
    if any(folder.glob("problems-*.parquet")):
        if not (folder / MANIFEST).exists():
            raise DatasetError(f"'{folder}' has files of a data set, but no {MANIFEST}; take another folder")
        old = read_manifest(folder)
        found = differences({"rows": old["rows"]} | old["recipe"], {"rows": rows} | recipe)
        if found:
            more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
            raise DatasetError(f"'{folder}' holds another data set: {'; '.join(found[:3])}{more}")
        if problems < old["problems"]:
            raise DatasetError(
                f"'{folder}' holds a data set of {old['problems']} problems, not of {problems}; allowed: as many, "
                "or more"
            )
    for file in folder.glob(f".*{UNFINISHED}"):
        file.unlink()
    write_whole(folder / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    return Shards(folder, manifest)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make the folder, and keep other runs out of it. The lock goes with the process, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise DatasetError(f"'{folder}' is a file; allowed: a folder, or a name that is free") from None
    with locked_file(folder / LOCK) or contextlib.nullcontext() as lock:
        if lock is None:
            raise DatasetError(f"another run is writing the data set '{folder}'; wait for it, or take another folder")
        yield
