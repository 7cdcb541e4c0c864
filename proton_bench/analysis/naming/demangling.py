"""Mangled names of C++ kernels as declarations, within bounds on time and memory."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import resource
import signal
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from proton_bench.errors import BackendUnavailableError

__all__ = ["all_demangled", "base_name", "base_names", "demangled"]

_MANGLED = "_Z"
# Longer names than any compiler writes stay as they are.
_MOST_MANGLED = 1 << 16
_ANONYMOUS = "(anonymous namespace)"
# A name can refer to parts of itself, and each reference may double its length.
_REFERENCE = re.compile(r"[ST][0-9A-Z]*_")
_MOST_EXPANDED = 1 << 18  # characters that are safe to make in this process
# Names of real templates take less than a thousandth of this. The seconds are of one name.
_MOST_TEXT, _MOST_MEMORY, _MOST_SECONDS = 1 << 20, 256 << 20, 0.1
_MOST_TEXT_OF_ALL, _MOST_SECONDS_OF_ALL, _MOST_FAILURES = 32 << 20, 1.0, 4
_MANY = 20
_SUFFIXES = (" [clone .kd]", " (.kd)", ".kd")


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
    return _text_in_child([name])[name] if _is_risky(name) else _text_of(_demangler(), name)


def all_demangled(names: Iterable[str]) -> dict[str, str]:
    """Return the results of `demangled` for the mangled ones of many names.

    They share one limit. If they exceed it together, all are returned unchanged, so that the order
    of names does not matter.
    """
    mangled = [name for name in names if name.startswith(_MANGLED) and len(name) <= _MOST_MANGLED]
    risky = [name for name in mangled if _is_risky(name)]
    found = _text_in_child(risky) if risky else {}
    size = sum(map(len, found.values()))
    for name in mangled:
        if name not in found:
            found[name] = _text_of(_demangler(), name)
            size += len(found[name])
        if size > _MOST_TEXT_OF_ALL:
            return {each: each for each in mangled}
    return found


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


def _text_in_child(names: Sequence[str]) -> dict[str, str]:
    """Return the results of `_text_of`, or the names unchanged if a child exceeds its limit.

    A name that exceeds its own limit ends a child, and the next child continues after it.
    """
    library = _demangler()
    found: dict[str, str] = {}
    failures, size, seconds = 0, 0, 0.0
    while len(found) < len(names):
        texts, used = _one_child(library, names[len(found) :])
        size += sum(map(len, texts.values()))
        seconds += used
        found.update(texts)
        if len(found) < len(names):
            found[names[len(found)]] = names[len(found)]
            failures += 1
        is_too_much = size > _MOST_TEXT_OF_ALL or seconds > _MOST_SECONDS_OF_ALL
        if failures > _MOST_FAILURES or is_too_much:
            return {name: name for name in names}
    return found


def _one_child(library: _Library, names: Sequence[str]) -> tuple[dict[str, str], float]:
    """Return the texts of the first names, up to one that exceeds a limit, and the seconds.

    These are of processor time, so that what a name becomes does not depend on other processes.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child runs no other thread
        process = os.fork()
    if not process:
        try:
            _bound_own_process()
            _tell(library, names, writing)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        content = stream.read(_MOST_TEXT_OF_ALL)
    _, _, usage = os.wait4(process, 0)
    texts = dict(zip(names, _texts(content), strict=False))
    return texts, usage.ru_utime + usage.ru_stime


def _tell(library: _Library, names: Sequence[str], writing: int) -> None:
    with os.fdopen(writing, "wb", buffering=0) as stream:
        for name in names:
            stream.write(_message(library, name))


def _message(library: _Library, name: str) -> bytes:
    signal.setitimer(signal.ITIMER_VIRTUAL, _MOST_SECONDS)  # its signal ends the process
    text = _text_of(library, name).encode("utf-8", "replace")
    shown = text if len(text) <= _MOST_TEXT else name.encode("utf-8", "replace")
    return len(shown).to_bytes(4, "little") + shown


def _texts(content: bytes) -> Iterator[str]:
    place = 0
    while place + 4 <= len(content):
        stop = place + 4 + int.from_bytes(content[place : place + 4], "little")
        if stop > len(content):
            return
        yield content[place + 4 : stop].decode("utf-8", "replace")
        place = stop


def _bound_own_process() -> None:
    with open("/proc/self/statm", encoding="ascii") as stream:
        size = int(stream.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + _MOST_MEMORY,) * 2)
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _shortened(name: str, text: str) -> str:
    """Return a declaration's qualified name, without types and arguments."""
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
    """Return the text outside <...>, up to the first argument list."""
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
    return _shortened(name, demangled(name)).rpartition("::")[2]


def base_names(names: Collection[str]) -> dict[str, str]:
    """Return `base_name` of each of many names."""
    known = all_demangled(names)
    return {name: _shortened(name, known.get(name, name)).rpartition("::")[2] for name in names}
