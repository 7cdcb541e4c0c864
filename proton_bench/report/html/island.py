"""JSON inside HTML, escaped so that it cannot be parsed as markup or script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from markupsafe import Markup

from proton_bench.support.text import json_text

__all__ = ["island"]

# In JSON these occur only in strings, where an escape means the same.
_ESCAPES = str.maketrans(
    {
        "<": "\\u003c",
        ">": "\\u003e",
        "&": "\\u0026",
    }
)


def island(document: Mapping[str, Any]) -> Markup:
    r"""Return a document as JSON for the inside of a ``<script type="application/json">``.

    ``</script>``, ``<!--``, ``]]>`` and line separators of JavaScript are written as ``\uXXXX``;
    lone surrogates, which UTF-8 cannot hold, as text that shows them.
    """
    text = msgspec.json.encode(_encodable(document)).decode()
    return Markup(json_text(text).translate(_ESCAPES))


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_encodable(key): _encodable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple) and any(not isinstance(each, int) for each in value):
        return [_encodable(inner) for inner in value]
    return value
