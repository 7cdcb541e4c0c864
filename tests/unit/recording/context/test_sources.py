from __future__ import annotations

import pytest

from proton_bench.errors import UsageError
from proton_bench.recording.context.sources import parse_context


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("shadow", "shadow"),
        ("python", "python"),
        ("layers", "layers"),
        ("ops+layers", "layers+ops"),
        ("shadow+layers", "layers"),
        ("Python+Ops", "python+ops"),
        ("auto", "layers"),
        ("auto+ops", "layers+ops"),
        ("auto+python", "python+layers"),
        ("layers+layers", "layers"),
    ],
)
def test_names_are_brought_into_one_order(text: str, sources: str) -> None:
    assert parse_context(text) == sources


@pytest.mark.parametrize("text", ["", "layer", "layers+", "+", "layers,ops", None, 3, "shadow+x"])
def test_an_unknown_name_is_refused(text: object) -> None:
    with pytest.raises(UsageError):
        parse_context(text)


def test_scopes_and_python_frames_exclude_each_other() -> None:
    with pytest.raises(UsageError, match=r"shadow.*python"):
        parse_context("shadow+python")
