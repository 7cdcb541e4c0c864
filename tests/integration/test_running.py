"""Waiting for the output of a program ends, whatever the program does."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration import running
from integration.running import ended, started, wait_for_line, wait_for_text

TALKS = "print('ready'); import sys; print('done'); sys.stderr.write('one\\ntwo\\n')"


def test_what_follows_the_line_is_left_to_be_read(tmp_path: Path) -> None:
    with started(["-c", TALKS], tmp_path) as program:
        wait_for_line(program)
        wait_for_text(program, "on")

        assert ended(program) == (0, "done\n", "two\n")


def test_a_program_that_ends_without_the_text_is_an_error(tmp_path: Path) -> None:
    with (
        started(["-c", TALKS], tmp_path) as program,
        pytest.raises(AssertionError, match="ended without 'three': one\ntwo"),
    ):
        wait_for_text(program, "three")


def test_a_program_that_hangs_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PATIENCE_S", 0)

    with (
        started(["-c", "import signal; signal.pause()"], tmp_path) as program,
        pytest.raises(AssertionError, match="printed nothing more in 0 s without 'ready'"),
    ):
        wait_for_line(program)
