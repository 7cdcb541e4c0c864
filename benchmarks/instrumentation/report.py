"""What the results say, against the bars.

The replicate is the process. Within one, a ratio is the median over pairs of blocks, the profiled
one over the bare one before it; over the rounds the median is reported with a 95 % interval from
resampling rounds. A row passes when its whole interval is below the bar, fails when it is above,
and is undecided otherwise, or with fewer than 10 rounds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.instrumentation.plan import ARMS, CHAINS, KERNELS
from benchmarks.instrumentation.results import Results
from benchmarks.interleaved import Interval, median

LEAST_ROUNDS = 10
LAUNCH_BARS = {"ours_tree": 1.25, "ours_trace": 3.0, "ours_tree_shared": 1.25}
SHORT_BAR_US = 6.0
KERNEL_BAR = 1.05
CYCLE_BAR = 0.02

Pair = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RowResult:
    """A row; ``bar`` is None if it has no limit, such as upstream's."""

    what: str
    figure: Interval
    bar: float | None
    rounds: int

    @property
    def verdict(self) -> str:
        """Return PASS, FAIL or UNDECIDED, or "" without a bar."""
        if self.bar is None:
            return ""
        if self.rounds < LEAST_ROUNDS:
            return f"UNDECIDED  {self.rounds} rounds, {LEAST_ROUNDS} are needed"
        if self.figure.high <= self.bar:
            return "PASS"
        return "FAIL" if self.figure.low > self.bar else "UNDECIDED  the interval holds the bar"


def row_results(results: Results) -> list[RowResult]:
    """Return every measured row."""
    rows = [
        *_launches(results, "wall_us", "on the wall, launched in a row"),
        *_launches(results, "gpu_us", "between two events"),
        *_short(results),
        *_kernels(results),
        *_cycles(results),
    ]
    return [row for row in rows if row is not None]


def _row(
    what: str,
    rounds: Sequence[Sequence[Pair]],
    figure: Callable[[Pair], float],
    *,
    bar: float | None,
) -> RowResult | None:
    if not rounds:
        return None
    values = [statistics.median(figure(pair) for pair in pairs) for pairs in rounds]
    return RowResult(what, median(values), bar, len(values))


def _launches(results: Results, key: str, how: str) -> list[RowResult | None]:
    def ratio(pair: Pair) -> float:
        return float(pair["profiled"][key] / pair["bare"][key])

    return [
        _row(f"matmul, {arm}, {how}", results.of(arm, "matmul"), ratio, bar=LAUNCH_BARS.get(arm))
        for arm in ARMS
        if arm not in KERNEL_ARMS
    ]


KERNEL_ARMS = ("kernels", "cycles")


def _short(results: Results) -> list[RowResult | None]:
    def added(pair: Pair) -> float:
        return float(pair["profiled"]["wall_us"] - pair["bare"]["wall_us"])

    return [
        _row(
            f"short kernel, {arm}, us added per launch",
            results.of(arm, "short"),
            added,
            bar=SHORT_BAR_US if arm in LAUNCH_BARS else None,
        )
        for arm in ARMS
        if arm not in KERNEL_ARMS
    ]


def slowdown(pair: Pair) -> float:
    """Return the device time of a kernel with records over its time without."""
    return float(pair["scoped_us"] / pair["bare_us"])


def _kernels(results: Results) -> list[RowResult | None]:
    rows = [
        _row(f"slowdown of {work}", results.of("kernels", work), slowdown, bar=None)
        for work in KERNELS
    ]
    return [*rows, _geometric_mean(results)]


def _geometric_mean(results: Results) -> RowResult | None:
    means, complete = [], True
    for each in results.rounds:
        works = each["arms"].get("kernels", {}).get("works", {})
        measured = [work for work in KERNELS if works.get(work)]
        if not measured:
            continue
        complete = complete and len(measured) == len(KERNELS)
        logs = [math.log(statistics.median(map(slowdown, works[work]))) for work in measured]
        means.append(math.exp(statistics.mean(logs)))
    if not means:
        return None
    what = "geometric mean of the slowdowns" if complete else "geometric mean, some are missing"
    return RowResult(what, median(means), KERNEL_BAR if complete else None, len(means))


