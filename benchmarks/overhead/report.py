"""What the results say: what each tool adds to each workload, and the bars.

The replicate is the process. Within one, what a profiler adds is the median over pairs of blocks:
the profiled one less the bare one before it. So what differs between processes (addresses,
allocator, clocks) cancels, and so does what differs between moments and rounds. Over the rounds the
median is reported, with a 95 % interval from resampling rounds. Ratios of what is added are ratios
of medians over the same rounds; a ratio whose reference is not safely above zero is undecided. The
arm `none` goes through the same without a profiler: its ratio shows what the procedure itself gets
wrong.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from benchmarks.interleaved import Interval, added_ratio, median
from benchmarks.overhead.plan import ARMS, UNITS, WORKLOADS
from benchmarks.overhead.results import Results

LEAST_ROUNDS = 10  # processes of each arm


class Verdict(StrEnum):
    """Result of a row."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, slots=True)
class Row:
    """A bar: (arm - base) / (reference - base) of what is added.

    Without a reference it is profiled over bare, over the same of the base.

    Attributes:
        number: Number of the row.
        what: What it is about.
        workload: Which workload.
        bar: Highest allowed ratio.
        arm: Arm that is judged.
        reference: Arm that it is compared with; "" for the time without a profiler.
        base: Arm whose added time is taken off both.
    """

    number: int
    what: str
    workload: str
    bar: float
    arm: str = "ours"
    reference: str = "upstream"
    base: str = "floor"


ROWS = (
    Row(1, "tiny launches, a scope per 4", "tiny", 0.3),
    Row(2, "the same, context=python", "tiny", 0.15, "ours_python", "upstream_python"),
    Row(3, "the same, hook=triton with launch_metadata", "metadata", 0.4),
    Row(4, "eager training step", "eager", 0.3),
    Row(4, "compiled step, static launcher", "compiled", 0.3),
    Row(4, "compiled step, CUDA graphs", "compiled_graphs", 0.3),
    Row(5, "graph replay, its kernels", "graph", 1.1, "ours", "floor", "none"),
    Row(5, "small graph, its kernels", "small_graph", 1.1, "ours", "floor", "none"),
    Row(5, "graph replay, graph=launch", "graph", 1.005, "ours_launch", "", "none"),
    Row(5, "small graph, graph=launch", "small_graph", 1.005, "ours_launch", "", "none"),
    Row(6, "tiny launches, a timeline over a tree", "tiny", 1.1, "ours_trace", "ours", "none"),
    Row(6, "eager step, a timeline over a tree", "eager", 1.1, "ours_trace", "ours", "none"),
    Row(6, "graph replay, a timeline over a tree", "graph", 1.1, "ours_trace", "ours", "none"),
    Row(7, "tiny launches, PC sampling", "tiny", 1.15, "ours_pcs", "", "none"),
    Row(7, "eager training step, PC sampling", "eager", 1.3, "ours_pcs", "", "none"),
    Row(7, "4096^3 matmul, PC sampling", "matmul", 1.02, "ours_pcs", "", "none"),
    Row(8, "tiny launches, layers over scopes alone", "tiny", 1.02, "ours_layers", "", "ours"),
    Row(8, "eager training step, layers", "eager", 0.5, "ours_layers", "upstream", "none"),
    Row(9, "tiny launches, hardware counters", "tiny", 1.05, "ours_counters", "", "ours"),
    Row(9, "eager training step, hardware counters", "eager", 1.03, "ours_counters", "", "ours"),
    Row(9, "4096^3 matmul, hardware counters", "matmul", 1.01, "ours_counters", "", "ours"),
)


@dataclass(frozen=True, slots=True)
class RowResult:
    """A row with its figures; ``figure`` is None where something was not measured."""

    row: Row
    verdict: Verdict
    figure: Interval | None
    reason: str
    rounds: int


def added(measured: Mapping[str, Any]) -> float:
    """Return the seconds per unit that the profiler added in one process."""
    return statistics.median(profiled - bare for bare, profiled in _pairs(measured))


def thread_added(measured: Mapping[str, Any]) -> float:
    """Return the seconds per unit of the launching thread's processor time that were added.

    Raises:
        StatisticsError: An older version measured it, without that time.
    """
    pairs = zip(measured.get("bare_thread", ()), measured.get("profiled_thread", ()), strict=False)
    return statistics.median(profiled - bare for bare, profiled in pairs)


