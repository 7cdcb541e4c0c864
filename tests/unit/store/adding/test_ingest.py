from __future__ import annotations

import math
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.fleet import DAY_NS, START_NS, add, ranked
from fakes.stored import put
from fakes.timed import profile_of_times

from proton_bench.analysis.run import Run
from proton_bench.errors import OutputError, UsageError
from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.store.adding import ingest
from proton_bench.store.adding.ingest import Labels, add_files, find_files
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.questions import Question, path_series
from proton_bench.store.restore import read_profiles
from proton_bench.store.retention import POLICY_FILE
from proton_bench.store.schema import SCHEMAS
from proton_bench.store.selection import Selection
from proton_bench.store.store import Store
from proton_bench.store.upkeep import check, compact

DATA = Path(__file__).parents[3] / "data"


def rows(store: Store, query: str) -> list[tuple[Any, ...]]:
    with store.snapshot().connect() as reader:
        found: list[tuple[Any, ...]] = reader.rows(query)
        return found


def total(store: Store) -> float:
    table = path_series(store.snapshot(), Question("fwd", by=()))
    (found,) = table["total"].to_pylist()
    return float(found)


def test_a_profile_is_there_once_however_often_it_is_added(store: Store, tmp_path: Path) -> None:
    first = add(store, tmp_path / "a", ranked(0), ranked(1))
    again = add_files(store, find_files([tmp_path / "a"]), Labels("train"))

    assert (len(first.new), first.known, first.failed) == (2, [], {})
    assert (again.new, len(again.known)) == ([], 2)
    assert total(store) == 2 * 3300.0
    assert check(store) == {}


def test_equal_files_are_one_profile(store: Store, tmp_path: Path) -> None:
    added = add(store, tmp_path / "a", ranked(0), ranked(0))

    assert (len(added.new), added.known) == (1, [tmp_path / "a/1.proton"])


def test_a_file_can_be_of_several_jobs(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path / "a", ranked(0))
    added = add_files(store, find_files([tmp_path / "a"]), Labels("other"))

    assert len(added.new) == 1
    assert rows(store, "SELECT job FROM profiles ORDER BY ALL") == [("other",), ("train",)]


def test_one_commit_for_each_table_whatever_the_number_of_files(
    store: Store, tmp_path: Path
) -> None:
    add(store, tmp_path / "a", *map(ranked, range(70)))

    versions = {name: store.table(name).version() for name in ("samples", "stacks", "profiles")}
    assert versions == dict.fromkeys(versions, 1)


def test_stacks_are_written_once(store: Store, tmp_path: Path) -> None:
    for run in range(3):
        add(store, tmp_path / f"{run}", ranked(run))

    assert rows(store, "SELECT count(*) FROM stored_stacks") == [(4,)]


def test_facts_of_a_profile_are_columns(store: Store, tmp_path: Path) -> None:
    git = {"revision": "abc", "dirty": True}
    add(store, tmp_path / "nightly", ranked(3, git=git, world_size=8))

    columns = 'run, rank, world_size, host, "commit", dirty, gpu_uuid, driver, arch, samples'
    assert rows(store, f"SELECT {columns} FROM profiles") == [
        ("nightly", 3, 8, "here", "abc", True, "GPU-1", "570.1", "90", 4)
    ]
    assert rows(store, "SELECT time_unix_nano, duration_nano FROM profiles") == [
        (START_NS + 3, DAY_NS - 3)
    ]


