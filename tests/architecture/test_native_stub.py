"""The stub of the native module names exactly what the binary has."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

STUB = Path(__file__).parents[2] / "proton_bench" / "_native.pyi"
native = pytest.importorskip("proton_bench._native", reason="the native module was not built")


def declared(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Return the public names that the statements declare."""
    names: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = node
    return {name: node for name, node in names.items() if not _private(name)}


def _private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


TREE = declared(ast.parse(STUB.read_text(encoding="utf-8")).body)
CLASSES = {name: node for name, node in TREE.items() if isinstance(node, ast.ClassDef)}


def test_module_names_are_those_of_the_stub() -> None:
    in_binary = {name for name in dir(native) if not name.startswith("_")}

    assert in_binary == set(TREE)


@pytest.mark.parametrize("name", sorted(TREE))
def test_kinds_agree(name: str) -> None:
    node, actual = TREE[name], getattr(native, name)

    if isinstance(node, ast.ClassDef):
        assert isinstance(actual, type)
    elif isinstance(node, ast.FunctionDef):
        assert callable(actual)
    else:
        assert isinstance(actual, int | str)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_members_of_classes_agree(name: str) -> None:
    members = declared(CLASSES[name].body)
    actual = {member for member in vars(getattr(native, name)) if not member.startswith("_")}

    assert actual == {member for member in members if not member.startswith("_")}
    for member in members:
        assert hasattr(getattr(native, name), member), f"{name}.{member}"


def test_kinds_of_frames_are_those_of_the_profile() -> None:
    from proton_bench.model.frame import FrameKind

    kinds = {name: value for name, value in vars(native).items() if name.startswith("KIND_")}

    assert kinds
    for name, value in kinds.items():
        assert FrameKind[name.removeprefix("KIND_")] == value
