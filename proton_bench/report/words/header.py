"""The lines above a report: the profile, and what is missing from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment

from proton_bench.analysis.accounting.compilation import compilation_of
from proton_bench.analysis.accounting.device_use import (
    SOON_NS,
    DeviceVerdict,
    device_verdicts,
)
from proton_bench.analysis.accounting.host_time import (
    NOT_RECORDED,
    RunTime,
    recorded_of,
    run_time_of,
)
from proton_bench.analysis.accounting.own_cost import own_cost
from proton_bench.analysis.kernels.gpu_facts import (
    CounterFacts,
    GpmMeans,
    RecordCost,
    SamplingFacts,
    are_missing,
    came_too_late,
    counter_facts,
    gpm_means,
    is_written_meanwhile,
    record_costs,
    sampling_facts,
)
from proton_bench.analysis.kernels.scope_cycles import INSTRUMENTED, KEPT, LOST
from proton_bench.analysis.metrics.derived_flops import flops_differences
from proton_bench.analysis.metrics.values import own_numbers
from proton_bench.model.members import RankGaps
from proton_bench.model.metrics.counter_columns import NOT_JOINED
from proton_bench.model.profile import Profile
from proton_bench.model.steps import Steps, length_word
from proton_bench.report.words.collectives import collective_lines
from proton_bench.report.words.edge import DIM, HEADING, WARNING, edge_of, prose
from proton_bench.support.text import visible
from proton_bench.support.units import Unit, count_text, duration_text, share_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions


# What shows a step of the program.
_MARKS = {
    "declared": "proton.step",
    "profiler": "torch.profiler",
    "optimizer": "optimizer",
    "scope": "scope",
    "layer": "calls of",
    "graph": "graph launches",
}
_MAX_MARK = 120
_LEAST_SET_UP = 0.05  # of the time before the steps
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
        how = " (chosen)" if facts.is_automatic else ""
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
        share = share_text(facts.dropped, seen, decimals=None)
        yield (
            f"DROPPED: {count_text(facts.dropped, 'PC sample')} ({share} of all): the "
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
    facts = counter_facts(profile)
    if facts is None:
        return ()
    if are_missing(profile) and facts.bursts:
        return (f"NO COUNTERS: {_NO_KERNEL}",)
    return tuple(_counter_losses(facts))


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
        share = share_text(lost, lost + facts.samples, decimals=None)
        yield (
            f"FEWER COUNTERS: {count_text(lost, 'sample')} ({share} of all) were lost, "
            "because bursts lasted longer than asked for: the sampling thread had no processor"
        )


_MOST_KERNELS = 5


def record_cost_notes(profile: Profile) -> tuple[str, ...]:
    """Return a sentence for each kernel that runs differently because of records inside it.

    Args:
        profile: A profile; one without records inside kernels has none.
    """
    # A kernel compiled in several configurations has one sentence per difference.
    notes = [*dict.fromkeys(filter(None, map(_note, record_costs(profile))))]
    rest = len(notes) - _MOST_KERNELS
    more = (f"RECORDS: also for {count_text(rest, 'more kernel')}",) if rest > 0 else ()
    return (*notes[:_MOST_KERNELS], *more)


def _note(cost: RecordCost) -> str:
    changes = list(_changes(cost))
    return f"RECORDS: {visible(cost.kernel)} {'; '.join(changes)}" if changes else ""


def _changes(cost: RecordCost) -> Iterator[str]:
    needs = []
    if cost.registers is not None and cost.registers[0] != cost.registers[1]:
        needs.append(f"{cost.registers[0]} registers instead of {cost.registers[1]}")
    if cost.shared_bytes is not None and cost.shared_bytes[0] != cost.shared_bytes[1]:
        extra = cost.shared_bytes[0] - cost.shared_bytes[1]
        needs.append(f"{extra:+,d} B of shared memory")
    if needs:
        yield f"takes {' and '.join(needs)}"
    if cost.blocks is not None and cost.blocks[0] != cost.blocks[1]:
        fitting = count_text(cost.blocks[0], "program")
        verb = "fits" if cost.blocks[0] == 1 else "fit"
        yield f"{fitting} {verb} a multiprocessor instead of {cost.blocks[1]}"
    if cost.dropped_maxnreg:
        yield f"its maxnreg={cost.dropped_maxnreg} is dropped by Triton"


_TIME = "time (ns)"
_MAX_KERNELS = 5
_REMEDY = "a larger buffer_size, fewer warps (sampling_options) or fewer scopes keep more"


def inside_notes(profile: Profile) -> tuple[str, ...]:
    """Return a sentence for each kernel that lost records, and one about slowed-down times."""
    return (*_lost(profile), *_perturbed(profile))


def _lost(profile: Profile) -> Iterator[str]:
    lost, kept = own_numbers(profile, LOST), own_numbers(profile, KEPT)
    rows = np.flatnonzero(lost)
    for row in rows[np.argsort(-lost[rows], kind="stable")][:_MAX_KERNELS]:
        share = share_text(kept[row], kept[row] + lost[row])
        warps = count_text(own_numbers(profile, "lossy_warps")[row], "warp")
        programs = count_text(own_numbers(profile, "lossy_programs")[row], "program")
        yield (
            f"LOST: {visible(profile.name(int(row)))} keeps {share} of the records inside "
            f"it; {count_text(lost[row], 'older record')} of {warps} in {programs} were "
            f"overwritten: {_REMEDY}"
        )
    if len(rows) > _MAX_KERNELS:
        yield f"LOST: records inside {count_text(len(rows) - _MAX_KERNELS, 'more kernel')}"


def _perturbed(profile: Profile) -> Iterator[str]:
    time = profile.columns.get(_TIME)
    if time is None:
        return
    timed = (own_numbers(profile, INSTRUMENTED) > 0) & time.valid
    if timed.any():
        kernels = count_text(int(timed.sum()), "kernel")
        yield f"PERTURBED: the time of {kernels} includes the cost of recording the scopes inside"


_MOST_REASONS = 20
_GPM_QUANTITIES = {"sm_active_pct": "SM active", "tensor_pct": "tensor", "dram_pct": "DRAM"}


@dataclass(frozen=True, slots=True, eq=False)
class HeaderReport:
    """A rich renderable that names a profile, its devices and its losses.

    Attributes:
        profile: The profile.
        source: Name of its file.
    """

    profile: Profile
    source: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """Yield one line of facts, one per device, one of the cost and one per loss."""
        edge = edge_of(console, options)
        facts = ", ".join([count_text(len(self.profile), "row"), *_facts(self.profile)])
        source = visible(self.source)
        if edge is None or cell_len(source) + cell_len(facts) + 2 <= edge:
            yield Segment(source, HEADING)
            yield Segment(f"  {facts}\n", DIM)
        else:
            yield from prose(console, source, HEADING, edge=edge)
            yield from prose(console, f"  {facts}", DIM, edge=edge)
        for line in (*steps_lines(self.profile), *device_lines(self.profile)):
            yield from prose(console, line, None, edge=edge)
        for line in (*gpm_lines(self.profile), *collective_lines(self.profile)):
            yield from prose(console, line, None, edge=edge)
        recorded = recorded_line(self.profile)
        if recorded:
            yield from prose(console, recorded, None, edge=edge)
        yield from prose(console, cost_line(self.profile), DIM, edge=edge)
        sampled = sampling_line(self.profile)
        if sampled:
            yield from prose(console, sampled, DIM, edge=edge)
        for loss in losses(self.profile):
            yield from prose(console, loss, WARNING, edge=edge)
        yield Segment("\n")


def device_lines(profile: Profile) -> list[str]:
    """Return how busy each device was: ``CUDA:0 busy 62 %, idle 38 % of 1.2 s, ...``.

    Shares are those of the run where its length is known, as in all other lines.
    """
    parts = profile.provenance.get("parts")
    whole_ns = None if parts else run_time_of(profile).wall_ns
    word = length_word(profile)
    return [_device_line(verdict, whole_ns, word) for verdict in device_verdicts(profile)]


def _device_line(verdict: DeviceVerdict, run_ns: int | None, word: str) -> str:
    use = verdict.use
    whole = max(run_ns or 0, use.wall_ns)
    of_whole = f" of the {word}" if run_ns else ""
    parts = [f"busy {share_text(use.busy_ns, whole, decimals=0)}{of_whole}"]
    if use.waiting_ns:
        parts.append(f"of it only waiting {share_text(use.waiting_ns, whole, decimals=0)}")
    where = "of it between its first and last work" if run_ns else f"of {duration_text(whole)}"
    parts.append(f"idle {share_text(use.idle_ns, whole, decimals=0)} {where}")
    if verdict.latency_ns is not None:
        mean_ns = use.latency_sum_ns / use.launches
        unit = Unit.of_times([verdict.latency_ns, mean_ns])
        median, mean = unit.text(verdict.latency_ns), unit.text(mean_ns)
        queued = ", queued behind others" if verdict.latency_ns > SOON_NS else ""
        parts.append(f"kernels start {median} after their launch{queued} (median; mean {mean})")
    if use.latency_clamped:
        parts.append(f"no latency of {use.latency_clamped} launches: the clocks disagree")
    if use.uncertain_ns:
        parts.append(f"up to {duration_text(use.uncertain_ns)} more was busy")
    reason = f": {verdict.reason}" if verdict.reason else ""
    return visible(f"{verdict.device} {', '.join(parts)}{reason}")


def gpm_lines(profile: Profile) -> tuple[str, ...]:
    """Return a line per device, such as ``GPU over the run: SM active 31 %, DRAM 12 %``."""
    devices = gpm_means(profile)
    return tuple(visible(_gpm_line(each, is_only=len(devices) == 1)) for each in devices)


def _gpm_line(device: GpmMeans, *, is_only: bool) -> str:
    name = "GPU" if is_only or device.device < 0 else f"CUDA:{device.device}"
    shown = [
        f"{quantity} {share_text(device.means[key], 100.0, decimals=0)}"
        for key, quantity in _GPM_QUANTITIES.items()
        if key in device.means
    ]
    if device.missing:
        shown.append(f"{'no more ' if shown else 'no '}counters: {device.missing}")
    elif not shown:
        shown.append("no counters, the run was too short")
    return f"{name} over the run: {', '.join(shown)}"


def recorded_line(profile: Profile, *, shows_start: bool = True) -> str:
    """Return where the time of the run went, "" if the file does not say.

    Args:
        profile: The run.
        shows_start: Also say how long after its process it began.
    """
    times = run_time_of(profile)
    if times.is_sampled:
        return _run_line(profile, times, shows_start=shows_start)
    recorded = recorded_of(profile)
    if recorded is None:
        return ""
    run = _run_text(profile, recorded.run_ns)
    if not recorded.work_ns > 0 and not recorded.scopes_ns:
        return f"recorded: no launches and no operators in a {run}"
    if recorded.parts:
        return f"{run}: {_parts_text(recorded.parts)}"
    text = f"{run}: {duration_text(recorded.work_ns)} of recorded work"
    if recorded.scopes_ns is not None:
        text += f", {duration_text(recorded.scopes_ns)} in scopes"
    return f"{text}, at the same time"


def steps_lines(profile: Profile) -> tuple[str, ...]:
    """Return what came before the steps that a profile is about, and which they are."""
    steps = Steps.of(profile.provenance)
    if steps is None:
        return ()
    spread = share_text(steps.high_ns - steps.low_ns, max(steps.median_ns, 1), decimals=0)
    median = f"median {duration_text(steps.median_ns)}, 80 % of them within {spread}"
    return (
        f"before the steps: {duration_text(steps.before_ns)} of the run's "
        f"{duration_text(steps.run_ns)}{_set_up_text(profile, steps)}; see --whole",
        f"{steps_text(steps)}: {median}",
    )


def _set_up_text(profile: Profile, steps: Steps) -> str:
    """Return how long the whole run imported and compiled, if that is much."""
    if profile.whole is None:
        return ""
    compilation = compilation_of(profile.whole)
    names = ", ".join(name for name, _ in compilation.stages) or "autotuning"
    parts = (
        ("imports", run_time_of(profile.whole).imports_ns or 0),
        (f"compilation ({names})", compilation.total_ns),
    )
    least_ns = _LEAST_SET_UP * steps.before_ns
    shown = [f"{duration_text(time_ns)} {name}" for name, time_ns in parts if time_ns > least_ns]
    return f"; in all {', '.join(shown)}" if shown else ""


def steps_text(steps: Steps) -> str:
    """Return the numbers of steps and what showed them."""
    name = "" if steps.by in {"declared", "profiler"} else steps.name
    mark = visible(f"{_MARKS.get(steps.by, steps.by)} {name}".strip(), _MAX_MARK)
    return (
        f"mean of steps {steps.first} to {steps.first + steps.count - 1} of {steps.begun} ({mark})"
    )


def _parts_text(parts: Mapping[str, float]) -> str:
    whole = sum(parts.values())
    return ", ".join(
        f"{share_text(part, whole, decimals=0)} {name}" for name, part in parts.items() if part
    )


def _run_text(profile: Profile, run_ns: float) -> str:
    """Return how long the run took; times of several processes are summed, which it says."""
    parts = profile.provenance.get("parts")
    processes = {
        (part.get("host"), part.get("pid"))
        for part in (parts if isinstance(parts, tuple) else ())
        if isinstance(part, Mapping)
    }
    text = f"{length_word(profile)} of {duration_text(run_ns)}"
    windows = profile.provenance.get("window_count")
    if type(windows) is int and windows > 0 and not parts:
        text += f" in {windows} window{'s' if windows > 1 else ''}"
    return f"{text} in {len(processes)} processes" if len(processes) > 1 else text


def _run_line(profile: Profile, times: RunTime, *, shows_start: bool) -> str:
    parts = times.host_parts
    whole = max(times.wall_ns or 0, sum(parts.values()), 1)
    text = f"{_run_text(profile, whole)}: "
    if times.host_recorded_ns or times.gpu_busy_ns is None:
        text += f"host {_parts_text(parts)}; "
    if times.gpu_busy_ns is not None and times.gpu_idle_ns is not None:
        idle_ns = times.gpu_idle_ns
        busy, idle = (share_text(ns, whole, decimals=0) for ns in (whole - idle_ns, idle_ns))
        text += f"GPU busy {busy}, idle {idle}; "
    elif times.gpu_busy_ns is not None:
        text += f"GPUs busy {duration_text(times.gpu_busy_ns)}; "
    if times.before_ns and shows_start:
        text += f"recorded from {duration_text(times.before_ns)} after the start of the process"
    return text.removesuffix("; ")


def root_note(profile: Profile) -> str:
    """Return the text after the root's name: the share of the run that its total is."""
    times = run_time_of(profile)
    if times.is_sampled and times.wall_ns:
        run = _run_text(profile, times.wall_ns)
        if not times.host_recorded_ns and times.gpu_idle_ns is not None:
            busy_ns = times.wall_ns - times.gpu_idle_ns
            return f"{run}, GPU busy {share_text(busy_ns, times.wall_ns, decimals=0)}"
        unknown_ns = times.host_not_recorded_ns or 0
        return f"{run}, {share_text(unknown_ns, times.wall_ns, decimals=0)} in {NOT_RECORDED}"
    recorded = recorded_of(profile)
    covered_ns = 0.0 if recorded is None else max(recorded.work_ns, recorded.scopes_ns or 0.0)
    if recorded is None or not 0 < covered_ns <= recorded.run_ns:
        return ""
    share = share_text(covered_ns, recorded.run_ns, decimals=0)
    return f"{share} of a {_run_text(profile, recorded.run_ns)}"


