"""The lines above a comparison: the change, its cause, and the compared runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.accounting.own_cost import OwnCost, costs_differ, own_cost
from proton_bench.analysis.compare.breakdown import By
from proton_bench.analysis.compare.compare import Comparison
from proton_bench.analysis.compare.explanation import Cause, Explanation, Kind, explain
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.why.changes import kernel_changes
from proton_bench.report.words.header import losses
from proton_bench.report.words.names import sources_text
from proton_bench.report.words.quantity import measured_unit
from proton_bench.support.text import visible
from proton_bench.support.units import Unit, count_text, duration_text, percent_text, share_text

__all__ = [
    "calls_line",
    "certain_headline",
    "cost_lines",
    "cost_warning",
    "headline",
    "loss_lines",
    "side_lines",
]

_MAX_NAME = 80
_MAX_TEXT = 160
# Most names above a row to distinguish it by, and most rows of its name to compare.
_MAX_ABOVE = 3
_MAX_OTHERS = 1000
# Smaller changes per launch are not mentioned.
_SLOWER = 0.005
# Percentages of larger shares in sentences have no decimals.
_WHOLE = 0.1
_AT_CALLS = " at the base's number of calls"


def headline(comparison: Comparison) -> str:
    """Return one line with the change and its largest cause.

    For example ``+12.3 % (+1.2 ms): 80 % of it is softmax under layer3, slower per launch by 40 %,
    4 launches more, occupancy 50 -> 25 % (registers 96 -> 168)``.
    """
    explanation = explain(comparison)
    if explanation is None:
        return _rate_headline(comparison)
    return _total(comparison, explanation) + _causes(comparison, explanation)


def certain_headline(comparison: Comparison) -> str:
    """Return `headline`, without a cause if the total may not have changed."""
    explanation, interval = explain(comparison), comparison.interval
    if explanation is None or interval is None or not interval.low[0] <= 0 <= interval.high[0]:
        return headline(comparison)
    return _total(comparison, explanation)


def _total(comparison: Comparison, explanation: Explanation) -> str:
    """Return the total change and its bounds."""
    change, bounds = explanation.new - explanation.base, _bounds(comparison)
    unit = measured_unit(comparison.measure, [change, *bounds])
    scaled = _AT_CALLS if comparison.scaled else ""
    if not explanation.causes:
        text = f"no change of {visible(comparison.measure.name)}{scaled}"
    else:
        text = unit.text(change, signed=True)
        if explanation.base > 0:
            text = f"{percent_text(change / explanation.base)} ({text})"
        text += scaled
    if not bounds:
        return text
    doubt = ", perhaps no change at all" if bounds[0] <= 0 <= bounds[1] else ""
    ends = " to ".join(unit.text(each, signed=True) for each in bounds)
    return f"{text}, 95 % interval {ends}{doubt}"


def _bounds(comparison: Comparison) -> list[float]:
    interval = comparison.interval
    ends = [] if interval is None else [float(interval.low[0]), float(interval.high[0])]
    return ends if np.isfinite(ends).all() else []


def _causes(comparison: Comparison, explanation: Explanation) -> str:
    if not explanation.causes:
        return ""
    if explanation.cancels:
        unit = measured_unit(comparison.measure, [cause.change for cause in explanation.causes])
        return ": " + "; ".join(
            f"{unit.text(cause.change, signed=True)} {_cause(comparison, cause)}"
            for cause in explanation.causes
        )
    (cause,) = explanation.causes
    share = _rounded(cause.share)
    verb = "happened" if cause.kind is Kind.BELOW else "is"
    return f": {share} of it {verb} {_cause(comparison, cause)}"


def _rounded(share: float) -> str:
    return share_text(share, decimals=0 if abs(share) >= _WHOLE else 1)


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
    return f"{name}{where}" if cause.row else "outside all rows below"


def _under(comparison: Comparison, row: int) -> str:
    """Return as many rows above as needed to distinguish the row from others of its name."""
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
    if cause.state is RowState.NEW:
        yield "which is new"
        return
    if cause.state is RowState.REMOVED:
        yield "which is gone"
        return
    if cause.state is RowState.MOVED:
        yield "moved"
    if cause.state is RowState.RENAMED:
        yield f"which was {visible(comparison.tree.former_name(cause.row) or '', _MAX_NAME)}"
    growth = cause.per_launch
    # Launches of several kernels together have no common latency.
    if growth is not None and abs(growth) >= _SLOWER and _is_launched(comparison, cause):
        if comparison.measure.unit in ("s", "ms", "us", "ns"):
            word = "slower" if growth > 0 else "faster"
        else:
            word = "more" if growth > 0 else "less"
        yield f"{word} per call by {_rounded(abs(growth))}"
    launches = round(cause.new_count - cause.base_count)
    if launches:
        word = "more" if launches > 0 else "fewer"
        yield f"{count_text(abs(launches), 'call')} {word}"
    if cause.kind is Kind.ROW and comparison.tree.code_changed(cause.row):
        yield "with other code"
    for found in kernel_changes(comparison, cause):
        yield visible(found.text, _MAX_TEXT)


def _is_launched(comparison: Comparison, cause: Cause) -> bool:
    return cause.kind is not Kind.BELOW and comparison.by in (By.PATH, By.KERNEL, By.LINE)


def _rate_headline(comparison: Comparison) -> str:
    values = comparison.inclusive
    name = visible(comparison.measure.name) + (_AT_CALLS if comparison.scaled else "")
    both = values.base_valid & values.new_valid
    if both[0] and values.base[0] != values.new[0]:
        return f"{name} {_from_to(comparison, 0)}"
    changed = np.where(both, np.abs(values.change), 0.0)
    # The lowest of the rows with the same change.
    row = int(np.flatnonzero(changed == changed.max())[-1])
    if changed[row] == 0:
        what = "no change of" if both.any() else "no row of both sides has"
        return f"{what} {name}"
    where = visible(comparison.tree.name(row), _MAX_NAME)
    where += _under(comparison, row)
    return f"{name} changed most in {where}: {_from_to(comparison, row)}"


def _from_to(comparison: Comparison, row: int) -> str:
    base, new = float(comparison.inclusive.base[row]), float(comparison.inclusive.new[row])
    unit = measured_unit(comparison.measure, [base, new])
    text = f"{unit.text(base)} -> {unit.text(new)}"
    return f"{text} ({percent_text(new / base - 1.0)})" if base > 0 else text


def side_lines(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the label and runs of each side, with the median and range of several totals."""
    sides = [_known(values[:, 0]) for values in (comparison.base_runs, comparison.new_runs)]
    unit = measured_unit(comparison.measure, [total for totals in sides for total in totals])
    for word, runs, totals in zip(
        ("base", "new"), (comparison.base, comparison.new), sides, strict=True
    ):
        names = sources_text([run.source for run in runs])
        yield word, f"{names}{_spread(totals, unit, runs=len(runs))}"


