"""``proton diff`` from files to its output, and its errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.runs import profile_of
from published import published

from proton_bench.cli import main
from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

# But for scopes inside kernels, whose cycles are exclusive: tests/plugins/test_upstream_records.py.
UPSTREAM = sorted((Path(__file__).parents[1] / "data" / "upstream").glob("[!i]*.hatchet"))
BASE = profile_of(("s/a", 1000, 10, "c"), ("s/gone", 70, 1, "x"), ("m.py:3@f/b", 90, 1, ""))
NEW = profile_of(("s/a", 1500, 10, "c"), ("s/fresh", 9, 2, ""), ("m.py:5@f/b", 90, 1, ""))

Diff = Callable[..., str]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_profile(BASE, tmp_path / "base.proton")
    write_profile(NEW, tmp_path / "new.proton")
    return tmp_path


@pytest.fixture
def diff(files: Path, capfd: pytest.CaptureFixture[str]) -> Diff:
    def run(*words: object) -> str:
        code = main(["diff", *map(str, words)])
        out, err = capfd.readouterr()
        assert (code, err) == (0, "")
        return out

    return run


@pytest.fixture
def refused(files: Path, capfd: pytest.CaptureFixture[str]) -> Diff:
    def run(*words: object) -> str:
        code = main(["diff", *map(str, words)])
        out, err = capfd.readouterr()
        assert (code, out) == (5 if "is empty: " in err else 2, "")
        (line,) = err.splitlines()
        assert line.startswith("proton: error: ")
        return line

    return run


def test_filters_hide_rows_and_leave_the_total(diff: Diff) -> None:
    text = diff("base.proton", "new.proton", "-t", "0", "-e", "a$")
    document = published(diff("base.proton", "new.proton", "--json", "-e", "a$", "-d", "2"))

    assert not any(line.endswith("    a") for line in text.splitlines())
    assert (
        "  1 row is left out by -e a$ and changed by +500 ns in total; the rows above still count "
        "them"
    ) in text.splitlines()
    assert document["rows"][0]["inclusive"]["change"] == 439
    own = sum(row["own"]["change"] for row in document["rows"])
    assert own + document["change_deeper"] + document["change_filtered"] == 439
    assert (document["exclude"], document["include"]) == ("a$", None)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["-i", "a", "-e", "b"], "Cannot specify both include and exclude"),
        (["-i", "("], "is not a regular expression"),
        (["-i", "nothing"], "no row is left after -i nothing"),
    ],
)
def test_filters_that_say_nothing_are_refused(refused: Diff, words: list[str], reason: str) -> None:
    assert reason in refused("base.proton", "new.proton", *words)


@pytest.fixture
def models(files: Path) -> Path:
    """Two files of a model whose layers changed alike."""
    for name, time_ns in (("fast", 100), ("slow", 150)):
        builder = ProfileBuilder()
        for number in range(3):
            layer = builder.add(0, f"h.{number} (Block)", FrameKind.LAYER)
            metrics = {"time (ns)": time_ns, "count": 1}
            builder.add(layer, "k", FrameKind.KERNEL, metrics=metrics)
        write_profile(builder.build(), files / f"{name}.proton")
    return files


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["h.* (Block) x3 › k"]),
        (["--all"], ["h.0 (Block)", "k", "h.1 (Block)", "k", "h.2 (Block)", "k"]),
        (["-i", "h.1"], ["h.1 (Block) › k"]),
        (["--by", "kernel"], ["k"]),
    ],
)
def test_layers_that_changed_alike_are_one_row_unless_one_is_asked_for(
    models: Path, diff: Diff, words: list[str], expected: list[str]
) -> None:
    lines = diff("fast.proton", "slow.proton", *words).partition("Legend")[0].splitlines()

    at = next(place for place, line in enumerate(lines) if line.endswith(" ROOT"))
    shown = [line.split("  ")[-1].strip() for line in lines[at + 1 :] if line]
    assert shown == expected


def test_json_has_each_layer(models: Path, diff: Diff) -> None:
    rows = published(diff("fast.proton", "slow.proton", "--json"))["rows"]

    assert len(rows) == 1 + 3 + 3


def test_a_process_of_its_own_says_what_changed(files: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "diff", "base.proton", "new.proton"],
        cwd=files,
        env=os.environ | {"COLUMNS": "40"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    head, *rows = done.stdout.splitlines()
    assert (
        head == "+37.8 % (+439 ns): +500 ns a under s, slower per call by 50 %; -70 ns gone "
        "under s, which is gone"
    )
    assert any(row.endswith("gone  REMOVED") for row in rows)


@pytest.mark.parametrize("path", UPSTREAM, ids=lambda path: path.stem)
def test_files_of_upstream_do_not_differ_from_themselves(diff: Diff, path: Path) -> None:
    document = published(diff(path, path, "--json"))

    assert document["headline"].startswith("no change of ")
    assert all(row["inclusive"]["change"] == 0 for row in document["rows"])
    assert {row["fate"] for row in document["rows"]} == {"matched"}


def test_formats_can_be_mixed(diff: Diff, files: Path) -> None:
    write_profile(NEW, files / "new.hatchet")

    native, other = (
        published(diff("base.proton", name, "--json")) for name in ("new.proton", "new.hatchet")
    )

    totals = [each["rows"][0]["inclusive"]["change"] for each in (native, other)]
    assert totals == [439, 439]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--by", "kernel"], ["ROOT", "a", "gone", "fresh", "b"]),
        (["--by", "scope"], ["ROOT", "s", "m.py:5@f"]),
        (["--by", "test"], ["ROOT"]),
        (["-d", "2"], ["ROOT", "s", "m.py:5@f"]),
        (["-t", "100"], ["ROOT", "s", "a"]),
        (["-t", "10%"], ["ROOT", "s", "a"]),
        (["-m", "count", "--by", "kernel"], ["ROOT", "fresh", "gone", "a", "b"]),
        (["-m", "avg_time/us", "--by", "kernel", "-t", "0.01"], ["ROOT", "a", "gone"]),
    ],
)
def test_options_choose_rows(diff: Diff, words: list[str], names: list[str]) -> None:
    document = published(diff("base.proton", "new.proton", "--json", *words))

    assert [row["name"] for row in document["rows"]] == names


def test_raw_names_distinguish_lines(diff: Diff) -> None:
    document = published(diff("base.proton", "new.proton", "--json", "--raw-names"))

    states = {row["name"]: row["fate"] for row in document["rows"]}
    assert (states["m.py:3@f"], states["m.py:5@f"]) == ("removed", "new")


def stepped(path: Path, numbers: range, gemm_ns: int) -> None:
    paths = (("linear/gemm", gemm_ns), ("gelu", 150))
    rows = [(f"Epoch {n}/{name}", time, 1, "") for n in numbers for name, time in paths]
    write_profile(profile_of(*rows), path)


@pytest.mark.parametrize("numbers", [range(11, 15), range(200, 204)])
def test_steps_of_other_numbers_pair(diff: Diff, files: Path, numbers: range) -> None:
    stepped(files / "before.proton", range(1, 5), 1000)
    stepped(files / "after.proton", numbers, 1100)

    same = published(diff("before.proton", "before.proton", "--json"))
    slower = published(diff("before.proton", "after.proton", "--json"))

    assert {row["inclusive"]["change"] for row in same["rows"]} == {0}
    assert {row["fate"] for row in slower["rows"]} == {"matched"}
    changed = [row["name"] for row in slower["rows"] if row["inclusive"]["change"]]
    assert changed == ["ROOT", "Epoch *", "linear", "gemm"]


def test_markdown_is_a_table(diff: Diff) -> None:
    lines = diff("base.proton", "new.proton", "--markdown").splitlines()

    assert lines[0].startswith("**+37.8 % (+439 ns): ")
    assert any(line.startswith("| 1.000 | 1.500 |") for line in lines)


@pytest.mark.parametrize(
    "words",
    [
        ["base.proton", "new.proton", "--base", "base2.proton", "--new", "new2.proton"],
        [
            "--base",
            "base.proton",
            "--base",
            "base2.proton",
            "--new",
            "new.proton",
            "--new",
            "new2.proton",
        ],
    ],
)
def test_several_runs_of_a_side_give_an_interval(diff: Diff, files: Path, words: list[str]) -> None:
    write_profile(profile_of(("s/a", 1100, 10, "c")), files / "base2.proton")
    write_profile(profile_of(("s/a", 1700, 10, "c")), files / "new2.proton")

    document = published(diff(*words, "--json"))

    assert [run["source"] for run in document["base"]] == ["base.proton", "base2.proton"]
    assert [run["total"] for run in document["new"]] == [1599, 1700]
    low, high = document["rows"][0]["interval"]
    assert low < document["rows"][0]["inclusive"]["change"] < high


def empty() -> Profile:
    return ProfileBuilder().build()


def with_metrics(**metrics: Any) -> Profile:
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={name.replace("__", " (") + ")": metrics[name] for name in metrics})
    return builder.build()


@pytest.mark.parametrize(
    ("other", "words", "message"),
    [
        (empty(), [], "'other.proton' is empty: it has no rows"),
        (with_metrics(time__us=5), [], "the units differ"),
        (with_metrics(heat__K=5), [], "no metric in common: 'base.proton' has time, count"),
        (with_metrics(heat__K=5), ["-m", "time"], "metric 'time' is not in 'other.proton'"),
        (NEW, ["-m", "nothing"], "recorded are count, time. `proton view --list FILE` shows"),
        (NEW, ["-m", "time,count"], "not one metric"),
        (NEW, ["-m", "time/h"], "Unsupported unit h"),
        (NEW, ["-t", "much"], "threshold 'much' is neither a number"),
        (NEW, ["-d", "0"], "a depth of 0 shows nothing"),
        (NEW, ["--json", "--markdown"], "--json and --markdown exclude each other"),
        (NEW, ["third.proton"], "takes two profiles, BASE and NEW"),
        (
            profile_of(("k", 5, 1, ""), device=Device("HIP", 0, "gfx942")),
            [],
            "'base.proton' ran on CUDA and 'other.proton' on HIP",
        ),
        (
            profile_of(("k", 5, 1, ""), device=Device("CUDA", 0, "80", 108)),
            [],
            "give --ignore-devices to compare them anyway",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(
    refused: Diff, files: Path, other: Profile, words: list[str], message: str
) -> None:
    write_profile(other, files / "other.proton")

    assert message in refused("base.proton", "other.proton", *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name two profiles, BASE and NEW"),
        (["base.proton"], "takes two profiles, BASE and NEW, got 'base.proton'"),
        (["--base", "base.proton"], "at least one --base and one --new"),
        (["base.proton", "missing.proton"], "cannot read missing.proton"),
        (["base.proton", "corrupt.proton"], "corrupt.proton"),
        (["base.proton", "new.proton", "--by", "colour"], "'colour'"),
    ],
)
def test_wrong_files_are_refused_in_one_line(
    refused: Diff, files: Path, words: list[str], message: str
) -> None:
    (files / "corrupt.proton").write_bytes((files / "new.proton").read_bytes()[:200])

    assert message in refused(*words)


def test_different_devices_are_compared_on_request(diff: Diff, files: Path) -> None:
    moved = profile_of(("s/a", 800, 10, ""), device=Device("HIP", 0, "gfx942"))
    write_profile(moved, files / "hip.proton")

    document = published(diff("base.proton", "hip.proton", "--ignore-devices", "--json"))

    states = {row["name"]: row["fate"] for row in document["rows"]}
    assert states["a"] == "matched"


def test_counts_beyond_any_integer_are_compared(diff: Diff, files: Path) -> None:
    metrics = {"count": 10**30, "device_id": "0", "device_type": "CUDA", "time (ns)": 1000}
    for name in ("k", "other"):
        leaf = {"children": [], "frame": {"name": name, "type": "function"}, "metrics": metrics}
        root = {"children": [leaf], "frame": {"name": "ROOT", "type": "function"}, "metrics": {}}
        (files / f"{name}.hatchet").write_text(json.dumps([root]))

    assert "other" in diff("k.hatchet", "other.hatchet")


def test_hostile_names_stay_text_everywhere(diff: Diff, files: Path) -> None:
    name = "<script>[/bold]|`\x1b[2J\n"
    write_profile(profile_of((name.replace("/", "\\"), 5, 1, "")), files / "hostile.proton")

    for words in ([], ["--markdown"], ["--json"]):
        shown = diff("base.proton", "hostile.proton", "-t", "0", *words)
        assert "\x1b" not in shown
        assert "script" in shown
