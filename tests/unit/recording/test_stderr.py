from __future__ import annotations

import io
import sys

import pytest

from proton_bench.recording.stderr import say, warn


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "__stderr__", stream)
    return stream


def test_the_process_own_stderr_is_written_to(stream: io.StringIO) -> None:
    say("wrote x")
    warn("y is missing")

    assert stream.getvalue() == "proton: wrote x\nproton: warning: y is missing\n"


def test_quiet_leaves_errors(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTON_BENCH_QUIET", "1")

    say("wrote x")
    warn("y is missing")
    say("error: z", is_error=True)

    assert stream.getvalue() == "proton: error: z\n"


def test_a_closed_stream_is_not_an_error(stream: io.StringIO) -> None:
    stream.close()

    say("wrote x")

    assert stream.closed
