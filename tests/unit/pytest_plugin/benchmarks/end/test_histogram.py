from __future__ import annotations

from fakes.benchmarks import record_of

from proton_bench.pytest_plugin.benchmarks.end.histogram import histograms


def test_rounds_are_counted_by_how_long_they_took() -> None:
    times = (100e3, 101e3, 102e3, 103e3, 110e3, 111e3, 119e3, 119e3, 120e3)

    lines = histograms([record_of(cpu_ns=times)])

    assert lines == [
        "test_x.py::test_a: 9 rounds (us)",
        "  100.000 .. 106.667  ████████████████████████████████████████  4",
        "  106.667 .. 113.333  ████████████████████                      2",
        "  113.333 .. 120.000  ██████████████████████████████            3",
    ]


def test_what_is_far_off_shares_a_line() -> None:
    times = tuple(100e3 + each for each in range(16)) + (900e3,)

    lines = histograms([record_of(cpu_ns=times)])

    assert lines[-1].split()[:3] == ["up", "to", "900.000"]
    assert sum(int(line.split()[-1]) for line in lines[1:]) == 17


def test_rounds_alike_are_one_bar() -> None:
    lines = histograms([record_of(cpu_ns=(5.0, 5.0))], ascii_only=True)

    assert lines[1:] == [f"  5.000 .. 5.000  {'#' * 40}  2"]


def test_each_benchmark_is_drawn_and_hostile_names_stay_on_their_line() -> None:
    lines = histograms([record_of("a\n::b"), record_of("c")])

    assert [line for line in lines if not line.startswith(" ")] == [
        r"a\n::b: 3 rounds (us)",
        "c: 3 rounds (us)",
    ]
