"""Writes the reference from the sources: Python, messages, parameters, launch arguments, commands."""

import argparse
import importlib
import inspect
import json
import re
import runpy
from pathlib import Path

from numpy.typing import ArrayLike
from sphinx.util.typing import stringify_annotation
from write_settings import NODES

from gpu_planners.cli.parser import build_parser
from gpu_planners.nodes.common.parameters import settings_in
from gpu_planners.settings import Described

ROOT = Path(__file__).resolve().parent.parent
MODULES = {  # of a page: what is documented there, in this order
    "arm": [
        "gpu_planners.arm",
        "gpu_planners.arm.trajectory",
        "gpu_planners.arm.distance_fields",
        "gpu_planners.arm.dynamics",
        "gpu_planners.arm.control",
        "gpu_planners.arm.swept",
        "gpu_planners.arm.collision.scene_file",
        "gpu_planners.arm.view",
    ],
    "grid": ["gpu_planners.grid", "gpu_planners.grid.drawing", "gpu_planners.grid.maps.generated"],
    "fleet": ["gpu_planners.fleet", "gpu_planners.fleet.drawing"],
    "verify": ["gpu_planners.verify"],
    "datasets": ["gpu_planners.datasets"],
    "papers": ["gpu_planners.papers.bkf11", "gpu_planners.papers.ce12", "gpu_planners.papers.dl14"],
    "more": ["gpu_planners.errors", "gpu_planners.device", "gpu_planners.share", "gpu_planners.sim"],
}


def python_page(name, modules, seen):
    """-> Markdown that has autodoc document the public names of some modules, each at its first place in the site"""
    lines = ["# Errors, devices and more", ""] if name == "more" else []
    waiting = [(module, "", importlib.import_module(module)) for module in modules]
    while waiting:
        package, attribute, module = waiting.pop(0)  # a module is called as it is imported: gpu_planners.arm's `prm`
        title = f"{package}.{attribute}".rstrip(".")
        lines += [
            f"{'##' if lines else '#'} {title}",
            "",
            "```{eval-rst}",
            f".. automodule:: {module.__name__}",
            "   :no-members:",
            "   :no-index:",
            "",
        ]
        values = [(f"{package}::{attribute}{public}", getattr(module, public)) for public in _public(module)]
        inner = [(package, f"{attribute}{public}.", value) for public, value in _modules(module)]
        for full, value in values:
            if any(value is other for other in seen) or inspect.ismodule(value):
                continue
            seen.append(value)
            if inspect.isclass(value):
                members = [] if issubclass(value, Described) else ["   :members:"]
                lines += [f".. autoclass:: {full}", *members, ""]
            else:
                lines += [f".. autofunction:: {full}" if callable(value) else f".. autodata:: {full}", ""]
        lines += ["```", ""]
        waiting = [*inner, *waiting]
    return "\n".join(lines)


def _modules(module):
    return [
        (public, getattr(module, public)) for public in _public(module) if inspect.ismodule(getattr(module, public))
    ]


def _public(module):
    """The names of __all__, or those that the module itself defines."""
    return getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if name[0] != "_" and getattr(value, "__module__", None) == module.__name__
    ]


def messages_page():
    lines = ["# Messages, services and actions", "", "Of the package `gpu_planners_msgs`, as their files say it."]
    for kind in ("msg", "srv", "action"):
        for file in sorted((ROOT / "gpu_planners_msgs" / kind).glob(f"*.{kind}")):
            lines += ["", f"## {file.stem}", "", f"`gpu_planners_msgs/{kind}/{file.stem}`", "", "```python"]
            lines += [file.read_text(encoding="utf-8").strip(), "```"]
    return "\n".join(lines) + "\n"


PARAMETERS = """\
# Parameters and settings

A planner's settings are given to `solve`, those of a grid algorithm to `BlockPlanner`, those of a fleet to
`FleetPlanner`; in a node each is the parameter `<planner>.<setting>`. Parameters marked * are read at start only.
`help(rrt_connect.Settings)` and `ros2 param describe /arm_planner rrt_connect.range` say the same. `config/` has a
file with all parameters for each node.
"""


def parameters_page():
    lines = [PARAMETERS]
    for node, kind in NODES.items():
        lines += [f"## {node}", "", *table(kind.rules), ""]
        for prefix, held in settings_in(kind).items():
            lines += [f"### {node}: {prefix}", "", *table(held.rules), ""]
    return "\n".join(lines)


