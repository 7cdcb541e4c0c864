"""Functions that a class offers as methods and that other rooms provide, by name.

A profile can be shown, merged and turned into a data frame, but its room knows nothing of the rooms
that do so. The package says who provides what; the module is imported on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["call", "provide"]

_PROVIDED: dict[str, tuple[str, str]] = {}


def provide(name: str, module: str, function: str) -> None:
    """Say which function of which module is meant by a name."""
    _PROVIDED[name] = (module, function)


def call(name: str, *arguments: object) -> Any:
    """Call the function that is provided under a name."""
    module, function = _PROVIDED[name]
    return getattr(importlib.import_module(module), function)(*arguments)
