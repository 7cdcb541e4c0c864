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
            undo.append(_wrap(module.DataLoader, "__iter__", _begin_reading))
            workers = module._MultiProcessingDataLoaderIter
            undo.append(_wrap(workers, "_next_data", _read_batch))
            undo.append(_wrap(workers, "_shutdown_workers", _shut_down))

    waiting = ImportCallback(_MODULE, watch)

    def unwatch() -> None:
        waiting.cancel()
        for restore in undo:
            restore()

    return unwatch


def _wrap(owner: Any, name: str, around: Callable[[Any, Any], Any]) -> Callable[[], None]:
    """Have ``around(original, self)`` called in place of a method; return what undoes that."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(self: Any) -> Any:
        return around(original, self)

    def put_back() -> None:
        if getattr(owner, name) is wrapped:  # else another tool's
            setattr(owner, name, original)

    setattr(owner, name, wrapped)
    return put_back


# The program's loop must not end because of us, so what these note is contained.


def _begin_reading(original: Any, loader: Any) -> Any:
    iterator = original(loader)
    with contextlib.suppress(Exception):
        _note(loader, iterator, sys._getframe(2))
    return iterator


def _read_batch(original: Any, iterator: Any) -> Any:
    loader, queued = None, 0
    with contextlib.suppress(Exception):
        loader = _of_iterator(id(iterator))
        early = sum(len(task) == _WITH_DATA for task in iterator._task_info.values())
        queued = early + iterator._data_queue.qsize()
    batch = original(iterator)  # raises where there is no further one
    if loader is not None:
        loader.queued += queued
        loader.batches += 1
    return batch


def _shut_down(original: Any, iterator: Any) -> Any:
    with contextlib.suppress(Exception):
        _end(id(iterator))
    return original(iterator)


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
