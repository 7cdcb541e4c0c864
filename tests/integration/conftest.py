"""Runs the command line in a process of its own, as users do."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.outputs import RunPytest

from proton_bench.cli import main
from proton_bench.gate import experiment
from proton_bench.gate.slot import Slot, Stage, pairs

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def proton(tmp_path: Path) -> Run:
    """Run ``python -m proton_bench`` in the test's folder.

    It is quiet unless it is told otherwise: the summary at the end of a run loads what shows it.
    """

    def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "proton_bench", *map(str, words)],
            cwd=tmp_path,
            env={**os.environ, "PROTON_BENCH_QUIET": "1", **environment},
            capture_output=True,
            encoding="utf-8",
            timeout=300,
        )

    return run


@pytest.fixture
def both_timelines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands with ``-d trace`` write both formats of timelines."""
    monkeypatch.setenv("PROTON_BENCH_TRACE_FORMATS", "chrome_trace,perfetto")


@pytest.fixture
def fixed_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the order of the sides in pairs from a fixed seed, not from the name of the folder."""

    def drawn(stage: Stage, count: int, seed: str = "") -> tuple[Slot, ...]:
        return pairs(stage, count, "one of many" if seed else "")

    monkeypatch.setattr(experiment, "pairs", drawn)


@pytest.fixture
def proton_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Run:
    """Run commands that record nothing in this process; the start of another costs more."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        line = [str(word) for word in words]
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            code = main(line)
        return subprocess.CompletedProcess(line, code, *capfd.readouterr())

    return run


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        (tmp_path / "x.py").write_text(textwrap.dedent(text))
        return "x.py"

    return write


@pytest.fixture
def run_pytest(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, child_options: str
) -> RunPytest:
    """Run pytest in a process of its own, in a fresh folder, without a GPU."""
    # `pytester` has dropped them; runs inside of the run need them too.
    monkeypatch.setenv("PYTEST_ADDOPTS", child_options)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for variable in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):
        monkeypatch.delenv(variable, raising=False)

    def run(*arguments: str) -> pytest.RunResult:
        # Plugins that these tests do not need cost most of the time of each process.
        unused = ["cacheprovider"]
        if not any(argument.startswith("--asyncio") for argument in arguments):
            unused.append("asyncio")
        without = [word for name in unused for word in ("-p", f"no:{name}")]
        return pytester.runpytest_subprocess(*without, *arguments)

    return run
