from __future__ import annotations

import subprocess
import sys
import types

import pytest
import typer
from typer.testing import CliRunner

from proton_bench.cli.app import COMMANDS, add_plugin_commands, build_app
from proton_bench.plugin import manager as manager_module
from proton_bench.plugin.hookspecs import hookimpl
from proton_bench.plugin.manager import PluginManager


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> PluginManager:
    manager = PluginManager(builtin=(), entry_points=False)
    monkeypatch.setattr(manager_module, "get_plugin_manager", lambda: manager)
    return manager


def offer(manager: PluginManager, name: str, function: object) -> None:
    def proton_commands(app: typer.Typer) -> None:
        app.command(name)(function)  # type: ignore[type-var]

    plugin = types.SimpleNamespace(proton_commands=hookimpl(proton_commands))
    manager.register(plugin, f"offers {name}")


def say_hello() -> None:
    typer.echo("hello")


def test_every_command_is_documented() -> None:
    shown = CliRunner().invoke(build_app(), ["--help"], env={"COLUMNS": "200"}).output

    for name in COMMANDS:
        assert f" {name} " in shown


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_list_of_commands_says_what_their_own_help_does(name: str) -> None:
    built = typer.main.get_command(build_app([name])).commands[name]

    assert built.get_short_help_str(1000) == COMMANDS[name]


def test_a_command_is_built_when_it_is_asked_for() -> None:
    app = typer.main.get_command(build_app())
    context = typer.Context(app)

    assert "view" not in app.commands
    assert app.get_command(context, "view").name == "view"
    assert app.get_command(context, "no-such") is None
    assert app.list_commands(context) == list(COMMANDS)


@pytest.mark.parametrize("name", ["gate", "ab"])
def test_help_keeps_the_brackets_of_the_policy_s_table(name: str) -> None:
    shown = CliRunner().invoke(build_app([name]), [name, "--help"], env={"COLUMNS": "200"}).output

    assert "[tool.proton.gate] of pyproject.toml" in " ".join(shown.split())


def test_only_the_modules_of_the_asked_commands_are_imported() -> None:
    program = (
        "import sys; from proton_bench.cli.app import build_app; build_app(['doctor']); "
        "print('proton_bench.cli.commands.view' in sys.modules, 'pandas' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout.split() == ["False", "False"], done.stderr


def test_a_plugins_command_is_added(manager: PluginManager) -> None:
    offer(manager, "acme", say_hello)
    app = build_app(["doctor"])

    assert add_plugin_commands(app) == ["acme"]
    assert CliRunner().invoke(app, ["acme"]).output == "hello\n"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_built_in_command_is_not_given_away(
    manager: PluginManager, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    offer(manager, name, say_hello)

    assert add_plugin_commands(build_app([])) == []
    assert f"command '{name}' exists already" in capsys.readouterr().err


def test_a_command_that_cannot_be_built_is_left_out(
    manager: PluginManager, capsys: pytest.CaptureFixture[str]
) -> None:
    def odd(value: int | str) -> None:
        typer.echo(value)

    offer(manager, "odd", odd)
    offer(manager, "acme", say_hello)

    assert add_plugin_commands(build_app([])) == ["acme"]
    assert "command 'odd' cannot be built" in capsys.readouterr().err
