"""Findings of runs in which no device worked: the operators in which the time is."""

from __future__ import annotations

from collections.abc import Iterator

from proton_bench.analysis.why.cpu_rules import help_for, is_short
from proton_bench.analysis.why.run import WholeRun
from proton_bench.analysis.why.verdict import Claim, Evidence
from proton_bench.support.units import count_text, duration_text

__all__ = ["LEAST_HOT", "LEAST_SMALL", "hottest_operators", "small_operators"]

LEAST_SMALL, LEAST_HOT = 0.1, 0.1  # of CPU time
_LEAST_RUN = 0.01


def small_operators(run: WholeRun) -> Iterator[Claim]:
    """Find operators whose calls are about as short as it takes to begin one."""
    facts = [run.verdicts.facts.of(row) for row in _operators(run)]
    rows = zip(_operators(run), facts, strict=True)
    gains = {row: each.time_ns for row, each in rows if is_short(each)}
    time_ns = sum(gains.values())
    if not gains or time_ns < max(LEAST_SMALL * run.work_ns, _LEAST_RUN * run.span_ns):
        return
    calls = sum(run.verdicts.facts.of(row).launches for row in gains)
    text = (
        f"small operators: {count_text(int(calls), 'call')} of {duration_text(time_ns / calls)} on "
        f"average, {_share(time_ns, run)} of CPU time"
    )
    yield Claim(text, (Evidence("ops.small", text, time_ns, "ns"),), rows=gains)


def hottest_operators(run: WholeRun) -> Iterator[Claim]:
    """Find the operators and ranges in which most of the time is, wherever they are called."""
    facts = run.verdicts.facts
    by_name: dict[str, dict[int, float]] = {}
    for row in _operators(run):
        if not is_short(facts.of(row)):
            by_name.setdefault(facts.text(row), {})[row] = facts.of(row).time_ns
    for name, gains in by_name.items():
        time_ns = sum(gains.values())
        if time_ns < max(LEAST_HOT * run.work_ns, _LEAST_RUN * run.span_ns):
            continue
        text = f"{name}: {_share(time_ns, run)} of CPU time"
        calls = sum(facts.of(row).launches for row in gains)
        if calls > 0:
            text += f", {count_text(int(calls), 'call')} of {duration_text(time_ns / calls)}"
        evidence = Evidence("ops.hottest", text, time_ns, "ns")
        yield Claim(text, (evidence,), rows=gains, helps=help_for(name))


def _operators(run: WholeRun) -> list[int]:
    """Return the rows with time on processors, none if a device worked."""
    facts = run.verdicts.facts
    rows = facts.rows()
    return rows if all(facts.of(row).is_on_cpu for row in rows) else []


def _share(time_ns: float, run: WholeRun) -> str:
    return f"{time_ns / run.work_ns * 100:.0f} %"
