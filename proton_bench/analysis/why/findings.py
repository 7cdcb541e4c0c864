"""Findings about the whole run: one table of rules, the most specific evidence first.

Each finding has an upper bound of what it can save. Bounds of two findings may be about the same
time: then the rule that stands first in the table claims it, so that ``own_ns`` can be added up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from proton_bench.analysis.accounting.calls import call_values, has_own_calls
from proton_bench.analysis.accounting.compilation import (
    compile_stage,
    outermost,
    recorded_in_ns,
)
from proton_bench.analysis.accounting.host_time import host_paths
from proton_bench.analysis.metrics.peak import device_peaks
from proton_bench.analysis.naming.frame_names import Places, frame_texts, parse_frame
from proton_bench.analysis.view.names import rows_below
from proton_bench.analysis.why.cpu_findings import (
    hottest_operators,
    other_code,
    other_code_ns,
    small_operators,
)
from proton_bench.analysis.why.host_findings import allocator_stalls, compilations, input_bound
from proton_bench.analysis.why.inside_findings import dominant_waits, uneven_warps
from proton_bench.analysis.why.rank_findings import slow_links, slow_ranks
from proton_bench.analysis.why.row_facts import RowFacts
from proton_bench.analysis.why.rules import COMPILERS, LOADERS
from proton_bench.analysis.why.run import (
    SYNC_OPS,
    WholeRun,
    host_limit_ns,
    most_sampled_ns,
    sampled_in_ns,
)
from proton_bench.analysis.why.verdict import (
    BETWEEN,
    BUSY,
    OTHER_CODE,
    OUTSIDE,
    WAITING,
    Claim,
    Evidence,
    Finding,
)
from proton_bench.errors import MetricError
from proton_bench.model.device import Device
from proton_bench.model.metrics.device_use import LONG_IDLE_NS
from proton_bench.support.units import Unit, bytes_text, count_text, duration_text, share_text

# Smaller findings are not worth a line: parts of the run, and of the time of all work.
_LEAST_RUN, _LEAST_WORK = 0.001, 0.02
_IDLE = 0.1
_SMALL_NS = 10_000.0  # about what a launch from Python takes
_SMALL_SHARE = 0.5  # of the launches
_MOST_LINES = 3
_LIMITED = "more needs a faster host too"
_ZERO_TENSOR = 0.05
_THREE_DIGITS = 99.5

_BEST_PRACTICES = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html"
_TUNING = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"


@dataclass(frozen=True, slots=True)
class FindingRule:
    """One row of the table.

    Attributes:
        id: Name of the finding.
        find: Yields what it finds in a run.
        helps: What usually helps.
        source: Where the rule comes from.
        is_once: Whether a longer run would have no more of it.
    """

    id: str
    find: Callable[[WholeRun], Iterator[Claim]]
    helps: str
    source: str
    is_once: bool = False


def find(run: WholeRun) -> tuple[Finding, ...]:
    """Return the findings of a run, the one that can save most first.

    What a longer run would not have more of comes last.
    """
    left: dict[object, float] = {
        BETWEEN: run.between_ns,
        OUTSIDE: run.outside_ns,
        WAITING: float(sum(device.use.waiting_ns for device in run.devices)),
        BUSY: max(run.span_ns - run.idle_ns, 0.0),
        OTHER_CODE: other_code_ns(run),
    }
    own_ns = run.verdicts.facts.own_ns
    left.update({row: float(own_ns[row]) for row in run.verdicts.facts.rows()})
    free_ns = run.span_ns  # work of several devices is longer than the run
    limit_ns = _host_limit_ns(run)
    found: list[Finding] = []
    once: set[int] = set()
    for rule in FINDINGS:
        for claim in rule.find(run):
            taken_ns = 0.0
            for key, part_ns in chain(claim.pools.items(), claim.rows.items()):
                own = min(max(part_ns, 0.0), left.get(key, 0.0))
                left[key] = left.get(key, 0.0) - own
                taken_ns += own
            taken_ns = min(taken_ns, free_ns)
            free_ns -= taken_ns
            is_limited = claim.work_ns > limit_ns
            gain_ns = min(claim.gap_ns + min(claim.work_ns, limit_ns), run.span_ns)
            if (
                gain_ns < min(_LEAST_RUN * run.span_ns, _LEAST_WORK * run.work_ns)
                or not gain_ns > 0
            ):
                continue
            if rule.is_once and not claim.is_in_steps:
                once.add(len(found))
            rows = sorted(claim.rows, key=lambda row: -claim.rows[row])
            text = claim.text
            if rows and claim.gap_ns > claim.work_ns:  # more than the time of its kernels
                text += f", and {duration_text(claim.gap_ns)} between kernels"
            found.append(
                Finding(
                    id=rule.id,
                    text=f"{text}; {_LIMITED}" if is_limited else text,
                    evidence=(*claim.evidence, _limit_evidence(limit_ns))
                    if is_limited
                    else claim.evidence,
                    helps=claim.helps or rule.helps,
                    source=rule.source,
                    gain_ns=gain_ns,
                    own_ns=min(taken_ns, gain_ns),
                    rows=tuple(rows),
                )
            )
    order = sorted(range(len(found)), key=lambda at: (at in once, -found[at].gain_ns))
    return tuple(found[at] for at in order)


def _host_limit_ns(run: WholeRun) -> float:
    if len(run.devices) != 1 or run.is_one_by_one:
        return math.inf
    in_sync_ns, _ = _sync_lines(run)
    return host_limit_ns(run.recorded, run.devices[0], in_sync_ns=in_sync_ns)


def _limit_evidence(limit_ns: float) -> Evidence:
    text = f"the host waits for the GPU for {duration_text(limit_ns)} at most"
    return Evidence("host.limit", text, limit_ns, "ns")


def _percent(fraction: float) -> str:
    return share_text(fraction, decimals=0)


def _rough(time_ns: float) -> str:
    """Return a time with two digits or three, which are enough to compare it with another."""
    unit = Unit.of_times([time_ns])
    number = time_ns / unit.scale
    digits = f"{number:.2g}" if number < _THREE_DIGITS else f"{number:.0f}"
    return f"{digits} {unit.name}"


# -- the GPU has nothing to do -------------------------------------------------------------------
# Functions of torch/cuda that wait for the device.
_SYNC_FUNCTIONS = frozenset({"synchronize", "_sleep"})
_CUDA_FOLDER = "/torch/cuda/"


def _syncs(run: WholeRun) -> Iterator[Claim]:
    """Find where the host waits for the device, so that the device then waits for the host."""
    if not run.open_ns > 0 or not _has_idle_device(run):
        return
    waits_ns, lines = _sync_lines(run)
    evidence = _sync_evidence(run)
    evidence += [
        Evidence("host.sync", f"{duration_text(spent_ns)} in {line}", float(spent_ns), "ns")
        for line, spent_ns in islice(lines.items(), _MOST_LINES)
    ]
    if not evidence:
        return
    waits_ns += sampled_in_ns(run.recorded, SYNC_OPS)
    shown_ns = max(
        waits_ns, most_sampled_ns(run.recorded, waits_ns), recorded_in_ns(run.recorded, SYNC_OPS)
    )
    text = f"the host waits for the GPU: {', '.join(each.text for each in evidence[:2])}"
    yield Claim(text, tuple(evidence), pools={BETWEEN: min(shown_ns, run.open_ns)})


def _sync_evidence(run: WholeRun) -> list[Evidence]:
    return [
        Evidence("ops.sync", f"{_counted(count, unit)} {name}", float(count), unit)
        for (name, unit), count in _sync_calls(run).items()
    ]


def _counted(count: float, unit: str) -> str:
    if unit == "calls":
        return f"{count_text(count, 'call')} of"
    return f"{count_text(count, 'launch', 'launches')} in"


def _has_idle_device(run: WholeRun) -> bool:
    return any(device.use.idle_ns >= _IDLE * device.use.wall_ns for device in run.devices)


def _sync_calls(run: WholeRun) -> dict[tuple[str, str], float]:
    """Return the outermost operators that wait, with their calls, or else what they launched."""
    profile = run.profile
    try:
        counts = call_values(profile).values
    except MetricError:
        return {}
    is_called = has_own_calls(profile)
    found: dict[tuple[str, str], float] = {}
    for row in outermost(profile, SYNC_OPS):
        count = float(counts[row])
        if count > 0:
            key = (profile.name(row), "calls" if is_called[row] else "launches")
            found[key] = found.get(key, 0) + count
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def _sync_lines(run: WholeRun) -> tuple[float, dict[str, int]]:
    """Return the host's time in functions that wait, and the lines of own code that call them."""
    places = Places.of(run.recorded.provenance)
    spent: dict[str, int] = {}
    for path in host_paths(run.recorded):
        frames = [(name, parse_frame(name)) for name in path.path]
        is_wait = any(
            frame is not None and frame.function in _SYNC_FUNCTIONS and _CUDA_FOLDER in frame.file
            for _, frame in frames
        )
        own = [name for name, frame in frames if frame and not places.library_of(name)]
        if is_wait and own and not compile_stage(path.path):  # tuners wait for their trials
            spent[own[-1]] = spent.get(own[-1], 0) + path.wall_ns
    texts = frame_texts(spent, places)
    ordered = sorted(spent.items(), key=lambda each: -each[1])
    return float(sum(spent.values())), {texts[name]: spent_ns for name, spent_ns in ordered}


