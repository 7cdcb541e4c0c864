"""Puts pairs of records around operations of a kernel, at the end of Triton's TTGIR stage.

Before that stage the final operations are unknown: pipelining splits loads into issue and wait.
Triton's bindings insert after an operation or at the start of a block, never before an operation;
so a start is put after the operation before, and operations are taken from last to first, which
puts the end of one before the start of the next.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proton_bench_plugins.instrumentation.passes.barrier_use import name_barrier_waits
from proton_bench_plugins.instrumentation.passes.choice import (
    MAX_SCOPES,
    Candidate,
    Scope,
    candidates,
    cap,
    rules_that_take,
)
from proton_bench_plugins.instrumentation.passes.listing import (
    list_scopes,
    report_left_out,
    report_skipped,
)
from proton_bench_plugins.instrumentation.passes.op_tree import Op, OpTree
from proton_bench_plugins.instrumentation.passes.registry import PRINT_OPS, describe
from proton_bench_plugins.instrumentation.passes.rule import Rule, applying

__all__ = ["Inserted", "Inserter"]

_RECORD = "proton.record"
_SCOPE_OPS = (_RECORD, "proton.allocate_event")
_DIGITS = 16
_KEPT = "left out, taken"  # our entry beside a kernel in Triton's cache


@dataclass(frozen=True, slots=True)
class Inserted:
    """Results of passes on a kernel.

    Attributes:
        kernel: Name of the kernel.
        scopes: Inserted scopes, in program order; with ``print-ops`` the possible ones.
        left_out: Scopes without room.
        skipped: Why the kernel was not changed, or "".
        taken: Rules, as texts, whose filters matched an operation.
    """

    kernel: str
    scopes: tuple[Scope, ...] = ()
    left_out: tuple[Scope, ...] = ()
    skipped: str = ""
    taken: tuple[str, ...] = ()


class Inserter:
    """Inserts records by rules.

    Args:
        rules: Result of ``parse_passes``.

    Attributes:
        digest: Hexadecimal digits that identify the inserter's behaviour.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self.digest: str = self._digest()

    @property
    def is_listing(self) -> bool:
        """Whether kernels are not changed."""
        return any(rule.name == PRINT_OPS for rule in self._rules)

    def _digest(self) -> str:
        texts = [_KEPT, *(f"{rule} {describe(rule.name)}" for rule in self._rules)]
        if self.is_listing:
            # Only compiled kernels are listed, so nothing may come from a cache.
            texts.append(f"{os.getpid()} {time.time_ns()}")
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:_DIGITS]

    def insert(self, module: Any, *, kernel: str) -> Inserted:
        """Insert records into a module and print warnings.

        Args:
            module: Triton's module of the TTGIR stage, with the dialect of records loaded.
            kernel: Name of the kernel.
        """
        inserted = self._insert(module, kernel)
        if self.is_listing and applying(self._rules, kernel):
            as_json = any(rule.as_json for rule in self._rules)
            list_scopes(kernel, inserted.scopes, as_json=as_json)
        if inserted.left_out:
            report_left_out(kernel, inserted.left_out)
        if inserted.skipped:
            report_skipped(kernel, inserted.skipped)
        return inserted

    def _insert(self, module: Any, kernel: str) -> Inserted:
        from triton._C.libtriton import ir

        rules = applying(self._rules, kernel)
        if not rules:
            return Inserted(kernel)
        builder = ir.builder(module.context)
        tree = OpTree(module, builder)
        name_barrier_waits(tree.ops)
        found = candidates(tree.ops, rules)
        taken = tuple({str(rule): None for op in tree.ops for rule in rules_that_take(op, rules)})
        names = [function.handle.get_str_attr("sym_name") for function in tree.functions]
        if found and len(names) != 1:
            others = ", ".join(str(name) for name in names)
            why = f"Triton records only in one function, not in {others}"
            return Inserted(kernel, skipped=why, taken=taken)
        inside, outside = cap(found, MAX_SCOPES - _scopes_in_source(tree.ops))
        if not self.is_listing:
            _insert_all(builder, inside)
        return Inserted(kernel, _scopes(inside), _scopes(outside), taken=taken)


def _scopes_in_source(ops: Sequence[Op]) -> int:
    # Two records to a scope; an event takes one number for its allocation.
    records = sum(op.name == _RECORD for op in ops)
    return (records + 1) // 2 + sum(op.name == _SCOPE_OPS[1] for op in ops)


def _insert_all(builder: Any, inside: Sequence[Candidate]) -> None:
    from triton._C.libtriton import proton

    for each in reversed(inside):
        op = each.op
        builder.set_insertion_point_after(op.handle)
        builder.set_loc(op.location)
        proton.create_proton_record(builder, False, each.scope.name)  # noqa: FBT003
        if op.before is None:
            builder.set_insertion_point_to_start(op.block)
        else:
            builder.set_insertion_point_after(op.before.handle)
        builder.set_loc(op.location)
        proton.create_proton_record(builder, True, each.scope.name)  # noqa: FBT003


def _scopes(chosen: Sequence[Candidate]) -> tuple[Scope, ...]:
    return tuple(each.scope for each in chosen)
