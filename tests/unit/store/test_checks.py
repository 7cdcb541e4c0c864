from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.fleet import add, ranked

from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.store import checks
from proton_bench.store.questions import Question, path_series
from proton_bench.store.restore import read_profiles, read_runs
from proton_bench.store.retention import POLICY_FILE, Policy, read_policy
from proton_bench.store.schema import SCHEMAS
from proton_bench.store.store import Store
from proton_bench.store.upkeep import check, compact

Edit = Callable[[pa.Table], pa.Table]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    store = Store.create(folder / "store")
    add(store, folder / "run", ranked(0, [3.0, 5.0]), ranked(1, [4.0]))
    return folder / "store"


def file_of(store: Store, table: str) -> Path:
    (file,) = (Path(store.uri) / table).rglob("*.parquet")
    return file


def edit(store: Store, table: str, change: Edit) -> None:
    file = file_of(store, table)
    pq.write_table(change(pq.ParquetFile(file).read()), file)


def put(name: str, value: Any, kind: pa.DataType | None = None) -> Edit:
    """Return what puts a value into a column of all rows."""

    def change(table: pa.Table) -> pa.Table:
        place = table.column_names.index(name)
        values = pa.array([value] * len(table), kind or table[name].type)
        return table.set_column(place, name, values)

    return change


def read_everything(store: Store) -> None:
    snapshot = store.snapshot()
    rows = snapshot.profiles()
    list(read_profiles(snapshot, rows))
    list(read_runs(snapshot, rows))
    path_series(snapshot, Question("fwd/*", by=("path", "run")))
    compact(store)


def sketch(**parts: Any) -> dict[str, Any]:
    return {"collapses": 0, "zero_count": 0, "index": [1], "count": [2], **parts}


@pytest.mark.parametrize(
    ("table", "name", "value"),
    [
        *(("profiles", name, None) for name in ("run", "nodes", "samples", "attributes")),
        *(("profiles", name, None) for name in ("partial", "dropped", "totals", "devices")),
        *(("profiles", name, None) for name in ("profile_id", "batch", "time_unix_nano")),
        ("profiles", "samples", -3),
        ("profiles", "attributes", "[4]"),
        ("profiles", "attributes", '{"a":' * 5000),
        ("profiles", "device_use", "{"),
        ("profiles", "variants", [None]),
        ("profiles", "members", []),
        ("profiles", "devices", []),
        ("samples", "aggregation", "sum"),
        ("samples", "node", None),
        ("samples", "device", -2),
        ("samples", "device", 9),
        ("samples", "sketch", sketch(index=[1, 2])),
        ("samples", "sketch", sketch(index=[None])),
        ("samples", "sketch", sketch(count=None)),
        ("samples", "sketch", sketch(collapses=900)),
        ("samples", "sketch", sketch(zero_count=-1)),
        ("stacks", "name", None),
        ("stacks", "kind", "krenel"),
        ("stacks", "depth", None),
    ],
)
def test_rows_that_no_profile_has_are_named_in_one_line(
    fleet: Store, table: str, name: str, value: Any
) -> None:
    edit(fleet, table, put(name, value))

    with pytest.raises(ProfileFormatError, match="store") as caught:
        read_everything(fleet)

    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("table", "name"), [("stacks", "stack_hash"), ("samples", "value"), ("profiles", "rank")]
)
def test_columns_of_other_types_are_named(fleet: Store, table: str, name: str) -> None:
    edit(fleet, table, put(name, "7", pa.string()))

    with pytest.raises(ProfileFormatError, match=f"column {name}"):
        read_everything(fleet)


@pytest.mark.parametrize("name", ["depth", "kind", "parent_hash", "name"])
def test_stacks_that_lack_a_column_are_damaged(fleet: Store, name: str) -> None:
    edit(fleet, "stacks", lambda table: table.drop_columns([name]))

    with pytest.raises(ProfileFormatError, match="store maintain"):
        read_everything(fleet)


