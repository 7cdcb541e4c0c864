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
from proton_bench.gate.policy.threshold import Amount, Threshold, parse_threshold
from proton_bench.gate.statistics.decision import MOST_PAIRS
from proton_bench.support.inputs import read_file
from proton_bench.support.text import did_you_mean

__all__ = ["Policy", "policy_from_table", "read_policy"]

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
        return bool(self.overriding) and all(each.is_structural for each in self.overriding)

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
            defaults = tuple(each for each in defaults if each.metric == "total")
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
        if key in _REMOVED:
            raise UsageError(f"{source}: {key} is not a key any more: {_REMOVED[key]}")
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
    if isinstance(value, bool) or not isinstance(value, int) or not fewest <= value <= MOST_PAIRS:
        raise UsageError(f"{value!r} is not a number of runs from {fewest} to {MOST_PAIRS}")
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

# Keys of earlier versions, and what to write instead.
_ONE_KNOB = "`threshold` alone says what is found and what is allowed"
_REMOVED = {
    **dict.fromkeys(("margin", "level", "fdr", "floor", "total-floor"), _ONE_KNOB),
    "session-shift": "record both sides in turn, as `proton ab` does",
    "undecided-share": "5 % of the time of a run may stay undecided",
    "same-binary": "a slower path whose code did not change is INCONCLUSIVE",
    "strict": 'write `thresholds = ["calls:0"]`',
    "rules": "thresholds and `quarantine` say what may fail",
    "raw-names": "names that compilers number are matched without their numbers",
}
