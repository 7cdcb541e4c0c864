from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fakes.fleet import add, ranked
from fakes.timed import profile_of_times

from proton_bench.errors import UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.store.adding.ingest import Labels, add_files
from proton_bench.store.restore import read_profiles
from proton_bench.store.schema import SCHEMAS, VARIANT
from proton_bench.store.store import Store

ROOT = Path(__file__).parents[3]
FILES = ["docs/pictures/train.proton", "tests/data/counters/kernels_h100.proton"]


def restored(store: Store, condition: str = "true") -> list[Profile]:
    snapshot = store.snapshot()
    return [profile for _, profile in read_profiles(snapshot, snapshot.profiles(condition))]


def numbers(profile: Profile) -> list[tuple[Any, ...]]:
    """Return path, kind, device and numbers of the rows that have numbers, in order."""
    columns = {name: each for name, each in profile.columns.items() if each.kind.is_number}
    found = []
    for row in range(len(profile)):
        values = {name: column.get(row) for name, column in columns.items()}
        known = {name: value for name, value in values.items() if value is not None}
        if known:
            found.append((profile.path(row), profile.kind(row), profile.device(row), known))
    return found


@pytest.mark.parametrize("file", FILES)
def test_a_profile_comes_back_with_its_tree_and_numbers(store: Store, file: str) -> None:
    recorded = read_profile(ROOT / file)
    add_files(store, [ROOT / file], Labels())

    (profile,) = restored(store)

    assert numbers(profile) == numbers(recorded)
    assert profile.provenance == recorded.provenance
    assert profile.device_use == recorded.device_use
    assert (profile.dropped, profile.partial) == (recorded.dropped, recorded.partial)
    profile.self_check()


def test_distributions_come_back_as_sketches(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path / "a", ranked(0, [float(each) for each in range(1, 101)]))

    (profile,) = restored(store)

    table = profile.distributions["time (ns)"]
    found = table.get(int(table.rows[0]))
    assert found is not None
    assert (found.n, found.minimum, found.maximum, found.total) == (100, 1.0, 100.0, 5050.0)
    assert found.quantile(0.5) == pytest.approx(50.0, rel=0.001)
    assert found.sum_ln == pytest.approx(363.7, rel=0.001)


def test_variants_of_a_kernel_stay_rows_of_their_own(store: Store, tmp_path: Path) -> None:
    codes = {"fwd/a": "one", "fwd/b": "two"}
    add(store, tmp_path / "a", profile_of_times({"fwd/a": [1.0], "fwd/b": [2.0]}, codes=codes))

    (profile,) = restored(store)

    assert [profile.variant(row).code_hash for row in (2, 3)] == ["one", "two"]  # type: ignore[union-attr]


def launched() -> Profile:
    builder = ProfileBuilder()
    builder.declare("time (ns)", Aggregation.INCLUSIVE)
    variant = Variant("c0de", registers=40, local_bytes=64, instructions={"mma": 32, "fp32": 7})
    builder.add(0, "gemm", FrameKind.KERNEL, metrics={"time (ns)": 5}, variant=variant)
    return builder.build(provenance={"start_time_ns": 10**18})


def test_what_follows_from_the_code_comes_back(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path / "a", launched())

    (profile,) = restored(store)

    (variant,) = profile.variants
    assert (variant.local_bytes, variant.instructions) == (64, {"mma": 32, "fp32": 7})


def test_a_store_of_an_earlier_version_gets_facts_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = SCHEMAS["profiles"]
    place = profiles.get_field_index("variants")
    fields = [each for each in VARIANT if each.name not in ("local_bytes", "instructions")]
    earlier = profiles.set(place, pa.field("variants", pa.list_(pa.struct(fields))))
    with monkeypatch.context() as patched:
        patched.setitem(SCHEMAS, "profiles", earlier)
        store = Store.create(tmp_path / "store")
        add(store, tmp_path / "a", launched())
    before = restored(store)
    add(store, tmp_path / "b", replace(launched(), provenance=Provenance({"rank": 1})))

    both = restored(store)

    found = [variant for profile in (*before, *both) for variant in profile.variants]
    assert [each.code_hash for each in found] == ["c0de"] * 3
    assert sorted((each.local_bytes, len(each.instructions)) for each in found) == [
        (-1, 0),
        (-1, 0),
        (64, 2),
    ]


def test_profiles_come_in_the_order_of_their_rows(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path / "a", *(ranked(rank, [1.0 + rank]) for rank in range(70)))

    found = restored(store, "rank % 2 = 1")

    assert [each.provenance["rank"] for each in found] == list(range(1, 70, 2))
    assert [each.inclusive("time (ns)")[0] for each in found] == [
        11.0 * (1.0 + rank) for rank in range(1, 70, 2)
    ]


def test_no_profile_and_wrong_conditions(store: Store) -> None:
    assert restored(store) == []
    with pytest.raises(UsageError):
        restored(store, "nope")
