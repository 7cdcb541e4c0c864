"""The fixture and the marker in runs of pytest: results, times, files, failures."""

from __future__ import annotations

import pytest
from integration.benchmark_runs import TIMED, document, make
from integration.outputs import RunPytest, needs_torch

from proton_bench.formats.registry import read_profile

pytest.importorskip("proton_bench._native")

TESTS = """
    import pytest

    @pytest.mark.proton_bench(rounds=3, flops=100)
    @pytest.mark.parametrize("size", [(1,), (2,)])
    def test_sum(proton_bench, size):
        proton_bench.extra_info["note"] = "x"
        assert proton_bench(sum, size, start=1) == size[0] + 1

    @pytest.mark.proton_bench
    def test_whole(): pass

    def test_plain(): pass
"""


def test_results_come_back_and_times_are_shown(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(pytester, test_x=TESTS)

    result = run_pytest(*TIMED, "-q")

    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            "*proton: benchmarks*",
            "200 us (cpu, median of 3 rounds)  test_x.py::test_sum[[]size=(1,)]",
            "200 us (cpu, median of 3 rounds)  test_x.py::test_sum[[]size=(2,)]",
            "200 us (cpu, median of 1 round)  test_x.py::test_whole",
        ]
    )
    assert not list(pytester.path.glob("*.proton"))


