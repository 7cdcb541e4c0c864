"""Finds what a wait for a barrier in shared memory waits for: a load, a dot, or other warps.

The operation is the same for all; what arrives at its barrier differs. Barriers reach their users
as parts of an allocation, as values that a loop carries and as captures of
warp-specialised partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from proton_bench_plugins.instrumentation.passes.op_kinds import DOT_WAIT, LOAD_WAIT
from proton_bench_plugins.instrumentation.passes.op_tree import Op

__all__ = ["name_barrier_waits"]

_WAITS = ("ttng.wait_barrier", "amdg.wait_barrier")
_INIT = ("ttng.init_barrier", "amdg.init_barrier")
_PARTITIONS = "ttg.warp_specialize.partitions"
_LOOP = "scf.for"
_LOOP_BOUNDS = 3  # operands before the values that a loop carries; its block has one before them
_PART = "ttg.memdesc_"
_ARRIVES = {"load_issue": LOAD_WAIT, "dot_issue": DOT_WAIT, "dot_commit": DOT_WAIT}
_COPY_ARRIVES = "async_copy_mbarrier_arrive"


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
