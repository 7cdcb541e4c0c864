from __future__ import annotations

import pytest

from proton_bench.report.text.diff import escaped


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain name_1", "plain name\\_1"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("a|b", "a\\|b"),
        ("[x](y)", "\\[x\\](y)"),
        ("https://x", "https\\://x"),
        ("www.x.org", "www&NoBreak;.x.org"),
        ("@me m.py:3@f", "@&NoBreak;me m.py:3@f"),
        ("`*~$#{}\\", "\\`\\*\\~\\$\\#\\{\\}\\\\"),
    ],
)
def test_markup_is_shown_and_not_meant(text: str, shown: str) -> None:
    assert escaped(text) == shown
