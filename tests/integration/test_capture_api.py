"""Upstream's API tests on our package: the same calls, down to the files they write."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import FakeBackends, child, fakes, names, no_session_left, read_tree

import proton_bench as proton
from proton_bench.hooks import Hook, HookManager, LaunchHook
from proton_bench.recording.context.metric import normalize_metrics

__all__ = ["fakes", "no_session_left"]


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Default names end up in the test's own folder."""
    monkeypatch.chdir(tmp_path)


class LowHook(Hook):
    """A hook below the launch hook."""

    def init_handle(
        self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str
    ) -> None: ...
    def enter(self, metadata: Any) -> None: ...
    def exit(self, metadata: Any) -> None: ...
    def activate(self) -> None: ...
    def deactivate(self) -> None: ...


def _start(name: str, **options: Any) -> int:
    session = proton.start(name, **options)
    assert session is not None
    return session


def test_single_session_writes_its_file_and_ids_increase() -> None:
    first = _start("one", backend="cpu")
    proton.activate()
    proton.deactivate()
    proton.finalize()
    second = _start("two", backend="cpu")
    proton.activate(second)
    proton.deactivate(second)
    proton.finalize(second)
    third = _start("test", backend="cpu")
    proton.activate(third)
    proton.deactivate(third)
    proton.finalize()

    assert (second, third) == (first + 1, first + 2)
    assert all(Path(f"{name}.hatchet").exists() for name in ("one", "two", "test"))


def test_several_sessions_write_their_files() -> None:
    _start("one", backend="cpu")
    _start("two", backend="cpu")
    proton.activate()
    proton.deactivate()
    proton.finalize()
    third, fourth = _start("three", backend="cpu"), _start("four", backend="cpu")
    proton.deactivate(third)
    proton.deactivate(fourth)
    proton.finalize()

    written = sorted(path.name for path in Path().iterdir())
    assert written == ["four.hatchet", "one.hatchet", "three.hatchet", "two.hatchet"]


@pytest.mark.parametrize("pause", [False, True])
def test_sessions_share_a_mode_or_exclude_each_other(
    fakes: FakeBackends,
    pause: bool,
) -> None:
    first = _start("one", mode="fast")
    _start("two", mode="fast")
    if pause:
        proton.deactivate(first)

    with pytest.raises(
        ValueError,
        match="Cannot add a session with the same profiler but a different mode than existing",
    ):
        _start("three")

    proton.finalize()
    assert Path("two.hatchet").exists()
    assert not Path("three.hatchet").exists()
    assert _start("three") is not None


def test_profile_decorator() -> None:
    @proton.profile(name="decorated", backend="cpu")
    def with_name(a: int, b: int) -> int:
        return a + b

    @proton.profile
    def without(a: int, b: int) -> int:
        return a + b

    results = [with_name(1, 2), without(3, 4)]
    proton.finalize()

    assert results == [3, 7]
    assert Path("decorated.hatchet").exists()
    assert Path(f"{proton.DEFAULT_PROFILE_NAME}.hatchet").exists()


def test_scope_in_every_form() -> None:
    with proton.scope("before any session"):
        pass
    _start("scopes", backend="cpu")
    with proton.scope("test"):
        pass

    @proton.scope("test")
    def decorated() -> None: ...

    decorated()
    proton.enter_scope("test")
    proton.exit_scope()
    proton.enter_scope("test0")
    proton.exit_scope("test0")
    proton.finalize()

    assert names(read_tree("scopes.hatchet")) == ["test", "test0"]


def test_launch_hook_follows_its_session() -> None:
    session = _start("hooks", backend="cpu", hook="triton")
    proton.activate(session)
    proton.activate(session)
    active = list(HookManager.active_hooks)
    flags_active = list(HookManager.session_hooks[session].values())
    proton.deactivate(session)
    flags_paused = list(HookManager.session_hooks[session].values())
    paused = list(HookManager.active_hooks)
    proton.deactivate(session)
    proton.finalize(None)

    assert len(active) == 1
    assert (flags_active, flags_paused, paused) == ([True], [False], [])
    assert session not in HookManager.session_hooks
    assert Path("hooks.hatchet").exists()


