"""Programs of upstream's tests of traces and of periodic flushing, on the doubles.

Run by test_upstream_traces.py: upstream_trace_programs.py NAME OUT [FORMAT].
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from cupti_graph_programs import Device, DeviceTensor, captured, cupti

import proton_bench as proton
from proton_bench import data
from proton_bench.recording.session.recording import live_sessions

_AHEAD_NS = 120_000_000_000  # work follows its launch, however slow that is
TRACES = ("chrome_trace", "perfetto")
PHASES = 10
SCOPES = 5000
REPLAYS = 500


def waiting(path: str, _: str) -> None:
    """A scope that waits for its kernel."""
    proton.start(path, backend="cupti", data="trace")
    with proton.scope("test"):
        start_ns = time.monotonic_ns() + 1_000_000
        cupti.set_clock(start_ns)
        cupti.launch("foo", 7)
        while time.monotonic_ns() < start_ns + 1_000_000:
            pass
    proton.finalize()


def scope_ranges(path: str, _: str) -> None:
    """Kernels below scopes, some of which have metrics."""
    proton.start(path, backend="cupti", data="trace")
    with proton.scope("scope_3", metrics={"m3": 3.0}):
        with proton.scope("scope_2", metrics={"m2": 2.0}):
            with proton.scope("scope_1", metrics={"m1": 1.0}):
                cupti.launch("foo", 7)
            with proton.scope("scope_4"):
                cupti.launch("foo", 7)
            with proton.scope("scope_5"):
                cupti.launch("foo", 7)
        with proton.scope("scope_6"), proton.scope("scope_7"):
            cupti.launch("foo", 7)
    proton.finalize()


def no_kernel(path: str, _: str) -> None:
    """A scope with a metric, and nothing else."""
    proton.start(path, backend="cupti", data="trace")
    with proton.scope("metric_only", metrics={"foo": 1.0}):
        pass
    proton.finalize()


def graph_scopes(path: str, _: str) -> None:
    """A graph of nested scopes, one of them with a tensor for a metric."""
    device = Device()
    proton.start(path, backend="cupti", data="trace")

    def body() -> None:
        with proton.scope("a"):
            with proton.scope("b"):
                with proton.scope("c", metrics={"m1": DeviceTensor(1.0)}):
                    cupti.launch("foo", 7)
                cupti.launch("foo", 7)
            cupti.launch("foo", 7)

    executable = captured(body)
    device.run()
    with proton.scope("test0"):
        cupti.graph_launch(executable, 7)
    proton.finalize()


def streams(path: str, form: str) -> None:
    """Two scopes, each with work on a stream of its own."""
    proton.start(path, backend="cupti", data=form)
    for number, stream in enumerate((13, 17)):
        with proton.scope(f"stream_scope_{number}"):
            cupti.launch("foo", stream)
    proton.finalize()


def flushing(path: str, form: str) -> None:
    """Ten phases of 500 scopes."""
    session = proton.start(path, backend="cupti", mode=f"periodic_flushing:format={form}")
    for number in range(SCOPES):
        if number and number % (SCOPES // PHASES) == 0:
            data.advance_phase(session)
        with proton.scope(f"test_{number}", metrics={"items": 1}):
            cupti.launch("foo", 7)
    proton.finalize(output_format=form)


def flushing_graph(path: str, form: str) -> None:
    """A graph with metrics is replayed in ten phases, below one scope that is open all along."""
    from triton import knobs
    from triton.compiler import LazyDict

    device = Device()
    mode = f"periodic_flushing:format={form}"
    session = proton.start(path, backend="cupti", mode=mode, hook="triton")
    total = DeviceTensor(4.0)

    def body() -> None:
        with proton.scope("scope_a", metrics={"bytes": 16}):
            cupti.launch("ones", 7)
        metadata = LazyDict({"name": "foo", "function": 1, "stream": 7})
        metadata.add(lambda: {"name": "foo_test", "bytes": 16, "flops": total}, ())
        knobs.runtime.launch_enter_hook(metadata)
        cupti.launch("foo", 7)
        knobs.runtime.launch_exit_hook(metadata)

    executable = captured(body)
    with proton.scope("test0"):
        for number in range(REPLAYS):
            if number and number % (REPLAYS // PHASES) == 0:
                data.advance_phase(session)
            device.run()
            cupti.graph_launch(executable, 7)
    proton.finalize(output_format=form)


def phases(path: str, form: str) -> None:
    """Kernels and graphs below scopes, in one file, or with FORMAT in one of each phase."""
    is_trace = form in TRACES or not form
    session = proton.start(
        path,
        backend="cupti",
        data="trace" if is_trace else "tree",
        mode=f"periodic_flushing:format={form}" if form else None,
    )

    def body() -> None:
        with proton.scope("captured", {"flops": 2}):
            cupti.launch("node", 7)

    executable = captured(body)
    with proton.scope("across"):
        for number in range(200):
            if form and number and number % 40 == 0:
                data.advance_phase(session)
            with proton.scope(f"step {number % 3}", {"items": number}):
                cupti.launch(f"kernel {number % 2}", 7 + number % 2)
                cupti.launch_with("short", duration_ns=number)
            cupti.graph_launch(executable, 7)
    if form:
        proton.finalize(output_format=form)
    else:
        open_session = live_sessions()[0]
        open_session.finalize(("proton", *TRACES))


PROGRAMS: dict[str, Callable[[str, str], Any]] = {
    program.__name__: program
    for program in (
        *(waiting, scope_ranges, no_kernel, graph_scopes, streams),
        *(flushing, flushing_graph, phases),
    )
}

if __name__ == "__main__":
    cupti.set_clock(time.monotonic_ns() + _AHEAD_NS)
    PROGRAMS[sys.argv[1]](sys.argv[2], (sys.argv[3:] or [""])[0])
