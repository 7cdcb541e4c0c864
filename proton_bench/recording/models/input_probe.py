"""Finds where this torch keeps the arguments of its operators, in the process of a probe.

Operators with known arguments run, and their memory is compared with these. What is not found in
exactly one place stays unknown.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

_WORD, _ARGUMENT = 8, 16  # bytes; an argument is a number or a pointer, then a tag of 32 bits
_OPERATOR_WORDS, _TENSOR_WORDS, _LIST_WORDS = 64, 40, 8
_INLINE = 5  # sizes that a tensor has room for
_SHORT = (("bfloat", "bf"), ("float8_", "f8"), ("float", "f"), ("uint", "u"), ("int", "i"))

# Each argument as its payload and its tag.
_Read = list[tuple[int, int]]


class InputProbe:
    """Runs operators, and is shown them where they begin."""

    def __init__(self) -> None:
        self._memory = os.open("/proc/self/mem", os.O_RDONLY)
        self._expected: tuple[str, Sequence[Any]] = ("", ())
        self._alive: list[Any] = []
        self._operators: list[tuple[Sequence[Any], dict[int, _Read]]] = []
        self._lists: list[tuple[Sequence[Any], dict[int, _Read]]] = []

    def run(self) -> None:
        """Run operators with arguments of all kinds."""
        import torch

        image, weight = torch.empty(2, 3, 16, 17), torch.empty(5, 3, 3, 3)
        shape = ([2, 3], [4, 5], [1, 1], False, [0, 0], 1)
        self._run("aten::convolution", torch.convolution, image, weight, None, *shape)
        mirrored = ([1, 1], [2, 7], [1, 1], True, [0, 0], 3)
        narrow = torch.empty(3, 4, 3, 3)
        self._run("aten::convolution", torch.convolution, image, narrow, None, *mirrored)
        self._run("aten::leaky_relu", torch.nn.functional.leaky_relu, image, 0.375)
        self._run("aten::cat", torch.cat, [image, image], 1)
        self._run("aten::cat", torch.cat, [weight, weight, weight], 2)

    def _run(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        self._alive.append(arguments)
        self._expected = (name, arguments)
        function(*arguments)

    def visit(self, name: str, address: int) -> None:
        """Read the operator that begins, if it is the expected one.

        Args:
            name: Its name.
            address: Of its memory.
        """
        expected, arguments = self._expected
        if name != expected or not arguments:
            return
        self._expected = ("", ())
        places: dict[int, _Read] = {}
        words = self._words(address, _OPERATOR_WORDS)
        for at, (first, count) in enumerate(pairwise(words)):
            read = self._arguments(first, count) if count == len(arguments) else []
            if _are_equal(read, arguments):
                places[at * _WORD] = read
        self._operators.append((arguments, places))
        for read in list(places.values())[:1]:
            for (payload, _), argument in zip(read, arguments, strict=True):
                if isinstance(argument, list):
                    self._lists.append((argument, self._elements(payload, argument)))

    def _elements(self, address: int, values: Sequence[Any]) -> dict[int, _Read]:
        places: dict[int, _Read] = {}
        words = self._words(address, _LIST_WORDS)
        for at, (first, end) in enumerate(pairwise(words)):
            is_whole = end - first == len(values) * _ARGUMENT
            read = self._arguments(first, len(values)) if is_whole else []
            if _are_equal(read, values):
                places[at * _WORD] = read
        return places

    def _arguments(self, first: int, count: int) -> _Read:
        words = self._words(first, 2 * count)
        return [(words[at], words[at + 1] & 0xFFFFFFFF) for at in range(0, len(words) - 1, 2)]

    def _words(self, address: int, count: int) -> list[int]:
        """Return memory of this process; nothing where none is mapped."""
        try:
            found = os.pread(self._memory, count * _WORD, address)
        except (OSError, OverflowError):
            return []
        return [word for (word,) in struct.iter_unpack("<Q", found[: len(found) // 8 * 8])]

    def layout(self) -> dict[str, Any] | None:
        """Return the arguments of ``read_torch_inputs``; None where something is not certain."""
        arguments = _only(places for _, places in self._operators)
        elements = _only(places for _, places in self._lists)
        if arguments is None or elements is None:
            return None
        reads = [(values, places[arguments]) for values, places in self._operators]
        reads += [(values, places[elements]) for values, places in self._lists]
        tags = _tags(reads)
        sizes, dtype, dtypes = self._tensors()
        pointer = _only(self._pointers(each) for each in self._objects())
        if tags is None or sizes is None or dtype is None or pointer is None:
            return None
        return {
            "offsets": [arguments, sizes, dtype, elements, pointer, *self._meta()],
            "tags": tags,
            "dtypes": sorted(dtypes.items()),
        }

    def _objects(self) -> list[Any]:
        import torch

        tensors = [torch.empty(2), torch.nn.Parameter(torch.empty(3)), torch.empty(4)[1:]]
        self._alive.append(tensors)
        return tensors

    def _meta(self) -> tuple[int, int]:
        """Return where a tensor says that it has no memory, and how; (0, 0) if unknown."""
        import torch
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():  # of another device, but without memory
            none = [torch.empty(2), torch.empty(3, 5)]
        shapes = ((2,), (3, 5), ())
        none += [torch.empty(shape, device="meta") for shape in shapes]
        some = [torch.empty(shape, dtype=torch.float64) for shape in shapes] + self._objects()
        self._alive += [none, some]
        read = [
            [struct.pack(f"<{len(words)}Q", *words) for words in map(self._tensor_words, each)]
            for each in (none, some)
        ]
        found = []
        for at in range(_WORD, min(len(words) for each in read for words in each)):
            without, with_memory = ({words[at] for words in each} for each in read)
            if len(without) == len(with_memory) == 1 and without != with_memory:
                found.append((at, without.pop()))
        return found[0] if len(found) == 1 else (0, 0)

    def _tensor_words(self, tensor: Any) -> list[int]:
        return self._words(tensor._cdata, _TENSOR_WORDS)

    def _pointers(self, tensor: Any) -> dict[int, _Read]:
        """Return where the Python object points to its tensor."""
        words = self._words(id(tensor), tensor.__sizeof__() // _WORD)
        return {at * _WORD: [] for at, word in enumerate(words) if word == tensor._cdata}

    def _tensors(self) -> tuple[int | None, int | None, Mapping[int, str]]:
        """Return where a tensor has its sizes and its type, and the names of types by code."""
        import torch

        shapes = ((), (3, 5, 7), (3, 5, 7, 11, 13), (1, 3, 5, 2, 7, 4))
        tensors = [torch.empty(shape) for shape in shapes]
        sizes = _only({at: [] for at in self._sizes(tensor)} for tensor in tensors)
        bytes_of: dict[str, list[bytes]] = {}
        for name, kind in vars(torch).items():
            if isinstance(kind, torch.dtype) and str(kind) == f"torch.{name}":
                try:
                    alike = [torch.empty(shape, dtype=kind) for shape in ((2,), (3, 5), ())]
                except (RuntimeError, TypeError):
                    continue  # one that has no tensors by itself
                self._alive.append(alike)
                words = [self._tensor_words(each) for each in alike]
                bytes_of[name] = [struct.pack(f"<{len(each)}Q", *each) for each in words]
        places = range(_WORD, min(map(len, (each[0] for each in bytes_of.values()))), 2)
        codes = {at: _codes(bytes_of, at) for at in places}
        certain = [at for at in places if codes[at] is not None]
        found = codes[certain[0]] if len(certain) == 1 else None
        if found is None:
            return sizes, None, {}
        return sizes, certain[0], found

    def _sizes(self, tensor: Any) -> Iterable[int]:
        shape = list(tensor.shape)
        words = self._tensor_words(tensor)
        for at in range(1, len(words) - _INLINE):
            behind = words[at + 1 : at + 1 + len(shape)]
            if len(shape) > _INLINE:
                behind = self._words(words[at + 1], len(shape))
            if words[at] == len(shape) and behind == shape:
                yield at * _WORD


def _are_equal(read: _Read, values: Sequence[Any]) -> bool:
    return len(read) == len(values) > 0 and all(
        _payload(value) in {None, payload & 0xFF if isinstance(value, bool) else payload}
        for (payload, _), value in zip(read, values, strict=True)
    )


def _payload(value: Any) -> int | None:
    """Return what stands for a value; None where that is not known before."""
    if isinstance(value, float):
        return int.from_bytes(struct.pack("<d", value), "little")
    if value is None or isinstance(value, list):
        return None
    return int(value._cdata if hasattr(value, "_cdata") else value)


def _only(places: Iterable[Mapping[int, Any]]) -> int | None:
    """Return the place that all have, None for none or several."""
    found = [set(each) for each in places]
    common = set.intersection(*found) if found else set()
    return common.pop() if len(common) == 1 else None


def _tags(reads: Iterable[tuple[Sequence[Any], _Read]]) -> list[int] | None:
    """Return the tags of tensors, lists, integers, booleans and numbers."""
    found: dict[str, set[int]] = {}
    for values, read in reads:
        for value, (_, tag) in zip(values, read, strict=True):
            found.setdefault(type(value).__name__, set()).add(tag)
    kinds = ("Tensor", "list", "int", "bool", "float", "NoneType")
    tags = [tag for kind in kinds for tag in found.get(kind, ())]
    return tags[:-1] if len(tags) == len(set(tags)) == len(kinds) else None


def _codes(bytes_of: Mapping[str, Sequence[bytes]], at: int) -> dict[int, str] | None:
    """Return the 16 bits at this place by type; None unless each type has its own there."""
    codes: dict[int, str] = {}
    for name, alike in bytes_of.items():
        values = {int.from_bytes(each[at : at + 2], "little") for each in alike}
        if len(values) != 1 or values & codes.keys():
            return None
        codes[values.pop()] = short_name(name)
    return codes


def short_name(name: str) -> str:
    """Return the name of a type of torch as signatures have it: ``bf16``, ``f8e4m3fn``."""
    for long, short in _SHORT:
        if name.startswith(long):
            return short + name.removeprefix(long)
    return re.sub("^complex", "c", name)
