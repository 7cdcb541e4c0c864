"""Runs a Python target in this process as the interpreter itself would run it.

The target gets a fresh ``__main__`` that stays registered (pickle and multiprocessing look it up),
its own ``sys.argv`` and ``sys.path[0]``, and tracebacks that start at its first frame.
"""

from __future__ import annotations

import builtins
import enum
import importlib.machinery
import importlib.util
import os
import re
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proton_bench.errors import UsageError
from proton_bench.recording.launcher.module_folders import put_after_first, pytest_plugins

# `python -m pytest` has the current folder on the path, `pytest` does not.
PYTEST_AS_MODULE = "-m"
_BOOTSTRAP = os.path.join("proton_bench", "recording", "launcher", "bootstrap.py")


class TargetKind(enum.StrEnum):
    """Kinds of targets."""

    SCRIPT = "script"
    MODULE = "module"
    CODE = "code"
    STDIN = "stdin"
    PYTEST = "pytest"
    PROGRAM = "program"


@dataclass(frozen=True, slots=True)
class Target:
    """A program to run.

    Attributes:
        kind: How to read ``value``.
        value: Path of the script, name of the module, or source text; for pytest "" or
            ``PYTEST_AS_MODULE``; "-" for a script that is read from stdin.
        arguments: The target's own arguments, untouched.
    """

    kind: TargetKind
    value: str
    arguments: tuple[str, ...] = ()


def load_target(target: Target) -> Callable[[], None]:
    """Find and compile a target.

    Returns:
        A function that runs the target to its end and raises its exceptions, including
        ``SystemExit``.

    Raises:
        UsageError: The script or module does not exist or is not Python.
        SyntaxError: The target's source is wrong.
    """
    if target.kind is TargetKind.PYTEST:
        return lambda: _run_pytest(target)
    code, main = _LOADERS[target.kind](target.value)

    def run() -> None:
        sys.argv = [_argv0(target, main), *target.arguments]
        sys.orig_argv = _original_command(target)
        sys.modules["__main__"] = main
        exec(code, main.__dict__)

    return run


def own_traceback(error: BaseException) -> types.TracebackType | None:
    """Return the traceback of an error without the frames that belong to the runner."""
    entry = error.__traceback__
    while entry is not None and _is_ours(entry.tb_frame.f_code.co_filename):
        entry = entry.tb_next
    return entry


def _is_ours(filename: str) -> bool:
    return os.path.dirname(filename) == os.path.dirname(__file__) or filename.startswith("<frozen ")


def _argv0(target: Target, main: types.ModuleType) -> str:
    if target.kind is TargetKind.MODULE:
        return str(main.__dict__["__file__"])
    return "-c" if target.kind is TargetKind.CODE else target.value


def _load_script(path: str) -> tuple[types.CodeType, types.ModuleType]:
    if os.path.isdir(path) or path.endswith((".zip", ".pyz", ".egg")):
        return _load_archive(path)
    _put_in_front(os.path.dirname(os.path.realpath(path)))
    argument, path = path, _absolute(path)
    if path.endswith(".pyc"):
        loader = importlib.machinery.SourcelessFileLoader("__main__", path)
        code = loader.get_code("__main__")
        if code is None:
            raise UsageError(f"{path!r} holds no code for this Python: run the source instead")
        return code, _new_main(__file__=path, __loader__=loader)
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        raise UsageError(f"cannot read the script {argument!r}: {error.strerror}") from None
    if "x" in _flag_letters():
        source = b"\n" + source.partition(b"\n")[2]
    code = compile(source, path, "exec", dont_inherit=True)
    loader_of_source = importlib.machinery.SourceFileLoader("__main__", path)
    return code, _new_main(__file__=path, __loader__=loader_of_source, __cached__=None)


def _absolute(path: str) -> str:
    """Return an absolute path as Python does, not normalised: the target may change folder."""
    if os.path.isabs(path):
        return path
    return os.getcwd() if path == os.curdir else os.path.join(os.getcwd(), path)


def _load_archive(path: str) -> tuple[types.CodeType, types.ModuleType]:
    path = _absolute(path)
    spec = importlib.machinery.PathFinder.find_spec("__main__", [path])
    if spec is None:
        raise UsageError(f"{path!r} has no __main__ module: name a script in it")
    put_after_first(path)
    return _load_spec(spec)


