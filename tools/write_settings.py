"""Write the parameter files of the nodes (config/*.yaml) from the settings classes.

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


def texts():
    """{path below the checkout: text} of all files that this writes."""
    return {f"config/{node}.yaml": parameter_file(node, kind) for node, kind in NODES.items()}


if __name__ == "__main__":
    for path, text in texts().items():
        (ROOT / path).write_text(text, encoding="utf-8")
