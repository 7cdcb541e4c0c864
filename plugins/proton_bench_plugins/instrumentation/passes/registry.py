"""The passes by name: the built-in ones and those of plugins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from proton_bench.errors import UsageError
from proton_bench_plugins.instrumentation.passes.op_kinds import PASS_KINDS
from proton_bench_plugins.instrumentation.passes.op_tree import Op

__all__ = [
    "ALL",
    "PRINT_OPS",
    "CustomPass",
    "describe",
    "kind_in_pass",
    "pass_names",
    "register_pass",
]

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