def _known(totals: npt.NDArray[Any]) -> list[float]:
    known: list[float] = totals[np.isfinite(totals.astype(np.float64))].tolist()
    return known


def _spread(totals: Sequence[float], unit: Unit, *, runs: int) -> str:
    if not totals:
        return ""
    middle = unit.text(float(np.median(totals)))
    if runs == 1:
        return f": {middle}"
    low, high = unit.text(min(totals)), unit.text(max(totals))
    return f": median {middle} of {count_text(runs, 'run')}, {low} to {high}"


def calls_line(comparison: Comparison) -> str | None:
    """Return a sentence if calls of benchmarks differ in number, else None."""
    count = len(comparison.scaled)
    if not count:
        return None
    what = "1 benchmark was" if count == 1 else f"{count} benchmarks were"
    return (
        f"{what} called a different number of times: values from their rounds are scaled to the "
        f"calls in {'the base' if len(comparison.base) == 1 else 'the first run of the base'}"
    )


def loss_lines(comparison: Comparison) -> Iterator[str]:
    """Yield a line for each thing that is missing in a run."""
    for run in (*comparison.base, *comparison.new):
        for loss in losses(run.profile):
            yield f"{visible(run.source)}: {loss}"


def cost_lines(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the label of each side and the profiler's estimate of its own cost."""
    sides = [[own_cost(run.profile) for run in runs] for runs in (comparison.base, comparison.new)]
    known = [cost for side in sides for cost in side if cost is not None]
    if not known:
        yield "both", "own cost of the profiler: unknown, the files do not say"
        return
    units = (
        Unit.of_times(cost.cost_ns for cost in known),
        Unit.of_times(cost.whole_ns for cost in known),
    )
    for word, side in zip(("base", "new"), sides, strict=True):
        text = _cost(side[0], units) if len(side) == 1 else _costs(side, units[0])
        yield word, f"own cost of the profiler: {text}"


def _cost(cost: OwnCost | None, units: tuple[Unit, Unit]) -> str:
    if cost is None:
        return "unknown, the file does not say"
    text = f"about {units[0].text(cost.cost_ns)} (its estimate)"
    if cost.whole_ns is not None and cost.share is not None:
        text += f", {share_text(cost.share, decimals=None)} of {units[1].text(cost.whole_ns)}"
    return text


def _costs(costs: Sequence[OwnCost | None], unit: Unit) -> str:
    known = [cost for cost in costs if cost is not None]
    if not known:
        return "not known, the files do not say"
    low, high = (unit.text(pick(cost.cost_ns for cost in known)) for pick in (min, max))
    text = f"about {low} (its estimate)" if low == high else f"about {low} to {high} (its estimate)"
    shares = [cost.share for cost in known if cost.share is not None]
    if shares:
        least, most = (share_text(pick(shares), decimals=None) for pick in (min, max))
        text += f", {least}" if least == most else f", {least.removesuffix(' %')} to {most}"
        text += " of a run"
    missing = len(costs) - len(known)
    return f"{text}; unknown for {count_text(missing, 'run')}" if missing else text


def cost_warning(comparison: Comparison) -> str | None:
    """Return a sentence if the costs of recording differ much, else None."""
    found = costs_differ(comparison.base, comparison.new)
    if found is None:
        return None
    more, less = ("new", "base") if found[1] > found[0] else ("base", "new")
    return (
        f"recording cost {duration_text(abs(found[1] - found[0]))} more in {more} than in {less}: "
        "host times (wall, cpu_time, launch latency) may differ for this reason alone"
    )