def table(rules):
    """Rows of a Markdown table of some settings."""
    yield from ("| setting | default | allowed | what it does |", "|---|---|---|---|")
    for name, rule in rules.items():
        default = json.dumps(rule.default).replace("Infinity", "inf")
        text = re.sub(r"([*<>|])", r"\\\1", rule.text)
        yield f"| `{name}`{chr(92) + '*' if rule.read_only else ''} | `{default}` | {rule.range} | {text} |"


def launch_page():
    lines = [
        "# Launch files",
        "",
        "`ros2 launch gpu_planners FILE ARGUMENT:=VALUE`. An empty default leaves it to the node.",
    ]
    for file in sorted((ROOT / "launch").glob("*.py")):
        launch = runpy.run_path(str(file))
        about = inspect.cleandoc(launch["__doc__"]).partition("\n\n")[0].replace("\n", " ")
        lines += ["", f"## {file.name}", "", about, "", "| argument | default | what it does |", "|---|---|---|"]
        for name, (default, text) in launch["ARGUMENTS"].items():
            default = default.replace(str(ROOT), "<share>").replace("|", "\\|")
            lines.append(f"| `{name}` | {f'`{default}`' if default else ''} | {text} |")
    return "\n".join(lines) + "\n"


def commands_page():
    lines = ["# Commands", ""]
    parser = build_parser()
    (commands,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    for each in (parser, *commands.choices.values()):
        if each.add_help:  # demo and bench have programs of their own
            each.formatter_class = type("Wide", (each.formatter_class,), {"__init__": _wide})
            lines += [f"## {each.prog}", "", "```text", each.format_help().strip(), "```", ""]
    return "\n".join(lines)


def _wide(self, prog):
    super(type(self), self).__init__(prog, width=100)


NAME = r"\*{0,2}[a-z_]\w*"
ITEM = re.compile(rf"(?:-> |Raises |{NAME}(?:, {NAME})*(?: \([^()]*\))?: )")


def as_rst(app, what, name, obj, options, lines):
    """Turn a docstring of this package into reStructuredText: a line "name: ..." begins an item of a list."""
    text = inspect.cleandoc("\n".join(lines))
    out, item = [], False
    for line in text.split("\n"):
        words = line.strip()
        if not words:
            out, item = [*out, ""], False
        elif ITEM.match(line) or (what in ("class", "exception") and re.match(r"\w+ = ", line)):
            head, separator, rest = line.partition(": ") if ":" in line else ("", "", line)
            escaped = f"**{_escaped(head)}**: {_escaped(rest)}" if separator and "->" not in head else _escaped(line)
            out, item = [*out, *([] if item else [""]), f"* {escaped}"], True
        else:
            out.append(("  " if item else "") + _escaped(words))
    lines[:] = out


def _escaped(text):
    """Text in which nothing but `code` is markup."""
    parts = re.split(r"(``[^`]+``|`[^`]+`)", text)
    return "".join(
        f"``{part.strip('`')}``" if k % 2 else re.sub(r"([*|\\_`])", r"\\\1", part) for k, part in enumerate(parts)
    )


ANNOTATED = re.compile(r"Annotated\[([^\[\],]+(?:\[[^\]]*\])?), [^\]]*\]")
ARRAY_LIKE = stringify_annotation(ArrayLike, "smart"), stringify_annotation(ArrayLike, "fully-qualified-except-typing")


def plain_annotations(app, what, name, obj, options, signature, result):
    """Annotated[T, error] is T to a reader, and NumPy's ArrayLike is called so."""

    def plain(text):
        for spelt in ARRAY_LIKE:
            text = text and text.replace(spelt, "ArrayLike")
        return text and ANNOTATED.sub(r"\1", text)

    return plain(signature), plain(result)


def write_pages(app):
    folder = Path(app.srcdir, "reference")
    folder.mkdir(exist_ok=True)
    pages = {
        "messages": messages_page(),
        "parameters": parameters_page(),
        "launch": launch_page(),
        "commands": commands_page(),
    }
    seen = []
    pages |= {name: python_page(name, modules, seen) for name, modules in MODULES.items()}
    for name, text in pages.items():
        file = folder / f"{name}.md"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def setup(app):
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", as_rst)
    app.connect("autodoc-process-signature", plain_annotations)
    return {"parallel_read_safe": True}
