"""The file formats do not change unnoticed."""

from __future__ import annotations

import pytest
from reference.golden_profile import GOLDEN, golden_profile
from reference.profile_view import view

from proton_bench.formats.registry import FORMATS, find_format, read_profile


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
