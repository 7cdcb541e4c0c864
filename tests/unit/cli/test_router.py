from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.cli.app import ROOT_OPTIONS, needs_plugin_commands, route

COMMANDS = {"run", "view", "export", "doctor"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["script.py", "--help"],
        ["-n", "x", "script.py", "view"],
        ["--name=x", "script.py"],
        ["pytest", "tests", "-q"],
        ["./view", "x"],
        ["--", "view", "x"],
        ["-m", "pcsampling", "view.py"],
        ["viewer"],
    ],
)
def test_what_is_not_a_command_belongs_to_run(arguments: list[str]) -> None:
    assert route(arguments, COMMANDS) == ["run", *arguments]


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_as_the_first_word_is_left_alone(command: str) -> None:
    assert route([command, "run", "x"], COMMANDS) == [command, "run", "x"]


@pytest.mark.parametrize("option", ROOT_OPTIONS)
def test_a_root_option_is_left_alone(option: str) -> None:
    assert route([option, "x"], COMMANDS) == [option, "x"]


def test_no_words_ask_for_help() -> None:
    assert route([], COMMANDS) == ["--help"]


def test_plugins_are_asked_for_unknown_words_and_root_help_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train").touch()

    asked = [["acme", "x"], ["--help"], []]
    not_asked = [
        ["--version"],
        ["view"],
        ["pytest"],
        ["python", "x.py"],
        ["x.py"],
        ["-n", "x"],
        ["train"],
    ]

    assert all(needs_plugin_commands(words, COMMANDS) for words in asked)
    assert not any(needs_plugin_commands(words, COMMANDS) for words in not_asked)


def test_the_mark_before_a_command_of_the_gate_stays() -> None:
    words = ["gate", "--runs", "3", "main", "--", "bench.py", "--", "x"]

    routed = route(words, {*COMMANDS, "gate"})

    assert routed == ["gate", "--runs", "3", "main", "--", "--", "bench.py", "--", "x"]
    assert route(["view", "--", "x"], COMMANDS) == ["view", "--", "x"]