def test_without_a_start_the_time_of_the_file_counts(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "a.proton"
    write_profile(ranked(0, start_time_ns=None), file)

    add_files(store, [file], Labels())

    assert rows(store, "SELECT time_unix_nano FROM profiles") == [(file.stat().st_mtime_ns,)]


def test_files_that_cannot_be_read_do_not_keep_others_out(store: Store, tmp_path: Path) -> None:
    (tmp_path / "broken.proton").write_bytes(b"\x88nothing")
    (good,) = find_files([put(tmp_path / "good", Run(ranked(0), ""))])
    missing = tmp_path / "missing.proton"

    added = add_files(store, [tmp_path / "broken.proton", missing, good], Labels())

    assert len(added.new) == 1
    assert set(added.failed) == {tmp_path / "broken.proton", missing}


def test_profiles_that_do_not_fit_the_tables_are_left_out_whole(
    store: Store, tmp_path: Path
) -> None:
    huge = replace(ranked(1), dropped={"lost": 2**64 - 1})
    empty = ProfileBuilder().build()

    added = add(store, tmp_path / "a", ranked(0), huge, empty)

    assert (len(added.new), list(added.failed)) == (2, [tmp_path / "a/1.proton"])
    assert total(store) == 3300.0
    assert check(store) == {}


def test_odd_names_are_stored_escaped(store: Store, tmp_path: Path) -> None:
    odd = profile_of_times(
        {"a\x00\x1b[31m\udc80/k'\"": [1.0]}, provenance={"x": math.nan, "y": 2**64 - 1}
    )

    add(store, tmp_path / os.fsdecode(b"run\xff"), odd)

    snapshot = store.snapshot()
    ((_, profile),) = read_profiles(snapshot, snapshot.profiles())
    assert profile.strings[1:] == odd.strings[1:]
    assert profile.provenance["y"] == 2**64 - 1
    assert rows(store, "SELECT run FROM profiles") == [("run\\udcff",)]
    assert check(store) == {}


def test_only_unreadable_files_write_no_profile(store: Store, tmp_path: Path) -> None:
    (tmp_path / "broken.proton").write_bytes(b"\x88nothing")

    added = add_files(store, [tmp_path / "broken.proton"], Labels())

    assert (added.new, len(added.failed)) == ([], 1)
    assert store.table("profiles").version() == 0


def test_folders_are_searched_for_recordings_of_runs(tmp_path: Path) -> None:
    write_profile(ranked(0), put(tmp_path / "b/c", Run(ranked(0), "")) / "0.hatchet")
    put(tmp_path / "a", Run(ranked(0), ""))
    (tmp_path / "notes.txt").write_text("no profile")

    assert find_files([tmp_path, tmp_path / "x"]) == [
        tmp_path / "a/0.proton",
        tmp_path / "b/c/0.proton",
        tmp_path / "x",
    ]


def test_timelines_are_referred_to(store: Store) -> None:
    file = DATA / "golden/timeline.pftrace"

    add_files(store, [file], Labels())

    assert rows(store, "SELECT uri, format, size_bytes FROM timelines") == [
        (str(file), "perfetto", file.stat().st_size)
    ]


@pytest.mark.parametrize("file", sorted((DATA / "upstream").glob("*.hatchet"), key=str)[:3])
def test_other_formats_keep_their_totals(store: Store, file: Path) -> None:
    add_files(store, [file], Labels())

    assert rows(store, "SELECT count(*) FROM profiles") == [(1,)]
    assert check(store) == {}


def test_several_processes_add_the_same_rows(store: Store, tmp_path: Path) -> None:
    files = find_files([put(tmp_path / "a", *(Run(ranked(each), "") for each in range(130)))])
    other = Store.create(tmp_path / "other")

    add_files(store, files, Labels(), processes=1)
    add_files(other, files, Labels(), processes=2)

    query = "SELECT * EXCLUDE (batch) FROM {} ORDER BY ALL"
    for table in ("profiles", "samples", "stacks"):
        columns = query.format(table) if table != "stacks" else "FROM stacks ORDER BY ALL"
        assert rows(store, columns) == rows(other, columns)


def test_an_interrupted_writer_leaves_nothing_that_counts(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Store, table: str, rows: Any) -> None:
        if table == "profiles":
            raise OutputError("the disk is full")
        append(self, table, rows)

    append = Store.append
    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", interrupted)
        with pytest.raises(OutputError, match="disk is full"):
            add(store, tmp_path / "a", ranked(0))

    assert rows(store, "SELECT count(*) FROM samples") == [(0,)]
    assert rows(store, "SELECT count(*) FROM stored_samples") == [(4,)]
    added = add_files(store, find_files([tmp_path / "a"]), Labels("train"))
    assert len(added.new) == 1
    assert total(store) == 3300.0
    assert compact(store, writer_hours=0).dead_rows == 4
    assert total(store) == 3300.0


def test_a_profile_that_two_writers_added_at_once_counts_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "_known_ids", lambda store, job: set())
    for _ in range(2):
        folder = tmp_path / "a"
        shutil.rmtree(folder, ignore_errors=True)
        assert len(add(store, folder, ranked(0)).new) == 1

    assert rows(store, "SELECT count(*) FROM stored_profiles") == [(2,)]
    assert rows(store, "SELECT count(*) FROM profiles") == [(1,)]
    assert total(store) == 3300.0
    assert compact(store, writer_hours=0).dead_rows == 5
    assert rows(store, "SELECT count(*) FROM stored_profiles") == [(1,)]
    assert total(store) == 3300.0


