"""The life of a session: collectors and hooks go on and off with it, also after failures."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import FakeBackends, child, names, read_tree

import proton_bench as proton
from proton_bench.errors import MetricError, OutputError, SessionError, UsageError
from proton_bench.flags import flags
from proton_bench.formats.registry import read_profile
from proton_bench.model.metrics.counter_columns import NOT_JOINED
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.recording.counters import store
from proton_bench.recording.kernels.hooks import Hook, HookManager
from proton_bench.recording.launcher.runner import Progress
from proton_bench.recording.native import native
from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.recording import (
    Session,
    find_session,
    known_session,
    live_sessions,
    open_session,
)
from proton_bench.scope import thread_local_scopes


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


def test_long_work_is_announced_again_and_again() -> None:
    lines: list[str] = []
    enough = threading.Event()

    def write(line: str) -> None:
        lines.append(line)
        if len(lines) == 2:
            enough.set()

    with Progress("writing x", interval_s=0.001, write=write):
        assert enough.wait(60)

    assert lines[0].startswith("proton: writing x... ")


def test_short_work_says_nothing() -> None:
    lines: list[str] = []

    with Progress("writing x", interval_s=3600, write=lines.append):
        pass

    assert lines == []


def test_an_armed_progress_waits_for_the_work_to_begin() -> None:
    lines: list[str] = []
    progress = Progress("writing x", interval_s=3600, write=lines.append)

    progress.arm()
    threads = [thread.name for thread in threading.enumerate()]
    with progress:
        pass

    assert "proton-progress" in threads
    assert lines == []


@pytest.fixture
def session(tmp_path: Path) -> Iterator[int]:
    """Start a session."""
    number = proton.start(tmp_path / "values", backend="cpu")
    assert number is not None
    yield number
    proton.finalize(number)


def give(*values: object, name: str = "m", scope: str = "s") -> None:
    """Add values one after the other."""
    for value in values:
        with proton.scope(scope, {name: value}):
            pass


def read(session: int, name: str = "m", scope: str = "s") -> tuple[Any, Any]:
    """Return the value of a scope, in the tree of upstream's form and in the profile."""
    nodes = proton.data.get(session)[0]["children"]
    node = next(each for each in nodes if each["frame"]["name"] == scope)
    profile = known_session(session).profile()
    row = next(row for row in range(len(profile)) if profile.path(row) == (scope,))
    return node["metrics"].get(name), profile.columns[name].get(row)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1, 1.5], 2.5),
        ([1.5, 1], 2.5),
        ([2**63 - 1, 1], 2.0**63),
        ([-(2**63), -1], -(2.0**63)),
        ([2**63], 2.0**63),
        ([2**64, 2**70], 2.0**64 + 2.0**70),
        ([True, 2], 3),
    ],
)
def test_numbers_that_meet_are_of_the_wider_type(
    session: int, values: list[object], shown: object
) -> None:
    give(*values)

    assert read(session) == (shown, shown)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([[1, 2], [0.5, 0.5]], [1.5, 2.5]),
        ([[2**63 - 1, 1], [1, 1]], [2.0**63, 2.0]),
        ([[2**63, 1]], [2.0**63, 1.0]),
    ],
)
def test_lists_that_meet_are_of_the_wider_type(
    session: int, values: list[object], shown: list[float]
) -> None:
    give(*values)

    assert read(session) == (shown, tuple(shown))


@pytest.mark.parametrize("suffix", ["exc", "pty"])
def test_the_newest_text_is_kept(session: int, suffix: str) -> None:
    give("fp32", "fp16", name=f"dtype ({suffix})")

    assert read(session, "dtype") == ("fp16", "fp16")
    column = known_session(session).profile().columns["dtype"]
    assert column.spec.aggregation is Aggregation(suffix)


def test_a_metric_that_is_a_text_somewhere_is_one_everywhere(session: int) -> None:
    give(1, scope="number", name="m (exc)")
    give([1.5, 2], scope="list", name="m (exc)")
    give("text", scope="text", name="m (exc)")

    assert read(session, scope="number") == ("1", "1")
    assert read(session, scope="list") == ("[1.5,2]", "[1.5,2]")
    assert read(session, scope="text") == ("text", "text")


def test_a_number_and_a_list_do_not_meet(session: int) -> None:
    give([1, 2])

    with pytest.raises(MetricError, match="type mismatch"):
        give(1)
    assert list(thread_local_scopes.scopes) == []
    assert read(session)[0] == [1, 2]


def test_lists_are_added_by_element_and_do_not_meet_those_of_other_lengths(session: int) -> None:
    give([1, 2, 3], (10, 20, 30))

    with pytest.raises(ValueError, match="Vector metric size mismatch"):
        give([1, 2])
    assert read(session)[0] == [11, 22, 33]


def test_a_name_with_two_aggregations_has_a_column_for_each(session: int) -> None:
    give(1)
    give(2, name="m (exc)")
    give(4)

    assert read(session)[0] == 5
    assert read(session, "m [exc]")[0] == 2
    columns = known_session(session).profile().columns
    assert columns["m"].spec.aggregation is Aggregation.INCLUSIVE
    assert columns["m [exc]"].spec.aggregation is Aggregation.EXCLUSIVE


def test_a_metric_called_as_one_of_ours_leaves_ours_alone(session: int) -> None:
    give(7, name="wall (ns)")

    columns = known_session(session).profile().columns
    assert columns["wall (ns)"].spec.aggregation is Aggregation.EXCLUSIVE
    assert read(session, "wall [inc] (ns)") == (7, 7)
    assert read(session, "wall (ns)")[1] != 7


def test_numbers_that_are_none_are_kept_in_our_file_and_null_in_upstreams(session: int) -> None:
    give(math.inf)

    assert read(session) == (None, math.inf)


def test_sums_over_the_tree_do_not_wrap(session: int) -> None:
    with proton.scope("outer"):
        give(2**63 - 1, scope="a")
        give(2**63 - 1, scope="b")

    profile = known_session(session).profile()
    assert profile.inclusive("m")[0] == 2.0**64