def test_hook_manager_keeps_one_launch_hook_and_orders_by_priority() -> None:
    HookManager.register(LaunchHook(), 0)
    HookManager.register(LaunchHook(), 0)
    single = list(HookManager.active_hooks)
    HookManager.register(LaunchHook(), 1)
    HookManager.unregister(0)
    still = list(HookManager.active_hooks)
    HookManager.unregister(1)
    none = list(HookManager.active_hooks)
    low = LowHook()
    HookManager.register(low, 2)
    HookManager.register(LaunchHook(), 2)
    both = list(HookManager.active_hooks)
    in_session = dict(HookManager.session_hooks[2])
    HookManager.unregister()

    assert single == still == [LaunchHook()]
    assert none == []
    assert both == [LaunchHook(), low]
    assert in_session == {low: True, LaunchHook(): True}
    assert HookManager.active_hooks == []


def test_scope_metrics_are_summed_and_ignored_while_paused(fakes: FakeBackends) -> None:
    session = _start("metrics")
    with proton.scope("test0", {"a": 1.0}):
        pass

    @proton.scope("test1", {"a": 1.0})
    def decorated() -> None: ...

    decorated()
    proton.deactivate(session)
    proton.enter_scope("test2", metrics={"a": 1.0})
    proton.exit_scope()
    proton.activate(session)
    for _ in range(2):
        proton.enter_scope("test3", metrics={"a": 1.0})
        proton.exit_scope()
    proton.enter_scope("test4")
    proton.exit_scope(metrics={"b": 1.0})
    proton.finalize()

    tree = read_tree("metrics.hatchet")
    assert names(tree) == ["test0", "test1", "test3", "test4"]
    assert child(tree, "test3")["metrics"]["a"] == 2.0
    assert child(tree, "test4")["metrics"]["b"] == 1.0
    assert set(tree["metrics"]) == {"a", "b"}


def test_metric_of_another_type_is_widened_where_they_meet() -> None:
    _start("metrics", backend="cpu")
    for value in (1.5, 1):
        with proton.scope("test0", {"a": value}):
            pass
    with proton.scope("test1", {"a": 1}):
        pass

    proton.finalize()
    tree = read_tree("metrics.hatchet")
    assert child(tree, "test0")["metrics"]["a"] == 2.5
    assert child(tree, "test1")["metrics"]["a"] == 1


def test_properties_are_overwritten_not_summed() -> None:
    _start("properties", backend="cpu")
    with proton.scope("test0", {"a (pty)": 1}):
        pass

    @proton.scope("test1", {"b (pty)": 1})
    def decorated() -> None: ...

    decorated()
    decorated()
    for value in (5.0, 1.0):
        proton.enter_scope("test2", metrics={"c (pty)": value})
        proton.exit_scope()
    proton.finalize()

    tree = read_tree("properties.hatchet")
    assert child(tree, "test0")["metrics"]["a"] == 1
    assert child(tree, "test1")["metrics"]["b"] == 1
    assert child(tree, "test2")["metrics"]["c"] == 1.0
    assert tree["metrics"] == {}


def test_exclusive_metrics_stay_on_their_scope(fakes: FakeBackends) -> None:
    _start("exclusive")
    with proton.scope("test0", metrics={"a (exc)": 1}):  # noqa: SIM117 - the nesting is tested
        with proton.scope("test1", metrics={"b (exc)": 1}):
            pass
    proton.finalize()

    tree = read_tree("exclusive.hatchet")
    assert tree["metrics"] == {}
    assert child(tree, "test0")["metrics"] == {"a": 1}
    assert child(tree, "test0", "test1")["metrics"] == {"b": 1}