def cost_line(profile: Profile) -> str:
    """Return the profiler's estimate of its own cost."""
    cost = own_cost(profile)
    if cost is None:
        return "own cost of the profiler: unknown, the file does not say"
    text = f"own cost of the profiler: about {duration_text(cost.cost_ns)} (its estimate)"
    if cost.share is not None:
        whole = "recorded work" if cost.recorded_ns else length_word(profile)
        text += f", {share_text(cost.share, decimals=None)} of the {whole}"
    return text


def left_out_text(hidden: int, share: float) -> str:
    """Return how many rows have no line of their own on a screen, "" if all have one."""
    if not hidden:
        return ""
    rows = count_text(hidden, "row", "rows")
    return f"{rows} below {share_text(share, decimals=None)} not shown; --all shows every row"


def losses(profile: Profile) -> tuple[str, ...]:
    """Return a sentence for each thing that is missing from the profile or was disturbed."""
    found = []
    if profile.partial:
        found.append("PARTIAL: the file was written before the run ended")
    found.extend(f"INCOMPLETE: {gap}" for gap in gap_sentences(gaps_of(profile.provenance)))
    forked = profile.provenance.get("forked_children")
    if type(forked) is int and forked > 0:
        found.append(
            f"INCOMPLETE: {count_text(forked, 'forked process', 'forked processes')} not recorded: "
            "spawn workers (of a pool or DataLoader) to record them"
        )
    lost = [(reason, count) for reason, count in profile.dropped.items() if count]
    for reason, count in lost[:_MOST_REASONS]:
        found.append(f"DROPPED: {count_text(count, 'record')}: {visible(reason)}")
    if len(lost) > _MOST_REASONS:
        more = count_text(sum(count for _, count in lost[_MOST_REASONS:]), "record")
        found.append(f"DROPPED: {more}: {len(lost) - _MOST_REASONS} more reasons")
    notes = (*inside_notes(profile), *record_cost_notes(profile), *sampling_losses(profile))
    return (*found, *notes, *counter_losses(profile), *_flops_notes(profile))


