"""Names of C++ kernels: mangled ones made readable, long ones made short."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import replace
from enum import StrEnum

import numpy as np

from proton_bench.errors import BackendUnavailableError
from proton_bench.profile import Profile
from proton_bench.profile.frame import StringTable

__all__ = ["Demangling", "base_name", "demangled", "short_name", "with_demangled_names"]

_MANGLED = "_Z"
_ANONYMOUS = "(anonymous namespace)"
_SUFFIXES = (" [clone .kd]", " (.kd)", ".kd")


class Demangling(StrEnum):
    """How much of a C++ name is shown."""

    OFF = "off"
    FULL = "full"
    SHORT = "short"


@functools.lru_cache(maxsize=1)
def _demangler() -> ctypes.CDLL | None:
    for name in ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib"):
        try:
            library = ctypes.CDLL(name)
            library.__cxa_demangle.restype = ctypes.c_void_p
        except (OSError, AttributeError):
            continue
        return library
    return None


@functools.lru_cache(maxsize=65536)
def demangled(name: str) -> str:
    """Return the declaration that a mangled name stands for; other names are returned as they are.

    Raises:
        BackendUnavailableError: The C++ library that knows how is not on this machine.
    """
    if not name.startswith(_MANGLED):
        return name
    library = _demangler()
    if library is None:
        raise BackendUnavailableError(
            "names cannot be demangled: neither libstdc++.so.6 nor libc++abi is on this machine"
        )
    status = ctypes.c_int()
    mangled = name.encode("utf-8", "backslashreplace")
    found = library.__cxa_demangle(ctypes.c_char_p(mangled), None, None, ctypes.byref(status))
    if not found:
        return name
    try:
        return ctypes.string_at(found).decode("utf-8", "replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(found))


def short_name(name: str) -> str:
    """Return a function's qualified name, without return type, template and other arguments.

    ``void at::native::fill<4, float>(int, float*)`` is ``at::native::fill``; names that are no
    declarations are returned as they are.
    """
    text = demangled(name)
    for suffix in _SUFFIXES:
        text = text.removesuffix(suffix)
    if "(" not in text and "<" not in text:
        return text
    kept = _outside_brackets(text)
    words = kept.split()
    short = words[-1] if words else ""
    is_function = bool(short) and all(c.isalnum() or c in "_:~$.{}" for c in short)
    return short.replace("{}", _ANONYMOUS) if is_function else name


def _outside_brackets(text: str) -> str:
    """Return what stands outside of <...>, up to the first argument list."""
    kept, depth, parens = [], 0, 0
    for character in text.replace(_ANONYMOUS, "{}"):
        if character == "(":
            if depth == 0:
                break
            parens += 1
        elif character == ")":
            parens -= 1
        elif character == "<" and not parens:
            depth += 1
        elif character == ">" and not parens:
            depth -= 1
        elif depth == 0:
            kept.append(character)
    return "".join(kept)


def base_name(name: str) -> str:
    """Return the function's own name, without scopes and arguments, as tools may print it."""
    return short_name(name).rpartition("::")[2]


def with_demangled_names(profile: Profile, form: Demangling) -> Profile:
    """Return the profile with readable names; texts of metrics stay what they are.

    Raises:
        BackendUnavailableError: What `demangled` says.
    """
    if form is Demangling.OFF:
        return profile
    change = demangled if form is Demangling.FULL else _short_if_declaration
    changed = [change(text) for text in profile.strings]
    if changed == list(profile.strings):
        return profile
    table = StringTable()
    places = np.array([table.index(text) for text in changed], dtype=profile.frames.dtype)
    return replace(profile, frames=places[profile.frames], strings=table.texts())


def _short_if_declaration(name: str) -> str:
    text = demangled(name)
    return short_name(text) if text != name or text.endswith(")") or "<" in text else name
