"""Versions of this package and of its neighbours, and which extras are complete.

This reads metadata and imports nothing, because importing torch takes seconds.
"""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import re
import sys
from collections.abc import Callable, Iterable

from proton_bench.diagnosis.finding import Finding, Section, Status

__all__ = ["DISTRIBUTION", "extra_section", "installed_version", "version_section"]

DISTRIBUTION = "proton-bench"
# Distribution -> its common name, if different.
_NEIGHBOURS = ("torch", "triton", "numpy", "pandas", "llnl-hatchet", "pytest")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")

Lookup = Callable[[str], str | None]


@functools.cache
def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, None where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def version_section(version_of: Lookup = installed_version) -> Section:
    """Return the versions for a bug report.

    Args:
        version_of: Looks up the version of a distribution.
    """
    ours = version_of(DISTRIBUTION)
    findings = [
        Finding(
            DISTRIBUTION,
            Status.OK if ours else Status.PROBLEM,
            ours or "not installed",
            "" if ours else "the sources are imported from a folder: run pip install -e . there",
        ),
        Finding("python", Status.OK, f"{platform.python_version()} ({sys.executable})"),
    ]
    for name in _NEIGHBOURS:
        version = version_of(name)
        status = Status.OK if version else Status.ABSENT
        findings.append(Finding(name, status, version or "not installed", provides=(name,)))
    return Section("versions", tuple(findings))


def extra_section(
    requirements: Iterable[str] | None = None, version_of: Lookup = installed_version
) -> Section:
    """Return for each extra whether all its requirements are installed.

    Args:
        requirements: ``Requires-Dist`` lines; those of the installed package by default.
        version_of: Looks up the version of a distribution.
    """
    lines = _own_requirements() if requirements is None else requirements
    findings = [
        _extra(extra, names, version_of) for extra, names in sorted(_by_extra(lines).items())
    ]
    return Section("extras", tuple(findings))


def _own_requirements() -> list[str]:
    try:
        return importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _by_extra(lines: Iterable[str]) -> dict[str, list[str]]:
    """Return the distributions of every extra; an extra of extras (``all``) has none itself."""
    extras: dict[str, list[str]] = {}
    for line in lines:
        name, extra = _NAME.match(line), _EXTRA.search(line)
        if name and extra and name[0].lower().replace("_", "-") != DISTRIBUTION:
            extras.setdefault(extra[1], []).append(name[0])
    return extras


def _extra(extra: str, names: list[str], version_of: Lookup) -> Finding:
    missing = [name for name in names if version_of(name) is None]
    if not missing:
        return Finding(extra, Status.OK, "installed", provides=(extra,))
    value = f"missing: {', '.join(missing)}"
    # Not an extra of this package by name: that name in a registry may be another package.
    advice = f"pip install {' '.join(missing)}"
    return Finding(extra, Status.ABSENT, value, advice, provides=(extra,))
