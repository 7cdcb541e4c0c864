"""Chooses the operations of a kernel that get a scope, and the names of scopes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proton_bench_plugins.instrumentation.passes.registry import LOOP, Op, kind_in_pass
from proton_bench_plugins.instrumentation.passes.rule import Rule

MAX_SCOPES = 255  # a record has eight bits for its scope


@dataclass(frozen=True, slots=True)
class Scope:
    """A scope around an operation.

    Attributes:
        name: ``load.0@file.py:12``: the kind, its number in the kernel, the line.
        op: Name of the operation.
        path: File of the line, "" if unknown.
        line: From 1; 0 if unknown.
    """

    name: str
    op: str
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """An operation selected by rules."""

    op: Op
    kind: str
    scope: Scope


def candidates(ops: Sequence[Op], rules: Sequence[Rule]) -> list[Candidate]:
    """Return the operations selected by rules, in program order.

    Operations of a kind are numbered through the whole kernel, also those that filters leave out,
    so that a filter does not change names.

    Args:
        ops: Operations of a kernel, parents first.
        rules: Rules that apply to the kernel.
    """
    seen: Counter[str] = Counter()
    found: list[Candidate] = []
    for op in ops:
        wanted = kinds_wanted(op, rules)
        chosen = next((kind for kind, takes in wanted.items() if takes), None)
        if chosen is not None:
            found.append(Candidate(op, chosen, scope_around(op, chosen, seen[chosen])))
        seen.update(wanted.keys())
    return found


def cap(found: Sequence[Candidate], room: int) -> tuple[list[Candidate], list[Candidate]]:
    """Split into operations that fit and left-out ones, both in program order.

    Loops come first, outer before inner ones; then the kinds with the fewest operations; within a
    kind, program order.

    Args:
        found: In program order.
        room: Number of scopes that fit.
    """
    if len(found) <= room:
        return list(found), []
    frequency = Counter(each.kind for each in found)
    ranked = sorted(range(len(found)), key=lambda place: _rank(found[place], frequency))
    kept = set(ranked[: max(room, 0)])
    inside = [each for place, each in enumerate(found) if place in kept]
    outside = [each for place, each in enumerate(found) if place not in kept]
    return inside, outside


def _rank(candidate: Candidate, frequency: Mapping[str, int]) -> tuple[bool, int]:
    is_loop = candidate.kind == LOOP
    return not is_loop, candidate.op.depth if is_loop else frequency[candidate.kind]


def kinds_wanted(op: Op, rules: Sequence[Rule]) -> dict[str, bool]:
    """Return an operation's kind in the rules' passes, and whether a filter matches it."""
    wanted: dict[str, bool] = {}
    for rule in rules:
        kind = kind_in_pass(rule.name, op)
        if kind is not None:
            wanted[kind] = wanted.get(kind, False) or rule.takes_places(op.places)
    return wanted


def rules_that_take(op: Op, rules: Sequence[Rule]) -> list[Rule]:
    """Return the rules whose pass and filters match an operation."""
    asking = [rule for rule in rules if kind_in_pass(rule.name, op) is not None]
    return [rule for rule in asking if rule.takes_places(op.places)]


def scope_around(op: Op, kind: str, number: int) -> Scope:
    """Return the scope of an operation.

    Args:
        op: The operation.
        kind: Its kind in the pass.
        number: Number of operations of its kind before it in the kernel.
    """
    if not op.places:
        return Scope(f"{kind}.{number}", op.name)
    place = op.places[0]
    return Scope(f"{kind}.{number}@{place}", op.name, place.path, place.line)
