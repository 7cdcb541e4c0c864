"""A kernel's operations from Triton's bindings, with their parents and predecessors.

The bindings walk a module children first and give neither an operation's parent nor its
predecessor; both follow from the numbers of blocks and regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from proton_bench_plugins.instrumentation.passes.op_kinds import op_kind
from proton_bench_plugins.instrumentation.passes.source_place import Place, read_places

__all__ = ["Op", "OpTree"]

_FUNCTION = "tt.func"
_MODULE = "builtin.module"


@dataclass(slots=True, eq=False)
class Op:
    """An operation of a module.

    Attributes:
        name: With its dialect.
        handle: Triton's object.
        block: Triton's object of its block.
        location: Triton's object of its location.
        places: Lines it comes from, the closest first.
        before: The operation before it in its block, None for the first.
        kind: Its kind in the built-in passes, or None.
        children: Operations of its regions, in order.
        depth: Number of operations around it.
    """

    name: str
    handle: Any
    block: Any
    location: Any
    places: tuple[Place, ...]
    before: Op | None = None
    kind: str | None = None
    children: list[Op] = field(default_factory=list)
    depth: int = 0


class OpTree:
    """The operations of a module, parents before children.

    Args:
        module: Triton's module.
        builder: A builder of Triton's in the module's context; its insertion point moves.
    """

    def __init__(self, module: Any, builder: Any) -> None:
        roots = _Walk(builder).run(module)
        self.ops: Sequence[Op] = tuple(_preorder(roots))

    @property
    def functions(self) -> tuple[Op, ...]:
        """The functions of the module."""
        return tuple(op for op in self.ops if op.name == _FUNCTION)


class _Walk:
    """One walk, children first: a region is complete when its owner is reached."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._last: dict[int, Op] = {}
        self._of_region: dict[int, list[Op]] = {}

    def run(self, module: Any) -> list[Op]:
        module.walk(self._see)
        return [op for ops in self._of_region.values() for op in ops]

    def _see(self, handle: Any) -> None:
        name = handle.get_name()
        if name == _MODULE:
            return
        block = handle.get_block()
        # The bindings have only locations of values; but a builder takes over an operation's.
        self._builder.set_insertion_point_after(handle)
        location = self._builder.get_loc()
        op = Op(name, handle, block, location, read_places(str(location)), kind=op_kind(name))
        op.before = self._last.get(block.id())
        self._last[block.id()] = op
        self._of_region.setdefault(block.get_parent().id(), []).append(op)
        for at in range(handle.get_num_regions()):
            op.children.extend(self._of_region.pop(handle.get_region(at).id(), ()))


def _preorder(ops: Sequence[Op], depth: int = 0) -> Iterator[Op]:
    for op in ops:
        op.depth = depth
        yield op
        yield from _preorder(op.children, depth + 1)
