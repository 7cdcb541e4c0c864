"""OpenMetrics text, which GitLab compares in merge requests and Prometheus stores.

https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from proton_bench.gate.judge.outcome import Outcome
from proton_bench.report.ci.series import Series

__all__ = ["open_metrics"]

_SECONDS = "proton_path_seconds"
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def open_metrics(series: Sequence[Series], outcome: Outcome | None = None) -> bytes:
    """Return gauges: times in seconds, other values, changes, and the exit code of the gate.

    Args:
        series: Values.
        outcome: The gate, or None.
    """
    lines = [*_times(series), *_others(series), *_changes(series)]
    if outcome is not None:
        name, code = "proton_gate_exit_code", outcome.result.exit_code
        lines += _head(name, "Exit code of the gate: 0 if nothing got worse.")
        lines.append(f"{name} {code}")
    return "\n".join([*lines, "# EOF", ""]).encode("utf-8", "backslashreplace")


def _times(series: Sequence[Series]) -> Iterator[str]:
    chosen = [each for each in series if each.unit == "ns"]
    if chosen:
        yield from _head(_SECONDS, "Time of a call path, by metric.", "seconds")
    for each in chosen:
        yield from _sides(each, _SECONDS, lambda value: value / 1e9)


def _others(series: Sequence[Series]) -> Iterator[str]:
    chosen = [each for each in series if each.unit != "ns"]
    name = "proton_path_value"
    if chosen:
        yield from _head(name, "Value of a call path that is not a time.")
    for each in chosen:
        yield from _sides(each, name, lambda value: value)


def _changes(series: Sequence[Series]) -> Iterator[str]:
    chosen = [each for each in series if math.isfinite(each.change)]
    name = "proton_path_change_ratio"
    if chosen:
        yield from _head(name, "New divided by base, minus 1.", "ratio")
    for each in chosen:
        yield f"{name}{{{_labels(each)}}} {each.change!r}"


def _sides(series: Series, name: str, scaled: Callable[[float], float]) -> Iterator[str]:
    for side, value in (("new", series.value), ("base", series.base)):
        if math.isfinite(value):
            yield f'{name}{{{_labels(series)},side="{side}"}} {scaled(value)!r}'


def _head(name: str, text: str, unit: str = "") -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    if unit:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {text}"


def _labels(series: Series) -> str:
    shown = {"path": series.name, "metric": series.metric}
    if series.unit != "ns" and series.unit:
        shown["unit"] = series.unit
    return ",".join(f'{key}="{value.translate(_ESCAPED)}"' for key, value in shown.items())