def test_rounds_stand_in_the_profile_and_in_json(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(pytester, test_x=TESTS)

    result = run_pytest(*TIMED, "--proton", "--proton-json=times.json")

    assert result.ret == 0
    profile = read_profile(pytester.path / "pytest.proton")
    ids = profile.columns["benchmark"]
    found = {
        ids.strings[ids.values[row]]: profile.path(row)
        for row in range(len(profile))
        if ids.valid[row]
    }
    assert found == {
        "test_x.py::test_sum[size=(1,)]": (
            *("session", "test_x.py", "test_sum[size0]", "call", "rounds"),
        ),
        "test_x.py::test_sum[size=(2,)]": (
            *("session", "test_x.py", "test_sum[size1]", "call", "rounds"),
        ),
        "test_x.py::test_whole": ("session", "test_x.py", "test_whole", "call"),
    }
    (row, *_) = [row for row in range(len(profile)) if profile.name(row) == "rounds"]
    times = profile.distributions["cpu_round (ns)"].get(row)
    assert times is not None
    assert times.samples.tolist() == [200_000.0] * 3
    assert profile.columns["flops"].values[row] == 300.0
    assert len(profile.provenance["parts"]) == 1

    read = document(pytester.path / "times.json")
    assert (read["schema"], read["replicate"], read["gate"]) == (
        "proton_bench.benchmarks",
        "process",
        None,
    )
    first = read["benchmarks"][0]
    assert first["id"] == "test_x.py::test_sum[size=(1,)]"
    assert first["cpu_ns"] == [200_000.0] * 3
    assert (first["replicates"], first["extra_info"]) == (1, {"note": "x"})
    assert first["statistics_ns"]["median"] == 200_000.0


@pytest.mark.parametrize(
    ("option", "outcomes"),
    [
        ("-mproton_bench", {"passed": 3, "deselected": 1}),
        ("-mnot proton_bench", {"passed": 1, "deselected": 3}),
        ("--proton-disable", {"passed": 4}),
    ],
)
def test_benchmarks_are_chosen(
    pytester: pytest.Pytester, run_pytest: RunPytest, option: str, outcomes: dict[str, int]
) -> None:
    make(pytester, test_x=TESTS)

    result = run_pytest(*TIMED, option)

    result.assert_outcomes(**outcomes)
    if option != "-mproton_bench":
        result.stdout.no_fnmatch_line("*proton: benchmarks*")


def test_a_disabled_benchmark_is_called_once(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(
        pytester,
        test_x="""
        def test_once(proton_bench):
            calls = []
            proton_bench(calls.append, 1)
            assert calls == [1]
        """,
    )

    run_pytest("--proton-disable").assert_outcomes(passed=1)


def test_asynchronous_functions_are_awaited(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    pytest.importorskip("pytest_asyncio")
    make(
        pytester,
        test_x="""
        import asyncio
        import pytest

        pytestmark = pytest.mark.proton_bench(rounds=2)

        async def double(value):
            await asyncio.sleep(0)
            return 2 * value

        async def test_awaited(proton_bench):
            assert await proton_bench(double, 2) == 4

        async def test_function(proton_bench):
            assert proton_bench(sum, [1, 2]) == 3

        def test_from_outside(proton_bench):
            assert proton_bench(double, 3) == 6

        async def test_forgotten(proton_bench):
            waits = proton_bench(double, 4)
            waits.close()

        async def test_whole():
            await double(1)
        """,
    )

    result = run_pytest(*TIMED, "--asyncio-mode=auto", "--proton", "-q")

    result.assert_outcomes(passed=5, errors=1)
    result.stdout.fnmatch_lines(["*timed nothing*await proton_bench(fn, ...)*"])
    result.stdout.fnmatch_lines(["*cpu, median of 2 rounds*  test_x.py::test_awaited"])
    result.stdout.no_fnmatch_line("*cpu, *  test_x.py::test_forgotten")


def test_a_test_that_fails_measured_nothing(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(
        pytester,
        test_x="""
        import pytest

        def test_raises(proton_bench):
            proton_bench(int, "x")

        @pytest.mark.proton_bench(rounds=1)
        def test_wrong(proton_bench):
            assert proton_bench(sum, []) == 1

        def test_twice(proton_bench):
            proton_bench(sum, [])
            proton_bench(sum, [])

        def test_no_function(proton_bench):
            proton_bench(3)

        @pytest.mark.proton_bench(cudagraph=True, device="cpu")
        def test_excluded(proton_bench):
            proton_bench(sum, [])
        """,
    )

    result = run_pytest(*TIMED, "--proton-json=times.json", "--proton")

    result.assert_outcomes(failed=5)
    assert document(pytester.path / "times.json")["benchmarks"] == []
    result.stdout.fnmatch_lines(
        [
            "E *ValueError: *",
            "E *test_x.py::test_twice called proton_bench twice, but one test is one benchmark*",
            "E *proton_bench takes a function and its arguments, not 3",
            "E *cudagraph=True and device='cpu' exclude each other",
        ]
    )


def test_an_unknown_argument_of_the_marker_is_an_error_of_usage(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(
        pytester,
        test_x="""
        import pytest
        @pytest.mark.proton_bench(round=3)
        def test_a(): pass
        """,
    )

    result = run_pytest("--strict-markers")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_x.py::test_a: proton_bench has no argument 'round'; did*"])
    assert "Traceback" not in str(result.stderr) + str(result.stdout)


def test_options_that_exclude_each_other_are_an_error_of_usage(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(pytester, test_x=TESTS)

    result = run_pytest("--proton-disable", "--proton-json=times.json")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: proton: --proton-disable measures nothing*"])


def test_marker_and_fixture_are_listed(pytester: pytest.Pytester, run_pytest: RunPytest) -> None:
    make(pytester, test_x=TESTS)

    run_pytest("--markers").stdout.fnmatch_lines(["@pytest.mark.proton_bench(rounds=,*"])
    run_pytest("--fixtures").stdout.fnmatch_lines(["proton_bench*", "*Call a function many times*"])
    assert run_pytest("--collect-only").ret == 0


def test_without_the_plugin_there_is_no_fixture(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(pytester, test_x="def test_plain(): pass\ndef test_timed(proton_bench): pass")

    result = run_pytest("-p", "no:proton_bench")

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*fixture 'proton_bench' not found*"])


def test_other_plugins_may_be_missing(pytester: pytest.Pytester, run_pytest: RunPytest) -> None:
    make(pytester, test_x=TESTS)

    # The cache is missing in all of these tests.
    assert run_pytest(*TIMED, "-p", "no:terminal", "-p", "no:junitxml").ret == 0


def test_times_that_cannot_be_written_are_an_error(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(pytester, test_x=TESTS)

    result = run_pytest(*TIMED, "--proton-json=none/times.json")

    assert result.ret == 2
    result.stdout.fnmatch_lines(["error: cannot write *none/times.json*"])


@needs_torch
def test_with_torch_on_the_cpu_operators_stand_below_the_rounds(
    pytester: pytest.Pytester, run_pytest: RunPytest
) -> None:
    make(
        pytester,
        test_x="""
        import pytest
        import torch

        @pytest.mark.proton_bench(rounds=2, warmup=1)
        def test_add(proton_bench):
            assert proton_bench(torch.add, torch.ones(2), 1).tolist() == [2.0, 2.0]
        """,
    )

    result = run_pytest(*TIMED, "--proton")

    result.assert_outcomes(passed=1)
    profile = read_profile(pytester.path / "pytest.proton")
    paths = {profile.path(row): row for row in range(len(profile))}
    call = ("session", "test_x.py", "test_add", "call")
    assert profile.columns["count"].values[paths[(*call, "rounds", "aten::add")]] == 2
    assert (*call, "warm-up", "aten::add") in paths
