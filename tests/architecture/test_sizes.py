"""Files stay small enough to be read."""

from __future__ import annotations

from architecture.source_tree import ROOT, files

LINES = 800


def test_no_file_is_longer_than_its_limit() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {lines} > {LINES}"
        for path in files(".py", ".pyi", ".h", ".cpp", ".js", ".css", ".html")
        if (lines := path.read_text(encoding="utf-8").count("\n")) > LINES
    ]

    assert long == []
