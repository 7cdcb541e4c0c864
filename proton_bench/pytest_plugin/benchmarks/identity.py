"""Names of benchmarks that do not change when a parameter is inserted.

pytest numbers the values that it cannot write out: ``shape0``, ``shape1``. Inserting a value before
them renames all that follow, and a gate by these names would compare different things. So such
numbers are replaced by the values.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

__all__ = ["benchmark_ids", "parameters_of"]

_MAX_VALUE = 80
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def benchmark_ids(items: Iterable[pytest.Item]) -> dict[str, str]:
    """Return the names of tests by their node ids.

    They are the node ids with values of parameters instead of numbers, unless two tests would have
    the same name: these keep their node ids.
    """
    found = {item.nodeid: _stable_id(item) for item in items}
    uses = Counter(found.values())
    return {test: name if uses[name] == 1 else test for test, name in found.items()}


def _stable_id(item: pytest.Item) -> str:
    callspec: Any = getattr(item, "callspec", None)
    if callspec is None:
        return item.nodeid
    suffix = f"[{callspec.id}]"
    if not item.nodeid.endswith(suffix):
        return item.nodeid
    stable = _stable_parameters(str(callspec.id), callspec.params)
    return f"{item.nodeid.removesuffix(suffix)}[{stable}]"


def parameters_of(item: pytest.Item) -> dict[str, str]:
    """Return the test's parameters as text, by name."""
    callspec = getattr(item, "callspec", None)
    params: Mapping[str, Any] = {} if callspec is None else callspec.params
    return {name: _text(value) or type(value).__qualname__ for name, value in params.items()}


def _stable_parameters(numbered: str, params: Mapping[str, Any]) -> str:
    for name, value in params.items():
        text = _text(value)
        if text is None:
            continue
        # pytest's number is between dashes, or at either end.
        found = re.search(rf"(?<![^-]){re.escape(name)}\d+(?![^-])", numbered)
        if found is not None:
            numbered = f"{numbered[: found.start()]}{name}={text}{numbered[found.end() :]}"
    return numbered


def _text(value: object) -> str | None:
    """Return a value as text, None if only its address distinguishes it."""
    if isinstance(value, enum.Enum):
        return str(value)
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):
        return name
    try:
        said = repr(value)
    except Exception:  # noqa: BLE001 - code of a test
        return None
    if _ADDRESS.search(said):
        return None
    said = " ".join(said.split())
    if len(said) <= _MAX_VALUE:
        return said
    digest = hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{said[: _MAX_VALUE - 10]}..{digest}"
