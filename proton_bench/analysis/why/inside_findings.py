"""Findings about scopes inside kernels: what warps wait for, and which warps take longest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proton_bench.analysis.kernels.scope_cycles import (
    CYCLES,
    INSTANCES,
    INSTRUMENTED,
    KEPT,
    LOST,
)
from proton_bench.analysis.metrics.values import own_numbers
from proton_bench.analysis.why.run import WholeRun
from proton_bench.analysis.why.verdict import Claim, Evidence
from proton_bench.model.frame import FrameKind
from proton_bench.support.units import count_text, share_text

_NORMALIZED, _LOSSY = "normalized_cycles", "lossy_warps"
# Cycles of a record on an H200, where scopes with nothing to wait for took 23 to 36.
_RECORD = 36.0
_SLOWEST_KHZ = 1_000_000  # where it is not known: GPUs at work are not slower
_MOST = 3  # kernels
_DOMINANT = 0.3  # of the cycles; of several kinds of operations the largest often has less
# In even kernels the slowest hundredth of the warps took up to 1.3 times the mean.
_UNEVEN, _SLOWEST, _FEWEST = 2.0, 0.99, 100

# Scopes of passes are named by kind, number and line.
_SCOPE = re.compile(r"([a-z_]+)\.\d+(?:@.*)?", re.DOTALL)
_LOOP = "loop"
_LOADS, _DOTS = ("load", "load_wait"), ("dot", "dot_issue", "dot_commit", "dot_wait")
_ISSUED = "load_issue"
# What warps do in scopes of each kind, and what helps where that takes most of their cycles.
_MORE_LOADS = (
    "loads that are issued earlier: more num_stages, larger tiles; more warps or programs per "
    "multiprocessor"
)
_FEWER_STORES = "wider, coalesced stores; TMA stores, which go on beside the next work"
_KINDS: dict[str, tuple[str, str]] = {
    "load": ("loads", _MORE_LOADS),
    "load_issue": ("issues loads", "fewer and larger loads: TMA, wider types, larger tiles"),
    "load_wait": ("waits for loads", _MORE_LOADS),
    "local_load": ("loads shared memory", "no bank conflicts, fewer changes of layout"),
    "tmem_load": ("loads tensor memory", "fewer and larger loads of results"),
    "local_store": ("stores to shared memory", "no bank conflicts, fewer changes of layout"),
    "tmem_store": ("stores to tensor memory", "fewer changes of layout"),
    "store": ("stores", _FEWER_STORES),
    "store_issue": ("issues stores", _FEWER_STORES),
    "store_wait": ("waits for stores", _FEWER_STORES),
    "atomic": ("waits for atomics", "reduce within a program first, or into several copies"),
    "barrier": ("waits at a barrier", "fewer barriers, evenly divided work, fewer warps"),
    "arrive": ("arrives at barriers", "fewer and larger parts between partitions"),
    "barrier_wait": (
        "waits for other warps",
        "evenly divided work between partitions, more stages between them",
    ),
    "grid_wait": ("waits for the grid before", "launch that kernel earlier, or make it shorter"),
} | dict.fromkeys(
    _DOTS, ("multiplies", "that is what the kernel is for: a smaller type, larger tiles")
)
_OTHER_WORK = (
    "arithmetic, and waits for loads where their values are used first: more loads on their way "
    "(num_stages, unrolled loops), more warps, fewer operations"
)


@dataclass(frozen=True, slots=True)
class _Scope:
    """A scope inside a kernel.

    Attributes:
        row: Its row.
        kind: Kind of the operation that a pass bracketed, "" for a scope of the source.
        cycles: Of all passes of all warps, with scopes inside, without what records cost.
        own: The part of it outside of these.
        is_whole: Whether its own passes were kept; else it is the sum of the scopes inside.
    """

    row: int
    kind: str
    cycles: float
    own: float
    is_whole: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Kernel:
    """A kernel with scopes inside.

    Attributes:
        row: Its row.
        scopes: Its scopes, in the order of rows.
        tops: Rows of those that are in no other scope.
        time_ns: Time of the kernel, or else what one of its warps takes in all launches.
        is_timed: Whether it is the first.
    """

    row: int
    scopes: tuple[_Scope, ...]
    tops: tuple[int, ...]
    time_ns: float
    is_timed: bool

    @property
    def cycles(self) -> float:
        """Of all outermost scopes."""
        return sum(scope.cycles for scope in self.scopes if scope.row in self.tops)

    def rows(self, gain: float) -> dict[int, float]:
        """Return a part of its recorded time, from 0 to 1, as what a claim saves of rows."""
        return {self.row: self.time_ns * gain} if self.is_timed else {}

    def pools(self, gain: float) -> dict[str, float]:
        """Return the same of a time that was not recorded, which no other claim shares."""
        return {} if self.is_timed else {f"inside {self.row}": self.time_ns * gain}


def dominant_waits(run: WholeRun) -> Iterator[Claim]:
    """Find what warps of instrumented kernels do most of the time, and how much dots hide."""
    for kernel in _kernels(run)[:_MOST]:
        largest = max(kernel.scopes, key=lambda scope: scope.own)
        share = largest.own / kernel.cycles
        if share < _DOMINANT:
            continue
        name, scope = run.verdicts.facts.text(kernel.row), run.profile.name(largest.row)
        does, helps = _KINDS.get(largest.kind, ("", ""))
        if does:
            does = f", which {does}"
        elif any(run.profile.children(largest.row)):
            does, helps = " outside of the scopes in it", _OTHER_WORK
        text = f"inside {name}: {share_text(share, decimals=0)} of its cycles in {scope}{does}"
        evidence = [Evidence("scopes.dominant", text, share, "fraction of cycles")]
        for overlap in _overlaps(run, kernel):
            evidence.append(overlap)
            text += f"; {overlap.text}"
        of_dots = sum(scope.own for scope in kernel.scopes if scope.kind in _DOTS) / kernel.cycles
        gain = max(1.0 - of_dots, 0.0) if largest.kind in _DOTS else share
        yield Claim(
            text, tuple(evidence), pools=kernel.pools(gain), rows=kernel.rows(gain), helps=helps
        )


def _overlaps(run: WholeRun, kernel: _Kernel) -> Iterator[Evidence]:
    """Yield for each loop with loads and dots how much of the latency of loads is hidden at least.

    A load that was issued in an earlier round is on its way for as long as a round takes at least.
    Of that it is waited for in the scopes of waits; the rest is hidden behind other work. A load
    that is not issued ahead hides nothing from its own warp.
    """
    for loop in kernel.scopes:
        inside = range(loop.row + 1, int(run.profile.subtree_end[loop.row]))
        parts = [scope for scope in kernel.scopes if scope.row in inside]
        kinds = {scope.kind for scope in parts}
        is_inner = loop.kind == _LOOP and _LOOP not in kinds and loop.cycles > 0
        if not (is_inner and kinds & {*_LOADS, _ISSUED} and kinds & {*_DOTS}):
            continue
        dots, waits = (
            sum(scope.own for scope in parts if scope.kind in kind) / loop.cycles
            for kind in (_DOTS, _LOADS)
        )
        is_ahead = _ISSUED in kinds and "load" not in kinds
        hidden = max(1.0 - waits, 0.0) if is_ahead else 0.0
        name = run.profile.name(loop.row)
        if is_ahead:
            text = f"{share_text(hidden, decimals=0)} or more of the latency of loads is hidden"
        else:
            text = "its loads are not issued ahead, so that nothing of them is hidden"
        text = f"in {name} dots take {share_text(dots, decimals=0)}, {text}"
        yield Evidence("scopes.overlap", text, hidden, "fraction of the latency of loads")


def uneven_warps(run: WholeRun) -> Iterator[Claim]:
    """Find kernels some of whose warps take much longer, or do more rounds, than the others."""
    for kernel in _kernels(run)[:_MOST]:
        name = run.verdicts.facts.text(kernel.row)
        evidence = tuple(filter(None, (_slow_passes(run, kernel), _long_warps(run, kernel))))
        if not evidence:
            continue
        largest = max(evidence, key=lambda fact: fact.value or 0.0)
        text = f"inside {name}: warps out of balance, {largest.text}"
        gain = 1.0 - 1.0 / (largest.value or 1.0)
        yield Claim(text, evidence, pools=kernel.pools(gain), rows=kernel.rows(gain))


def _slow_passes(run: WholeRun, kernel: _Kernel) -> Evidence | None:
    """Return how much longer the slowest hundredth of the passes of its longest scope took."""
    table = run.profile.distributions.get(CYCLES)
    top = max(
        (scope for scope in kernel.scopes if scope.row in kernel.tops),
        key=lambda scope: scope.cycles,
    )
    passes = table.get(top.row) if table is not None else None
    if passes is None or passes.n < _FEWEST or top.cycles < _DOMINANT * kernel.cycles:
        return None
    ratio = (passes.quantile(_SLOWEST) or 0.0) / passes.mean if passes.mean > 0 else 0.0
    if ratio < _UNEVEN:
        return None
    text = (
        f"the slowest hundredth of {count_text(passes.n, 'pass', 'passes')} of "
        f"{run.profile.name(top.row)} took {ratio:.1f} x the mean or more"
    )
    return Evidence("scopes.uneven", text, ratio, "of the mean")


def _long_warps(run: WholeRun, kernel: _Kernel) -> Evidence | None:
    """Return how many more records than the mean the warps made at least that lost some.

    All have room for as many, so those kept no fewer than the mean of all warps.
    """
    kept, lost, lossy, launches = (
        _numbers(run, name)[kernel.row] for name in (KEPT, LOST, _LOSSY, INSTRUMENTED)
    )
    cycles, normalized = _numbers(run, CYCLES), _numbers(run, _NORMALIZED)
    rows = [scope.row for scope in kernel.scopes if normalized[scope.row] > 0]
    if not (rows and kept > 0 and lost > 0 and lossy > 0):
        return None
    warps = round(cycles[rows[0]] / normalized[rows[0]] * launches)
    ratio = (kept / max(warps, 1) + lost / lossy) / ((kept + lost) / max(warps, 1))
    if lossy >= warps or ratio < _UNEVEN:
        return None
    text = (
        f"{count_text(lossy, 'warp')} of {count_text(warps, 'warp')} made {ratio:.1f} x as many "
        "records as the mean or more"
    )
    return Evidence("scopes.long_warps", text, ratio, "of the mean")


def _kernels(run: WholeRun) -> list[_Kernel]:
    """Return the kernels with scopes inside, those with most cycles first."""
    profile = run.profile
    cycles = _numbers(run, CYCLES)
    if not any(cycles):
        return []
    own_ns, normalized = run.verdicts.facts.own_ns, _numbers(run, _NORMALIZED)
    kernels = []
    for row in range(1, len(profile)):
        if profile.kind(row) is not FrameKind.KERNEL:
            continue
        scopes = _scopes(run, row, cycles)
        tops = tuple(scope.row for scope in scopes if profile.parents[scope.row] == row)
        if not sum(scope.cycles for scope in scopes) > 0:
            continue
        time_ns, is_timed = float(own_ns[row]), bool(own_ns[row] > 0)
        if not is_timed:
            device = profile.device(tops[0])
            khz = (device.clock_rate_khz if device is not None else 0) or _SLOWEST_KHZ
            time_ns = sum(normalized[top] for top in tops) / khz * 1e6
        kernels.append(_Kernel(row, scopes, tops, time_ns, is_timed))
    return sorted(kernels, key=lambda kernel: -kernel.cycles)


def _scopes(run: WholeRun, kernel: int, cycles: Sequence[float]) -> tuple[_Scope, ...]:
    """Return the scopes inside a kernel, in the order of rows.

    Each pass has two records, which cost its scope one and the scope around it one more. No more
    than its shortest scope takes, a record costs.
    """
    profile, passes = run.profile, _numbers(run, INSTANCES)
    rows = [
        row for row in range(kernel + 1, int(profile.subtree_end[kernel])) if _is_scope(run, row)
    ]
    known = [row for row in rows if cycles[row] > 0 and passes[row] > 0]
    cost = min((cycles[row] / passes[row] for row in known), default=0.0)
    cost = min(cost, _RECORD)
    whole: dict[int, tuple[float, float]] = {}  # cycles as recorded, and without records
    scopes: list[_Scope] = []
    for row in reversed(rows):  # what is inside comes first
        inside = [child for child in profile.children(row) if child in whole]
        nested, adjusted = (sum(whole[child][part] for child in inside) for part in (0, 1))
        own = 0.0
        if cycles[row] > 0:
            records = passes[row] + sum(passes[child] for child in inside)
            own = max(cycles[row] - nested - cost * records, 0.0)
        whole[row] = (cycles[row] or nested, own + adjusted)
        kind = _kind(profile.name(row))
        scopes.append(_Scope(row, kind, own + adjusted, own, cycles[row] > 0))
    return tuple(reversed(scopes))


def _is_scope(run: WholeRun, row: int) -> bool:
    return run.profile.kind(row) is FrameKind.SCOPE


def _numbers(run: WholeRun, name: str) -> list[float]:
    """Return the number of each row alone, 0 where it has none."""
    values: list[float] = own_numbers(run.profile, name).tolist()
    return values


def _kind(name: str) -> str:
    match = _SCOPE.fullmatch(name)
    return match[1] if match is not None else ""
