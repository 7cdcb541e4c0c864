"""One verdict for each row: of kernels by the rules, of rows above by most of their time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from proton_bench.analysis.accounting.host_time import run_ns
from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.analysis.why.launch_facts import with_launch_facts
from proton_bench.analysis.why.row_facts import QUANTITIES, Facts, RowFacts
from proton_bench.analysis.why.rules import BOUND, CPU_RULES, RULES, counter_evidence
from proton_bench.analysis.why.verdict import KINDS, UNKNOWN, WHY, Evidence, Verdict
from proton_bench.model import preorder
from proton_bench.model.arrays import Floats, Indexes
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.support.units import duration_text

_MEANING = "what limits most of the time of the row and all rows below it: proton why FILE NAME"
_COUNTERS = "proton run -m counters"
_DOCTOR = "proton doctor"
_SAMPLES = "proton run -m pcsampling"
_LIMITS = ("tensor", "fp32", "fp64", "alu", "xu", "issue", "dram", "l2", "l2_requests", "l1")
_MEMORIES = {"l2", "l2_requests", "l1"}
_ENOUGH_BURSTS = 3
_SHORT = 40
_ALMOST_ALL = 0.995
_PART = 0.05  # of a row's time


class Verdicts:
    """The verdict of every row of a profile, made when it is asked for.

    Args:
        profile: Variants may have been folded if `with_launch_facts` was applied before.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = with_launch_facts(profile)
        self.facts = Facts(self.profile)
        self.run_ns = _span_ns(profile, self.facts)
        self._own: dict[int, Verdict] = {row: self._judge(row) for row in self.facts.rows()}
        self.time_ns = preorder.sums(self.profile.parents, self.facts.own_ns)
        self._by_kind = self._sums()

    def own(self, row: int) -> Verdict | None:
        """Return the verdict of the row alone, None without time of its own."""
        return self._own.get(row)

    def of(self, row: int) -> Verdict | None:
        """Return the verdict of the row with all rows below it, None without time."""
        total = float(self.time_ns[row])
        if not total > 0:
            return None
        own = self._own.get(row)
        if own is not None and self.facts.own_ns[row] >= _ALMOST_ALL * total:
            return own
        return self._above(row, total)

    def _judge(self, row: int) -> Verdict:
        facts = self.facts.of(row)
        for rule in (*RULES, *CPU_RULES):
            match = rule.find(facts)
            if match is None:
                continue
            device = facts.use_of_device
            idle_ns = device.use.short_idle_ns if device is not None else 0
            gain_ns = match.gain * facts.time_ns + match.idle * idle_ns
            return Verdict(
                kind=rule.kind,
                short=_joined(rule.kind, match.short),
                evidence=match.evidence,
                helps=match.helps or rule.helps,
                source=rule.source,
                gain_ns=min(max(gain_ns, 0.0), self.run_ns),
            )
        return _unknown(facts)

    def _sums(self) -> Mapping[str, _Sums]:
        """Return what each row and the rows below it have of each kind of verdict."""
        own_ns = self.facts.own_ns
        parts: dict[str, list[int]] = {}
        for row, verdict in self._own.items():
            parts.setdefault(verdict.kind, []).append(row)
        found: dict[str, _Sums] = {}
        for kind, rows in parts.items():
            times, gains = np.zeros(len(self.profile)), np.zeros(len(self.profile))
            times[rows] = own_ns[rows]
            gains[rows] = [self._own[row].gain_ns or 0.0 for row in rows]
            parents = self.profile.parents
            found[kind] = _Sums(
                preorder.sums(parents, times),
                preorder.sums(parents, gains),
                _largest(parents, times),
            )
        return found

    def _above(self, row: int, total: float) -> Verdict:
        """Return the verdict of most of the time below a row."""
        shares = {kind: float(sums.times[row]) / total for kind, sums in self._by_kind.items()}
        kind = max(shares, key=lambda each: (shares[each], -KINDS.index(each)))
        largest = self._by_kind[kind].largest[row]
        example = self._own[largest]
        is_one = float(self.facts.own_ns[largest]) >= _ALMOST_ALL * total
        is_measured = self.facts.has_counters
        if is_one or (shares[kind] >= _ALMOST_ALL and kind == UNKNOWN and not is_measured):
            return example
        parts = sorted(shares.items(), key=lambda each: -each[1])
        mix = ", ".join(f"{part * 100:.0f} % {name}" for name, part in parts if part >= _PART)
        text = self.facts.text(largest)
        evidence = (
            Evidence("row.mix", f"of its time {mix}", shares[kind], "fraction"),
            *(replace(each, text=f"{text}: {each.text}") for each in example.evidence),
        )
        reason = example.reason
        part = f"{shares[kind] * 100:.0f} % of it" if shares[kind] < _ALMOST_ALL else ""
        gain_ns = min(float(self._by_kind[kind].gains[row]), self.run_ns)
        return replace(
            example,
            short=_joined(kind, part) if part or kind != UNKNOWN else example.short,
            evidence=evidence,
            reason=f"{text}: {reason}" if reason and is_measured else reason,
            gain_ns=None if kind == UNKNOWN else gain_ns,
            share=shares[kind],
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """One kind of verdict, over each row and all rows below it.

    Attributes:
        times: Time in ns.
        gains: Time in ns that can be saved at most.
        largest: The row with most time of its own, -1 for none.
    """

    times: Floats
    gains: Floats
    largest: list[int]


def _largest(parents: Indexes, times: Floats) -> list[int]:
    """Return for each row the row with most time among it and the rows below it, -1 for none."""
    values: list[float] = times.tolist()
    found = [row if value > 0 else -1 for row, value in enumerate(values)]
    above: list[int] = parents.tolist()
    for row in range(len(found) - 1, 0, -1):
        best, parent = found[row], above[row]
        if best >= 0 and (found[parent] < 0 or values[best] >= values[found[parent]]):
            found[parent] = best
    return found


def _span_ns(profile: Profile, facts: Facts) -> float:
    """Return how long the run took, or what is known of it: no gain is larger."""
    wall_ns = run_ns(profile)
    if wall_ns:
        return float(wall_ns)
    spans = [use.wall_ns for use in profile.device_use if use.scope is None]
    return float(max(spans, default=0) or facts.own_ns.sum())


def why_values(profile: Profile) -> MetricValues:
    """Return the short text of each row's verdict, for a column of a tree."""
    verdicts = Verdicts(profile)
    found = [verdicts.of(row) for row in range(len(profile))]
    texts = np.empty(len(profile), dtype=object)
    texts[:] = ["" if each is None else each.short for each in found]
    valid = np.array([each is not None for each in found], dtype=np.bool_)
    return MetricValues(WHY, Aggregation.PROPERTY, texts, valid, _MEANING)


def _joined(kind: str, detail: str) -> str:
    if not detail:
        return kind
    return f"{kind}{':' if detail[0].isalpha() else ''} {detail}"[:_SHORT]


# -- what cannot be told -------------------------------------------------------------------------
def _unknown(facts: RowFacts) -> Verdict:
    reason, measure, evidence = _reason(facts)
    return Verdict(
        UNKNOWN,
        _joined(UNKNOWN, reason.partition(":")[0]),
        tuple(evidence),
        reason=reason,
        measure=measure,
    )


def _reason(facts: RowFacts) -> tuple[str, str, Sequence[Evidence]]:
    """Return why nothing can be said, what would tell, and what is known."""
    stalls = _stall_facts(facts)
    if facts.device_kind == "HIP":
        measure = "rocprof-compute, then proton view --counters" if stalls else _SAMPLES
        return "no counters: those of AMD GPUs are not recorded", measure, stalls
    if not facts.has_counters:
        why, measure = (
            facts.refusal or "this run recorded none",
            _DOCTOR if facts.refusal else _COUNTERS,
        )
        return f"no counters: {why}", measure, stalls
    known = [counter_evidence(name, use) for name, use in facts.uses.items()]
    longer = _longer(facts)
    if not facts.uses and facts.withheld:
        return f"estimate too wide: {_wide_text(facts, facts.withheld)}", longer, stalls
    if not facts.uses:
        reason = f"not sampled: counters stand for {facts.coverage * 100:.0f} % of its time"
        return reason, longer, stalls
    wide = [name for name in facts.withheld if name in _LIMITS]
    missing = [name for name in _LIMITS if name not in facts.uses]
    active = facts.uses.get("sm_active")
    if active is not None and active.fraction < BOUND:
        reason = f"multiprocessors idle: {active.fraction * 100:.0f} % active"
        is_told = math.isfinite(facts.launch.blocks)
        of_launches = "no reason that its launches show" if is_told else "launches not recorded"
        return f"{reason}, {of_launches}", _SAMPLES, (*known, *stalls)
    if missing:
        uncounted = ", ".join(QUANTITIES[name] for name in missing if name not in wide)
        reason = "not all measured: no measured unit is at its ceiling"
        reason += f"; missing are {uncounted}" if uncounted else ""
        reason += f"; too uncertain are {_wide_text(facts, wide)}" if wide else ""
        memory = f"{_COUNTERS}:metrics=memory"
        measure = longer if wide else memory if {*missing} & _MEMORIES else _COUNTERS
        return reason, f"{measure}, {_SAMPLES}", (*known, *stalls)
    largest = max(facts.uses[name].ratio for name in _LIMITS)
    reason = f"near no ceiling: the busiest unit does {largest * 100:.0f} % of what it can"
    return reason, _SAMPLES, (*known, *stalls)


def _longer(facts: RowFacts) -> str:
    """Return how long a kernel has to run until some bursts of samples meet it."""
    if not math.isfinite(facts.burst_period_ns):
        return f"{_COUNTERS}, in a longer run"
    enough = duration_text(_ENOUGH_BURSTS * facts.burst_period_ns)
    return f"{_COUNTERS}, in a run in which it takes {enough} or more"


def _wide_text(facts: RowFacts, names: Iterable[str]) -> str:
    uses = [(QUANTITIES[name], facts.withheld[name]) for name in names]
    return ", ".join(
        f"{words} {_shown(use.ratio)} +- {_shown(use.half_ratio)} %" for words, use in uses
    )


def _shown(ratio: float) -> str:
    # A use is at most 100 %, and a larger error means no more than that.
    return f"{min(ratio, 1.0) * 100:.0f}"


def _stall_facts(facts: RowFacts) -> tuple[Evidence, ...]:
    if facts.stalls is None:
        return ()
    reason, share = facts.stalls.shares[0]
    place = f" at {facts.stalls.place}" if facts.stalls.place else ""
    text = f"{share * 100:.0f} % of stalls {reason.replace('_', ' ')}{place}"
    return (Evidence(f"samples.{reason}", text, share, "fraction of stalled samples"),)
