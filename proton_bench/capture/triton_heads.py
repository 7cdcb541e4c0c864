"""Connects the hook manager to Triton's launch and load hooks, as far as this Triton has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from proton_bench.capture.on_import import ImportCallback

__all__ = ["TritonHeads"]

_KNOBS = "triton.knobs"


class TritonHeads:
    """Functions that stand in Triton's hook chains while somebody needs them.

    Triton's fast launch paths give way to a non-empty chain, so nothing stands there otherwise.
    Triton is not imported for it: the functions are added once the target imports it. Hooks of
    other tools in the same chains stay as they are.

    Args:
        heads: Function by the name of its chain in ``triton.knobs.runtime``; a chain that this
            Triton does not have (``kernel_unload_hook`` before 3.9) is left out.
    """

    def __init__(self, heads: Mapping[str, Callable[..., None]]) -> None:
        self._heads = dict(heads)
        self._waiting: ImportCallback | None = None
        self._chains: list[tuple[Any, Callable[..., None]]] = []

    def attach(self) -> None:
        """Add the functions to the chains; does nothing where they stand already."""
        if self._waiting is None:
            self._waiting = ImportCallback(_KNOBS, self._add)

    def detach(self) -> None:
        """Remove the functions from the chains."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        for chain, head in self._chains:
            chain.remove(head)
        self._chains.clear()

    def _add(self, knobs: ModuleType) -> None:
        for name, head in self._heads.items():
            chain: Any = getattr(knobs.runtime, name, None)
            if chain is not None and hasattr(chain, "add"):
                chain.add(head)
                self._chains.append((chain, head))
