"""Rules of plugins: each gets a row and may change its verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from proton_bench.errors import UsageError
from proton_bench.plugin.others import offered_by_others

__all__ = ["Rule", "find_rules"]

# From a `GateRow` to another verdict, or to None.
Rule = Callable[[Any], Any]


def find_rules(names: Sequence[str]) -> dict[str, Rule]:
    """Return the rules with these names, in order.

    Raises:
        UsageError: No plugin has one of them; the message names the choices.
    """
    if not names:
        return {}
    offered: dict[str, Rule] = offered_by_others("proton_gate_rules")
    for name in names:
        if name not in offered:
            known = ", ".join(sorted(offered)) or "none"
            raise UsageError(f"no plugin has a rule {name!r}; there are: {known}")
    return {name: offered[name] for name in names}
