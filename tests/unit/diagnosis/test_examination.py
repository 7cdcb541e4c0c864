from __future__ import annotations

import sys
import types
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from proton_bench.diagnosis.backends import backend_section
from proton_bench.diagnosis.examination import (
    examine,
    installed_version,
    native_finding,
    version_section,
)
from proton_bench.diagnosis.finding import Diagnosis, Finding, Section, Status
from proton_bench.plugin.backend import Availability, Backend
from proton_bench.plugin.hookspecs import hookimpl
from proton_bench.plugin.manager import PluginManager

SECTIONS = ["versions", "scripts", "calibration", "backends"]


def test_everything_is_examined_once() -> None:
    diagnosis = examine()

    named = [section.name for section in diagnosis.sections]
    assert named in (SECTIONS, [name for name in SECTIONS if name != "calibration"])  # without GPU
    for section in diagnosis.sections:
        names = [finding.name for finding in section.findings]
        assert names
        assert len(set(names)) == len(names)


def test_what_scripts_may_require_is_offered() -> None:
    assert {"cpu", "replay", "native", "torch", "proton"} <= set(examine().requirable)


def test_without_the_native_module_the_rest_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "proton_bench._native", None)

    diagnosis = examine()

    assert {"native", "torch", "proton"} <= set(diagnosis.requirable)
    assert [finding.name for finding in diagnosis.missing(["native"])] == ["native module"]
    assert "backends" in [section.name for section in diagnosis.sections]


DIAGNOSIS = Diagnosis(
    (
        Section("backends", (Finding("cpu", Status.OK, "here", provides=("cpu",)),)),
        Section(
            "packages",
            (
                Finding("torch", Status.OK, "2.13.0", provides=("torch",)),
                Finding("script", Status.NOTE, "not on PATH", provides=("proton",)),
                Finding("driver", Status.ABSENT, "none found", "install one", provides=("gpu",)),
                Finding("module", Status.PROBLEM, "does not load", provides=("native",)),
            ),
        ),
        Section("extras", (Finding("torch", Status.ABSENT, "missing: x", provides=("torch",)),)),
    )
)


def test_what_is_ok_or_a_note_satisfies_a_requirement() -> None:
    assert DIAGNOSIS.missing(["cpu", "proton"]) == ()


@pytest.mark.parametrize("name", ["gpu", "native"])
def test_what_is_absent_or_broken_does_not(name: str) -> None:
    (finding,) = DIAGNOSIS.missing(["cpu", name])

    assert finding.provides == (name,)


def test_of_two_things_with_one_name_the_missing_one_decides() -> None:
    (finding,) = DIAGNOSIS.missing(["torch"])

    assert finding.value == "missing: x"


def test_an_unknown_name_is_missing_and_the_choices_are_named() -> None:
    (finding,) = DIAGNOSIS.missing(["cupti"])

    assert (finding.name, finding.status) == ("cupti", Status.ABSENT)
    assert finding.advice == "choose from: cpu, gpu, native, proton, torch"


def test_nothing_required_is_never_missing() -> None:
    assert DIAGNOSIS.missing([]) == ()


@pytest.mark.parametrize(
    ("status", "is_usable"),
    [(Status.OK, True), (Status.NOTE, True), (Status.ABSENT, False), (Status.PROBLEM, False)],
)
def test_what_is_absent_or_broken_is_not_usable(status: Status, is_usable: bool) -> None:
    assert Finding("x", status, "value").usable is is_usable


def backend(name: str, available: bool, reason: str) -> Backend:
    return Backend(
        name=name,
        summary=f"summary of {name}",
        availability=lambda: Availability(available, reason),
        open=pytest.fail,
    )


@pytest.fixture
def manager() -> PluginManager:
    manager = PluginManager(builtin=("no_such_plugin",), entry_points=False)
    offered = [backend("cpu", True, "needs nothing"), backend("absent", False, "no driver")]
    plugin = types.SimpleNamespace(proton_backends=hookimpl(lambda: offered))
    manager.register(plugin, "offering", origin="offering 1.0")
    return manager


def test_backends_say_whether_they_can_run_and_why(manager: PluginManager) -> None:
    absent, cpu, _ = backend_section(manager).findings

    assert (cpu.status, cpu.value, cpu.provides) == (
        Status.OK,
        "default: needs nothing",
        ("cpu",),
    )
    assert (absent.status, absent.value) == (Status.ABSENT, "no driver")


def test_a_broken_plugin_is_a_problem_with_its_reason(manager: PluginManager) -> None:
    *_, broken = backend_section(manager).findings

    assert broken.status is Status.PROBLEM
    assert "ModuleNotFoundError" in broken.value


def test_no_backend_at_all_is_a_problem() -> None:
    empty = PluginManager(builtin=(), entry_points=False)

    (finding,) = backend_section(empty).findings

    assert finding.status is Status.PROBLEM


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
