"""Pickling and copying of scopes; a copy is not open."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any


def reduce(scope: Any) -> tuple[Callable[..., Any], tuple[type], object]:
    """Return how to recreate this object without calling ``__init__``.

    Args:
        scope: The object of ``scope`` or a subclass.
    """
    make: Callable[..., Any] = getattr(copyreg, "__newobj__")  # noqa: B009 (no name of stubs)
    return make, (type(scope),), scope.__getstate__()


def get_state(scope: Any) -> tuple[dict[str, object], dict[str, object]]:
    """Return attributes and slots of an object of ``scope`` or a subclass.

    Args:
        scope: The object.
    """
    found: Any = object.__getstate__(scope)
    attributes, slots = found if isinstance(found, tuple) else (found, None)
    return {"name": scope.name, "metrics": scope.metrics, **(attributes or {})}, slots or {}


def set_state(scope: Any, state: Any) -> None:
    """Set the state of a new object from ``get_state``, or from a subclass's dictionary.

    Args:
        scope: The object.
        state: Attributes and slots.
    """
    attributes, slots = state if isinstance(state, tuple) else (state, {})
    for name, value in {**attributes, **(slots or {})}.items():
        if name != "id":
            setattr(scope, name, value)