def without_root(table: pa.Table) -> pa.Table:
    return table.filter(pa.compute.is_valid(table["parent_hash"]))


def circle(table: pa.Table) -> pa.Table:
    """Let the stacks below the root be each other's parents, and one's own."""
    hashes = table["stack_hash"].to_pylist()
    above = {hash: hashes[place - 1] for place, hash in enumerate(hashes)}
    parents = [above[hash] if hash else None for hash in hashes]
    return table.set_column(1, "parent_hash", pa.array(parents, pa.int64()))


def own_parent(table: pa.Table) -> pa.Table:
    return table.set_column(1, "parent_hash", table["stack_hash"])


@pytest.mark.parametrize(
    "change",
    [
        without_root,
        circle,
        own_parent,
        put("parent_hash", None),
        put("parent_hash", 77),
        put("depth", 3),
        lambda table: table.slice(0, 1),
    ],
)
def test_stacks_that_are_no_tree_are_refused_and_listed(fleet: Store, change: Edit) -> None:
    edit(fleet, "stacks", change)

    with pytest.raises(ProfileFormatError, match=r"form a tree|does not have"):
        read_everything(fleet)
    assert check(fleet)


def chain(levels: int) -> pa.Table:
    """Return stacks that are below each other, which take few bytes."""
    depth = np.arange(levels, dtype="<i4")
    columns = {
        "stack_hash": depth.astype("<i8"),
        "parent_hash": pa.array(depth.astype("<i8") - 1, mask=depth == 0),
        "depth": depth,
        "name": ["n"] * levels,
        "kind": ["root", *["scope"] * (levels - 1)],
        "file": [None] * levels,
        "line": [None] * levels,
    }
    return pa.table(columns, schema=SCHEMAS["stacks"])


def test_stacks_deeper_than_any_recording_are_refused(fleet: Store) -> None:
    edit(fleet, "stacks", lambda _: chain(checks.MOST_DEPTH + 2))

    with pytest.raises(ProfileFormatError, match="stacks is damaged in a row: depth"):
        read_everything(fleet)


def test_a_profile_that_is_too_deep_is_not_added(store: Store, tmp_path: Path) -> None:
    builder, row = ProfileBuilder(), 0
    for _ in range(checks.MOST_DEPTH + 1):
        row = builder.add(row, "deeper")
    builder.set(row, "time (ns)", 4)

    added = add(store, tmp_path / "deep", builder.build(), ranked(0))

    (reason,) = added.failed.values()
    assert f"more than {checks.MOST_DEPTH} levels" in reason
    assert len(added.new) == 1
    read_everything(store)


def test_files_with_more_rows_than_their_bytes_can_say_are_refused(
    fleet: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "_FREE_ROWS", 1000)
    file = file_of(fleet, "samples")
    rows = pq.ParquetFile(file).read().slice(0, 1)
    with pq.ParquetWriter(file, rows.schema, compression="zstd") as writer:
        writer.write_table(rows.take(pa.array([0] * 400_000)))

    with pytest.raises(ProfileFormatError, match="more than recordings"):
        read_everything(fleet)


def test_texts_that_unpack_to_much_memory_are_refused(
    fleet: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "_FREE_BYTES", 1 << 20)
    edit(fleet, "profiles", lambda table: put("run", "r" * 900_000)(table.take([0] * 40)))

    with pytest.raises(ProfileFormatError, match="take more than"):
        fleet.snapshot().profiles()


