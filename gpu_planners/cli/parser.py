"""The command line of `gpu-planners`. It imports nothing slow, since a shell runs it at each Tab."""

import argparse
import ast
import re
from pathlib import Path

from .. import __version__

FORMATS = ("csv", "json", "yaml")
CODES = (
    "exit codes: 0 done, 1 failed, 2 wrong command line or input or something missing, 3 no motion found, or one that "
    "verify refuses"
)


def _planners() -> tuple[str, ...]:
    """The names in the table `PLANNERS`, read from its source: importing it takes seconds."""
    tree = ast.parse((Path(__file__).parents[1] / "arm/planners/table.py").read_text(encoding="utf-8"))
    tables = {ast.unparse(node.target): node.value for node in tree.body if isinstance(node, ast.AnnAssign)}
    table = tables["PLANNERS"]
    return tuple(ast.literal_eval(key) for key in table.keys if key) if isinstance(table, ast.Dict) else ()


PLANNERS = _planners()


def build_parser() -> argparse.ArgumentParser:
    """The parser; its result has `command`, the name of a module of this package."""
    parser = argparse.ArgumentParser(
        prog="gpu-planners",
        description="Collision-free arm motions and many-agent grid paths, on an NVIDIA GPU or the CPU.",
        epilog=CODES,
    )
    parser.add_argument("--version", action="version", version=f"gpu_planners {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_info(commands)
    _add_plan(commands)
    _add_verify(commands)
    _add_view(commands)
    _add_dataset(commands)
    _add_learn(commands)
    _add_vda5050(commands)
    _add_compile(commands)
    text = "plan through the real nodes: a robot's motions, paths of many agents, a fleet"
    commands.add_parser("demo", help=text, add_help=False)
    commands.add_parser("bench", help="measure, with peers in the same run", add_help=False)
    completion = commands.add_parser(
        "completion",
        help="print what makes a shell complete this command",
        description="Print what makes a shell complete this command. For bash write into ~/.bashrc:\n\n"
        '  eval "$(gpu-planners completion bash)"',
        formatter_class=argparse.RawDescriptionHelpFormatter,  # else the line is broken at a hyphen
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    return parser


def _take_negative_lists(parser):
    """Words like -1,0.5 and -1e-3 are values, no options; argparse only takes single plain numbers for such."""
    parser._negative_number_matcher = re.compile(r"-\.?\d")


def _add_info(commands):
    parser = commands.add_parser(
        "info",
        help="what is there, and how to get what is missing: GPU, ROS, extras, data; or what a URDF describes",
        description="Without a URDF: what is there (GPU, ROS, extras, data), and how to get what is missing. With one: "
        "the robot as it is planned, and what of its description is held, left out or passed over.",
        epilog=CODES,
    )
    _add_description(parser, parser.add_argument_group("the robot"), optional=True)


def _add_plan(commands):
    parser = commands.add_parser(
        "plan",
        help="plan one motion: robot, scene, start and goals in, timed trajectory out",
        description="Plan one motion of a robot and write it as a timed trajectory.",
        epilog="Joint values are numbers in the order of the planned joints, joint=value pairs, or the name of a "
        f"state of the SRDF; rad and m. Values may be separated by commas: --start -1e-3,0.2. {CODES}",
    )
    _take_negative_lists(parser)
    _add_robot(parser, optional=False)
    what = parser.add_argument_group("the question")
    _add(what, "--query", "FILE", "YAML file with `start` and `goals`", type=_file)
    _add(what, "--start", "VALUE", "joint values where the motion begins", nargs="+")
    _add_list(what, "--goal", "VALUE", "joint values; may be given again", "append")
    text = "x y z of the tool in metres, or x y z qx qy qz qw; may be given again"
    _add_list(what, "--goal-pose", "VALUE", text, "append")
    _add(what, "--frame", "LINK", "fixed link in which --goal-pose is given (default: the root)")
    how = parser.add_argument_group("how it is planned")
    _add_planning(how)
    how.add_argument("--seed", type=int, default=0, help="of the random numbers (default: %(default)s)")
    for name in ("velocity", "acceleration"):
        _add(how, f"--{name}-scaling", "SHARE", f"share of the joints' {name} limits", type=float, default=1.0)
    out = parser.add_argument_group("what comes out")
    text = "trajectory, by its ending .csv, .json or .yaml; -: stdout"
    out.add_argument("-o", "--output", default="-", metavar="FILE", help=text)
    out.add_argument("--format", choices=FORMATS, help="of the output (default: by the file's ending, else csv)")
    _add(out, "--every", "SECONDS", "sample the motion (default: its own knots)", type=float)
    _add(out, "--picture", "FILE", "draw the motion: .png, .jpg or .pdf")
    _add(out, "--view", "FILE.html", "write a page that plays the motion, without a server")
    out.add_argument("-q", "--quiet", action="store_true", help="print nothing but the trajectory and errors")


def _add_verify(commands):
    parser = commands.add_parser(
        "verify",
        help="what pinocchio and coal say of a motion: is it free, and within the limits",
        description="Check a motion by pinocchio and coal, which share no code with the planners: is it free of "
        "collisions all along, and within the limits of the URDF?",
        epilog=CODES,
    )
    parser.add_argument("urdf", type=_file, help="URDF file")
    parser.add_argument("motion", type=_file, help="what `plan` has written, or a table of joint values")
    _add(parser, "--scene", "FILE", "YAML file with the obstacles", type=_file)
    text = "pairs of links that may touch (default: neighbours, and those that nearly always do)"
    parser.add_argument("--srdf", type=_file, help=text)
    _add(parser, "--package-dirs", "DIR", "where package:// paths begin", nargs="+", default=())
    text = "of the motion (default: those that it names, else all), in the order of a table without names"
    _add(parser, "--joints", "NAME", text, nargs="+", default=())
    _add(parser, "--fix", "JOINT=VALUE", "where other joints stand (default: 0)", nargs="+", default=())
    text = "no point moves farther between two looks at bodies that may meet (default: %(default)s)"
    _add(parser, "--spacing", "METRES", text, type=float, default=0.001)
    _add(parser, "--tolerance", "METRES", "overlaps of less are let pass (default: 0)", type=float, default=0.0)
    parser.add_argument("--hulls", action="store_true", help="meshes as their convex hulls (default: their triangles)")


def _add_view(commands):
    parser = commands.add_parser(
        "view",
        help="an interactive page in the browser: a robot, a running node, a grid map or a fleet",
        description="Serve an interactive page: give a URDF, or --node, or --map.",
        epilog=CODES,
    )
    _take_negative_lists(parser)
    _add_robot(parser, optional=True)
    parser.add_argument("--start", nargs="+", metavar="VALUE", help="joint values, or the name of an SRDF state")
    _add(parser, "--path", "FILE", "a motion to play: .csv, .json, .yaml or .npy", type=_file)
    _add_planning(parser.add_argument_group("how it is planned"), time_s=1.0)
    node = parser.add_argument_group("a running node")
    _add(node, "--node", "NAME", "plan by a running arm_planner, for instance /arm_planner")
    grids = parser.add_argument_group("grids and fleets")
    _add(grids, "--map", "FILE", "map_server .yaml or MovingAI .map", type=_file)
    _add(grids, "--agents", "N", "agents on the map (default: %(default)s)", type=int, default=200)
    grids.add_argument("--fleet", action="store_true", help="agents that never collide, on errands without end")
    page = parser.add_argument_group("the page")
    page.add_argument("--host", default="127.0.0.1", help="(default: %(default)s; 0.0.0.0: every address)")
    page.add_argument("--port", type=int, default=8080, help="(default: %(default)s, or the next free one)")
    page.add_argument("--open", action="store_true", help="open it in the browser of this desktop")


def _add_dataset(commands):
    parser = commands.add_parser(
        "dataset",
        help="plan many random problems into Parquet files, for whoever trains planners; or check such files",
        description="Plan random problems of a robot into a folder of Parquet files. The rows depend on the robot, the "
        "seed and the settings alone; the same command goes on where a run was ended, and makes more with a larger -n.",
        epilog=f"docs/datasets.md has the columns and the settings. {CODES}",
    )
    _add_robot(parser, optional=True, several=True)
    what = parser.add_argument_group("the data set")
    what.add_argument("-o", "--output", metavar="FOLDER", help="where its files are, or shall be")
    what.add_argument("-n", "--problems", type=int, metavar="N", help="how many problems")
    what.add_argument("--seed", type=int, default=0, help="of everything that is drawn (default: %(default)s)")
    _add(what, "--rows", "N", "of a file (default: %(default)s)", type=int, default=1000)
    _add_list(what, "--draw", "NAME=VALUE", "how problems are drawn: most=30")
    text = "time the motions, too: every_s=0.02 samples them"
    _add(what, "--timing", "NAME=VALUE", text, nargs="*", action="extend")
    how = parser.add_argument_group("how it is planned")
    _add_list(how, "--set", "NAME=VALUE", "settings of rrt_connect")
    _add(how, "--margin", "METRES", "kept from obstacles (default: 0)", type=float, default=0.0)
    text = "auto, cpu, cuda, cuda:all, or several: cuda:0,cuda:1 (default: %(default)s)"
    how.add_argument("--devices", default="auto", help=text)
    _add(how, "--workers", "N", "processes that share the devices (default: one for each)", type=int, default=0)
    other = parser.add_argument_group("instead of making it")
    other.add_argument("--dry-run", action="store_true", help="plan a few problems, say how large and how long it gets")
    _add(other, "--check", "FOLDER", "check every row of a data set again, and that none is missing")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


def _add_learn(commands):
    parser = commands.add_parser(
        "learn",
        help="learn one-way lanes and weights for a fleet on a map",
        description="Learn by simulation what moves shall cost on a map, so that a fleet reaches most goals: "
        "directions of one-way lanes and weights together. The file is written whenever something better is found, so "
        "Ctrl-C keeps the best so far. It is used as guidance=Guidance.load(FILE), or as the node's parameter "
        "guidance_file.",
        epilog=f"The same seed learns the same. docs/fleets.md has figures. {CODES}",
    )
    parser.add_argument("map", type=_file, help="map_server .yaml or MovingAI .map")
    parser.add_argument("-n", "--agents", type=int, required=True, metavar="N", help="how many agents there will be")
    parser.add_argument("-o", "--output", metavar="FILE", help="(default: beside the map, MAP.guidance.npz)")
    parser.add_argument("--motion", choices=("turning", "four"), default="turning", help="(default: %(default)s)")
    _add_list(parser, "--set", "NAME=VALUE", "settings of the fleet: horizon=4")
    _add(parser, "--rounds", "N", "more learn more (default: %(default)s)", type=int, default=40)
    _add(parser, "--steps", "N", "of each simulation (default: %(default)s)", type=int, default=300)
    _add(parser, "--children", "N", "simulated side by side in each round (default: %(default)s)", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0, help="of everything that is drawn (default: %(default)s)")
    text = "auto, cpu, cuda, cuda:all, or several: cuda:0,cuda:1 (default: %(default)s)"
    parser.add_argument("--devices", default="cpu", help=text)
    text = "processes that share the devices (default: one for each core or GPU)"
    _add(parser, "--workers", "N", text, type=int, default=0)
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


def _add_vda5050(commands):
    parser = commands.add_parser(
        "vda5050",
        help="be the fleet control of vehicles that speak VDA 5050, through an MQTT broker",
        description="Send vehicles that speak VDA 5050 (2.1 and 3.0) on errands, so that no two ever meet.",
        epilog=f"docs/vda5050.md has the topics and the settings. {CODES}",
    )
    parser.add_argument("map", type=_file, help="map_server .yaml, MovingAI .map, or a layout: LIF as .json or .lif")
    what = parser.add_argument_group("the fleet")
    _add(what, "--errands", "FILE", "errands to begin with, JSON", type=_file)
    _add(what, "--until-done", None, "end when all errands are over", action="store_true")
    _add(what, "--zones", "FILE", "a zoneSet of VDA 5050 3.0, JSON", type=_file)
    _add(what, "--doors", "FILE", "doors, JSON: [{doorId, nodes}]; closed until a message says otherwise", type=_file)
    _add(what, "--layout", "ID", "which layout of a LIF, where it has several", default="")
    _add(what, "--tile-size", "METRES", "side of a tile (default: a cell of the map)", type=float, default=0.0)
    _add_list(what, "--set", "NAME=VALUE", "of the fleet, as the node's parameters: step_s=0.8 clearance=0.1")
    _add_list(what, "--speak", "NAME=VALUE", "of messages: answer_s=2 interface=uagv map_id=hall")
    text = "where it is kept what vehicles may do, and errands, for when this is started again"
    _add(what, "--state-file", "FILE", text, default="")
    _add(what, "--seconds", "SECONDS", "end after that long", type=float, default=0.0)
    _add(what, "--write-lif", "FILE", "write the layout as LIF, and end")
    broker = parser.add_argument_group("the broker")
    _add(broker, "--broker", "HOST[:PORT]", "(default: %(default)s; port 1883, or 8883 with TLS)", default="localhost")
    text = "of the broker; its password is in the file, or in the variable GPU_PLANNERS_MQTT_PASSWORD"
    _add(broker, "--user", "NAME", text, default="")
    _add(broker, "--password-file", "FILE", "with the password in its first line", type=_file)
    _add(broker, "--tls", None, "encrypt, and believe the certificates of this system", action="store_true")
    _add(broker, "--ca", "FILE", "encrypt, and believe the certificates in this file", type=_file)
    _add(broker, "--certificate", "FILE", "by which this client shows who it is", type=_file)
    _add(broker, "--key", "FILE", "of that certificate", type=_file)
    text = "of VDA 5050 that is spoken, several with commas (default: %(default)s)"
    _add(broker, "--versions", "VERSIONS", text, default="2.1,3.0")
    text = "put simulated vehicles on free tiles, too, to try all this without any"
    without = parser.add_argument_group("without vehicles")
    _add(without, "--simulate", "N", text, type=int, default=0)
    _add(without, "--sizes", "SIZES", "sides in tiles that these have in turn, 1,1,3 for one", default="")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


def _add_compile(commands):
    parser = commands.add_parser(
        "compile",
        help="compile now what first answers need, for images and installers",
        description="Compile what first answers need, by as many processes as there are cores, and keep it for this "
        "user on this machine. Without it, whatever is asked for first is compiled then.",
        epilog=CODES,
    )
    text = "arm, grid, fleet, or several with commas (default: %(default)s)"
    parser.add_argument("--for", dest="products", default="arm,grid,fleet", metavar="PRODUCTS", help=text)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: %(default)s)")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


def _add_robot(parser, optional, several=False):
    group = parser.add_argument_group("the robot and its surroundings")
    _add_description(parser, group, optional, limits=not several)
    _add(group, "--tip", "LINK", "the tool's link (default: what `gpu-planners info` says)")
    if several:
        text = "scene files, or problem sets (.json), one scene of which each problem takes (default: random scenes)"
        _add_list(group, "--scenes", "FILE", text, type=_file)
    else:
        _add(group, "--scene", "FILE", "YAML file with the obstacles", type=_file)


def _add_description(parser, group, optional, limits=True):
    parser.add_argument("urdf", type=_file, **({"nargs": "?"} if optional else {}), help="URDF file")
    group.add_argument("--srdf", type=_file, help="groups, states, pairs of links that may touch")
    if limits:
        _add(group, "--limits", "FILE", "MoveIt's joint_limits.yaml", type=_file)
    text = "folders in which package:// paths are looked up"
    _add(group, "--package-dirs", "DIR", text, nargs="+", default=())
    group.add_argument("--group", help="SRDF group to plan")
    _add(group, "--joints", "PATTERN", "joints to plan, instead of --group: names, or 'arm_*_joint'", nargs="+")
    _add(group, "--fix", "JOINT=VALUE", "where joints that are not planned stand", nargs="+", default=())


def _add_planning(group, time_s=10.0):
    group.add_argument("--planner", choices=PLANNERS, default=PLANNERS[0], help="(default: %(default)s)")
    group.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: %(default)s)")
    _add(group, "--time", "SECONDS", "longest search (default: %(default)s)", type=float, default=time_s)
    _add(group, "--margin", "METRES", "kept from obstacles (default: 0)", type=float, default=0.0)
    text = "settings, as help(rrt_connect.Settings) lists them: optimise_s=0 gives the same path for the same seed"
    _add_list(group, "--set", "NAME=VALUE", text)


def _add_list(group, name, metavar, text, action="extend", **options):
    _add(group, name, metavar, text, nargs="+", action=action, default=[], **options)


def _add(group, name, metavar, text, **options):
    """metavar: None for a flag"""
    group.add_argument(name, **({"metavar": metavar} if metavar else {}), help=text, **options)


def _file(text):
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"no file '{text}'")
    return text
