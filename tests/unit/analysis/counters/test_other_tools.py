from __future__ import annotations

import contextlib
import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.counters.file import (
    CounterFile,
    base_unit,
    is_summable,
    number,
    parse_counters,
    read_counters,
)
from proton_bench.analysis.counters.join import add_hbm_traffic, headlines, join_counters
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

HEAD = '"ID","Process ID","Kernel Name","Grid Size"'
WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"
RAW = f"""==PROF== Connected to process 12
{HEAD},"dram__bytes.sum","gpu__time_duration.sum","{WARPS}"
"","","","","Mbyte","usecond","%"
"0","12","k","(4, 1, 1)","1.5","2","50"
"1","12","k","(4, 1, 1)","1,024.5","6","30"
"""
DETAILS = """\
"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name"
"0","k","Memory","DRAM Throughput","%","12.5",""
"0","k","Memory","Memory Throughput","Gbyte/second","2",""
"0","k","Memory","","","","Bottleneck"
"1","k","Memory","Memory Throughput","Mbyte/second","500",""
"""
PMC = """Dispatch_ID,GPU_ID,Grid_Size,Kernel_Name,SQ_INSTS_SALU,SQ_WAVES
0,4,1024,"k(float*) (.kd)",100,16
1,4,1024,"k(float*) (.kd)",300,16
"""
ROCPROFV3 = """Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value
1,k.kd,SQ_WAVES,16
1,k.kd,SQ_INSTS_SALU,100
2,k.kd,SQ_WAVES,32
"""


def profile(*rows: tuple[str, int, int], kind: str = "CUDA") -> Profile:
    """Return kernels by name, count and blocks, each below a scope of its own."""
    builder = ProfileBuilder()
    for number_of_row, (name, count, blocks) in enumerate(rows):
        scope = builder.add(0, f"scope{number_of_row}", FrameKind.SCOPE)
        builder.add(
            scope,
            name,
            FrameKind.KERNEL,
            metrics={"time (ns)": 100 * count, "count": count},
            device=Device(kind, 0),
            variant=Variant(grid=(blocks, 1, 1)),
        )
    return builder.build()


def launched(*names: str, grid: str = "") -> CounterFile:
    rows = "".join(f'{i},"{name}","{grid}",{i + 1}\n' for i, name in enumerate(names))
    return parse_counters(f'"ID","Kernel Name","Grid Size",inst.sum\n{rows}', "x.csv")


def test_raw_page_has_units_in_its_second_row() -> None:
    file = parse_counters(RAW, "x.csv")

    assert file.tool == "ncu"
    assert file.names == ("dram__bytes.sum (byte)", "gpu__time_duration.sum (ns)", f"{WARPS} (%)")
    assert file.launches[1].values["dram__bytes.sum (byte)"] == 1.0245e9


def test_details_page_has_a_unit_per_row() -> None:
    first, second = parse_counters(DETAILS, "x.csv").launches

    assert first.values == {"DRAM Throughput (%)": 12.5, "Memory Throughput (byte/s)": 2e9}
    assert second.values == {"Memory Throughput (byte/s)": 5e8}


@pytest.mark.parametrize("text", [PMC, ROCPROFV3])
def test_counters_of_rocprof(text: str) -> None:
    file = parse_counters(text, "pmc_perf.csv")

    assert file.tool == "rocprof"
    assert file.launches[0].values == {"SQ_WAVES": 16, "SQ_INSTS_SALU": 100}
    assert join_counters(profile(("k", 2, 1), kind="HIP"), file).rows.tolist() == [2, 2]
    assert join_counters(profile(("k", 2, 1), kind="CUDA"), file).rows.tolist() == [-1, -1]


def test_amounts_are_summed_and_shares_have_a_mean_over_time() -> None:
    file = parse_counters(RAW, "x.csv")
    before = profile(("k", 2, 4))
    after = join_counters(before, file).extend(before, file.names)

    tree = build_tree(after, ["dram__bytes.sum", WARPS], Selection())

    assert tree.metrics[0].to_list() == pytest.approx([1.026e9] * 3)
    assert tree.metrics[1].to_list() == pytest.approx([35.0] * 3)


def test_names_that_rows_have_are_sums_or_means() -> None:
    file = parse_counters(f'{RAW}"2","12","other","","1","1","1"\n', "x.csv")
    join = join_counters(profile(("k", 2, 4)), file)

    assert join.shown_names() == (
        ("dram__bytes.sum (byte)", "gpu__time_duration.sum (ns)"),
        (f"{WARPS} (%)",),
    )
    assert join_counters(profile(("none", 1, 1)), file).shown_names() == ((), ())


def test_rows_of_a_kernel_take_turns_in_rounds() -> None:
    join = join_counters(profile(("k", 4, 1), ("k", 2, 1)), launched(*"kkkkkk"))

    assert join.rows.tolist() == [2, 2, 4, 2, 2, 4]
    assert (join.matched, join.unmeasured) == (6, 0)


def test_kernels_of_several_rows_are_doubtful() -> None:
    rows = profile(("k", 4, 1), ("k", 2, 1), ("only", 1, 1), ("j", 1, 1), ("j", 1, 1))
    join = join_counters(rows, launched(*"kkkjj", "only"))

    different, same = join.doubts
    assert (different.kernel, different.measured, different.launched) == ("k", 3, 6)
    assert (different.places, different.counts_differ) == (2, True)
    assert (same.kernel, same.counts_differ) == ("j", False)


