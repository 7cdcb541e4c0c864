"""``python -m triton.profiler.proton``: upstream's command and its functions.

Use ``proton run``, which has more targets and options; this module is for scripts that name
upstream's. Under ``proton run`` the session is that of the command.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from collections.abc import Sequence

from proton_bench.flags import flags
from proton_bench.recording.session.session import _select_backend, finalize, start

__all__ = [
    "_select_backend",
    "do_setup_and_execute",
    "execute_as_main",
    "finalize",
    "flags",
    "is_pytest",
    "main",
    "parse_arguments",
    "run_profiling",
    "start",
]


def parse_arguments() -> tuple[argparse.Namespace, list[str]]:
    """Return the options of the command line, and the words of the target."""
    parser = argparse.ArgumentParser(
        prog="proton",
        usage="proton [options] script.py [arguments] | proton [options] pytest [arguments]",
        description="Profiles a script or pytest.",
    )
    add = parser.add_argument
    add("-n", "--name", help="Output path without a suffix.")
    add("-b", "--backend", help="Backends joined by + (default: the backend for this machine).")
    add("-c", "--context", default="shadow", choices=["shadow", "python"], help="Call paths.")
    add("-m", "--mode", help="Mode of the backend.")
    add("-d", "--data", default="tree", choices=["tree", "trace"], help="Kind of data.")
    add("-k", "--hook", choices=["triton"], help="Launch hook.")
    add("target_args", nargs=argparse.REMAINDER, help="The target and its arguments.")
    options = parser.parse_args()
    if not options.target_args:
        parser.error("name a script, or pytest")
    return options, options.target_args


def is_pytest(script: str) -> bool:
    """Whether the target is pytest instead of a script."""
    return os.path.basename(script) == "pytest"


def execute_as_main(script: str, args: Sequence[str]) -> int | str | None:
    """Run a script as ``__main__`` with these arguments and return its exit code."""
    before = sys.argv
    sys.argv = [script, *args]
    sys.path.append(os.path.dirname(os.path.abspath(script)))
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception:  # noqa: BLE001 - the script's own, shown as Python shows it
        traceback.print_exc()
        return 1
    except SystemExit as end:
        return end.code
    except KeyboardInterrupt:
        return 1
    finally:
        sys.argv = before
    return 0


def do_setup_and_execute(target_args: Sequence[str]) -> int | str | None:
    """Run the target while the session is the command's, and return its exit code."""
    flags.command_line = True
    script, *arguments = target_args
    if not is_pytest(script):
        return execute_as_main(script, arguments)
    import pytest

    return int(pytest.main(arguments))


def run_profiling(args: argparse.Namespace, target_args: Sequence[str]) -> None:
    """Record the target with these options, write the profile, and exit as the target did."""
    is_nested = flags.command_line
    start(
        args.name,
        context=args.context,
        data=args.data,
        backend=args.backend,
        mode=args.mode,
        hook=args.hook,
    )
    code = do_setup_and_execute(target_args)
    flags.command_line = is_nested
    finalize()
    sys.exit(code)


def main() -> None:
    """Run the command."""
    run_profiling(*parse_arguments())


if __name__ == "__main__":
    main()
