"""What `proton why` says of a run, for the head of its page."""

from __future__ import annotations

from dataclasses import dataclass

from proton_bench.analysis.why.answer import Answer, WhyRow
from proton_bench.report.words.quantity import percent_text
from proton_bench.support.text import visible
from proton_bench.support.units import count_text, duration_text

__all__ = ["Because", "reasons_of"]

_MOST_FINDINGS, _MOST_ROWS = 3, 3
_MAX_TEXT = 400


@dataclass(frozen=True, slots=True)
class Because:
    """One thing that takes time.

    Attributes:
        share: Its share of the run, or what it can save at most.
        text: What it is.
        helps: What usually helps, or the evidence.
        name: Name to look up in the graph, "" for none.
    """

    share: str
    text: str
    helps: str
    name: str = ""


def reasons_of(answer: Answer) -> tuple[Because, ...]:
    """Return the largest findings about a run, and the rows that cost most."""
    whole = "the run" if answer.is_length_known else "all work"
    found = [
        Because(
            f"saves at most {_share(each.gain_ns, answer.span_ns)} of {whole}",
            visible(each.text, _MAX_TEXT),
            visible(each.helps, _MAX_TEXT),
        )
        for each in answer.findings[:_MOST_FINDINGS]
    ]
    found += [
        Because(
            f"{_share(row.time_ns, answer.work_ns)} of {f'{answer.device} time'.strip()}",
            " \u203a ".join(visible(name) for name in row.place),
            _verdict(row),
            visible(row.path[-1]) if row.path else "",
        )
        for row in answer.rows[:_MOST_ROWS]
    ]
    return tuple(found)


def _verdict(row: WhyRow) -> str:
    """Return what limits a row; of an unknown verdict, how often and how long it ran."""
    if row.verdict.is_known:
        said = "; ".join(each.text for each in row.verdict.evidence)
        return visible(f"{row.verdict.kind}: {said}", _MAX_TEXT)
    if not row.launches > 0:
        return ""
    mean = duration_text(row.time_ns / row.launches)
    return f"{count_text(int(row.launches), 'time', 'times')} {mean}"


def _share(part_ns: float, whole_ns: float) -> str:
    if not whole_ns > 0:
        return duration_text(part_ns)
    return percent_text(part_ns / whole_ns).lstrip("+")
