"""Damaged and hostile files end in one clear error, or in a sound profile."""

from __future__ import annotations

import json
import random
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.golden_profile import golden_profile

from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.formats import limits
from proton_bench.formats.limits import Limits, reading, take_bytes, take_items, take_table
from proton_bench.formats.registry import FORMATS, find_format
from proton_bench.model.profile import Profile

READ = FORMATS


CONTENT = {name: find_format(name).encode(golden_profile()) for name in READ}


def survives(name: str, content: bytes) -> Profile | None:
    """Decode; None for the one error allowed, else a profile whose every part was looked at."""
    try:
        profile = find_format(name).decode(content, "hostile")
        distributions = [entry for table in profile.distributions.values() for entry in table]
    except ProfileFormatError as error:
        problem = str(error)
    else:
        problem = ""
    if problem:
        assert problem.startswith("hostile: ")
        assert ";" in problem
        assert len(problem) < 1000
        return None
    profile.self_check()
    for _, entry in distributions:
        entry.quantile(0.5)
    for column in profile.columns.values():
        column.to_list()
        if column.kind.is_number:
            profile.inclusive(column.spec.name)
    for each in FORMATS:
        find_format(each).encode(profile)
    return profile


@pytest.mark.parametrize("name", READ)
def test_every_truncation_is_refused(name: str) -> None:
    content = CONTENT[name]
    end = len(content.rstrip()) if name in {"hatchet", "json"} else len(content)

    read = [cut for cut in range(0, end, 7) if survives(name, content[:cut]) is not None]

    assert read == []


@pytest.mark.parametrize("name", READ)
@given(data=st.data())
def test_changed_bytes_are_survived(name: str, data: st.DataObject) -> None:
    content = bytearray(CONTENT[name])
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))

    found = survives(name, bytes(content))

    assert found is None or len(found) >= 1


@pytest.mark.parametrize("name", READ)
def test_flips_and_splices_are_survived(name: str) -> None:
    source = random.Random(20)
    read = 0
    for _ in range(300):
        content = bytearray(CONTENT[name])
        place = source.randrange(len(content))
        other = source.randrange(len(content))
        if source.random() < 0.5:
            content[place] ^= 1 << source.randrange(8)
        else:
            content[place : place + source.randrange(20)] = content[other : other + 8]
        read += survives(name, bytes(content)) is not None

    assert 0 < read < 300


@pytest.mark.parametrize("name", FORMATS)
@given(content=st.binary(max_size=200))
def test_noise_is_refused(name: str, content: bytes) -> None:
    assert survives(name, content) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_values_of_another_type_are_survived(name: str, data: st.DataObject) -> None:
    is_json = name in {"hatchet", "json"}
    document = json.loads(CONTENT[name]) if is_json else msgpack.unpackb(CONTENT[name])
    node = document
    while isinstance(node, dict | list) and node:
        keys = sorted(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(node[key], dict | list) or not node[key] or data.draw(st.booleans()):
            node[key] = data.draw(json_values)
            break
        node = node[key]

    try:
        content = json.dumps(document).encode() if is_json else msgpack.packb(document)
    except OverflowError:  # MessagePack has no such integers.
        return

    found = survives(name, content)

    assert found is None or len(found) >= 1


def edited(change: Callable[[dict[str, Any]], None]) -> bytes:
    document = msgpack.unpackb(CONTENT["proton"])
    change(document)
    packed: bytes = msgpack.packb(document)
    return packed


def column(dtype: str, size: int, content: bytes, codec: str = "zlib") -> dict[str, Any]:
    return {"dtype": dtype, "codec": codec, "size": size, "bytes": content}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=[2, 0]), "version is 2.0, this release reads 1.x; update"),
        (lambda d: d.update(schema="other"), "schema is 'other'"),
        (lambda d: d.update(rows=2**31), "declares 2147483648 rows"),
        (lambda d: d.update(rows=2**30), "expected 4294967296"),
        (lambda d: d.update(rows=0), "declares 0 rows"),
        (lambda d: d.update(rows=-1), "declares -1 rows"),
        (lambda d: d["parents"].update(codec="lzma"), "unknown codec 'lzma'; known are raw"),
        (lambda d: d["parents"].update(dtype="<i8"), "holds '<i8', expected '<i4'"),
        (lambda d: d["parents"].update(bytes=b"\x05" * 28), "root"),
        (lambda d: d["frames"].update(bytes=b"\x7f" * 28), "frames holds"),
        (lambda d: d["metrics"][0].update(dtype="f2"), "type 'f2'"),
        (lambda d: d["metrics"][0].update(aggregation="sum"), "Invalid enum value 'sum'"),
        (lambda d: d["metrics"].append(d["metrics"][0]), "occurs twice"),
        (lambda d: d.update(strings=[b"\xff"]), "Expected `str`"),
        (lambda d: d.update(provenance={"a": msgpack.ExtType(5, b"")}), "holds a Ext"),
        (lambda d: d.update(surplus={1: 2}), "not a string"),
        (lambda d: d["device_use"][0].update(device=2), "device_use names device 2 of 2"),
        (lambda d: d["device_use"][1].update(idle_ns=-1), "cannot be a time or count"),
        (lambda d: d["device_use"][1].update(busy_ns=2**63), "cannot be a time or count"),
        (lambda d: d["device_use"][0].update(latency_buckets=[1] * 500), "more latency buckets"),
    ],
)
def test_errors_say_what_is_wrong(change: Callable[[dict[str, Any]], None], message: str) -> None:
    with pytest.raises(ProfileFormatError) as caught:
        find_format("proton").decode(edited(change), "bad.proton")

    assert str(caught.value).startswith("bad.proton: ")
    assert message in str(caught.value)


