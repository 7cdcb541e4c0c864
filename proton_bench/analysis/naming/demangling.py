"""Mangled names of C++ kernels as declarations, within bounds on time and memory."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import re
import resource
import signal
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from proton_bench.analysis.naming.operation import parse
from proton_bench.errors import BackendUnavailableError

_MANGLED = "_Z"
# Longer names than any compiler writes stay as they are.
_MOST_MANGLED = 1 << 16
# A name can refer to parts of itself, and each reference may double its length.
_REFERENCE = re.compile(r"[ST][0-9A-Z]*_")
_MOST_EXPANDED = 1 << 18  # characters that are safe to make in this process
# Of all names of a file; those of real templates take less than a hundredth of this.
_MOST_MEMORY, _MOST_SECONDS = 256 << 20, 0.5
_MANY = 20


@dataclass(frozen=True, slots=True)
class _Library:
    demangle: Any
    free: Any


@functools.lru_cache(maxsize=1)
def _demangler() -> _Library:
    for name in ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib"):
        try:
            demangle = ctypes.CDLL(name).__cxa_demangle
        except (OSError, AttributeError):
            continue
        demangle.restype = ctypes.c_void_p
        return _Library(demangle, ctypes.CDLL(None).free)
    raise BackendUnavailableError(
        "names cannot be demangled: this machine has neither libstdc++.so.6 nor libc++abi"
    )


@functools.lru_cache(maxsize=65536)
def demangled(name: str) -> str:
    """Return the declaration of a mangled name; other names are returned unchanged.

    So are names that take too much time or memory to read.

    Raises:
        BackendUnavailableError: The C++ library for this is not on this machine.
    """
    if not name.startswith(_MANGLED) or len(name) > _MOST_MANGLED:
        return name
    return _texts_in_child([name])[name] if _is_risky(name) else _text_of(_demangler(), name)


def all_demangled(names: Iterable[str]) -> dict[str, str]:
    """Return the results of `demangled` for the mangled ones of many names.

    Those that might take too much time or memory share one limit: if they exceed it together, all
    of them are returned unchanged, so that the order of names does not matter.
    """
    mangled = [name for name in names if name.startswith(_MANGLED) and len(name) <= _MOST_MANGLED]
    risky = [name for name in mangled if _is_risky(name)]
    texts = _texts_in_child(risky) if risky else {}
    return {name: texts[name] if name in texts else demangled(name) for name in mangled}


def _is_risky(name: str) -> bool:
    most = name.count("S") + name.count("T")
    if len(name) << min(most, _MANY) <= _MOST_EXPANDED:
        return False
    references = sum(1 for _ in _REFERENCE.finditer(name))
    return len(name) << min(references, _MANY) > _MOST_EXPANDED


def _text_of(library: _Library, name: str) -> str:
    status = ctypes.c_int()
    mangled = name.encode("utf-8", "backslashreplace")
    found = library.demangle(ctypes.c_char_p(mangled), None, None, ctypes.byref(status))
    if not found:
        return name
    try:
        return ctypes.string_at(found).decode("utf-8", "replace")
    finally:
        library.free(ctypes.c_void_p(found))


def _texts_in_child(names: Sequence[str]) -> dict[str, str]:
    """Return the results of `_text_of`, or the names unchanged if the child exceeds its limits.

    The C++ library may work on one name without end, and nothing but its end stops it.
    """
    library = _demangler()
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child runs no other thread
        process = os.fork()
    if not process:
        try:
            _limit_own_process()
            texts = [_text_of(library, name) for name in names]
            with os.fdopen(writing, "wb") as stream:
                stream.write(json.dumps(texts).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        content = stream.read()
    _, status = os.waitpid(process, 0)
    ended_well = bool(content) and not status
    return dict(zip(names, json.loads(content) if ended_well else names, strict=True))


def _limit_own_process() -> None:
    with open("/proc/self/statm", encoding="ascii") as stream:
        size = int(stream.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + _MOST_MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Processor time, so that what a name becomes does not depend on other processes. The signal
    # ends the process.
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_VIRTUAL, _MOST_SECONDS)


def base_name(name: str) -> str:
    """Return the function's own name, without scopes and arguments, as tools may print it."""
    return _base_name(name, demangled(name))


def base_names(names: Collection[str]) -> dict[str, str]:
    """Return `base_name` of each of many names."""
    known = all_demangled(names)
    return {name: _base_name(name, known.get(name, name)) for name in names}


def _base_name(name: str, text: str) -> str:
    if "(" not in text and "<" not in text:
        return text.removesuffix(".kd").rpartition("::")[2]
    declaration = parse(text)
    return (name if declaration is None else declaration.name).rpartition("::")[2]
