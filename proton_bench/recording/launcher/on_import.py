"""Calls back once a module is imported, without importing the target's libraries itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import Loader  # at run time this would load much of the standard library


class ImportCallback:
    """Runs a function with a module as soon as it is imported.

    Args:
        name: Full name of the module.
        function: Called at once if the module is imported already, else after its code ran.
    """

    def __init__(self, name: str, function: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._function = function
        self._is_searching = False
        module = sys.modules.get(name)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            function(module)
        else:
            sys.meta_path.insert(0, self)

    def cancel(self) -> None:
        """Call nothing back from now on."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the other finders find the module, and wrap its loader."""
        if fullname != self._name or self._is_searching:
            return None
        self._is_searching = True  # another wrapper like this one may call back
        try:
            spec = next(filter(None, self._specs_of_others(fullname, path, target)), None)
        finally:
            self._is_searching = False
        if spec is not None and spec.loader is not None:
            spec.loader = cast("Loader", _CallingLoader(spec.loader, self._imported))
        return spec

    def _specs_of_others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> Iterator[ModuleSpec | None]:
        for finder in list(sys.meta_path):
            if finder is not self:
                yield finder.find_spec(fullname, path, target)

    def _imported(self, module: ModuleType) -> None:
        if self in sys.meta_path:
            self.cancel()
            self._function(module)


class _CallingLoader:
    """Replaces a module's own loader until its code ran."""

    def __init__(self, loader: Any, imported: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._imported = imported

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._imported(module)
