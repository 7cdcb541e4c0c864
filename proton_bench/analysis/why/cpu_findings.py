"""Findings of runs in which no device worked: operators with the time, and code outside of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from proton_bench.analysis.accounting.compilation import IN_RANGES
from proton_bench.analysis.accounting.host_time import IMPORTS, own_lines, recorded_of
from proton_bench.analysis.why.row_facts import RowFacts
from proton_bench.analysis.why.rules import help_for, is_short
from proton_bench.analysis.why.run import WholeRun
from proton_bench.analysis.why.verdict import OTHER_CODE, Claim, Evidence
from proton_bench.support.units import count_text, duration_text

_LEAST_SMALL, _LEAST_HOT = 0.1, 0.1  # of recorded time
_LEAST_OTHER = 0.1  # of the run
_LEAST_RUN = 0.01
_ALMOST_ALL = 0.995


def small_operators(run: WholeRun) -> Iterator[Claim]:
    """Find operators whose calls are about as short as it takes to begin one."""
    rows = {row: facts for row, facts in _operators(run).items() if is_short(facts)}
    if not _is_large(run, rows.values(), _LEAST_SMALL):
        return
    calls, mean = _calls_text(rows.values())
    text = f"small operators: {calls} of {mean} on average, {_time_text(rows.values())}"
    yield _claim("ops.small", text, rows)


def hottest_operators(run: WholeRun) -> Iterator[Claim]:
    """Find the operators and ranges in which most of the time is, wherever they are called."""
    by_name: dict[str, dict[int, RowFacts]] = {}
    for row, facts in _operators(run).items():
        if not is_short(facts):
            by_name.setdefault(facts.name, {})[row] = facts
    for name, rows in by_name.items():
        if not _is_large(run, rows.values(), _LEAST_HOT):
            continue
        text = f"{name}: {_time_text(rows.values())}"
        if any(facts.launches > 0 for facts in rows.values()):
            text += ", {} of {}".format(*_calls_text(rows.values()))
        yield _claim("ops.hottest", text, rows, helps=help_for(name))


def other_code(run: WholeRun) -> Iterator[Claim]:
    """Find code of the program between recorded operators and scopes, with its longest lines."""
    spent_ns = other_code_ns(run)
    if spent_ns < _LEAST_OTHER * run.span_ns:
        return
    lines = [
        Evidence("host.line", f"{duration_text(line_ns)} in {text}", float(line_ns), "ns")
        for name, text, line_ns in own_lines(run.recorded, run.span_ns, by="wall")
        if name != IMPORTS
    ]
    text = f"code outside recorded work: {duration_text(spent_ns)}"
    evidence = Evidence("host.outside", text, spent_ns, "ns")
    if lines:
        text += f", {lines[0].text}"
    helps = "" if lines else "record more steps to see its lines, or name its parts with scopes"
    yield Claim(text, (evidence, *lines), pools={OTHER_CODE: spent_ns}, helps=helps)


def other_code_ns(run: WholeRun) -> float:
    """Return the time of such code without imports and compiling, 0 if unknown or a GPU worked."""
    times, recorded = run.times, recorded_of(run.recorded)
    if not run.verdicts.facts.device_kinds <= {"CPU"} or run.devices or times.wall_ns is None:
        return 0.0
    if times.host_not_recorded_ns is not None:
        other_ns = times.host_not_recorded_ns - (times.imports_ns or 0)
        compiled_ns = sum(ns for stage, ns in run.compilation.stages if stage != IN_RANGES)
        return max(other_ns - compiled_ns, 0.0)
    # A few steps have no samples. Of a whole run this would be mostly its start.
    return recorded.parts.get("not recorded", 0.0) if recorded and run.word == "step" else 0.0


def _operators(run: WholeRun) -> dict[int, RowFacts]:
    """Return the rows with time of the host, none if a device worked.

    Those that read input or compile are left out, which findings of their own are about.
    """
    rows = {row: run.verdicts.facts.of(row) for row in run.verdicts.facts.rows()}
    if not all(facts.is_on_host for facts in rows.values()):
        return {}
    return {row: facts for row, facts in rows.items() if not facts.purpose}


def _is_large(run: WholeRun, rows: Iterable[RowFacts], least: float) -> bool:
    time_ns = _time_ns(rows)
    return time_ns > 0 and time_ns >= max(least * run.work_ns, _LEAST_RUN * run.span_ns)


def _claim(id_: str, text: str, rows: Mapping[int, RowFacts], *, helps: str = "") -> Claim:
    evidence = Evidence(id_, text, _time_ns(rows.values()), "ns")
    times = {row: facts.time_ns for row, facts in rows.items()}
    return Claim(text, (evidence,), rows=times, helps=helps)


def _time_ns(rows: Iterable[RowFacts]) -> float:
    return sum(facts.time_ns for facts in rows)


def _time_text(rows: Collection[RowFacts]) -> str:
    beside_ns, time_ns = sum(facts.beside_ns for facts in rows), _time_ns(rows)
    text = f"{duration_text(time_ns)} elapsed"
    if not beside_ns > 0:
        return text
    part = "" if beside_ns > _ALMOST_ALL * time_ns else f"{duration_text(beside_ns)} of it "
    return f"{text}, {part}on other threads"


def _calls_text(rows: Collection[RowFacts]) -> tuple[str, str]:
    calls = sum(facts.launches for facts in rows)
    return count_text(calls, "call"), duration_text(_time_ns(rows) / calls)
