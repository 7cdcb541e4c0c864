from __future__ import annotations

import types
from dataclasses import replace

import pytest

from proton_bench.diagnosis.backends import backend_section
from proton_bench.diagnosis.finding import Finding, Status
from proton_bench.plugin.backend import Availability, Backend
from proton_bench.plugin.hookspecs import hookimpl
from proton_bench.plugin.manager import PluginManager


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


def test_a_backend_that_can_run_says_what_it_cannot_do() -> None:
    fine = Finding("library", Status.OK, "1.0")
    limit = Finding("counters", Status.NOTE, "for administrators", provides=("able",))
    manager = PluginManager(builtin=(), entry_points=False)
    able = replace(backend("able", True, ""), examine=lambda: [fine, limit])
    absent = replace(backend("absent", False, "no driver"), examine=pytest.fail)
    broken = replace(backend("broken", True, ""), examine=lambda: 1 // 0)  # type: ignore[arg-type, return-value]
    plugin = types.SimpleNamespace(proton_backends=hookimpl(lambda: [able, absent, broken]))
    manager.register(plugin, "offering", origin="offering 1.0")

    found = {each.name: each for each in backend_section(manager).findings}

    assert list(found) == ["able", "able: counters", "absent", "broken", "broken: examination"]
    assert found["able: counters"] == replace(limit, name="able: counters")
    last = found["broken: examination"]
    assert last.status is Status.PROBLEM
    assert "ZeroDivisionError" in last.value
    assert last.advice == "from offering"
