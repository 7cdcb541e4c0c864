"""Rules that plugins add to the policy: each looks at an answer and may give another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from proton_bench.errors import PluginError, UsageError
from proton_bench.gate.judge.result import GateRow, Note
from proton_bench.gate.judge.rows import worst_first
from proton_bench.gate.judge.verdict import Reason, Verdict
from proton_bench.plugin.manager import get_plugin_manager

__all__ = ["Rule", "apply_rules", "check_rules"]

Rule = Callable[[GateRow], Verdict | None]


def check_rules(names: Sequence[str]) -> None:
    """Find out whether plugins offer all of these rules.

    Raises:
        UsageError: One is unknown; the message names the choices.
    """
    _find(names)


def apply_rules(
    rows: Sequence[GateRow], names: Sequence[str]
) -> tuple[tuple[GateRow, ...], tuple[Note, ...]]:
    """Return the rows as rules leave them, worst first, and what to say of that.

    Args:
        rows: Answers of the gate.
        names: Rules in the order in which they are asked; each sees what those before it left.

    Raises:
        UsageError: One is unknown.
        PluginError: One raised, or returned something else than a verdict.
    """
    notes = []
    for name, rule in _find(names).items():
        judged = tuple(_judged(row, name, rule) for row in rows)
        count = sum(old is not new for old, new in zip(rows, judged, strict=True))
        if count:
            noun = "check" if count == 1 else "checks"
            notes.append(Note(Reason.RULE, f"rule {name!r} decided {count} {noun}"))
        rows = judged
    return tuple(sorted(rows, key=worst_first)), tuple(notes)


def _judged(row: GateRow, name: str, rule: Rule) -> GateRow:
    try:
        verdict = rule(row)
        decided = None if verdict is None else Verdict(verdict)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise PluginError(f"gate rule {name!r} of a plugin failed: {what}") from error
    if decided is None or decided is row.verdict:
        return row
    reasons = (Reason.RULE, *row.reasons)
    return replace(row, verdict=decided, reasons=reasons, downgraded=False)


def _find(names: Sequence[str]) -> dict[str, Rule]:
    if not names:
        return {}
    offered: dict[str, Rule] = {}
    for _, rules in reversed(get_plugin_manager().call("proton_gate_rules")):
        offered |= rules
    for name in names:
        if name not in offered:
            known = ", ".join(sorted(offered)) or "none"
            raise UsageError(f"no plugin offers a rule {name!r}; there are: {known}")
    return {name: offered[name] for name in names}
