"""The policy of a gate: thresholds, and what is checked and allowed."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proton_bench.errors import UsageError
from proton_bench.gate.statistics.decision import PAIRS_LIMIT
from proton_bench.support.inputs import read_file
from proton_bench.support.text import did_you_mean

METRICS = (
    "median",
    "mean",
    "min",
    "pNN",
    "tail",
    "total",
    "wall",
    "calls",
    "cycles",
    "instructions",
    "mem",
    "peak",
    "flops",
    "gbps",
)
# Mean of the slowest tenth of the launches.
TAIL = "tail"
# Memory of devices at its peak. It repeats to the byte, unlike times.
PEAK = "peak"
# Metrics that say how long one launch takes.
_LAUNCH_METRICS = frozenset({"median", "mean", "min", TAIL})
_TIMES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_UNITS = ("%", *_TIMES)
# Metrics that are not times, and their units.
OTHER_UNITS = {
    "calls": "",
    "cycles": "cycles",
    "instructions": "instructions",
    "mem": "",
    PEAK: "B",
    "flops": "flop/s",
    "gbps": "GB/s",
}
_RATES = frozenset({"flops", "gbps"})
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_UNIT = re.compile(r"[^&\s]*")
_MOST_AMOUNTS, _LONGEST_SHOWN = 8, 400
# Noise of the host is larger than that of typical launches.
LOOSER = 3.0
_MEDIAN = 50.0


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its unit: ``%``, ``ns``, ``us``, ``ms``, ``s`` or "" for a bare one."""

    number: float
    unit: str = ""

    @property
    def is_relative(self) -> bool:
        """Whether it is relative to the base."""
        return self.unit == "%"

    @property
    def ratio(self) -> float:
        """The share by which it may grow: 0.05 for ``5%``."""
        return self.number / 100.0

    def absolute(self, bare: float) -> float:
        """Return it in nanoseconds, or in the metric's own unit.

        Args:
            bare: Value of a number without a unit.
        """
        return self.number * _TIMES.get(self.unit, bare)

    def __str__(self) -> str:
        return f"{self.number!r}".removesuffix(".0") + self.unit


@dataclass(frozen=True, slots=True)
class Threshold:
    """How much a metric of some paths may get worse.

    Attributes:
        metric: One of `METRICS`, with a number for ``pNN``; "" for all that is gated by default.
        amounts: All of them have to be reached.
        selector: Glob of call paths, "" for all large enough ones.
        is_written: Whether a user wrote it for this metric.
        is_offered: Whether only the new side of a gate has it, such as the marker of a test in a
            pull request: then it replaces no stricter one.
    """

    metric: str
    amounts: tuple[Amount, ...]
    selector: str = ""
    is_written: bool = field(default=True, compare=False)
    is_offered: bool = field(default=False, compare=False)

    @property
    def is_launch_count(self) -> bool:
        """Whether it is about launches, which are exact and need no statistics."""
        return self.metric == "calls"

    @property
    def is_per_launch(self) -> bool:
        """Whether it is about the time of one launch."""
        return self.metric in _LAUNCH_METRICS or _PERCENTILE.fullmatch(self.metric) is not None

    @property
    def leaves_slow_out(self) -> bool:
        """Whether it is about the fastest launches, which other work on the machine leaves alone.

        So are the minimum and percentiles below the median.
        """
        percentile = _PERCENTILE.fullmatch(self.metric)
        return self.metric == "min" or (percentile is not None and float(percentile[1]) < _MEDIAN)

    def loosens(self, other: Threshold) -> bool:
        """Return whether it allows what another threshold of the same metric does not."""
        return (self.ratio or 0.0) > (other.ratio or 0.0) or (self.absolute or 0.0) > (
            other.absolute or 0.0
        )

    @property
    def direction(self) -> int:
        """+1 if more is worse, -1 if less is, 0 if any change is."""
        return 0 if self.is_launch_count else -1 if self.metric in _RATES else 1

    def looser(self, metric: str) -> Threshold:
        """Return the threshold for a metric that is noisier than the time of typical launches."""
        amounts = tuple(Amount(round(LOOSER * e.number, 9), e.unit) for e in self.amounts)
        return replace(self, metric=metric, amounts=amounts, is_written=False)

    def expanded(self) -> tuple[Threshold, ...]:
        """Return one threshold for each metric that it is about."""
        if self.metric:
            return (self,)
        return (
            replace(self, metric="median"),
            replace(self, metric="total"),
            self.looser("wall"),
            replace(self, metric=PEAK, is_written=False),
        )

    @property
    def ratio(self) -> float | None:
        """The greatest of the relative amounts, None without one."""
        return max((each.ratio for each in self.amounts if each.is_relative), default=None)

    @property
    def absolute(self) -> float | None:
        """The greatest absolute amount, in ns for times, None without one."""
        bare = 1.0 if self.metric in OTHER_UNITS else _TIMES["s"]
        found = (each.absolute(bare) for each in self.amounts if not each.is_relative)
        return max(found, default=None)

    def __str__(self) -> str:
        where = f"{self.selector}@" if self.selector else ""
        metric = f"{self.metric}:" if self.metric else ""
        return f"{where}{metric}{'&'.join(map(str, self.amounts))}"