def test_files_have_the_statistics_that_deltalake_gives(store: Store, tmp_path: Path) -> None:
    for run in range(2):
        add(store, tmp_path / f"{run}", ranked(run))
    written = pa.table(store.table("samples").get_add_actions(flatten=True)).to_pylist()
    samples = store.snapshot().tables["samples"].to_pyarrow_table().select(SCHEMAS["samples"].names)

    store.append("samples", samples.cast(SCHEMAS["samples"]))

    again = pa.table(store.table("samples").get_add_actions(flatten=True)).to_pylist()
    (both,) = (each for each in again if each["path"] not in [one["path"] for one in written])
    kinds = {"min.": min, "max.": max, "null_count.": sum, "num_records": sum}
    for name, value in both.items():
        join = next((join for kind, join in kinds.items() if name.startswith(kind)), None)
        if join is not None:
            known = [each[name] for each in written if each[name] is not None]
            assert (join(known) if known else None) == value, name


def test_a_table_of_an_earlier_version_gets_the_columns_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        fields = [each for each in SCHEMAS["samples"] if each.name != "below"]
        patched.setitem(SCHEMAS, "samples", pa.schema(fields))
        store = Store.create(tmp_path / "earlier")

    add(store, tmp_path / "a", ranked(0))

    names = [field.name for field in store.table("samples").schema().fields]
    assert sorted(names) == sorted(SCHEMAS["samples"].names)
    assert total(store) == 3300.0


def test_profiles_without_samples_are_added(store: Store, tmp_path: Path) -> None:
    added = add(store, tmp_path / "a", ProfileBuilder().build())

    assert len(added.new) == 1
    assert store.table("samples").version() == 0
    assert check(store) == {}


@pytest.mark.parametrize("job", ["", "a\nb", "a~b", "x" * 81])
def test_names_of_jobs_are_checked(job: str) -> None:
    with pytest.raises(UsageError):
        Labels(job)


def test_any_printable_name_can_be_a_job(store: Store, tmp_path: Path) -> None:
    jobs = sorted(["it's", "a/b c%20=é", "..", "None", "2024-01-01"])
    for number, job in enumerate(jobs):
        add(store, tmp_path / f"a{number}", ranked(0), job=job)
        add(store, tmp_path / f"b{number}", ranked(1), job=job)

    assert sorted(rows(store, "SELECT DISTINCT job FROM samples")) == [(job,) for job in jobs]
    assert compact(store, reader_hours=0).dead_rows == 0
    counts = rows(store, "SELECT job, count(*) FROM profiles GROUP BY job")
    assert sorted(counts) == [(job, 2) for job in jobs]
    assert total(store) == 2 * len(jobs) * 3300.0


def test_files_that_no_recording_fills_are_named_and_not_read(store: Store, tmp_path: Path) -> None:
    sparse, pipe = tmp_path / "sparse.proton", tmp_path / "pipe.proton"
    sparse.touch()
    os.truncate(sparse, 3 << 40)
    os.mkfifo(pipe)

    added = add_files(store, [sparse, pipe], Labels())

    assert f"{3 << 40} bytes" in added.failed[sparse]
    assert "not a regular file" in added.failed[pipe]


def test_columns_that_the_policy_leaves_out_stay_empty(store: Store, tmp_path: Path) -> None:
    policy = 'leave_out = ["host", "gpu_uuid", "attributes", "source"]'
    Path(store.uri, POLICY_FILE).write_text(policy)
    facts: dict[str, Any] = {
        "host": "rack5-node9",
        "git": {"revision": "f00d"},
        "gpus_at_start": [{"uuid": "GPU-rack5"}],
        "command": ["rack5.py"],
    }
    add(store, tmp_path / "run", ranked(0, **facts))

    with store.snapshot().connect() as reader:
        (row,) = reader.table("FROM profiles").to_pylist()
    assert "rack5" not in str(row)
    assert (row["host"], row["commit"]) == (None, "f00d")
    ((_, profile),) = Selection(store.uri).profiles()
    assert profile.inclusive("time (ns)")[0] > 0
