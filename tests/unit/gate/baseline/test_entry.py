from __future__ import annotations

import pytest

from proton_bench.errors import ProfileFormatError
from proton_bench.gate.baseline.entry import (
    Entry,
    Pointer,
    StoredRun,
    decode_entry,
    decode_pointer,
)
from proton_bench.gate.baseline.key import Key
from proton_bench.gate.machine.fingerprint import Tier

ENTRY = Entry(
    id="20260101T000000-00000000",
    name="main",
    created_ns=1,
    key=Key(((Tier.HARD, "GPU name", "H200"),)),
    runs=(StoredRun("0.proton", "a|b\n.proton", 3, "00"),),
    revision="abc",
)


def test_entry_comes_back_as_it_was() -> None:
    assert decode_entry(ENTRY.encoded(), "entry.json") == ENTRY
    assert ENTRY.reference == "main@20260101T000000-00000000"


def test_pointer_comes_back_as_it_was() -> None:
    assert decode_pointer(Pointer("x", 5).encoded(), "p.json") == Pointer("x", 5)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        ENTRY.encoded()[:-30],
        ENTRY.encoded().replace(b'"hard"', b'"soft"'),
        ENTRY.encoded().replace(b"proton_bench.baseline", b"proton_bench.else"),
        Pointer("x", 5).encoded(),
        ENTRY.encoded().replace(b'"0.proton"', b'"../0.proton"'),
        ENTRY.encoded().replace(b'"main"', b'"../main"'),
        ENTRY.encoded().replace(b'"2026', b'"/2026'),
    ],
)
def test_what_is_not_an_entry_is_refused(content: bytes) -> None:
    with pytest.raises(ProfileFormatError, match=r"entry\.json"):
        decode_entry(content, "entry.json")


def test_another_version_is_refused() -> None:
    newer = ENTRY.encoded().replace(b'"version": [\n  1,', b'"version": [\n  2,')

    assert newer != ENTRY.encoded()
    with pytest.raises(ProfileFormatError, match="version 1"):
        decode_entry(newer, "entry.json")
