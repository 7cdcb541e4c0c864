"""Upstream's tests of the instrumentation, on an NVIDIA GPU."""

from __future__ import annotations

import struct
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import proton_bench as proton

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

if torch.cuda.is_available():
    from instrumented_kernels import (
        BLOCK,
        PROGRAMS,
        SCOPES,
        WARPS,
        BufferTap,
        Vectors,
        copied,
        record,
        record_timeline,
    )
    from triton_scopes import tuned, two_cta_copy, warp_specialized_product

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]

HAS_EVENTS = tuple(int(part) for part in triton.__version__.split(".")[:2]) >= (3, 9)
NESTED = {
    ("load",): 1,
    ("load", "load_x"): 1,
    ("load", "load_y"): 1,
    ("loop",): 1,
    ("loop", "fma"): 5,
    ("store",): 1,
}


def capability() -> int:
    return int(torch.cuda.get_device_capability()[0]) if torch.cuda.is_available() else 0


@pytest.fixture(autouse=True)
def no_session_left() -> Iterator[None]:
    """End every session, however the test went."""
    yield
    proton.finalize()


@pytest.mark.parametrize(
    "mode",
    [
        "default",
        "default:metric_type=cycle",
        "default:metric_type=cycle:buffer_size=4096",
        "mma",
    ],
)
def test_mode_as_text(mode: str, tmp_path: Path) -> None:
    recorded = record(tmp_path, Vectors().copied, mode=mode)

    assert set(recorded.scopes("copied")) == {("copy",)}, recorded.paths()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"metric_type": "cycle"},
        {"metric_type": "cycle", "buffer_size": 4096},
        None,
    ],
)
def test_mode_as_object(options: dict[str, Any] | None, tmp_path: Path) -> None:
    mode = proton.mode.MMA() if options is None else proton.mode.Default(**options)

    recorded = record(tmp_path, Vectors().copied, mode=mode)

    assert set(recorded.scopes("copied")) == {("copy",)}, recorded.paths()


def test_kernels_with_and_without_records_are_both_kept(tmp_path: Path) -> None:
    vectors = Vectors()
    kernel = triton.jit(copied.fn)
    device = torch.cuda.current_device()

    def launch() -> Any:
        return kernel[(PROGRAMS,)](vectors.out, vectors.x, BLOCK=BLOCK)

    before = launch()
    assert len(kernel.device_caches[device][0]) == 1

    recorded = record(tmp_path, launch)

    assert len(kernel.device_caches[device][0]) == 2
    assert recorded.scopes("copied")[("copy",)].instances == PROGRAMS * WARPS
    after = launch()
    assert len(kernel.device_caches[device][0]) == 2
    assert after is before


@pytest.mark.parametrize("kernel", ["steps", "copied"])  # with statements; calls
def test_records_are_written_as_documented(kernel: str, tmp_path: Path) -> None:
    vectors, compiled, buffers = Vectors(), [], []

    def work() -> None:
        with BufferTap() as tap:
            compiled.append(getattr(vectors, kernel)())
            buffers.append(tap.bytes())

    record(tmp_path, work)

    [buffer], [made] = buffers, compiled
    stride = len(buffer) // PROGRAMS
    for number in range(PROGRAMS):
        header = struct.unpack_from("<4I3Q", buffer, number * stride)
        assert header[1] == number
        assert header[3] % (8 * WARPS) == 0, f"capacity {header[3]}"
        assert header[4] <= header[5] <= header[6], f"times {header[4:]}"
        words = struct.unpack_from(f"<{WARPS}I", buffer, number * stride + 40)
        assert set(words) == {4 if kernel == "copied" else 40}
    assert "proton.record" in made.asm["ttir"]
    assert "instrumented_kernels.py" in made.asm["llir"]


def test_warps_are_selected(tmp_path: Path) -> None:
    mode = proton.mode.Default(sampling_strategy="selective", sampling_options="0,2")
    buffers: list[bytes] = []

    def work() -> None:
        with BufferTap() as tap:
            Vectors().steps()
            buffers.append(tap.bytes())

    recorded = record(tmp_path, work, mode=mode)

    assert struct.unpack_from("<4I", buffers[0], 40) == (40, 0, 40, 0)
    scopes = recorded.scopes("steps")
    assert {path: node.instances for path, node in scopes.items()} == {
        path: times * PROGRAMS * 2 for path, times in NESTED.items()
    }
    for node in scopes.values():
        assert node.normalized == pytest.approx(node.cycles / (PROGRAMS * 2))


