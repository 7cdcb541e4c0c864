"""The lines above a comparison: what changed, what explains it, and what was compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.breakdown import By
from proton_bench.analysis.compare import Comparison
from proton_bench.analysis.explanation import Cause, Explanation, Kind, explain
from proton_bench.analysis.own_cost import costs_differ, own_cost
from proton_bench.analysis.pairing import Fate
from proton_bench.analysis.run import Run
from proton_bench.report.header import cost_text, losses
from proton_bench.report.names import visible
from proton_bench.report.quantity import Quantity, percent_text
from proton_bench.report.units import count_text, duration_text

__all__ = [
    "certain_headline",
    "cost_lines",
    "cost_warning",
    "headline",
    "loss_lines",
    "side_lines",
]

_MAX_NAME = 80
# Names above a row that tell it apart, and rows of its name to tell it apart from.
_MAX_ABOVE = 3
_MAX_OTHERS = 1000
# Smaller changes per launch are not worth a word.
_SLOWER = 0.005
# Percentages in sentences have no decimals from here on.
_WHOLE = 10.0


def headline(comparison: Comparison) -> str:
    """Return one line that says how much changed and what most of it comes from.

    For example ``+12.3 % (+1.2 ms): 80 % of it is softmax under layer3, slower per launch by 40 %,
    4 launches more``.
    """
    explanation = explain(comparison)
    if explanation is None:
        return _rate_headline(comparison)
    return (
        _total(comparison, explanation) + _interval(comparison) + _causes(comparison, explanation)
    )


def certain_headline(comparison: Comparison) -> str:
    """Return `headline`, without a cause where the whole may not have changed at all."""
    explanation, interval = explain(comparison), comparison.interval
    if explanation is None or interval is None or not interval.low[0] <= 0 <= interval.high[0]:
        return headline(comparison)
    return _total(comparison, explanation) + _interval(comparison)


def _total(comparison: Comparison, explanation: Explanation) -> str:
    if not explanation.causes:
        return f"no change of {visible(comparison.measure.name)}"
    change = explanation.new - explanation.base
    amount = Quantity.of(comparison.measure, change).text(change, signed=True)
    if explanation.base <= 0:
        return amount
    return f"{percent_text(change / explanation.base)} ({amount})"


def _interval(comparison: Comparison) -> str:
    interval = comparison.interval
    if interval is None:
        return ""
    low, high = float(interval.low[0]), float(interval.high[0])
    if not np.isfinite([low, high]).all():
        return ""
    quantity = Quantity.of(comparison.measure, max(abs(low), abs(high)))
    bounds = " to ".join(quantity.text(each, signed=True) for each in (low, high))
    doubt = ", which may be no change at all" if low <= 0 <= high else ""
    return f", 95 % interval {bounds}{doubt}"


def _causes(comparison: Comparison, explanation: Explanation) -> str:
    if not explanation.causes:
        return ""
    if explanation.cancels:
        parts = []
        for cause in explanation.causes:
            amount = Quantity.of(comparison.measure, cause.change).text(cause.change, signed=True)
            parts.append(f"{amount} {_cause(comparison, cause)}")
        return ": " + "; ".join(parts)
    (cause,) = explanation.causes
    share = _rounded(cause.share)
    verb = "happened" if cause.kind is Kind.BELOW else "is"
    return f": {share} of it {verb} {_cause(comparison, cause)}"


def _rounded(share: float) -> str:
    percent = 100.0 * share
    return f"{percent:.0f} %" if abs(percent) >= _WHOLE else f"{percent:.1f} %"


def _cause(comparison: Comparison, cause: Cause) -> str:
    return ", ".join([_where(comparison, cause), *_why(comparison, cause)])


def _where(comparison: Comparison, cause: Cause) -> str:
    tree = comparison.tree
    name = visible(tree.name(cause.row), _MAX_NAME)
    if cause.kind is Kind.KERNEL:
        return f"{name} in {count_text(cause.places, 'place')}"
    where = _under(comparison, cause.row)
    if cause.kind is Kind.BELOW:
        return f"below {name}{where}"
    return f"{name}{where}" if cause.row else "outside of all rows below"


def _under(comparison: Comparison, row: int) -> str:
    """Return the rows above, as many as tell the row apart from others of its name."""
    tree = comparison.tree
    frames = tree.frames()
    others = np.flatnonzero(frames == frames[row])[:_MAX_OTHERS].tolist()
    names = tree.path(row)[:-1]
    paths = [tree.path(other)[:-1] for other in others if other != row]
    for count in range(1, _MAX_ABOVE):
        if not any(path[-count:] == names[-count:] for path in paths):
            break
    shown = [visible(name, _MAX_NAME) for name in names[-count:]]
    return f" under {' > '.join(shown)}" if shown else ""


def _why(comparison: Comparison, cause: Cause) -> Iterator[str]:
    if cause.fate is Fate.NEW:
        yield "which is new"
        return
    if cause.fate is Fate.REMOVED:
        yield "which is gone"
        return
    if cause.fate is Fate.MOVED:
        yield "moved"
    if cause.fate is Fate.RENAMED:
        yield f"which was {visible(comparison.tree.former_name(cause.row) or '', _MAX_NAME)}"
    growth = cause.per_launch
    # Launches of several kernels together have no common latency.
    if growth is not None and abs(growth) >= _SLOWER and _is_launched(comparison, cause):
        if comparison.measure.unit in ("s", "ms", "us", "ns"):
            word = "slower" if growth > 0 else "faster"
        else:
            word = "more" if growth > 0 else "less"
        yield f"{word} per launch by {_rounded(abs(growth))}"
    launches = round(cause.new_count - cause.base_count)
    if launches:
        word = "more" if launches > 0 else "fewer"
        yield f"{count_text(abs(launches), 'launch', 'launches')} {word}"
    if cause.kind is Kind.ROW and comparison.tree.code_changed(cause.row):
        yield "with other code"


def _is_launched(comparison: Comparison, cause: Cause) -> bool:
    return cause.kind is not Kind.BELOW and comparison.by in (By.PATH, By.KERNEL, By.LINE)


def _rate_headline(comparison: Comparison) -> str:
    values, name = comparison.inclusive, visible(comparison.measure.name)
    both = values.base_valid & values.new_valid
    if both[0] and values.base[0] != values.new[0]:
        return f"{name} {_from_to(comparison, 0)}"
    changed = np.where(both, np.abs(values.change), 0.0)
    # Of rows that changed alike the lowest one.
    row = int(np.flatnonzero(changed == changed.max())[-1])
    if changed[row] == 0:
        what = "no change of" if both.any() else "no row of both sides has"
        return f"{what} {name}"
    where = visible(comparison.tree.name(row), _MAX_NAME)
    where += _under(comparison, row)
    return f"{name} changed most in {where}: {_from_to(comparison, row)}"


def _from_to(comparison: Comparison, row: int) -> str:
    base, new = float(comparison.inclusive.base[row]), float(comparison.inclusive.new[row])
    quantity = Quantity.of(comparison.measure, max(abs(base), abs(new)))
    text = f"{quantity.text(base)} -> {quantity.text(new)}"
    return f"{text} ({percent_text(new / base - 1.0)})" if base > 0 else text


def side_lines(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield for each side its word and its runs, with the median and range of several totals."""
    for word, runs, totals in (
        ("base", comparison.base, comparison.base_runs[:, 0]),
        ("new", comparison.new, comparison.new_runs[:, 0]),
    ):
        yield word, f"{_sources(runs)}{_spread(comparison, totals)}"