def bomb() -> bytes:
    rows = 250_000_000
    blown = column("<i4", 4 * rows, zlib.compress(b"\0" * 1_000_000))
    return edited(lambda d: d.update(rows=rows, parents=blown, frames=blown))


def many_bombs() -> bytes:
    stream = zlib.compressobj(9)
    content = b"".join(stream.compress(b"\0" * (1 << 20)) for _ in range(16)) + stream.flush()
    metric = {
        "unit": "", "aggregation": "inc", "dtype": "vec<i8", "valid": None,
        "values": column("<i8", 16 << 20, content), "offsets": column("<i8", 64, b"\0" * 64, "raw"),
    }  # fmt: skip
    return edited(lambda d: d.update(metrics=[{"name": f"m{i}", **metric} for i in range(40)]))


METRIC = b'[{"frame":{"name":"x"},"metrics":{"a":'


HUGE = {
    "array": ("proton", b"\xdd\xff\xff\xff\xff"),
    "map": ("proton", b"\xdf\xff\xff\xff\xff"),
    "string": ("proton", b"\x81\xdb\xff\xff\xff\xff"),
    "arrays in arrays": ("hatchet_msgpack", b"\x92" + b"\xdd\x00\xff\xff\xff" * 3000),
    "deep msgpack": ("hatchet_msgpack", b"\x92" + b"\x91" * 1_000_000),
    "deep maps": ("hatchet_msgpack", b"\x92" + b"\x81\xa8children\x91" * 20_000),
    "deep json": ("hatchet", b"[{" + b"[" * 1_000_000),
    "deep lists": ("hatchet", b'[{"a":' + b"[" * 30_000 + b"]" * 30_000 + b"}]"),
    "deep objects": ("hatchet", b'[{"children":[' * 100_000),
    "deep metric": ("hatchet", METRIC + b"[" * 5000 + b"]" * 5000 + b"}}]"),
    "deep key": ("proton", b"\x81" * 100_000),
    "zip bomb": ("proton", bomb()),
    "zip bombs": ("proton", many_bombs()),
    "long integer": ("hatchet", METRIC + b"9" * 10**6 + b"}},{}]"),
}  # fmt: skip


@pytest.mark.parametrize("case", HUGE)
def test_huge_claims_cost_no_memory(case: str) -> None:
    name, content = HUGE[case]
    tracemalloc.start()
    try:
        read = survives(name, content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert read is None
    assert peak < 400 << 20 if case == "zip bombs" else peak < 160 << 20


@pytest.mark.parametrize("number", [-(2**63) - 1, 2**64])
@pytest.mark.parametrize(
    ("table", "key"), [("devices", "num_sms"), ("variants", "shared_bytes"), ("dropped", None)]
)
def test_integers_that_other_formats_cannot_hold_are_refused(
    table: str, key: str | None, number: int
) -> None:
    document = json.loads(CONTENT["json"])
    if key is None:
        document[table]["buffer full"] = number
    else:
        document[table][0][key] = number

    assert survives("json", json.dumps(document).encode()) is None


def test_deep_trees_with_a_late_fault_are_refused() -> None:
    levels = 20_000
    node = b'[{"frame":{"name":"x"},"children":'
    late = b"[" + node[1:] + node * levels + b"[]" + b"}]" * levels + b"},5]"

    assert survives("hatchet", late) is None


def test_upstream_classes_are_not_unpickled() -> None:
    pickled = (
        b"\x80\x04\x95\x1e\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93."
    )

    assert all(survives(name, pickled) is None for name in FORMATS)


MIB = 1 << 20


@pytest.mark.parametrize("size", [0, MIB])
def test_what_may_come_out_grows_with_the_file(size: int) -> None:
    with reading(size, "x"):
        take_bytes(128 * MIB + 100 * size)
        take_items(1_000_000 + 4 * size)
    with reading(size, "x"), pytest.raises(ProfileFormatError):
        take_bytes(128 * MIB + 100 * size + 1)
    with reading(size, "x"), pytest.raises(ProfileFormatError):
        take_items(1_000_000 + 4 * size + 1)


def test_parts_of_a_file_share_its_limits() -> None:
    with reading(0, "x"), reading(100 * MIB, "a part"):
        take_bytes(100 * MIB)
        with pytest.raises(ProfileFormatError):
            take_bytes(100 * MIB)


@pytest.mark.parametrize(("rows", "columns"), [(2, 30_000), (200_000, 200), (2_000_000, 1)])
def test_large_tables_of_small_files_are_refused(rows: int, columns: int) -> None:
    with reading(1000, "x"), pytest.raises(ProfileFormatError):
        take_table(rows, columns)


def test_a_file_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_FREE_S", -1.0)
    with reading(0, "x"), pytest.raises(ProfileFormatError):
        take_items(1)


def test_nothing_is_limited_outside_of_a_file() -> None:
    take_items(10**12)

    with reading(0, "x") as limits:
        take_items(1_000_000)  # as many as before
        assert not limits.is_late


@pytest.mark.parametrize("factor", ["0", "-1", "nan", "much"])
def test_a_factor_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, factor: str) -> None:
    monkeypatch.setenv("PROTON_BENCH_DECODE_LIMIT", factor)
    with pytest.raises(UsageError):
        Limits(0, "x")
