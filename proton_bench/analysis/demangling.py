"""Names of C++ kernels: mangled ones made readable, long ones made short."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import resource
import warnings
from dataclasses import replace
from enum import StrEnum

import numpy as np

from proton_bench.errors import BackendUnavailableError
from proton_bench.profile import Profile
from proton_bench.profile.frame import StringTable

__all__ = ["Demangling", "base_name", "demangled", "short_name", "with_demangled_names"]

_MANGLED = "_Z"
_ANONYMOUS = "(anonymous namespace)"
# A name can refer to parts of itself, and each such mark may double what it stands for.
_REFERENCE = re.compile(r"[ST][0-9A-Z]*_")
_MOST_REFERENCES, _MOST_CHARACTERS = 14, 4096  # that are safe to try in this process
_MOST_TEXT = 1 << 20
_MOST_MEMORY, _MOST_SECONDS = 256 << 20, 1
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
    references = sum(1 for _ in _REFERENCE.finditer(name))
    if references <= _MOST_REFERENCES and len(name) <= _MOST_CHARACTERS:
        return _text_of(library, name)
    return _text_in_child(library, name)


def _text_of(library: ctypes.CDLL, name: str) -> str:
    status = ctypes.c_int()
    mangled = name.encode("utf-8", "backslashreplace")
    found = library.__cxa_demangle(ctypes.c_char_p(mangled), None, None, ctypes.byref(status))
    if not found:
        return name
    try:
        return ctypes.string_at(found).decode("utf-8", "replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(found))


class _Child:
    """Whether a child was ended by its limits: what comes after that is shown as it is."""

    has_failed = False


def _text_in_child(library: ctypes.CDLL, name: str) -> str:
    """Return what `_text_of` does, or the name where that takes too much time or memory."""
    if _Child.has_failed:
        return name
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child runs no other thread
        process = os.fork()
    if not process:
        try:
            _bound_own_process()
            text = _text_of(library, name).encode("utf-8", "replace")
            with os.fdopen(writing, "wb") as stream:
                stream.write(text if len(text) <= _MOST_TEXT else name.encode("utf-8", "replace"))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        content = stream.read()
    _, status = os.waitpid(process, 0)
    _Child.has_failed = status != 0 or not content
    return content.decode("utf-8", "replace") or name


def _bound_own_process() -> None:
    with open("/proc/self/statm", encoding="ascii") as stream:
        size = int(stream.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + _MOST_MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


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
