"""``proton bench``: how long a function of a script takes, kernel by kernel."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from proton_bench.cli.files import print_bytes, print_document
from proton_bench.errors import UsageError
from proton_bench.support.text import did_you_mean, visible, visible_lines

_BETWEEN = "::"


def command(
    target: Annotated[
        str,
        typer.Argument(
            help="A script and a function in it that needs no arguments.",
            metavar="SCRIPT::FUNCTION",
            show_default=False,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "-n", "--name", metavar="NAME", help="Write NAME.proton, for gate, diff and view."
        ),
    ] = None,
    warm: Annotated[
        bool, typer.Option("--warm", help="Leave the GPU's L2 cache as it is before each round.")
    ] = False,
    graph: Annotated[
        bool, typer.Option("--graph", help="Capture one call into a CUDA graph, time its replays.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of text.")
    ] = False,
) -> None:
    """Measure how long a function takes on the GPU, by its kernels."""
    script, mark, function = target.rpartition(_BETWEEN)
    if not mark or not script or not function:
        raise UsageError(f"{target!r}: write the script and the function as SCRIPT::FUNCTION")
    from proton_bench.plugin.manager import resolve_backend
    from proton_bench.rounds.bench import bench

    for backend in resolve_backend(None):
        notice = backend.prepare() if backend.prepare is not None else None
        if notice:
            sys.stderr.write(f"proton: {visible(notice)}\n")
    fn = _function(Path(script), function)
    cache = "warm" if warm else "cold"
    result = _run(lambda: bench(fn, cache=cache, graph=graph, name=function, output=name))
    if as_json:
        print_document(result.to_document())
    else:
        print_bytes(f"{visible_lines(str(result))}\n".encode())


def _function(script: Path, name: str) -> Callable[..., object]:
    """Import a script as a module of its name, and return its function."""
    if not script.is_file():
        raise UsageError(f"{str(script)!a}: there is no such script")
    spec = importlib.util.spec_from_file_location(script.stem, script)
    if spec is None or spec.loader is None:
        raise UsageError(f"{str(script)!a} is not a Python script")
    module = importlib.util.module_from_spec(spec)
    sys.modules[script.stem] = module
    sys.path.insert(0, os.fspath(script.resolve().parent))
    sys.argv = [os.fspath(script)]
    _run(lambda: spec.loader.exec_module(module))  # type: ignore[union-attr]
    found = getattr(module, name, None)
    if not callable(found):
        functions = [key for key, value in vars(module).items() if callable(value)]
        raise UsageError(f"{str(script)!a} has no function {name!r}{did_you_mean(name, functions)}")
    return found  # type: ignore[no-any-return]


def _run(code: Callable[[], Any]) -> Any:
    """Run code of the script; its errors are shown as Python shows them."""
    from proton_bench.errors import ProtonError

    try:
        return code()
    except ProtonError:
        raise
    except Exception:  # noqa: BLE001 - of the script
        traceback.print_exc()
        raise typer.Exit(1) from None
