from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from proton_bench import _native
from proton_bench.gate.machine import CANARY_SCOPE as GATE_CANARY_SCOPE
from proton_bench.gate.machine import WARM_UP_SCOPE as GATE_WARM_UP_SCOPE
from proton_bench.model.profile import Profile
from proton_bench.plugin.canary import Canary, ScopeMaker, Ticks
from proton_bench.recording.session.canary import CANARY_SCOPE, WARM_UP_SCOPE, SessionCanary
from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.recording import Session, open_session


def emit(name: str) -> None:
    begin = time.monotonic_ns()
    _native.emit_kernel(_native.emit_launch(), name, begin, begin + 1000, "CUDA", 0, 0)


class Bird:
    """A canary that comes due when a test says so."""

    def __init__(self, found: Ticks | Exception | None = None) -> None:
        self.found = found
        self.due: Callable[[], None] = lambda: None
        self.is_watching = False

    def watch(self, due: Callable[[], None]) -> None:
        self.due, self.is_watching = due, True

    def unwatch(self) -> None:
        self.is_watching = False

    def launch(self, scope: ScopeMaker, names: tuple[str, str]) -> Ticks | None:
        if isinstance(self.found, Exception):
            raise self.found
        with scope(names[0]):
            with scope(names[1]):
                emit("fma")
            emit("fma")
        return self.found


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    sessions: list[Session] = []

    def open_with(maker: Callable[[], Canary] | None, context: str = "shadow") -> Session:
        options = SessionOptions(name=tmp_path / "p", backend="cpu", context=context)
        session = open_session(options)
        sessions.append(session)
        backends = tuple(replace(each, canary=maker) for each in session.plan.backends)
        session.plan = replace(session.plan, backends=backends)
        return session

    yield open_with
    for session in sessions:
        session.finalize(())


def paths(profile: Profile) -> set[str]:
    return {"/".join(profile.path(row)) for row in range(len(profile))}


def test_it_stands_outside_of_the_scopes_of_the_target(opened: Callable[..., Session]) -> None:
    bird = Bird(Ticks(cycles=1980, ns=1000, launches=1))
    session = opened(lambda: bird)
    canary = SessionCanary(session)

    canary.begin()
    bird.due()
    with _native.scope("user"):
        bird.due()
        emit("work")
    canary.end()

    profile = session.profile()
    kernels = {"user/work", "<canary>/fma", "<canary>/<warm-up>/fma"}
    assert {path for path in paths(profile) if path.endswith(("work", "fma"))} == kernels
    assert profile.provenance["canary"] == {"sm_clock_hz": 1.98e9, "launches": 2}
    assert not bird.is_watching


def test_scopes_that_stay_open_leave_no_room(opened: Callable[..., Session]) -> None:
    bird = Bird(Ticks(1, 1, 1))
    session = opened(lambda: bird)
    canary = SessionCanary(session)
    canary.begin()

    with _native.scope("user"):
        thread = threading.Thread(target=bird.due)
        thread.start()
        thread.join()
        canary.end()

    profile = session.profile()
    assert "were open" in profile.provenance["canary"]["missing"]
    assert not {path for path in paths(profile) if path.endswith("fma")}


def test_an_unused_device_is_not_mentioned(opened: Callable[..., Session]) -> None:
    session = opened(Bird)
    canary = SessionCanary(session)

    canary.begin()
    canary.end()

    assert "canary" not in session.profile().provenance


def test_a_backend_without_one_leaves_no_trace(opened: Callable[..., Session]) -> None:
    session = opened(None)
    canary = SessionCanary(session)

    canary.begin()
    canary.end()

    assert "canary" not in session.profile().provenance


def test_its_failure_is_written_down_and_goes_no_further(opened: Callable[..., Session]) -> None:
    bird = Bird(OSError("no memory"))
    session = opened(lambda: bird)
    canary = SessionCanary(session)

    canary.begin()
    bird.due()
    canary.end()

    assert session.profile().provenance["canary"] == {"missing": "OSError: no memory"}


def test_one_that_cannot_be_made_is_written_down(opened: Callable[..., Session]) -> None:
    def fail() -> Canary:
        raise RuntimeError("no")

    session = opened(fail)
    canary = SessionCanary(session)

    canary.begin()
    canary.end()

    assert session.profile().provenance["canary"] == {"missing": "RuntimeError: no"}


def test_paths_of_python_frames_have_no_place_for_it(opened: Callable[..., Session]) -> None:
    session = opened(lambda: Bird(Ticks(1, 1, 1)), context="python")
    canary = SessionCanary(session)

    canary.begin()
    canary.end()

    profile = session.profile()
    assert "scope" in profile.provenance["canary"]["missing"]
    assert len(profile) == 1


def test_nothing_is_launched_while_nothing_is_recorded(opened: Callable[..., Session]) -> None:
    bird = Bird(Ticks(1, 1, 1))
    session = opened(lambda: bird)
    canary = SessionCanary(session)
    canary.begin()

    session.deactivate()
    bird.due()
    session.activate()
    canary.end()

    assert session.profile().provenance["canary"]["launches"] == 1


def test_the_gate_knows_its_names() -> None:
    assert (CANARY_SCOPE, WARM_UP_SCOPE) == (GATE_CANARY_SCOPE, GATE_WARM_UP_SCOPE)
