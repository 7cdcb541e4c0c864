"""Names say what a thing is, and no text depends on one machine or promises later work."""

from __future__ import annotations

import re

import pytest
from architecture.source_tree import ROOT, files, texts

# Written so that this file does not match itself.
MACHINE = re.compile(
    r"(?<!\w)[/]work[/]|[/]tmp[/]bash_|\.\.[/]shared|design[.]md|upstream-proton[.]md"
)
UNFINISHED = re.compile(r"\b(TO[D]O|FIX[M]E|XX[X]|place[h]older|NotImplemented[E]rror)\b")
UPSTREAM = re.compile(r"^\s*(from|import)\s+triton\.(profiler|_C\.libproton)", re.MULTILINE)
EMPTY_NAMES = re.compile(r"(^|/)(utils?|helpers?|common|misc|base_\w+|\w+_part\d)(\.\w+|/|$)")


@pytest.mark.parametrize(
    ("pattern", "meaning"),
    [
        (MACHINE, "names a path or text of one machine"),
        (UNFINISHED, "promises later work"),
    ],
)
def test_texts_hold_no_forbidden_words(pattern: re.Pattern[str], meaning: str) -> None:
    found = [f"{name}: {match[0]}" for name, text in texts() for match in pattern.finditer(text)]

    assert found == [], meaning


def test_the_package_never_imports_the_profiler_of_triton() -> None:
    found = [
        name
        for name, text in texts()
        if name.startswith(("proton_bench/", "plugins/")) and UPSTREAM.search(text)
    ]

    assert found == []


def test_file_names_say_something() -> None:
    names = [path.relative_to(ROOT).as_posix() for path in files(".py", ".h", ".cpp")]

    assert [name for name in names if EMPTY_NAMES.search(name)] == []
