from __future__ import annotations

import io
import json

import pytest

from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.support.text import (
    SafeStream,
    did_you_mean,
    json_text,
    visible,
    visible_lines,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain [red]name[/red] :smile:", "plain [red]name[/red] :smile:"),
        ("two\nlines\tand\r", "two\\nlines\\tand\\r"),
        ("\x1b[31mred\x00", "\\x1b[31mred\\x00"),
        ("a\u202eb\u2028c", "a\\u202eb\\u2028c"),
        ("\udc80", "\\udc80"),
        ("Kernel_\u03b1\u6f22", "Kernel_\u03b1\u6f22"),
    ],
)
def test_nothing_in_a_name_reaches_the_terminal_as_a_command(name: str, expected: str) -> None:
    assert visible(name) == expected


@pytest.mark.parametrize("hidden", "\xad\u034f\u115f\u180e\u200b\u200d\u3164\ufe0f\uffa0\U000e0100")
def test_two_names_that_differ_look_different(hidden: str) -> None:
    assert visible(f"a{hidden}b").isascii()
    assert visible_lines(f"a{hidden}b").isascii()
    assert json_text(json.dumps(f"a{hidden}b", ensure_ascii=False)).isascii()


def test_huge_name_is_cut_and_counted() -> None:
    shown = visible("x" * 1_000_000)

    assert shown.endswith("x... (995904 more characters)")
    assert len(shown) < 5000


@pytest.mark.parametrize("text", ["##[error]x", "a ##[command]x", "###[group]x"])
def test_marked_command_is_none_anywhere_in_a_line(text: str) -> None:
    assert "##[" not in visible(text)
    assert "##[" not in visible_lines(text)
    assert "##[" not in json_text(json.dumps(text))


@pytest.mark.parametrize("start", ["", " ", "\t", "x\n", "\x1b[31m", "\r", "\xa0"])
def test_no_line_starts_with_a_command(start: str) -> None:
    lines = visible_lines(f"{start}::error::x").splitlines()

    assert not any(line.lstrip().startswith("::") for line in lines)


def test_names_of_cpp_keep_their_colons() -> None:
    assert visible("::at::native::add") == "::at::native::add"
    assert visible_lines("- at::native::add") == "- at::native::add"


def test_json_means_the_same() -> None:
    text = "\x1b\x7f\x9b\u202e\u2028\U000e0041##[error]"

    escaped = json_text(json.dumps({text: text}, ensure_ascii=False))

    assert json.loads(escaped) == {text: text}
    assert escaped.isprintable()


def test_errors_say_hostile_names_on_one_line() -> None:
    for kind in (ProfileFormatError, UsageError):
        assert str(kind("a\n::error::b\x1b[2J##[c]")) == "a\\n::error::b\\x1b[2J##\\[c]"


def test_note_of_an_error_keeps_its_lines() -> None:
    error = UsageError("it failed:")
    error.add_note("first\n::error::second")

    assert error.report() == "it failed:\nfirst\n:\\:error::second"


def test_command_in_pieces_is_none() -> None:
    for pieces in (["x\n", " ", ":", ":error::y"], ["x ##", "[error]"], ["#", "#", "[error]"]):
        stream = io.StringIO()
        door = SafeStream(stream)
        for piece in pieces:
            door.write(piece)

        assert "##[" not in stream.getvalue()
        assert "\n ::" not in stream.getvalue()


def test_styles_of_a_console_pass_and_hide_no_command() -> None:
    stream = io.StringIO()

    SafeStream(stream, styled=True).write("\x1b[1m::error::x\x1b[0m\n")

    assert stream.getvalue() == "\x1b[1m:\\:error::x\x1b[0m\n"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("cuptti", "; did you mean 'cupti'?"),
        ("rocproflier", "; did you mean 'rocprofiler'?"),
        ("x", ""),
        ("", ""),
        ("pc\x1bti", ""),
    ],
)
def test_the_most_similar_choice_is_named(word: str, meant: str) -> None:
    assert did_you_mean(word, ("cupti", "rocprofiler", "re\x1bplay")) == meant


def test_a_similar_choice_is_escaped() -> None:
    assert did_you_mean("replay", ["re\nplay"]) == "; did you mean 're\\\\nplay'?"
