"""Whatever profile is written comes back, in every format."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from reference.golden_profile import GOLDEN, golden_profile
from reference.profile_view import close, inclusive_by_path, profiles, view

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.registry import FORMATS, find_format, read_profile, write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind, escape_surrogates
from proton_bench.model.metrics.invariants import violations
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

LOSSLESS = ("proton", "json")


HATCHET = ("hatchet", "hatchet_msgpack")


def again(profile: Profile, name: str) -> Profile:
    chosen = find_format(name)
    return chosen.decode(chosen.encode(profile), "again")


def chain(levels: int) -> Profile:
    builder = ProfileBuilder()
    row = 0
    for level in range(levels):
        row = builder.add(row, f"f{level}", FrameKind.SCOPE, metrics={"time (ns)": 1})
    return builder.build()


@pytest.mark.parametrize("name", LOSSLESS)
@given(profile=profiles())
def test_lossless_formats_keep_everything(name: str, profile: Profile) -> None:
    assert view(again(profile, name)) == view(profile)


@pytest.mark.parametrize("name", HATCHET)
@given(profile=profiles())
def test_hatchet_formats_keep_sums_and_meaning(name: str, profile: Profile) -> None:
    read = again(profile, name)

    read.self_check()
    # These formats hold no kinds: siblings that differ in nothing else are one row.
    unlike = replace(profile, kinds=np.zeros(len(profile), dtype=np.uint8))
    expected = unlike.fold_variants()
    for metric, column in expected.columns.items():
        if not column.valid.any() and column.spec.aggregation is not Aggregation.INCLUSIVE:
            continue
        if column.valid.sum() == column.valid[0]:
            continue
        assert read.columns[metric].spec == column.spec
        if column.kind.is_number:
            assert close(inclusive_by_path(read, metric), inclusive_by_path(expected, metric))


@pytest.mark.parametrize("name", HATCHET)
@given(profile=profiles())
def test_hatchet_formats_are_stable_once_written(name: str, profile: Profile) -> None:
    once = again(profile, name)

    assert view(again(once, name)) == view(once)


@pytest.mark.parametrize("name", LOSSLESS)
def test_ten_thousand_levels_come_back(name: str) -> None:
    read = again(chain(10_000), name)

    assert len(read) == 10_001
    assert read.path(10_000)[-1] == "f9999"


@pytest.mark.parametrize("name", HATCHET)
def test_hatchet_formats_fold_at_400_levels_and_say_so(name: str) -> None:
    chosen = find_format(name)
    deep = chain(10_000)

    read = again(deep, name)

    assert int(read.depths().max()) == 400
    assert read.inclusive("time (ns)")[0] == 10_000
    assert read.column("time (ns)").get(400) == 10_000 - 399
    notes = chosen.losses(deep)  # type: ignore[attr-defined]
    assert "10000 levels deep" in notes[0]
    assert chosen.losses(chain(400)) == ()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", FORMATS)
def test_hostile_names_come_back(name: str) -> None:
    names = [
        "a\x00b",
        "x\ny\r\t",
        "[bold]z[/bold]",
        "<b>&amp;\"'\\",
        "\udc80",
        "\u2028",
        "n" * 10**6,
    ]
    builder = ProfileBuilder()
    for each in names:
        builder.add(0, each, metrics={each[:20]: 1})

    read = again(builder.build(), name)

    assert [read.name(row) for row in read.children(0)] == [escape_surrogates(n) for n in names]


@pytest.mark.parametrize("name", FORMATS)
def test_a_bare_root_comes_back(name: str) -> None:
    assert len(again(ProfileBuilder().build(), name)) == 1


@pytest.mark.parametrize("name", FORMATS)
def test_nan_is_nothing_in_json_and_nan_elsewhere(name: str) -> None:
    builder = ProfileBuilder()
    for value in (math.nan, math.inf, 1.5):
        builder.add(0, "k", metrics={"x": value, "v": [value, 1.0]}).bit_length()
        builder.add(0, f"k{value}", metrics={"x": value})

    read = again(builder.build(), name)

    total = {"proton": math.nan, "json": 3.0}.get(name, 1.5)
    assert read.inclusive("x")[0] == pytest.approx(total, nan_ok=True)
    if name != "proton":
        assert not any(
            isinstance(v, float) and not math.isfinite(v) for v in read.column("x").to_list()
        )


@pytest.mark.parametrize("name", FORMATS)
def test_columns_above_the_compression_limit_come_back(name: str) -> None:
    builder = ProfileBuilder()
    for row in range(3000):
        builder.add(0, f"k{row}", metrics={"time (ns)": row * row})

    read = again(builder.build(), name)

    assert read.column("time (ns)").to_list() == [None, *(row * row for row in range(3000))]


@pytest.mark.parametrize("name", FORMATS)
def test_encoders_write_the_golden_bytes(name: str) -> None:
    chosen = find_format(name)

    content = chosen.encode(golden_profile())

    assert content == (GOLDEN / f"profile{chosen.suffixes[0]}").read_bytes()


@pytest.mark.parametrize("suffix", [".proton", ".json"])
def test_lossless_golden_files_hold_everything(suffix: str) -> None:
    profile = read_profile(GOLDEN / f"profile{suffix}")

    assert view(profile) == view(golden_profile())
    # Variants are equal without these.
    assert {each.local_bytes for each in profile.variants} == {128}
    assert {tuple(each.instructions.items()) for each in profile.variants} == {
        (("global loads", 64), ("mma", 32))
    }


@pytest.mark.parametrize("suffix", [".hatchet", ".hatchet_msgpack"])
def test_hatchet_golden_files_hold_the_folded_tree(suffix: str) -> None:
    profile = read_profile(GOLDEN / f"profile{suffix}")

    folded = golden_profile().fold_variants()
    expected, found = view(folded), view(profile)
    by_kind = [(path, parent, device) for path, parent, _, device, _ in found["rows"]]
    assert by_kind == [(path, parent, device) for path, parent, _, device, _ in expected["rows"]]
    assert dict(sorted(found["metrics"].items())) == dict(sorted(expected["metrics"].items()))


EARLIER = Path(__file__).parents[2] / "data" / "earlier"


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


def check_operators(profile: Profile) -> None:
    expected = json.loads((EARLIER / "operators.json").read_text())
    for name, values in expected["metrics"].items():
        assert profile.inclusive(name).tolist() == values
    found = {
        f"{name} {row}": entry
        for name, table in profile.distributions.items()
        for row, entry in table
    }
    assert found.keys() == expected["samples"].keys()
    for key, (n, total, low, high, *quantiles) in expected["samples"].items():
        entry = found[key]
        assert (entry.n, entry.total, entry.minimum, entry.maximum) == (n, total, low, high)
        known = [entry.quantile(q) for q in QUANTILES]
        # Both are in the same bucket.
        assert known == [
            None if each is None else pytest.approx(each, rel=0.001) for each in quantiles
        ]
    assert violations(profile) == ()


def test_a_file_of_consecutive_buckets_is_read_as_before() -> None:
    profile = read_profile(EARLIER / "operators.proton")

    check_operators(profile)
    entries = [entry for table in profile.distributions.values() for _, entry in table]
    assert sum(entry.open_below for entry in entries) == 36


@pytest.mark.parametrize("suffix", [".proton", ".json"])
def test_what_is_unknown_stays_so_in_files_that_are_written_today(
    suffix: str, tmp_path: Path
) -> None:
    profile = read_profile(EARLIER / "operators.proton")
    len(profile.distributions)  # else the section would be passed on as it is

    write_profile(profile, tmp_path / f"again{suffix}")

    check_operators(read_profile(tmp_path / f"again{suffix}"))


@pytest.mark.parametrize("suffix", [".proton", ".json"])
def test_the_small_profile_is_read_as_before(suffix: str) -> None:
    file = EARLIER / f"profile{suffix}"
    with pytest.raises(ProfileFormatError):
        read_profile(file)  # its numbers contradict each other, which tests ask for

    profile = find_format(suffix[1:]).decode(file.read_bytes(), file.name)

    entry = profile.distributions["time (ns)"].get(5)
    assert entry is not None
    assert (entry.n, entry.total, entry.collapses, entry.open_below) == (70, 86905.0, 0, False)
    assert entry.quantile(0.5) == pytest.approx(1238.0, rel=0.001)
    assert [each.row for each in violations(profile)] == [5]
