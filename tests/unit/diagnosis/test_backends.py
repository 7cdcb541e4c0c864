from __future__ import annotations

import types

import pytest

from proton_bench.diagnosis.backends import backend_section
from proton_bench.diagnosis.finding import Status
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
