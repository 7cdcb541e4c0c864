"""The launch hook ``triton``: names, metrics and filters of launches, with Triton's own chains."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import FakeBackends, child, fakes, names, no_session_left

import proton_bench as proton
from proton_bench.errors import UsageError
from proton_bench.hooks import LaunchHook
from proton_bench.recording.kernels.hooks import HookManager
from proton_bench.recording.native import native

__all__ = ["fakes", "no_session_left"]

Evaluate = Callable[[], Mapping[str, Any]]


class Metadata:
    """Launch metadata in the form of Triton's ``LazyDict``."""

    def __init__(self, name: str, evaluate: Evaluate = dict) -> None:
        self.data: Mapping[str, Any] = {"name": name, "function": 1, "stream": 0}
        self._evaluate = evaluate
        self.evaluations = 0

    def get(self) -> Mapping[str, Any]:
        self.evaluations += 1
        self.data = {**self.data, **self._evaluate()}
        return self.data


def launch(name: str, evaluate: Evaluate = dict, *, time_ns: int = 10) -> Metadata:
    """Launch a kernel the way Triton and a device would."""
    metadata = Metadata(name, evaluate)
    HookManager.enter(metadata)
    correlation = native.emit_launch()
    native.emit_kernel(correlation, name, 100, 100 + time_ns, "CUDA", 0, 0)
    HookManager.exit(metadata)
    return metadata


@pytest.fixture
def tree(tmp_path: Path, fakes: FakeBackends) -> Callable[[], dict[str, Any]]:
    """Start a session with the hook and return a function that reads its tree so far."""
    session = proton.start(tmp_path / "x", hook="triton")
    return lambda: proton.data.get(session)[0]


def test_metadata_becomes_name_and_metrics_of_the_kernel(tree: Any) -> None:
    with proton.scope("layer"):
        launch("mm_", lambda: {"name": "mm_64x64", "flops32": 8, "bytes": 4.0, "extra": 3})

    kernel = child(tree(), "layer", "mm_64x64")
    metrics = kernel["metrics"]
    assert (metrics["flops32"], metrics["bytes"], metrics["extra"]) == (8.0, 4, 3)
    assert (metrics["time (ns)"], metrics["count"]) == (10, 1)
    assert kernel["children"] == []
    assert isinstance(metrics["flops32"], float)


def test_launches_without_metadata_are_named_too(tree: Any) -> None:
    launch("softmax")
    launch("softmax")

    assert child(tree(), "softmax")["metrics"]["count"] == 2


def test_what_is_not_a_number_is_left_out(tree: Any) -> None:
    launch("k", lambda: {"note": "text", "shape": None, "kind": int, "n": 1, "v": [1]})

    metrics = child(tree(), "k")["metrics"]
    assert metrics["n"] == 1
    assert not {"note", "shape", "kind", "v", "function", "stream"} & set(metrics)


def test_kernels_of_the_metadata_stand_below_their_own_node(tree: Any) -> None:
    def evaluate() -> Mapping[str, Any]:
        launch("reduce", time_ns=3)
        return {"n": 1}

    launch("mm", evaluate)

    root = tree()
    assert names(root) == ["__proton_launch_metadata", "mm"]
    reduced = child(root, "__proton_launch_metadata", "mm", "reduce")
    assert reduced["metrics"]["time (ns)"] == 3
    assert child(root, "mm")["metrics"]["time (ns)"] == 10


