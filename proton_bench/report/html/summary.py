"""The head of a page: the total of a run, and what is missing or odd."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.analysis.metrics.derive import available_metrics, default_metrics
from proton_bench.analysis.view.select import MetricTree
from proton_bench.analysis.why.answer import Answer, WhyRow
from proton_bench.model.profile import Profile
from proton_bench.report.html.table import KernelTable, form_unit, metric_form
from proton_bench.report.words.diff import (
    calls_line,
    cost_lines,
    cost_warning,
    headline,
    loss_lines,
    side_lines,
)
from proton_bench.report.words.header import (
    cost_line,
    device_lines,
    losses,
    recorded_line,
    steps_lines,
)
from proton_bench.support.text import visible
from proton_bench.support.units import count_text, duration_text, share_text

_MOST_FINDINGS, _MOST_ROWS = 3, 3
_MAX_TEXT = 400
_KERNELS = ("kernel or operator", "kernels and operators")


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


@dataclass(frozen=True, slots=True)
class Summary:
    """The head of a page.

    Attributes:
        headline: The most important line.
        lines: Further sentences.
        reasons: Why the run takes its time, the most important first.
        warnings: Sentences about missing or odd things.
    """

    headline: str
    lines: tuple[str, ...]
    warnings: tuple[str, ...]
    reasons: tuple[Because, ...] = ()


def shown_metrics(profile: Profile) -> tuple[str, ...]:
    """Return the default metrics; shares are beside every value anyway."""
    return tuple(name for name in default_metrics(profile) if not name.endswith("/%"))


def profile_summary(
    profile: Profile,
    tree: MetricTree | None,
    kernels: KernelTable | None,
    *,
    answer: Answer | None = None,
) -> Summary:
    """Return the summary of one run.

    Args:
        profile: The run.
        tree: Its rows with the shown metrics; None if nothing was recorded.
        kernels: Its kernels; None if nothing was recorded.
        answer: Why it takes its time; None if nothing was recorded.
    """
    total = _total(tree) if tree is not None else "nothing was recorded"
    size = count_text(len(profile), "row")
    if kernels is not None:
        size += f", {count_text(len(kernels.names), *_KERNELS)}"
    lines = [total, size] if answer is not None else [size]
    lines += steps_lines(profile)
    lines += device_lines(profile)
    lines += filter(None, [recorded_line(profile)])
    if answer is not None and answer.memory:
        lines.append(f"GPU memory: {visible('; '.join(e.text for e in answer.memory), _MAX_TEXT)}")
    lines.append(cost_line(profile))
    return Summary(
        headline=visible(answer.sentence) if answer is not None else total,
        lines=tuple(lines),
        warnings=tuple(_warnings(profile, tree)),
        reasons=reasons_of(answer) if answer is not None else (),
    )


def comparison_summary(comparison: Comparison) -> Summary:
    """Return the summary of a comparison."""
    lines = [*side_lines(comparison), *cost_lines(comparison)]
    scaled = calls_line(comparison)
    warnings = [*loss_lines(comparison)]
    costly = cost_warning(comparison)
    if costly is not None:
        warnings.append(costly)
    return Summary(
        headline=headline(comparison),
        lines=(
            *(f"{word}: {text}" for word, text in lines),
            *([scaled] if scaled is not None else []),
        ),
        warnings=tuple(warnings),
    )


def _total(tree: MetricTree) -> str:
    metric = tree.metrics[0]
    title, form, scale = metric_form(metric.name)
    known = metric.values[metric.valid]
    if not metric.is_number or not len(known):
        return f"no {title}"
    # If values are of rows alone, the largest one represents the whole.
    value = metric.values[0] if metric.valid[0] else np.abs(known.astype(np.float64)).max()
    amount = float(value) * scale
    return f"{title} {form_unit(form, [amount]).text(amount)}"


def _warnings(profile: Profile, tree: MetricTree | None) -> Iterator[str]:
    yield from losses(profile)
    if len(profile) == 1 or not available_metrics(profile).recorded:
        what = "rows" if len(profile) == 1 else "metrics"
        yield f"EMPTY: the profile has no {what}: nothing was recorded in that run"
    for metric in tree.metrics if tree is not None else ():
        is_bytes = metric.name.lower().startswith("bytes") and metric.is_number
        if is_bytes and bool((metric.values[metric.valid] < 0).any()):
            yield "negative byte values: the result of an integer overflow in the recorded program"


def reasons_of(answer: Answer) -> tuple[Because, ...]:
    """Return the largest findings about a run, and the rows that cost most."""
    length = "the run" if answer.steps is None else "the step"
    whole = length if answer.is_length_known else "all work"
    found = [
        Because(
            f"saves at most {share_text(each.gain_ns, answer.span_ns)} of {whole}",
            visible(each.text, _MAX_TEXT),
            visible(each.helps, _MAX_TEXT),
        )
        for each in answer.findings[:_MOST_FINDINGS]
    ]
    found += [
        Because(
            duration_text(row.time_ns)
            if answer.device == "CPU"
            else f"{share_text(row.time_ns, answer.work_ns)} of {f'{answer.device} time'.strip()}",
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
    return f"{count_text(row.launches, 'time', 'times')} {mean}"
