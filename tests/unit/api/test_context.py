"""Depth of the calling thread's context."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from capture_fixtures import FakeBackends

import proton_bench as proton
from proton_bench.errors import SessionError


def test_depth_counts_open_scopes(tmp_path: Path, fakes: FakeBackends) -> None:
    session = proton.start(tmp_path / "x")
    depths = [proton.context.depth(session)]
    with proton.scope("a"), proton.state("s"):
        depths.append(proton.context.depth(session))
        with proton.scope("b"):
            depths.append(proton.context.depth(session))
    depths.append(proton.context.depth(session))

    assert depths == [0, 1, 2, 0]


def test_depth_is_that_of_the_calling_thread(tmp_path: Path, fakes: FakeBackends) -> None:
    session = proton.start(tmp_path / "x")
    depths: list[int | None] = []
    with proton.scope("a"):
        thread = threading.Thread(target=lambda: depths.append(proton.context.depth(session)))
        thread.start()
        thread.join()

    assert depths == [0]


def test_python_context_counts_python_frames(tmp_path: Path, fakes: FakeBackends) -> None:
    session = proton.start(tmp_path / "x", context="python")

    def deeper() -> int | None:
        return proton.context.depth(session)

    here, below = proton.context.depth(session), deeper()

    assert here is not None
    assert below == here + 1


def test_no_session_has_no_depth() -> None:
    assert proton.context.depth() is None
    assert proton.context.depth(None) is None


def test_unknown_session_is_refused(tmp_path: Path, fakes: FakeBackends) -> None:
    proton.start(tmp_path / "x")

    with pytest.raises(SessionError, match="not been initialized: 1000000"):
        proton.context.depth(10**6)
