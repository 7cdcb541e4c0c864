from __future__ import annotations

import json
import types

import pytest

from proton_bench.cli.commands import plugins as plugins_command
from proton_bench.cli.commands.plugins import describe
from proton_bench.plugin import manager as manager_module
from proton_bench.plugin.backend import Availability, Backend, ModeSpec
from proton_bench.plugin.hookspecs import hookimpl
from proton_bench.plugin.manager import PluginManager


def unavailable() -> Availability:
    raise OSError("no driver")


ABSENT = Backend(
    name="absent",
    summary="nothing that is here",
    availability=unavailable,
    open=pytest.fail,
    modes=(ModeSpec("fast", {"factor": "how fast"}, "faster"),),
)


@pytest.fixture
def manager() -> PluginManager:
    manager = PluginManager(builtin=("no_such_plugin",), entry_points=False)
    offering = types.SimpleNamespace(proton_backends=hookimpl(lambda: [ABSENT]))
    manager.register(offering, "offering", origin="offering 1.0")
    return manager


def test_backends_and_plugins_are_described_as_json_values(manager: PluginManager) -> None:
    described = describe(manager)

    assert json.loads(json.dumps(described)) == described
    assert described["schema"] == "proton_bench.plugins"
    assert described["default_backend"] == "cpu"
    (backend,) = described["backends"]
    assert backend["available"] is False
    assert backend["reason"] == "its availability check raised OSError: no driver"
    assert backend["modes"] == [
        {"name": "fast", "summary": "faster", "options": {"factor": "how fast"}}
    ]
    assert [plugin["name"] for plugin in described["plugins"]] == ["no_such_plugin", "offering"]
    assert "ModuleNotFoundError" in described["plugins"][0]["problem"]
    assert described["plugins"][1]["problem"] is None


def test_text_names_availability_reason_and_problem(
    manager: PluginManager,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(manager_module, "get_plugin_manager", lambda: manager)

    plugins_command.command()

    shown = capsys.readouterr().out
    assert "  absent  unavailable: its availability check raised OSError: no driver\n" in shown
    assert "mode fast[:factor=...]  faster" in shown
    assert "no_such_plugin  built-in  BROKEN: cannot be imported" in shown
    assert "offering        offering 1.0\n" in shown


def test_no_backend_at_all_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = PluginManager(builtin=(), entry_points=False)
    monkeypatch.setattr(manager_module, "get_plugin_manager", lambda: empty)

    plugins_command.command()

    assert "  none\n" in capsys.readouterr().out
