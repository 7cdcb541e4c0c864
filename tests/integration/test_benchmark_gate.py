"""The gate of a test run: failures, output, and the exit code of pytest."""

from __future__ import annotations

import xml.etree.ElementTree as Xml
from importlib.util import find_spec
from pathlib import Path

import pytest
from fakes.benchmarks import runs_of
from integration.benchmark_runs import TIMED, document, make
from integration.outputs import RunPytest

from proton_bench.formats.registry import write_profile
from proton_bench.gate.baselines import BaselineStore

pytest.importorskip("proton_bench._native")

A, B, C = (f"test_x.py::{name}" for name in ("test_a", "TestIt::test_b[size=(1, 2)]", "test_c"))
BASE = {A: 100.0, B: 40.0, C: 70.0}
TESTS = """
    import pytest

    pytestmark = pytest.mark.proton_bench(rounds=3)

    def test_a(proton_bench): proton_bench(sum, [1])

    class TestIt:
        @pytest.mark.parametrize("size", [(1, 2)])
        def test_b(self, proton_bench, size): proton_bench(sum, size)

    def test_c(proton_bench): proton_bench(sum, [])
"""
# Fresh processes recorded the files of a folder.
REPLAYED = """
    from contextlib import nullcontext
    from pathlib import Path
    from types import SimpleNamespace
    from proton_bench.analysis.run import read_runs
    from proton_bench.pytest_plugin.benchmarks.end import judging

    def first(count):
        return tuple(read_runs([Path("replayed")])[:count])

    def offered(*_, **ends):
        return nullcontext(SimpleNamespace(first=first, say=print, **ends))

    judging.fresh_runs_of = offered
"""
GATE = (*TIMED, "--proton-compare=main", "--proton-runs=6")


def keep(pytester: pytest.Pytester, means_us: dict[str, float], *, seed: int) -> None:
    """Let fresh processes measure made-up times."""
    folder = pytester.path / "replayed"
    folder.mkdir(exist_ok=True)
    for number, run in enumerate(runs_of(means_us, runs=6, seed=seed, first=10)):
        write_profile(run.profile, folder / f"{number}.proton")


def promote(pytester: pytest.Pytester) -> None:
    store = BaselineStore(pytester.path / ".proton")
    store.save("main", runs_of(BASE, runs=6, seed=1))
    store.promote("main")


@pytest.fixture
def benchmarks(pytester: pytest.Pytester) -> Path:
    make(pytester, test_x=TESTS)
    pytester.makeconftest(REPLAYED)
    promote(pytester)
    return pytester.path


@pytest.mark.usefixtures("benchmarks")
def test_the_same_times_pass(pytester: pytest.Pytester, run_pytest: RunPytest) -> None:
    keep(pytester, BASE, seed=2)

    result = run_pytest(*GATE)

    assert result.ret == 0
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*proton gate*", "PASS: none of 3 paths got slower than allowed*"])


def test_a_slower_benchmark_fails_its_own_test_without_a_traceback(
    pytester: pytest.Pytester, run_pytest: RunPytest, benchmarks: Path
) -> None:
    keep(pytester, {**BASE, B: 48.0}, seed=2)

    result = run_pytest(*GATE, "-q", "--junitxml=junit.xml", "--proton-json=times.json")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*= FAILURES =*",
            "*TestIt.test_b[[]size0] _*",
            f"proton gate: 1 check got worse: {B.replace('[', '[[]')} > round: median * slower *",
            "*= proton gate =*",
            "FAIL: *",
            "*short test summary info*",
            "FAILED test_x.py::TestIt::test_b[[]size0]*",
        ]
    )
    assert "Traceback" not in str(result.stdout) + str(result.stderr)
    cases = Xml.parse(benchmarks / "junit.xml").iter("testcase")
    failed = [case for case in cases if case.find("failure") is not None]
    assert [case.get("name") for case in failed] == ["test_b[size0]"]
    gate = document(benchmarks / "times.json")["gate"]
    assert (gate["verdict"], gate["exit_code"]) == ("FAIL", 1)


