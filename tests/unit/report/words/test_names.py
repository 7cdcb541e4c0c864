from __future__ import annotations

import pytest

from proton_bench.analysis.choices import FrameFormat
from proton_bench.report.words.edge import format_name, sources_text

FRAME = "/home/me/projects/example.py/test.py:12@foo"
OLD_FRAME = "/home/me/projects/example.py/test.py:foo@12"


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (FrameFormat.FULL, FRAME),
        (FrameFormat.FILE_FUNCTION_LINE, "test.py:12@foo"),
        (FrameFormat.FUNCTION_LINE, "12@foo"),
        (FrameFormat.FILE_FUNCTION, "test.py@foo"),
    ],
)
def test_python_frame_is_shortened(style: FrameFormat, expected: str) -> None:
    assert format_name(FRAME, style) == expected


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (FrameFormat.FULL, OLD_FRAME),
        (FrameFormat.FILE_FUNCTION_LINE, "test.py:foo@12"),
        (FrameFormat.FUNCTION_LINE, "foo@12"),
        (FrameFormat.FILE_FUNCTION, "test.py:foo"),
    ],
)
def test_older_spelling_is_shortened_too(style: FrameFormat, expected: str) -> None:
    assert format_name(OLD_FRAME, style) == expected


@pytest.mark.parametrize("style", FrameFormat)
@pytest.mark.parametrize("name", ["aten::mm", "a/b", "user@host", "void f<a::b>(c*)", ""])
def test_other_names_are_shown_whole(name: str, style: FrameFormat) -> None:
    assert format_name(name, style) == name


@pytest.mark.parametrize(
    ("sources", "text"),
    [
        (["a/b/0.proton"], "a/b/0.proton"),
        (["a/b/0.proton", "a/b/1.proton"], "0.proton, 1.proton in a/b"),
        (["a/0.proton", "b/0.proton"], "a/0.proton, b/0.proton"),
        (["0.proton", "1.proton"], "0.proton, 1.proton"),
        ([f"a/{run}.proton" for run in range(5)], "0.proton, 1.proton, 2.proton and 2 more in a"),
        (["a\x1b/0", "a\x1b/1\n"], r"0, 1\n in a\x1b"),
    ],
)
def test_a_folder_that_runs_share_is_named_once(sources: list[str], text: str) -> None:
    assert sources_text(sources) == text
