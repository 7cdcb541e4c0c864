"""The interpreter, the native module and the current folder."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
from typing import Any

from proton_bench.diagnosis.finding import Finding, Section, Status
from proton_bench.diagnosis.packages import DISTRIBUTION, installed_version

__all__ = ["folder_section", "interpreter_section", "native_section"]

_NATIVE = "proton_bench._native"
_LOW_SPACE_BYTES = 200 * 2**20


def interpreter_section(environ: Mapping[str, str], loaded: Collection[str]) -> Section:
    """Return the facts that decide how Triton's kernels run and how Python frames are read.

    Args:
        environ: The environment of the process.
        loaded: Names of modules loaded before any plugin.
    """
    mode = environ.get("TRITON_INTERPRET", "")
    interpreted = mode.lower() in ("1", "true", "on", "yes", "y")
    setting = Finding(
        "TRITON_INTERPRET",
        Status.NOTE if interpreted else Status.OK,
        mode or "not set",
        "Triton kernels run in the interpreter, even with a GPU" if interpreted else "",
    )
    early = "triton" in loaded
    triton = Finding(
        "triton imported",
        Status.PROBLEM if early else Status.OK,
        "yes, while Python started" if early else "no",
        "TRITON_INTERPRET and the compat names have no effect: look for a .pth file or a "
        "sitecustomize that imports triton"
        if early
        else "",
    )
    return Section("interpreter", (_implementation(), setting, triton))


def _implementation() -> Finding:
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    text = f"{platform.python_implementation()}, GIL {'on' if has_gil else 'off'}"
    if sys.implementation.name != "cpython":
        return Finding("implementation", Status.PROBLEM, text, "recording needs CPython")
    if has_gil:
        return Finding("implementation", Status.OK, text)
    return Finding(
        "implementation", Status.NOTE, text, "Python frames are read through the public interface"
    )


def native_section(
    package_version: str | None = None,
    load: Callable[[str], Any] = importlib.import_module,
) -> Section:
    """Return whether the compiled module loads and has the package's version.

    Args:
        package_version: Version of the Python files; by default that of the installed package.
        load: Imports a module by its name.
    """
    expected = package_version or installed_version(DISTRIBUTION)
    again = "reinstall it with a C++ compiler"
    try:
        module = load(_NATIVE)
    except ImportError as error:
        value = f"does not load: {error}"
        advice = f"analysis works, recording does not; {again}"
        found = Finding("module", Status.PROBLEM, value, advice, provides=("native",))
        return Section("native", (found,))
    version = str(module.version)
    if expected is not None and version != expected:
        value = f"version {version}, but the package is {expected}"
        found = Finding("module", Status.PROBLEM, value, again, provides=("native",))
    else:
        found = Finding("module", Status.OK, f"{version} ({module.__file__})", provides=("native",))
    return Section("native", (found,))


def folder_section(folder: str | None = None) -> Section:
    """Return whether a profile can be written into the current folder.

    Args:
        folder: The folder; the current one by default.
    """
    try:
        where = folder if folder is not None else os.getcwd()
        # Write an unnamed file: permissions alone do not decide, and root may write anyway.
        with tempfile.TemporaryFile(dir=where):
            free = shutil.disk_usage(where).free
    except OSError as error:
        value = f"cannot be written: {error.strerror}"
        advice = "write to another folder: -o /tmp/run.proton"
        return Section("folder", (Finding("current", Status.PROBLEM, value, advice),))
    low = free < _LOW_SPACE_BYTES
    return Section(
        "folder",
        (
            Finding("current", Status.OK, where),
            Finding(
                "free space",
                Status.PROBLEM if low else Status.OK,
                f"{free / 2**20:,.0f} MiB",
                "a long run may fill the disk" if low else "",
            ),
        ),
    )
