from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch")
interactive = pytest.importorskip("IPython.core.interactiveshell")


@pytest.fixture
def shell() -> Iterator[Any]:
    made = interactive.InteractiveShell.instance()
    made.run_line_magic("load_ext", "proton_bench")
    yield made
    interactive.InteractiveShell.clear_instance()


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []
    monkeypatch.setattr("IPython.display.display", found.append)
    return found


def test_a_cell_is_recorded_and_its_profile_shown(shell: Any, displayed: list[Any]) -> None:
    shell.run_cell("%%proton -b cpu\nimport torch\nvalue = torch.ones(3, 3) @ torch.ones(3, 3)")

    (profile,) = displayed
    assert "aten::matmul" in profile.strings
    assert shell.user_ns["value"].shape == (3, 3)


def test_a_cell_that_fails_shows_its_error_alone(
    shell: Any, displayed: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("%%proton -b cpu\nraise KeyError('mine')")

    assert displayed == []
    assert "KeyError" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["--nonsense", "-b nothing", "-d nothing"])
def test_wrong_options_are_one_line(
    shell: Any, displayed: list[Any], capsys: pytest.CaptureFixture[str], words: str
) -> None:
    shell.run_cell(f"%%proton {words}\nx = 1")

    assert displayed == []
    captured = capsys.readouterr()
    assert "Traceback" not in captured.out + captured.err
