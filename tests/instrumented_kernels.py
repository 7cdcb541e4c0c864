"""Kernels with scopes, and their recordings, for tests of the instrumentation."""
# ruff: noqa: N803 - Triton writes compile-time parameters in capitals

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from triton.runtime import _allocation

import proton_bench.language as pl
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile
from proton_bench.recording.session.session import SessionOptions, open_session

pl.enable_semantic("triton")

PROGRAMS, BLOCK, WARPS = 4, 1024, 4
SCOPES = ("load", "load_x", "load_y", "loop", "fma", "store")  # in the order of their ids


@triton.jit
def steps(out, x, y, rounds, BLOCK: tl.constexpr):
    """Load, ``rounds`` times multiply and add, store: every scope in its place."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    with pl.scope("load"):
        with pl.scope("load_x"):
            left = tl.load(x + offsets)
        with pl.scope("load_y"):
            right = tl.load(y + offsets)
    with pl.scope("loop"):
        for _ in range(rounds):
            with pl.scope("fma"):
                left = left * 0.5 + right
    with pl.scope("store"):
        tl.store(out + offsets, left)


@triton.jit
def copied(out, x, BLOCK: tl.constexpr):
    """One scope, entered and left by calls."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pl.enter_scope("copy")
    tl.store(out + offsets, tl.load(x + offsets))
    pl.exit_scope("copy")


@triton.jit
def plain(out, x, BLOCK: tl.constexpr):
    """No scope."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets) + 1)


@triton.jit
def product(c, a, b, N, K, TILE: tl.constexpr, TILE_K: tl.constexpr):
    """Multiply matrices, with a scope for what loads, multiplies and stores."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, TILE_K)
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, K, TILE_K):
        pl.enter_scope("load")
        left = tl.load(a + rows[:, None] * K + start + inner[None, :])
        right = tl.load(b + (start + inner[:, None]) * N + columns[None, :])
        pl.exit_scope("load")
        pl.enter_scope("dot")
        sums = tl.dot(left, right, sums)
        pl.exit_scope("dot")
    pl.enter_scope("store")
    tl.store(c + rows[:, None] * N + columns[None, :], sums.to(tl.float16))
    pl.exit_scope("store")


@dataclass
class Vectors:
    """Data of the elementwise kernels, one program per 1024 elements."""

    programs: int = PROGRAMS
    x: Any = field(init=False)
    y: Any = field(init=False)
    out: Any = field(init=False)

    def __post_init__(self) -> None:
        size = self.programs * BLOCK
        # Drawn on the CPU: a capture that failed in this process leaves the GPU's generator broken.
        self.x, self.y = (torch.randn(size).cuda() for _ in range(2))
        self.out = torch.empty_like(self.x)

    def steps(self, rounds: int = 5, warps: int = WARPS) -> Any:
        return steps[(self.programs,)](
            self.out, self.x, self.y, rounds, BLOCK=BLOCK, num_warps=warps
        )

    def copied(self) -> Any:
        return copied[(self.programs,)](self.out, self.x, BLOCK=BLOCK)

    def plain(self) -> Any:
        return plain[(self.programs,)](self.out, self.x, BLOCK=BLOCK)

    def check_steps(self, rounds: int = 5) -> None:
        expected = self.x
        for _ in range(rounds):
            expected = expected * 0.5 + self.y
        torch.testing.assert_close(self.out, expected)


@dataclass(frozen=True)
class ScopeNode:
    """A scope of a kernel in a profile."""

    cycles: int
    normalized: float
    instances: int
    least: float
    most: float