@pytest.mark.parametrize(
    "path",
    [
        "date=2023-12-09/job=train/*.parquet",
        "date=2023-12-09/job=train/../../../x.parquet",
        "date=2023-13-09/job=train/x.parquet",
        "date=2023-12-09/x.parquet",
        "/etc/passwd",
        "file:///etc/passwd",
        "date=2023-12-09/job=train/x[0-9].parquet",
        "date=2023-12-09/job=train/gone.parquet",
        "date=2023-12-09/job=train/link.parquet",
        "date=2023-12-09/job=train/pipe.parquet",
        "date=2023-12-09/job=linked/x.parquet",
    ],
)
def test_files_that_an_edited_log_names_are_files_of_the_table(fleet: Store, path: str) -> None:
    file = file_of(fleet, "samples")
    (file.parent / "link.parquet").symlink_to(file)
    os.mkfifo(file.parent / "pipe.parquet")
    (file.parents[1] / "job=linked").symlink_to(file.parent)
    shutil.copy(file, file.with_name("x.parquet"))
    log = max((Path(fleet.uri) / "samples" / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = path
    log.write_text("\n".join(map(json.dumps, actions)))

    with pytest.raises(ProfileFormatError):
        read_everything(fleet)
    assert check(fleet)


def test_a_log_that_cannot_be_read_to_its_end_is_refused(fleet: Store) -> None:
    log = Path(fleet.uri) / "stacks" / "_delta_log"
    (log / "00000000000000000009.json").touch()
    os.truncate(log / "00000000000000000009.json", 15 << 40)
    with pytest.raises(ProfileFormatError, match="bytes"):
        fleet.snapshot()

    (log / "00000000000000000009.json").unlink()
    os.mkfifo(log / "00000000000000000009.json")
    with pytest.raises(ProfileFormatError, match="not a file"):
        fleet.snapshot()


@pytest.mark.parametrize("place", ["stacks", "stacks/_delta_log"])
def test_tables_behind_links_are_refused(fleet: Store, place: str, tmp_path: Path) -> None:
    (Path(fleet.uri) / place).rename(tmp_path / "elsewhere")
    (Path(fleet.uri) / place).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ProfileFormatError, match="link"):
        read_everything(fleet)


def test_texts_of_rows_stay_texts_in_what_upkeep_deletes(fleet: Store) -> None:
    with fleet.snapshot().connect() as reader:
        dead = reader.table("SELECT * REPLACE ('0'' OR ''a'' = ''a' AS batch) FROM stored_samples")
    fleet.append("samples", dead.select(SCHEMAS["samples"].names))

    assert compact(fleet, writer_hours=0).dead_rows == len(dead)
    assert check(fleet) == {}


def test_a_wrong_condition_is_not_damage(fleet: Store) -> None:
    with pytest.raises(UsageError, match="the query fails") as caught:
        fleet.snapshot().profiles("nope = 3")

    assert not isinstance(caught.value, ProfileFormatError)


def test_without_a_file_everything_is_kept(store: Store) -> None:
    policy = read_policy(store)

    assert (policy.rank_days, policy.leave_out) == (None, frozenset())


def test_a_file_changes_what_it_names(store: Store) -> None:
    Path(store.uri, POLICY_FILE).write_text('rank_days = 30\nleave_out = ["host"]\n')

    assert read_policy(store) == Policy(30, 14, frozenset({"host"}))


@pytest.mark.parametrize(
    "content",
    [
        "rank_days = 3",
        "raw_days = -1\nrank_days = 9",
        'leave_out = ["job"]',
        'leave_out = "host"',
        "weeks = 3",
        "raw_days = ",
        "raw_days = 14.5",
        "\xff",
        f"# {'too long' * 10_000}",
    ],
)
def test_a_wrong_file_is_refused(store: Store, content: str) -> None:
    Path(store.uri, POLICY_FILE).write_text(content, "latin-1")

    with pytest.raises(UsageError):
        read_policy(store)


def test_what_is_no_file_is_not_the_default_policy(store: Store) -> None:
    place = Path(store.uri, POLICY_FILE)
    place.mkdir()
    with pytest.raises(OutputError, match="directory"):
        read_policy(store)
    place.rmdir()
    place.symlink_to("nowhere")
    with pytest.raises(OutputError, match="No such file"):
        read_policy(store)
