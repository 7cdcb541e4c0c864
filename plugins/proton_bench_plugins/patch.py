"""Replaces a method of a class, or a function of a module, and restores it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any


class Patch:
    """A method or function that calls ``around(original, *args, **kwargs)`` until it is removed.

    If the method was wrapped again meanwhile, ours cannot be removed from the middle; it then only
    calls the original.
    """

    def __init__(self, owner: type | ModuleType, name: str, around: Callable[..., Any]) -> None:
        self._owner = owner
        self._name = name
        self._original: Callable[..., Any] = vars(owner)[name]
        self._active = True
        self._replacement = self._build(around)
        setattr(owner, name, self._replacement)

    def _build(self, around: Callable[..., Any]) -> Callable[..., Any]:
        original = self._original

        @functools.wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            if self._active:
                return around(original, *args, **kwargs)
            return original(*args, **kwargs)

        return replacement

    def remove(self) -> None:
        """Restore the original; a second call does nothing."""
        self._active = False
        if vars(self._owner).get(self._name) is self._replacement:
            setattr(self._owner, self._name, self._original)
