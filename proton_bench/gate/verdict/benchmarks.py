"""Benchmarks of pytest: if runs have them, the gate compares only these.

All gates use `compared_runs`, so that the same files give the same result everywhere. Below each
benchmark, identified by its id, are ``round`` with the times of its rounds and the paths recorded
while they ran, all per call. Calibration decides the numbers of rounds and of calls per round, so
they do not matter. ``outside of the rounds`` is the elapsed time of the test without them. Warm-up,
flushes of the cache and everything else is left out, except canary kernels. The profiles hold the
thresholds of markers and whether only some tests were selected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from proton_bench.analysis.run import Run
from proton_bench.analysis.selector import Selectors
from proton_bench.analysis.view.names import rows_below
from proton_bench.errors import UsageError
from proton_bench.gate.machine import CANARY_SCOPE
from proton_bench.gate.policy import Policy, Threshold, parse_threshold
from proton_bench.gate.statistics.arrangement import Arrangement
from proton_bench.gate.verdict.measured import Measured, measure
from proton_bench.model.arrays import Floats, Mask
from proton_bench.model.benchmark_columns import (
    BENCHMARK,
    CALLS,
    CHOSEN_TESTS,
    CLOCK,
    CPU_ROUND,
    FLUSH,
    GPU_ROUND,
    ROUNDS,
    THRESHOLD,
    WARM_UP,
)
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation, MetricColumn
from proton_bench.model.metrics.wall_times import WALL
from proton_bench.model.preorder import subtree_ends
from proton_bench.model.profile import Profile
from proton_bench.model.steps import SAMPLED

# Row of the whole function.
ROUND = "round"
# Row of the test without its rounds.
OUTSIDE = "outside of the rounds"
_TIME, _COUNT = "time (ns)", "count"
# A benchmark's time is that of its rounds.
_LEFT_OUT = frozenset({WALL, ROUNDS, CALLS, CPU_ROUND, GPU_ROUND})
# Work of one call, from the marker.
_WORK = ("flops", "bytes")
# Used only in comparisons: rows of whole benchmarks, and one more launch as a share of a call.
_WHOLE, _SLACK = "whole_benchmark", "launch_slack"
# With tolerance for rounding of quotients.
_ONE_MORE = 1.0 + 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class ComparedRuns:
    """Profiles that a gate compares.

    Attributes:
        arrangement: The runs, reduced to their benchmarks if they have any.
        policy: The policy, with the thresholds of markers.
        follows: Whether rows removed at one place may match new rows at another; paths of one
            benchmark are never matched with those of another.
    """

    arrangement: Arrangement
    policy: Policy
    follows: bool = True


def compared_runs(arrangement: Arrangement, policy: Policy) -> ComparedRuns:
    """Return what a gate compares of runs.

    Raises:
        UsageError: Only some runs have benchmarks, or a marker's threshold is invalid.
    """
    runs = (*arrangement.base, *arrangement.new)
    holding = [bool(_ids(run.profile)) for run in runs]
    if not any(holding):
        base, new = (
            tuple(Run(_recorded(run.profile), run.source) for run in side)
            for side in (arrangement.base, arrangement.new)
        )
        return ComparedRuns(replace(arrangement, base=base, new=new), _settled(policy, arrangement))
    if not all(holding):
        with_some, without = runs[holding.index(True)], runs[holding.index(False)]
        raise UsageError(
            f"{without.source!a} has no benchmark of pytest but {with_some.source!a} has, so they "
            "do not measure the same: leave one of them out"
        )
    chosen = _chosen(arrangement)
    _check_clocks(runs, chosen)
    base, new = (
        tuple(Run(_gated(run.profile, chosen), run.source) for run in side)
        for side in (arrangement.base, arrangement.new)
    )
    return ComparedRuns(
        replace(arrangement, base=base, new=new),
        _settled(policy, arrangement, _marked(arrangement)),
        follows=False,
    )


def _settled(policy: Policy, arrangement: Arrangement, marked: Sequence[Threshold] = ()) -> Policy:
    """Return the policy for these runs, with all its thresholds in one list.

    Runs too few for times are asked only about launches if the command line is about nothing else.
    """
    settled = policy.with_marked(marked)
    fewest = min(len(arrangement.base), len(arrangement.new))
    if fewest >= policy.runs or not policy.asks_only_for_launches:
        return settled
    launches = tuple(each for each in settled.thresholds if each.is_launch_count)
    return replace(settled, thresholds=launches)


def _check_clocks(runs: Sequence[Run], chosen: Collection[str] | None) -> None:
    """Check that each chosen benchmark was timed in the same way everywhere.

    Raises:
        UsageError: In one run the kernels of a call were timed, in another the time between events
            of the GPU, or on the CPU.
    """
    clocks: dict[str, tuple[str, str]] = {}
    for run in runs:
        texts = _texts(run.profile, CLOCK)
        for row, name in _ids(run.profile).items():
            if chosen is not None and name not in chosen:
                continue
            clock = texts.get(row, "cpu")
            first, source = clocks.setdefault(name, (clock, run.source))
            if clock != first:
                raise UsageError(
                    f"benchmark {name!a} has times of {first!r} in {source!a} and of {clock!r} in "
                    f"{run.source!a}, which are different things: measure both sides again"
                )


def measured_runs(compared: ComparedRuns) -> Measured:
    """Align the runs of a compared; raises the errors of `measure`."""
    measured = measure(
        compared.arrangement,
        ignore_devices=compared.policy.ignore_devices,
        follow=compared.follows,
    )
    tree = measured.comparison.tree
    matched = Selectors(compared.policy.quarantine).of_tree(tree)
    quarantined = rows_below(np.array(matched, dtype=np.int64) > 0, subtree_ends(tree.parents))
    beside = measured.canary | whole_benchmarks(measured) | quarantined
    # Another selection of benchmarks is another total.
    return replace(measured, quarantined=quarantined, beside=beside, whole=compared.follows)


def one_sided(base: Sequence[Run], new: Sequence[Run]) -> str:
    """Return a message if only one side has benchmarks, else ""."""
    before, after = (any(_ids(run.profile) for run in side) for side in (base, new))
    if before == after:
        return ""
    which, other = ("base", "new runs") if before else ("new runs", "base")
    hold = "holds" if before else "hold"
    none = "hold" if before else "holds"
    return (
        f"the {which} {hold} benchmarks of pytest, so only these are compared, but the {other} "
        f"{none} none"
    )


def whole_benchmarks(measured: Measured) -> Mask:
    """Mark the rows of whole benchmarks: each is checked, however fast it is."""
    known = np.isfinite(measured.sums(_WHOLE))
    found: Mask = np.logical_or.reduce(known, axis=0)
    return found


def launch_slack(measured: Measured) -> Floats:
    """Return the tolerance of launch counts for each run and row: 0 if they are exact.

    If a path is not launched equally in every call, its launches per call depend on the number of
    calls.
    """
    return np.nan_to_num(measured.sums(_SLACK))


def _chosen(arrangement: Arrangement) -> Collection[str] | None:
    """Return the benchmarks that were selected in the new runs, None for all."""
    base, new = arrangement.base, arrangement.new
    if not all(run.profile.provenance.get(CHOSEN_TESTS) is True for run in new):
        return None
    chosen = frozenset(name for run in new for name in _ids(run.profile).values())
    # A base without any of them is said to have no path in common.
    return chosen if all(chosen.intersection(_ids(run.profile).values()) for run in base) else None


# -- thresholds of markers -----------------------------------------------------------------------
def _marked(arrangement: Arrangement) -> list[Threshold]:
    """Return the thresholds of both sides; those of the new one loosen none of the base."""
    new = {name for run in arrangement.new for name in _ids(run.profile).values()}
    before = [each for name, each in _markers(arrangement.base).items() if name in new]
    after = [each for each in _markers(arrangement.new).values() if each not in before]
    return [*before, *(replace(each, is_offered=True) for each in after)]


def _markers(runs: Sequence[Run]) -> dict[str, Threshold]:
    """Return the thresholds of markers by the names of their benchmarks."""
    texts: dict[str, tuple[str, str]] = {}
    for run in runs:
        said = _texts(run.profile, THRESHOLD)
        texts |= {
            name: (said[row], run.source) for row, name in _ids(run.profile).items() if row in said
        }
    return {name: _of_marker(name, text, source) for name, (text, source) in texts.items()}


def _of_marker(name: str, text: str, source: str) -> Threshold:
    try:
        threshold = parse_threshold(text)
    except UsageError as error:
        raise UsageError(f"{source!a}: benchmark {name!a}: {error}") from None
    # Launches are below the benchmark, in kernels.
    below = "**" if threshold.is_launch_count else ROUND
    return replace(threshold, selector=f"{_escaped(name)}/{below}")


def _escaped(name: str) -> str:
    return "".join(f"\\{each}" if each in "\\/*?" else each for each in name)


# -- what is compared ----------------------------------------------------------------------------
def _recorded(profile: Profile) -> Profile:
    """Return what was recorded, not sampled, with samples only of rows with one per call."""
    columns = {name: each for name, each in profile.columns.items() if name not in SAMPLED}
    found = {name: profile.samples(name) for name in profile.distributions if name in columns}
    whole = {name: table for name, table in found.items() if table is not None}
    return replace(profile, columns=columns, distributions=whole)


def _gated(profile: Profile, chosen: Collection[str] | None) -> Profile:
    builder = ProfileBuilder()
    for device in profile.devices:
        builder.device(device)
    for metric, column in profile.columns.items():
        builder.declare(metric, column.spec.aggregation)
    for metric in (_WHOLE, _SLACK):
        builder.declare(metric, Aggregation.PROPERTY)
    for row, name in _ids(profile).items():
        if chosen is not None and name not in chosen:
            continue
        place = builder.add(0, name, FrameKind.TEST)
        _add_round(profile, builder, row, place=place)
        _add_outside(profile, builder, row, place=place)
        _copy_below(profile, builder, row, place=place)
    for row in profile.children(0):
        if profile.name(row) == CANARY_SCOPE:
            place = builder.add(0, CANARY_SCOPE, FrameKind.SCOPE)
            _copy_below(profile, builder, row, place=place)
    return builder.build(
        provenance=profile.provenance.to_plain(),
        dropped=profile.dropped,
        partial=profile.partial,
    )


def _add_round(profile: Profile, builder: ProfileBuilder, row: int, *, place: int) -> None:
    """Add the times of a benchmark's rounds, for one call."""
    metric = CPU_ROUND if _texts(profile, CLOCK).get(row, "cpu") == "cpu" else GPU_ROUND
    table = profile.distributions.get(metric)
    times = None if table is None else table.get(row)
    # Formats without distributions have the median too, so that equal things are compared.
    typical = _number(profile, metric, row)
    if typical is None:
        return
    calls = _calls(profile, row)
    done = {name: _number(profile, name, row) for name in _WORK}
    metrics = {name: amount / calls for name, amount in done.items() if amount is not None}
    metrics |= {_TIME: typical, _WHOLE: 1.0}
    leaf = builder.add(place, ROUND, FrameKind.SCOPE, metrics=metrics)
    if times is not None:
        builder.set_distribution(leaf, _TIME, times)