def _launches(run: WholeRun) -> Iterator[Claim]:
    """Find streams of kernels that the host launches more slowly than the device runs them."""
    for device in run.devices:
        use = device.use
        if use.short_idle_ns < _IDLE * use.wall_ns or use.launches <= 0:
            continue
        rows = [
            row
            for row in run.verdicts.facts.rows()
            if int(run.profile.device_rows[row]) == use.device
        ]
        facts = [run.verdicts.facts.of(row) for row in rows]
        share = min(_small_launches(facts, use.launches) / use.launches, 1.0)
        if share < _SMALL_SHARE:
            continue
        pace_ns = (use.busy_ns + use.short_idle_ns) / use.launches
        launches = count_text(use.launches, "launch", "launches")
        evidence = [
            Evidence("device.launches", f"{launches} on {device.device}", use.launches, "launches"),
            Evidence(
                "device.pace",
                f"one every {_rough(pace_ns)}",
                pace_ns,
                "ns",
            ),
            Evidence(
                "device.small",
                f"{_percent(share)} of them below {_SMALL_NS / 1e3:.0f} us",
                share,
                "fraction",
            ),
        ]
        if device.latency_ns is not None:
            text = f"a kernel starts {duration_text(device.latency_ns)} after its launch (median)"
            evidence.append(Evidence("device.latency", text, device.latency_ns, "ns"))
        what = "launch-bound" if device.reason == "launch-bound" else "small kernels"
        yield Claim(
            f"{what}: {launches}, {evidence[2].text}, {evidence[1].text}",
            tuple(evidence),
            pools={BETWEEN: run.short_gaps_ns(use)},
        )


