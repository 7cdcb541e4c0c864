"""`bench`, with a double of torch and kernels that a test lets run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from capture_fixtures import FakeBackends
from fakes.torch_cuda import TorchOnGpu
from published import published

import proton_bench
from proton_bench import _native as native
from proton_bench.errors import OutputError, UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.plugin import ModeSpec
from proton_bench.recording.session.recording import live_sessions
from proton_bench.rounds.bench import BenchResult, bench
from proton_bench.support.text import encode_document


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch, fakes: FakeBackends) -> TorchOnGpu:
    del fakes  # nothing else records
    double = TorchOnGpu()
    monkeypatch.setitem(sys.modules, "torch", double)
    return double


def launches(torch: TorchOnGpu, **kernels_ns: int) -> Callable[[], None]:
    """Return a function that allocates memory and runs these kernels, one after the other."""

    def work() -> None:
        torch.allocated += 1
        start_ns = time.monotonic_ns()
        for name, time_ns in kernels_ns.items():
            native.emit_kernel(
                native.emit_launch(), name, start_ns, start_ns + time_ns, "CUDA", 0, 0
            )
            start_ns += time_ns + 100

    return work


def rows(result: BenchResult) -> set[tuple[str, ...]]:
    return {result.profile.path(row) for row in range(1, len(result.profile))}


def test_a_call_is_as_long_as_its_kernels_together(torch: TorchOnGpu) -> None:
    result = bench(launches(torch, short=1_000, long=5_000), name="both", rounds=7)

    assert (result.clock, result.cache, result.graph) == ("kernels", "cold", False)
    assert result.median_ns == 6_000.0
    assert result.interval == (6_000.0, 6_000.0)
    assert float(result) == 0.006
    assert result.times_ns == (6_000.0,) * 7
    assert list(result.kernels) == ["long", "short"]
    assert {name: (each.median_ns, each.count) for name, each in result.kernels.items()} == {
        "long": (5_000.0, 1.0),
        "short": (1_000.0, 1.0),
    }
    assert result.span is not None
    assert result.span.median_ns == 6_100.0
    assert not live_sessions()


def test_the_profile_has_rounds_for_the_gate_and_their_kernels(
    torch: TorchOnGpu, tmp_path: Path
) -> None:
    result = bench(launches(torch, k=1_000), name="b", rounds=5, output=tmp_path / "out")

    assert {("b", "rounds"), ("b", "rounds", "k"), ("b", "warm-up", "k")} <= rows(result)
    saved = read_profile(tmp_path / "out.proton")
    (row,) = [row for row in range(len(saved)) if saved.path(row) == ("b", "rounds")]
    assert saved.columns["gpu_round (ns)"].values[row] == 1_000.0
    assert saved.columns["rounds"].values[row] == 5


@pytest.mark.parametrize(("cache", "flushes"), [("cold", True), ("warm", False)])
def test_only_a_cold_cache_is_flushed(torch: TorchOnGpu, cache: str, flushes: bool) -> None:
    result = bench(launches(torch, k=1_000), cache=cache, rounds=3)

    assert result.cache == cache
    assert ("flush" in torch.log) is flushes


def test_replays_of_a_graph_are_timed(torch: TorchOnGpu) -> None:
    result = bench(launches(torch, k=1_000), graph=True, rounds=3)

    assert torch.log.count("replay") >= 3
    # Nothing is recorded of the double's replays, so that the GPU's events are left.
    assert (result.graph, result.clock, result.median_ns) == (True, "gpu", 250_000.0)
    assert result.note == "no kernel was recorded"


def test_within_another_session_both_record(torch: TorchOnGpu, tmp_path: Path) -> None:
    with proton_bench.profiled(tmp_path / "outer", shows=False, context="shadow") as outer:
        result = bench(launches(torch, k=1_000), name="b", rounds=3)

    assert result.times_ns == (1_000.0,) * 3
    assert outer.profile is not None
    (row,) = [
        row for row in range(len(outer.profile)) if outer.profile.path(row)[-2:] == ("rounds", "k")
    ]
    assert outer.profile.columns["count"].values[row] == 3


def test_what_another_session_holds_is_shared_in_its_mode(
    torch: TorchOnGpu, fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = fakes.make("gpu", device_kinds=("CUDA",))
    monkeypatch.setattr("proton_bench.plugin.manager.resolve_backend", lambda text=None: (gpu,))
    with proton_bench.profiled(shows=False, context="shadow", mode="slow:interval=7"):
        result = bench(launches(torch, k=1_000), rounds=3)

    assert (result.clock, result.note) == ("kernels", "")
    assert [each for each in fakes.calls if "open" in each] == ["gpu.open(slow:interval=7)"]


def test_copies_are_recorded_where_a_backend_leaves_them_out(
    torch: TorchOnGpu, fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = replace(
        fakes.make("gpu", device_kinds=("CUDA",)), modes=(ModeSpec("", {"copies": "on or off"}),)
    )
    monkeypatch.setattr("proton_bench.plugin.manager.resolve_backend", lambda text=None: (gpu,))

    result = bench(launches(torch, k=1_000), rounds=3)
    with proton_bench.profiled(shows=False, context="shadow"):
        without = bench(launches(torch, k=1_000), rounds=3)

    assert fakes.calls[0] == "gpu.open(copies=on)"
    assert result.note == ""
    assert "copies" in without.note


def test_where_profiling_is_disabled_events_are_left(
    torch: TorchOnGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_PROTON_DISABLE", "1")

    result = bench(launches(torch, k=1_000), rounds=3)

    assert (result.clock, result.median_ns, result.kernels) == ("gpu", 250_000.0, {})
    assert result.note


def test_what_uses_no_gpu_is_timed_on_the_cpu(tmp_path: Path) -> None:
    result = bench(sum, [1], rounds=5, output=tmp_path / "cpu.proton")

    assert (result.name, result.clock, result.cache, result.note) == ("sum", "cpu", "", "")
    assert result.rounds == 5
    low, high = result.interval
    assert low <= result.median_ns <= high
    assert read_profile(tmp_path / "cpu.proton").provenance["host"]


def test_the_document_is_as_published(torch: TorchOnGpu) -> None:
    for result in (bench(launches(torch, k=1_000), rounds=3), bench(sum, [1], rounds=3)):
        document = published(encode_document(result.to_document()))
        assert document["median_ns"] == result.median_ns


def test_text_names_time_conditions_and_kernels(torch: TorchOnGpu) -> None:
    text = str(bench(launches(torch, k=1_000), name="b", rounds=3))

    assert text.startswith("b: 1 us [")
    assert "cold L2" in text
    assert "1 x k" in text


@pytest.mark.parametrize(
    "options",
    [
        {"cache": "hot"},
        {"max_time": 0.0},
        {"max_time": "1"},
        {"rounds": 0},
        {"rounds": 2.5},
        {"output": ""},
        {"output": "out.pftrace"},
    ],
)
def test_wrong_options_are_refused_before_a_call(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        bench(pytest.fail, **options)  # type: ignore[arg-type]


def test_a_dot_in_a_name_begins_no_suffix(tmp_path: Path) -> None:
    bench(sum, [1], rounds=3, output=tmp_path / "llama-3.1")

    assert (tmp_path / "llama-3.1.proton").exists()


def test_more_kernels_than_are_kept_are_not_taken_for_none(
    torch: TorchOnGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proton_bench.rounds.kernels._MOST_RUNS", 1)

    result = bench(launches(torch, k=1_000), rounds=1)

    assert result.clock == "gpu"
    assert "more kernels" in result.note


async def wait() -> None:
    """Be a coroutine function."""


@pytest.mark.parametrize("fn", [3, wait])
def test_only_plain_functions_are_taken(fn: object) -> None:
    with pytest.raises(UsageError):
        bench(fn)  # type: ignore[arg-type]


def test_no_graph_may_be_under_capture(torch: TorchOnGpu) -> None:
    torch.capturing = True

    with pytest.raises(UsageError, match="capture"):
        bench(launches(torch, k=1))


def test_a_folder_that_is_missing_shows_before_a_call(tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        bench(pytest.fail, output=tmp_path / "missing" / "out")
