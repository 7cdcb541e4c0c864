"""``proton gate`` from files, folders and names to its exit codes and everything it writes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from fakes.gated import GPU, Kernel, session
from fakes.stored import put
from published import published

from proton_bench.analysis.run import Run
from proton_bench.cli import main
from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.profile import Profile

HOSTILE = "<script>[bold]::error::x|`@me\n::error::\x1b[31m"
QUIET = [Kernel(f"fwd/kernel_{place}", 60_000.0 + 9_000.0 * place) for place in range(8)]
SLOW = Kernel(f"fwd/{HOSTILE.replace('/', '')}", slower=0.06)

Gate = Callable[..., tuple[int, str, str]]


def facts_of(runs: list[Run], **facts: Any) -> list[Run]:
    """Return the runs with other provenance."""
    return [Run(with_facts(run.profile, **facts), run.source) for run in runs]


def with_facts(profile: Profile, **facts: Any) -> Profile:
    return replace(profile, provenance=profile.provenance.updated(**facts))


@pytest.fixture(scope="module")
def sides() -> dict[str, list[Run]]:
    """Return sides by the names of their folders."""
    base, slow = session([*QUIET, SLOW])
    _, same = session([*QUIET, Kernel(SLOW.path)])
    _, noisy = session([*QUIET, Kernel(SLOW.path, between=0.06, slower=0.02)])
    _, more = session([*QUIET, Kernel(SLOW.path, new_launches=22)])
    return {
        "base": base,
        "slow": slow,
        "same": same,
        "noisy": noisy,
        "more": more,
        "foreign": facts_of(same, gpus_at_start=[{**GPU, "name": "NVIDIA B200"}]),
        "renamed": session([Kernel("other/program")])[1],
    }


@pytest.fixture
def folder(sides: dict[str, list[Run]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    for name, runs in sides.items():
        put(tmp_path / name, *runs)
    return tmp_path


@pytest.fixture
def gate(folder: Path, capfd: pytest.CaptureFixture[str]) -> Gate:
    def run(*words: object) -> tuple[int, str, str]:
        code = main(["gate", *map(str, words)])
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


# -- exit codes ----------------------------------------------------------------------------------
CASES = [
    (["base", "same"], 0, "PASS"),
    (["base", "slow"], 1, "FAIL"),
    (["base", "more", "-t", "calls:0"], 1, "FAIL"),
    (["base", "noisy"], 3, "INCONCLUSIVE"),
    (["base", "noisy", "--set", "inconclusive=pass"], 0, "INCONCLUSIVE"),
    (["base/0.proton", "slow/0.proton"], 3, "INCONCLUSIVE"),
    (["base/0.proton", "slow/0.proton", "-t", "calls:0"], 0, "PASS"),
    (["base/0.proton", "more/0.proton", "-t", "calls:0"], 1, "FAIL"),
    (["foreign", "same"], 4, "INCOMPARABLE"),
    (["gone", "same"], 5, "NO-BASELINE"),
    (["gone.proton", "same"], 5, "NO-BASELINE"),
    (["renamed", "same"], 5, "NO-BASELINE"),
    (["empty", "same"], 5, "NO-BASELINE"),
]


@pytest.mark.parametrize(("words", "code", "verdict"), CASES)
def test_exit_code_is_that_of_the_verdict(
    gate: Gate, folder: Path, words: list[str], code: int, verdict: str
) -> None:
    (folder / "empty").mkdir()

    found, out, _ = gate(*words, "--json")

    document = published(out)
    assert (found, document["exit_code"], document["verdict"]) == (code, code, verdict)


@pytest.mark.parametrize(
    ("words", "code"),
    [(["base", "same"], 0), (["base", "gone"], 2), (["base", "noisy"], 3)],
)
def test_a_process_of_its_own_exits_alike(folder: Path, words: list[str], code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "gate", *words],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )

    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (code != 2)


def empty() -> Profile:
    return ProfileBuilder().build()


def hip_profile() -> Profile:
    builder = ProfileBuilder()
    gpu = Device("HIP", 0, "gfx942")
    builder.add(0, "kernel", metrics={"time (ns)": 5, "count": 1}, device=gpu)
    return builder.build()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "a gate needs two sides, BASE and NEW"),
        (["base"], "a gate needs two sides"),
        (["base", "gone"], "there is no file, folder or baseline 'gone'"),
        (["gone", "alsogone"], "there is no file, folder or baseline 'alsogone'"),
        (["base", "void"], "no run in 'void'"),
        (["empty.proton", "same"], "empty.proton is empty"),
        (["base", "empty.proton"], "empty.proton is empty"),
        (["nothing.proton", "same"], "nothing.proton: the file is empty"),
        (["half.proton", "same"], "half.proton"),
        (["foreign", "half.proton"], "half.proton"),
        (["gone", "half.proton"], "half.proton"),
        (["base", "same", "-t", "median:"], "column 8"),
        (["base", "same", "-t", "heat:5%"], "'heat' is not a metric"),
        (["base", "same", "--policy", "gone.toml"], "cannot be read"),
        (["base", "same", "--set", "colour=red"], "unknown key 'colour'"),
        (["base", "same", "--json", "--markdown", "-"], "give one of them"),
        (["base", "same", "--set", "inconclusive=maybe"], "'maybe'"),
        (["base", "same", "--colour"], "--colour"),
    ],
)
def test_wrong_usage_and_files_without_runs_win_over_everything(
    gate: Gate, folder: Path, words: list[str], message: str
) -> None:
    (folder / "void").mkdir()
    write_profile(empty(), folder / "empty.proton")
    (folder / "nothing.proton").touch()
    (folder / "half.proton").write_bytes((folder / "base" / "0.proton").read_bytes()[:400])

    code, out, err = gate(*words)

    assert (code, out) == (5 if "empty.proton" in words else 2, "")
    assert err.startswith("proton: error: ")
    assert message in err


def test_a_base_of_another_kind_of_device_is_incomparable(gate: Gate, folder: Path) -> None:
    write_profile(hip_profile(), folder / "hip.proton")

    assert gate("hip.proton", "same")[0] == 4
    assert gate("hip.proton", "same", "--set", "ignore-devices=true")[0] == 5


def test_a_base_that_a_killed_run_left_is_inconclusive(gate: Gate, folder: Path) -> None:
    for file in (folder / "base").iterdir():
        file.rename(file.with_suffix(".partial.proton"))

    code, out, _ = gate("base", "slow")

    assert code == 3
    assert "unfinished" in out


def test_a_gate_that_passes_undecided_warns(gate: Gate) -> None:
    code, _, err = gate("base", "noisy", "--set", "inconclusive=pass")

    assert code == 0
    assert err.startswith("proton: warning: the gate is undecided")


# -- policy --------------------------------------------------------------------------------------
def test_the_project_s_policy_holds(gate: Gate, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.proton.gate]\nthreshold = "15%"\n')

    assert gate("base", "slow")[0] == 0
    assert gate("base", "slow", "-t", "median:3%")[0] == 1
    (folder / "strict.toml").write_text('threshold = "3%"\n')
    assert gate("base", "slow", "--policy", "strict.toml")[0] == 1


def test_a_quarantined_path_is_shown_and_never_fails(gate: Gate) -> None:
    code, out, _ = gate("base", "slow", "--set", "quarantine=*script*")

    assert code == 0
    assert "quarantined by the policy" in out


def test_a_threshold_of_launches_fails_on_new_paths(gate: Gate, folder: Path) -> None:
    small = Kernel("fwd/extra", 10_000.0)
    put(folder / "extra", *session([*QUIET, Kernel(SLOW.path), small])[1])

    assert gate("base", "extra")[0] == 0
    code, out, _ = gate("base", "extra", "-t", "calls:0")
    assert code == 1
    assert "FAILS NEW" in out


# -- baselines -----------------------------------------------------------------------------------
def test_a_baseline_counts_once_it_was_promoted(gate: Gate) -> None:
    main(["baseline", "save", "main", "base"])
    code, out, _ = gate("main", "slow")
    assert code == 5
    assert "\nNO-BASELINE: " in out

    main(["baseline", "promote", "main"])
    assert gate("main", "slow")[0] == 1
    assert gate("main", "same")[0] == 0


def test_a_slow_run_that_is_saved_does_not_become_its_own_baseline(gate: Gate) -> None:
    main(["baseline", "save", "main", "base"])
    main(["baseline", "promote", "main"])

    first = gate("main", "slow", "--save", "main")
    second = gate("main", "slow", "--save", "main")

    assert (first[0], second[0]) == (1, 1)
    assert first[2].startswith("proton: saved as candidate main@")


def test_a_baseline_of_another_device_is_incomparable(gate: Gate) -> None:
    main(["baseline", "save", "main", "foreign"])
    main(["baseline", "promote", "main"])

    assert gate("main", "same")[0] == 4


def test_a_damaged_baseline_is_corrupt(gate: Gate, folder: Path) -> None:
    main(["baseline", "save", "main", "base"])
    main(["baseline", "promote", "main"])
    (file,) = (folder / ".proton").glob("baselines/*/*/003.proton")
    file.write_bytes(file.read_bytes()[:-1])

    code, _, err = gate("main", "same")

    assert code == 2
    assert "003.proton" in err


# -- outputs -------------------------------------------------------------------------------------
def test_every_output_of_one_gate_agrees_and_names_stay_text(
    gate: Gate, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = folder / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))

    code, out, err = gate(
        "base", "slow", "--github", "--junit", "gate.xml", "--markdown", "comment.md", "--all"
    )

    assert (code, err) == (1, "")
    stop, *rest = out.splitlines()
    report, (resume, annotation) = rest[:-3], rest[-3:-1]
    assert stop.startswith("::stop-commands::")
    assert resume == f"::{stop.rpartition(':')[2]}::"
    assert report[0].startswith("FAIL: fwd > <script>[bold]::error::x|`@me\\n::error::\\x1b[31m: ")
    assert annotation.startswith("::error title=slower::fwd > <script>[bold]")
    comment = (folder / "comment.md").read_text()
    assert "### FAIL: fwd &gt; &lt;script&gt;" in comment
    assert summary.read_text() == f"before\n{comment}"
    root = Xml.parse(folder / "gate.xml").getroot()
    assert root.get("failures") == "2"
    assert "\x1b" not in out + comment + (folder / "gate.xml").read_text()
    assert sorted(file.name for file in folder.glob(".*")) == []


def test_json_leaves_standard_output_to_the_document(gate: Gate) -> None:
    code, out, err = gate("base", "slow", "--json", "--github")

    document = published(out)
    assert (code, document["verdict"]) == (1, "FAIL")
    assert document["rows"][0]["path"][0] == "fwd"
    assert err.startswith("::error title=slower::")


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        (["--markdown", "-"], "<!-- proton gate -->\n### PASS", "\n"),
        (["--junit", "-"], "<?xml", "</testsuites>\n"),
    ],
)
def test_a_dash_is_standard_output_instead_of_the_report(
    gate: Gate, words: list[str], start: str, end: str
) -> None:
    code, out, _ = gate("base", "same", *words)

    assert code == 0
    assert out.startswith(start)
    assert out.endswith(end)


def test_what_is_wrong_is_reported_in_every_output(
    gate: Gate, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))

    code, out, err = gate("base", "gone", "--json", "--github", "--junit", "gate.xml")

    assert code == 2
    assert published(out)["error"] == "there is no file, folder or baseline 'gone'"
    assert "::error::ERROR: there is no file" in err
    assert "### ERROR: there is no file" in (folder / "summary.md").read_text()
    assert Xml.parse(folder / "gate.xml").getroot().get("errors") == "1"


@pytest.mark.parametrize("words", [["base", "slow"], ["base", "\N{SNOWMAN}"]])
def test_no_character_is_too_much_for_an_output(folder: Path, words: list[str]) -> None:
    for file in (folder / "slow").iterdir():
        file.rename(file.with_name(f"\N{SNOWMAN}{file.name}"))

    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "gate", *words, "--github"],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        encoding="ascii",
        timeout=300,
        check=False,
    )

    assert done.returncode == (1 if "slow" in words else 2)
    assert "Traceback" not in done.stderr
    assert "\\u2603" in done.stdout


@pytest.mark.parametrize("words", [["--json", "--github"], ["--markdown", "-"]])
def test_a_closed_standard_output_costs_nothing_but_itself(folder: Path, words: list[str]) -> None:
    command = shlex.join([sys.executable, "-m", "proton_bench", "gate", "base", "slow", *words])
    done = subprocess.run(
        ["bash", "-c", f"exec {command} >&-"],
        cwd=folder,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=300,
        check=False,
    )

    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_outputs_that_cannot_be_written_are_said(gate: Gate, folder: Path) -> None:
    for words in (["--junit", "gone/gate.xml"], ["--markdown", "/dev/full"]):
        code, out, err = gate("base", "same", *words)

        assert code == 74
        assert out.startswith("PASS")
        assert err.startswith("proton: error: cannot write ")
    assert gate("base", "gone", "--junit", "gone/gate.xml")[0] == 2


def test_an_output_that_cannot_be_written_costs_no_other_and_no_runs(
    gate: Gate, folder: Path
) -> None:
    words = ("--markdown", "gone/a.md", "--junit", "gate.xml")

    code, _, err = gate("base", "same", "--save", "kept", *words)

    assert code == 74
    assert (folder / "gate.xml").exists()
    assert "saved as candidate kept@" in err
    assert "a.md" in err


def test_a_full_summary_is_left_alone(
    gate: Gate, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "summary.md").write_bytes(b"x" * 899_000)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))

    code, _, err = gate("base", "same", "--github")

    assert code == 0
    assert "the step summary is full" in err
    assert (folder / "summary.md").stat().st_size == 899_000


def test_two_gates_at_once_that_save_leave_two_candidates(folder: Path) -> None:
    words = [sys.executable, "-m", "proton_bench", "gate", "base", "same", "--save", "main"]
    running = [
        subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]

    assert [each.communicate(timeout=300) and each.returncode for each in running] == [0, 0]
    assert len(list((folder / ".proton/baselines").glob("*/2*"))) == 2
