"""One page of all that the demo did: tables, pictures, the moving robot, the playing fleet. It needs no internet."""

import html
import io
from pathlib import Path
from string import Template
from typing import NamedTuple

from rich.console import Console, RenderableType

WIDE = 146  # characters of a table on the page
PAGE = Path(__file__).with_name("page.html")
SECTION = """\
<section id="{name}">
<h2>{title}</h2>
<p>{question}</p>
<div class="shown">{figures}</div>
{tables}
<p>Try next: <code>{next}</code></p>
</section>
"""


class Report(NamedTuple):
    """What a part of the demo did.

    shown: tables and texts, for the terminal and the page; files: (file beside the page, what it shows)
    """

    passed: bool
    shown: list[RenderableType]
    files: list[tuple[Path, str]]


class About(NamedTuple):
    """Words about a part. next: a command to try"""

    title: str
    question: str
    next: str


def write_page(file: Path, told: dict[str, tuple[About, Report]]) -> None:
    """Write the page. told: by the part's name"""
    right = [name for name, (_, report) in told.items() if report.passed]
    summary = "All checks passed." if len(right) == len(told) else f"Checks failed: {', '.join(told.keys() - right)}."
    sections = "".join(
        SECTION.format(
            name=name,
            figures="".join(_figure(picture.relative_to(file.parent), text) for picture, text in report.files),
            tables=_tables(report.shown),
            **{word: html.escape(text) for word, text in about._asdict().items()},
        )
        for name, (about, report) in told.items()
    )
    page = Template(PAGE.read_text(encoding="utf-8")).substitute(summary=html.escape(summary), sections=sections)
    file.write_text(page, encoding="utf-8")


def _figure(file, text):
    source, text = html.escape(str(file)), html.escape(text)
    kind = f'<iframe src="{source}" title="{text}"></iframe>'
    if file.suffix != ".html":
        kind = f'<a href="{source}"><img src="{source}" alt="{text}" loading="lazy"></a>'
    return f'<figure>{kind}<figcaption>{text} (<a href="{source}">{source}</a>)</figcaption></figure>\n'


def _tables(shown):
    console = Console(record=True, file=io.StringIO(), width=WIDE, highlight=False)
    console.print(*shown, sep="\n")
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
