"""The cell magic ``%%proton``: record a cell and show its profile below it."""

from __future__ import annotations

import argparse
import shlex
from typing import Any, NoReturn

from proton_bench.errors import ProtonError, UsageError
from proton_bench.recording.profiled import profiled


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%proton: {message}")


def add_magic(shell: Any) -> None:
    """Register ``%%proton`` with a running IPython.

    Args:
        shell: The interactive shell.
    """

    def proton(line: str, cell: str) -> None:
        _record(shell, line, cell)

    shell.register_magic_function(proton, "cell", "proton")


def _record(shell: Any, line: str, cell: str) -> None:
    from IPython.core.error import UsageError as CellError
    from IPython.display import display

    try:
        options = vars(_parser().parse_args(shlex.split(line)))
        name = options.pop("name")
        block = profiled(name, shows=False, **options)
        with block:
            done = shell.run_cell(cell, store_history=False)
    except (ProtonError, ValueError) as error:  # a quotation mark without its pair
        raise CellError(str(error)) from None
    if done.success and block.profile is not None:
        display(block.profile)  # type: ignore[no-untyped-call]


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%%proton", add_help=False, exit_on_error=False)
    parser.add_argument("-n", "--name")
    parser.add_argument("-b", "--backend")
    parser.add_argument("-c", "--context", default="auto")
    parser.add_argument("-d", "--data", default="tree")
    parser.add_argument("-m", "--mode")
    parser.add_argument("-k", "--hook")
    return parser
