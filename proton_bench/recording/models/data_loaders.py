"""What a profile says of the program's DataLoaders: where they are read, and how busy workers are.

How long the main thread waits for them is known by its samples and operators.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType, ModuleType
from typing import Any

from proton_bench.recording.launcher.on_import import ImportCallback

_MODULE = "torch.utils.data.dataloader"
_WITH_DATA = 2  # torch's length of what is known of a batch that came before its turn
_MOST = 32  # places, of which a program has a few


@dataclass(slots=True)
class _Loader:
    """What is known of the loaders that are read at one place.

    Attributes:
        facts: Their options, as in the provenance.
        epochs: How often reading began.
        batches: How many batches of workers were read.
        queued: How many were there when they were read, in all.
        alive_ns: How long their workers lived, all together.
        worked_ns: Their processor time.
        running: The workers that are alive, by their iterator, with the time of their start.
    """

    facts: dict[str, Any]
    epochs: int = 0
    batches: int = 0
    queued: int = 0
    alive_ns: int = 0
    worked_ns: int = 0
    running: dict[int, tuple[tuple[int, ...], int]] = field(default_factory=dict)


_loaders: dict[str, _Loader] = {}


def loader_facts() -> list[dict[str, Any]]:
    """Return the facts of all DataLoaders that were read until now, in the order of first use.

    These are ``place`` (file:line@function), ``workers``, ``epochs``, and of loaders with workers
    how many ``batches`` were read, how many were there at these moments (``queued``), and the time
    that workers lived, ``alive_ns``, and had a processor, ``worked_ns``, summed over them.
    """
    known = []
    for loader in _loaders.values():
        alive_ns, worked_ns = loader.alive_ns, loader.worked_ns
        for pids, began_ns in loader.running.values():
            lived, worked = _times(pids, began_ns)
            alive_ns, worked_ns = alive_ns + lived, worked_ns + worked
        facts = {**loader.facts, "epochs": loader.epochs}
        if alive_ns:
            facts |= {"alive_ns": alive_ns, "worked_ns": worked_ns}
        if loader.batches:
            facts |= {"batches": loader.batches, "queued": loader.queued}
        known.append(facts)
    return known


def forget_loaders() -> None:
    """In a forked child: these are of its parent."""
    _loaders.clear()


def watch_loaders(_torch: ModuleType) -> Callable[[], None]:
    """Note the DataLoaders that are read from now on; return what undoes that."""
    undo: list[Callable[[], None]] = []

    def watch(module: ModuleType) -> None:
        with contextlib.suppress(AttributeError):  # a torch with other internals
            undo.append(_watch_reading(module.DataLoader))
            undo.append(_watch_batches(module._MultiProcessingDataLoaderIter))
            undo.append(_watch_ends(module._MultiProcessingDataLoaderIter))

    waiting = ImportCallback(_MODULE, watch)

    def unwatch() -> None:
        waiting.cancel()
        for restore in undo:
            restore()

    return unwatch


def _watch_reading(loaders: Any) -> Callable[[], None]:
    original = loaders.__iter__

    @functools.wraps(original)
    def read(self: Any) -> Any:
        iterator = original(self)
        with contextlib.suppress(Exception):  # the program's loop must not end because of us
            _note(self, iterator, sys._getframe(1))
        return iterator

    loaders.__iter__ = read
    return functools.partial(_put_back, loaders, original)


def _watch_batches(iterators: Any) -> Callable[[], None]:
    original = iterators._next_data

    @functools.wraps(original)
    def next_data(self: Any) -> Any:
        loader, queued = None, 0
        with contextlib.suppress(Exception):
            loader = _of_iterator(id(self))
            early = sum(len(task) == _WITH_DATA for task in self._task_info.values())
            queued = early + self._data_queue.qsize()
        batch = original(self)  # raises where there is no further one
        if loader is not None:
            loader.queued += queued
            loader.batches += 1
        return batch

    iterators._next_data = next_data
    return functools.partial(_put_back, iterators, original)


def _watch_ends(iterators: Any) -> Callable[[], None]:
    original = iterators._shutdown_workers

    @functools.wraps(original)
    def shut_down(self: Any) -> Any:
        with contextlib.suppress(Exception):
            _end(id(self))
        return original(self)

    iterators._shutdown_workers = shut_down
    return functools.partial(_put_back, iterators, original)


def _put_back(owner: Any, original: Any) -> None:
    name = original.__name__
    if getattr(getattr(owner, name), "__wrapped__", None) is original:  # else another tool's
        setattr(owner, name, original)


def _note(loader: Any, iterator: Any, frame: FrameType | None) -> None:
    place = _place(frame)
    known = _loaders.get(place)
    if known is None:
        if len(_loaders) >= _MOST:
            return
        known = _loaders[place] = _Loader({"place": place})
    known.facts |= {
        "workers": int(loader.num_workers),
        "prefetch": int(loader.prefetch_factor or 0),
        "pins": bool(loader.pin_memory),
        "persists": bool(loader.persistent_workers),
    }
    known.epochs += 1
    workers = getattr(iterator, "_workers", ())
    if workers and id(iterator) not in known.running:
        known.running[id(iterator)] = (
            tuple(worker.pid for worker in workers),
            time.monotonic_ns(),
        )
        weakref.finalize(iterator, known.running.pop, id(iterator), None)


def _end(iterator: int) -> None:
    """The workers of an iterator, which are alive yet, are about to end."""
    loader = _of_iterator(iterator)
    if loader is not None:
        alive_ns, worked_ns = _times(*loader.running.pop(iterator))
        loader.alive_ns += alive_ns
        loader.worked_ns += worked_ns


def _of_iterator(iterator: int) -> _Loader | None:
    return next((loader for loader in _loaders.values() if iterator in loader.running), None)


def _times(pids: tuple[int, ...], began_ns: int) -> tuple[int, int]:
    """Return how long processes lived and worked, in ns, without those that ended before."""
    lived_ns = time.monotonic_ns() - began_ns
    tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")
    alive_ns = worked_ns = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/stat", "rb") as file:
                # After the name, which may hold anything, comes field 3.
                fields = file.read().rpartition(b")")[2].split()
            if fields[0] == b"Z":
                continue
            worked_ns += (int(fields[14 - 3]) + int(fields[15 - 3])) * tick_ns
            alive_ns += lived_ns
    return alive_ns, worked_ns


def _place(frame: FrameType | None) -> str:
    """Return the innermost frame outside of torch."""
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("torch."):
        frame = frame.f_back
    if frame is None:
        return "?"
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno}@{code.co_name}"
