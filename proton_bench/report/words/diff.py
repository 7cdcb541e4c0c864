"""The lines above a comparison: the change, its cause, and the compared runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from proton_bench.analysis.accounting.own_cost import OwnCost, costs_differ, own_cost
from proton_bench.analysis.choices import By
from proton_bench.analysis.compare.compare import Changes, Comparison
from proton_bench.analysis.compare.explanation import Cause, Explanation, Kind, explain
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.compare.ranking import Ranking
from proton_bench.analysis.kernels.source_lines import parse_line
from proton_bench.analysis.metrics.measure import Measure
from proton_bench.analysis.run import Run
from proton_bench.analysis.why.changes import kernel_changes, mix_change
from proton_bench.model.arrays import Array, Mask
from proton_bench.model.device import Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.memory import PEAK
from proton_bench.model.steps import Steps
from proton_bench.report.words.columns import Column
from proton_bench.report.words.edge import sources_text
from proton_bench.report.words.header import losses, steps_text
from proton_bench.support.text import visible
from proton_bench.support.units import (
    Unit,
    bytes_text,
    count_text,
    duration_text,
    percent_text,
    share_text,
)

_MAX_UNIT = 20


def measured_unit(measure: Measure, values: Iterable[float | None]) -> Unit:
    """Return the requested unit of the metric, else one that fits the largest value.

    Args:
        measure: What was compared.
        values: All values to write, in the unit of the measure's source.
    """
    if measure.scale != 1.0:
        return Unit.of_numbers(values, measure.scale, measure.name.rpartition("/")[2])
    if measure.unit == "ns":
        return Unit.of_times(values)
    unit = "%" if measure.name.endswith("/%") else visible(measure.unit, _MAX_UNIT)
    return Unit.of_numbers(values, 1.0, unit)


# Note on benchmarks that runs called a different number of times.
SCALED = "values from rounds of benchmarks are scaled to the number of calls in the base"
# Amounts that are numbers of launches, not values of the metric.
COUNTS = frozenset({"base_launches", "new_launches"})


def amounts(
    comparison: Comparison, values: Changes, rows: Sequence[int]
) -> dict[str, list[float | None]]:
    """Return the values of rows, by name, in the unit of the source; None where nothing is.

    Lines, pages and documents show these.

    Args:
        comparison: The comparison.
        values: Its inclusive values or those of rows alone.
        rows: Which rows.
    """
    is_additive = comparison.measure.is_additive
    both = values.base_valid & values.new_valid  # a rate that one side lacks has no change
    arrays = {
        "base": _known(values.base, values.base_valid),
        "new": _known(values.new, values.new_valid),
        "change": _known(values.change, np.ones_like(both) if is_additive else both),
    }
    if is_additive:
        arrays |= {"base_launches": values.base_count, "new_launches": values.new_count}
    if values.split is not None:
        arrays |= {
            "by_launches": values.split.launches,
            "by_latency": values.split.latency,
            "unlaunched": values.split.rest,
        }
    return {name: cells[np.array(rows, dtype=np.int64)].tolist() for name, cells in arrays.items()}


def growths(cells: Mapping[str, Sequence[float | None]]) -> list[float]:
    """Return each change as a share of the base, NaN where there is none."""
    return [
        change / abs(base) if change is not None and new is not None and base else math.nan
        for base, new, change in zip(cells["base"], cells["new"], cells["change"], strict=True)
    ]


def reaches(comparison: Comparison, rows: Sequence[int]) -> list[float | None]:
    """Return half of the interval of each change; none with one run on each side."""
    if comparison.interval is None:
        return []
    reach = (comparison.interval.high - comparison.interval.low) / 2.0
    return [half if math.isfinite(half) else None for half in reach[list(rows)].tolist()]


def columns(comparison: Comparison, ranking: Ranking) -> list[Column]:
    """Return the columns before the name."""
    cells = amounts(comparison, comparison.inclusive, ranking.rows)
    unit = measured_unit(comparison.measure, [*cells["base"], *cells["new"]])

    def column(
        title: str, values: Sequence[float | None], worth: int, *, signed: bool = False
    ) -> Column:
        return Column(title, unit.texts(values, signed=signed), worth, unit.name)

    sides = zip(cells["base"], cells["new"], cells["change"], strict=True)
    changes = [None if base is None and new is None else change for base, new, change in sides]
    shown = [
        column("base", cells["base"], 2),
        column("new", cells["new"], 1),
        column("change", changes, 0, signed=True),
    ]
    reach = reaches(comparison, ranking.rows)
    if reach:
        shown.append(column("+-", reach, 3))
    shown.append(Column("%", [percent_text(growth) for growth in growths(cells)], 1))
    whole = float(comparison.inclusive.base[0])
    if comparison.measure.is_additive and whole > 0:
        shares = [(change or 0.0) / whole for change in cells["change"]]
        shown.append(Column("of total", list(map(percent_text, shares)), 5))
    split = comparison.inclusive.split
    if split is None:
        return shown
    shown.append(column("by launches", cells["by_launches"], 4, signed=True))
    shown.append(column("by latency", cells["by_latency"], 4, signed=True))
    if split.rest.any():
        shown.append(column("unlaunched", cells["unlaunched"], 6, signed=True))
    pairs = zip(cells["new_launches"], cells["base_launches"], strict=True)
    extra = [(new or 0) - (base or 0) for new, base in pairs]
    more = [int(count) if count == int(count) else count for count in extra]
    return [*shown, Column("launches", Unit.of_numbers(more).texts(more, signed=True), 6)]


def _known(values: Array, valid: Mask) -> Array:
    cells = values.astype(object)
    cells[~valid] = None
    return cells


# -- names and notes -----------------------------------------------------------------------------
def names(comparison: Comparison, ranking: Ranking) -> Iterator[tuple[str, ...]]:
    """Yield the names in each line, the last with the device if there are several."""
    tree = comparison.tree
    several = len(tree.device_names) > 2
    for row, above in zip(ranking.rows, ranking.above, strict=True):
        labels = [visible(tree.name(each)) for each in (*above, row)]
        device = tree.device_names[int(tree.devices[row])] if several else ""
        if device:
            labels[-1] += f" [{visible(device)}]"
        yield tuple(labels)


def notes(comparison: Comparison, row: int) -> tuple[str, ...]:
    """Return the notes on a row, its state first."""
    tree = comparison.tree
    state = RowState(tree.states[row])
    found: list[str] = []
    former = visible(tree.former_name(row) or "", 200)
    if state is RowState.MOVED:
        origin = tree.origins.get(row, ())
        found.append(f"MOVED from {visible(' > '.join(origin[:-1]), 200) or 'the root'}")
        if former != visible(tree.name(row), 200):
            found.append(f"was {former}")
    elif state is RowState.RENAMED:
        found.append(f"RENAMED from {former}")
    elif state is not RowState.MATCHED:
        values = comparison.inclusive
        other = values.base if state is RowState.NEW else values.new
        # Rows below that moved bring their values of the other side along.
        found.append(f"{state.name} above moved rows" if other[row] else state.name)
    elif tree.kinds[row] == FrameKind.LINE and former != visible(tree.name(row), 200):
        found.append(_former_line(former))
    if tree.code_changed(row):
        found.append("other code")
    base, new = tree.variants_of(row)
    if base is not None and new is not None:
        found += _differences(base, new)
    return tuple(found)


def _former_line(name: str) -> str:
    place = parse_line(name)
    return f"was {name}" if place is None else f"was :{place.line}"


def _differences(base: Variant, new: Variant) -> Iterator[str]:
    for word in ("grid", "block"):
        one, other = getattr(base, word), getattr(new, word)
        if one != other:
            yield f"{word} {_shape(one)} -> {_shape(other)}"
    for word, field in (
        ("shared", "shared_bytes"),
        ("registers", "registers"),
        ("local memory", "local_bytes"),
        ("config", "config"),
        ("arguments", "signature"),
    ):
        one, other = getattr(base, field), getattr(new, field)
        if one != other and -1 not in {one, other}:
            yield f"{word} {_fact(one)} -> {_fact(other)}"
    mix = mix_change(base.instructions, new.instructions)
    if mix:
        yield visible(mix, 200)


def _shape(sizes: tuple[int, int, int]) -> str:
    return "x".join(map(str, sizes))


def _fact(value: object) -> str:
    return visible(str(value), 80) or "unknown"


# -- below the rows ------------------------------------------------------------------------------
def footer(comparison: Comparison, ranking: Ranking) -> Iterator[str]:
    """Yield lines about rows that are not shown, and their change."""
    if ranking.named:
        text = count_text(ranking.named, "row is", "rows are")
        yield (
            f"{text} left out by {visible(str(ranking.names), 200)}"
            f"{_changed(comparison, ranking.named_change)}; the rows above still count them"
        )
    if ranking.small:
        text = count_text(ranking.small, "smaller row is", "smaller rows are") + " left out"
        text += _changed(comparison, ranking.small_change)
        yield f"{text}; the rows above still count them, --threshold 0 shows everything"
    if ranking.deep:
        yield count_text(ranking.deep, "deeper row is", "deeper rows are") + (
            " not shown; -d shows more"
        )


def _changed(comparison: Comparison, change: float) -> str:
    if comparison.own is None:
        return ""
    unit = measured_unit(comparison.measure, [change])
    return f" and changed by {unit.text(change, signed=True)} in total"


def meanings(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the columns that need an explanation, each with it."""
    if comparison.scaled:
        yield "new", SCALED
    if not comparison.measure.is_additive:
        yield "change", "new minus base; rates, averages and shares of rows do not add up"
        return
    yield "change", "new minus base, of the row and all rows below it"
    if comparison.interval is not None:
        yield "+-", "half of the 95 % interval of the change; values are means of the runs"
    yield "of total", "the change as a share of the base's total; these add up"
    if comparison.inclusive.split is not None:
        yield "by launches", "mean latency of both sides x more or fewer launches"
        yield "by latency", "mean launches of both sides x change of one launch"
        if comparison.inclusive.split.rest.any():
            yield "unlaunched", "change of values without a launch"


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
        size = abs(growth)
        text = f"{100 * size:.0f} %" if size >= _WHOLE else share_text(size)
        yield f"{word} per call by {text}"
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
    """Yield the label and runs of each side, with the median and range of several totals.

    Where it was recorded, the memory of GPUs at its peak stands behind them.
    """
    sides = [_finite(values[:, 0]) for values in (comparison.base_runs, comparison.new_runs)]
    unit = measured_unit(comparison.measure, [total for totals in sides for total in totals])
    for word, runs, totals in zip(
        ("base", "new"), (comparison.base, comparison.new), sides, strict=True
    ):
        names = sources_text([run.source for run in runs]) + _steps_text(runs)
        yield word, f"{names}{_spread(totals, unit, runs=len(runs))}{_memory_text(runs)}"


def _steps_text(runs: Sequence[Run]) -> str:
    """Return which steps of the first run are compared, "" where runs are."""
    steps = Steps.of(runs[0].profile.provenance) if runs else None
    return "" if steps is None else f", {steps_text(steps)}"


def _memory_text(runs: Sequence[Run]) -> str:
    peaks = [run.profile.inclusive(PEAK)[0] for run in runs if run.profile.has_numbers(PEAK)]
    if not peaks:
        return ""
    middle = float(np.median(peaks))
    return f", {bytes_text(middle)} of GPU memory at the peak"


def _finite(totals: Array) -> list[float]:
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
