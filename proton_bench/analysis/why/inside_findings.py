"""Findings about scopes inside kernels: what warps wait for, and which warps take longest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from proton_bench.analysis.kernels.scope_cycles import CYCLES
from proton_bench.analysis.metrics.values import own_numbers
from proton_bench.analysis.why.run import WholeRun
from proton_bench.analysis.why.verdict import Claim, Evidence
from proton_bench.model.arrays import Floats
from proton_bench.model.frame import FrameKind
from proton_bench.support.units import count_text, share_text

_NORMALIZED = "normalized_cycles"
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
    "work between those, such as arithmetic and the first use of what was loaded: more loads "
    "on their way, fewer operations in the loop"
)


@dataclass(frozen=True, slots=True)
class _Scope:
    """A scope inside a kernel.

    Attributes:
        row: Its row.
        kind: Kind of the operation that a pass bracketed, "" for a scope of the source.
        cycles: Of all passes of all warps, with scopes inside.
        own: The part of it outside of these.
    """

    row: int
    kind: str
    cycles: float
    own: float


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
        if not does and any(run.profile.children(largest.row)):
            does, helps = "between the scopes inside", _OTHER_WORK
        what = f"{share_text(share, decimals=0)} of its cycles in {scope}"
        text = f"inside {name}: {what}" + (f", which {does}" if largest.kind in _KINDS else "")
        if does and largest.kind not in _KINDS:
            text += f", {does}"
        evidence = [Evidence("scopes.dominant", text, share, "fraction of cycles")]
        for overlap in _overlaps(run, kernel):
            evidence.append(overlap)
            text += f"; {overlap.text}"
        of_dots = sum(each.own for each in kernel.scopes if each.kind in _DOTS) / kernel.cycles
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
    """Find kernels some of whose warps take much longer than the others."""
    table = run.profile.distributions.get(CYCLES)
    for kernel in _kernels(run)[:_MOST] if table is not None else ():
        top = max(
            (scope for scope in kernel.scopes if scope.row in kernel.tops),
            key=lambda scope: scope.cycles,
        )
        passes = table.get(top.row) if table is not None else None
        slowest = passes.quantile(_SLOWEST) if passes is not None else None
        if passes is None or not slowest or not passes.n >= _FEWEST or not passes.mean > 0:
            continue
        ratio = slowest / passes.mean
        if ratio < _UNEVEN or top.cycles < _DOMINANT * kernel.cycles:
            continue
        name, scope = run.verdicts.facts.text(kernel.row), run.profile.name(top.row)
        longest = max(passes.maximum / passes.mean, ratio)
        text = (
            f"inside {name}: warps out of balance, the slowest of "
            f"{count_text(passes.n, 'pass', 'passes')} of {scope} took {longest:.1f} x the mean, "
            f"a hundredth {ratio:.1f} x or more"
        )
        evidence = Evidence("scopes.uneven", text, ratio, "of the mean")
        gain = 1.0 - 1.0 / longest
        yield Claim(text, (evidence,), pools=kernel.pools(gain), rows=kernel.rows(gain))


def _kernels(run: WholeRun) -> list[_Kernel]:
    """Return the kernels with scopes inside, those with most cycles first."""
    profile = run.profile
    cycles = _numbers(run, CYCLES)
    if cycles is None:
        return []
    below = cycles.copy()
    below[0] = 0.0
    nested = cycles * 0.0
    for row, above in enumerate(profile.parents.tolist()):
        if above > 0:
            nested[above] += below[row]
    own_ns, normalized = run.verdicts.facts.own_ns, _numbers(run, _NORMALIZED)
    found = []
    for row in range(1, len(profile)):
        if profile.kind(row) is not FrameKind.KERNEL:
            continue
        rows = [each for each in range(row + 1, int(profile.subtree_end[row])) if cycles[each] > 0]
        tops = tuple(each for each in profile.children(row) if cycles[each] > 0)
        if not tops:
            continue
        scopes = tuple(
            _Scope(
                each, _kind(profile.name(each)), cycles[each], max(cycles[each] - nested[each], 0.0)
            )
            for each in rows
        )
        time_ns, is_timed = float(own_ns[row]), bool(own_ns[row] > 0)
        if not is_timed and normalized is not None:
            device = profile.device(row)
            khz = device.clock_rate_khz if device is not None else 0
            time_ns = sum(float(normalized[each]) for each in tops) / khz * 1e6 if khz else 0.0
        found.append(_Kernel(row, scopes, tops, time_ns, is_timed))
    return sorted(found, key=lambda kernel: -kernel.cycles)


def _numbers(run: WholeRun, name: str) -> Floats | None:
    column = run.profile.columns.get(name)
    if column is None or not column.kind.is_number:
        return None
    return own_numbers(run.profile, name)


def _kind(name: str) -> str:
    match = _SCOPE.fullmatch(name)
    return match[1] if match is not None else ""
