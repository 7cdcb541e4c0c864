from __future__ import annotations

import pytest

from proton_bench.cli import main
from proton_bench.cli.gating.bisect_codes import asks_for_bisect, bisect_code


@pytest.mark.parametrize(
    ("code", "for_git"),
    [(0, 0), (1, 1), (3, 125), (4, 125), (5, 125), (125, 125)]
    + [(2, 128), (69, 128), (70, 128), (74, 128), (130, 130), (143, 143)],
)
def test_codes_for_git(code: int, for_git: int) -> None:
    assert bisect_code(code) == for_git


@pytest.mark.parametrize("code", range(256))
def test_only_a_regression_is_bad(code: int) -> None:
    found = bisect_code(code)

    assert found in (0, 1, 125) or found >= 128
    assert (found == 1) == (code == 1)


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        (["gate", "--bisect", "a", "b"], True),
        (["ab", "--base-ref", "x", "--bisect", "--", "x.py"], True),
        (["gate", "a", "b"], False),
        (["ab", "--", "x.py", "--bisect"], False),
        (["view", "--bisect"], False),
        ([], False),
    ],
)
def test_who_asks_for_them(words: list[str], asks: bool) -> None:
    assert asks_for_bisect(words) is asks


@pytest.mark.parametrize(
    "words",
    [
        ["gate", "--bisect", "--no-such-option"],
        ["gate", "--bisect"],
        ["gate", "--bisect", "missing", "missing.proton"],
        ["ab", "--bisect", "--", "missing.py"],
        ["ab", "--bisect", "--runs", "none"],
    ],
)
def test_an_error_stops_the_bisection_of_git(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 128
    assert capsys.readouterr().err
