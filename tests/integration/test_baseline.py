"""``proton baseline`` on the command line."""

from __future__ import annotations

import errno
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.stored import other_gpu, put, stored_profile, stored_run
from published import published

from proton_bench.analysis.run import Run
from proton_bench.cli import main
from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder

Baseline = Callable[..., tuple[int, str, str]]
REFERENCE = re.compile(r"main@\d{8}T\d{6}-[0-9a-f]{8}")


@pytest.fixture
def baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Baseline:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "runs", stored_run(), stored_run(200.0))

    def run(*words: object) -> tuple[int, str, str]:
        code = main(["baseline", *map(str, words)])
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


def saved(baseline: Baseline, *words: object) -> str:
    code, out, _ = baseline("save", "main", *(words or ["runs"]))
    assert code == 0
    assert REFERENCE.fullmatch(out.strip())
    return out.strip()


def test_a_process_of_its_own_saves_promotes_and_lists(baseline: Baseline, tmp_path: Path) -> None:
    def call(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "proton_bench", "baseline", *words],
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout

    reference = call("save", "main", "runs").strip()

    assert call("promote", "main") == f"main is now {reference}; it was unset before\n"
    assert call("list").startswith(f"{reference}  baseline   2 runs, ")


def test_list_distinguishes_baselines_and_candidates(baseline: Baseline) -> None:
    first = saved(baseline)
    baseline("promote", "main")
    second = saved(baseline)

    lines = baseline("list")[1].splitlines()

    assert [line.split()[:2] for line in lines] == [[first, "baseline"], [second, "candidate"]]
    assert lines[0].endswith("NVIDIA H200")


def test_list_of_nothing_says_how_to_begin(baseline: Baseline, tmp_path: Path) -> None:
    assert baseline("list") == (
        0,
        "no baselines; `proton baseline save NAME RUN...` adds one\n",
        "",
    )
    assert not (tmp_path / ".proton").exists()


def test_list_names_what_cannot_be_read(baseline: Baseline, tmp_path: Path) -> None:
    reference = saved(baseline)
    next((tmp_path / ".proton").rglob("*.proton")).write_text("{")

    assert f"UNREADABLE {reference}: " in baseline("list")[1]
    assert baseline("rm", reference)[:2] == (0, f"removed {reference}\n")


def test_a_store_that_is_a_link_is_refused(baseline: Baseline, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".proton").symlink_to(tmp_path / "elsewhere")

    for words in (("save", "main", "runs"), ("list",)):
        code, out, err = baseline(*words)
        assert (code, out, err.count("\n")) == (2, "", 1)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_list_reports_a_corrupt_name_and_lists_the_others(
    baseline: Baseline, tmp_path: Path
) -> None:
    reference = saved(baseline)
    baseline("promote", "main")
    (tmp_path / ".proton/baselines/main/promoted").write_text("gone")

    code, out, _ = baseline("list")

    assert code == 0
    assert out.startswith(f"{reference}  candidate")
    assert "UNREADABLE main: " in out


def test_json_names_its_schema(baseline: Baseline) -> None:
    reference = saved(baseline)
    baseline("promote", "main")

    for words in (["list"], ["show", "main"], ["show", reference]):
        document = published(baseline(*words, "--json")[1])
        assert (document["schema"], document["version"]) == ("proton_bench.baselines", [1, 0])
        (entry,) = document["entries"]
        assert (entry["reference"], entry["state"]) == (reference, "baseline")
        assert {"tier": "tool", "fact": "GPU driver", "value": "570.1"} in entry["facts"]


def test_show_says_on_what(baseline: Baseline) -> None:
    saved(baseline)

    out = baseline("show", "main")[1]

    assert "    hard  GPU name: NVIDIA H200\n" in out
    assert "    001.proton  " in out


def test_promote_says_what_it_was(baseline: Baseline) -> None:
    first, second = saved(baseline), saved(baseline)

    assert "it was unset before" in baseline("promote", first)[1]
    assert baseline("promote", "main")[1] == f"main is now {second}; it was {first}\n"
    assert "it was already" in baseline("promote", "main")[1]


def test_rm_removes_a_baseline(baseline: Baseline) -> None:
    reference = saved(baseline)

    assert baseline("rm", "main") == (0, f"removed {reference}\n", "")
    assert baseline("rm", "main")[0] == 2


def test_another_store_can_be_named(baseline: Baseline, tmp_path: Path) -> None:
    saved(baseline, "runs", "--store", tmp_path / "mine")

    assert "main@" in baseline("list", "--store", tmp_path / "mine")[1]
    assert not (tmp_path / ".proton").exists()


def test_lost_records_are_warned_of(baseline: Baseline, tmp_path: Path) -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={"time (ns)": 1})
    write_profile(builder.build(dropped={"no room": 3}), tmp_path / "lost.proton")

    code, _, err = baseline("save", "main", "lost.proton")

    assert code == 0
    assert "lost.proton lost records" in err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["save", "main"], 2, "Missing argument"),
        (["save", "main", "gone"], 2, "cannot read gone"),
        (["save", "main", "void"], 2, "there is no run in 'void'"),
        (["save", "../x", "runs"], 2, "cannot be the name of a baseline"),
        (["save", "main", "two"], 2, "runs of different kinds cannot be one baseline"),
        (["save", "main", "x.partial.proton"], 2, "before its run ended"),
        (["save", "main", "runs", "--store", "runs/0.proton"], 74, "cannot save main@"),
        (["promote", "main"], 2, "has no baseline 'main'; there are: none"),
        (["promote", "a/b"], 2, "write NAME or NAME@ID"),
        (["show", "main"], 2, "has no baseline 'main'"),
        (["rm", "main@x"], 2, "has no baseline 'main'"),
        (["shw"], 2, "No such command 'shw'"),
        ([], 2, "Missing command; see `proton baseline --help`"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    baseline: Baseline, tmp_path: Path, words: list[str], code: int, message: str
) -> None:
    (tmp_path / "void").mkdir()
    put(tmp_path / "two", stored_run(), Run(stored_profile(**other_gpu(driver="1")), "b"))
    write_profile(stored_profile(), tmp_path / "x.partial.proton")

    found, out, err = baseline(*words)

    assert (found, out) == (code, "")
    (line,) = err.splitlines()
    assert line.startswith("proton: error: ")
    assert message in line


def test_a_full_disk_is_an_output_error_and_leaves_the_store_as_it_was(
    baseline: Baseline, tmp_path: Path
) -> None:
    reference = saved(baseline)
    # Python leaves half a file of bytecode where a disk is full, for all later processes: -B.
    proton = f"exec {shlex.quote(sys.executable)} -B -m proton_bench baseline save main runs"

    # Files may have one KiB, and a run is larger.
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 1; {proton}"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )

    assert (done.returncode, done.stdout) == (74, "")
    assert done.stderr.startswith("proton: error: cannot write ")
    assert os.strerror(errno.EFBIG) in done.stderr
    assert [line.split()[0] for line in baseline("list")[1].splitlines()] == [reference]
    assert len(list((tmp_path / ".proton/baselines/main").iterdir())) == 1


def test_rm_of_candidates(baseline: Baseline) -> None:
    kept = saved(baseline)
    baseline("promote", "main")
    gone = saved(baseline)

    assert baseline("rm", "main", "--candidates") == (0, f"removed {gone}\n", "")
    assert baseline("rm", kept, "--candidates")[0] == 2
