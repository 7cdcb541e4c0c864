"""Sessions share collectors: when they are started and stopped."""

from __future__ import annotations

import pytest
from capture_fixtures import FakeBackends

from proton_bench.errors import UsageError
from proton_bench.plugin import Mode
from proton_bench.recording.session.collectors import (
    CollectorLease,
    forget_after_fork,
    lease_collectors,
)

FAST = Mode("fast", {}, "fast")


@pytest.fixture
def backends() -> FakeBackends:
    return FakeBackends()


def _lease(backends: FakeBackends, owner: str = "one", mode: Mode | None = None) -> CollectorLease:
    return lease_collectors(owner, [backends.make("gpu")], [mode or Mode()])


def test_collector_runs_from_the_first_user_to_the_last(backends: FakeBackends) -> None:
    one, two = _lease(backends), _lease(backends, "two")

    one.start()
    two.start()
    one.stop()
    one.stop()
    while_two_uses_it = list(backends.calls)
    two.stop()
    one.release()
    two.release()

    assert while_two_uses_it == ["gpu.open()", "gpu.start"]
    assert backends.calls == ["gpu.open()", "gpu.start", "gpu.flush", "gpu.stop"]


def test_collector_is_made_anew_after_its_last_holder(backends: FakeBackends) -> None:
    _lease(backends).release()
    _lease(backends, mode=FAST).release()

    assert backends.calls == ["gpu.open()", "gpu.open(fast)"]


def test_stopped_collector_starts_again(backends: FakeBackends) -> None:
    lease = _lease(backends)

    lease.start()
    lease.stop()
    lease.start()
    lease.release()

    assert backends.calls.count("gpu.start") == 2
    assert backends.calls.count("gpu.stop") == 2


def test_another_mode_is_refused_naming_both_sessions(backends: FakeBackends) -> None:
    first = _lease(backends, "session 'a'", FAST)

    with pytest.raises(UsageError) as refused:
        _lease(backends, "session 'b'")

    first.release()
    text = str(refused.value)
    assert "different mode than existing sessions" in text
    assert "session 'a'" in text
    assert "session 'b'" in text
    assert "'fast'" in text


def test_refused_lease_holds_nothing_of_its_other_backends(backends: FakeBackends) -> None:
    first = lease_collectors("a", [backends.make("gpu")], [FAST])

    with pytest.raises(UsageError):
        lease_collectors("b", [backends.make("cpu"), backends.make("gpu")], [Mode(), Mode()])
    lease_collectors("c", [backends.make("cpu")], [FAST]).release()

    first.release()
    assert backends.calls[-1] == "cpu.open(fast)"


def test_failing_start_stops_what_was_started(backends: FakeBackends) -> None:
    backends.fail_on["gpu"] = "start"
    lease = lease_collectors("a", [backends.make("cpu"), backends.make("gpu")], [Mode(), Mode()])

    with pytest.raises(RuntimeError, match="gpu fails on start"):
        lease.start()

    lease.release()
    assert backends.calls[2:] == ["cpu.start", "cpu.flush", "cpu.stop"]


def test_failing_flush_does_not_keep_a_collector_running(backends: FakeBackends) -> None:
    backends.fail_on["gpu"] = "flush"
    lease = lease_collectors("a", [backends.make("gpu"), backends.make("cpu")], [Mode(), Mode()])
    lease.start()

    with pytest.raises(RuntimeError, match="gpu fails on flush"):
        lease.release()

    assert {"gpu.stop", "cpu.stop"} <= set(backends.calls)
    _lease(backends).release()
    assert backends.calls.count("gpu.open()") == 2


def test_only_running_collectors_are_flushed(backends: FakeBackends) -> None:
    lease = _lease(backends)

    lease.flush()
    lease.start()
    lease.flush()
    lease.release()

    assert backends.calls == ["gpu.open()", "gpu.start", "gpu.flush", "gpu.flush", "gpu.stop"]


def test_forked_child_goes_on_with_a_running_collector(backends: FakeBackends) -> None:
    parents = _lease(backends)
    parents.start()

    forget_after_fork()
    childs = _lease(backends, "child")
    childs.start()

    assert backends.calls == ["gpu.open()", "gpu.start"]
    childs.release()
    assert backends.calls[-1] == "gpu.stop"


def test_forked_child_may_choose_another_mode(backends: FakeBackends) -> None:
    _lease(backends).start()

    forget_after_fork()
    childs = _lease(backends, "child", FAST)
    childs.release()

    assert backends.calls == ["gpu.open()", "gpu.start", "gpu.flush", "gpu.stop", "gpu.open(fast)"]
