"""The files that architecture tests read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_TOPS = (
    "proton_bench",
    "plugins",
    "native",
    "tests",
    "benchmarks",
    "examples",
    "docs",
    ".ci",
    ".github",
)
_SKIPPED = {".git", "__pycache__", "build", ".venv", ".venv-pandas3"}
_TEXT = {".py", ".pyi", ".h", ".cpp", ".md", ".toml", ".cmake", ".txt", ".json", ".yml", ""}


def files(*suffixes: str) -> Iterator[Path]:
    """Yield our own files with one of ``suffixes``, top folder first, in a stable order."""
    for path in sorted(ROOT.iterdir()):
        if path.is_file() and path.suffix in suffixes and path.name not in _SKIPPED:
            yield path
    for top in _TOPS:
        for path in sorted((ROOT / top).rglob("*")):
            if path.is_file() and path.suffix in suffixes and not _SKIPPED & set(path.parts):
                yield path


def texts() -> Iterator[tuple[str, str]]:
    """Yield (path below the top folder, content) of every text written by hand."""
    for path in files(*_TEXT):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith("tests/data/"):
            yield name, path.read_text(encoding="utf-8")
