"""Reads the scopes of a loaded kernel, their parents, and the size of its buffer."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proton_bench_plugins.instrumentation.compiler.records import has_records

_ELF = b"\x7fELF"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
# The section of a cubin that describes its functions, by attributes of (form, kind, size or value).
_ATTRIBUTES = b".nv.info\0"
_ATTRIBUTE = struct.Struct("<BBH")
_SIZED = 4  # form of an attribute with as many bytes behind it as its third field says
_REGISTER_COUNT = 0x2F
_COUNT = struct.Struct("<II")  # symbol of the function, registers


def read_registers(path: Path) -> int | None:
    """Return the registers of a thread, None if the file does not say.

    Args:
        path: A cubin; other binaries have no such number.
    """
    try:
        binary = path.read_bytes()
        return max(_counts(binary), default=None) if binary.startswith(_ELF) else None
    except (OSError, OverflowError, struct.error, IndexError):
        return None


def _counts(binary: bytes) -> Iterator[int]:
    header = _HEADER.unpack_from(binary)
    offset, entry_size, count, names_at = header[6], header[11], header[12], header[13]
    sections = [_SECTION.unpack_from(binary, offset + index * entry_size) for index in range(count)]
    names = sections[names_at][4]
    for section in sections:
        if binary.startswith(_ATTRIBUTES, names + section[0]):
            yield from _register_counts(binary[section[4] : section[4] + section[5]])


def _register_counts(attributes: bytes) -> Iterator[int]:
    place = 0
    while place + _ATTRIBUTE.size <= len(attributes):
        form, kind, size = _ATTRIBUTE.unpack_from(attributes, place)
        place += _ATTRIBUTE.size
        if kind == _REGISTER_COUNT and form == _SIZED:
            yield _COUNT.unpack_from(attributes, place)[1]
        place += size if form == _SIZED else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelScopes:
    """A compiled kernel with records.

    Attributes:
        name: Name of the kernel.
        names: Name of each scope or event by its id.
        parents: Id of the enclosing scope by id; outermost ones have none.
        num_warps: Warps of a program, with those of all partitions.
        profile_scratch_size: Bytes of each program in the buffer of a launch; 0 without records.
        shared: Bytes of shared memory of a program, with those for records.
        registers: Registers of a thread, None if the binary does not say.
        target: ``backend``, ``arch`` and ``warp_size`` as Triton names them.
        mode: ``instrumentation_mode`` of its compile.
        ttgir_path: File with its TTGIR.
        metadata_path: File with Triton's metadata of it.
    """

    name: str
    names: Mapping[int, str] = field(default_factory=dict)
    parents: Mapping[int, int] = field(default_factory=dict)
    num_warps: int
    profile_scratch_size: int
    shared: int
    registers: int | None
    target: Mapping[str, Any]
    mode: str
    ttgir_path: Path = Path()
    metadata_path: Path = Path()


def read_scopes(ttgir_path: str | Path, metadata_json_path: str | Path) -> KernelScopes:
    """Read a kernel from Triton's files.

    Args:
        ttgir_path: Its TTGIR.
        metadata_json_path: Its metadata.

    Raises:
        OSError: A file cannot be read.
        ValueError: The metadata is not Triton's.
    """
    metadata = json.loads(Path(metadata_json_path).read_text(encoding="utf-8"))
    text = Path(ttgir_path).read_text(encoding="utf-8")
    names, parents = _read_ids(str(ttgir_path), metadata) if has_records(text) else ({}, {})
    return KernelScopes(
        name=str(metadata["name"]),
        names=names,
        parents=parents,
        num_warps=int(metadata["num_warps"]),
        profile_scratch_size=int(metadata.get("profile_scratch_size") or 0),
        shared=int(metadata.get("shared") or 0),
        registers=read_registers(Path(metadata_json_path).with_suffix(".cubin")),
        target=metadata["target"],
        mode=str(metadata.get("instrumentation_mode") or ""),
        ttgir_path=Path(ttgir_path),
        metadata_path=Path(metadata_json_path),
    )


def _read_ids(path: str, metadata: Mapping[str, Any]) -> tuple[dict[int, str], dict[int, int]]:
    from triton._C import libtriton

    context = libtriton.ir.context()
    libtriton.ir.load_dialects(context)
    vendor = libtriton.nvidia if metadata["target"]["backend"] == "cuda" else libtriton.amd
    vendor.load_dialects(context)
    libtriton.proton.load_dialects(context)
    module = libtriton.ir.parse_mlir_module(path, context)
    module.context = context  # kept alive as long as the module
    names = {int(number): str(name) for number, name in libtriton.proton.get_scope_id_names(module)}
    parents = libtriton.proton.get_scope_id_parents(module)
    return names, {int(child): int(parent) for child, parent in parents if parent in names}