def _small_launches(facts: Sequence[RowFacts], launches: int) -> float:
    """Return how many of the launches of a device give it little work.

    Those that are not of single kernels are of CUDA graphs.
    """
    single = [each for each in facts if not each.is_captured]
    graphs = max(launches - sum(each.launches for each in single), 0.0)
    graphs_ns = sum(each.time_ns for each in facts if each.is_captured)
    are_small = 0.0 < graphs_ns < _SMALL_NS * graphs
    small = sum(each.launches for each in single if each.mean_ns < _SMALL_NS)
    return small + (graphs if are_small else 0.0)


def _gaps(run: WholeRun) -> Iterator[Claim]:
    """Find the gaps that nothing above explains: beside late launches those that are long."""
    if not _has_idle_device(run):
        return
    gaps_ns, text = run.open_ns, "GPU idle between kernels"
    causes = chain(input_bound(run), allocator_stalls(run))
    gaps_ns -= sum(claim.pools.get(BETWEEN, 0.0) for claim in causes)
    if any(_launches(run)):
        long_ns = run.most(device.use.long_idle_ns for device in run.devices)
        gaps_ns -= max(run.between_ns - long_ns, 0.0)
        text = f"{text} for {duration_text(LONG_IDLE_NS)} and more at once"
    if not gaps_ns > 0 or gaps_ns < _IDLE * run.between_ns:
        return
    share = gaps_ns / run.span_ns
    evidence = Evidence("device.idle", text, share, "fraction of the run")
    helps = "" if run.times.is_sampled else "see what the host does: proton run samples it"
    waits = _sync_evidence(run)
    yield Claim(text, (evidence, *waits), pools={BETWEEN: gaps_ns}, helps=helps)


