from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import pytest
from reference.golden_profile import golden_profile
from reference.profile_view import view

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.registry import find_format
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind

PROTON = find_format("proton")


def document() -> dict[str, Any]:
    unpacked: dict[str, Any] = msgpack.unpackb(PROTON.encode(golden_profile()))
    return unpacked


def test_file_is_one_map_with_these_keys() -> None:
    keys = list(document())

    assert keys == [
        "schema", "version", "partial", "provenance", "devices", "strings", "rows", "parents",
        "frames", "kinds", "device", "variant", "variants", "metrics", "distributions", "dropped",
        "device_use",
    ]  # fmt: skip


def test_columns_are_little_endian_arrays() -> None:
    packed = document()["parents"]

    assert (packed["dtype"], packed["codec"], packed["size"]) == ("<i4", "raw", 28)
    assert np.frombuffer(packed["bytes"], "<i4").tolist() == [-1, 0, 1, 2, 2, 1, 0]


def test_validity_is_packed_from_the_lowest_bit() -> None:
    metric = next(each for each in document()["metrics"] if each["name"] == "time (ns)")

    assert metric["unit"] == "ns"
    assert metric["valid"]["bytes"] == bytes([0b0111000])


def test_unknown_keys_are_written_back() -> None:
    changed = document() | {"later": {"a": [1, "x"]}}

    profile = PROTON.decode(msgpack.packb(changed), "x")

    assert profile.extra == {"later": {"a": [1, "x"]}}
    assert msgpack.unpackb(PROTON.encode(profile)) == changed


def test_later_minor_versions_are_read() -> None:
    changed = document()
    changed["version"] = [1, 7]
    changed["kinds"]["bytes"] = bytes([1, 99, 2, 2, 2, 2, 2])

    profile = PROTON.decode(msgpack.packb(changed), "x")

    assert profile.kind(1) is FrameKind.UNKNOWN


def test_optional_keys_may_be_absent() -> None:
    needed = ("schema", "version", "strings", "rows", "parents", "frames", "kinds")
    bare = {key: document()[key] for key in needed}

    profile = PROTON.decode(msgpack.packb(bare), "x")

    assert len(profile) == 7
    assert profile.columns == {}
    assert profile.device(1) is None


def test_distributions_are_inflated_only_when_looked_at() -> None:
    changed = document()
    changed["distributions"]["bytes"] = b"\0" * changed["distributions"]["size"]
    changed["distributions"]["codec"] = "raw"

    profile = PROTON.decode(msgpack.packb(changed), "x.proton")

    assert profile.inclusive("count")[0] == 74
    with pytest.raises(ProfileFormatError, match=r"x\.proton"):
        len(profile.distributions)


def test_distributions_not_looked_at_are_written_back() -> None:
    content = PROTON.encode(golden_profile())

    assert PROTON.encode(PROTON.decode(content, "x")) == content


def test_values_of_rows_without_one_are_cleared() -> None:
    changed = document()
    metric = next(each for each in changed["metrics"] if each["name"] == "time (ns)")
    metric["values"]["bytes"] = np.full(7, 5, "<i8").tobytes()

    profile = PROTON.decode(msgpack.packb(changed), "x")

    assert profile.column("time (ns)").values.tolist() == [0, 0, 0, 5, 5, 5, 0]


def test_long_columns_are_compressed_one_by_one() -> None:
    builder = ProfileBuilder()
    for row in range(5000):
        builder.add(0, f"k{row}")

    packed = msgpack.unpackb(PROTON.encode(builder.build()))

    assert packed["parents"]["codec"] == "zlib"
    assert packed["parents"]["size"] == 4 * 5001
    assert len(packed["parents"]["bytes"]) < 200
    assert packed["device"] is None


def test_golden_profile_comes_back() -> None:
    assert view(PROTON.decode(PROTON.encode(golden_profile()), "x")) == view(golden_profile())
