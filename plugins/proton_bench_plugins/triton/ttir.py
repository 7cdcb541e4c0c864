"""Reads the text of a kernel's TTIR: functions with their blocks, operations and regions.

Only the structure is read. MLIR prints one operation per line, and regions between braces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from proton_bench.errors import MetricError

_NAME = r"%[\w$.\-]+"
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_COMMENT = re.compile(r"\s*//.*$")
# Locations nest: loc(callsite("f"(#loc1) at #loc2)).
_LOCATION = re.compile(r"\sloc\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)")
_LABEL = re.compile(r"\^(\w+)(?:\(.*\))?:")
_OP = re.compile(rf'(?:({_NAME}(?::\d+)?(?:, {_NAME}(?::\d+)?)*) = )?("\d+"|[\w$]+\.[\w$.]+)')
_RESULT = re.compile(rf"({_NAME})(?::(\d+))?")
_SYMBOL = re.compile(r'@("\d+"|[\w$.\-]+)')
_PARAMETER = re.compile(rf"({_NAME}): ([^\s,){{]+)")


@dataclass(slots=True, eq=False)
class Op:
    """An operation.

    Attributes:
        name: With its dialect.
        results: Names of its values, ``%x`` or ``%x#1``.
        text: The rest of its line, with empty strings and without locations.
        regions: Its regions in order.
    """

    name: str
    results: tuple[str, ...]
    text: str
    regions: list[list[Block]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Block:
    """Operations after one another, the last of which may branch to another block.

    Attributes:
        label: Without the circumflex, "" for the first of its region.
        ops: In order.
    """

    label: str
    ops: list[Op] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of a kernel.

    Attributes:
        is_kernel: Whether it is launched, not called.
        parameters: Names and types.
        blocks: Its body, None for one that is only declared.
    """

    is_kernel: bool
    parameters: tuple[tuple[str, str], ...]
    blocks: list[Block] | None


def read_functions(text: str) -> dict[str, Function]:
    """Return the functions of a module by their symbols.

    Args:
        text: What Triton printed, with or without locations.

    Raises:
        MetricError: A line is not what MLIR prints.
    """
    modules = _Reader().read(text)
    blocks = [block for module in modules for region in module.regions for block in region]
    return dict(_function(op) for block in blocks for op in block.ops if op.name == "tt.func")


def _function(op: Op) -> tuple[str, Function]:
    symbol = _SYMBOL.search(op.text)
    if symbol is None:
        raise MetricError(f"TTIR: a function has no name: {op.text}")
    header = op.text[symbol.end() :].partition(" attributes ")[0]
    parameters = tuple((found[1], found[2]) for found in _PARAMETER.finditer(header))
    is_kernel = not op.text.startswith("private ")
    return symbol[1], Function(is_kernel, parameters, op.regions[0] if op.regions else None)


class _Reader:
    """Reads lines; the open regions are a stack."""

    def __init__(self) -> None:
        self._strings: dict[str, str] = {}
        self._top: list[Op] = []
        self._stack: list[Op] = []

    def read(self, text: str) -> list[Op]:
        for line in map(str.strip, text.splitlines()):
            if line.startswith(("#", "!")):  # names of locations and types
                continue
            plain = _COMMENT.sub("", _LOCATION.sub("", _STRING.sub(self._number, line)))
            if plain:
                self._line(plain)
        if self._stack:
            raise MetricError(f"TTIR: the region of {self._stack[-1].name} has no end")
        return self._top

    def _number(self, found: re.Match[str]) -> str:
        """Replace a string, which may contain anything, by its number."""
        return f'"{self._strings.setdefault(found[1], str(len(self._strings)))}"'

    def _line(self, line: str) -> None:
        if line.startswith("}"):
            self._close(line)
        elif label := _LABEL.fullmatch(line):
            blocks = self._blocks(line)
            if blocks == blocks[:1] and not (blocks[0].label or blocks[0].ops):
                blocks.clear()  # the first block of a region has a label only if it has arguments
            blocks.append(Block(label[1]))
        else:
            self._op(line)

    def _close(self, line: str) -> None:
        if not self._stack:
            raise MetricError("TTIR: a region ends that did not begin")
        if line.endswith("{"):  # } else {, } do {, }, {
            self._stack[-1].regions.append([Block("")])
            return
        op = self._stack.pop()
        op.text += f" {line.lstrip('})')}"

    def _op(self, line: str) -> None:
        found = _OP.match(line)
        if found is None and not line.startswith("module"):
            raise MetricError(f"TTIR: this is not an operation: {line}")
        name = found[2] if found else "module"
        if name.startswith('"'):
            name = next(text for text, at in self._strings.items() if at == name.strip('"'))
        rest = line[found.end() :].strip() if found else ""
        op = Op(name, tuple(_results(found[1] or "")) if found else (), rest)
        (self._blocks(line)[-1].ops if self._stack else self._top).append(op)
        if line.endswith("{"):
            op.text = rest.removesuffix("{").strip()
            op.regions.append([Block("")])
            self._stack.append(op)

    def _blocks(self, line: str) -> list[Block]:
        if not self._stack:
            raise MetricError(f"TTIR: this is outside of all regions: {line}")
        return self._stack[-1].regions[-1]


def _results(names: str) -> Iterator[str]:
    for found in _RESULT.finditer(names):
        if found[2] is None:
            yield found[1]
        else:
            yield from (f"{found[1]}#{at}" for at in range(int(found[2])))
