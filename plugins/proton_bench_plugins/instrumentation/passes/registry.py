"""The passes by name: the built-in ones and those of plugins."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proton_bench.errors import UsageError

_FILE_LINE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
_TRITON_OWN = (os.path.join("triton", "language"), os.path.join("triton", "experimental"))


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file.

    Attributes:
        path: Path of the file in the compiler.
        line: From 1.
    """

    path: str
    line: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.path)}:{self.line}"


def read_places(location: str) -> tuple[Place, ...]:
    """Return the lines of a location: the operation's own, then those it was inlined into.

    Lines of Triton's own library come last, because ``tl.sum`` is identified by its caller.

    Args:
        location: Text of an MLIR location, e.g. ``loc(callsite("f.py":3:1 at "g.py":9:5))``.
    """
    return own_first([Place(path, int(line)) for path, line in _FILE_LINE.findall(location)])


def own_first(places: Sequence[Place]) -> tuple[Place, ...]:
    """Return the places, with those of Triton's own library last."""
    return tuple(sorted(places, key=_is_library))


def _is_library(place: Place) -> bool:
    folder = os.path.dirname(place.path)
    return any(own in folder for own in _TRITON_OWN)


LOAD_WAIT = "load_wait"
DOT_WAIT = "dot_wait"
LOOP = "loop"

# Names of operations that the Triton releases we know have, without their dialect: NVIDIA's and
# AMD's operations of one name do the same, and the dialect of AMD's changed its name once.
_KINDS: dict[str, tuple[str, ...]] = {
    LOOP: ("scf.for", "scf.while"),
    "load": ("load", "masked_load", "buffer_load", "descriptor_load", "descriptor_gather"),
    "load_issue": (
        "async_copy_global_to_local",
        "async_tma_copy_global_to_local",
        "async_tma_gather",
        "buffer_load_to_local",
        "async_tdm_copy_global_to_local",
        "async_tdm_fused_copy_global_to_local",
        "async_tdm_gather",
    ),
    LOAD_WAIT: ("async_wait", "async_tdm_wait", "async_tdm_intrinsic_wait"),
    "local_load": (
        *("local_load", "local_gather", "local_load_packed_transposed"),
        "local_load_packed_tranposed",  # Triton's spelling until 3.8
    ),
    "tmem_load": ("tmem_load",),
    "store": (
        *("store", "masked_store", "buffer_store", "descriptor_store", "descriptor_scatter"),
        "descriptor_reduce",
    ),
    "atomic": (
        *("atomic_rmw", "atomic_cas", "atomic_store", "atomic_load", "buffer_atomic_rmw"),
        *("buffer_atomic_cas", "local_atomic_scatter_rmw"),
    ),
    "store_issue": (
        *("async_tma_copy_local_to_global", "async_tma_reduce", "async_tma_scatter"),
        *("async_copy_local_to_global", "async_tdm_copy_local_to_global", "async_tdm_scatter"),
    ),
    "store_wait": ("async_tma_store_wait",),
    "local_store": ("local_store", "local_scatter", "async_shared_store"),
    "tmem_store": ("tmem_store",),
    "dot": ("dot", "dot_scaled"),
    "dot_issue": ("warp_group_dot", "tc_gen5_mma", "tc_gen5_mma_scaled"),
    "dot_commit": ("tc_gen5_commit",),
    DOT_WAIT: ("warp_group_dot_wait",),
    "barrier_wait": ("wait_barrier", "cluster_wait", "cluster_barrier_wait"),
    "grid_wait": ("grid_dependency_wait",),
    "barrier": ("barrier", "local_barrier", "cluster_barrier"),
    "arrive": ("arrive_barrier", "cluster_arrive", "cluster_barrier_arrive", "barrier_expect"),
}
_DIALECTS = ("tt", "ttg", "ttng", "amdg", "amdgpu", "gpu")
_KIND_OF = {
    name if "." in name else f"{dialect}.{name}": kind
    for kind, names in _KINDS.items()
    for name in names
    for dialect in _DIALECTS
}

# A wait for a barrier belongs to the pass whose operation arrives there, see ``barrier_use``.
PASS_KINDS: dict[str, tuple[str, ...]] = {
    "loops": (LOOP,),
    "loads": ("load", "load_issue", LOAD_WAIT, "local_load", "tmem_load"),
    "stores": ("store", "atomic", "store_issue", "store_wait", "local_store", "tmem_store"),
    "dots": ("dot", "dot_issue", "dot_commit", DOT_WAIT),
    "waits": (LOAD_WAIT, DOT_WAIT, "store_wait", "barrier_wait", "grid_wait"),
    "barriers": ("barrier", "arrive", "barrier_wait"),
}


def op_kind(name: str) -> str | None:
    """Return the kind of an operation, None if no built-in pass brackets it.

    Args:
        name: With its dialect, ``tt.load``.
    """
    return _KIND_OF.get(name)


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


ALL = "all"
PRINT_OPS = "print-ops"
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomPass:
    """A pass of a plugin: the operations that it brackets and their kinds.

    Attributes:
        name: Name for ``--instrument``; lower case.
        summary: One line.
        kinds: Kind, the first word of a scope's name, by the name of an operation with its dialect,
            e.g. ``{"ttg.convert_layout": "convert"}``.
    """

    name: str
    summary: str
    kinds: Mapping[str, str]


_custom: dict[str, CustomPass] = {}


def register_pass(custom: CustomPass) -> None:
    """Register a pass of a plugin for ``--instrument``.

    Raises:
        UsageError: The name is taken or cannot be written in ``--instrument``.
    """
    if not _NAME.fullmatch(custom.name):
        raise UsageError(
            f"pass {custom.name!r}: use lower-case letters, digits, '-' and '_' in the name"
        )
    if _custom.get(custom.name) == custom:
        return
    if custom.name in pass_names():
        raise UsageError(f"pass {custom.name!r} exists already: choose another name")
    _custom[custom.name] = custom


def pass_names() -> tuple[str, ...]:
    """Return the names of all passes."""
    return (*PASS_KINDS, ALL, PRINT_OPS, *_custom)


def kind_in_pass(name: str, op: Op) -> str | None:
    """Return the kind of an operation in a pass, or None.

    Args:
        name: Name of the pass.
        op: The operation.
    """
    custom = _custom.get(name)
    if custom is not None:
        return custom.kinds.get(op.name)
    if op.kind is None or name in (ALL, PRINT_OPS):
        return op.kind
    return op.kind if op.kind in PASS_KINDS[name] else None


def describe(name: str) -> str:
    """Return a text that identifies a pass, for digests."""
    custom = _custom.get(name)
    kinds = sorted(custom.kinds.items()) if custom else PASS_KINDS.get(name, ())
    return repr(kinds)