def _no_work(run: WholeRun) -> Iterator[Claim]:
    if not run.outside_ns > 0 or run.outside_ns < _IDLE * run.span_ns:
        return
    share = run.outside_ns / run.span_ns
    text = "before or after GPU work"
    evidence = Evidence("device.outside", text, share, "fraction of the run")
    yield Claim(text, (evidence,), pools={OUTSIDE: run.outside_ns})


def _waiting(run: WholeRun) -> Iterator[Claim]:
    waiting_ns = float(sum(device.use.waiting_ns for device in run.devices))
    wall_ns = float(sum(device.use.wall_ns for device in run.devices))
    if not waiting_ns > 0 or waiting_ns < _IDLE / 2 * wall_ns:
        return
    share = waiting_ns / wall_ns
    text = f"only collectives run in {_percent(share)} of the devices' time"
    evidence = Evidence("device.waiting", text, share, "fraction")
    yield Claim(text, (evidence,), pools={WAITING: waiting_ns * run.per_device})


# -- work that could be cheaper ------------------------------------------------------------------
# Rate of FP32 without tensor cores / rate of TF32 with them, by NVIDIA's data sheets: see
# `peak_rates` for TF32; FP32 has 64 or 128 FMA per multiprocessor and clock.
_FP32_OF_TF32 = {
    "80": 1 / 8,
    "86": 1 / 2,
    "87": 1 / 4,
    "89": 1 / 2,
    "90": 1 / 8,
    "100": 1 / 16,
    "103": 1 / 16,
    "120": 1 / 2,
    "121": 1 / 2,
}
_PRODUCTS = ("gemm f32", "gemv f32", "conv f32", "conv implicit f32")
_ON_TENSOR_CORES = ("tf32", "tensorop", "1688", "nvjet", "bf16", "f16")
# Part of the FP32 peak that a product reaches at least, where its counter is not recorded: the more
# it reaches, the less there is to gain.
_LEAST_FP32 = 0.5


def _products(run: WholeRun) -> Iterator[Claim]:
    """Find products in FP32 for which tensor cores stand idle."""
    gains: dict[int, float] = {}
    tensor: list[float] = []
    time_ns = 0.0
    for row in run.verdicts.facts.rows():
        facts = run.verdicts.facts.of(row)
        part = _part_of_tf32(facts.device)
        raw = run.profile.name(row).lower()
        if part is None or not facts.name.startswith(_PRODUCTS) or "splitk reduce" in facts.name:
            continue
        if any(each in raw for each in _ON_TENSOR_CORES):
            continue
        use = facts.uses.get("tensor")
        if use is not None and use.fraction >= _ZERO_TENSOR:
            continue
        if use is not None:
            tensor.append(use.fraction)
        fp32 = facts.uses.get("fp32")
        reached = fp32.fraction if fp32 is not None else _LEAST_FP32
        gains[row] = facts.time_ns * (1.0 - min(reached, 1.0) * part)
        time_ns += facts.time_ns
    if not gains:
        return
    share = time_ns / run.work_ns
    text = f"FP32 products without tensor cores: {_percent(share)} of GPU time"
    evidence = [Evidence("kernels.fp32", text, share, "fraction of GPU time")]
    largest = max(gains, key=lambda row: gains[row])
    name = run.verdicts.facts.text(largest)
    evidence.append(Evidence("kernels.largest", f"most of it in {name}", gains[largest], "ns"))
    if tensor:
        mean = sum(tensor) / len(tensor)
        evidence.append(
            Evidence("counter.tensor", "tensor cores idle by counters", mean, "fraction")
        )
    yield Claim(text, tuple(evidence), rows=gains)


def _part_of_tf32(device: Device | None) -> float | None:
    if device is None or device.kind != "CUDA" or not device.arch.isdecimal():
        return None
    return _FP32_OF_TF32.get(device.arch)


_CHAINED = ("elementwise ", "reduce ")
_FOREACH, _FUSED = "foreach ", "fused"
_OF_ADAM = ("foreach sqrt", "foreach divides")
# Others, such as apex's, are fused by their own names.
_OPTIMIZER_STEP = re.compile(
    r"Optimizer\.step\b(?!#\w*fused)|/torch/optim/[^/]*@step$", re.IGNORECASE
)
_OPTIMIZER_FOLDER = "/torch/optim/"
_USUAL = 0.05  # of the time of a chain


