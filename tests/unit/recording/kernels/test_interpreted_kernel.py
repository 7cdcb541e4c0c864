"""Scopes of interpreted kernels end with the kernel, and their errors name it."""

from __future__ import annotations

from pathlib import Path

import pytest
from capture_fixtures import FakeBackends, child, names

import proton_bench as proton
import proton_bench.language as pl
from proton_bench.errors import ScopeError
from proton_bench.recording.kernels import interpreted_kernel
from proton_bench.recording.native import native


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreted_kernel, "_warned", set())


@pytest.fixture
def session(tmp_path: Path, fakes: FakeBackends) -> int | None:
    return proton.start(tmp_path / "x")


def test_open_scopes_end_with_each_program_and_are_said_once(
    session: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with proton.scope("outer"):
        with interpreted_kernel.interpreting("leaky"):
            for _ in range(2):
                interpreted_kernel.end_program()
                pl.enter_scope("a")
                pl.enter_scope("b")
        depth = native.thread_depth()

    assert depth == 1
    outer = child(proton.data.get(session)[0], "outer")
    assert names(outer) == ["a"]
    assert names(child(outer, "a")) == ["b"]
    assert names(child(outer, "a", "b")) == []
    said = capfd.readouterr().err.splitlines()
    assert [line.partition(" is ")[0] for line in said] == [
        "proton: warning: kernel 'leaky': scope 'b'",
        "proton: warning: kernel 'leaky': scope 'a'",
    ]


def test_a_kernel_that_fails_leaves_nothing_open_and_its_own_error_stands(
    session: int, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        with interpreted_kernel.interpreting("fails"), pl.scope("a"):
            pl.enter_scope("b")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert native.thread_depth() == 0
    assert capfd.readouterr().err == ""


def test_exit_without_enter_names_the_kernel_and_leaves_scopes_around_it_open(session: int) -> None:
    proton.enter_scope("outer")
    with (
        pytest.raises(ScopeError, match=r"kernel 'stray': scope 'outer' is closed but not open"),
        interpreted_kernel.interpreting("stray"),
    ):
        pl.exit_scope("outer")

    assert native.thread_depth() == 1
    proton.exit_scope("outer")


def test_wrong_name_of_a_scope_names_the_kernel(session: int) -> None:
    with (
        interpreted_kernel.interpreting("mixed"),
        pytest.raises(ScopeError, match=r"^kernel 'mixed': Scope name mismatch: b != a"),
        pl.scope("a"),
    ):
        pl.exit_scope("b")


def test_event_that_never_ends_is_forgotten_with_its_kernel(
    session: int, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("triton")
    for _ in range(2):
        with interpreted_kernel.interpreting("started"):
            pl.start_event(pl.allocate_event("event"))
    with interpreted_kernel.interpreting("ended"):
        event = pl.allocate_event("event")
        pl.start_event(event)
        pl.end_event(event)

    from proton_bench.recording.kernels import kernel_events

    assert native.thread_depth() == 0
    assert kernel_events._host_events() == []
    assert capfd.readouterr().err.count("kernel 'started': scope 'event'") == 1


def test_scopes_without_a_session_are_closed_in_silence(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with interpreted_kernel.interpreting("unrecorded"):
        pl.enter_scope("a")

    assert native.thread_depth() == 0
    assert capfd.readouterr().err == ""
