"""Finds the package that owns the scripts ``proton`` and ``proton-viewer``; says how to replace it.

Triton's wheel installs scripts of the same names. With pip the last install silently wins, and
uninstalling either package removes the script of both.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from proton_bench.diagnosis.finding import Finding, Section, Status
from proton_bench.errors import OutputError
from proton_bench.support.files import opened_output

# Script -> module and function it must call. The first two exist in Triton's wheel too.
SCRIPTS: Mapping[str, tuple[str, str]] = {
    "proton": ("proton_bench.cli", "main"),
    "proton-viewer": ("proton_bench.cli.viewer", "main"),
    "proton-bench": ("proton_bench.cli", "main"),
    "proton-bench-viewer": ("proton_bench.cli.viewer", "main"),
}
_IMPORT = re.compile(rb"^\s*(?:from|import)\s+([A-Za-z_][\w.]*)", re.MULTILINE)
_NOT_THE_OWNER = {"re", "sys", "os", "importlib"}
_HEAD_BYTES = 8192
# Longest first line that every Linux kernel reads completely.
_MAX_SHEBANG = 127
_FIX = "run `proton-bench doctor --fix-scripts` to replace it"


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look for scripts.

    Attributes:
        folder: Scripts folder of this environment.
        search_path: Folders of ``PATH``, as in the variable.
        python: The interpreter that our scripts start.
        owners: Distributions that declare a script, by script name.
    """

    folder: Path
    search_path: str
    python: str
    owners: Mapping[str, tuple[str, ...]]


def environment_place() -> Place:
    """Return the scripts folder, ``PATH`` and declared owners of this environment."""
    points = importlib.metadata.entry_points(group="console_scripts")
    owners: dict[str, tuple[str, ...]] = {}
    for name in SCRIPTS:
        found = [point.dist for point in points if point.name == name and point.dist]
        owners[name] = tuple(f"{dist.name} {dist.version}" for dist in found)
    return Place(
        folder=Path(sysconfig.get_path("scripts")),
        search_path=os.environ.get("PATH", os.defpath),
        python=sys.executable,
        owners=owners,
    )


def script_section(place: Place) -> Section:
    """Return for each script the file that a shell starts and its owner."""
    return Section("scripts", tuple(_script(name, place) for name in SCRIPTS))


def fix_scripts(place: Place, names: Iterable[str] = SCRIPTS) -> list[Path]:
    """Write our scripts that are missing in the environment or belong to another package.

    Returns:
        The files that were written; scripts on ``PATH`` outside the environment are not touched.

    Raises:
        OutputError: A script cannot be written.
    """
    foreign = [name for name in names if _module_of(place.folder / name) != SCRIPTS[name][0]]
    return [_write_script(place.folder / name, place.python, SCRIPTS[name]) for name in foreign]


def _script(name: str, place: Place) -> Finding:
    own, started = place.folder / name, shutil.which(name, path=place.search_path)
    module = _module_of(own)
    owner = _owner(module, place.owners[name])
    if module is None:
        return Finding(name, Status.ABSENT, f"not in {place.folder}", _FIX, provides=(name,))
    if module != SCRIPTS[name][0]:
        value = f"{own} belongs to {owner}"
        advice = f"{_FIX}; `proton-bench` and `python -m proton_bench` always are"
        return Finding(name, Status.PROBLEM, value, advice, provides=(name,))
    if started is None:
        advice = f"add {place.folder} to PATH, or activate the environment"
        return Finding(name, Status.NOTE, f"{own}, not on PATH", advice, provides=(name,))
    if not os.path.samefile(started, own):
        advice = f"a shell starts {started}: activate the environment, or put it first on PATH"
        return Finding(name, Status.PROBLEM, str(own), advice, provides=(name,))
    others = [each for each in place.owners[name] if not _is_ours(each)]
    advice = f"{', '.join(others)} declares it too and replaces it when upgraded" if others else ""
    return Finding(name, Status.OK, started, advice, provides=(name,))


def _owner(module: str | None, declared: tuple[str, ...]) -> str:
    others = [each for each in declared if not _is_ours(each)]
    return ", ".join(others) or (f"module {module}" if module else "an unknown program")


def _is_ours(distribution: str) -> bool:
    return distribution.replace("_", "-").startswith("proton-bench ")


def _module_of(script: Path) -> str | None:
    """Return the module that a script calls; "" if it is not Python, None if it is missing."""
    try:
        with script.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return None
    if not head.startswith(b"#!"):
        return ""
    modules = [name.decode() for name in _IMPORT.findall(head)]
    return next((name for name in modules if name.split(".")[0] not in _NOT_THE_OWNER), "")


def _write_script(path: Path, python: str, target: tuple[str, str]) -> Path:
    module, function = target
    text = (
        f"{_shebang(python)}import sys\n\n"
        f"from {module} import {function}\n\n"
        f'if __name__ == "__main__":\n    sys.exit({function}())\n'
    )
    try:
        if path.is_symlink():
            path.unlink()  # its target may be the script of another environment
        with opened_output(path, mode=0o755) as stream:
            stream.write(text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise OutputError(
            f"script {path} cannot be written ({error}): run as the owner of "
            f"{path.parent}, or use `python -m proton_bench`"
        ) from error
    return path


def _shebang(python: str) -> str:
    """Return the first lines; sh starts a path that the kernel cannot start directly."""
    if " " not in python and len(python) + 3 <= _MAX_SHEBANG:
        return f"#!{python}\n"
    quoted = "'" + python.replace("'", "'\"'\"'") + "'"
    # A line that sh reads as a command and Python as a string.
    return f"#!/bin/sh\n'''exec' {quoted} \"$0\" \"$@\"\n' '''\n"
