"""The rows of a comparison as texts, column by column, for every way to show them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.analysis.compare.pairing import RowState
from proton_bench.analysis.compare.ranking import Ranking
from proton_bench.analysis.kernels.source_lines import parse_line
from proton_bench.analysis.why.changes import mix_change
from proton_bench.model.device import Variant
from proton_bench.model.frame import FrameKind
from proton_bench.report.words.columns import Column
from proton_bench.report.words.quantity import measured_unit
from proton_bench.support.text import visible
from proton_bench.support.units import Unit, count_text, percent_text

__all__ = ["SCALED", "columns", "footer", "meanings", "names", "notes"]

# Note on benchmarks that runs called a different number of times.
SCALED = "values from rounds of benchmarks are scaled to the number of calls in the base"


def columns(comparison: Comparison, ranking: Ranking) -> list[Column]:
    """Return the columns before the name."""
    rows = np.array(ranking.rows)
    values = comparison.inclusive
    base, new = _known(values.base, values.base_valid), _known(values.new, values.new_valid)
    unit = measured_unit(comparison.measure, [*base[rows], *new[rows]])
    changes = _changes(comparison)[rows].tolist()
    found = [
        Column("base", tuple(unit.texts(base[rows])), 2, unit.name),
        Column("new", tuple(unit.texts(new[rows])), 1, unit.name),
        Column("change", tuple(unit.texts(changes, signed=True)), 0, unit.name),
        Column("%", tuple(_growth(comparison, row) for row in ranking.rows), 1),
    ]
    if comparison.interval is not None:
        reach = (comparison.interval.high - comparison.interval.low) / 2.0
        known = _known(reach, np.isfinite(reach))
        found.insert(3, Column("+-", tuple(unit.texts(known[rows])), 3, unit.name))
    if comparison.measure.is_additive and values.base[0] > 0:
        shares = values.change[rows] / float(values.base[0])
        found.append(Column("of total", tuple(percent_text(each) for each in shares.tolist()), 5))
    return found + _parts(comparison, ranking, unit)


def _parts(comparison: Comparison, ranking: Ranking, unit: Unit) -> list[Column]:
    values, rows = comparison.inclusive, np.array(ranking.rows)
    if values.split is None:
        return []
    launches = (values.new_count - values.base_count)[rows].tolist()
    whole = [int(each) if each == int(each) else each for each in launches]
    extra = Unit.of_numbers(whole).texts(whole, signed=True)

    def part(title: str, amounts: npt.NDArray[Any], worth: int) -> Column:
        texts = unit.texts(amounts[rows].tolist(), signed=True)
        return Column(title, tuple(texts), worth, unit.name)

    found = [
        part("by launches", values.split.launches, 4),
        part("by latency", values.split.latency, 4),
        Column("launches", tuple(extra), 6),
    ]
    if values.split.rest.any():
        found.insert(2, part("unlaunched", values.split.rest, 6))
    return found


def _known(values: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    cells = values.astype(object)
    cells[~valid] = None
    return cells


def _changes(comparison: Comparison) -> npt.NDArray[Any]:
    """Return the change of each row; a rate that one side lacks has none."""
    values = comparison.inclusive
    either = values.base_valid | values.new_valid
    both = values.base_valid & values.new_valid
    return _known(values.change, either if comparison.measure.is_additive else both)


def _growth(comparison: Comparison, row: int) -> str:
    values = comparison.inclusive
    if not (values.base_valid[row] and values.new_valid[row]) or values.base[row] == 0:
        return "-"
    return percent_text(float(values.change[row]) / abs(float(values.base[row])))


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
