"""Connects the hook manager to the launch and load hooks of this Triton."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from proton_bench.recording.launcher.on_import import ImportCallback

__all__ = ["TritonHeads"]

_KNOBS = "triton.knobs"
_EXIT = "launch_exit_hook"


class TritonHeads:
    """Functions that are in Triton's hook chains while they are needed.

    A non-empty chain disables Triton's fast launch paths, so the chains are empty otherwise. This
    does not import Triton: the functions are added once the target imports it. Hooks of other tools
    in the same chains are not changed.

    Args:
        heads: Function by the name of its chain in ``triton.knobs.runtime``; a chain that this
            Triton does not have (``kernel_unload_hook`` before 3.9) is left out.
        exits_last: Whether they run last at the end of a launch.
    """

    def __init__(
        self, heads: Mapping[str, Callable[..., None]], *, exits_last: bool = False
    ) -> None:
        self._heads = dict(heads)
        self._exits_last = exits_last
        self._waiting: ImportCallback | None = None
        self._chains: dict[str, Any] = {}
        self._singles: list[tuple[Any, str, Any]] = []

    def attach(self) -> None:
        """Add the functions to the chains, unless they are there."""
        if self._waiting is None:
            self._waiting = ImportCallback(_KNOBS, self._add)

    def detach(self) -> None:
        """Remove the functions from the chains."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        for name, chain in self._chains.items():
            chain.remove(self._heads[name])
        for runtime, name, single in self._singles:
            if getattr(runtime, name) is self._chains[name]:
                setattr(runtime, name, single)
        self._chains.clear()
        self._singles.clear()

    def replace(self, name: str, head: Callable[..., None]) -> None:
        """Replace a function in a chain, at the same place.

        Args:
            name: Name of the chain.
            head: The function.
        """
        older, self._heads[name] = self._heads[name], head
        calls: list[Any] = getattr(self._chains.get(name), "calls", [])
        if older in calls:
            calls[calls.index(older)] = head

    def _add(self, knobs: ModuleType) -> None:
        for name, head in self._heads.items():
            chain = self._chain(knobs, name)
            if chain is not None:
                chain.add(head)
                calls: list[Any] = getattr(chain, "calls", [])
                if self._exits_last and name == _EXIT and head in calls:
                    calls.insert(0, calls.pop(calls.index(head)))  # it is walked backwards
                self._chains[name] = chain

    def _chain(self, knobs: ModuleType, name: str) -> Any:
        present: Any = getattr(knobs.runtime, name, None)
        make_chain = getattr(knobs, "HookChain", None)
        if hasattr(present, "add"):
            return present
        if not callable(present) or make_chain is None:
            return None
        # A function replaced the chain: it becomes the first of a new chain while ours are there.
        chain = make_chain()
        chain.add(present)
        setattr(knobs.runtime, name, chain)
        self._singles.append((knobs.runtime, name, present))
        return chain
