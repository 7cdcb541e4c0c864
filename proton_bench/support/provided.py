"""Functions that rooms above implement, by name.

A profile can be shown, merged and turned into a data frame, and a recording ends with a summary,
but their rooms do not import the rooms that do so. The package registers the functions; their
modules are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

_PROVIDED: dict[str, tuple[str, str]] = {}


def provide(name: str, module: str, function: str) -> None:
    """Register a function of a module under a name."""
    _PROVIDED[name] = (module, function)


def call(name: str, *arguments: object, **options: object) -> Any:
    """Call the function registered under a name."""
    module, function = _PROVIDED[name]
    return getattr(importlib.import_module(module), function)(*arguments, **options)
