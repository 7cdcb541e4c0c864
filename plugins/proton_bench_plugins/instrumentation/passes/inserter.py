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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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
from proton_bench_plugins.instrumentation.passes.registry import (
    DOT_WAIT,
    LOAD_WAIT,
    PRINT_OPS,
    Op,
    OpTree,
    describe,
)
from proton_bench_plugins.instrumentation.passes.rule import Rule, applying

_WAITS = ("ttng.wait_barrier", "amdg.wait_barrier")
_INIT = ("ttng.init_barrier", "amdg.init_barrier")
_PARTITIONS = "ttg.warp_specialize.partitions"
_LOOP = "scf.for"
_LOOP_BOUNDS = 3  # operands before the values that a loop carries; its block has one before them
_PART = "ttg.memdesc_"
_ARRIVES = {"load_issue": LOAD_WAIT, "dot_issue": DOT_WAIT, "dot_commit": DOT_WAIT}
_COPY_ARRIVES = "async_copy_mbarrier_arrive"


# A wait is the same operation for a load, a dot, or other warps; what arrives at its barrier
# differs. Barriers reach their users as parts of an allocation, as values that a loop carries and
# as captures of warp-specialised partitions.
def name_barrier_waits(ops: Sequence[Op]) -> None:
    """Set the kinds of waits for barriers.

    Args:
        ops: All operations of a module, parents first.
    """
    waits = [op for op in ops if op.name in _WAITS]
    if not waits:
        return
    roots = _Roots(ops)
    barriers = {roots.of(op.handle.get_operand(0)) for op in ops if op.name in _INIT}
    kinds: dict[int, str] = {}
    for op in ops:
        kind = LOAD_WAIT if op.name.endswith(_COPY_ARRIVES) else _ARRIVES.get(op.kind or "")
        if kind is not None:
            for operand in _operands(op):
                kinds.setdefault(roots.of(operand), kind)
    for op in waits:
        root = roots.of(op.handle.get_operand(0))
        if root in barriers:
            op.kind = kinds.get(root, op.kind)


class _Roots:
    """The original value of a value: before parts, loops and partitions."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self._whole: dict[int, int] = {}
        for op in ops:
            if op.name.startswith(_PART):
                part = op.handle.get_result(0)
                self._whole[part.id()] = op.handle.get_operand(0).id()
            elif op.name == _LOOP:
                self._add_carried(op)
            for child in op.children:
                if child.name == _PARTITIONS:
                    self._add_captures(op, child)

    def of(self, value: Any) -> int:
        """Return the number of the outermost value."""
        number: int = value.id()
        while number in self._whole:
            number = self._whole[number]
        return number

    def _add_carried(self, loop: Op) -> None:
        body = loop.children[0].block
        for at, value in enumerate([*_operands(loop)][_LOOP_BOUNDS:]):
            self._whole[body.arg(at + 1).id()] = value.id()
            self._whole[loop.handle.get_result(at).id()] = value.id()

    def _add_captures(self, specialize: Op, partitions: Op) -> None:
        # They are operands of the inner operation since Triton 3.7, of the outer one before.
        captures = [*_operands(partitions)] or [*_operands(specialize)]
        for block in {child.block.id(): child.block for child in partitions.children}.values():
            count = min(block.get_num_arguments(), len(captures))
            for at in range(count):
                self._whole[block.arg(at).id()] = captures[at].id()


def _operands(op: Op) -> Iterator[Any]:
    for at in range(op.handle.get_num_operands()):
        yield op.handle.get_operand(at)


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