def parse_threshold(text: str) -> Threshold:
    """Parse a threshold expression.

    Raises:
        UsageError: It is invalid; the message shows the column.
    """
    return _Reader(text).threshold()


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def threshold(self) -> Threshold:
        selector, mark, _ = self._text.rpartition("@")
        if mark and not selector:
            raise self._error("a selector is missing before '@'", 0)
        self._at = len(selector) + len(mark)
        metric = self._metric() if _NUMBER.match(self._text, self._at) is None else ""
        if metric:
            self._skip(":", f"':' and a number follow {metric!r}, as in {metric}:5%")
        if self._here() in {"+", "-", "~"}:
            raise self._error(
                "thresholds have no signs: they are about getting worse, so write only the number"
            )
        amounts = [self._amount(metric)]
        while self._here() == "&" and len(amounts) < _MOST_AMOUNTS:
            self._at += 1
            amounts.append(self._amount(metric))
        if self._at < len(self._text):
            raise self._error("only '&' and another amount may follow here")
        return Threshold(metric, tuple(amounts), selector)

    def _metric(self) -> str:
        found = _NAME.match(self._text, self._at)
        name = found[0] if found else ""
        if name not in METRICS or name == "pNN":
            percentile = _PERCENTILE.fullmatch(name)
            if percentile is None or float(percentile[1]) == 0.0:
                what = f"{name!r} is not a metric" if name else "a metric is missing here"
                choices = f"; metrics are {', '.join(METRICS)}, NN from 1 to 99"
                raise self._error(f"{what}{did_you_mean(name, METRICS) or choices}")
        self._at += len(name)
        return name

    def _amount(self, metric: str) -> Amount:
        start = self._at
        found = _NUMBER.match(self._text, start)
        if found is None:
            raise self._error("a number is missing here, such as 5 in 5%")
        self._at = found.end()
        number = float(found[0])
        unit = _UNIT.match(self._text, self._at)
        name = unit[0] if unit else ""
        if name and name not in _UNITS:
            choices = did_you_mean(name, _UNITS) or f"; units are {', '.join(_UNITS)}"
            raise self._error(f"{name!r} is not a unit{choices}")
        if name in _TIMES and metric in OTHER_UNITS:
            raise self._error(f"{metric} is not a time, so it has no {name}")
        self._at += len(name)
        self._check(metric, Amount(number, name), start)
        return Amount(number, name)

    def _check(self, metric: str, amount: Amount, column: int) -> None:
        if amount.number > 1e15:
            raise self._error("the number is too large", column)
        if not metric and not amount.is_relative:
            raise self._error("without a metric an amount is a share, such as 5%", column)
        if amount.number == 0.0 and metric != "calls":
            raise self._error("0 leaves no room for noise; only calls may have 0", column)

    def _here(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self, character: str, wanted: str) -> None:
        if self._here() != character:
            raise self._error(wanted)
        self._at += 1

    def _error(self, what: str, column: int | None = None) -> UsageError:
        at = self._at if column is None else column
        if len(self._text) > _LONGEST_SHOWN:
            return UsageError(f"threshold {self._text[:80]!r}..., column {at + 1}: {what}")
        error = UsageError(f"threshold {self._text!r}, column {at + 1}: {what}")
        error.add_note(f"  {self._text}\n  {' ' * at}^")
        return error