def ratio(measured: Mapping[str, Any]) -> float:
    """Return the ratio of profiled to bare time in one process."""
    return statistics.median(profiled / bare for bare, profiled in _pairs(measured))


def _pairs(measured: Mapping[str, Any]) -> list[tuple[float, float]]:
    return list(zip(measured["bare"], measured["profiled"], strict=False))


Figure = Callable[[Mapping[str, Any]], float]


def _common(results: Results, row: Row) -> dict[str, list[float]]:
    """Return the figure of each arm of the row, in the rounds that have all of them."""
    found = {arm: results.of(arm, row.workload) for arm in _arms(row)}
    places = sorted(set.intersection(*(set(each) for each in found.values())))
    figure: Figure = added if row.reference else ratio
    return {arm: [figure(each[place]) for place in places] for arm, each in found.items()}


def _arms(row: Row) -> list[str]:
    return [arm for arm in (row.arm, row.reference, row.base) if arm]


def row_results(results: Results) -> list[RowResult]:
    """Return every row of which a workload was asked for; rows of samples where their arm was."""
    asked = {
        (arm, workload)
        for each in results.rounds
        for arm, result in each["arms"].items()
        for workload in result["workloads"]
    }
    workloads = {workload for _, workload in asked}
    arms = {arm for arm, _ in asked if not ARMS[arm].samples}
    only_samples = arms <= {"none", "ours"} and len(arms) < len({arm for arm, _ in asked})
    return [
        _judge(results, row)
        for row in ROWS
        if row.workload in workloads
        and ((row.arm, row.workload) in asked if ARMS[row.arm].samples else not only_samples)
    ]


def _judge(results: Results, row: Row) -> RowResult:
    costs = _common(results, row)
    count = len(costs[row.arm])
    if not count:
        return _missing(results, row)
    if not row.reference:
        values = [one / base for one, base in zip(costs[row.arm], costs[row.base], strict=True)]
        return _against_bar(row, median(values), count=count)
    ours, theirs = (
        [one - base for one, base in zip(costs[arm], costs[row.base], strict=True)]
        for arm in (row.arm, row.reference)
    )
    reason = f"{_micro(ours):.2f} of {_micro(theirs):.2f} us{_of_thread(results, row)}"
    if median(theirs).low <= 0:
        reason = f"{reason}, which may be nothing"
        return RowResult(row, Verdict.UNDECIDED, None, reason, count)
    return _against_bar(row, added_ratio(ours, theirs), count=count, reason=reason)


def _of_thread(results: Results, row: Row) -> str:
    """Return what the arm and its reference add to the launching thread's own time."""
    found = {arm: results.of(arm, row.workload) for arm in (row.arm, row.reference)}
    try:
        arm, reference = (
            _micro([thread_added(one) for one in each.values()]) for each in found.values()
        )
    except statistics.StatisticsError:
        return ""
    return f"; of its thread {arm:.2f} of {reference:.2f} us"


def _against_bar(row: Row, figure: Interval, *, count: int, reason: str = "") -> RowResult:
    verdict = Verdict.UNDECIDED
    if count < LEAST_ROUNDS:
        reason += f"; {count} rounds, {LEAST_ROUNDS} are needed"
    elif figure.high <= row.bar:
        verdict = Verdict.PASS
    elif figure.low > row.bar:
        verdict = Verdict.FAIL
    else:
        reason += "; the interval holds the bar"
    return RowResult(row, verdict, figure, reason.removeprefix("; "), count)


def _missing(results: Results, row: Row) -> RowResult:
    errors = results.errors()
    failed = [f"{arm}: {errors[arm]}" for arm in _arms(row) if arm in errors]
    reason = "; ".join(failed) or "not measured"
    return RowResult(row, Verdict.UNDECIDED, None, reason, 0)


def _micro(seconds: Sequence[float]) -> Interval:
    return median([each * 1e6 for each in seconds])


