"""``proton gate --runs R BASE -- CMD`` records the new side and then judges it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fakes.gated import Kernel, process
from fakes.stored import put
from fakes.synthetic import THIRTY

from proton_bench.analysis.run import Run
from proton_bench.cli import main

TESTS = Path(__file__).parents[1]
BENCH = f"""
import sys
sys.path.append({str(TESTS)!r})
from fakes.synthetic import THIRTY, record_times
slower = float(sys.argv[1])
record_times({{**THIRTY, "layer2/k13": THIRTY["layer2/k13"] * slower}})
"""
Gate = Callable[..., tuple[int, str, str]]


def runs_of_base(count: int) -> list[Run]:
    rng = np.random.default_rng(3)
    kernels = [Kernel(path, time) for path, time in THIRTY.items()]
    return [process(kernels, rng, new=False, at=at) for at in range(count)]


@pytest.fixture
def project(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "bench.py").write_text(BENCH)
    put(tmp_path / "base", *runs_of_base(4))
    return tmp_path


@pytest.fixture
def gate(project: Path, capfd: pytest.CaptureFixture[str]) -> Gate:
    def run(*words: object) -> tuple[int, str, str]:
        given = [str(word) for word in words]
        place = given.index("--") + 1
        code = main(["gate", *given[:place], "-b", "cpu", *given[place:]])
        out, err = capfd.readouterr()
        assert "Traceback" not in out
        return code, out, err

    return run


def test_a_command_is_run_afresh_and_judged(gate: Gate, project: Path) -> None:
    put(project / "base", *runs_of_base(6))

    code, out, err = gate("--runs", 6, "base", "--json", "--", "bench.py", "1.08")

    document = json.loads(out)
    assert (code, document["verdict"]) == (1, "FAIL")
    assert document["rows"][0]["path"] == ["layer2", "k13"]
    (folder,) = (project / ".proton" / "gate").glob("*/")
    assert len(list(folder.glob("*.proton"))) == len(document["new_runs"]) == 6
    assert str(folder.relative_to(project)) in err


def test_four_runs_of_a_slower_kernel_do_not_pass(gate: Gate) -> None:
    """They cannot fail yet, and the kernel has little of the time."""
    code, out, _ = gate("--runs", 4, "base", "--", "bench.py", "1.08")

    assert code == 3
    assert out.startswith("INCONCLUSIVE: layer2 > k13: median ")


@pytest.mark.parametrize(("words", "runs"), [((), 4), (("--save", "main"), 6)])
def test_runs_end_when_all_is_decided_unless_they_may_become_a_base(
    gate: Gate, project: Path, words: tuple[str, ...], runs: int
) -> None:
    put(project / "base", *runs_of_base(6))

    code, out, _ = gate("--runs", 6, "base", *words, "--json", "--", "bench.py", "1")

    assert code == 0
    assert len(json.loads(out)["new_runs"]) == runs


def test_the_first_runs_of_a_baseline_are_recorded_and_saved(gate: Gate, project: Path) -> None:
    code, out, err = gate("--runs", 1, "--save", "main", "--", "bench.py", "1")

    assert code == 5
    assert out.startswith("NO-BASELINE: ")
    assert "saved as candidate main@" in err
    assert len(list((project / ".proton").glob("baselines/*/*/000.proton"))) == 1


def test_nothing_is_run_where_nothing_could_be_said(gate: Gate, project: Path) -> None:
    code, out, _ = gate("--runs", 4, "gone", "--", "bench.py", "1")

    assert code == 5
    assert out.startswith("NO-BASELINE: ")
    assert "'gone'" in out
    assert not (project / ".proton").exists()


def test_a_run_that_fails_ends_the_gate(gate: Gate, project: Path) -> None:
    code, out, err = gate("--runs", 4, "base", "--junit", "gate.xml", "--", "bench.py")

    assert (code, out) == (2, "")
    assert "run 1 of bench.py ended with exit code 1; the end of its output" in err
    assert "IndexError" in (project / "gate.xml").read_text()