@pytest.mark.usefixtures("benchmarks")
def test_the_failed_test_is_the_last_failed_one(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    keep(pytester, {**BASE, A: 120.0}, seed=2)
    # Without `run_pytest`, which leaves the cache out.
    words = ("-p", "no:asyncio")
    assert pytester.runpytest_subprocess(*words, *GATE).ret == 1

    again = pytester.runpytest_subprocess(*words, *TIMED, "--lf", "-v")

    again.assert_outcomes(passed=1)
    again.stdout.fnmatch_lines(["test_x.py::test_a PASSED*"])


@pytest.mark.usefixtures("benchmarks")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--proton-compare=main",), 3, "INCONCLUSIVE: *"),
        (("--proton-compare=broken.proton",), 2, "ERROR: *broken.proton*"),
        (("--proton-compare=empty",), 5, "NO-BASELINE: there is no run in 'empty'"),
    ],
)
def test_what_is_not_a_verdict_has_an_exit_code_of_its_own(
    pytester: pytest.Pytester,
    run_pytest: RunPytest,
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    (pytester.path / "broken.proton").write_bytes(b"nothing")
    (pytester.path / "empty").mkdir()

    result = run_pytest(*TIMED, *words)

    assert result.ret == code
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines([said])
    assert "Traceback" not in str(result.stdout) + str(result.stderr)


@pytest.mark.usefixtures("benchmarks")
def test_failed_tests_are_not_judged_and_keep_their_exit_code(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    keep(pytester, {**BASE, A: 120.0}, seed=2)
    pytester.makepyfile(test_y="def test_fails(): assert 0\ndef test_after(): pass")

    result = run_pytest(*GATE, "--proton-save=main")

    assert result.ret == 1
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["skipped: 1 failed, so nothing was compared or saved"])


@pytest.mark.usefixtures("benchmarks")
def test_a_run_that_is_stopped_is_not_judged(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytester.makepyfile(test_0="def test_fails(): assert 0")

    result = run_pytest(*GATE, "-x", "--proton-json=times.json")

    assert result.ret == 1
    result.stdout.fnmatch_lines(["skipped: the run was stopped*"])
    assert document(pytester.path / "times.json")["gate"] is None


@pytest.mark.usefixtures("benchmarks")
def test_a_wrong_threshold_is_an_error_of_usage_before_any_test(
    run_pytest: RunPytest,
) -> None:
    result = run_pytest(*GATE, "--proton-compare-fail=median:5q")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: proton: threshold 'median:5q', column 9: *"])
    result.stdout.no_fnmatch_line("*collected*")


def test_a_run_without_benchmarks_is_not_a_baseline(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(pytester, test_x="def test_plain(): pass")

    result = run_pytest(*TIMED, "--proton-compare=main")

    assert result.ret == 5
    result.stdout.fnmatch_lines(["NO-BASELINE: no test is a benchmark*"])


def test_saved_runs_are_candidates_until_they_are_promoted(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(pytester, test_x=TESTS)

    first = run_pytest(*TIMED, "--proton-save=main")
    before = run_pytest(*TIMED, "--proton-compare=main")
    BaselineStore(pytester.path / ".proton").promote("main")
    after = run_pytest(*TIMED, "--proton-compare=main")

    assert (first.ret, before.ret, after.ret) == (0, 5, 3)
    first.stdout.fnmatch_lines(["saved as candidate main@*"])
    before.stdout.fnmatch_lines(["NO-BASELINE: nothing was promoted to be baseline main*"])


@pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
def test_backends_prepare_a_run_that_is_recorded_for_its_gate(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(
        pytester,
        test_x="""
        import os
        interprets = os.environ.get("TRITON_INTERPRET")
        def test_a(): assert interprets == "1"
        """,
    )

    run_pytest("--proton-save=main").assert_outcomes(passed=1)


# -- fresh processes -----------------------------------------------------------------------------
def test_runs_are_recorded_in_fresh_processes(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(pytester, test_x=TESTS, test_y="def test_plain(): pass")

    result = run_pytest(*TIMED, "--proton-runs=2", "--proton-save=pytest")

    assert result.ret == 0
    result.assert_outcomes(passed=4)
    (entry,) = BaselineStore(pytester.path / ".proton").entries("pytest")
    assert len(entry.files()) == 2
    pids = {run.profile.provenance["pid"] for run in entry.load()}
    assert len(pids) == 2


def test_a_fresh_process_that_fails_is_an_error_with_its_output(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(
        pytester,
        test_x="""
        import sys

        def test_a(proton_bench):
            proton_bench(sum, [])
            assert not any("--proton-replicate" in word for word in sys.argv), "only the first time"
        """,
    )

    result = run_pytest(*TIMED, "--proton-runs=2", "--proton-save=main")

    assert result.ret == 2
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["ERROR: run 1 of pytest *ended with exit code 1*"])