def test_variants_of_one_row_leave_no_doubt() -> None:
    builder = ProfileBuilder()
    for blocks in (1, 2):
        variant = Variant(grid=(blocks, 1, 1))
        builder.add(0, "k", FrameKind.KERNEL, metrics={"count": 1}, variant=variant)

    assert join_counters(builder.build(), launched("k", "k")).doubts == ()


def test_grids_that_distinguish_rows_leave_no_doubt() -> None:
    rows = profile(("k", 1, 1), ("k", 1, 8))

    assert join_counters(rows, launched("k", "k", grid="(8, 1, 1)")).doubts == ()


def test_launches_go_to_rows_of_their_grid() -> None:
    join = join_counters(profile(("k", 2, 1), ("k", 2, 8)), launched("k", "k", grid="(8, 1, 1)"))

    assert join.rows.tolist() == [4, 4]
    assert join.unmeasured == 2


def test_launches_that_fit_no_row_are_counted() -> None:
    join = join_counters(profile(("k", 1, 1)), launched("k", "k", "other", "other"))

    assert join.rows.tolist() == [2, -1, -1, -1]
    assert join.unmatched() == {"other": 2, "k": 1}


def test_names_are_compared_without_arguments_where_they_differ() -> None:
    rows = profile(("void at::fill<4>(float*)", 1, 1), ("_Z4copyPf", 1, 1))

    assert join_counters(rows, launched("fill", "copy")).rows.tolist() == [2, 4]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(0, 80))
def test_no_row_gets_more_launches_than_it_has(counts: list[int], measured: int) -> None:
    rows = profile(*(("k", count, 1) for count in counts))
    if not measured:
        return
    join = join_counters(rows, launched(*"k" * measured))

    assert join.matched == min(measured, sum(counts))
    assert join.unmeasured == sum(counts) - join.matched
    taken = [int((join.rows == 2 * i + 2).sum()) for i in range(len(counts))]
    assert all(got <= count for got, count in zip(taken, counts, strict=True))


def test_headlines_are_one_counter_per_aspect() -> None:
    assert headlines(parse_counters(RAW, "x")) == ("dram__bytes.sum (byte)", f"{WARPS} (%)")
    assert headlines(parse_counters(PMC, "x")) == ("SQ_WAVES", "SQ_INSTS_SALU")


def test_hbm_traffic_comes_from_requests_of_the_cache() -> None:
    heading = ",".join(f"TCC_EA_{n}_sum" for n in ("RDREQ", "RDREQ_32B", "WRREQ", "WRREQ_64B"))
    file = parse_counters(f"Dispatch_ID,Kernel_Name,{heading}\n0,k,10,4,6,5\n", "x")

    add_hbm_traffic(file)

    assert file.launches[0].values["hbm_bytes (byte)"] == 6 * 64 + 4 * 32 + 5 * 64 + 32


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no heading with a column of kernel names"),
        ("a,b\n1,2\n", "no heading with a column of kernel names"),
        (RAW.rsplit(",", 1)[0], "line 5 has 6 cells, not 7: the file was truncated"),
        (f"{HEAD},a\n", "no launches"),
        (f'{HEAD},a\n"0","1","k","",n/a\n', "no numeric counter"),
        ('"ID","Kernel Name","Metric Name"\n', "a column Metric Name but no Metric Value"),
        (f'{HEAD},a\n"0","1","k","",1\n"0","1","","",1\n', "line 3 names no kernel"),
        ('"Kernel Name","a"\n"' + "x" * 140_000 + '",1\n', "'x.csv': line 2: ."),
    ],
)
def test_malformed_files_are_explained(text: str, message: str) -> None:
    with pytest.raises(ProfileFormatError, match=message):
        parse_counters(text, "x.csv")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for content in (text, RAW + text, ROCPROFV3 + text):
        with contextlib.suppress(ProfileFormatError):
            assert parse_counters(content, "x").launches


def test_packed_files_are_read_and_missing_ones_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(RAW.encode()))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(RAW.encode())[:40])

    assert len(read_counters(tmp_path / "x.csv.gz").launches) == 2
    with pytest.raises(ProfileFormatError, match="cannot be decompressed"):
        read_counters(tmp_path / "cut.gz")
    with pytest.raises(UsageError, match="cannot read counters"):
        read_counters(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("Mbyte", ("byte", 1e6)),
        ("Gbyte/second", ("byte/s", 1e9)),
        ("usecond", ("ns", 1e3)),
        ("Ghz", ("Hz", 1e9)),
        ("inst/cycle", ("inst/cycle", 1.0)),
        ("%", ("%", 1.0)),
        ("furlong", ("furlong", 1.0)),
    ],
)
def test_units_lose_their_scale(unit: str, expected: tuple[str, float]) -> None:
    assert base_unit(unit) == expected


def test_amounts_add_up_and_shares_do_not() -> None:
    assert is_summable("dram__bytes.sum", "byte")
    assert is_summable("SQ_WAVES", "")
    assert is_summable("FetchSize", "")
    assert not is_summable("GPU_UTIL", "")
    assert not is_summable("OccupancyPercent", "")
    assert not is_summable(WARPS, "%")
    assert not is_summable("dram__bytes.sum.per_second", "byte/s")
    assert [number(text) for text in ("1,234.5", "12%", "n/a", "inf", "")] == [
        1234.5,
        12.0,
        None,
        None,
        None,
    ]