def _optimizer(run: WholeRun) -> Iterator[Claim]:
    """Find an optimizer that passes over all parameters once per operation."""
    # The state stays: a fused kernel moves what each of them moves.
    found = _Chain.of(run, _optimizer_rows(run), max)
    if found is None:
        return
    share = found.time_ns / run.work_ns
    text = f"unfused optimizer: {found.kernels} kernels for one, {_percent(share)} of GPU time"
    evidence, gap_ns = found.evidence(run, text), found.gap_ns(run)
    host_ns = _in_optimizers_ns(run)
    if gap_ns > 0 and host_ns > 0:
        host = f"the host is in torch.optim for {duration_text(host_ns)} at most"
        evidence += (Evidence("host.optimizer", host, host_ns, "ns"),)
        gap_ns = min(max(gap_ns, host_ns), run.open_ns)
    yield Claim(text, evidence, pools={BETWEEN: gap_ns}, rows=found.gains)


def _optimizer_rows(run: WholeRun) -> list[int]:
    """Return the foreach kernels of optimizers: other code, such as averages of weights, has some.

    They are below the steps of optimizers. Where no step was recorded, they are those of a run
    without any fused one that has operations which Adam and its kin have.
    """
    facts = run.verdicts.facts
    texts = {row: facts.text(row) for row in facts.rows()}
    rows = [row for row, text in texts.items() if text.startswith(_FOREACH)]
    is_step = np.array([_OPTIMIZER_STEP.search(text) is not None for text in run.profile.strings])
    below = rows_below(is_step[run.profile.frames], run.profile.subtree_end)
    if bool((below & (facts.own_ns > 0)).any()):
        return [row for row in rows if below[row] and _FUSED not in texts[row]]
    is_fused = any(_FUSED in texts[row] for row in rows)
    is_adam = any(texts[row].startswith(_OF_ADAM) for row in rows)
    return rows if is_adam and not is_fused else []


def _in_optimizers_ns(run: WholeRun) -> float:
    """Return the most time that the host was in optimizers of torch, 0 if it was not sampled."""
    return most_sampled_ns(
        run.recorded,
        sum(
            path.wall_ns
            for path in host_paths(run.recorded)
            if any(
                frame is not None and _OPTIMIZER_FOLDER in frame.file
                for frame in map(parse_frame, path.path)
            )
        ),
    )


