from __future__ import annotations

from typing import Any

import pytest

from proton_bench.cli.commands.gate import read_words
from proton_bench.cli.target import Recording, split_recording
from proton_bench.errors import UsageError

Given = tuple[tuple[str, ...], dict[str, Any]]


def words(*positional: str, **options: Any) -> Given:
    return positional, options


def sides_of(given: Given) -> tuple[list[str], list[str]]:
    positional, options = given
    return read_words(positional, **options)


@pytest.mark.parametrize(
    ("given", "sides"),
    [
        (words("a", "b"), (["a"], ["b"])),
        (words("--", "-a", "-b"), (["-a"], ["-b"])),
    ],
)
def test_two_sides_that_are_there(given: Given, sides: tuple[list[str], list[str]]) -> None:
    assert sides_of(given) == sides


@pytest.mark.parametrize(
    ("given", "base"),
    [
        (words("main", "--", "bench.py", "--", "-x", runs=3), ["main"]),
        (words("--", "bench.py", "--", "-x", save="main", runs=3), ["baseline:main"]),
        (words("a", "--", "bench.py", "--", "-x", save="main", runs=3), ["a"]),
    ],
)
def test_a_command_makes_the_new_side(given: Given, base: list[str]) -> None:
    command = ["bench.py", "--", "-x"]

    assert sides_of(given) == (base, command)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (words(), "a gate needs two sides"),
        (words("a"), "a gate needs two sides"),
        (words("a", "b", "c"), "a gate needs two sides"),
        (words("a", "--", "bench.py"), "--runs R a -- CMD"),
        (words("a", "bench.py", runs=3), "such as `proton gate --runs 6 main -- bench.py`"),
        (words("a", "--", runs=3), "write it after --$"),
        (words("a", "b", "--", "bench.py", runs=3), "one base stands before --, not 2"),
        (words("--", "bench.py", runs=3), "nothing to compare the command with"),
        (words("a", "--", "bench.py", save="a b", runs=3), "'a b'"),
    ],
)
def test_words_that_make_no_sides_are_refused(given: Given, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sides_of(given)


@pytest.mark.parametrize(
    ("given", "target", "recording"),
    [
        (["bench.py", "-b", "x"], ["bench.py", "-b", "x"], Recording()),
        (["-b", "cpu", "--mode=a=b", "x.py"], ["x.py"], Recording("cpu", mode="a=b")),
        (["-c", "ops", "-k", "triton", "x.py"], ["x.py"], Recording(context="ops", hook="triton")),
    ],
)
def test_a_command_may_begin_with_how_to_record_it(
    given: list[str], target: list[str], recording: Recording
) -> None:
    assert split_recording(given) == (target, recording)


def test_a_way_to_record_needs_a_value() -> None:
    with pytest.raises(UsageError, match="-b needs a value"):
        split_recording(["-b"])