_TABLE = "tool.proton.gate"
_TYPICAL = frozenset({"median", "mean"})
# Limits for keys whose parsing takes quadratic time or more.
_MOST_BYTES, _MOST_PARTS = 1 << 19, 100
_DEEP_KEY = re.compile(rb"""(?>(?>[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){%d}""" % _MOST_PARTS)


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of a gate.

    Attributes:
        thresholds: Thresholds; later ones win over earlier ones for the same path and metric.
        overriding: Thresholds of a command line, which win over those of a file and of markers.
        threshold: Share by which everything may grow for which no other threshold is written;
            times of the host may grow by three times that.
        share: Least share of a run's time of gated paths that are not named.
        runs: Processes needed on each side.
        inconclusive_passes: Whether an undecided gate exits with 0.
        ignore_devices: Whether runs of different devices are compared anyway.
        quarantine: Globs of paths that are shown but never fail.
    """

    thresholds: tuple[Threshold, ...] = ()
    overriding: tuple[Threshold, ...] = ()
    threshold: float = 0.03
    share: float = 0.005
    runs: int = 4
    inconclusive_passes: bool = False
    ignore_devices: bool = False
    quarantine: tuple[str, ...] = field(default=())

    def with_thresholds(self, texts: Sequence[str]) -> Policy:
        """Return the policy with thresholds of a command line, which win over all others.

        Raises:
            UsageError: One cannot be read.
        """
        more = tuple(parse_threshold(text) for text in texts)
        return replace(self, overriding=(*self.overriding, *more))

    @property
    def asks_only_for_launches(self) -> bool:
        """Whether a command line names thresholds, and all of them are about launches."""
        return bool(self.overriding) and all(each.is_launch_count for each in self.overriding)

    def with_marked(self, marked: Sequence[Threshold]) -> Policy:
        """Return the policy with all its thresholds in one list, the defaults first.

        A statistic of launches that is written for all paths is the default of totals and of the
        host too, unless it leaves slow launches out.

        Args:
            marked: Thresholds of markers: each applies to one benchmark and does not affect others.
        """
        every = (*self.thresholds, *marked, *self.overriding)
        written = tuple(each for threshold in every for each in threshold.expanded())
        general = _statistic(written)
        defaults = self.default_threshold(general.ratio if general else None).expanded()
        if general is not None and general.leaves_slow_out:
            defaults = tuple(each for each in defaults if each.metric in {"total", PEAK})
            kept = (each for each in every if each.metric or each.selector)
            written = tuple(each for threshold in kept for each in threshold.expanded())
        return replace(self, thresholds=(*defaults, *written), overriding=())

    @property
    def statistic(self) -> str:
        """The statistic of launches whose sums are the totals, "" for all of the time."""
        general = _statistic(self.thresholds)
        return general.metric if general is not None and general.leaves_slow_out else ""

    def default_threshold(self, share: float | None = None) -> Threshold:
        """Return the threshold of everything for which no other one is written.

        Args:
            share: What may be added, None for that of the policy.
        """
        percent = round((share or self.threshold) * 100.0, 9)
        return Threshold("", (Amount(percent, "%"),), is_written=False)


def _statistic(thresholds: Sequence[Threshold]) -> Threshold | None:
    """Return the last threshold that a user wrote for typical launches of all paths."""
    found = [
        each
        for each in thresholds
        if (each.metric in _TYPICAL or each.leaves_slow_out) and each.is_written
        if not each.selector and each.ratio is not None
    ]
    return found[-1] if found else None


def read_policy(path: Path) -> Policy:
    """Return the policy in ``[tool.proton.gate]`` of a pyproject.toml, or of a TOML file alone.

    A pyproject.toml without that table has the default policy.

    Raises:
        UsageError: The file cannot be read, is not TOML, or has invalid keys or values.
    """
    document = _read_toml(path)
    table: Any = document
    for key in _TABLE.split("."):
        if isinstance(table, dict) and key == "gate" and key not in table:
            _check_spelling(table, path)
        table = table.get(key, {}) if isinstance(table, dict) else table
    if path.name != "pyproject.toml":
        beside = sorted(_KEYS.keys() & document.keys())
        if table and beside:
            raise UsageError(
                f"policy {str(path)!a} has {beside[0]} outside [{_TABLE}], where it has no "
                "effect; put all keys into one of the two"
            )
        if not table:
            return policy_from_table(document, str(path))
    return policy_from_table(table, f"{path} [{_TABLE}]")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        content = read_file(path)
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"policy {str(path)!a} cannot be read: {why}") from error
    if len(content) > _MOST_BYTES:
        raise UsageError(f"policy {str(path)!a} is larger than {_MOST_BYTES >> 10} KiB")
    if _DEEP_KEY.search(content):
        raise UsageError(f"policy {str(path)!a} has a key of more than {_MOST_PARTS} parts")
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or nested too deeply
        raise UsageError(f"policy {str(path)!a} is not TOML: {str(error)[:200]}") from error


def policy_from_table(table: Any, source: str, start: Policy | None = None) -> Policy:
    """Return the policy in a TOML table.

    Args:
        table: Keys and values as in `docs/reference/gate_policy.md`.
        source: Its origin, for messages.
        start: Policy for keys that are not in the table; by default the default policy.

    Raises:
        UsageError: A key or value is invalid; the message names it.
    """
    if not isinstance(table, Mapping):
        raise UsageError(f"{source} is not a table")
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _KEYS:
            choices = did_you_mean(key, _KEYS) or f"; keys are {', '.join(sorted(_KEYS))}"
            raise UsageError(f"{source}: unknown key {key!r}{choices}")
        name, read = _KEYS[key]
        try:
            found[name] = read(value)
        except UsageError as error:
            raise UsageError(f"{source}: {key}: {error}") from error
    return replace(start or Policy(), **found)


def _check_spelling(tables: Mapping[str, Any], path: Path) -> None:
    meant = difflib.get_close_matches("gate", [each.lower() for each in tables], n=1)
    if meant:
        raise UsageError(
            f"policy {str(path)!a} has a table [tool.proton.{meant[0]}], which has no effect: "
            f"write [{_TABLE}]"
        )


# -- values --------------------------------------------------------------------------------------
def _part(value: Any) -> float:
    """Read ``"3%"`` or 0.03."""
    if isinstance(value, str) and value.strip().endswith("%"):
        number = _number(value.strip()[:-1]) / 100.0
    else:
        number = _number(value)
    if not 0.0 < number < 1.0:
        raise UsageError(f'{value!r} is not between 0 and 1, such as "3%" or 0.03')
    return number


def _part_or_none(value: Any) -> float:
    """Read a share that may be 0."""
    text = value.strip().removesuffix("%") if isinstance(value, str) else value
    return 0.0 if _number(text) == 0.0 else _part(value)


def _number(value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{value!r} is not a number")
    return number


def _runs(value: Any) -> int:
    fewest = Policy().runs
    if isinstance(value, bool) or not isinstance(value, int) or not fewest <= value <= PAIRS_LIMIT:
        raise UsageError(f"{value!r} is not a number of runs from {fewest} to {PAIRS_LIMIT}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{value!r} is neither true nor false")
    return value


def _choice(choices: Mapping[str, Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, str) or value not in choices:
            raise UsageError(f"{value!r} is none of {', '.join(choices)}")
        return choices[value]

    return read


def _texts(value: Any) -> tuple[str, ...]:
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(isinstance(each, str) for each in entries):
        raise UsageError(f"{value!r} is not a list of texts")
    return tuple(entries)


def _globs(value: Any) -> tuple[str, ...]:
    found = _texts(value)
    if not all(each.strip() for each in found):
        raise UsageError("an empty glob would match every path; write '**' for that")
    return found


def _thresholds(value: Any) -> tuple[Threshold, ...]:
    return tuple(parse_threshold(text) for text in _texts(value))


_KEYS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "threshold": ("threshold", _part),
    "thresholds": ("thresholds", _thresholds),
    "share": ("share", _part_or_none),
    "runs": ("runs", _runs),
    "inconclusive": ("inconclusive_passes", _choice({"fail": False, "pass": True})),
    "quarantine": ("quarantine", _globs),
    "ignore-devices": ("ignore_devices", _flag),
}


@dataclass(frozen=True, slots=True)
class PolicyWords:
    """The policy options.

    Attributes:
        file: A TOML file instead of the project's.
        thresholds: Expressions, which win over those of the file and of markers.
        settings: ``KEY=VALUE``, the values as in TOML.
    """

    file: Path | None
    thresholds: Sequence[str] = ()
    settings: Sequence[str] = ()

    def policy(self, of_project: Path | None) -> Policy:
        """Return the policy of the file, overridden by these options.

        Args:
            of_project: The project's file, or None.

        Raises:
            UsageError: Something cannot be read; the message says where.
        """
        file = self.file or of_project
        policy = read_policy(file) if file is not None else Policy()
        table = dict(_setting(text) for text in self.settings)
        return policy_from_table(table, "command line", policy).with_thresholds(self.thresholds)


def _setting(text: str) -> tuple[str, Any]:
    """Read ``KEY=VALUE``; a value that is not valid TOML is a text."""
    key, mark, value = text.partition("=")
    if not mark or not key.strip():
        raise UsageError(f"--set {text!a} is not KEY=VALUE, such as share=1%")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return key.strip(), value.strip()
