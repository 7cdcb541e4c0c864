"""Surveys the public surface of ``triton.profiler``: upstream's, or ours under its name.

    python tests/fakes/upstream_surface.py FOLDER...

writes ``tests/data/upstream_surface.json`` anew from Tritons that ``pip install --target FOLDER``
unpacked, one folder a version: every name with its signature, and what the calls of
``upstream_behaviour.py`` came to. All of it runs in processes of their own.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import inspect
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

DATA = Path(__file__).parents[1] / "data" / "upstream_surface.json"
_PACKAGE = "triton.profiler"
_ROOT = Path(__file__).parents[2]
# Special methods that scripts use by syntax.
_SPECIAL = frozenset(
    {"__call__", "__enter__", "__eq__", "__exit__", "__getitem__", "__hash__", "__str__"}
)
# Names that upstream's own tests use although they begin with an underscore.
_USED = frozenset({"_select_backend"})
_ORIGIN = (
    "Names, signatures, bases and plain values of triton.profiler as its wheels show them to "
    "Python's inspect module, and what calls came to; made by tests/fakes/upstream_surface.py"
)


def survey_of(folder: str = "", wanted: dict[str, Any] | None = None) -> dict[str, Any]:
    """Survey ``triton.profiler`` in a process of its own.

    Args:
        folder: Folder with an unpacked Triton; "" takes the installed one.
        wanted: A survey of upstream: look up its names in ours instead.
    """
    face = "--survey" if wanted is None else "--ours"
    return _run([Path(__file__).name, face], folder, json.dumps(wanted))


def behaviour_of(face: str, folder: str = "") -> dict[str, Any]:
    """Return what calls come to, by their names.

    Args:
        face: ``ours`` or ``theirs``.
        folder: Folder with an unpacked Triton; "" takes the installed one.
    """
    return _run(["upstream_behaviour.py", face], folder)


def _run(words: list[str], folder: str, given: str = "") -> dict[str, Any]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [folder, str(_ROOT / "tests")])),
        "TRITON_DEFAULT_FP_FUSION": "1",  # 3.9 warns about its coming default
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(words[0])), *words[1:]],
        input=given,
        env=environment,
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _upstream() -> dict[str, Any]:
    package = importlib.import_module(_PACKAGE)
    names = [_PACKAGE]
    names += [each.name for each in pkgutil.walk_packages(package.__path__, f"{_PACKAGE}.")]
    public = [name for name in names if "._" not in name]
    return {name: _described_names(name, _own_names(name)) for name in sorted(public)}


def _ours(wanted: dict[str, Any]) -> dict[str, Any]:
    from proton_bench.recording import compat

    compat.install()
    return {name: _described_names(name, sorted(names)) for name, names in wanted.items()}


def _described_names(name: str, names: list[str]) -> dict[str, Any]:
    try:
        module = importlib.import_module(name)
    except ImportError:
        return {}
    return {each: _described(getattr(module, each)) for each in names if hasattr(module, each)}


def _own_names(name: str) -> list[str]:
    """Return the public names of a module, without imports from other packages."""
    module = importlib.import_module(name)
    foreign: set[str] = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, (ast.For, ast.AsyncFor)):  # a variable of a loop
            foreign |= {each.id for each in ast.walk(node) if _is_assigned(each)}
        elif isinstance(node, ast.Import):
            foreign |= {(each.asname or each.name).partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and not _is_own(node):
            foreign |= {each.asname or each.name for each in node.names}
    return sorted(
        each
        for each, value in vars(module).items()
        if each in _USED or not (each.startswith("_") or each in foreign or _is_submodule(value))
    )


def _is_assigned(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_own(node: ast.ImportFrom) -> bool:
    source = node.module or ""
    return not source.startswith("_") and (node.level > 0 or source.startswith(_PACKAGE))


def _is_submodule(value: object) -> bool:
    return isinstance(value, ModuleType) and value.__name__ == "triton.profiler.proton"


def _described(value: Any) -> dict[str, Any]:
    if isinstance(value, ModuleType):
        return {"kind": "module"}
    if isinstance(value, type):
        return _described_class(value)
    if callable(value):
        return {"kind": "function", "signature": _signature(value)}
    if isinstance(value, dict) and any(map(callable, value.values())):
        return {"kind": "value", "type": "dict", "keys": sorted(map(str, value))}
    return {"kind": "value", "type": type(value).__name__, **_plain(value)}


def _described_class(value: type) -> dict[str, Any]:
    found: dict[str, Any] = {
        "kind": "class",
        "bases": [each.__name__ for each in value.__mro__[1:-1]],
        "signature": _signature(value),
        "members": {
            name: _described_member(inspect.getattr_static(value, name))
            for name in sorted(_member_names(value))
        },
    }
    if issubclass(value, enum.Enum):
        found["choices"] = {each.name: str(each.value) for each in value}
    if dataclasses.is_dataclass(value):
        found["fields"] = [each.name for each in dataclasses.fields(value)]
    return found


def _member_names(value: type) -> set[str]:
    own = {name for each in value.__mro__ if each is not object for name in vars(each)}
    inherited = set(dir(enum.Enum)) if issubclass(value, enum.Enum) else set()
    return {name for name in own - inherited if name in _SPECIAL or not name.startswith("_")}


def _described_member(value: Any) -> dict[str, Any]:
    if isinstance(value, staticmethod):
        return {"kind": "static method", "signature": _signature(value.__func__)}
    if inspect.isroutine(value):
        return {"kind": "method", "signature": _signature(value)}
    if inspect.isdatadescriptor(value):
        return {"kind": "attribute"}
    return {"kind": "attribute", **_plain(value)}


def _plain(value: Any) -> dict[str, Any]:
    """Return the value if JSON can hold it, else nothing."""
    try:
        return {"value": json.loads(json.dumps(value, default=_enum_text))}
    except (TypeError, ValueError):
        return {}


def _enum_text(value: Any) -> str:
    # Choices of options are enums of libtriton, by the binding of the version.
    if isinstance(value, enum.Enum) or type(value).__module__.startswith("triton._C"):
        return str(value)
    raise TypeError


def _signature(value: Any) -> list[list[str | None]] | None:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    empty = inspect.Parameter.empty
    return [
        [each.name, each.kind.name, None if each.default is empty else _default(each.default)]
        for each in found.parameters.values()
    ]


def _default(value: Any) -> str:
    text = repr(value) if isinstance(value, (str, int, float, type(None))) else str(value)
    return "<factory>" if "factory" in text else text


def _main(arguments: list[str]) -> None:
    if arguments == ["--survey"]:
        sys.stdout.write(json.dumps(_upstream()))
    elif arguments == ["--ours"]:
        sys.stdout.write(json.dumps(_ours(json.load(sys.stdin))))
    else:
        folders = {_version(folder): folder for folder in arguments}
        newest = max(folders)  # older ones end the process on errors that it raises
        content = {
            "origin": _ORIGIN,
            "versions": {version: survey_of(each) for version, each in folders.items()},
            "calls": {newest: behaviour_of("theirs", folders[newest])},
        }
        DATA.write_text(_compact(content) + "\n", encoding="utf-8")


def _compact(value: Any, depth: int = 0) -> str:
    """Write versions, modules and names on lines of their own, and each name's facts on one."""
    if depth > 3 or not isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    margin = " " * (depth + 1)
    lines = [
        f"{margin}{json.dumps(key)}: {_compact(value[key], depth + 1)}" for key in sorted(value)
    ]
    return "{\n" + ",\n".join(lines) + "\n" + margin[1:] + "}"


def _version(folder: str) -> str:
    return next(Path(folder).glob("triton-*.dist-info")).name.split("-")[1].removesuffix(".dist")


if __name__ == "__main__":
    _main(sys.argv[1:])
