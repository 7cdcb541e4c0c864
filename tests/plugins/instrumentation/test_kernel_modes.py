"""Modes of plugins: their passes compile, their buffers are read, their metrics are filed."""

from __future__ import annotations

import importlib
import struct
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from capture_fixtures import FakeBackends, child
from fakes.tritons import TRITONS, run_on

import proton_bench as proton
from proton_bench.errors import UsageError
from proton_bench.plugin import Mode
from proton_bench.plugin.kernel_mode import KernelBuffer, KernelMetric, KernelMode
from proton_bench.recording.session.session import SessionOptions, open_session
from proton_bench_plugins.instrumentation.compiler.scope_table import KernelScopes
from proton_bench_plugins.instrumentation.settings import read_settings
from proton_bench_plugins.instrumentation.value_runtime import ValueRuntime

PACKAGE = Path(__file__).parents[2] / "data" / "plugin_packages" / "kernel_values"


class Memory:
    """Memory of a simulated device; a launch writes the words that the test gives it."""

    def __init__(self, *blocks: tuple[int, ...]) -> None:
        self.blocks = list(blocks)
        self.fetched = 0

    def allocate(self, size: int) -> Any:
        return SimpleNamespace(data_ptr=lambda: 4096, size=size)

    def fetch(self, memory: Any) -> memoryview:
        self.fetched += 1
        words = [word for block in self.blocks for word in (*block, *[0] * (32 - len(block)))]
        return memoryview(struct.pack(f"<{len(words)}I", *words)[: memory.size])


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(PACKAGE)
    return importlib.import_module("kernel_values")


@pytest.fixture
def scopes(tmp_path: Path) -> KernelScopes:
    (tmp_path / "k.ttgir").write_text("module {}")
    (tmp_path / "k.json").write_text('{"num_warps": 4}')
    return KernelScopes(
        name="kernel",
        num_warps=4,
        profile_scratch_size=128,
        shared=0,
        registers=None,
        target={"backend": "cuda", "arch": 90, "warp_size": 32},
        mode="proton_bench.largest:0",
        ttgir_path=tmp_path / "k.ttgir",
        metadata_path=tmp_path / "k.json",
    )


