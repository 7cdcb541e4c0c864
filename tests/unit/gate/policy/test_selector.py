from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.gate.policy.selector import selects

NAMES = st.text(alphabet="ab*?[]/\\.", min_size=1, max_size=4)
PATHS = st.lists(NAMES, max_size=5).map(tuple)


@pytest.mark.parametrize(
    ("selector", "path", "expected"),
    [
        ("", ("a",), True),
        ("softmax*", ("fwd", "softmax_kernel"), True),
        ("softmax*", ("softmax", "other"), False),
        ("fwd/**/softmax*", ("fwd", "softmax"), True),
        ("fwd/**/softmax*", ("fwd", "a", "b", "softmax_k"), True),
        ("fwd/**/softmax*", ("bwd", "softmax"), False),
        ("fwd/**", ("fwd", "a", "b"), True),
        ("/fwd/*", ("fwd", "a"), True),
        ("fwd/*", ("fwd", "a", "b"), False),
        ("**", (), True),
        ("**/k", ("k",), True),
        ("a/**/b/**/c", ("a", "b", "x", "b", "c"), True),
        ("a/**/b/**/c", ("a", "x", "c"), False),
        ("test_a[1024]", ("test_a[1024]",), True),
        ("k?", ("k1",), True),
        ("k?", ("k",), False),
        (r"a\*", ("a*",), True),
        (r"a\*", ("ab",), False),
        (r"lib\/f.py:3@g/k", ("lib/f.py:3@g", "k"), True),
        ("Softmax", ("softmax",), False),
        ("k", (), False),
    ],
)
def test_globs(selector: str, path: tuple[str, ...], expected: bool) -> None:
    assert selects(selector, path) is expected


@given(PATHS)
def test_escaped_names_select_their_own_path(path: tuple[str, ...]) -> None:
    def escaped(name: str) -> str:
        return "".join(f"\\{character}" for character in name)

    if path:
        assert selects("/".join(["**", *(escaped(name) for name in path)]), path)
        assert selects("/" + "/".join(escaped(name) for name in path), path)


@given(st.text(alphabet="ab*?", min_size=1, max_size=6), st.text(alphabet="abc", max_size=6))
def test_a_glob_of_one_name_is_that_of_fnmatch(glob: str, name: str) -> None:
    if glob != "**":
        assert selects(glob, ("x", name)) == fnmatch.fnmatchcase(name, glob)


@given(st.text(alphabet="ab*?/\\", max_size=8), PATHS)
def test_any_text_is_a_glob(selector: str, path: tuple[str, ...]) -> None:
    assert selects(selector, path) in {True, False}
