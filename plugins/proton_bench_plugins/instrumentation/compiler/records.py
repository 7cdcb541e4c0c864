"""Reads the records in a kernel's TTGIR and finds errors in them before a compiler does.

Triton prints its own diagnostics on stderr and raises an error without a reason; errors
visible in the text are reported here, with the name of the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proton_bench.errors import UsageError
from proton_bench_plugins.instrumentation.settings import Settings

MOST_SCOPES = 256  # ids of scopes have eight bits
_RECORD = re.compile(r'^\s*proton\.record (start|end) "((?:[^"\\]|\\.)*)"', re.MULTILINE)
_EVENT = re.compile(r'^\s*%\S+ = proton\.allocate_event "((?:[^"\\]|\\.)*)"', re.MULTILINE)
_ANY = re.compile(r"\bproton\.(record|allocate_event|event)\b")
_WARPS = re.compile(r'"ttg\.(total-)?num-warps" = (\d+) : i32')
_SPECIALIZES = "ttg.warp_specialize("


@dataclass(frozen=True, slots=True)
class Record:
    """One end of a scope.

    Attributes:
        name: Name of the scope.
        is_start: Which end.
    """

    name: str
    is_start: bool


def has_records(text: str) -> bool:
    """Return whether a kernel has records or events.

    Args:
        text: TTGIR.
    """
    return _ANY.search(text) is not None


def find_records(text: str) -> list[Record]:
    """Return the records of a kernel in the order of their ids.

    Args:
        text: TTGIR.
    """
    return [Record(match[2], match[1] == "start") for match in _RECORD.finditer(text)]


def check_records(text: str, kernel: str, settings: Settings) -> None:
    """Raise for records that the compiler would reject.

    Args:
        text: TTGIR.
        kernel: Name of the kernel.
        settings: Options of the mode.

    Raises:
        UsageError: Scopes are not balanced or too many, or an option does not fit the kernel.
    """
    records = find_records(text)
    faults = list(_unbalanced(records))
    if faults:
        raise UsageError(f"kernel {kernel!r}: {'; '.join(faults)}")
    scopes = len(records) // 2 + len(_EVENT.findall(text))
    if scopes > MOST_SCOPES:
        raise UsageError(
            f"kernel {kernel!r} has {scopes} scopes and events, but can have only {MOST_SCOPES}: "
            "remove some, or unroll a loop less"
        )
    warps = kernel_warps(text)
    if warps is not None:
        check_warps(warps, kernel, settings)
        _check_buffer_size(warps, kernel, settings)


def check_warps(warps: int, kernel: str, settings: Settings) -> None:
    """Raise for warps that the kernel does not have.

    Args:
        warps: Number of warps of a program, with those of all partitions.
        kernel: Name of the kernel.
        settings: Options of the mode.

    Raises:
        UsageError: The kernel lacks a warp of the mode.
    """
    beyond = [warp for warp in settings.warp_ids if warp >= warps]
    if beyond:
        raise UsageError(
            f"sampling_options={_joined(settings.warp_ids)}: kernel {kernel!r} has no warp "
            f"{beyond[0]}; its {warps} warps have the numbers 0 to {warps - 1}"
        )


def _check_buffer_size(warps: int, kernel: str, settings: Settings) -> None:
    size = settings.buffer_size
    recorded = len(settings.warp_ids) or warps
    if not size:
        return
    each, rest = divmod(-(-size // 8) * 8, recorded)
    if rest or each & (each - 1) or each < 8:
        fitting = recorded * max(8, 1 << max(size // recorded, 1).bit_length() - 1)
        raise UsageError(
            f"buffer_size={size}: kernel {kernel!r} records {recorded} warps, and each needs a "
            f"power of two of bytes; write buffer_size={fitting}, or leave the option out"
        )


def _unbalanced(records: Sequence[Record]) -> Iterator[str]:
    open_kinds: dict[str, bool] = {}
    for record in records:
        first = open_kinds.get(record.name)
        if first is None:
            open_kinds[record.name] = record.is_start
        elif first is record.is_start:
            what = "opened twice" if first else "closed twice"
            yield f"scope {record.name!r} is {what} without being {_OPPOSITE[first]} between"
        else:
            del open_kinds[record.name]
    for name, is_start in open_kinds.items():
        what = "opened but never closed" if is_start else "closed but never opened"
        yield f"scope {name!r} is {what}"


_OPPOSITE = {True: "closed", False: "opened"}


def kernel_warps(text: str) -> int | None:
    """Return the number of warps of a program; None if only the compiler knows it.

    Args:
        text: TTGIR.
    """
    found = {bool(match[1]): int(match[2]) for match in _WARPS.finditer(text)}
    if True in found:
        return found[True]
    return None if _SPECIALIZES in text else found.get(False)


def _joined(ids: Sequence[int]) -> str:
    return ",".join(str(each) for each in ids)
