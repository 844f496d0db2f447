"""One page of all that the demo did: tables, pictures, the moving robot, the playing fleet. It needs no internet."""

import html
import io
from pathlib import Path
from typing import NamedTuple

from rich.console import Console, RenderableType

WIDE = 146  # characters of a table on the page
PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>gpu_planners: the demo</title>
<style>
:root {{ --paper: #f5f7f9; --card: #fff; --line: #dde3e9 }}
@media (prefers-color-scheme: dark) {{
  :root {{ --paper: #12171d; --card: #1b222a; --line: #2e3842 }}
  pre span {{ filter: brightness(1.6) }} }}
* {{ box-sizing: border-box }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 2rem auto; padding: 0 1rem;
  background: var(--paper) }}
h2 {{ margin: 0 }}
section {{ margin: 1.5rem 0; padding: 1.2rem; border: 1px solid var(--line); border-radius: 12px;
  background: var(--card) }}
.shown {{ display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)) }}
figure {{ margin: 0 }}
figcaption {{ opacity: .75 }}
img, iframe {{ display: block; margin: auto; border-radius: 8px }}
img {{ max-width: 100%; max-height: 36rem }}
iframe {{ width: 100%; height: 31rem; border: 1px solid var(--line) }}
pre {{ font: 12.5px/1.25 "DejaVu Sans Mono", Menlo, Consolas, monospace; overflow-x: auto }}
code {{ overflow-wrap: anywhere }}
@media (max-width: 600px) {{ iframe {{ height: 29rem }} #arm iframe {{ height: 19rem }} }}
</style>
<h1>gpu_planners: what the demo did</h1>
<p><strong>{summary}</strong> The real nodes answered over ROS 2;
code that shares nothing with the planners checked the answers.</p>
{sections}
</html>
"""
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
    file.write_text(PAGE.format(summary=html.escape(summary), sections=sections), encoding="utf-8")


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
