"""The table of a run: live in a terminal, plain lines elsewhere."""

import time

from rich.console import Console
from rich.live import Live
from rich.table import Table as RichTable

EVERY = 60.0  # seconds between two blocks of plain lines
COLUMNS = (
    "attack",
    "cases",
    "checks",
    "wrong",
    "overlap free, um",
    "gap refused, um",
    "refused",
    "apart",
    "errors",
    "seconds",
)


class Table:
    """attacks: [Attack]; tallies: {name: Tally}. overlap free: the deepest; gap refused: the widest."""

    def __init__(self, attacks, tallies):
        self._attacks, self._tallies, self._console = attacks, tallies, Console()
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None
        self._shown = time.monotonic()

    def __enter__(self):
        if self._live:
            self._live.__enter__()
        return self

    def __exit__(self, *problem):
        if self._live:
            self._live.update(self._table(), refresh=True)
            self._live.__exit__(*problem)
        else:
            self._lines()

    def update(self):
        if time.monotonic() - self._shown > (0.5 if self._live else EVERY):
            self._shown = time.monotonic()
            if self._live:
                self._live.update(self._table(), refresh=True)
            else:
                self._lines()

    def _rows(self):
        for attack in self._attacks:
            tally = self._tallies[attack.name]
            widest = f"{1e6 * max(tally.widest.values()):.2f}" if tally.widest else "-"
            yield (
                attack.name,
                tally.cases,
                tally.checks,
                tally.wrong,
                f"{1e6 * tally.deepest:.2f}",
                widest,
                tally.refused,
                tally.apart,
                sum(tally.errors.values()),
                f"{tally.seconds:.0f}",
            )

    def _table(self):
        table = RichTable(*COLUMNS)
        for row in self._rows():
            table.add_row(*map(str, row), style="bold red" if row[3] else None)
        return table

    def _lines(self):
        for row in self._rows():
            print(", ".join(f"{column} {value}" for column, value in zip(COLUMNS, row, strict=True)), flush=True)
        print(flush=True)