def _flops_notes(profile: Profile) -> Iterator[str]:
    differences = flops_differences(profile)
    for each in differences[:_MOST_REASONS]:
        share = share_text(each.derived - each.declared, each.declared, decimals=None)
        yield (
            f"FLOPS: {visible(each.name)} declares {each.declared:.4g}; its code or torch's "
            f"formulas say {each.derived:.4g} ({share} off), which is not used"
        )


def _facts(profile: Profile) -> Iterator[str]:
    backend = profile.provenance.get("backend")
    if isinstance(backend, str) and backend:
        yield f"backend {visible(backend)}"
    rank = rank_text(profile.provenance)
    if rank:
        yield rank
    for device in profile.devices:
        arch = f" ({device.arch})" if device.arch else ""
        yield visible(f"{device.kind}:{device.index}{arch}")


# -- ranks of a job --------------------------------------------------------------------------------
_MOST_SHOWN = 8


def gap_sentences(gaps: RankGaps) -> Iterator[str]:
    """Yield a sentence for each gap of a job."""
    if gaps.missing:
        yield f"{ranks_text(gaps.missing)} of {gaps.world_size} {_are(gaps.missing)} missing"
    if gaps.partial:
        yield (
            f"{ranks_text(gaps.partial)} of {gaps.world_size} {_are(gaps.partial)} partial: its "
            "file was written before the run ended"
        )


