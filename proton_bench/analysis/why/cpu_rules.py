"""The rules of verdicts on processors: instructions per cycle, and misses.

They are two of the questions of a top-down analysis, asked of the counters that every processor
has: do instructions retire at a high rate, and if not, does the processor wait for memory or for
mispredicted branches? Other waits, such as those for data that prefetching brings too late, have no
counter that all processors share: these rows are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from proton_bench.analysis.why.row_facts import RowFacts
from proton_bench.analysis.why.rules import Match, Rule
from proton_bench.analysis.why.verdict import Evidence
from proton_bench.model.metrics.counter_columns import (
    BRANCH_MISSES,
    CACHE_MISSES,
    CPU_CYCLES,
    INSTRUCTIONS,
)

__all__ = ["CPU_RULES", "why_unknown"]

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
_COUNTERS = "proton run -m counters"
_DOCTOR = "proton doctor"


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


def why_unknown(facts: RowFacts) -> tuple[str, str, Sequence[Evidence]]:
    """Return why nothing can be said of a row of the CPU, what would tell, and what is known."""
    cycles = facts.processor.get(CPU_CYCLES)
    if not facts.processor:
        why = facts.refusal or "cache misses and instructions per cycle are not recorded"
        return f"no CPU counters: {why}", _DOCTOR if facts.refusal else _COUNTERS, ()
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
)
