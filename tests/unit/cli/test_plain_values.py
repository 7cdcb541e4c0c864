from __future__ import annotations

import os
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from proton_bench.cli.app import PlainValuesCommand


class Colour(StrEnum):
    RED = "red"


def every_kind(
    files: Annotated[list[Path], typer.Argument()],
    names: Annotated[list[str] | None, typer.Option("--name")] = None,
    text: Annotated[str | None, typer.Option("--text")] = None,
    number: Annotated[int, typer.Option("--number", min=1)] = 3,
    share: Annotated[float | None, typer.Option("--share")] = None,
    colour: Annotated[Colour, typer.Option("--colour")] = Colour.RED,
    folder: Annotated[Path | None, typer.Option("--folder", exists=True, file_okay=False)] = None,
    flag: Annotated[bool, typer.Option("--flag/--no-flag")] = True,
) -> None:
    values = (files, names, text, number, share, colour, folder, flag)
    typer.echo(ascii([(type(value).__name__, value) for value in values]))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").write_text("x")
    return tmp_path


def outcome(words: list[str], **settings: Any) -> tuple[int, str]:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(**settings)(every_kind)
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.output


@pytest.mark.parametrize(
    "words",
    [
        ["there"],
        ["there", "missing", ".", "-", ""],
        ["x", "--name", "a", "--name", "", "--text", "b"],
        ["x", "--number", "7", "--share", "0.5", "--colour", "red", "--no-flag"],
        ["x", "--folder", "."],
        ["x", "--folder", "there"],
        ["x", "--folder", "missing"],
        ["x", "--number", "0"],
        ["x", "--number", "many"],
        ["x", "--colour", "blue"],
        [],
        ["--text", "b"],
        ["x", "--no-such"],
    ],
)
def test_values_and_messages_are_those_of_typer(words: list[str]) -> None:
    assert outcome(words, cls=PlainValuesCommand) == outcome(words)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_cannot_be_read_is_reported_as_typer_does(folder: Path) -> None:
    (folder / "there").chmod(0)

    assert outcome(["there"], cls=PlainValuesCommand) == outcome(["there"])


def test_pydantic_is_not_loaded_for_plain_values() -> None:
    program = (
        "import sys; from proton_bench.cli import main; main(['view', 'x', '-m', 'time']); "
        "print('pydantic' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout.split() == ["False"], done.stderr
