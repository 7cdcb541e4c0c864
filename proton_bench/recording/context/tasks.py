"""Tasks of an event loop: each has scopes of its own, and what it starts lands below them."""

from __future__ import annotations

import contextvars
import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, cast
from weakref import WeakSet

from proton_bench.flags import flags
from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench.recording.native import native

_Function = Callable[..., Any]


def in_task() -> bool:
    """Whether a task runs on the calling thread; what it starts is followed from then on."""
    asyncio, trio = sys.modules.get("asyncio"), cast("Any", sys.modules.get("trio.lowlevel"))
    is_of_trio = getattr(trio, "in_trio_task", bool)()
    if not is_of_trio and not getattr(asyncio, "_get_running_loop", bool)():
        return False
    global _has_tasks
    _has_tasks = True
    follow_tasks()
    if is_of_trio and trio.current_trio_token() not in _trio_runs:
        _trio_runs.add(trio.current_trio_token())
        trio.add_instrument(_TrioSteps())
    return True


class _TrioSteps:
    """What trio calls around each step of a task, until its run ends."""

    def before_task_step(self, task: Any) -> None:
        native.begin_below(task.context)

    def after_task_step(self, _task: object) -> None:
        native.begin_below(None)


def _run_handle(original: _Function) -> _Function:
    @functools.wraps(original)
    def _run(handle: Any) -> None:
        native.begin_below(handle._context)
        original(handle)
        native.begin_below(None)  # the loop, which may wait: other threads see where this one is

    return _run


def _call_soon(original: _Function) -> _Function:
    @functools.wraps(original)
    def call_soon(loop: Any, callback: Any, *args: Any, context: Any = None) -> Any:
        if context is None:
            context = contextvars.copy_context()
        native.begin_below(context)
        return original(loop, callback, *args, context=context)

    return call_soon


def _submit(original: _Function) -> _Function:
    @functools.wraps(original)
    def submit(executor: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        path = native.path_of_task()
        if path is not None and not _pickles(executor):
            function = functools.partial(_run_below, path, function)
        return original(executor, function, *args, **kwargs)

    return submit


def _pickles(executor: object) -> bool:
    """Whether it runs functions in other interpreters, where nothing is recorded."""
    interpreters = sys.modules.get("concurrent.futures.interpreter")
    return isinstance(executor, getattr(interpreters, "InterpreterPoolExecutor", ()))


def _run_below(path: object, function: _Function, /, *args: Any, **kwargs: Any) -> Any:
    before = native.set_base(path)
    try:
        return function(*args, **kwargs)
    finally:
        native.set_base(before)


def _run_sync(original: _Function) -> _Function:
    @functools.wraps(original)
    def run_sync(function: Any, *args: Any, **kwargs: Any) -> Any:
        return original(functools.partial(_run_in_context, function), *args, **kwargs)

    return run_sync


def _run_in_context(function: _Function, *args: Any) -> Any:
    native.begin_below(None)
    return function(*args)


# Through these a task starts what runs below it.
_STARTS = (
    ("asyncio.events", "Handle._run", _run_handle),
    ("uvloop", "Loop.call_soon", _call_soon),  # its handles run without a method of Python
    ("concurrent.futures.thread", "ThreadPoolExecutor.submit", _submit),
    ("anyio.to_thread", "run_sync", _run_sync),
    ("trio", "to_thread.run_sync", _run_sync),
)
_imports: list[ImportCallback] = []
_undo: list[Callable[[], None]] = []
_trio_runs: WeakSet[Any] = WeakSet()
_has_tasks = False  # a scope was opened in one; it may be open still


def follow_tasks() -> None:
    """Have what tasks start land below them, if there were tasks and a session lives."""
    if _imports or not _has_tasks or not flags.profiling_on:
        return
    for module, place, wrap in _STARTS:
        _imports.append(ImportCallback(module, functools.partial(_replace, place=place, wrap=wrap)))


def _replace(module: ModuleType, *, place: str, wrap: Callable[[_Function], _Function]) -> None:
    *owners, name = place.split(".")
    try:
        owner: Any = functools.reduce(getattr, owners, module)
        original = getattr(owner, name)
    except AttributeError:
        return  # another version of the library
    is_own = name in vars(owner)
    ours = wrap(original)
    setattr(owner, name, ours)

    def restore() -> None:
        if vars(owner).get(name) is not ours:
            return  # someone replaced it since, and calls ours
        if is_own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)

    _undo.append(restore)


def leave_tasks() -> None:
    """Put back what was replaced: no session lives."""
    for waiting in _imports:
        waiting.cancel()
    for restore in reversed(_undo):
        restore()
    _imports.clear()
    _undo.clear()


native.set_task_check(in_task)