def bits(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def launch(runtime: ValueRuntime, programs: int = 2) -> None:
    runtime.allocator(128 * programs, 128, 7)
    runtime.launch_exit(SimpleNamespace(data={"function": 1, "stream": 7}))


@pytest.mark.parametrize("triton", TRITONS, ids=lambda folder: folder or "installed")
def test_the_example_compiles_for_every_target(triton: str, tmp_path: Path) -> None:
    pytest.importorskip("triton")

    found = run_on(triton, tmp_path, "kernel_values_program.py")["found"]

    stores = {name: facts for name, facts in found.items() if name not in _UNTOUCHED}
    assert {facts["scratch"] for facts in stores.values()} == {128}
    assert {facts["maxima"] for facts in stores.values()} == {1}
    assert all(facts["mode"].startswith("proton_bench.largest:") for facts in found.values())
    # A mode that records values ignores scopes of the source.
    assert {(facts["records"], facts["clocks"]) for facts in found.values()} == {(0, 0)}
    assert {found[name]["scratch"] for name in _UNTOUCHED} == {0}
    assert found["none watched"]["hash"] != found["add cuda:90"]["hash"]


_UNTOUCHED = ("matmul cuda:90", "none watched")  # stores of 16 bits; none asked for


def test_the_example_reads_what_its_passes_write(example: ModuleType) -> None:
    words = (bits(2.5), 0, bits(1e30), bits(float("inf")), bits(float("nan")))
    data = memoryview(struct.pack("<5I", *words))

    read = dict(example.read_largest(KernelBuffer(kernel="k", data=data, bytes_per_program=128)))

    assert read["largest stored"] == pytest.approx(1e30)
    assert read["stores not finite"] == 2


def test_an_unwritten_buffer_reads_as_nothing(example: ModuleType) -> None:
    buffer = KernelBuffer(kernel="k", data=memoryview(bytes(256)), bytes_per_program=128)

    assert dict(example.read_largest(buffer)) == {"largest stored": 0, "stores not finite": 0}


def test_metrics_stand_on_the_kernel_below_the_scope_of_its_launch(
    tmp_path: Path, fakes: FakeBackends, example: ModuleType, scopes: KernelScopes
) -> None:
    session = proton.start(tmp_path / "x")
    runtime = ValueRuntime(example.MODE, 1 << 20, Memory((bits(3.0),), (bits(float("inf")),)))
    runtime.start()
    runtime.add_kernel(1, scopes)

    with proton.scope("step"):
        launch(runtime)
        launch(runtime)
    runtime.flush()

    kernel = child(proton.data.get(session)[0], "step", "kernel")
    assert kernel["metrics"]["largest stored"] == 3.0
    assert kernel["metrics"]["stores not finite"] == 2
    assert runtime.facts() == {"buffers_read": 2}


def test_launches_of_other_kernels_are_left_alone(
    tmp_path: Path, fakes: FakeBackends, example: ModuleType, scopes: KernelScopes
) -> None:
    proton.start(tmp_path / "x")
    memory = Memory((1,))
    runtime = ValueRuntime(example.MODE, 1 << 20, memory)
    runtime.add_kernel(1, scopes)
    runtime.remove_kernel(1)

    launch(runtime)
    runtime.launch_exit(SimpleNamespace(data={"function": 2}))
    runtime.flush()

    assert memory.fetched == 0


def test_a_launch_that_another_one_replaces_is_counted_as_lost(
    tmp_path: Path, fakes: FakeBackends, example: ModuleType, scopes: KernelScopes
) -> None:
    session = open_session(SessionOptions(name=tmp_path / "x"))
    runtime = ValueRuntime(example.MODE, 1 << 20, Memory((bits(3.0),), (bits(1.0),)))
    runtime.add_kernel(1, scopes)

    runtime.allocator(256, 128, 7)  # the launch raised, or launches the next one
    launch(runtime)
    runtime.flush()

    assert session.counts()["dropped"] == 1
    assert runtime.facts() == {"buffers_read": 1}


def test_a_plain_kernel_within_a_launch_leaves_its_buffer_alone(
    tmp_path: Path, fakes: FakeBackends, example: ModuleType, scopes: KernelScopes
) -> None:
    session = open_session(SessionOptions(name=tmp_path / "x"))
    runtime = ValueRuntime(example.MODE, 1 << 20, Memory((bits(3.0),), (bits(1.0),)))
    runtime.add_kernel(1, scopes)

    runtime.allocator(256, 128, 7)
    runtime.launch_exit(SimpleNamespace(data={"function": 2}))
    runtime.launch_exit(SimpleNamespace(data={"function": 1}))
    runtime.flush()

    assert session.counts()["dropped"] == 0
    assert runtime.facts() == {"buffers_read": 1}


def test_a_reader_that_fails_costs_its_buffer_only(
    tmp_path: Path,
    fakes: FakeBackends,
    scopes: KernelScopes,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def read(buffer: KernelBuffer) -> list[tuple[str, float]]:
        del buffer
        return [("weight", 1.0)]

    mode = KernelMode(name="m", summary="s", version="1", passes=object, reader=read)  # type: ignore[arg-type]
    session = open_session(SessionOptions(name=tmp_path / "x"))
    runtime = ValueRuntime(mode, 1 << 20, Memory((1,), (2,)))
    runtime.add_kernel(1, scopes)

    launch(runtime)
    runtime.flush()

    assert "mode 'm' declares no metric 'weight'; it declares: none" in capfd.readouterr().err
    assert session.counts()["dropped"] == 1


def test_a_launch_over_the_limit_is_refused_with_its_size(example: ModuleType) -> None:
    runtime = ValueRuntime(example.MODE, 1000, Memory())

    with pytest.raises(UsageError, match="a launch needs 1280 bytes for mode 'largest'"):
        runtime.allocator(1280, 128, None)


def test_options_of_a_plugins_mode_reach_its_passes() -> None:
    mode = KernelMode(
        name="m",
        summary="s",
        version="1",
        options={"depth": "how deep"},
        passes=object,  # type: ignore[arg-type]
        reader=lambda _: [],
        metrics=(KernelMetric("n"),),
    )

    one = read_settings(Mode("m", {"depth": "2", "byte_limit": "5"}, "m"), {"m": mode})
    other = read_settings(Mode("m", {"depth": "3"}, "m"), {"m": mode})

    assert (one.custom, one.custom_options, one.byte_limit) == (mode, {"depth": "2"}, 5)
    assert one.digest() != other.digest()