def test_failing_metadata_is_reported_once_and_the_hook_lives_on(
    tree: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> Mapping[str, Any]:
        raise KeyError("BLOCK_M")

    launch("mm", fail)
    launch("mm", fail)
    launch("mm", lambda: {"n": 1})

    warnings = capfd.readouterr().err.splitlines()
    assert len(warnings) == 1
    assert "kernel 'mm': launch_metadata raised KeyError: 'BLOCK_M'" in warnings[0]
    metrics = child(tree(), "mm")["metrics"]
    assert (metrics["n"], metrics["count"]) == (1, 3)


def test_failing_metadata_does_not_fail_the_launch_whatever_its_exception_says(
    tree: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    class UnspeakableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def fail() -> Mapping[str, Any]:
        raise UnspeakableError

    launch("mm", fail)

    assert "launch_metadata raised UnspeakableError" in capfd.readouterr().err
    assert child(tree(), "mm")["metrics"]["count"] == 1


def test_an_interrupt_in_metadata_reaches_the_program_and_the_hook_lives_on(tree: Any) -> None:
    def interrupt() -> Mapping[str, Any]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch("mm", interrupt)
    launch("mm", lambda: {"n": 1})

    assert native.state_depth() == 0
    assert child(tree(), "mm")["metrics"]["n"] == 1


def test_metadata_that_is_not_a_mapping_is_reported(
    tree: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    metadata = Metadata("mm")
    metadata.get = lambda: 7  # type: ignore[assignment, return-value]
    HookManager.enter(metadata)
    HookManager.exit(metadata)

    assert "kernel 'mm': launch_metadata raised TypeError" in capfd.readouterr().err


def test_metric_that_cannot_be_is_reported_and_the_others_stay(
    tree: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    launch("mm", lambda: {"n": 1, "huge": 2**2000, "bytes": float("nan"), "": 3})

    assert "metric 'huge'" in capfd.readouterr().err
    metrics = child(tree(), "mm")["metrics"]
    assert metrics["n"] == 1
    assert not {"huge", "bytes", ""} & set(metrics)


def test_suffixes_of_metrics_mean_what_they_mean_on_scopes(tree: Any) -> None:
    for number in (1, 2):
        launch("mm", lambda number=number: {"level (pty)": number, "own (exc)": number})

    metrics = child(tree(), "mm")["metrics"]
    assert (metrics["level"], metrics["own"]) == (2, 3)


def test_metric_of_another_type_is_widened(tree: Any, capfd: pytest.CaptureFixture[str]) -> None:
    launch("k", lambda: {"n": 1})
    launch("k", lambda: {"n": 1.5})

    assert "kernel 'k'" not in capfd.readouterr().err
    metrics = child(tree(), "k")["metrics"]
    assert (metrics["count"], metrics["n"]) == (2, 2.5)


def test_include_filter_does_not_evaluate_what_it_leaves_out(tree: Any) -> None:
    LaunchHook().configure(include="mm.*")

    wanted, other = launch("mm_1", lambda: {"n": 1}), launch("softmax", lambda: {"n": 1})

    assert (wanted.evaluations, other.evaluations) == (1, 0)
    assert "n" in child(tree(), "mm_1")["metrics"]
    assert "n" not in child(tree(), "softmax")["metrics"]


def test_filters_see_the_evaluated_name_too(tree: Any) -> None:
    LaunchHook().configure(exclude=".*_small")

    launch("mm", lambda: {"name": "mm_small", "n": 1})
    launch("mm", lambda: {"name": "mm_large", "n": 1})

    assert names(tree()) == ["mm", "mm_large"]


def test_filters_end_with_the_last_session_of_the_hook(tmp_path: Path, tree: Any) -> None:
    LaunchHook().configure(include="nothing")
    proton.deactivate()
    proton.activate()
    launch("k", lambda: {"n": 1})
    kept = "n" not in child(tree(), "k")["metrics"]
    proton.finalize()

    second = proton.start(tmp_path / "second", hook="triton")
    launch("k", lambda: {"n": 1})

    assert kept
    assert child(proton.data.get(second)[0], "k")["metrics"]["n"] == 1


@pytest.mark.parametrize("option", ["include", "exclude"])
def test_malformed_filter_is_refused(option: str) -> None:
    with pytest.raises(UsageError, match=rf"{option} pattern '\(' is not a regular expression"):
        LaunchHook().configure(**{option: "("})


def test_launch_that_failed_does_not_shift_later_ones(tree: Any) -> None:
    HookManager.enter(Metadata("broken", lambda: {"n": 1}))  # the exit hook is not called
    launch("fine")
    with proton.scope("inside"):
        HookManager.enter(Metadata("broken"))
    launch("fine")

    assert native.thread_depth() == 0
    assert names(tree()) == ["broken", "fine", "inside"]
    assert child(tree(), "fine")["metrics"]["count"] == 2


def test_threads_do_not_mix_their_launches(tree: Any) -> None:
    def work(number: int) -> None:
        for _ in range(20):
            launch(f"kernel{number}", lambda: {"n": number})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    root = tree()
    assert sorted(names(root)) == [f"kernel{number}" for number in range(5)]
    for number in range(5):
        metrics = child(root, f"kernel{number}")["metrics"]
        assert (metrics["count"], metrics["n"]) == (20, 20 * number)


def test_session_without_the_hook_installs_nothing(tmp_path: Path, fakes: FakeBackends) -> None:
    knobs = pytest.importorskip("triton").knobs
    before = list(knobs.runtime.launch_enter_hook.calls)

    proton.start(tmp_path / "x")

    assert knobs.runtime.launch_enter_hook.calls == before
    assert HookManager.active_hooks == []


def test_hook_stands_in_tritons_chains_beside_those_of_the_user(
    tmp_path: Path, fakes: FakeBackends
) -> None:
    runtime = pytest.importorskip("triton").knobs.runtime
    from triton.compiler import LazyDict

    heard: list[str] = []

    def users_hook(metadata: Any) -> None:
        heard.append(metadata.data["name"])

    runtime.launch_enter_hook.add(users_hook)
    try:
        session = proton.start(tmp_path / "x", hook="triton")
        metadata = LazyDict({"name": "k", "function": 1, "stream": 0})
        metadata.add(lambda factor: {"n": 2 * factor}, (3,))
        runtime.launch_enter_hook(metadata)
        runtime.launch_exit_hook(metadata)
        tree = proton.data.get(session)[0]
        proton.finalize()

        assert heard == ["k"]
        assert child(tree, "k")["metrics"]["n"] == 6
        assert runtime.launch_enter_hook.calls == [users_hook]
        assert runtime.launch_exit_hook.calls == []
        assert runtime.kernel_load_end_hook.calls == []
    finally:
        runtime.launch_enter_hook.remove(users_hook)


def test_unknown_hook_is_named_with_the_choices(tmp_path: Path, fakes: FakeBackends) -> None:
    with pytest.raises(
        UsageError, match=re.escape("Unsupported hook: 'cuda'; choose from: triton")
    ):
        proton.start(tmp_path / "x", hook="cuda")
