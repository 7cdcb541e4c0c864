"""``proton view``, ``proton export`` and ``proton-viewer``, also on upstream's files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.profiles import deep_profile, training_profile
from published import published

from proton_bench.cli import viewer
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind

UPSTREAM = Path(__file__).parents[1] / "data" / "upstream"
TREES = sorted(UPSTREAM.glob("*.hatchet"))
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def proton_viewer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        line = [str(word) for word in words]
        try:
            code = viewer.main(line)
        except SystemExit as end:  # of -h
            code = int(end.code or 0)
        return subprocess.CompletedProcess(line, code, *capfd.readouterr())

    return run


@pytest.fixture
def training(tmp_path: Path) -> Path:
    path = tmp_path / "x.proton"
    write_profile(training_profile(), path)
    return path


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


def refused(done: subprocess.CompletedProcess[str], code: int = 2) -> str:
    assert done.returncode == code
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("proton: error: ")
    return line


# -- proton view ---------------------------------------------------------------------------------
@pytest.mark.parametrize("path", TREES, ids=lambda path: path.stem)
def test_every_file_of_upstream_is_shown_by_default(proton_here: Run, path: Path) -> None:
    lines = succeeded(proton_here("view", path)).splitlines()

    expected = "cycles  " if path.stem.startswith("intra") else "time/"
    assert lines[3].startswith(expected)
    assert lines[4].endswith("  ROOT")


def test_times_and_counts_are_those_of_upstreams_file(proton_here: Run) -> None:
    path = UPSTREAM / "eager-tree.hatchet"

    lines = succeeded(proton_here("view", path, "-m", "time/ms,count", "-d", "2")).splitlines()

    assert lines[4].split() == ["4.323", "1404", "ROOT"]
    assert lines[5].split() == ["2.682", "986", "├─", "backward"]


def test_piped_names_are_whole(proton_here: Run) -> None:
    path = UPSTREAM / "eager-tree.hatchet"
    longest = max(read_profile(path).strings, key=len)

    text = succeeded(proton_here("view", path, "--raw-names", COLUMNS="40"))

    assert len(longest) > 200
    assert longest in text


def test_json_is_one_versioned_document(proton_here: Run) -> None:
    found = published(succeeded(proton_here("view", UPSTREAM / "eager-tree.hatchet", "--json")))

    assert (found["schema"], found["version"]) == ("proton_bench.view", [1, 0])
    assert found["rows"][0]["name"] == "ROOT"
    assert all(row["parent"] < position for position, row in enumerate(found["rows"]) if position)


def test_filters_threshold_and_format(proton_here: Run, training: Path) -> None:
    text = succeeded(
        proton_here(
            *("view", training, "-m", "time/ms", "-i", "backward", "-t", "2"),
            *("-f", "function_line"),
        )
    )

    assert "@backward" in text
    assert "/home/me" not in text
    assert "kernel_1" not in text
    assert "forward" not in text


def test_exclude_drops_a_subtree(proton_here: Run, training: Path) -> None:
    text = succeeded(proton_here("view", training, "-e", "forward"))

    assert "backward" in text
    assert "forward" not in text


def test_list_names_metrics(proton_here: Run, training: Path) -> None:
    text = succeeded(proton_here("view", training, "--list"))
    found = published(succeeded(proton_here("view", training, "-l", "--json")))

    assert "- time\n" in text
    assert "- tflop16/s\n" in text
    assert found["schema"] == "proton_bench.metrics"


def test_partial_and_dropped_stand_in_the_header(proton_here: Run, tmp_path: Path) -> None:
    profile = replace(training_profile(), partial=True, dropped={"buffer full": 7})
    write_profile(profile, tmp_path / "y.proton")

    text = succeeded(proton_here("view", "y.proton"))

    assert "PARTIAL: the file was written before the run ended" in text
    assert "DROPPED: 7 records: buffer full" in text


def test_empty_profile_is_warned_about(proton_here: Run, tmp_path: Path) -> None:
    write_profile(ProfileBuilder().build(), tmp_path / "empty.proton")

    done = proton_here("view", "empty.proton")

    assert done.returncode == 0
    assert "warning: 'empty.proton' is empty" in done.stderr
    assert "ROOT" in done.stdout


def test_hostile_names_stay_on_their_line(proton_here: Run, tmp_path: Path) -> None:
    builder = ProfileBuilder()
    for name in ("[red]a[/red]", "b\nb", "c\0c", "d\x1b[2Jd", "e" * 1_000_000, ":smile:"):
        builder.add(0, name, FrameKind.KERNEL, metrics={"time (ns)": 1, "count": 1})
    write_profile(builder.build(), tmp_path / "hostile.proton")

    text = succeeded(proton_here("view", "hostile.proton", "--raw-names"))

    assert "[red]a[/red]\n" in text
    assert "b\\nb\n" in text
    assert "c\\x00c\n" in text
    assert "d\\x1b[2Jd\n" in text
    assert ":smile:\n" in text
    assert "e... (995904 more characters)\n" in text


def test_very_deep_tree_is_shown(proton_here: Run, tmp_path: Path) -> None:
    write_profile(deep_profile(10_000), tmp_path / "deep.proton")

    text = succeeded(proton_here("view", "deep.proton", "-d", "20000", "-m", "time"))
    found = published(succeeded(proton_here("view", "deep.proton", "-d", "20000", "--json")))

    assert text.splitlines()[10_004].endswith("[10000] level 9999")
    assert found["rows"][-1]["depth"] == 10_000


def test_colours_follow_the_environment(proton_here: Run, training: Path) -> None:
    assert "\x1b[" in succeeded(proton_here("view", training, FORCE_COLOR="1"))
    assert "\x1b" not in succeeded(proton_here("view", training, FORCE_COLOR="1", NO_COLOR="1"))
    assert "\x1b" not in succeeded(proton_here("view", training))


def test_output_without_unicode_works(proton: Run, training: Path) -> None:
    text = succeeded(proton("view", training, PYTHONIOENCODING="ascii"))

    assert "`- kernel_1" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-m", "nope"], "Metric nope is not found: recorded are count, flops16, label, time"),
        (["-m", "time/days"], "Unsupported unit days"),
        (["-m", "time,,count"], "empty name"),
        (["-i", "a", "-e", "b"], "Cannot specify both include and exclude"),
        (["-i", "("], "is not a regular expression"),
        (["-i", "nothing"], "no row is left after -i nothing"),
        (["-t", "1e9"], "no row is left"),
        (["-d", "0"], "depth of 0"),
        (["-f", "shorter"], "'shorter'"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_wrong_option_is_one_clear_line(
    proton_here: Run, training: Path, words: list[str], message: str
) -> None:
    assert message in refused(proton_here("view", training, *words))


@pytest.mark.parametrize("suffix", [".proton", ".hatchet", ".hatchet_msgpack", ".json"])
@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty"])
def test_damaged_file_is_one_clear_line(
    proton_here: Run, tmp_path: Path, suffix: str, damage: str
) -> None:
    path = tmp_path / f"bad{suffix}"
    write_profile(training_profile(), path)
    content = path.read_bytes()
    path.write_bytes(
        {"truncated": content[: len(content) // 2], "garbage": b"\xff\0" * 99, "empty": b""}[damage]
    )

    assert path.name in refused(proton_here("view", path))


def test_missing_file_and_folder_are_named(proton_here: Run, tmp_path: Path) -> None:
    assert "nowhere.proton" in refused(proton_here("view", "nowhere.proton"))
    assert "is not a file" in refused(proton_here("view", tmp_path))


def test_reader_of_a_pipe_may_leave(tmp_path: Path) -> None:
    write_profile(deep_profile(5_000), tmp_path / "deep.proton")
    command = [sys.executable, "-m", "proton_bench", "view", "deep.proton", "-d", "6000"]

    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as shown:
        assert shown.stdout is not None
        assert shown.stderr is not None
        shown.stdout.read(1)
        shown.stdout.close()
        errors = shown.stderr.read()

    assert errors == b""
    assert shown.returncode == 141


# -- proton-viewer -------------------------------------------------------------------------------
def test_viewer_helps(proton_viewer: Run) -> None:
    text = succeeded(proton_viewer("-h"))

    for flag in ("--list", "--metrics", "--include", "--exclude", "--threshold", "--depth"):
        assert flag in text
    for flag in ("--format", "--print-sorted", "--diff-profile", "-diff"):
        assert flag in text


def test_viewer_shows_upstreams_file(proton_viewer: Run) -> None:
    path = UPSTREAM / "tinymeta-hook.hatchet"

    lines = succeeded(
        proton_viewer("-m", "util,time/ms,gbyte/s,tflop32/s", path, "--print-sorted")
    ).splitlines()

    # As upstream's own viewer prints it: 0.003 0.070 14.125 0.001.
    values = [float(word) for word in lines[7].split()[:4]]
    assert values == pytest.approx([0.002934, 0.0696, 14.125, 0.001177], rel=1e-3)
    assert lines[7].endswith("└─ add_1024")


def test_viewer_lists_metrics(proton_viewer: Run) -> None:
    text = succeeded(proton_viewer("-l", UPSTREAM / "tinymeta-hook.hatchet"))

    assert "Available inclusive metrics:\n- bytes\n- count\n- flops32\n- time\n" in text


def test_viewer_subtracts_the_diff_profile_from_the_file(
    proton_viewer: Run, tmp_path: Path
) -> None:
    for name, time in (("old", 3_000_000), ("new", 5_000_000)):
        builder = ProfileBuilder()
        builder.add(0, "both", metrics={"time (ns)": time})
        builder.add(0, f"only {name}", metrics={"time (ns)": 1_000_000})
        write_profile(builder.build(), tmp_path / f"{name}.proton")

    text = succeeded(proton_viewer("-m", "time/ms", "-diff", "old.proton", "new.proton"))

    rows = {line.split("─ ")[-1]: line.split()[0] for line in text.splitlines() if "─ " in line}
    assert rows == {"both": "2.000", "only old": "-1.000", "only new": "1.000"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Must specify a file to read"),
        (["a.hatchet", "b.hatchet"], "got 'a.hatchet', 'b.hatchet'"),
        (["-i", "a", "-e", "b", "x"], "Cannot specify both include and exclude"),
        (["missing.hatchet"], "cannot read missing.hatchet"),
    ],
)
def test_viewer_refuses_in_one_line(proton_viewer: Run, words: list[str], message: str) -> None:
    assert message in refused(proton_viewer(*words))


# -- proton export -------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["hatchet", "hatchet_msgpack", "proton", "json"])
def test_exported_file_has_the_same_sums(proton_here: Run, tmp_path: Path, name: str) -> None:
    source = UPSTREAM / "eager-tree.hatchet"

    succeeded(proton_here("export", source, "--to", name, "-o", "copy.x"))

    exported, original = read_profile(tmp_path / "copy.x"), read_profile(source)
    assert exported.inclusive("time (ns)").tolist() == original.inclusive("time (ns)").tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["copy.x"]


def test_exported_file_stands_beside_the_original(
    proton_here: Run, training: Path, tmp_path: Path
) -> None:
    succeeded(proton_here("export", training, "--to", "hatchet"))

    assert (tmp_path / "x.hatchet").exists()


def test_export_writes_to_standard_output(proton_here: Run, training: Path) -> None:
    found: Any = json.loads(
        succeeded(proton_here("export", training, "--to", "hatchet", "-o", "-"))
    )

    assert found[0]["frame"]["name"] == "ROOT"


def test_export_warns_of_what_is_lost(proton_here: Run, tmp_path: Path) -> None:
    write_profile(deep_profile(2000), tmp_path / "deep.proton")

    done = proton_here("export", "deep.proton", "--to", "hatchet")

    assert done.returncode == 0
    assert "proton: warning: " in done.stderr
    assert "400" in done.stderr
    assert read_profile(tmp_path / "deep.hatchet").inclusive("time (ns)")[0] == 2000


def test_export_of_a_folder_is_refused_by_name(proton_here: Run) -> None:
    assert " .: " in refused(proton_here("export", ".", "--to", "json"))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--to", "spedscope"], 2, "did you mean 'speedscope'?"),
        (["--to", "xml"], 2, "'xml'; choose from: proton, hatchet"),
        (["--to", "proton"], 2, "is an input"),
        (["--to", "json", "-o", "/proc/nowhere/x.json"], 74, "cannot write '/proc/nowhere/x.json'"),
        ([], 2, "--to"),
    ],
)
def test_export_refuses_in_one_line(
    proton_here: Run, training: Path, tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    assert message in refused(proton_here("export", training, *words), code)
    assert [path.name for path in tmp_path.iterdir()] == ["x.proton"]
