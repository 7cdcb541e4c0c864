from __future__ import annotations

from proton_bench.diagnosis.finding import Status
from proton_bench.diagnosis.packages import extra_section, installed_version, version_section

REQUIREMENTS = (
    "numpy>=2.0",
    'torch>=2.9; extra == "torch"',
    "duckdb>=1.4 ; extra == 'store'",
    'perfetto; extra == "store"',
    'proton-bench[torch,store]; extra == "all"',
)


def test_extras_name_what_is_missing_and_how_to_install_it() -> None:
    installed = {"torch": "2.13.0", "perfetto": "1"}

    store, torch = extra_section(REQUIREMENTS, installed.get).findings

    assert (torch.name, torch.status, torch.provides) == ("torch", Status.OK, ("torch",))
    assert (store.status, store.value) == (Status.ABSENT, "missing: duckdb")
    assert store.advice == "pip install duckdb"


def test_extras_of_this_package_are_found() -> None:
    names = {finding.name for finding in extra_section().findings}

    assert {"hatchet", "torch", "triton", "test", "dev"} <= names
    assert "all" not in names


def test_versions_are_those_of_the_installed_distributions() -> None:
    import numpy as np

    findings = {finding.name: finding for finding in version_section().findings}

    assert findings["numpy"].value == np.__version__
    assert findings["proton-bench"].status is Status.OK


def test_an_absent_neighbour_and_an_absent_package_differ() -> None:
    findings = {finding.name: finding for finding in version_section(lambda _: None).findings}

    assert findings["torch"].status is Status.ABSENT
    assert findings["proton-bench"].status is Status.PROBLEM
    assert "pip install -e" in findings["proton-bench"].advice


def test_a_distribution_that_is_not_there_has_no_version() -> None:
    assert installed_version("no-such-distribution-here") is None