def _chains(run: WholeRun) -> Iterator[Claim]:
    """Find layers with several elementwise kernels, all of them in one finding."""
    groups: dict[tuple[int, bool], list[int]] = {}
    for row in run.verdicts.facts.rows():
        if run.verdicts.facts.text(row).startswith(_CHAINED):
            groups.setdefault(run.owners[row], []).append(row)
    chains = {
        owner: found
        for owner, rows in groups.items()
        # Kernels without a layer or scope above them may be unrelated.
        if owner[0] > 0 and (found := _Chain.of(run, rows)) is not None
    }
    if not chains:
        return
    time_ns = sum(each.time_ns for each in chains.values())
    largest = max(chains, key=lambda owner: chains[owner].time_ns)
    name = run.profile.name(largest[0]) + (" backward" if largest[1] else "")
    share = time_ns / run.work_ns
    text = (
        f"unfused elementwise kernels: {_percent(share)} of GPU time, "
        f"such as {chains[largest].kernels} for one in {name}"
    )
    gains = {row: gain for each in chains.values() for row, gain in each.gains.items()}
    gap_ns = min(sum(each.gap_ns(run) for each in chains.values()), run.open_ns)
    evidence = chains[largest].evidence(run, text)
    yield Claim(text, evidence, pools={BETWEEN: gap_ns}, rows=gains)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Kernels that one kernel could replace.

    Attributes:
        gains: Time in ns that each row can save at most: one launch of a kernel remains for each
            call.
        kernels: Launches that one could replace.
        spared: Launches by the host that are spared in all calls.
        time_ns: Time of all of them.
    """

    gains: Mapping[int, float]
    kernels: int
    spared: float
    time_ns: float

    @classmethod
    def of(
        cls, run: WholeRun, rows: Sequence[int], remains: Callable[[Iterable[float]], float] = min
    ) -> _Chain | None:
        """Return the chain of these rows, None if they are not two kernels per call.

        Args:
            run: The run.
            rows: Rows of kernels.
            remains: Which of their times per launch one kernel instead of all takes at least. Of a
                chain it reads one input and writes one output, as the cheapest does.
        """
        facts = [run.verdicts.facts.of(row) for row in rows]
        known = [each for each in facts if each.launches > 0]
        if not known or len(known) < len(facts):
            return None
        time_ns = sum(each.time_ns for each in known)
        # Kernels of rare shapes say nothing of how often the layer is called.
        usual = [each for each in known if each.time_ns >= _USUAL * time_ns] or known
        calls = min(each.launches for each in usual)
        launches = sum(each.launches for each in known)
        kernels = round(launches / calls)
        rest_ns = calls * remains(each.mean_ns for each in known)
        if kernels < 2 or not time_ns > 0:
            return None
        part = max(1.0 - rest_ns / time_ns, 0.0)
        gains = {row: each.time_ns * part for row, each in zip(rows, facts, strict=True)}
        single = sum(each.launches for each in known if not each.is_captured)
        return cls(gains, kernels, (launches - calls) * single / launches, time_ns)

    def gap_ns(self, run: WholeRun) -> float:
        """Return the gaps that the spared launches cause at most, where the device is idle.

        Each launch is taken to cost the host the same.
        """
        launches = sum(device.use.launches for device in run.devices)
        if not launches > 0 or not _has_idle_device(run):
            return 0.0
        gaps_ns = run.most(run.short_gaps_ns(device.use) for device in run.devices)
        return gaps_ns * min(self.spared / launches, 1.0)

    def evidence(self, run: WholeRun, text: str) -> tuple[Evidence, ...]:
        """Return the chain as evidence, with its bytes where counters tell."""
        found = [
            Evidence("kernels.chain", text, float(self.kernels), "kernels for one"),
        ]
        moved = _moved_bytes(run, self.gains)
        if moved is not None:
            size = bytes_text(moved)
            found.append(Evidence("counter.dram", f"they move {size} of DRAM", moved, "bytes"))
        return tuple(found)


def _moved_bytes(run: WholeRun, rows: Mapping[int, float]) -> float | None:
    """Return the bytes of DRAM that rows moved, None if counters do not tell for one of them."""
    total = 0.0
    for row in rows:
        facts = run.verdicts.facts.of(row)
        use = facts.uses.get("dram")
        peak = device_peaks(facts.device).get("bytes") if facts.device is not None else None
        if use is None or not peak:
            return None
        total += use.fraction * peak * facts.time_ns / 1e9
    return total


_LARGE_BYTES = 1 << 20
_PAGEABLE_GB_S = 12.0


def _copies(run: WholeRun) -> Iterator[Claim]:
    """Find large copies between host and device that are as slow as those of pageable memory."""
    gains: dict[int, float] = {}
    moved = 0.0
    for row in run.verdicts.facts.rows():
        facts = run.verdicts.facts.of(row)
        if facts.name not in {"<memcpy H2D>", "<memcpy D2H>"} or not facts.launches > 0:
            continue
        is_large = facts.moved_bytes >= _LARGE_BYTES * facts.launches
        if is_large and facts.moved_bytes / facts.time_ns < _PAGEABLE_GB_S:
            gains[row] = facts.time_ns
            moved += facts.moved_bytes
    if not gains:
        return
    time_ns = sum(gains.values())
    size = bytes_text(moved)
    text = f"copies of {size} at {moved / time_ns:.1f} GB/s, as slow as those of pageable memory"
    evidence = Evidence("row.rate", text, moved / time_ns, "GB/s")
    yield Claim(text, (evidence,), rows=gains)


# Bits of NVML's reasons for a lower clock; idle GPUs and clocks of applications are not limits.
_THROTTLES = {
    0x04: "the power limit",
    0x08: "a slowdown by hardware",
    0x20: "the temperature",
    0x40: "the temperature, by hardware",
    0x80: "an external power brake",
}


def _capped(run: WholeRun) -> Iterator[Claim]:
    """Find kernels that a low clock slows down."""
    gains: dict[int, float] = {}
    for row in run.verdicts.facts.rows():
        verdict = run.verdicts.own(row)
        if verdict is not None and verdict.kind == "power-capped" and verdict.gain_ns:
            gains[row] = verdict.gain_ns
    if not gains:
        return
    largest = max(gains, key=lambda row: gains[row])
    name = run.verdicts.facts.text(largest)
    clock = run.verdicts.facts.of(largest).clock
    said = _throttles(run)
    cause = f" by {said[0].text}" if said else ""
    text = f"SM clock lowered{cause} to {_percent(clock)} in {name}"
    evidence = Evidence("counter.clock", text, clock, "fraction of highest clock")
    yield Claim(text, (evidence, *said), rows=gains)


def _throttles(run: WholeRun) -> tuple[Evidence, ...]:
    """Return the reasons for a lower clock that NVML gave at the start or the end."""
    bits = 0
    for when in ("gpus_at_start", "gpus_at_end"):
        gpus = run.recorded.provenance.get(when)
        for gpu in gpus if isinstance(gpus, tuple) else ():
            said = gpu.get("throttle_reasons") if isinstance(gpu, Mapping) else None
            bits |= said if type(said) is int and said > 0 else 0
    return tuple(
        Evidence("nvml.throttle", reason, float(bit), "bit of NVML's clock event reasons")
        for bit, reason in _THROTTLES.items()
        if bits & bit
    )


FINDINGS: tuple[FindingRule, ...] = (
    FindingRule(
        "input-bound",
        input_bound,
        "num_workers of the DataLoader, so that it is read during the step; a faster transform",
        LOADERS,
    ),
    FindingRule(
        "compile",
        compilations,
        "a cache that lasts, fixed shapes, fewer graph breaks; of no weight in a long run",
        COMPILERS,
        is_once=True,
    ),
    FindingRule(
        "allocator-stalls",
        allocator_stalls,
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, no empty_cache() in the loop, inputs of "
        "few shapes, pinned memory that is made once",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management",
    ),
    FindingRule(
        "sync",
        _syncs,
        "fetch results less often, keep conditions on the device, copy with non_blocking=True",
        _TUNING,
    ),
    FindingRule(
        "launches",
        _launches,
        "CUDA graphs: torch.compile(mode='reduce-overhead'), larger batches",
        "https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/",
    ),
    FindingRule(
        "idle",
        _gaps,
        "see what the host does: proton view -m idle/ms FILE",
        _TUNING,
    ),
    FindingRule(
        "no-work",
        _no_work,
        "set up once and run longer, or load in the background; of no weight in a long run",
        _TUNING,
        is_once=True,
    ),
    FindingRule(
        "slow-rank",
        slow_ranks,
        "give that rank less to do there, or the same as the others; then overlap with computation",
        _TUNING,
    ),
    FindingRule(
        "slow-link",
        slow_links,
        "check the network of that rank: speed of its link, NUMA place of its card",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
    ),
    FindingRule(
        "waiting",
        _waiting,
        "balance the ranks (proton merge --stragglers), overlap with the computation",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/index.html",
    ),
    FindingRule(
        "inside-kernel",
        dominant_waits,
        "--instrument=all, for what this scope waits for",
        "https://triton-lang.org/main/python-api/generated/triton.language.range.html",
    ),
    FindingRule(
        "uneven-warps",
        uneven_warps,
        "equal work for each program and warp: sort or split long rows, a persistent kernel that "
        "takes the next piece when it is done",
        _BEST_PRACTICES,
    ),
    FindingRule(
        "fp32-products",
        _products,
        "torch.set_float32_matmul_precision('high'), or autocast to BF16",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices",
    ),
    FindingRule(
        "unfused-optimizer",
        _optimizer,
        "fused=True of torch.optim, or torch.compile of the step",
        "https://docs.pytorch.org/docs/stable/optim.html",
    ),
    FindingRule(
        "unfused-elementwise",
        _chains,
        "torch.compile, or one Triton kernel for the chain",
        _TUNING,
    ),
    FindingRule(
        "small-operators",
        small_operators,
        "fewer and larger calls: batches, operators on whole tensors, torch.compile",
        _TUNING,
    ),
    FindingRule(
        "hottest-operators",
        hottest_operators,
        "torch.compile, which fuses operators; smaller types",
        _TUNING,
    ),
    FindingRule(
        "other-code",
        other_code,
        "do it less often, in a faster way, or in other processes beside the step",
        _TUNING,
    ),
    FindingRule(
        "slow-copies",
        _copies,
        "pin_memory=True of the loader, or tensor.pin_memory(), with non_blocking=True",
        _BEST_PRACTICES,
    ),
    FindingRule(
        "power-capped",
        _capped,
        "find the reason by nvidia-smi -q -d PERFORMANCE; power limit, cooling, locked clocks",
        "https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html",
    ),
)