def ranks_text(ranks: Sequence[int]) -> str:
    """Return ranks with consecutive ones joined: ``rank 3``, ``ranks 0 to 2, 5``."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1][1:] = [rank]
        else:
            runs.append([rank])
    texts = [" to ".join(map(str, run)) for run in runs[:_MOST_SHOWN]]
    if len(runs) > _MOST_SHOWN:
        texts.append(f"and {sum(_length(run) for run in runs[_MOST_SHOWN:])} more")
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(texts)


def rank_text(facts: Mapping[str, Any]) -> str:
    """Return the rank or ranks of a profile, "" if it does not say."""
    gaps = gaps_of(facts)
    if len(gaps.present) > 1:
        return f"{ranks_text(gaps.present)} of {gaps.world_size}"
    rank, size = facts.get("rank"), facts.get("world_size")
    if type(rank) is not int:
        return ""
    return f"rank {rank} of {size}" if type(size) is int else f"rank {rank}"


def gaps_of(facts: Mapping[str, Any]) -> RankGaps:
    """Return the gaps in the ranks of a merged profile, from its provenance."""
    entry = facts.get("ranks")
    if not isinstance(entry, Mapping):
        return RankGaps()
    size = entry.get("world_size")
    lists = {}
    for name in ("present", "missing", "partial"):
        ranks = entry.get(name)
        ranks = ranks if isinstance(ranks, tuple) else ()
        lists[name] = tuple(rank for rank in ranks if type(rank) is int)
    return RankGaps(size if type(size) is int else 0, **lists)


def _are(ranks: Sequence[int]) -> str:
    return "is" if len(ranks) == 1 else "are"


def _length(run: Sequence[int]) -> int:
    return run[-1] - run[0] + 1