def print_rows(results: Results) -> bool:
    """Print the rows; return False if one fails."""
    print("\nrow                                              bar     figure")
    judged = row_results(results)
    for each in judged:
        row = each.row
        figure = f"{each.figure:.3f}" if each.figure else "-"
        title = f"{row.number} {row.what}"
        print(f"{title:<48} {row.bar:<6}  {figure}  {each.verdict}  {each.reason}")
    return all(each.verdict is not Verdict.FAIL for each in judged)


def print_report(results: Results) -> bool:
    """Print tables of all measurements, then the rows; return False if a row fails."""
    print(", ".join(f"{key} {value}" for key, value in results.machine.items() if value))
    print(", ".join(f"{key} {value}" for key, value in results.settings.items()))
    print(f"{len(results.rounds)} rounds")
    for workload in WORKLOADS:
        _print_workload(results, workload)
    for arm, error in results.errors().items():
        print(f"! {arm}: {error}")
    return print_rows(results)


def _print_workload(results: Results, workload: str) -> None:
    measured = {arm: found for arm in ARMS if (found := results.of(arm, workload))}
    if not measured:
        return
    print(f"\n{workload}: us per {UNITS[workload]}")
    print(
        f"{'arm':<16} {'bare':>10}  {'added':<28} {'of its thread':<24} {'profiled / bare':<24} "
        f"{'end':>9} {'size':>11} {'kernels':>8} rounds"
    )
    for arm, found in measured.items():
        each = list(found.values())
        bare = statistics.median(statistics.median(one["bare"]) for one in each) * 1e6
        more = f"{_micro([added(one) for one in each]):.2f}"
        times = f"{median([ratio(one) for one in each]):.3f}"
        own = _thread_column(each)
        print(
            f"{arm:<16} {bare:>10.2f}  {more:<28} {own:<24} {times:<24} {_end(each)} {len(each):>6}"
        )
    _print_sampling(measured)
    counts = {arm: _middle(list(found.values()), "kernels") for arm, found in measured.items()}
    counted = {arm: count for arm, count in counts.items() if count and not ARMS[arm].mode}
    if len(set(counted.values())) > 1:
        print("! these do not record the same kernels of the same work")


def _thread_column(measured: Sequence[Mapping[str, Any]]) -> str:
    try:
        return f"{_micro([thread_added(one) for one in measured]):.2f}"
    except statistics.StatisticsError:
        return "-"


def _print_sampling(measured: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> None:
    """Print how program counters were sampled; upstream's files have only the count."""
    found = {
        arm: [one["sampling"] for one in each.values() if one.get("sampling")]
        for arm, each in measured.items()
    }
    if not any(found.values()):
        return
    print(
        f"{'samples of':<16} {'period':>9} {'samples':>11} {'dropped':>9} {'doubled':>8} "
        f"{'drain':>10} {'lines':>10} {'memory':>11}"
    )
    for arm, each in found.items():
        if not each:
            continue
        period, samples, dropped, doubled, drain, publish, size = (
            _middle(each, key)
            for key in (
                *("period_cycles", "samples", "dropped", "doubled"),
                *("drain_ns", "publish_ns", "most_bytes"),
            )
        )
        print(
            f"{arm:<16} {_whole(period):>9} {_whole(samples):>11} {_whole(dropped):>9} "
            f"{_whole(doubled):>8} {_milli(drain):>10} {_milli(publish):>10} "
            f"{'-' if size is None else f'{size / 1e3:.1f} kB':>11}"
        )


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _milli(value_ns: float | None) -> str:
    return "-" if value_ns is None else f"{value_ns / 1e6:.1f} ms"


def _middle(measured: Sequence[Mapping[str, Any]], key: str) -> float | None:
    values = [one[key] for one in measured if one.get(key) is not None]
    return statistics.median(values) if values else None


def _end(measured: Sequence[Mapping[str, Any]]) -> str:
    """Return how long the end took, the bytes written, and the kernels found in them."""
    seconds, size, kernels = (_middle(measured, key) for key in ("finalize_s", "bytes", "kernels"))
    return (
        f"{'-' if seconds is None else f'{seconds * 1e3:.1f} ms':>9} "
        f"{'-' if size is None else f'{size / 1e3:.1f} kB':>11} "
        f"{'-' if kernels is None else f'{kernels:.0f}':>8}"
    )
