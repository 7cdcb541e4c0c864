"""Decides whether a kernel that is being compiled gets records, and emits them."""

from __future__ import annotations

import sys
from typing import Any

from proton_bench.errors import UsageError
from proton_bench.flags import flags

# Prefix of the text in Triton's key of every compile for a session. A compile without it, such as
# one of a library in between, must not get records, because Triton's cache would return it without
# a session.
MODE_PREFIX = "proton_bench:"

_CLASSES = {"triton": "TritonSemantic", "gluon": "GluonSemantic"}
_accepted = {"gluon"}


def are_wanted(semantic: Any) -> bool:
    """Return whether the kernel is compiled for a session that records scopes in kernels.

    Args:
        semantic: The compiler's ``_semantic``.
    """
    if not flags.instrumentation_on:
        return False
    options = getattr(getattr(semantic, "builder", None), "options", None)
    return str(getattr(options, "instrumentation_mode", "")).startswith(MODE_PREFIX)


def check_language(semantic: Any) -> None:
    """Raise for a kernel whose language is not enabled.

    Args:
        semantic: The compiler's ``_semantic``.

    Raises:
        UsageError: Records are not enabled for kernels of this language.
    """
    classes = {each.__name__ for each in type(semantic).__mro__}
    if "GluonSemantic" in classes:
        classes.discard("TritonSemantic")  # its base
    if not any(_CLASSES[name] in classes for name in _accepted):
        language = next((name for name, kind in _CLASSES.items() if kind in classes), None)
        advice = (
            f'call proton_bench.language.enable_semantic("{language}") first'
            if language
            else f"scopes work in {' and '.join(_CLASSES)} kernels"
        )
        raise UsageError(
            f"Unsupported semantic type: {type(semantic).__name__}; accepted: "
            f"{', '.join(sorted(_accepted)) or 'none'}; {advice}"
        )


def emit(semantic: Any, name: str, *, is_start: bool) -> None:
    """Emit a record at the compiler's position.

    Args:
        semantic: The compiler's ``_semantic``.
        name: Name of the scope.
        is_start: Whether the record opens or closes it.

    Raises:
        UsageError: Records are not enabled for kernels of this language.
    """
    check_language(semantic)
    dialect(semantic).create_proton_record(semantic.builder, is_start, name)


def dialect(semantic: Any) -> Any:
    """Return Triton's bindings of records, which the running compiler has loaded."""
    del semantic
    return sys.modules["triton._C.libtriton"].proton


def accept(semantic_name: str) -> None:
    """Enable records in kernels of a language."""
    _accepted.add(_known(semantic_name))


def accepts(semantic_name: str) -> bool:
    """Return whether records are enabled in kernels of a language."""
    return _known(semantic_name) in _accepted


def refuse(semantic_name: str) -> None:
    """Disable records in kernels of a language."""
    _accepted.discard(_known(semantic_name))


def value(given: Any) -> Any:
    """Unwrap a compile-time constant; the interpreter passes plain values."""
    return getattr(given, "value", given)


def plain(name: Any) -> str:
    """Return the text of a name."""
    return str(value(name))


def _known(name: str) -> str:
    if name not in _CLASSES:
        raise UsageError(f"Unknown semantic: {name}; choose from: {', '.join(_CLASSES)}")
    return name
