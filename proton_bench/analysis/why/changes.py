"""What changed about a kernel besides its time: bytes, units, occupancy, registers, code, clock."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.compare.compare import Comparison
from proton_bench.analysis.compare.explanation import Cause, Kind
from proton_bench.analysis.compare.pairing import Side
from proton_bench.analysis.metrics.formula import find_metric
from proton_bench.analysis.metrics.measured_work import interval_half
from proton_bench.analysis.metrics.peak import clock_ratio
from proton_bench.analysis.metrics.values import WIDEST
from proton_bench.analysis.view.names import steady_name
from proton_bench.analysis.why.launch_facts import Launch, mean_launch, row_times
from proton_bench.analysis.why.row_facts import QUANTITIES
from proton_bench.analysis.why.verdict import Evidence
from proton_bench.model.metrics.counter_columns import (
    COUNTED_TIME,
    CYCLES,
    INSTRUCTIONS,
    bias_column,
    busy_column,
    variance_column,
)
from proton_bench.model.profile import Profile
from proton_bench.support.units import Unit

_MOST = 3
# Smaller changes are not mentioned: relative ones, and those of fractions.
_RELATIVE, _POINTS, _CLOCK = 0.05, 0.05, 0.03
_MIX = math.log(1.1)
_COUNTED = 0.01  # counts of a processor hardly vary
_CLASSES = 4  # of instructions; more would not fit a line
# Added to counts of instructions before they are compared: 1 -> 2 says less than 64 -> 128.
_SMOOTHING = 2.0
# The smallest product of matrices that PTX has in half precision, 16 x 8 x 16, is 64 multiply-adds
# for each of 32 threads; so few of these instructions matter as much as many others.
_WORTH = {"mma": 64.0}


@dataclass(frozen=True, slots=True)
class _Side:
    """Facts of the rows of one kernel in one run.

    Attributes:
        launches: Launches, or calls.
        instructions: Of a processor, NaN if unknown.
        units: Used fractions of peaks that are known well enough.
        dram_ns: Time at the peak of DRAM, NaN if unknown.
        clock: SM clock / highest clock, NaN if unknown.
        launch: Mean facts of the launches.
        mix: Mean instructions of the code by class, weighted by time; empty if unknown.
    """

    launches: float
    instructions: float
    units: dict[str, float]
    dram_ns: float
    clock: float
    launch: Launch
    mix: dict[str, float]


def kernel_changes(comparison: Comparison, cause: Cause) -> tuple[Evidence, ...]:
    """Return what changed about the kernel of a cause, the most telling first, at most four.

    Values are those of the first run of each side. The result is empty for other rows than
    kernels, for new and removed ones, and where neither launches nor counters are recorded.
    """
    if cause.kind is Kind.BELOW:
        return ()
    sides = []
    tree = comparison.tree
    for side, runs in ((tree.base, comparison.base), (tree.new, comparison.new)):
        rows = _rows(comparison, cause, side, profile=runs[0].profile)
        if not rows:
            return ()
        sides.append(_side(runs[0].profile, rows))
    found = [*_of_counters(*sides), *_of_launches(*sides)]
    return (*found[:_MOST], *_of_code(*sides))


def mix_change(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """Return how the instructions of a code changed, as in ``instructions (mma 32 -> 0)``.

    Args:
        before: Counts by class, empty if unknown.
        after: The same of the other code.

    Returns:
        At most four classes whose counts differ by a tenth, the largest relative change first; ""
        if none does, or a side is unknown.
    """
    if not before or not after:
        return ""
    counts = {name: (before.get(name, 0), after.get(name, 0)) for name in {**before, **after}}
    changes = {name: _change(*both, _WORTH.get(name, 1.0)) for name, both in counts.items()}
    names = sorted((each for each in changes if changes[each] >= _MIX), key=lambda n: -changes[n])
    texts = [f"{name} {counts[name][0]:.0f} -> {counts[name][1]:.0f}" for name in names[:_CLASSES]]
    return f"instructions ({', '.join(texts)})" if texts else ""


def _change(before: float, after: float, worth: float) -> float:
    old, new = (_SMOOTHING + worth * max(count, 0.0) for count in (before, after))
    return abs(math.log(new / old))


def _rows(comparison: Comparison, cause: Cause, side: Side, *, profile: Profile) -> list[int]:
    """Return the rows of a kernel in a run: those of its path, else all of its name."""
    tree = comparison.tree
    names = tree.recorded or tree.strings
    if int(side.frames[cause.row]) < 0:
        return []
    wanted = steady_name(names[int(side.frames[cause.row])])
    is_named = np.array([steady_name(text) == wanted for text in profile.strings], dtype=np.bool_)
    rows = np.flatnonzero(is_named[profile.frames] & (profile.device_rows >= 0)).tolist()
    if cause.kind is not Kind.ROW:
        return rows
    path: list[str] = []
    row = cause.row
    while row > 0:
        frame = int(side.frames[row])
        path.append(steady_name(names[frame if frame >= 0 else int(tree.frames()[row])]))
        row = int(tree.parents[row])
    path.reverse()
    same = [row for row in rows if [*map(steady_name, profile.path(row))] == path]
    return same or rows


def _side(profile: Profile, rows: list[int]) -> _Side:
    def total(name: str) -> float:
        full = find_metric(name, profile.columns)
        if full is None or not profile.columns[full].kind.is_number:
            return math.nan
        column = profile.columns[full]
        known = column.known[rows]
        return float(column.values[rows][known].sum()) if bool(known.any()) else math.nan

    time_ns = total(COUNTED_TIME)
    units = {}
    for quantity in QUANTITIES:
        if not time_ns > 0:
            continue
        bias_ns = total(bias_column(quantity))  # unknown in files without
        half_ns = interval_half(total(variance_column(quantity)), max(0.0, bias_ns))
        fraction = total(busy_column(quantity)) / time_ns
        if half_ns * 100 <= WIDEST * time_ns and math.isfinite(fraction):
            units[quantity] = fraction
    return _Side(
        launches=total("count"),
        instructions=total(INSTRUCTIONS),
        units=units,
        dram_ns=total(busy_column("dram")) if "dram" in units else math.nan,
        clock=clock_ratio(profile.device(rows[0]), total(CYCLES), time_ns),
        launch=mean_launch(profile, rows),
        mix=_mean_mix(profile, rows),
    )


def _mean_mix(profile: Profile, rows: Sequence[int]) -> dict[str, float]:
    sums: dict[str, float] = {}
    whole = 0.0
    for row, time_ns in row_times(profile, rows):
        variant = profile.variant(row)
        if variant is None or not variant.instructions:
            continue
        whole += time_ns
        for name, count in variant.instructions.items():
            sums[name] = sums.get(name, 0.0) + count * time_ns
    return {name: total / whole for name, total in sums.items()}


def _of_counters(base: _Side, new: _Side) -> Iterator[Evidence]:
    calls = new.launches / base.launches if base.launches > 0 else math.nan
    growth = _growth(base.instructions * calls, new.instructions)
    if abs(growth) >= _COUNTED:
        text = f"instructions {growth * 100:+.1f} %"
        yield Evidence("counter.instructions", text, growth, "growth per call")
    growth = _growth(base.dram_ns * calls, new.dram_ns)
    if abs(growth) >= _RELATIVE:
        text = f"DRAM bytes {growth * 100:+.0f} %"
        yield Evidence("counter.dram_bytes", text, growth, "growth per launch")
    growth = _growth(base.clock, new.clock)
    if abs(growth) >= _CLOCK:
        yield Evidence("counter.clock", f"SM clock {growth * 100:+.0f} %", growth, "growth")
    changed = {
        name: new.units[name] - base.units[name]
        for name in QUANTITIES
        if name in base.units and name in new.units
    }
    for name in sorted(changed, key=lambda each: -abs(changed[each])):
        if name != "dram" and abs(changed[name]) >= _POINTS:
            before, after = base.units[name] * 100, new.units[name] * 100
            text = f"{QUANTITIES[name]} {before:.0f} -> {after:.0f} %"
            yield Evidence(f"counter.{name}", text, changed[name], "fraction of peak")


def _of_launches(base: _Side, new: _Side) -> Iterator[Evidence]:
    before, after = base.launch, new.launch
    causes = []
    if abs(after.registers - before.registers) >= 1:
        causes.append(f"registers {before.registers:.0f} -> {after.registers:.0f}")
    for name, sizes in (
        ("local memory", (before.local_bytes, after.local_bytes)),
        ("shared memory", (before.shared_bytes, after.shared_bytes)),
    ):
        if _differs(*sizes):
            unit = Unit.of_sizes(sizes)
            causes.append(f"{name} {unit.text(sizes[0])} -> {unit.text(sizes[1])}")
    why = ", ".join(causes)
    growth = after.occupancy - before.occupancy
    if abs(growth) >= _POINTS:
        text = f"occupancy {before.occupancy * 100:.0f} -> {after.occupancy * 100:.0f} %"
        yield Evidence("launch.occupancy", f"{text} ({why})" if why else text, growth, "fraction")
    elif why:
        yield Evidence("launch.resources", why, after.registers - before.registers, "registers")
    if _differs(before.blocks, after.blocks):
        text = f"{before.blocks:.0f} -> {after.blocks:.0f} blocks"
        yield Evidence("launch.grid", text, after.blocks - before.blocks, "blocks")


def _of_code(base: _Side, new: _Side) -> Iterator[Evidence]:
    text = mix_change(base.mix, new.mix)
    if text:
        growth = _growth(sum(base.mix.values()), sum(new.mix.values()))
        yield Evidence("code.instructions", text, growth, "growth of all")


def _growth(before: float, after: float) -> float:
    """Return the growth as a share; NaN if it is unknown."""
    return after / before - 1.0 if before > 0 else math.nan


def _differs(before: float, after: float) -> bool:
    return abs(after - before) > _RELATIVE * max(abs(before), abs(after))
