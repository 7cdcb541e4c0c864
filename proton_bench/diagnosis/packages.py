"""Versions of this package and of its neighbours, and which extras are complete.

This reads metadata and imports nothing else, because importing torch takes seconds.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from proton_bench.diagnosis.finding import Finding, Section, Status

__all__ = [
    "DISTRIBUTION",
    "extra_section",
    "installed_version",
    "native_finding",
    "version_section",
]

DISTRIBUTION = "proton-bench"
_NATIVE = "proton_bench._native"
_NEIGHBOURS = ("torch", "triton", "numpy", "pandas", "llnl-hatchet", "pytest")
# Extras for work on this package.
_OF_DEVELOPERS = frozenset({"all", "dev", "docs", "test"})

Lookup = Callable[[str], str | None]
Requirements = Callable[[str], Sequence[str]]


@functools.cache
def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, None where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def _installed_requirements(distribution: str) -> Sequence[str]:
    try:
        return importlib.metadata.requires(distribution) or ()
    except importlib.metadata.PackageNotFoundError:
        return ()


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


def extra_section(
    version_of: Lookup = installed_version, requirements_of: Requirements = _installed_requirements
) -> Section:
    """Return for each extra whether its requirements are installed, in versions that fit.

    Args:
        version_of: Looks up the version of a distribution.
        requirements_of: Looks up the ``Requires-Dist`` lines of a distribution.
    """
    wanted = [*_parsed(requirements_of(DISTRIBUTION))]
    extras = {word for each in wanted if (word := _extra_of(each))} - _OF_DEVELOPERS
    check = _Check(version_of, requirements_of)
    return Section("extras", tuple(_extra(extra, check) for extra in sorted(extras)))


def _extra(extra: str, check: _Check) -> Finding:
    missing: list[tuple[str, str]] = []
    unfit: list[tuple[str, str]] = []
    for requirement, needed_by, version in check.unmet(DISTRIBUTION, frozenset({extra}), set()):
        text = f"{requirement.name}{requirement.specifier}"
        by = "" if needed_by == DISTRIBUTION else f"{needed_by} needs "
        (unfit if version else missing).append((text, f"{by}{text}, and {version} is installed"))
    if not missing and not unfit:
        return Finding(extra, Status.OK, "installed", provides=(extra,))
    said = [f"missing: {', '.join(text for text, _ in missing)}"] if missing else []
    said += [why for _, why in unfit]
    # Not an extra of this package by name: that name in an index may be another package.
    names = " ".join(f"'{text}'" for text, _ in (*missing, *unfit))
    advice = f"pip install {names}"
    status = Status.PROBLEM if unfit and not missing else Status.ABSENT
    return Finding(extra, status, "; ".join(said), advice, provides=(extra,))


class _Check:
    """Compares requirements with what is installed.

    Args:
        version_of: Looks up the version of a distribution.
        requirements_of: Looks up the requirements of a distribution.
    """

    def __init__(self, version_of: Lookup, requirements_of: Requirements) -> None:
        self._version_of = version_of
        self._requirements_of = requirements_of

    def unmet(
        self, distribution: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]
    ) -> Iterator[tuple[Requirement, str, str | None]]:
        """Yield what a distribution with extras lacks: the requirement, by whom, the version.

        The requirements of what is installed are checked too.
        """
        key = (canonicalize_name(distribution), extras)
        if key in seen:
            return
        seen.add(key)
        is_ours = key[0] == DISTRIBUTION  # which is here, with what it always needs
        for each in _parsed(self._requirements_of(distribution)):
            if not _is_wanted(each, extras, needs_extra=is_ours):
                continue
            is_own = canonicalize_name(each.name) == DISTRIBUTION
            version = self._version_of(each.name)
            if not is_own and (
                version is None or not each.specifier.contains(version, prereleases=True)
            ):
                yield each, distribution, version
            else:
                yield from self.unmet(each.name, frozenset(each.extras), seen)


def _parsed(lines: Sequence[str]) -> Iterator[Requirement]:
    for line in lines:
        with contextlib.suppress(InvalidRequirement):  # of a foreign package
            yield Requirement(line)


def _extra_of(requirement: Requirement) -> str:
    """Return the extra that a requirement belongs to, "" for none."""
    text = str(requirement.marker or "")
    return text.partition("extra == ")[2].strip("\"'").partition('"')[0]


def _is_wanted(requirement: Requirement, extras: frozenset[str], *, needs_extra: bool) -> bool:
    marker = requirement.marker
    if marker is None:
        return not needs_extra
    if needs_extra and marker.evaluate({"extra": ""}):
        return False
    return any(marker.evaluate({"extra": each}) for each in extras or {""})
