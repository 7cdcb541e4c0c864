from __future__ import annotations

import json
import os
from pathlib import Path
from types import ModuleType

import pytest

from proton_bench.recording.models import torch_verdict
from proton_bench.recording.models.torch_probe import KINDS, reason_against
from proton_bench.recording.models.torch_verdict import VERSION, Verdict, judge_torch, verdict_file

BUILD_ID = "0123abcd"
GOOD = {
    "build_id": BUILD_ID,
    "reason": "",
    "reads_scope": True,
    "node_offset": 200,
    "fwd_thread_offset": 304,
    "inputs": {"offsets": [208, 56, 160, 16]},
}
SEEN = Verdict(
    "",
    reads_scope=True,
    node_offset=200,
    fwd_thread_offset=304,
    inputs={"offsets": [208, 56, 160, 16]},
)


@pytest.fixture
def torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A torch with a known build id; the cache is the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(torch_verdict._native, "loaded_build_id", lambda name: BUILD_ID)
    module = ModuleType("torch")
    module.__file__ = str(tmp_path / "torch" / "__init__.py")
    return module


def use_probe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str) -> Path:
    """Have the child run a program instead; each run leaves a line in the returned file."""
    runs = tmp_path / "runs"
    file = tmp_path / "probe.py"
    file.write_text(f"open({str(runs)!r}, 'a').write('run\\n')\n{program}")
    monkeypatch.setattr(torch_verdict.torch_probe, "__file__", str(file))
    return runs


def test_a_verdict_is_asked_for_once(
    torch: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = use_probe(monkeypatch, tmp_path, f"print('noise\\n' + {json.dumps(GOOD)!r})")

    verdicts = [judge_torch(torch), judge_torch(torch)]

    assert verdicts == [SEEN] * 2
    assert runs.read_text() == "run\n"


def test_another_build_is_asked_for_anew(
    torch: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = use_probe(monkeypatch, tmp_path, f"print({json.dumps(GOOD)!r})")
    judge_torch(torch)
    monkeypatch.setattr(torch_verdict._native, "loaded_build_id", lambda name: "another")

    verdict = judge_torch(torch)

    assert "loaded another torch" in verdict.reason
    assert runs.read_text() == "run\n" * 2
    assert not verdict_file("another").exists()


def test_a_library_without_a_build_id_is_probed_each_time(
    torch: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = use_probe(monkeypatch, tmp_path, f"print({json.dumps(GOOD | {'build_id': ''})!r})")
    monkeypatch.setattr(torch_verdict._native, "loaded_build_id", lambda name: "")

    verdicts = [judge_torch(torch), judge_torch(torch)]

    assert [verdict.reason for verdict in verdicts] == ["", ""]
    assert runs.read_text() == "run\n" * 2


def test_a_crash_is_remembered(
    torch: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    runs = use_probe(monkeypatch, tmp_path, crash)

    verdicts = [judge_torch(torch), judge_torch(torch)]

    assert [verdict.reason for verdict in verdicts] == ["a test of it ended with SIGSEGV"] * 2
    assert runs.read_text() == "run\n"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise SystemExit(3)", "ended with code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended with code -9"),
        ("print('{}')", "ended with code 0"),
        ("print('[1]')", "ended with code 0"),
        ("print('no JSON')", "ended with code 0"),
        ("", "ended with code 0"),
    ],
)
def test_what_says_nothing_of_the_library_is_not_remembered(
    torch: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    reason: str,
) -> None:
    runs = use_probe(monkeypatch, tmp_path, program)

    verdicts = [judge_torch(torch), judge_torch(torch)]

    assert all(reason in verdict.reason for verdict in verdicts)
    assert runs.read_text() == "run\n" * 2


def test_a_trial_that_hangs_is_ended(
    torch: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_probe(monkeypatch, tmp_path, "import sys; sys.stdin.close(); __import__('time').sleep(600)")
    monkeypatch.setattr(torch_verdict, "TIMEOUT_S", 0.2)

    verdict = judge_torch(torch)

    assert "took longer" in verdict.reason
    assert not verdict_file(BUILD_ID).exists()


def test_an_interpreter_that_cannot_be_started_is_named(
    torch: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_verdict.sys, "executable", str(tmp_path / "absent"))

    assert "could not be started" in judge_torch(torch).reason


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"{}",
        json.dumps({"version": VERSION - 1, "reason": "old", "reads_scope": True}).encode(),
        json.dumps({"version": VERSION, "reason": None, "reads_scope": True}).encode(),
        json.dumps({"version": VERSION, "reason": "", "reads_scope": 1}).encode(),
    ],
)
def test_a_file_that_cannot_be_understood_is_written_anew(
    torch: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    use_probe(monkeypatch, tmp_path, f"print({json.dumps(GOOD)!r})")
    file = verdict_file(BUILD_ID)
    file.parent.mkdir(parents=True)
    file.write_bytes(content)

    verdict = judge_torch(torch)

    assert verdict == SEEN
    assert json.loads(file.read_text())["version"] == VERSION


@pytest.mark.parametrize("cache", ["/proc/1/cache", "/dev/null/cache"])
def test_without_a_place_for_the_verdict_each_run_asks(
    torch: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: str
) -> None:
    runs = use_probe(monkeypatch, tmp_path, f"print({json.dumps(GOOD)!r})")
    monkeypatch.setenv("XDG_CACHE_HOME", cache)

    verdicts = [judge_torch(torch), judge_torch(torch)]

    assert verdicts == [SEEN] * 2
    assert runs.read_text() == "run\n" * 2


def test_a_full_disk_leaves_nothing_behind(
    torch: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_probe(monkeypatch, tmp_path, f"print({json.dumps(GOOD)!r})")

    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)

    assert judge_torch(torch).reason == ""
    assert list(verdict_file(BUILD_ID).parent.iterdir()) == []


def test_the_trial_is_not_recorded_itself(
    torch: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    names = "[name for name in os.environ if name.endswith('AUTOSTART')]"
    use_probe(monkeypatch, tmp_path, f"import os; open({str(seen)!r}, 'w').write(str({names}))")
    monkeypatch.setenv("PROTON_BENCH_AUTOSTART", "{}")

    judge_torch(torch)

    assert seen.read_text() == "[]"


# -- what a probe says ---------------------------------------------------------------------------
COMPLETE = [(kind, name, True, True, [], 0) for kind, name in KINDS]


def test_a_probe_that_saw_every_kind_begin_and_end_is_good() -> None:
    assert reason_against([*COMPLETE, ("operator", "aten::mul", False, True)]) == ""


@pytest.mark.parametrize("missing", range(len(KINDS)))
def test_a_kind_that_was_not_seen_is_named(missing: int) -> None:
    seen = [each for place, each in enumerate(COMPLETE) if place != missing]

    assert repr(KINDS[missing][1]) in reason_against(seen)


def test_an_operator_without_an_end_is_reported() -> None:
    assert "the end" in reason_against([*COMPLETE, ("operator", "aten::mul", True, False)])
