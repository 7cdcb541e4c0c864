"""The rules of verdicts on processors: instructions per cycle, misses, and the length of calls.

The first are two of the questions of a top-down analysis, asked of the counters that every
processor has: do instructions retire at a high rate, and if not, does the processor wait for memory
or for mispredicted branches? Other waits, such as those for data that prefetching brings too late,
have no counter that all processors share: these rows are unknown. Where nothing was counted, a call
that takes about as long as torch needs to begin an operator is overhead, and of a longer one it is
said how long it took.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from proton_bench.analysis.why.row_facts import RowFacts
from proton_bench.analysis.why.rules import Match, Rule
from proton_bench.analysis.why.verdict import Evidence
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.counter_columns import (
    BRANCH_MISSES,
    CACHE_MISSES,
    CPU_CYCLES,
    INSTRUCTIONS,
)
from proton_bench.support.units import count_text, duration_text

__all__ = ["CPU_RULES", "SHORT_CALL_NS", "help_for", "is_on_cpu", "is_short", "why_unknown"]

SHORT_CALL_NS = 10_000.0  # of which torch's dispatch, checks and allocation are a large part

_HIGH = 2.0  # instructions per cycle: half of the four slots of Yasin's processor
_LOW = 1.0
_WIDEST = 8.0  # instructions per cycle that no processor of today exceeds
_MANY_MISSES = 10.0  # per 1000 instructions
_RECOVERY_CYCLES = 15.0  # that a mispredicted branch costs at least
_MUCH_RECOVERY = 0.25  # of the cycles
# Of one call. In shorter ones the instructions of the recording itself are a large part.
_LEAST_CYCLES = 10_000.0

_TOP_DOWN = (
    "Yasin, A Top-Down Method for Performance Analysis and Counters Architecture, ISPASS 2014, "
    "https://doi.org/10.1109/ISPASS.2014.6844459"
)
_MANUAL = "Intel 64 and IA-32 Architectures Optimization Reference Manual, Top-Down Analysis Method"
_MEASURE = "perf stat --topdown"
_TUNING = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_PRODUCT = re.compile(r"mm(_|$)|addbmm|matmul|linear|conv|dot_product|einsum|lstm|gru")
_OF_HOST = frozenset({FrameKind.OP, FrameKind.SCOPE, FrameKind.LAYER, FrameKind.PYTHON})
_OPERATOR = "::"  # in the names of torch's
_COMPILED = "Torch-Compiled Region"
_MOVE = re.compile(r"copy|clone|contiguous|::to$|::cat$|::stack$|index|gather|scatter|embedding")


def _ratio(facts: RowFacts, of: str, by: str) -> float | None:
    """Return a ratio of counters, None if one is unknown or the calls are too short."""
    cycles = facts.processor.get(CPU_CYCLES, 0.0)
    if facts.device_kind != "CPU" or cycles < _LEAST_CYCLES * max(facts.launches, 1.0):
        return None
    above, below = facts.processor.get(of), facts.processor.get(by, 0.0)
    return above / below if above is not None and below > 0 else None


def _ipc(facts: RowFacts) -> float | None:
    return _ratio(facts, INSTRUCTIONS, CPU_CYCLES)


def _evidence(facts: RowFacts) -> dict[str, Evidence]:
    """Return what is known, by its id."""
    found: list[Evidence] = []
    per_cycle = _ipc(facts)
    if per_cycle is not None:
        text = f"{per_cycle:.2f} instructions per cycle"
        found.append(Evidence("counter.ipc", text, per_cycle, "instructions per cycle"))
    for column, id_, words in (
        (CACHE_MISSES, "counter.cache_mpki", "misses of the last cache"),
        (BRANCH_MISSES, "counter.branch_mpki", "mispredicted branches"),
    ):
        rate = _ratio(facts, column, INSTRUCTIONS)
        if rate is not None:
            text = f"{rate * 1000:.1f} {words} per 1000 instructions"
            found.append(Evidence(id_, text, rate * 1000, "per 1000 instructions"))
    return {each.id: each for each in found}


def _is_memory(facts: RowFacts) -> Match | None:
    known = _evidence(facts)
    misses, per_cycle = known.get("counter.cache_mpki"), _ipc(facts)
    if misses is None or misses.value is None or per_cycle is None:
        return None
    if misses.value < _MANY_MISSES or per_cycle >= _LOW:
        return None
    evidence = (misses, known["counter.ipc"])
    return Match(f"{misses.value:.0f} misses/1000", evidence, 1.0 - per_cycle / _WIDEST)


def _is_bad_speculation(facts: RowFacts) -> Match | None:
    rate, per_cycle = _ratio(facts, BRANCH_MISSES, CPU_CYCLES), _ipc(facts)
    if rate is None or per_cycle is None or per_cycle >= _HIGH:
        return None
    share = min(rate * _RECOVERY_CYCLES, 1.0)
    if share < _MUCH_RECOVERY:
        return None
    text = f"mispredicted branches take {share * 100:.0f} % of the cycles or more"
    known = _evidence(facts)
    recovery = Evidence("counter.recovery", text, share, "fraction of cycles")
    beside = (known[each] for each in ("counter.branch_mpki", "counter.ipc") if each in known)
    # The recovery may take longer than what is counted here.
    return Match("branches", (recovery, *beside), 1.0 - per_cycle / _WIDEST)


def _is_compute(facts: RowFacts) -> Match | None:
    per_cycle = _ipc(facts)
    if per_cycle is None or per_cycle < _HIGH:
        return None
    evidence = tuple(_evidence(facts).values())
    return Match(f"{per_cycle:.1f} per cycle", evidence, max(0.0, 1.0 - per_cycle / _WIDEST))


def is_on_cpu(facts: RowFacts) -> bool:
    """Return whether a row is of a processor: also a range whose file names no device."""
    return facts.device_kind == "CPU" or (facts.device is None and facts.kind in _OF_HOST)


def is_short(facts: RowFacts) -> bool:
    """Return whether calls of an operator of torch take so little that they are overhead."""
    return _OPERATOR in facts.name and facts.mean_ns < SHORT_CALL_NS


def _calls(facts: RowFacts) -> Evidence:
    calls = count_text(int(facts.launches), "call")
    text = f"{calls} of {duration_text(facts.mean_ns)}, without operators below"
    return Evidence("row.mean_time", text, facts.mean_ns, "ns")


def _is_overhead(facts: RowFacts) -> Match | None:
    if not is_on_cpu(facts) or not is_short(facts):
        return None
    return Match(f"{duration_text(facts.mean_ns)} a call", (_calls(facts),), 1.0)


def _is_work(facts: RowFacts) -> Match | None:
    if not is_on_cpu(facts) or facts.processor:
        return None
    evidence = [Evidence("row.time", f"{duration_text(facts.time_ns)} in all", facts.time_ns, "ns")]
    short = ""
    if facts.launches > 0:
        evidence, short = [_calls(facts)], f"{duration_text(facts.mean_ns)} a call"
    if facts.refusal:
        evidence.append(Evidence("counter.refused", f"no counters: {facts.refusal}"))
    return Match(short, tuple(evidence), 1.0, helps=help_for(facts.name))


def help_for(name: str) -> str:
    """Return what usually helps with a row of this name; "" for operators that can be fused."""
    if name.startswith(_COMPILED):
        return "mode='max-autotune', larger inputs, fewer regions"
    if _OPERATOR not in name:
        return "less work in it, or other threads and processes beside it"
    if _PRODUCT.search(name):
        return "more threads (torch.set_num_threads), BF16 where the processor has units for it"
    if _MOVE.search(name):
        return "fewer copies: keep layout, type and device, write results in place"
    return ""


def why_unknown(facts: RowFacts) -> tuple[str, str, Sequence[Evidence]]:
    """Return why nothing can be said of a row of the CPU, what would tell, and what is known."""
    cycles = facts.processor.get(CPU_CYCLES)
    if cycles is None or INSTRUCTIONS not in facts.processor:
        return "not all measured: instructions or cycles are missing", _MEASURE, ()
    if cycles < _LEAST_CYCLES * max(facts.launches, 1.0):
        mean = cycles / max(facts.launches, 1.0)
        reason = f"calls too short: {mean:.0f} cycles each, of which many are of the recording"
        return reason, _MEASURE, ()
    evidence = tuple(_evidence(facts).values())
    reason = "no clear limit: neither many instructions per cycle nor many misses"
    return reason, _MEASURE, evidence


CPU_RULES: tuple[Rule, ...] = (
    Rule(
        "memory:dram",
        f"a processor with {_MANY_MISSES:.0f} misses of its last cache per 1000 instructions or "
        f"more, and less than {_LOW:.0f} instruction per cycle",
        _is_memory,
        "work on blocks that fit the caches, smaller types, contiguous accesses, fused operators",
        f"{_TOP_DOWN}: memory bound; {_MANUAL}",
    ),
    Rule(
        "latency",
        f"a processor whose mispredicted branches, at {_RECOVERY_CYCLES:.0f} cycles each, take "
        f"{_MUCH_RECOVERY:.0%} of the cycles, with less than {_HIGH:.0f} instructions per cycle",
        _is_bad_speculation,
        "branches that can be predicted: sorted data, vector operations and tables in their place",
        f"{_TOP_DOWN}: bad speculation; {_MANUAL}",
    ),
    Rule(
        "compute:issue",
        f"a processor with {_HIGH:.0f} instructions per cycle or more",
        _is_compute,
        "fewer instructions: wider vectors, compiled in place of interpreted code; more threads",
        f"{_TOP_DOWN}: retiring; {_MANUAL}",
    ),
    Rule(
        "overhead",
        f"operators of torch on a processor with calls of less than {SHORT_CALL_NS / 1e3:.0f} us",
        _is_overhead,
        "fewer and larger calls: batches, operators on whole tensors, torch.compile",
        _TUNING,
    ),
    Rule(
        "on-cpu",
        "longer calls on a processor that was not counted",
        _is_work,
        "torch.compile, which fuses operators; smaller types; more threads",
        _TUNING,
    ),
)