def test_kernel_without_a_scope_is_left_alone(tmp_path: Path) -> None:
    vectors = Vectors()

    def work() -> None:
        vectors.steps()
        made = vectors.plain()
        vectors.steps()
        assert made.metadata.profile_scratch_size == 0

    recorded = record(tmp_path, work)

    assert recorded.scopes("plain") == {}
    assert recorded.scopes("steps")[("store",)].instances == 2 * PROGRAMS * WARPS
    vectors.check_steps()


@pytest.mark.parametrize("hook", ["triton", None])
def test_scopes_stand_below_their_kernel(hook: str | None, tmp_path: Path) -> None:
    vectors = Vectors()

    def work() -> None:
        with proton.scope("test"):
            vectors.steps()

    recorded = record(tmp_path, work, hook=hook)

    scopes = recorded.scopes("steps", above=("test",))
    assert {path: node.instances for path, node in scopes.items()} == {
        path: times * PROGRAMS * WARPS for path, times in NESTED.items()
    }, recorded.paths()
    for node in scopes.values():
        assert node.cycles > 0
        assert node.normalized == pytest.approx(node.cycles / (PROGRAMS * WARPS))
    inner = scopes[("load", "load_x")].cycles + scopes[("load", "load_y")].cycles
    assert scopes[("load",)].cycles >= inner
    vectors.check_steps()


def test_timeline_has_both_kernels(tmp_path: Path) -> None:
    vectors = Vectors(programs=1)

    def work() -> None:
        with proton.scope("test"):
            vectors.steps(rounds=1)
            vectors.copied()

    rows = record_timeline(tmp_path, work)

    counts = Counter(row.name for row in rows if row.name in {*SCOPES, "copy"})
    assert counts == dict.fromkeys((*SCOPES, "copy"), WARPS), rows[:8]


def test_timeline_keeps_the_order_of_a_warp(tmp_path: Path) -> None:
    mode = proton.mode.Default(optimizations="time_shift")

    def work() -> None:
        with proton.scope("test"):
            Vectors(programs=1).steps(rounds=3)

    rows = [row for row in record_timeline(tmp_path, work, mode=mode) if row.name in SCOPES]

    assert len(rows) == WARPS * (5 + 3)
    warps = {row.thread.split(" (")[0] for row in rows}
    assert len(warps) == WARPS, warps
    for warp in warps:
        mine = [row for row in rows if row.thread.split(" (")[0] == warp]
        loop = next(row for row in mine if row.name == "loop")
        for inside in (row for row in mine if row.name == "fma"):
            assert loop.begin_us <= inside.begin_us
            assert inside.begin_us + inside.duration_us <= loop.begin_us + loop.duration_us + 0.01
    stacks = [row.args["call_stack"] for row in rows if "call_stack" in row.args]
    assert all(stack[-2:] == ["test", "steps"] for stack in stacks), stacks[:2]


def test_programs_of_one_multiprocessor_follow_one_another(tmp_path: Path) -> None:
    vectors = Vectors(programs=8192)  # more than run at once

    rows = record_timeline(tmp_path, vectors.copied)

    rows = [row for row in rows if row.name == "copy"]
    assert len(rows) == 8192 * WARPS
    begins = sorted(row.begin_us for row in rows)
    longest = max(row.duration_us for row in rows)
    assert begins[-1] - begins[0] > longest, "all programs began at once: no global time"


def test_timeline_has_the_times_of_each_program(tmp_path: Path) -> None:
    rows = record_timeline(tmp_path, Vectors().copied)

    rows = [row for row in rows if row.name == "copy"]
    assert len(rows) == PROGRAMS * WARPS
    for row in rows:
        times = {key: value for key, value in row.args.items() if key.endswith("Time (ns)")}
        assert {key.split(" Time")[0] for key in times} >= {
            "Init",
            "Post Final",
            "Finalization",
        }, row.args
        assert all(float(value) >= 0 for value in times.values()), times


def test_two_backends_in_two_sessions(tmp_path: Path) -> None:
    vectors = Vectors()
    for _ in range(2):  # the second time, everything starts anew
        other = proton.start(str(tmp_path / "cupti"), backend="cupti")

        recorded = record(tmp_path, vectors.steps)

        vectors.plain()
        proton.finalize(other)
        assert recorded.scopes("steps")[("store",)].instances == PROGRAMS * WARPS
        text = (tmp_path / "cupti.hatchet").read_text()
        assert '"plain"' in text
        assert '"steps"' in text


def test_every_configuration_of_the_tuner_is_recorded(tmp_path: Path) -> None:
    vectors = Vectors()

    recorded = record(tmp_path, lambda: tuned(vectors), hook="triton")

    shown = "\n".join(recorded.paths())
    for block in (256, 512, 1024):
        assert f"add_{block}" in shown, shown
    torch.testing.assert_close(vectors.out, vectors.x + vectors.y)


