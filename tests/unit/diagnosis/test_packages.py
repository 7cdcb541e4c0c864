from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from proton_bench.diagnosis.finding import Finding, Status
from proton_bench.diagnosis.packages import (
    extra_section,
    installed_version,
    native_finding,
    version_section,
)

REQUIREMENTS = {
    "proton-bench": (
        "numpy>=2.0",
        'torch>=2.9; extra == "torch"',
        "duckdb>=1.4 ; extra == 'store'",
        'pyarrow; extra == "store"',
        'frames>=2; python_version >= "3" and extra == "frames"',
        'proton-bench[store]; extra == "fleet"',
        'proton-bench[torch,store]; extra == "all"',
        'linter; extra == "dev"',
    ),
    "frames": ("pandas<3", "tables<9; python_version < '3'", "seen[fast]", "(((damaged"),
    "seen": ('quick>1; extra == "fast"', 'slow>1; extra == "other"', "frames"),
}
INSTALLED = {"torch": "2.13.0", "pyarrow": "1", "frames": "2.1", "pandas": "2.2", "seen": "1"}


def extras(**installed: str) -> dict[str, Finding]:
    versions = {**INSTALLED, **installed}
    section = extra_section(versions.get, lambda name: REQUIREMENTS.get(name, ()))
    return {finding.name: finding for finding in section.findings}


def test_extras_name_what_is_missing_and_how_to_install_it() -> None:
    found = extras()

    torch, store = found["torch"], found["store"]
    assert (torch.status, torch.value, torch.provides) == (Status.OK, "installed", ("torch",))
    assert (store.status, store.value) == (Status.ABSENT, "missing: duckdb>=1.4")
    assert store.advice == "pip install 'duckdb>=1.4'"
    assert found["fleet"].value == store.value
    assert found.keys() == {"fleet", "frames", "store", "torch"}


@pytest.mark.parametrize(
    ("installed", "status", "value"),
    [
        ({"quick": "2"}, Status.OK, "installed"),
        ({}, Status.ABSENT, "missing: quick>1"),
        ({"quick": "2", "frames": "1.9"}, Status.PROBLEM, "frames>=2, and 1.9 is installed"),
        (
            {"quick": "2", "pandas": "3.0.1"},
            Status.PROBLEM,
            "frames needs pandas<3, and 3.0.1 is installed",
        ),
        ({"quick": "0.5"}, Status.PROBLEM, "seen needs quick>1, and 0.5 is installed"),
        ({"quick": "2", "pandas": "3.0rc1"}, Status.PROBLEM, "frames needs pandas<3, and 3.0rc1"),
    ],
)
def test_an_extra_is_installed_only_if_versions_fit(
    installed: dict[str, str], status: Status, value: str
) -> None:
    found = extras(**installed)["frames"]

    assert found.status is status
    assert found.value.startswith(value)


def test_extras_of_this_package_are_found() -> None:
    names = {finding.name for finding in extra_section().findings}

    assert {"hatchet", "torch", "triton", "store"} <= names
    assert names.isdisjoint({"all", "test", "dev", "docs"})


NATIVE = Finding("native module", Status.OK, "1.0")


def test_versions_are_those_of_the_installed_distributions() -> None:
    import numpy as np

    findings = {finding.name: finding for finding in version_section(NATIVE).findings}

    assert findings["numpy"].value == np.__version__
    assert findings["proton-bench"].status is Status.OK


def test_an_absent_neighbour_and_an_absent_package_differ() -> None:
    findings = {
        finding.name: finding for finding in version_section(NATIVE, lambda _: None).findings
    }

    assert findings["torch"].status is Status.ABSENT
    assert findings["proton-bench"].status is Status.PROBLEM
    assert "pip install -e" in findings["proton-bench"].advice


def test_a_distribution_that_is_not_there_has_no_version() -> None:
    assert installed_version("no-such-distribution-here") is None


def fails(error: Exception) -> Callable[[str], Any]:
    def load(name: str) -> Any:
        raise error

    return load


def test_a_native_module_of_the_same_version_is_fine() -> None:
    found = native_finding("1.2", lambda name: SimpleNamespace(version="1.2"))

    assert (found.status, found.value, found.provides) == (Status.OK, "1.2", ("native",))


@pytest.mark.parametrize(
    ("load", "status", "value"),
    [
        (fails(ModuleNotFoundError("no")), Status.ABSENT, "not built: analysis works"),
        (fails(ImportError("undefined symbol: f")), Status.PROBLEM, "does not load: undefined"),
        (
            lambda name: SimpleNamespace(version="1.1"),
            Status.PROBLEM,
            "version 1.1, but the package is 1.2",
        ),
    ],
)
def test_another_native_module_is_named(
    load: Callable[[str], Any], status: Status, value: str
) -> None:
    found = native_finding("1.2", load)

    assert found.status is status
    assert found.value.startswith(value)
