"""The command `gpu-planners`: info | plan | verify | view | dataset | learn | vda5050 | compile | demo | bench |
completion.

Exit codes: 0 done; 1 it failed while running; 2 the command line or an input is wrong, or something needed is not
there; 3 the question has no answer (no motion was found, start or goal collide), or `verify` refuses the motion; 130
Ctrl-C.
"""

import importlib
import os
import signal
import sys

from .errors import NoAnswerError, complain
from .parser import build_parser

# else a process in which Numba compiles, and colorama is installed, ends its output with the code that resets colours
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")

DONE, FAILED, WRONG_INPUT, NO_ANSWER, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 130, 141
PASSING_ON = ("demo", "bench")  # commands that read the rest of the command line themselves


def program() -> None:
    """`gpu-planners` itself. A Ctrl-C that comes when all is done, while Python ends, changes nothing."""
    code = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def main(arguments: list[str] | None = None) -> int:
    """Run one command -> the exit code."""
    parser = build_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may follow
        importlib.import_module("argcomplete").autocomplete(parser)
    options, rest = parser.parse_known_args(arguments)
    if rest and options.command not in PASSING_ON:
        allowed = f"'{parser.prog} {options.command} --help' lists what is allowed"
        parser.error(f"unknown arguments of {options.command}: {' '.join(rest)}; {allowed}")
    return _run(options, rest)


def _run(options, rest):
    from ..errors import DeviceError, GpuPlannersError

    try:
        command = importlib.import_module(f".{options.command}", __package__)  # seconds, in which Ctrl-C may come
        code = command.run(options, rest) or DONE
        sys.stdout.flush()
        return code
    except NoAnswerError as error:
        return complain(error, NO_ANSWER)
    except BrokenPipeError:  # whoever reads our output has had enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except FileNotFoundError as error:
        return complain(error, WRONG_INPUT)
    except OSError as error:
        return complain(error, FAILED)
    except GpuPlannersError as error:
        described = type(error) is not GpuPlannersError or isinstance(error, DeviceError)
        return complain(error, WRONG_INPUT if described else FAILED)
