"""The ``cpu`` backend: torch operators and interpreted Triton kernels, timed on their threads.

``time (ns)`` is self time on operators and kernels; scopes have ``wall (ns)``. It is the default
without a GPU driver, and then makes Triton interpret its kernels. Mode ``counters`` also counts
instructions.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from urllib.parse import unquote

from proton_bench.errors import UsageError
from proton_bench.plugin import (
    Availability,
    Backend,
    Collector,
    Mode,
    ModeSpec,
    hookimpl,
)
from proton_bench.plugin.flushing import PERIODIC_FLUSHING
from proton_bench.recording.stderr import warn
from proton_bench_plugins.cpu.gpu_driver import find_gpu_driver
from proton_bench_plugins.libraries import native_obstacle

_INTERPRET = "TRITON_INTERPRET"
_COUNTERS = "counters"
_DEPTH = "depth"
_PASSES = "passes"
_MOST_DIGITS = 9
_DEPTH_MEANING = "depth of nested torch operators to record: default 2, 0 for all"


def _availability() -> Availability:
    if missing := native_obstacle("CpuCollector"):
        return Availability(available=False, reason=missing)
    return Availability(available=True, reason="needs no device")


def _open(mode: Mode) -> Collector:
    from proton_bench_plugins.cpu.collector import DEFAULT_DEPTH, CountingCollector, HostCollector

    depth = _depth(mode.options.get(_DEPTH, str(DEFAULT_DEPTH)), mode.name)
    if mode.name == _COUNTERS:
        return CountingCollector(depth)
    passes = unquote(mode.options.get(_PASSES, ""))
    if not passes:
        return HostCollector(depth)
    from proton_bench_plugins.instrumentation.passes import parse_passes

    rules = parse_passes(passes)
    if importlib.util.find_spec("triton") is None:
        warn(
            "passes have no effect, because Triton is not installed: they bracket operations of "
            "its kernels"
        )
    return HostCollector(depth, rules)


def _depth(text: str, mode: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
        raise UsageError(
            f"mode {mode}:{_DEPTH}={text!r}: give the number of nested operators to record, "
            "1 for those that the program calls, 0 for all"
        )
    return int(text)


def _prepare() -> str | None:
    driver = find_gpu_driver()
    if driver is not None:
        return f"the cpu backend records only work of the host, not the kernels of the {driver} GPU"
    if os.environ.get(_INTERPRET):
        return None
    if "triton" in sys.modules:
        return (
            "no GPU driver found, and triton was imported before its interpreter could be switched "
            f"on: set {_INTERPRET}=1 to run Triton kernels"
        )
    os.environ[_INTERPRET] = "1"
    return f"no GPU driver found: Triton kernels run in its interpreter ({_INTERPRET}=1)"


BACKEND = Backend(
    name="cpu",
    summary="torch operators and interpreted Triton kernels on the CPU",
    availability=_availability,
    open=_open,
    modes=(
        ModeSpec(
            "cpu",
            {
                _DEPTH: _DEPTH_MEANING,
                _PASSES: "operations of interpreted kernels to bracket, e.g. loops,loads",
            },
            "torch operators up to a depth, and scopes in interpreted kernels",
        ),
        ModeSpec(
            _COUNTERS,
            {_DEPTH: _DEPTH_MEANING},
            "the same with the instructions that the processor counts",
        ),
        PERIODIC_FLUSHING,
    ),
    data=("tree", "trace"),
    records_wall=True,
    device_kinds=("CPU",),
    passes_mode="cpu",
    prepare=_prepare,
    default_because="no GPU was found",
)


@hookimpl
def proton_backends() -> Sequence[Backend]:
    """Offer the backend ``cpu``."""
    return [BACKEND]


@hookimpl(trylast=True)
def proton_default_backend() -> str | None:
    """Return "cpu" without a GPU driver, after every other plugin."""
    return "cpu" if find_gpu_driver() is None else None
