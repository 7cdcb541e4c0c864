"""Runs all checks once. A new section is one line here."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import platform
import sys
from collections.abc import Callable
from typing import Any

from proton_bench.diagnosis.finding import Diagnosis, Finding, Section, Status
from proton_bench.diagnosis.scripts import environment_place, script_section

DISTRIBUTION = "proton-bench"
_NATIVE = "proton_bench._native"
_NEIGHBOURS = ("torch", "triton", "numpy", "pandas", "llnl-hatchet", "pytest")

Lookup = Callable[[str], str | None]


# Metadata is read and nothing imported, because importing torch takes seconds.
@functools.cache
def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, None where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def native_finding(
    package_version: str | None = None,
    load: Callable[[str], Any] = importlib.import_module,
) -> Finding:
    """Return whether the compiled module loads and has the package's version.

    Args:
        package_version: Version of the Python files; by default that of the installed package.
        load: Imports a module by its name.
    """
    expected = package_version or installed_version(DISTRIBUTION)
    name, names = "native module", ("native",)
    again = "to record, reinstall from the repository with a C++ compiler"
    try:
        version = str(load(_NATIVE).version)
    except ModuleNotFoundError:
        return Finding(name, Status.ABSENT, "not built: analysis works", again, provides=names)
    except ImportError as error:
        return Finding(name, Status.PROBLEM, f"does not load: {error}", again, provides=names)
    if expected is not None and version != expected:
        value = f"version {version}, but the package is {expected}"
        return Finding(name, Status.PROBLEM, value, again, provides=names)
    return Finding(name, Status.OK, version, provides=names)


def version_section(native: Finding, version_of: Lookup = installed_version) -> Section:
    """Return the versions for a bug report.

    Args:
        native: What is known of the native module.
        version_of: Looks up the version of a distribution.
    """
    ours = version_of(DISTRIBUTION)
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    build = "" if has_gil else ", without the GIL"
    is_cpython = sys.implementation.name == "cpython"
    findings = [
        Finding(
            DISTRIBUTION,
            Status.OK if ours else Status.PROBLEM,
            ours or "not installed",
            "" if ours else "the sources are imported from a folder: run pip install -e . there",
        ),
        Finding(
            "python",
            Status.OK if is_cpython else Status.PROBLEM,
            f"{platform.python_version()}{build} ({sys.executable})",
            "" if is_cpython else "recording needs CPython",
        ),
        native,
    ]
    for name in _NEIGHBOURS:
        version = version_of(name)
        status = Status.OK if version else Status.ABSENT
        findings.append(Finding(name, status, version or "not installed", provides=(name,)))
    return Section("versions", tuple(findings))


def examine() -> Diagnosis:
    """Check this installation and this machine; nothing is changed and no driver is started."""
    native = native_finding()
    found = (
        version_section(native),
        script_section(environment_place()),
        *(_recording_sections() if native.usable else (_NO_BACKENDS,)),
    )
    return Diagnosis(tuple(section for section in found if section.findings))


_NO_BACKENDS = Section(
    "backends",
    (
        Finding(
            "none",
            Status.ABSENT,
            "nothing can be recorded without the native module",
        ),
    ),
)


def _recording_sections() -> tuple[Section, ...]:
    # These import what records, which an installation for analysis alone does not have.
    from proton_bench.diagnosis.backends import backend_section
    from proton_bench.diagnosis.calibration import ceiling_section
    from proton_bench.plugin.manager import get_plugin_manager

    return ceiling_section(), backend_section(get_plugin_manager())
