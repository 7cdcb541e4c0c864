"""Benchmarks in the workers of pytest-xdist: a GPU for each, all results in one place."""

from __future__ import annotations

import pytest
from integration.benchmark_runs import TIMED, document, make
from integration.outputs import RunPytest

from proton_bench.formats.registry import read_profile

pytest.importorskip("proton_bench._native")
pytest.importorskip("xdist")

# Every test starts a controller and two workers.

TESTS = """
    import os
    import pytest

    seen_at_import = os.environ.get("CUDA_VISIBLE_DEVICES")

    @pytest.mark.proton_bench(rounds=2)
    @pytest.mark.parametrize("number", range(6))
    def test_timed(proton_bench, number):
        proton_bench.extra_info["device"] = seen_at_import
        proton_bench(sum, [number])
"""
JSON = "--proton-json=times.json"


def test_each_worker_has_a_gpu_of_its_own_before_tests_are_imported(
    pytester: pytest.Pytester, run_pytest: RunPytest, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(pytester, test_x=TESTS)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-7")

    result = run_pytest(*TIMED, JSON, "-n2", "--dist=load")

    result.assert_outcomes(passed=6)
    found = document(pytester.path / "times.json")["benchmarks"]
    devices = {(each["worker"], each["extra_info"]["device"]) for each in found}
    assert {device for _, device in devices} <= {"4", "GPU-7"}
    assert len(devices) == len({worker for worker, _ in devices})
    assert len({device for _, device in devices}) == len(devices)
    assert not list(pytester.path.glob("*.parts-*"))


def test_results_of_all_workers_are_in_one_profile_and_one_list(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(pytester, test_x=TESTS)

    result = run_pytest(*TIMED, JSON, "-n2", "--dist=load")

    result.assert_outcomes(passed=6)
    assert len(document(pytester.path / "times.json")["benchmarks"]) == 6
    profile = read_profile(pytester.path / "pytest.proton")
    ids = profile.columns["benchmark"]
    assert {ids.strings[place] for place in ids.values[ids.valid]} == {
        f"test_x.py::test_timed[{number}]" for number in range(6)
    }
    times = profile.distributions["cpu_round (ns)"]
    assert times.n.tolist() == [2] * 6
    result.stdout.fnmatch_lines(["*median of 2 rounds*  test_x.py::test_timed[[]*"])


def test_a_worker_that_replaces_another_takes_over_its_gpu(
    pytester: pytest.Pytester, run_pytest: RunPytest, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(
        pytester,
        test_x=TESTS + "\n    def test_crash():\n        os._exit(3)\n",
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")

    result = run_pytest(*TIMED, JSON, "-n1")

    assert result.ret == 1
    result.stdout.fnmatch_lines(["*worker 'gw0' crashed while running 'test_x.py::test_crash'*"])
    found = document(pytester.path / "times.json")["benchmarks"]
    assert {each["extra_info"]["device"] for each in found} == {"5"}


def test_more_workers_than_gpus_cannot_measure(
    pytester: pytest.Pytester, run_pytest: RunPytest, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(pytester, test_x=TESTS)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")

    result = run_pytest(*TIMED, JSON, "-n2")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: proton: 2 workers of pytest-xdist cannot measure*-n 1*"])


def test_workers_without_a_request_for_times_call_benchmarks_once(
    pytester: pytest.Pytester, run_pytest: RunPytest, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(pytester, test_x=TESTS)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")

    result = run_pytest(*TIMED, "-n2")

    result.assert_outcomes(passed=6)
    result.stdout.no_fnmatch_line("*proton: benchmarks*")


def test_wrong_markers_are_reported_from_workers_too(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(
        pytester,
        test_x="""
        import pytest
        @pytest.mark.proton_bench(rounds=0)
        def test_a(): pass
        """,
    )

    result = run_pytest("-n1")

    assert result.ret != 0
    assert "proton_bench(rounds=0): expected a whole number" in str(result.stdout) + str(
        result.stderr
    )
