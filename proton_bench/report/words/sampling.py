"""Describes samples of program counters, and of hardware counters, in the lines above a report."""

from __future__ import annotations

from collections.abc import Iterator

from proton_bench.analysis.kernels.counter_facts import (
    CounterFacts,
    RangeFacts,
    are_missing,
    came_too_late,
    counter_facts,
    is_written_meanwhile,
    range_facts,
)
from proton_bench.analysis.kernels.sampling_facts import SamplingFacts, sampling_facts
from proton_bench.model.metrics.counter_columns import NOT_JOINED
from proton_bench.model.profile import Profile
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

__all__ = ["counter_losses", "sampling_line", "sampling_losses"]

_TOO_SHORT = (
    "nothing was launched, or the run was over before counters were switched on, which takes half "
    "a second"
)
_NO_KERNEL = "no recorded kernel ran while they were read; graph=launch records none of graphs"
_TOO_LATE = "this file was written before the end of its session, which computes them"
_NO_BURST = "no recorded kernel of this phase ran while they were read, which is at times only"
_UNJOINED = "they were not joined to kernels, or none were read while these ran"


def sampling_line(profile: Profile) -> str:
    """Return the number of samples and their period, "" without samples."""
    facts = sampling_facts(profile)
    if facts is None or not facts.samples:
        return ""
    return visible(", ".join(_parts(facts)))


def _parts(facts: SamplingFacts) -> Iterator[str]:
    yield count_text(facts.samples, "PC sample")
    if facts.period_cycles:
        how = " (chosen)" if facts.automatic else ""
        if facts.asked_cycles not in (0, facts.period_cycles) and not facts.doubled:
            how = f" (the nearest to {count_text(facts.asked_cycles, 'cycle')})"
        yield f"one per {count_text(facts.period_cycles, 'cycle')} of a multiprocessor{how}"
    if facts.is_estimated:
        yield "shared between the call paths of a kernel by GPU time, an estimate"
    elif facts.attribution:
        yield f"their call paths {facts.attribution}"


def sampling_losses(profile: Profile) -> tuple[str, ...]:
    """Return sentences about missing samples, or a longer period than requested."""
    facts = sampling_facts(profile)
    return () if facts is None else tuple(_losses(facts))


def _losses(facts: SamplingFacts) -> Iterator[str]:
    if facts.error:
        word = "FEWER" if facts.samples else "NO"
        yield f"{word} SAMPLES: {visible(facts.error)}"
    if facts.dropped:
        seen = facts.samples + facts.dropped
        share = 100.0 * facts.dropped / seen
        yield (
            f"DROPPED: {count_text(facts.dropped, 'PC sample')} ({share:.2g} % of all): the "
            "hardware had no room for them; a longer interval keeps more"
        )
    if facts.doubled:
        times = "once" if facts.doubled == 1 else f"{facts.doubled} times"
        yield (
            f"SLOWER: the period of PC samples was doubled {times}, to "
            f"{count_text(facts.period_cycles, 'cycle')}, because the hardware's buffer was full"
        )


def counter_losses(profile: Profile) -> tuple[str, ...]:
    """Return sentences about counters that were asked for and are missing."""
    if are_missing(profile) and NOT_JOINED in profile.dropped:
        return (f"NO COUNTERS: {_UNJOINED}",)
    if came_too_late(profile):
        why = _NO_BURST if is_written_meanwhile(profile) else _TOO_LATE
        return (f"NO COUNTERS: {why}",)
    sampled, counted = counter_facts(profile), range_facts(profile)
    if are_missing(profile) and ((sampled and sampled.bursts) or (counted and counted.ranges)):
        return (f"NO COUNTERS: {_NO_KERNEL}",)
    return (
        *(() if sampled is None else _counter_losses(sampled)),
        *(() if counted is None else _range_losses(counted)),
    )


def _counter_losses(facts: CounterFacts) -> Iterator[str]:
    if not facts.bursts:
        all_lost = f"all {count_text(facts.lost_samples, 'sample')} were lost"
        why = all_lost if facts.lost_samples else _TOO_SHORT
        yield f"NO COUNTERS: {visible(facts.error or why)}"
        return
    if facts.error:
        yield f"FEWER COUNTERS: {visible(facts.error)}"
    lost = facts.lost_samples
    if lost > facts.samples:
        share = 100.0 * lost / (lost + facts.samples)
        yield (
            f"FEWER COUNTERS: {count_text(lost, 'sample')} ({share:.2g} % of all) were lost, "
            "because bursts lasted longer than asked for: the sampling thread had no processor"
        )


def _range_losses(facts: RangeFacts) -> Iterator[str]:
    missing = facts.lost_ranges + facts.not_counted
    what, plural = ("scope", "scopes") if facts.counted == "scope" else ("launch", "launches")
    uncounted = f"no exact counts of {count_text(missing, what, plural)}" if missing else ""
    if not facts.ranges:
        yield f"NO COUNTERS: {visible(facts.error or uncounted or 'nothing was launched')}"
        return
    if facts.error:
        yield f"FEWER COUNTERS: {visible(facts.error)}"
    if uncounted:
        yield f"FEWER COUNTERS: {uncounted}"