def _load_module(name: str) -> tuple[types.CodeType, types.ModuleType]:
    _put_in_front(os.getcwd())
    spec = _find_module(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _find_module(f"{name}.__main__")
        if spec is None:
            raise UsageError(f"package {name!r} has no __main__: name one of its modules")
    if spec is None:
        raise UsageError(f"no module named {name!r}: check the name and the current folder")
    return _load_spec(spec)


def _find_module(name: str) -> importlib.machinery.ModuleSpec | None:
    if name.startswith("."):
        return None
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return None
        raise
    except ValueError:
        return None


def _load_spec(spec: importlib.machinery.ModuleSpec) -> tuple[types.CodeType, types.ModuleType]:
    loader = spec.loader
    # Checked by name: the importer of zip files is not an InspectLoader.
    get_code = getattr(loader, "get_code", None)
    code = get_code(spec.name) if get_code is not None else None
    if code is None:
        raise UsageError(f"module {spec.name!r} is not written in Python: it cannot be run")
    main = _new_main(__file__=spec.origin, __loader__=loader, __cached__=spec.cached)
    main.__spec__, main.__package__ = spec, spec.parent
    return code, main


def _load_code(source: str) -> tuple[types.CodeType, types.ModuleType]:
    _put_in_front("")
    loader = importlib.machinery.BuiltinImporter
    return compile(source, "<string>", "exec", dont_inherit=True), _new_main(__loader__=loader)


def _load_stdin(_: str) -> tuple[types.CodeType, types.ModuleType]:
    _put_in_front("")
    source = b"" if sys.stdin is None else sys.stdin.buffer.read()
    main = _new_main(
        __file__="<stdin>", __cached__=None, __loader__=importlib.machinery.BuiltinImporter
    )
    return compile(source, "<stdin>", "exec", dont_inherit=True), main


def _put_in_front(folder: str) -> None:
    # With -P, -I and PYTHONSAFEPATH the interpreter adds no folder either.
    if not sys.flags.safe_path:
        put_after_first(folder)


def _new_main(**attributes: object) -> types.ModuleType:
    main = types.ModuleType("__main__")
    if "__annotations__" in vars(sys.modules["__main__"]):  # not from Python 3.14 on
        attributes["__annotations__"] = {}
    main.__dict__.update(attributes, __builtins__=builtins)
    return main


def _interpreter_words() -> list[str]:
    """Return the interpreter and its options from the command line of this process."""
    words = list(sys.orig_argv)
    ours = (at for at, word in enumerate(words) if word.endswith(_BOOTSTRAP))
    return words[: next(ours, 1)]


def _flag_letters() -> str:
    """Return the one-letter options that the interpreter was started with, without values."""
    words = [word for word in _interpreter_words()[1:] if not word.startswith("--")]
    return "".join(re.split("[WX]", word)[0] for word in words if word.startswith("-"))


def _original_command(target: Target) -> list[str]:
    """Return ``sys.orig_argv`` as without us: programs restart themselves with it."""
    words = {
        TargetKind.MODULE: ["-m", target.value],
        TargetKind.CODE: ["-c", target.value],
    }.get(target.kind, [target.value] if target.value else [])
    return [*_interpreter_words(), *words, *target.arguments]


_LOADERS = {
    TargetKind.SCRIPT: _load_script,
    TargetKind.MODULE: _load_module,
    TargetKind.CODE: _load_code,
    TargetKind.STDIN: _load_stdin,
}


def _run_pytest(target: Target) -> None:
    if target.value == PYTEST_AS_MODULE:
        _put_in_front(os.getcwd())
    import pytest

    sys.argv = ["pytest", *target.arguments]
    words = [*_plugin_option(target.arguments), *target.arguments]
    raise SystemExit(int(pytest.main(words, plugins=pytest_plugins())))


def _plugin_option(arguments: Sequence[str]) -> list[str]:
    """Name our plugin to pytest by its entry point, unless the user names it."""
    import importlib.metadata

    module = "proton_bench.pytest_plugin"
    if any(argument.removeprefix("-p") == module for argument in arguments):
        return []
    points = importlib.metadata.entry_points(group="pytest11")
    return ["-p", next((point.name for point in points if point.value == module), module)]
