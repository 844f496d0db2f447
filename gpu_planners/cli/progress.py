"""A bar on stderr while a command works."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


@contextmanager
def shown_progress(quiet: bool, total: int | None = None) -> Iterator[Callable[..., None]]:
    """-> function of (done, text, total=None) that shows a bar, if that is a terminal and it is not to be quiet."""
    parts = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    console = Console(stderr=True, quiet=quiet or not sys.stderr.isatty())
    with Progress(*parts, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)

        def update(done, text="", total=None):
            bar.update(task, completed=done, description=text, **({} if total is None else {"total": total}))

        yield update
