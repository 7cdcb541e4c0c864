"""The life of a session: collectors and hooks go on and off with it, also after failures."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import FakeBackends, child, names, read_tree

import proton_bench as proton
from proton_bench.errors import OutputError, SessionError, UsageError
from proton_bench.flags import flags
from proton_bench.formats.registry import read_profile
from proton_bench.model.metrics.counter_columns import NOT_JOINED
from proton_bench.recording.counters import store
from proton_bench.recording.kernels.hooks import Hook, HookManager
from proton_bench.recording.native import native
from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.recording import (
    Session,
    find_session,
    live_sessions,
    open_session,
)


class SilentHook(Hook):
    """Does nothing, or fails when it is switched on."""

    def __init__(self, *, fails: bool = False) -> None:
        self._fails = fails

    def init_handle(self, *arguments: Any) -> None: ...
    def enter(self, metadata: Any) -> None: ...
    def exit(self, metadata: Any) -> None: ...
    def deactivate(self) -> None: ...
    def activate(self) -> None:
        if self._fails:
            raise RuntimeError("hook fails")


def _open(path: Path, **options: Any) -> Session:
    return open_session(SessionOptions(name=path, **options))


def _next_id(tmp_path: Path) -> int:
    session = _open(tmp_path / "next")
    session.finalize(formats=())
    return session.id


def test_session_records_between_start_and_finalize(tmp_path: Path, fakes: FakeBackends) -> None:
    session = _open(tmp_path / "x", backend="gpu")
    with proton.scope("a", {"n": 1}):
        pass
    paths = session.finalize()

    assert [path.name for path in paths] == ["x.proton", "x.hatchet"]
    assert names(read_tree(paths[1])) == ["a"]
    assert fakes.calls == ["gpu.open()", "gpu.start", "gpu.flush", "gpu.flush", "gpu.stop"]
    assert not session.is_live
    assert session.finalize() == []


def test_deactivated_session_keeps_what_it_has_and_hears_nothing(
    tmp_path: Path, fakes: FakeBackends
) -> None:
    session = _open(tmp_path / "x")
    with proton.scope("before", {"n": 1}):
        pass
    session.deactivate()
    session.deactivate()
    with proton.scope("meanwhile", {"n": 1}):
        pass
    session.activate()
    session.activate()
    with proton.scope("after", {"n": 1}):
        pass
    (path,) = session.finalize(("hatchet",))

    assert names(read_tree(path)) == ["before", "after"]


def test_deactivate_flushes_only_when_asked_while_others_record(
    tmp_path: Path, fakes: FakeBackends
) -> None:
    one, two = _open(tmp_path / "one"), _open(tmp_path / "two")

    one.deactivate()
    without = fakes.calls.count("fake.flush")
    two.deactivate(flushing=True)

    assert without == 0
    assert fakes.calls[-3:] == ["fake.flush", "fake.flush", "fake.stop"]


def test_live_session_of_the_same_path_is_activated_again(
    tmp_path: Path, fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session = _open(tmp_path / "x")
    session.deactivate()

    again = open_session(SessionOptions(name="x", context="no such context"))

    assert again is session
    assert session.is_active
    assert _open(tmp_path / "y").id == session.id + 1


def test_sessions_share_a_collector_and_see_their_own_part(
    tmp_path: Path, fakes: FakeBackends
) -> None:
    one = _open(tmp_path / "one")
    with proton.scope("first", {"n": 1}):
        two = _open(tmp_path / "two")
        with proton.scope("second", {"n": 2}):
            pass
    one.deactivate()
    with proton.scope("third", {"n": 3}):
        pass

    first = read_tree(one.finalize(("hatchet",))[0])
    second = read_tree(two.finalize(("hatchet",))[0])

    assert names(first) == ["first"]
    assert child(first, "first", "second")["metrics"] == {"n": 2}
    assert names(second) == ["second", "third"]
    assert fakes.calls.count("fake.start") == fakes.calls.count("fake.stop") == 1


@pytest.mark.parametrize("call", ["open", "start"])
def test_failing_collector_leaves_nothing_on(
    tmp_path: Path, fakes: FakeBackends, call: str
) -> None:
    expected = _next_id(tmp_path) + 1
    fakes.fail_on["bad"] = call

    with pytest.raises(RuntimeError, match="bad fails"):
        _open(tmp_path / "x", backend="good+bad", hook=SilentHook())

    _assert_nothing_on(tmp_path)
    assert fakes.calls.count("good.start") == fakes.calls.count("good.stop")
    assert _next_id(tmp_path) == expected


def test_failing_hook_leaves_nothing_on(tmp_path: Path, fakes: FakeBackends) -> None:
    expected = _next_id(tmp_path) + 1

    with pytest.raises(RuntimeError, match="hook fails"):
        _open(tmp_path / "x", hook=SilentHook(fails=True))

    _assert_nothing_on(tmp_path)
    assert fakes.calls[-1] == "fake.stop"
    assert _next_id(tmp_path) == expected


def test_unwritable_output_leaves_nothing_on(tmp_path: Path, fakes: FakeBackends) -> None:
    expected = _next_id(tmp_path) + 1
    fakes.calls.clear()

    with pytest.raises(OutputError, match="cannot write profile"):
        _open(tmp_path / "missing" / "x", hook=SilentHook())

    _assert_nothing_on(tmp_path)
    assert fakes.calls == []
    assert _next_id(tmp_path) == expected


def test_conflicting_mode_leaves_nothing_on_but_the_first_session(
    tmp_path: Path, fakes: FakeBackends
) -> None:
    first = _open(tmp_path / "first", mode="fast")
    first.deactivate()

    with pytest.raises(UsageError, match=r"different mode than existing sessions") as refused:
        _open(tmp_path / "second", mode="slow:interval=5", hook=SilentHook())

    assert str(tmp_path / "first") in str(refused.value)
    assert str(tmp_path / "second") in str(refused.value)
    assert live_sessions() == [first]
    assert HookManager.active_hooks == []
    assert _open(tmp_path / "third", mode="fast").id == first.id + 1


def _assert_nothing_on(tmp_path: Path) -> None:
    assert not flags.profiling_on
    assert HookManager.active_hooks == []
    assert not HookManager.session_hooks
    assert native.active_session_count() == 0
    assert live_sessions() == []
    assert list(tmp_path.iterdir()) == []


def test_failing_activate_leaves_the_session_paused(tmp_path: Path, fakes: FakeBackends) -> None:
    fakes.fail_on["bad"] = ""
    session = _open(tmp_path / "x", backend="good+bad")
    session.deactivate()
    for shared in session._lease._collectors:
        if shared.backend.name == "bad":
            shared.collector.fail_on = "start"  # type: ignore[attr-defined]

    with pytest.raises(RuntimeError, match="bad fails on start"):
        session.activate()

    assert not session.is_active
    assert fakes.calls.count("good.start") == fakes.calls.count("good.stop") == 2


def test_counters_that_cannot_be_joined_are_left_out(
    tmp_path: Path, fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise ArithmeticError("no inverse")

    session = _open(tmp_path / "x")
    monkeypatch.setattr(store, "_store", fail)
    monkeypatch.setattr(type(session.core), "take_bursts", lambda core, phase: [{}])
    with proton.scope("a", {"n": 1}):
        pass

    (path,) = session.finalize(formats=("proton",))

    profile = read_profile(path)
    assert profile.name(1) == "a"
    assert profile.dropped == {NOT_JOINED: 1}
    assert [remark for remark in session.remarks if "no inverse" in remark]


def test_collector_that_fails_to_flush_does_not_keep_the_session_alive(
    tmp_path: Path, fakes: FakeBackends
) -> None:
    fakes.fail_on["bad"] = "flush"
    session = _open(tmp_path / "x", backend="bad")

    with pytest.raises(RuntimeError, match="bad fails on flush"):
        session.finalize()

    assert not session.is_live
    assert "bad.stop" in fakes.calls
    assert not flags.profiling_on


def test_finalized_session_answers_with_a_clear_error(tmp_path: Path, fakes: FakeBackends) -> None:
    session = _open(tmp_path / "x")
    session.finalize(formats=())

    for ask in (session.activate, session.deactivate, session.profile, session.counts):
        with pytest.raises(SessionError, match=f"not been initialized: {session.id}"):
            ask()
    assert find_session(session.id) is None
    assert not session.is_active


def test_unknown_format_leaves_the_session_as_it_is(tmp_path: Path, fakes: FakeBackends) -> None:
    session = _open(tmp_path / "x")

    with pytest.raises(UsageError, match="Unknown output format: csv"):
        session.finalize(["csv"])

    assert session.is_active


def test_profile_shows_what_a_file_would_hold(tmp_path: Path, fakes: FakeBackends) -> None:
    session = _open(tmp_path / "x")
    with proton.scope("a", {"flops": 2}):
        pass
    proton.data.advance_phase(session.id)
    with proton.scope("b", {"flops": 3}):
        pass

    current, first = session.profile(), session.profile(0)

    assert current.name(1) == "b"
    assert first.name(1) == "a"
    assert first.inclusive("flops")[0] == 2
    assert current.provenance["backend"] == "fake"
    assert session.is_active


def test_counts_say_what_arrived(tmp_path: Path, fakes: FakeBackends) -> None:
    session = _open(tmp_path / "x")

    correlation = native.emit_launch()
    native.emit_kernel(correlation, "k", 10, 30, "CUDA", 0, 0)
    native.add_dropped("buffer full", 2)
    native.drain()

    counts = session.counts()
    assert (counts["launches"], counts["records"]) == (1, 1)
    assert counts["dropped"] == 2


def test_plugins_learn_of_start_and_end(
    tmp_path: Path, fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[str, int, Sequence[Path]]] = []

    class Listener:
        def call(self, hook: str, session: Session, paths: Sequence[Path] = ()) -> None:
            heard.append((hook, session.id, paths))

    monkeypatch.setattr("proton_bench.recording.session.recording._plugins", lambda: Listener)

    session = _open(tmp_path / "x")
    paths = session.finalize(("hatchet",))

    assert heard == [
        ("proton_session_started", session.id, ()),
        ("proton_session_finished", session.id, paths),
    ]


def test_threads_may_start_and_end_sessions_at_once(tmp_path: Path, fakes: FakeBackends) -> None:
    barrier = threading.Barrier(4)
    trees: dict[int, list[str]] = {}

    def run(number: int) -> None:
        barrier.wait()
        for round_number in range(5):
            session = _open(tmp_path / f"{number}-{round_number}")
            with proton.scope(f"thread{number}", {"n": 1}):
                pass
            trees.setdefault(number, []).extend(names(read_tree(session.finalize(("hatchet",))[0])))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(trees[number].count(f"thread{number}") == 5 for number in range(4))
    assert fakes.calls.count("fake.start") == fakes.calls.count("fake.stop")
    assert not flags.profiling_on


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_forked_child_records_nothing_until_it_starts_a_session(
    tmp_path: Path, fakes: FakeBackends
) -> None:
    parents = _open(tmp_path / "parent", hook=SilentHook())

    child_id = os.fork()
    if child_id == 0:
        os._exit(_child_of_a_session(tmp_path))
    _, status = os.waitpid(child_id, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert parents.is_active
    assert names(read_tree(tmp_path / "child.hatchet")) == ["child"]
    assert names(read_tree(parents.finalize(("hatchet",))[0])) == []


def _child_of_a_session(tmp_path: Path) -> int:
    try:
        if live_sessions() or flags.profiling_on or HookManager.active_hooks:
            return 1
        with proton.scope("unseen", {"n": 1}):
            pass
        session = _open(tmp_path / "child")
        with proton.scope("child", {"n": 1}):
            pass
        session.finalize(("hatchet",))
    except BaseException:  # noqa: BLE001 - a child reports by its exit code
        return 2
    return 0
