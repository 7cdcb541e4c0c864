"""Reading a running session, phase by phase."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from capture_fixtures import FakeBackends, names

import proton_bench as proton
from proton_bench.errors import SessionError
from proton_bench.recording.native import native
from proton_bench.recording.session.recording import known_session


@pytest.fixture
def session(tmp_path: Path, fakes: FakeBackends) -> int:
    number = proton.start(tmp_path / "x")
    assert number is not None
    return number


def _record(name: str) -> None:
    with proton.scope(name, {"n": 1}):
        pass


def test_get_and_get_msgpack_hold_the_same(session: int) -> None:
    _record("a")

    tree, devices = proton.data.get(session)

    encoded = proton.data.get_msgpack(session)
    assert encoded is not None
    packed = msgspec.msgpack.decode(encoded)
    assert names(tree) == names(packed[0]) == ["a"]
    assert tree["children"][0]["metrics"] == packed[0]["children"][0]["metrics"] == {"n": 1}
    assert devices == packed[1] == {}


def test_phases_are_kept_apart(session: int) -> None:
    _record("first")
    phase = proton.data.advance_phase(session)
    _record("second")

    assert phase == 1
    assert names(proton.data.get(session, 0)[0]) == ["first"]
    assert names(proton.data.get(session, 1)[0]) == ["second"]


def test_scope_open_across_phases_stays_balanced(session: int) -> None:
    proton.enter_scope("long", metrics={"n": 1})
    proton.data.advance_phase(session)
    proton.exit_scope("long", metrics={"n": 2})

    assert proton.data.get(session, 0)[0]["children"][0]["metrics"] == {"n": 1}
    assert proton.data.get(session, 1)[0]["children"][0]["metrics"] == {"n": 2}


def test_phase_is_complete_once_its_records_came(session: int) -> None:
    correlation = native.emit_launch()
    current = proton.data.is_phase_complete(session, 0)
    proton.data.advance_phase(session)
    before = proton.data.is_phase_complete(session, 0)
    native.emit_kernel(correlation, "k", 1, 2, "CUDA", 0, 0)

    assert (current, before) == (False, False)
    assert proton.data.is_phase_complete(session, 0)


def test_cleared_phase_is_gone_and_the_current_one_starts_empty(session: int) -> None:
    _record("first")
    proton.data.advance_phase(session)
    _record("second")

    proton.data.clear(session, 0)
    proton.data.clear(session, 1)
    _record("third")

    with pytest.raises(SessionError, match="Phase 0 has no data"):
        proton.data.get(session, 0)
    assert names(proton.data.get(session, 1)[0]) == ["third"]


def test_clearing_up_to_a_phase_clears_all_before_it(session: int) -> None:
    for _ in range(3):
        _record("a")
        proton.data.advance_phase(session)

    proton.data.clear(session, 1, clear_up_to_phase=True)

    assert known_session(session).core.live_phases() == [2, 3]


@pytest.mark.parametrize("phase", [-1, 2**70, "0"])
def test_phase_that_cannot_be_is_refused(session: int, phase: Any) -> None:
    with pytest.raises(SessionError, match="phases count from 0"):
        proton.data.get(session, phase)


def test_phase_that_never_was_is_named(session: int) -> None:
    with pytest.raises(IndexError, match="Phase 5 has no data"):
        proton.data.get(session, 5)


@pytest.mark.parametrize("ask", [proton.data.get, proton.data.get_msgpack, proton.data.clear])
def test_unknown_session_is_refused(session: int, ask: Any) -> None:
    with pytest.raises(SessionError, match="not been initialized: 1000000"):
        ask(10**6)


def test_none_is_the_session_of_a_disabled_start() -> None:
    assert proton.data.get(None) is None
    assert proton.data.get_msgpack(None) is None
    assert proton.data.advance_phase(None) is None
    assert proton.data.is_phase_complete(None) is False
    proton.data.clear(None)
