from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.report.html.document import island

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>",
    "&lt;",
    "\u2028\u2029",
    "[/bold]",
    "line\nbreak",
    "'\"\\",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_comes_back_and_holds_nothing_that_ends_a_block(text: str) -> None:
    written = str(island({"names": [text], text: 1}))

    assert json.loads(written) == {"names": [text], text: 1}
    assert not set("<>&\u2028\u2029") & set(written)


def test_lone_surrogates_are_written_as_text() -> None:
    assert json.loads(island({"a": ["x\ud800y"]})) == {"a": ["x\\ud800y"]}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_every_document_comes_back(value: object) -> None:
    written = str(island({"value": value}))

    assert json.loads(written) == {"value": value}
    assert "<" not in written
