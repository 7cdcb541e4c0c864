"""Files of earlier versions are read as before; what they lack is unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.registry import find_format, read_profile, write_profile
from proton_bench.model.metrics.invariants import violations
from proton_bench.model.profile import Profile

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