@pytest.mark.skipif(capability() < 9, reason="warp specialization needs sm_90 or newer")
def test_loop_of_specialized_warps(tmp_path: Path) -> None:
    mode = proton.mode.Default(optimizations="clock32")
    results: list[Any] = []

    recorded = record(tmp_path, lambda: results.append(warp_specialized_product()), mode=mode)

    scopes = recorded.scopes("specialized")
    assert any(path[-1] == "product" and node.cycles > 0 for path, node in scopes.items()), scopes
    ours, expected = results[0]
    torch.testing.assert_close(ours, expected, rtol=1e-2, atol=1e-1)


@pytest.mark.parametrize("clock32", [False, True])
def test_a_record_is_one_reading_of_the_clock(clock32: bool, tmp_path: Path) -> None:
    # Instead of a ratio of times, which a busy machine moves: the benchmarks have that.
    mode = proton.mode.Default(optimizations="clock32" if clock32 else "")
    compiled: list[Any] = []

    record(tmp_path, lambda: compiled.append(Vectors().steps()), mode=mode)

    text = compiled[0].asm["ptx"]
    per_record = 1 if clock32 else 2
    assert text.count("%clock") == 2 * len(SCOPES) * per_record


def test_buffer_in_global_memory(tmp_path: Path) -> None:
    mode = proton.mode.Default(buffer_type="global", buffer_size=65536)
    vectors = Vectors(programs=2)

    recorded = record(tmp_path, lambda: vectors.steps(rounds=4, warps=2), mode=mode)

    scopes = recorded.scopes("steps")
    assert scopes[("loop", "fma")].instances == 4 * 2 * 2
    assert scopes[("store",)].instances == 2 * 2
    assert recorded.kernel("steps", "lost_records") == 0


def test_launch_in_another_thread(tmp_path: Path) -> None:
    vectors = Vectors()

    def work() -> None:
        thread = threading.Thread(target=vectors.steps)
        thread.start()
        thread.join()

    recorded = record(tmp_path, work)

    assert recorded.scopes("steps")[("store",)].instances == PROGRAMS * WARPS


@pytest.mark.parametrize("ctas", [1, 2])
@pytest.mark.skipif(capability() < 9, reason="clusters and tensor descriptors need sm_90 or newer")
def test_clusters_and_tensor_descriptors(ctas: int, tmp_path: Path) -> None:
    results: list[Any] = []

    recorded = record(tmp_path, lambda: results.append(two_cta_copy(ctas)))

    scopes = recorded.scopes("descriptor_copy")
    assert scopes[("copy",)].instances == PROGRAMS * ctas * WARPS, scopes
    source, target = results[0]
    torch.testing.assert_close(source, target)


@pytest.mark.skipif(not HAS_EVENTS, reason="events came with Triton 3.9")
@pytest.mark.parametrize("data", ["tree", "trace"])
def test_event(data: str, tmp_path: Path) -> None:
    from triton_events import timed_by_event

    vectors = Vectors(programs=1)

    def work() -> None:
        timed_by_event[(1,)](vectors.out, vectors.x, BLOCK=BLOCK)

    if data == "tree":
        assert record(tmp_path, work).scopes("timed_by_event")[("event",)].cycles > 0
    else:
        rows = [row for row in record_timeline(tmp_path, work) if row.name == "event"]
        assert len(rows) == WARPS


@pytest.mark.skipif(not HAS_EVENTS, reason="events came with Triton 3.9")
def test_gluon_event(tmp_path: Path) -> None:
    from triton_events import async_copies

    vectors = Vectors(programs=1)

    recorded = record(tmp_path, lambda: async_copies(vectors, rounds=3))

    assert recorded.scopes("copy_with_events")[("async_copy",)].instances == 3 * WARPS


@pytest.mark.parametrize("data", ["tree", "trace"])
@pytest.mark.skipif(capability() < 10, reason="cluster launch control came with Blackwell")
def test_programs_that_never_run(data: str, tmp_path: Path) -> None:
    from triton_events import claimed_blocks

    vectors = Vectors(programs=4096)

    if data == "tree":
        recorded = record(tmp_path, lambda: claimed_blocks(vectors))
        assert recorded.kernel("claiming", "skipped_programs") > 0
    else:
        assert record_timeline(tmp_path, lambda: claimed_blocks(vectors))


@pytest.mark.skipif(not HAS_EVENTS, reason="events came with Triton 3.9")
@pytest.mark.skipif(capability() < 9, reason="warp specialization needs sm_90 or newer")
def test_event_across_specialized_warps(tmp_path: Path) -> None:
    from triton_events import handed_over

    vectors = Vectors(programs=1)

    recorded = record(tmp_path, lambda: handed_over(vectors))

    assert recorded.scopes("handing_over")[("handed",)].instances == 4
