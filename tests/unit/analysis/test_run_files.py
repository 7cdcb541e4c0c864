from __future__ import annotations

from pathlib import Path

import pytest
from fakes.session_chrome import step, trace
from fakes.stored import put, stored_profile, stored_run

from proton_bench.analysis.run import best_of, read_runs
from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind


def test_files_and_folders_give_their_runs_in_order(tmp_path: Path) -> None:
    folder = put(tmp_path / "runs", stored_run(1.0), stored_run(2.0))
    write_profile(stored_profile(3.0), tmp_path / "x.proton")

    runs = read_runs([tmp_path / "x.proton", folder])

    names = [Path(run.source).name for run in runs]
    assert names == ["x.proton", "0.proton", "1.proton"]


def test_of_what_one_run_left_the_last_file_of_the_best_format_counts() -> None:
    names = ["x.hatchet", "x.part_0.proton", "x.part_1.proton", "x.html"]

    assert best_of([Path(name) for name in names]) == Path("x.part_1.proton")
    assert best_of([Path("x.chrome_trace"), Path("x.hatchet")]) == Path("x.hatchet")


def test_a_run_in_two_formats_is_one_run(tmp_path: Path) -> None:
    for suffix in ("hatchet", "proton", "hatchet_msgpack"):
        write_profile(stored_profile(), tmp_path / f"run.{suffix}")
    (tmp_path / "notes.txt").write_text("no run")
    (tmp_path / "table.json").write_text("{}")

    assert [run.source for run in read_runs([tmp_path])] == [str(tmp_path / "run.proton")]


def test_timelines_are_runs_where_nothing_else_is_there(tmp_path: Path) -> None:
    write_profile(stored_profile(), tmp_path / "a.hatchet")
    for name in ("a", "b"):
        (tmp_path / f"{name}.chrome_trace").write_bytes(trace(step()))

    names = [Path(run.source).name for run in read_runs([tmp_path])]
    assert names == ["a.hatchet", "b.chrome_trace"]


def test_what_a_killed_run_left_counts_only_where_the_run_never_ended(tmp_path: Path) -> None:
    write_profile(stored_profile(), tmp_path / "a.proton")
    write_profile(stored_profile(), tmp_path / "a.partial.proton")
    write_profile(stored_profile(), tmp_path / "b.partial.proton")

    runs = read_runs([tmp_path])

    assert [run.profile.partial for run in runs] == [False, True]


def test_the_same_file_twice_is_refused(tmp_path: Path) -> None:
    folder = put(tmp_path / "runs", stored_run())

    with pytest.raises(UsageError, match="named twice"):
        read_runs([folder, folder / "0.proton"])


def test_an_empty_folder_has_no_runs(tmp_path: Path) -> None:
    assert read_runs([tmp_path]) == []


@pytest.mark.parametrize("kind", ["nothing", "rows", "trials"])
def test_an_empty_profile_is_an_error(tmp_path: Path, kind: str) -> None:
    builder = ProfileBuilder()
    if kind == "rows":
        builder.add(0, "scope", FrameKind.SCOPE)
    elif kind == "trials":
        scope = builder.add(0, "<autotune>", FrameKind.SCOPE)
        builder.add(scope, "k", FrameKind.KERNEL, metrics={"time (ns)": 3})
    write_profile(builder.build(), tmp_path / "x.proton")

    with pytest.raises(UsageError, match="is empty"):
        read_runs([tmp_path])


def test_a_half_written_profile_is_corrupt(tmp_path: Path) -> None:
    file = put(tmp_path, stored_run()) / "0.proton"
    file.write_bytes(file.read_bytes()[:300])

    with pytest.raises(ProfileFormatError, match=r"0\.proton"):
        read_runs([tmp_path])
