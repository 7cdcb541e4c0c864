"""Bytes to profile and back: one module per file format, and the registry that picks one.

A new format is one module here with a class that fits `Format`, named in `registry`; a plugin
offers its own through the hook ``proton_formats``.
"""

from __future__ import annotations

from proton_bench.formats.base import Format
from proton_bench.formats.registry import (
    FORMATS,
    decode_profile,
    find_format,
    formats,
    read_profile,
    register_format,
    write_profile,
)

__all__ = [
    "FORMATS",
    "Format",
    "decode_profile",
    "find_format",
    "formats",
    "read_profile",
    "register_format",
    "write_profile",
]
