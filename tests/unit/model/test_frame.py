from __future__ import annotations

from proton_bench.model.frame import FrameKind, StringTable, escape_surrogates


def test_kind_numbers_are_those_of_the_file_format() -> None:
    numbers = [kind.value for kind in FrameKind]

    assert numbers == list(range(12))
    assert FrameKind.KERNEL == 4
    assert FrameKind.TEST == 10
    assert FrameKind.LAYER == 11


def test_lone_surrogates_are_escaped() -> None:
    assert escape_surrogates("a\udc80b") == "a\\udc80b"


def test_other_text_is_left_alone() -> None:
    for text in ("", "plain", "é", "\U0001f600", "a\x00b"):
        assert escape_surrogates(text) is text


def test_table_gives_equal_texts_one_position() -> None:
    table = StringTable()

    positions = [table.index(text) for text in ("a", "b", "a", "\udc80", "\\udc80")]

    assert positions == [0, 1, 0, 2, 2]
    assert table.texts() == ("a", "b", "\\udc80")
    assert len(table) == 3
