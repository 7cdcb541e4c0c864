"""Scopes of the calling thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import FakeBackends, child, names

import proton_bench as proton
from proton_bench.errors import MetricError, ScopeError
from proton_bench.recording.context.scope import thread_local_scopes
from proton_bench.recording.native import native
from proton_bench.recording.session.recording import known_session

Tree = Callable[[], dict[str, Any]]


@pytest.fixture
def tree(tmp_path: Path, fakes: FakeBackends) -> Tree:
    """Start a session and return a function that reads its tree so far."""
    session = proton.start(tmp_path / "scopes")
    return lambda: proton.data.get(session)[0]


def test_all_forms_open_the_same_node(tree: Tree) -> None:
    @proton.scope("test")
    def decorated() -> int:
        return 7

    with proton.scope("test", {"a": 1}):
        pass
    result = decorated()
    proton.enter_scope("test", metrics={"a": 2})
    proton.exit_scope("test", metrics={"b": 1.5})

    assert result == 7
    assert names(tree()) == ["test"]
    assert child(tree(), "test")["metrics"] == {"a": 3, "b": 1.5}


def test_scopes_can_be_used_while_nothing_records() -> None:
    with proton.scope("x", {"a": 1}), proton.cpu_timed_scope("y"):
        identifier = proton.enter_scope("z", metrics={"a": 1})
        proton.exit_scope("z", metrics={"a": 1})

    assert identifier is None


def test_a_scope_that_is_entered_while_all_sessions_pause_has_an_id(tree: Tree) -> None:
    proton.deactivate()

    outer = proton.enter_scope("a")
    inner = proton.enter_scope("b", metrics={"a": 1})
    left = [proton.exit_scope("b"), proton.exit_scope("a", metrics={"a": 1})]
    proton.activate()

    assert isinstance(inner, int)
    assert left == [inner, outer]
    assert names(tree()) == []


def test_scopes_to_be_exited_are_listed_by_thread(tree: Tree) -> None:
    first = proton.enter_scope("a")
    with proton.scope("held"):
        second = proton.enter_scope("b")
        during = list(thread_local_scopes.scopes)
        proton.exit_scope()
    after = list(thread_local_scopes.scopes)
    proton.exit_scope()

    assert during == [(first, "a"), (second, "b")]
    assert after == [(first, "a")]


def test_a_timed_scope_is_a_scope(tree: Tree) -> None:
    with proton.cpu_timed_scope("x", {"a": 1}) as timed:
        assert isinstance(timed, proton.scope)
        assert timed.id is not None

    assert (timed.name, timed.metrics) == ("x", {"a": 1})
    assert timed.start_time > 0
    assert child(tree(), "x")["metrics"]["cpu_time (ns)"] > 0


def test_ids_are_handed_out_in_rising_order(tree: Tree) -> None:
    first = proton.enter_scope("a")
    second = proton.enter_scope("b")

    assert first is not None
    assert second is not None
    assert first < second
    assert proton.exit_scope() == second
    assert proton.exit_scope() == first


def test_wrong_name_is_refused_and_the_scope_stays_open(tree: Tree) -> None:
    proton.enter_scope("a")

    with pytest.raises(ScopeError, match="Scope name mismatch: b != a"):
        proton.exit_scope("b")

    assert proton.exit_scope("a") is not None


def test_exit_without_enter_is_refused(tree: Tree) -> None:
    with pytest.raises(ScopeError, match="without a matching enter"):
        proton.exit_scope()


@pytest.mark.parametrize("open_scope", [proton.scope, proton.cpu_timed_scope])
def test_bad_metric_leaves_no_scope_open(tree: Tree, open_scope: Any) -> None:
    with pytest.raises(MetricError), open_scope("x", {"a": "text"}):
        pass

    assert native.thread_depth() == 0


def test_bad_metric_of_enter_scope_closes_it_again(tree: Tree) -> None:
    with pytest.raises(MetricError):
        proton.enter_scope("x", metrics={"a": "text"})

    assert native.thread_depth() == 0


def test_bad_metric_of_exit_scope_still_closes_it(tree: Tree) -> None:
    proton.enter_scope("x")

    with pytest.raises(MetricError):
        proton.exit_scope(metrics={"a": "text"})

    assert native.thread_depth() == 0


def test_timed_scope_records_its_own_time_exclusively(tree: Tree) -> None:
    with proton.cpu_timed_scope("outer", {"a": 1}), proton.cpu_timed_scope("inner"):
        pass

    outer = child(tree(), "outer")["metrics"]
    inner = child(tree(), "outer", "inner")["metrics"]
    assert outer["a"] == 1
    assert outer["cpu_time (ns)"] >= inner["cpu_time (ns)"] > 0
    assert "cpu_time (ns)" not in tree()["metrics"]


@pytest.mark.parametrize("key", ["cpu_time", "cpu_time (ns)", "cpu_time (exc)"])
def test_timed_scope_refuses_a_cpu_time_of_the_user(key: str) -> None:
    with pytest.raises(ValueError, match="The metric name 'cpu_time' is reserved"):
        proton.cpu_timed_scope("x", {key: 1})


def test_timed_scope_survives_scopes_left_open_inside(tree: Tree) -> None:
    with proton.cpu_timed_scope("outer"):
        proton.enter_scope("forgotten", metrics={"a": 1})

    assert native.thread_depth() == 0
    assert "cpu_time (ns)" in child(tree(), "outer")["metrics"]
    assert child(tree(), "outer", "forgotten")["metrics"] == {"a": 1}


@pytest.mark.parametrize("open_scope", [proton.scope, proton.cpu_timed_scope])
def test_decorated_function_may_recurse_and_raise(tree: Tree, open_scope: Any) -> None:
    @open_scope("level", {"calls": 1})  # type: ignore[untyped-decorator]
    def descend(levels: int) -> None:
        if levels == 0:
            raise KeyError("bottom")
        descend(levels - 1)

    with pytest.raises(KeyError):
        descend(2)

    assert native.thread_depth() == 0
    assert child(tree(), "level", "level", "level")["metrics"]["calls"] == 1


def test_one_scope_object_may_be_entered_again(tree: Tree) -> None:
    again = proton.scope("again")

    with again, again:
        depth_inside = native.thread_depth()

    assert (depth_inside, native.thread_depth()) == (2, 0)
    assert names(child(tree(), "again")) == ["again"]


def test_one_scope_object_may_be_entered_on_two_threads(tree: Tree) -> None:
    shared = proton.scope("shared")
    entered, leave = threading.Event(), threading.Event()
    depths: list[int] = []

    def work() -> None:
        with shared:
            entered.set()
            leave.wait()
        depths.append(native.thread_depth())

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    with shared:
        leave.set()
        thread.join()
    depths.append(native.thread_depth())

    assert depths == [0, 0]


def test_decorated_coroutine_is_open_until_it_returns(tree: Tree) -> None:
    @proton.scope("task")
    async def work() -> str:
        await asyncio.sleep(0)
        with proton.scope("inside", {"a": 1}):
            return "done"

    assert asyncio.run(work()) == "done"

    assert names(child(tree(), "task")) == ["inside"]


def test_decorator_keeps_name_and_docstring() -> None:
    @proton.scope("x")
    def documented() -> None:
        """Say something."""

    assert (documented.__name__, documented.__doc__) == ("documented", "Say something.")


def walls(session: int) -> dict[tuple[str, ...], int | None]:
    """Return how long each path was open, in ns."""
    profile = known_session(session).profile()
    column = profile.columns["wall (ns)"]
    return {profile.path(row): column.get(row) for row in range(1, len(profile))}  # type: ignore[misc]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[int]:
    """Start a session that times scopes."""
    number = proton.start(tmp_path / "timed", backend="cpu")
    assert number is not None
    yield number
    proton.finalize(number)


def test_scopes_left_in_the_order_of_entering_keep_their_times(session: int) -> None:
    first, second = proton.scope("a"), proton.scope("b")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    with proton.scope("inside"):
        pass
    second.__exit__(None, None, None)
    with proton.scope("after"):
        pass

    found = walls(session)
    assert found.keys() == {("a",), ("a", "b"), ("a", "b", "inside"), ("after",)}
    assert all(found.values())


def test_interleaved_tasks_keep_the_times_of_their_scopes(session: int) -> None:
    async def work(name: str, turns: list[asyncio.Event]) -> None:
        with proton.scope(name):
            turns[0].set()
            await turns[1].wait()

    async def both() -> None:
        one, other = asyncio.Event(), asyncio.Event()
        first = asyncio.create_task(work("first", [one, other]))
        await one.wait()
        second = asyncio.create_task(work("second", [other, one]))
        await asyncio.gather(first, second)

    asyncio.run(both())

    assert set(walls(session)) == {("first",), ("second",)}
    assert all(walls(session).values())


@pytest.mark.parametrize("kind", ["scope", "cpu_timed_scope"])
def test_a_scope_is_left_on_another_thread(session: int, kind: str) -> None:
    scope = getattr(proton, kind)("a")
    scope.__enter__()
    thread = threading.Thread(target=scope.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    with proton.scope("after"):
        pass

    assert set(walls(session)) == {("a",), ("after",)}
    assert all(walls(session).values())


@pytest.mark.parametrize("kind", ["scope", "cpu_timed_scope"])
def test_a_scope_is_left_after_its_thread_has_ended(session: int, kind: str) -> None:
    scope = getattr(proton, kind)("a")
    thread = threading.Thread(target=scope.__enter__)
    thread.start()
    thread.join()
    scope.__exit__(None, None, None)

    assert set(walls(session)) == {("a",)}
    assert all(walls(session).values())


def test_a_scope_whose_object_died_ends_with_the_one_around_it(session: int) -> None:
    with proton.scope("outer"):
        proton.scope("lost").__enter__()
        with proton.scope("inside"):
            pass
    with proton.scope("after"):
        pass

    paths = {("outer",), ("outer", "lost"), ("outer", "lost", "inside"), ("after",)}
    assert set(walls(session)) == paths
    assert all(walls(session).values())


def test_one_object_is_entered_on_several_threads(session: int) -> None:
    scope = proton.scope("shared")
    entered, may_leave = threading.Event(), threading.Event()

    def work() -> None:
        with scope:
            entered.set()
            may_leave.wait()

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    with scope, proton.scope("inside"):
        pass
    may_leave.set()
    thread.join()
    with proton.scope("after"):
        pass

    assert set(walls(session)) == {("shared",), ("shared", "inside"), ("after",)}
