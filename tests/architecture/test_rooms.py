"""Rooms are small, say what they are, and import each other in one direction."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"proton_bench": ROOT, "proton_bench_plugins": ROOT / "plugins"}


def modules() -> dict[str, Path]:
    """Return the files of both packages by the names of their modules."""
    found = {}
    for package, root in PACKAGES.items():
        for file in (root / package).rglob("*.py"):
            name = ".".join(file.relative_to(root).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = file
    return found


MODULES = modules()
ROOMS = sorted(
    name
    for name, file in MODULES.items()
    if file.name == "__init__.py" and name not in PACKAGES and name.startswith("proton_bench.")
)
# Has hooks or functions of its own instead of a head.
WITH_CODE = {"proton_bench.cli", "proton_bench.plugin", "proton_bench.pytest_plugin"}


def imported(file: Path) -> set[str]:
    """Return which of our modules a file imports, also in functions and for types."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{each.name}" for each in node.names}
            modules = names & MODULES.keys()
            found |= modules or {node.module}
    return found & MODULES.keys()


def test_no_import_closes_a_circle() -> None:
    graph = {name: imported(file) - {name} for name, file in MODULES.items()}

    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))

    assert len(order) == len(MODULES)


@pytest.mark.parametrize("room", sorted(set(ROOMS) - WITH_CODE))
def test_a_room_says_what_goes_in_and_out_and_loads_nothing(room: str) -> None:
    tree = ast.parse(MODULES[room].read_text())
    head = ast.get_docstring(tree) or ""

    assert [line.partition(":")[0] for line in head.splitlines()[2:]] == ["In", "Out"]
    assert len(tree.body) == 1
