"""Instrumented kernels on several streams and threads, in several sessions and in CUDA graphs."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import proton_bench as proton
from proton_bench.errors import ProtonError
from proton_bench.flags import flags
from proton_bench.formats.registry import read_profile
from proton_bench.recording.session.session import SessionOptions, open_session

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

if torch.cuda.is_available():
    from instrumented_kernels import (
        PROGRAMS,
        WARPS,
        Recorded,
        Vectors,
        record,
    )
    from triton import knobs
    from triton.runtime import _allocation

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]

STORE = ("store",)
EACH = 16  # instances of `store` in one launch: programs times warps


@pytest.fixture(autouse=True)
def no_session_left() -> Iterator[None]:
    """End every session, however the test went."""
    assert not torch.cuda.is_available() or PROGRAMS * WARPS == EACH
    yield
    proton.finalize()


def stores(recorded: Recorded, above: tuple[str, ...] = ()) -> int:
    """Return how many instances of the last scope of ``steps`` were recorded."""
    found = recorded.scopes("steps", above=above)
    assert STORE in found, recorded.paths()
    return found[STORE].instances


def test_every_launch_is_counted(tmp_path: Path) -> None:
    vectors = Vectors()

    recorded = record(tmp_path, lambda: [vectors.steps() for _ in range(100)])

    assert stores(recorded) == 100 * EACH
    assert recorded.scopes("steps")[("loop", "fma")].instances == 100 * 5 * EACH
    assert recorded.kernel("steps", "instrumented_launches") == 100
    assert recorded.kernel("steps", "lost_records") == 0
    vectors.check_steps()


def test_grids_of_many_sizes(tmp_path: Path) -> None:
    sizes = [1, 7, 64, 1000, 3, 500]
    data = [Vectors(programs=size) for size in sizes]

    recorded = record(tmp_path, lambda: [each.steps() for each in data])

    assert stores(recorded) == sum(sizes) * WARPS
    assert recorded.kernel("steps", "recorded_programs") == sum(sizes)
    for each in data:
        each.check_steps()


def test_streams_do_not_share_buffers(tmp_path: Path) -> None:
    streams = [torch.cuda.Stream() for _ in range(4)]
    data = [Vectors() for _ in streams]
    torch.cuda.synchronize()

    def work() -> None:
        for _ in range(25):
            for stream, vectors in zip(streams, data, strict=True):
                with torch.cuda.stream(stream), proton.scope(f"stream {id(stream)}"):
                    vectors.steps(rounds=20)

    recorded = record(tmp_path, work)

    for stream, vectors in zip(streams, data, strict=True):
        assert stores(recorded, above=(f"stream {id(stream)}",)) == 25 * EACH
        vectors.check_steps(rounds=20)


def test_threads_do_not_share_buffers(tmp_path: Path) -> None:
    data = [Vectors() for _ in range(4)]
    streams = [torch.cuda.Stream() for _ in data]
    torch.cuda.synchronize()
    errors: list[BaseException] = []

    def launch(number: int) -> None:
        try:
            with torch.cuda.stream(streams[number]), proton.scope(f"thread {number}"):
                for _ in range(50):
                    data[number].steps()
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    def work() -> None:
        threads = [threading.Thread(target=launch, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    recorded = record(tmp_path, work)

    assert errors == []
    for number, vectors in enumerate(data):
        assert stores(recorded, above=(f"thread {number}",)) == 50 * EACH
        vectors.check_steps()


def test_one_stream_used_by_several_threads(tmp_path: Path) -> None:
    vectors = Vectors()

    def work() -> None:
        threads = [
            threading.Thread(target=lambda: [vectors.steps() for _ in range(50)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    recorded = record(tmp_path, work)

    assert stores(recorded) == 200 * EACH
    vectors.check_steps()


def test_two_sessions_of_the_same_mode(tmp_path: Path) -> None:
    vectors = Vectors()
    outer = open_session(SessionOptions(name=str(tmp_path / "outer"), backend="instrumentation"))
    vectors.steps()

    inner = record(tmp_path, vectors.steps)

    vectors.steps()
    [path] = outer.finalize(formats=("proton",))
    assert stores(inner) == EACH
    assert stores(Recorded(read_profile(path))) == 3 * EACH


def test_two_sessions_of_different_modes(tmp_path: Path) -> None:
    mode = proton.mode.Default(optimizations="clock32")
    proton.start(str(tmp_path / "one"), backend="instrumentation")

    with pytest.raises(ProtonError) as raised:
        proton.start(str(tmp_path / "other"), backend="instrumentation", mode=mode)

    assert "instrumentation" in str(raised.value)
    assert "mode" in str(raised.value)


def test_sessions_one_after_the_other(tmp_path: Path) -> None:
    vectors = Vectors()
    found = []
    for mode in (None, proton.mode.Default(optimizations="clock32"), None):
        found.append(stores(record(tmp_path, vectors.steps, mode=mode)))
        vectors.steps()

    assert found == [EACH] * 3


def test_a_pause_is_not_recorded(tmp_path: Path) -> None:
    vectors = Vectors()
    options = SessionOptions(name=str(tmp_path / "paused"), backend="instrumentation")
    session = open_session(options)
    vectors.steps()
    session.deactivate()
    vectors.steps()
    session.activate()
    vectors.steps()

    [path] = session.finalize(formats=("proton",))

    assert stores(Recorded(read_profile(path))) == 2 * EACH


def captured(vectors: Any, launches: int) -> Any:
    """Capture launches into a graph, after one outside of it that compiles the kernel."""
    vectors.steps()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), proton.scope("captured"):
        for _ in range(launches):
            vectors.steps()
    return graph


def test_every_replay_of_a_graph_counts(tmp_path: Path) -> None:
    vectors = Vectors()

    def work() -> None:
        graph = captured(vectors, launches=2)
        for _ in range(7):
            graph.replay()

    recorded = record(tmp_path, work)

    assert stores(recorded) == (1 + 2 * 7) * EACH, recorded.paths()
    assert stores(recorded, above=("captured",)) == 2 * 7 * EACH
    vectors.check_steps()


def test_launches_between_replays(tmp_path: Path) -> None:
    vectors, others = Vectors(), Vectors()

    def work() -> None:
        graph = captured(vectors, launches=1)
        for _ in range(5):
            graph.replay()
            others.steps()

    recorded = record(tmp_path, work)

    assert stores(recorded) == (1 + 5 + 5) * EACH
    vectors.check_steps()
    others.check_steps()


def test_two_graphs_on_two_streams(tmp_path: Path) -> None:
    data = [Vectors(), Vectors()]
    streams = [torch.cuda.Stream() for _ in data]

    def work() -> None:
        graphs = [captured(vectors, launches=1) for vectors in data]
        torch.cuda.synchronize()
        for _ in range(10):
            for graph, stream in zip(graphs, streams, strict=True):
                with torch.cuda.stream(stream):
                    graph.replay()

    recorded = record(tmp_path, work)

    assert stores(recorded, above=("captured",)) == 2 * 10 * EACH
    for vectors in data:
        vectors.check_steps()


def test_graph_that_is_gone_before_the_end(tmp_path: Path) -> None:
    vectors = Vectors()

    def work() -> None:
        graph = captured(vectors, launches=1)
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        del graph
        gc.collect()

    recorded = record(tmp_path, work)

    assert stores(recorded) == 4 * EACH


# In a process of its own: torch's random numbers are of no use after a capture that failed.
REFUSED = """
import sys
from pathlib import Path