def test_vector_metrics_are_summed_by_element() -> None:
    _start("vectors", backend="cpu")
    for vector in ([1, 2, 3], (10, 20, 30)):
        with proton.scope("test0", {"v": vector, "w": [0.5, 1]}):
            pass
    with (
        pytest.raises(ValueError, match="Vector metric size mismatch"),
        proton.scope("test0", {"v": [1, 2]}),
    ):
        pass
    proton.finalize()

    metrics = child(read_tree("vectors.hatchet"), "test0")["metrics"]
    assert metrics["v"] == [11, 22, 33]
    assert metrics["w"] == [1.0, 2.0]


def test_state_stands_below_the_scopes(fakes: FakeBackends) -> None:
    _start("state")
    proton.enter_scope("test0")
    proton.enter_state("state")
    proton.enter_scope("test1", metrics={"a": 1.0})
    proton.exit_scope()
    proton.exit_state()
    proton.exit_scope()
    proton.finalize()

    tree = read_tree("state.hatchet")
    assert names(tree) == ["test0"]
    assert names(child(tree, "test0")) == ["test1"]
    assert child(tree, "test0", "test1", "state")["metrics"] == {"a": 1.0}


def test_context_depth() -> None:
    session = _start("depth", backend="cpu")
    depths = [proton.context.depth(session)]
    for name in ("test0", "test1"):
        proton.enter_scope(name)
        depths.append(proton.context.depth(session))
    for _ in range(2):
        proton.exit_scope()
        depths.append(proton.context.depth(session))

    assert depths == [0, 1, 2, 1, 0]


@pytest.mark.parametrize("function", [proton.activate, proton.deactivate])
def test_unknown_session_raises_an_index_error(function: Any) -> None:
    session = _start("throw", backend="cpu")

    with pytest.raises(IndexError, match=f"Session has not been initialized: {session + 1}"):
        function(session + 1)


@pytest.mark.parametrize("disable", [True, False])
def test_disable_knob_of_triton(disable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    knobs = pytest.importorskip("triton").knobs
    monkeypatch.setattr(knobs.proton, "disable", disable)

    proton.start("disabled", backend="cpu")
    proton.enter_scope("test0")
    proton.exit_scope()
    proton.finalize()

    assert Path("disabled.hatchet").exists() is not disable


def test_finalize_within_a_scope_starts_the_next_session_at_depth_zero(
    fakes: FakeBackends,
) -> None:
    _start("first")
    proton.enter_scope("open", metrics={"a": 1})
    proton.finalize()
    second = _start("second")
    depth = proton.context.depth(second)
    with proton.scope("inside", {"a": 1}):
        pass
    proton.exit_scope()
    proton.finalize()

    assert depth == 0
    assert names(read_tree("first.hatchet")) == ["open"]
    assert names(read_tree("second.hatchet")) == ["inside"]


def test_data_api() -> None:
    session = _start("data", backend="cpu")
    phases = []
    for phase in range(3):
        with proton.scope(f"test{phase}", {"a": 1.0}):
            pass
        phases.append(proton.data.advance_phase(session))
    proton.deactivate(session, flushing=True)
    complete = [proton.data.is_phase_complete(session, phase) for phase in range(4)]
    proton.data.clear(session, 1, clear_up_to_phase=True)
    left = names(proton.data.get(session, 2)[0])
    proton.finalize()

    assert phases == [1, 2, 3]
    assert complete == [True, True, True, False]
    assert left == ["test2"]
    assert sorted(path.name for path in Path().iterdir()) == [
        "data.part_2.hatchet",
        "data.part_3.hatchet",
    ]


def test_roofline_metrics_have_one_type_each() -> None:
    torch = pytest.importorskip("torch")
    flops = ["flops", "flops8", "flops16", "flops32", "flops64"]
    scalars = [3, 3.0, torch.tensor(3), torch.tensor(3.0)]

    normalized = [
        normalize_metrics({name: value})[0]
        for name, value in itertools.product([*flops, "bytes"], scalars)
    ]

    assert {name: type(value) for name, _, value in normalized} == {
        **dict.fromkeys(flops, float),
        "bytes": int,
    }