def _cycles(results: Results) -> list[RowResult | None]:
    rows = []
    for length in CHAINS:
        rounds = [
            pairs
            for pairs in results.of("cycles", f"chain {length}")
            if pairs[0]["raw"] is not None
        ]
        for key, bar in (("raw", None), ("deducted", CYCLE_BAR)):
            rows.append(_row(f"chain of {length}, {key}: error", rounds, _error(key), bar=bar))
    return rows


def _error(key: str) -> Callable[[Pair], float]:
    return lambda pair: abs(pair[key] / pair["expected"] - 1)


def print_report(results: Results) -> bool:
    """Print the measurements and rows; return False if a row fails or a result is wrong."""
    print(", ".join(f"{key} {value}" for key, value in results.machine.items() if value))
    print(", ".join(f"{key} {value}" for key, value in results.settings.items()))
    print(f"{len(results.rounds)} rounds")
    _print_launches(results)
    for arm, error in results.errors().items():
        print(f"! {arm}: {error}")
    wrong = _wrong(results)
    for line in wrong:
        print(f"! {line}")
    print(f"\n{'row':<64} {'bar':<6} figure")
    rows = row_results(results)
    for row in rows:
        bar = "" if row.bar is None else row.bar
        print(f"{row.what:<64} {bar:<6} {row.figure:.3f}  {row.verdict}")
    return not wrong and not any(row.verdict == "FAIL" for row in rows)


def _print_launches(results: Results) -> None:
    for work in ("matmul", "short"):
        measured = {
            arm: [pair for pairs in results.of(arm, work) for pair in pairs] for arm in ARMS
        }
        if not any(measured.values()):
            continue
        print(
            f"\n{work}: us per launch\n{'arm':<16} {'bare wall':>10} {'wall':>12} {'bare GPU':>10} "
            f"{'GPU':>12} {'end/launch':>12} {'kB/launch':>10}  lost"
        )
        for arm, pairs in measured.items():
            if pairs:
                print(f"{arm:<16} {_times(pairs)} {_end(pairs)}")


def _times(pairs: Sequence[Pair]) -> str:
    def middle(block: str, key: str) -> float:
        return statistics.median(pair[block][key] for pair in pairs)

    return (
        f"{middle('bare', 'wall_us'):>10.2f} {middle('profiled', 'wall_us'):>12.2f} "
        f"{middle('bare', 'gpu_us'):>10.2f} {middle('profiled', 'gpu_us'):>12.2f}"
    )


def _end(pairs: Sequence[Pair]) -> str:
    if "finalize_s" not in pairs[0]:
        return f"{'-':>12} {'-':>10}"
    end = statistics.median(pair["finalize_s"] / pair["launches"] for pair in pairs) * 1e6
    size = statistics.median(pair["bytes"] / pair["launches"] for pair in pairs) / 1e3
    return f"{end:>12.2f} {size:>10.1f}  {_lost(pairs)}"


def _lost(pairs: Sequence[Pair]) -> str:
    """Return what was lost: reported by the profiler, or instances missing in its files."""
    said = [pair["lost"] for pair in pairs if pair["lost"] is not None]
    lacking = [_lacking(pair["expected"], pair["instances"]) for pair in pairs]
    counted = [each for each in lacking if each is not None]
    parts = [f"{max(said)} records"] if said else []
    parts += [f"{max(counted):.2%} of the instances"] if counted else []
    return ", ".join(parts) or "nothing counts them"


def _lacking(expected: Mapping[str, int], found: Mapping[str, int] | None) -> float | None:
    if found is None or not expected:
        return None
    return 1 - sum(found.get(scope, 0) for scope in expected) / sum(expected.values())


def _wrong(results: Results) -> list[str]:
    """Return what disqualifies the figures: wrong results, and records that we lost."""
    measured = (
        (arm, work, pair)
        for each in results.rounds
        for arm, result in each["arms"].items()
        for work, pairs in result["works"].items()
        for pair in pairs
    )
    return sorted(
        {
            f"{arm}, {work}: {what}"
            for arm, work, pair in measured
            for what in _complaints(arm, pair)
        }
    )


def _complaints(arm: str, pair: Pair) -> list[str]:
    complaints = []
    if not pair.get("matches", True):
        complaints.append("the result is not the reference's")
    if not pair.get("identical", True):
        complaints.append("the result is not the one without a profiler, bit by bit")
    if arm in LAUNCH_BARS and (pair.get("lost") or _lacking(pair["expected"], pair["instances"])):
        complaints.append("records were lost")
    return complaints
