"""Collectives of torch.distributed: process groups, and what a file says of the calls in them.

The calls are seen in the native module: by the ranges that backends open around them, which are
the same for calls from Python, from DDP and from compiled code. Here is what only Python knows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench.recording.native import native

_MODULE = "torch.distributed.distributed_c10d"
_MOST_GROUPS = 256
_MOST_RANKS = 4096  # of a group, listed by number
_COLUMNS = ("kind", "number", "bytes", "start_ns", "took_ns")


class Groups:
    """The process groups of this process, also after the program destroyed them."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}
        self._module: Any = None
        self._rank: dict[str, int] = {}
        self._has_joined = False
        self.is_whole = False  # calls were numbered from the first one on

    def watch(self, joined: Callable[[], None]) -> Callable[[], None]:
        """Call back once this process has joined a job; return what stops that.

        Args:
            joined: Called at once if it has joined one already.
        """
        original: list[Callable[[Any], None]] = []

        def update(group: Any) -> None:
            if group is None:
                self.note()  # the maps are cleared next
            original[0](group)
            if group is not None and not self._has_joined:
                self._has_joined = self.is_whole = True
                joined()

        def watch(module: Any) -> None:
            self._module = module
            with contextlib.suppress(AttributeError):  # a torch with other internals
                original.append(module._update_default_pg)
                module._update_default_pg = update
                if module.is_initialized():
                    self._has_joined = True
                    joined()

        waiting = ImportCallback(_MODULE, watch)

        def unwatch() -> None:
            waiting.cancel()
            self.note()
            self._has_joined = self.is_whole = False
            if original and self._module._update_default_pg is update:
                self._module._update_default_pg = original[0]

        return unwatch

    def note(self) -> None:
        """Note the groups that exist now."""
        with contextlib.suppress(Exception):  # a torch with other internals
            if not self._has_joined or not self._module.is_initialized():
                return
            self._rank = {
                "rank": self._module.get_rank(),
                "world_size": self._module.get_world_size(),
            }
            world = self._module._world
            for group, name in world.pg_names.items():
                ranks = sorted(world.pg_group_ranks.get(group, ()))
                if len(self._known) < _MOST_GROUPS or name in self._known:
                    self._known[str(name)] = {
                        "name": str(name),
                        "size": len(ranks),
                        "ranks": ranks if len(ranks) <= _MOST_RANKS else [],
                        "backend": str(world.pg_map[group][0]),
                    }

    def forget(self) -> None:
        """Forget all, in a forked child, which is not a rank of the job."""
        self._known.clear()
        self._rank = {}
        self._has_joined = self.is_whole = False

    def rank_facts(self) -> dict[str, int]:
        """Return ``rank`` and ``world_size`` in the job, {} if this process never joined one."""
        self.note()
        return self._rank

    def all(self) -> list[dict[str, Any]]:
        """Return the facts of all groups so far."""
        self.note()
        return list(self._known.values())


groups = Groups()


def collective_facts(began_ns: int, ended_ns: int) -> dict[str, Any]:
    """Return what the provenance says of collectives, {} if there was none.

    Args:
        began_ns: Start of the recording, CLOCK_MONOTONIC.
        ended_ns: Its end.
    """
    contents = native.collectives()
    every, known = contents["every"], groups.all()
    calls = [each for each in contents["calls"] if began_ns <= each[3] <= ended_ns]
    if not calls:
        return {}
    kinds = [_kind(each, known) for each in contents["kinds"]]
    columns: list[list[int]] = [[] for _ in _COLUMNS]
    for kind, number, size, start_ns, end_ns in calls:
        has_ended = start_ns <= end_ns <= ended_ns
        counts = {"calls": 1, "ended": 0}
        if has_ended:
            row = (kind, number, size, start_ns, end_ns - start_ns)
            for column, value in zip(columns, row, strict=True):
                column.append(value)
            counts |= {"ended": 1, "total_ns": end_ns - start_ns}
        for name, value in (counts | {"bytes": size}).items():
            kinds[kind][name] = kinds[kind].get(name, 0) + value * every
    return {
        "collectives": {
            "every": every,
            "from_start": groups.is_whole,
            "kinds": kinds,
            "groups": known,
            "calls": dict(zip(_COLUMNS, columns, strict=True)),
        },
    }


def _kind(kind: Mapping[str, Any], known: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an operation with its group, where only one can be meant."""
    if kind["group"]:
        return dict(kind)
    backend = kind["name"].partition(":")[0]
    possible = [each for each in known if backend in each["backend"]]
    sizes = {each["size"] for each in possible}
    return {
        **kind,
        "group": possible[0]["name"] if len(possible) == 1 else "",
        "ranks": sizes.pop() if len(sizes) == 1 else 0,
    }
