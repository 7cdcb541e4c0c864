"""Files as the tools write them: the headings are those of documentation and of real files."""

from __future__ import annotations

import pytest

from proton_bench.analysis.counters.file import parse_counters
from proton_bench.analysis.counters.join import HBM, add_hbm_traffic, headlines

# Headings that the tools write.
NCU_DETAILS = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value",'
    '"Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"\n'
)
NCU_RAW = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC","dram__bytes_read.sum","dram__bytes_write.sum",'
    '"gpu__time_duration.sum"\n"","","","","","","","","","","","byte","Kbyte","nsecond"\n'
)
ROCPROFV3 = (
    '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size",'
    '"Kernel_Id","Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size","VGPR_Count",'
    '"Accum_VGPR_Count","SGPR_Count","Counter_Name","Counter_Value","Start_Timestamp",'
    '"End_Timestamp"\n'
)
ROCPROFV2 = (
    "Dispatch_ID,GPU_ID,Queue_ID,PID,TID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,"
    "Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Wave_Size,Kernel_Name,Start_Timestamp,"
    "End_Timestamp,Correlation_ID,SQ_WAVES\n"
)
ROCPROF = (
    "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,vgpr,sgpr,fbar,sig,obj,"
    "SQ_WAVES,BeginNs,EndNs\n"
)


def test_details_page_with_rules() -> None:
    start = '"0","1","app","h","k(float*)","1","7","(256, 1, 1)","(8, 1, 1)","0","9.0"'
    text = NCU_DETAILS + (
        f'{start},"GPU Speed Of Light Throughput","Duration","us","2,848","","","","",""\n'
        f'{start},"GPU Speed Of Light Throughput","DRAM Throughput","%","14.26","","","","",""\n'
        f'{start},"SpeedOfLight","","","","Bottleneck","OPT","Look at it.","global","12.5"\n'
    )

    (launch,) = parse_counters(text, "x").launches

    assert launch.values == {"Duration (ns)": 2_848_000.0, "DRAM Throughput (%)": 14.26}
    assert (launch.grid, launch.duration_ns) == ("(8, 1, 1)", 2_848_000.0)


def test_the_raw_page_shows_traffic_by_reads_and_writes() -> None:
    text = NCU_RAW + '"0","1","a","h","k","1","7","(1,1,1)","(1,1,1)","0","9.0","500","2","30"\n'
    file = parse_counters(text, "x")

    add_hbm_traffic(file)

    assert file.launches[0].values[HBM] == 2500.0
    assert headlines(file)[0] == HBM


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (('"27.595.520"', '"117.344"'), (27_595_520.0, 117_344.0)),
        (('"1.024"', '"65,77"'), (1024.0, 65.77)),
        (('"1,024"', '"65.77"'), (1024.0, 65.77)),
        (('"1,024"', '"2,048.5"'), (1024.0, 2048.5)),
    ],
)
def test_numbers_of_other_languages_are_understood(
    cells: tuple[str, str], expected: tuple[float, float]
) -> None:
    text = f'"ID","Kernel Name","a.sum","b.sum"\n"0","k",{",".join(cells)}\n'

    (launch,) = parse_counters(text, "x").launches

    assert tuple(launch.values.values()) == expected


def test_rocprofv3_takes_the_time_of_a_dispatch_from_its_timestamps() -> None:
    facts = '"Agent 1",2,9,9,512,3,"k(float*)",256,0,0,20,4,32'
    text = ROCPROFV3 + (
        f'1,1,{facts},"OccupancyPercent",4.5e-02,1000,1500\n'
        f'1,1,{facts},"FETCH_SIZE",3,1000,1500\n'
        f'1,1,{facts},"WRITE_SIZE",1,1000,1500\n'
    )
    file = parse_counters(text, "x")

    add_hbm_traffic(file)

    (launch,) = file.launches
    assert launch.duration_ns == 500.0
    assert launch.values == {
        "OccupancyPercent": 0.045,
        "FETCH_SIZE": 3.0,
        "WRITE_SIZE": 1.0,
        HBM: 4096.0,
    }


@pytest.mark.parametrize(
    "text",
    [
        ROCPROFV2 + "0,4,1,9,9,512,256,0,0,8,0,16,64,k.kd,1000,1500,1,16\n",
        ROCPROF + "0,k,0,0,0,9,9,512,256,0,0,8,16,0,0x0,0x1,16,1000,1500\n",
    ],
)
def test_facts_of_dispatches_are_not_counters(text: str) -> None:
    (launch,) = parse_counters(text, "pmc_perf.csv").launches

    assert launch.values == {"SQ_WAVES": 16.0}
    assert launch.duration_ns == 500.0


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        ({"TCC_EA0": (10, 4, 6, 5), "TCC_BUBBLE": 2}, 2 * 128 + 4 * 64 + 4 * 32 + 5 * 64 + 32),
        ({"TCC_EA0": (10, 4, 6, 5), "TCC_EA0_RDREQ_128B": 3, "TCC_BUBBLE": 9}, 1056),
        ({"TCC_EA0": (10, 4, 6, 5)}, None),
        ({"TCC_EA": (10, 4, 6, 5)}, 6 * 64 + 4 * 32 + 5 * 64 + 32),
    ],
)
def test_traffic_is_shown_only_where_reads_of_128_bytes_are_counted(
    counters: dict[str, tuple[int, ...] | int], expected: int | None
) -> None:
    named: dict[str, int] = {}
    for name, found in counters.items():
        if isinstance(found, tuple):
            kinds = ("RDREQ", "RDREQ_32B", "WRREQ", "WRREQ_64B")
            named |= {f"{name}_{kind}_sum": n for kind, n in zip(kinds, found, strict=True)}
        else:
            named[f"{name}_sum"] = found
    values = ",".join(map(str, named.values()))
    file = parse_counters(f"Dispatch_ID,Kernel_Name,{','.join(named)}\n0,k,{values}\n", "x")

    add_hbm_traffic(file)

    assert file.launches[0].values.get(HBM) == expected
