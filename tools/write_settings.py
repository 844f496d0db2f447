"""Write the parameter files of the nodes (config/*.yaml) and docs/settings.md from the settings classes.

    .venv/bin/python tools/write_settings.py

Change a text, range or default in its settings class, then run this. A test compares the files with what this makes.
"""

import json
import math
import textwrap
from pathlib import Path

from gpu_planners.nodes.arm.parameters import ArmParameters
from gpu_planners.nodes.common.parameters import ros_default, settings_in
from gpu_planners.nodes.fleet.parameters import FleetParameters
from gpu_planners.nodes.grid.parameters import GridParameters
from gpu_planners.nodes.player.parameters import PlayerParameters

ROOT = Path(__file__).resolve().parent.parent
NODES = {
    "arm_planner": ArmParameters,
    "fleet_planner": FleetParameters,
    "grid_planner": GridParameters,
    "trajectory_player": PlayerParameters,
}
COLUMNS = 120
YAML_HEAD = """\
# Every parameter of the node {node} with its default. A copy needs to hold only what differs:
#   {launch}
#   .venv/bin/{node} --ros-args --params-file copy.yaml
# The first block is read at start only, the rest may change while the node runs. Paths are absolute or start with ~.
# tools/write_settings.py wrote this file.
/**:
  {node}:
    ros__parameters:
"""
PAGE_HEAD = """\
# Settings

`tools/write_settings.py` wrote this page from the settings classes, which also check values and describe the parameters
of the nodes. `help(rrt_connect.Settings)` in Python and `ros2 param describe /arm_planner rrt_connect.range` say the
same.

A planner's settings are given to `solve`, those of a grid algorithm to `BlockPlanner`, those of a fleet to
`FleetPlanner`; in a node each is the parameter `<planner>.<setting>`. Parameters marked * are read at start only.
"""


def yaml_value(rule):
    """A default as YAML writes it."""
    value = ros_default(rule)
    return ".inf" if isinstance(value, float) and math.isinf(value) else json.dumps(value)


def yaml_lines(rules, indent):
    """Lines of some settings: a comment, then name and default."""
    for name, rule in rules.items():
        prefix = f"{indent}# "
        unbroken = f"({rule.range})".replace(" ", "\N{NO-BREAK SPACE}")  # breaks before or behind the brackets only
        text = rule.line.replace(f"({rule.range})", unbroken)
        lines = textwrap.wrap(text, COLUMNS, initial_indent=prefix, subsequent_indent=prefix)
        yield from (line.replace("\N{NO-BREAK SPACE}", " ") for line in lines)
        yield f"{indent}{name}: {yaml_value(rule)}"


def parameter_file(node, kind):
    """The text of a node's file in config/."""
    own, indent = kind.rules, " " * 6
    lines = list(yaml_lines({name: rule for name, rule in own.items() if rule.read_only}, indent))
    lines += ["", f"{indent}# may change while the node runs", ""]
    lines += yaml_lines({name: rule for name, rule in own.items() if not rule.read_only}, indent)
    for prefix, held in settings_in(kind).items():
        lines += ["", f"{indent}{prefix}:", *yaml_lines(held.rules, indent + "  ")]
    launch = f"ros2 launch gpu_planners {node}.launch.py params_file:=/path/copy.yaml"
    if not (ROOT / "launch" / f"{node}.launch.py").exists():
        launch = f"ros2 run gpu_planners {node} --ros-args --params-file /path/copy.yaml"
    return YAML_HEAD.format(node=node, launch=launch) + "\n".join(lines) + "\n"


def table(rules):
    """Rows of a Markdown table of some settings."""
    yield from ("| setting | default | allowed | what it does |", "|---|---|---|---|")
    for name, rule in rules.items():
        default = json.dumps(rule.default).replace("Infinity", "inf")
        yield f"| `{name}`{'*' if rule.read_only else ''} | `{default}` | {rule.range} | {rule.text} |"


def page():
    """The text of docs/settings.md."""
    lines = []
    for node, kind in NODES.items():
        lines += ["", f"## {node}", "", *table(kind.rules)]
        for prefix, held in settings_in(kind).items():
            lines += ["", f"### {prefix}", "", *table(held.rules)]
    return PAGE_HEAD + "\n".join(lines) + "\n"


def texts():
    """{path below the checkout: text} of all files that this writes."""
    return {f"config/{node}.yaml": parameter_file(node, kind) for node, kind in NODES.items()} | {
        "docs/settings.md": page()
    }


if __name__ == "__main__":
    for path, text in texts().items():
        (ROOT / path).write_text(text, encoding="utf-8")
