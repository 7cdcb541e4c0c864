from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from proton_bench.diagnosis.examination import (
    installed_version,
    native_finding,
    version_section,
)
from proton_bench.diagnosis.finding import Finding, Status

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