def _add_outside(profile: Profile, builder: ProfileBuilder, row: int, *, place: int) -> None:
    """Add the elapsed time of a test outside of its rounds: set-up, the first call, tear-down."""
    call = int(profile.parents[row])
    test = int(profile.parents[call]) if call > 0 else 0
    whole = _number(profile, WALL, test) if test > 0 else None
    if whole is None or profile.kind(test) is not FrameKind.TEST:
        return
    # Calibration decides how often these are called.
    repeated = [each for each in profile.children(call) if profile.name(each) in {WARM_UP, FLUSH}]
    inside = sum(_number(profile, WALL, each) or 0.0 for each in (row, *repeated))
    if whole > inside:
        builder.add(place, OUTSIDE, FrameKind.SCOPE, metrics={WALL: whole - inside})


def _copy_below(profile: Profile, builder: ProfileBuilder, root: int, *, place: int) -> None:
    """Copy the rows below a row, with sums divided by the calls of the row."""
    calls = _calls(profile, root)
    columns = [
        column
        for metric, column in profile.columns.items()
        if column.kind.is_number and metric not in _LEFT_OUT
    ]
    samples = {
        metric: profile.samples(metric)
        for metric in profile.distributions
        if metric not in _LEFT_OUT
    }
    places = {root: place}
    for row in range(root + 1, int(profile.subtree_end[root])):
        metrics = dict(_values(columns, row, calls))
        if not metrics.get(_COUNT, 0.0).is_integer():
            metrics[_SLACK] = _ONE_MORE / calls
        places[row] = builder.add(
            places[int(profile.parents[row])],
            profile.name(row),
            profile.kind(row),
            metrics=metrics,
            device=profile.device(row),
            variant=profile.variant(row),
        )
        for metric, table in samples.items():
            found = None if table is None else table.get(row)
            if found is not None:
                builder.set_distribution(places[row], metric, found)


def _values(columns: Sequence[MetricColumn], row: int, calls: float) -> Iterator[tuple[str, float]]:
    for column in columns:
        if column.valid[row]:
            adds_up = column.spec.aggregation is not Aggregation.PROPERTY
            yield column.spec.name, float(column.values[row]) / (calls if adds_up else 1.0)


def _calls(profile: Profile, row: int) -> float:
    return _number(profile, CALLS, row) or 1.0


def _ids(profile: Profile) -> dict[int, str]:
    return _texts(profile, BENCHMARK)


def _texts(profile: Profile, metric: str) -> dict[int, str]:
    column = profile.columns.get(metric)
    if column is None or column.kind.is_number or column.kind.is_vector:
        return {}
    return {
        row: column.strings[int(column.values[row])]
        for row in np.flatnonzero(column.valid).tolist()
    }


def _number(profile: Profile, metric: str, row: int) -> float | None:
    column = profile.columns.get(metric)
    if column is None or not column.kind.is_number or not column.valid[row]:
        return None
    return float(column.values[row])