class Recorded:
    """A finished session's profile.

    Args:
        profile: The profile of its file.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def scopes(self, kernel: str, above: tuple[str, ...] = ()) -> dict[tuple[str, ...], ScopeNode]:
        """Return scopes by their path below a kernel, which stands below ``above``."""
        profile, found = self.profile, {}
        for row in range(len(profile)):
            path = profile.path(row)
            if kernel not in path or not self._holds("cycles", row):
                continue
            at = path.index(kernel)
            if path[: at + 1][-len(above) - 1 : -1] != above and above:
                continue
            node = self._node(row)
            key = path[at + 1 :]
            found[key] = node if key not in found else _added(found[key], node)
        return found

    def kernel(self, name: str, metric: str) -> int:
        """Return a metric summed over all rows of a kernel; 0 where there is none."""
        column = self.profile.columns.get(metric)
        if column is None:
            return 0
        rows = [row for row in range(len(self.profile)) if self.profile.name(row) == name]
        return sum(int(column.values[row]) for row in rows)

    def paths(self) -> list[str]:
        """Return every path, for messages."""
        return [" > ".join(self.profile.path(row)) for row in range(len(self.profile))]

    def _holds(self, metric: str, row: int) -> bool:
        column = self.profile.columns.get(metric)
        return column is not None and bool(column.values[row] > 0)

    def _node(self, row: int) -> ScopeNode:
        columns = self.profile.columns
        [samples] = [each for at, each in self.profile.distributions["cycles"] if at == row]
        return ScopeNode(
            cycles=int(columns["cycles"].values[row]),
            normalized=float(columns["normalized_cycles"].values[row]),
            instances=samples.n,
            least=samples.minimum,
            most=samples.maximum,
        )


def _added(one: ScopeNode, other: ScopeNode) -> ScopeNode:
    return ScopeNode(
        one.cycles + other.cycles,
        one.normalized + other.normalized,
        one.instances + other.instances,
        min(one.least, other.least),
        max(one.most, other.most),
    )


def record(folder: Path, work: Callable[[], object], **options: Any) -> Recorded:
    """Run a function in a session of its own and read its tree.

    Args:
        folder: Where its files go.
        work: What is recorded.
        **options: Of the session; backend ``instrumentation`` by default.
    """
    options.setdefault("backend", "instrumentation")
    session = open_session(SessionOptions(name=str(folder / "recorded"), **options))
    work()
    paths = session.finalize(formats=("proton",))
    return Recorded(read_profile(paths[0]))


@dataclass(frozen=True)
class Row:
    """An event of a timeline, with its row in words."""

    name: str
    process: str
    thread: str
    begin_us: float
    duration_us: float
    args: dict[str, Any]
    category: str


def record_timeline(folder: Path, work: Callable[[], object], **options: Any) -> list[Row]:
    """Run a function in a session with ``data="trace"`` and return its events with durations.

    Args:
        folder: Where its files go.
        work: What is recorded.
        **options: Of the session; backend ``instrumentation`` by default.
    """
    options.setdefault("backend", "instrumentation")
    options.setdefault("data", "trace")
    session = open_session(SessionOptions(name=str(folder / "timeline"), **options))
    work()
    paths = session.finalize(formats=("chrome_trace",))
    return read_timeline(paths[0])


def read_timeline(path: Path) -> list[Row]:
    """Return the events with durations of a Chrome trace."""
    text = path.read_text(encoding="utf-8")
    try:
        parts = [json.loads(text)]
    except json.JSONDecodeError:  # upstream of Triton 3.6: an object per line
        parts = [json.loads(line) for line in text.splitlines()]
    events = [each for part in parts for each in part["traceEvents"]]
    names = {
        (each["name"], each["pid"], each.get("tid")): each["args"].get("name", "")
        for each in events
        if each["ph"] == "M"
    }
    processes = {pid: name for (kind, pid, _), name in names.items() if kind == "process_name"}
    threads = {
        (pid, tid): name for (kind, pid, tid), name in names.items() if kind == "thread_name"
    }
    return [
        Row(
            name=each["name"],
            process=str(processes.get(each["pid"], each["pid"])),
            thread=str(threads.get((each["pid"], each.get("tid")), each.get("tid"))),
            begin_us=float(each["ts"]),
            duration_us=float(each.get("dur", 0)),
            args=each.get("args", {}),
            category=str(each.get("cat", "")),
        )
        for each in events
        if each["ph"] == "X"
    ]


class BufferTap:
    """Notes the profile buffers that Triton is given while a session records."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int]] = []  # address, bytes
        self._inner = _allocation._profile_allocator.get()

    def __enter__(self) -> BufferTap:
        _allocation.set_profile_allocator(self._allocate)
        return self

    def __exit__(self, *_error: object) -> None:
        _allocation.set_profile_allocator(self._inner)

    def bytes(self) -> bytes:
        """Return the content of the last buffer, when everything has run."""
        torch.cuda.synchronize()
        address, size = self.taken[-1]
        content = ctypes.create_string_buffer(size)
        code = ctypes.CDLL("libcuda.so.1").cuMemcpyDtoH_v2(
            content, ctypes.c_uint64(address), ctypes.c_size_t(size)
        )
        assert code == 0, f"cuMemcpyDtoH: error {code}"
        return content.raw

    def _allocate(self, size: int, alignment: int, stream: int | None) -> Any:
        buffer = self._inner(size, alignment, stream)
        self.taken.append((buffer.data_ptr(), size))
        return buffer