def _sources(runs: Sequence[Run]) -> str:
    return ", ".join(visible(run.source) for run in runs)


def _spread(comparison: Comparison, totals: npt.NDArray[Any]) -> str:
    known = totals[np.isfinite(totals.astype(np.float64))]
    if not len(known):
        return ""
    middle = float(np.median(known))
    quantity = Quantity.of(comparison.measure, middle)
    if len(totals) == 1:
        return f": {quantity.text(middle)}"
    low, high = quantity.text(float(known.min())), quantity.text(float(known.max()))
    runs = count_text(len(totals), "run")
    return f": median {quantity.text(middle)} of {runs}, {low} to {high}"


def loss_lines(comparison: Comparison) -> Iterator[str]:
    """Yield a line about each thing that a run should hold and does not."""
    for run in (*comparison.base, *comparison.new):
        for loss in losses(run.profile):
            yield f"{visible(run.source)}: {loss}"


def cost_lines(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield for each side its word and what recording cost it, as the profiler estimated it."""
    runs = (*comparison.base, *comparison.new)
    if all(own_cost(run.profile) is None for run in runs):
        yield "both", "own cost of the profiler: not known, the files do not say"
        return
    for word, side in (("base", comparison.base), ("new", comparison.new)):
        yield word, f"own cost of the profiler: {_cost(side)}"


def _cost(runs: Sequence[Run]) -> str:
    if len(runs) == 1:
        return cost_text(runs[0].profile)
    known = [cost for cost in (own_cost(run.profile) for run in runs) if cost is not None]
    if not known:
        return "not known, the files do not say"
    low, high = (duration_text(pick(cost.cost_ns for cost in known)) for pick in (min, max))
    text = f"about {low} (its estimate)" if low == high else f"about {low} to {high} (its estimate)"
    shares = [100.0 * cost.share for cost in known if cost.share is not None]
    if shares:
        least, most = (f"{pick(shares):.2g}" for pick in (min, max))
        text += f", {least} %" if least == most else f", {least} to {most} %"
        text += " of a run"
    missing = len(runs) - len(known)
    return f"{text}; not known of {count_text(missing, 'run')}" if missing else text


def cost_warning(comparison: Comparison) -> str | None:
    """Return a sentence where the sides differ much in what recording cost; None elsewhere."""
    found = costs_differ(comparison.base, comparison.new)
    if found is None:
        return None
    more, less = ("new", "base") if found[1] > found[0] else ("base", "new")
    return (
        f"recording cost {duration_text(abs(found[1] - found[0]))} more in {more} than in {less}: "
        "times of the host (wall, cpu_time, launch latency) may differ for that alone"
    )
