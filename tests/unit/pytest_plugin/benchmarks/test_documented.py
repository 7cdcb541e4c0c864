"""Options of pytest and arguments of the marker stand in the documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proton_bench.pytest_plugin.benchmarks.marker import _ARGUMENTS, MARKER_LINE
from proton_bench.pytest_plugin.benchmarks.settings import add_options

PAGE = (Path(__file__).parents[4] / "docs" / "how-to" / "pytest.md").read_text(encoding="utf-8")


class Options:
    def __init__(self) -> None:
        self.names: list[str] = []

    def addoption(self, name: str, **settings: object) -> None:
        assert settings["help"]
        self.names.append(name)


def test_options_stand_in_the_table() -> None:
    options = Options()
    add_options(options)
    shown = [name for name in options.names if name != "--proton-replicate"]

    assert [name for name in shown if not re.search(rf"^\|.*`{name}[ `]", PAGE, re.MULTILINE)] == []


@pytest.mark.parametrize("argument", list(_ARGUMENTS))
def test_argument_of_the_marker_stands_in_the_table(argument: str) -> None:
    assert re.search(rf"^\|.*`{argument}=", PAGE, re.MULTILINE)
    assert f"{argument}=" in MARKER_LINE
