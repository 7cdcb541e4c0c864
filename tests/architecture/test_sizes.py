"""Files and functions stay small enough to be read at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from architecture.source_tree import ROOT, files

MODULE_LINES = 800
TEST_LINES = 800
HEADER_LINES = 400
SOURCE_LINES = 800
FUNCTION_LINES = 50
CPP_FUNCTION_LINES = 60

_OPENS_SCOPE = re.compile(r"^(template.*>\s*)?(namespace|extern|struct|class|enum|union)\b|=\s*\{$")


def limit(path: Path) -> int:
    """Return the most lines that the file may have."""
    if path.is_relative_to(ROOT / "tests"):
        return TEST_LINES
    if path.suffix in {".py", ".pyi"}:
        return MODULE_LINES
    return HEADER_LINES if path.suffix == ".h" else SOURCE_LINES


def python_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield (name, lines of the body without its docstring) of every function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body
            if ast.get_docstring(node) is not None:
                body = body[1:]
            if body:
                yield node.name, (body[-1].end_lineno or 0) - body[0].lineno + 1


def cpp_functions(text: str) -> Iterator[tuple[int, int]]:
    """Yield (first line, lines) of every block that clang-format closes in column 0."""
    start = None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("}"):
            if start is not None:
                yield start, number - start + 1
            start = None
        elif line.endswith("{") and not line.startswith((" ", "}")):
            start = None if _OPENS_SCOPE.search(line) else number


def test_no_file_is_longer_than_its_limit() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {lines} > {limit(path)}"
        for path in files(".py", ".pyi", ".h", ".cpp", ".js", ".css", ".html")
        if (lines := path.read_text(encoding="utf-8").count("\n")) > limit(path)
    ]

    assert long == []


def test_no_python_function_is_longer_than_fifty_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {name} {lines} > {FUNCTION_LINES}"
        for path in files(".py")
        for name, lines in python_functions(path)
        if lines > FUNCTION_LINES
    ]

    assert long == []


def test_no_native_function_is_longer_than_sixty_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{start}: {lines} > {CPP_FUNCTION_LINES}"
        for path in files(".h", ".cpp")
        for start, lines in cpp_functions(path.read_text(encoding="utf-8"))
        if lines > CPP_FUNCTION_LINES
    ]

    assert long == []


def test_native_functions_are_found() -> None:
    text = (
        "namespace a {\nint f(int x) {\n  return x;\n}\nstruct S {\n  int x;\n};\n}  // namespace\n"
    )

    assert list(cpp_functions(text)) == [(2, 3)]