import torch
from instrumented_kernels import Vectors, record_timeline

from proton_bench.errors import ProtonError

vectors = Vectors()


def work():
    vectors.steps()
    torch.cuda.synchronize()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        vectors.x.add_(0)  # torch warns of graphs that are empty
        vectors.steps()


try:
    record_timeline(Path(sys.argv[1]), work)
except ProtonError as error:
    print(error)
torch.cuda.synchronize()
"""


def test_a_timeline_refuses_capture_and_says_so(tmp_path: Path) -> None:
    paths = [str(Path(__file__).parents[1]), *sys.path]

    done = subprocess.run(
        [sys.executable, "-c", REFUSED, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "timeline" in done.stdout
    assert "graph" in done.stdout.lower()


def test_replay_after_the_session_does_no_harm(tmp_path: Path) -> None:
    vectors = Vectors()
    graphs: list[Any] = []

    recorded = record(tmp_path, lambda: graphs.append(captured(vectors, launches=1)))

    graphs[0].replay()
    torch.cuda.synchronize()
    assert stores(recorded) == EACH
    vectors.check_steps()


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    def state() -> dict[str, object]:
        hooks = ("launch_enter_hook", "launch_exit_hook", "kernel_load_end_hook")
        chains = {name: list(getattr(knobs.runtime, name).calls) for name in hooks}
        return {
            **chains,
            "stages": knobs.runtime.add_stages_inspection_hook,
            "mode": knobs.compilation.instrumentation_mode,
            "allocator": _allocation._profile_allocator.get(),
            "instrumentation_on": flags.instrumentation_on,
        }

    vectors = Vectors()
    vectors.steps()
    before = state()

    record(tmp_path, vectors.steps)

    assert state() == before
    made = vectors.steps()
    assert made.metadata.profile_scratch_size == 0
    vectors.check_steps()


def test_a_session_that_fails_to_start_leaves_nothing_behind(tmp_path: Path) -> None:
    before = (knobs.compilation.instrumentation_mode, _allocation._profile_allocator.get())

    with pytest.raises(ProtonError):
        proton.start(str(tmp_path / "x"), backend="instrumentation", mode="default:no_such=1")

    after = (knobs.compilation.instrumentation_mode, _allocation._profile_allocator.get())
    assert after == before
