"""Kernels compiled with records for every target, on every Triton that is to be tested with.

A slice runs by default; ``make nightly`` compiles every kernel for every target with every
option.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.tritons import TRITONS, run_on
from sweeps import IS_WHOLE

pytest.importorskip("triton")

TARGETS = ("cuda:80", "cuda:90", "cuda:100", "gfx942", "gfx950")
KERNELS = ("add", "matmul", "specialized", "gluon_copy", "named")
GLOBAL = "default:buffer_type=global"
SELECTIVE = "default:sampling_strategy=selective:sampling_options=0,2"
SHORT = "default:optimizations=clock32"
OPTIONS = (
    *("default", "mma", GLOBAL, SELECTIVE, SHORT),
    "default:buffer_size=4096",
    "default:optimizations=sched_stores,sched_barriers,time_shift",
    f"{GLOBAL}:buffer_size=8192:optimizations=clock32,sched_stores:sampling_strategy=selective"
    ":sampling_options=1",
)
MATRIX = [(kernel, target, mode) for kernel in KERNELS for target in TARGETS for mode in OPTIONS]
SLICE = [
    *(("add", target, "default") for target in TARGETS),
    *(("add", "cuda:90", mode) for mode in OPTIONS[2:]),
    ("specialized", "cuda:100", SHORT),
    ("gluon_copy", "gfx942", "default"),
]
CASES = MATRIX if IS_WHOLE else SLICE
RECORDS = {"add": 4, "matmul": 4, "specialized": 2, "gluon_copy": 4, "named": 2}
EVENTS = ("gluon_events", "cuda:90", "default")
# Twelve warps of all partitions together, and 4096 / 12 is not a power of two.
UNEVEN = ("specialized", "cuda:90", "default:buffer_size=4096")
REFUSED = {
    ("left_open", "default"): "kernel 'left_open': scope 'load' is opened but never closed",
    ("add", "default:buffer_size=300"): "buffer_size=300: kernel 'add' records 4 warps",
    (
        "add",
        "default:sampling_strategy=selective:sampling_options=0,4",
    ): "sampling_options=0,4: kernel 'add' has no warp 4; its 4 warps have the numbers 0 to 3",
    ("many", "default"): "kernel 'many' has 257 scopes and events, but can have only 256",
}

Case = tuple[str, str, str]
Compile = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module", params=TRITONS, ids=lambda folder: folder or "installed")
def found(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[Case, dict[str, Any]]:
    """Return the result of each case; one process compiles them all."""
    many = {"constants": {"COUNT": 257}}
    cases = [list(case) for case in dict.fromkeys([*CASES, EVENTS, UNEVEN])]
    cases += [[name, "cuda:90", mode, many if name == "many" else {}] for name, mode in REFUSED]
    cases += [["named", "cuda:90", "default", {"maxnreg": 64}]]
    cache = tmp_path_factory.mktemp("cache")
    answer = run_on(request.param, cache, "instrumented_compile.py", json.dumps(cases))
    kept: dict[Any, dict[str, Any]] = {}
    for case, facts in zip(cases, answer["found"], strict=True):
        kept[tuple(case[:3]) if case[3:] != [{"maxnreg": 64}] else "maxnreg"] = facts
    kept["triton"] = answer["triton"]
    return kept


def compiled(found: dict[Case, dict[str, Any]]) -> dict[Case, dict[str, Any]]:
    """Return the cases that this Triton can compile."""
    return {
        case: found[case]
        for case in CASES
        # An old compiler of AMD's has no stores of records to global memory.
        if not (found["triton"].startswith("3.6") and case[1][0] == "g" and "global" in case[2])  # type: ignore[index]
        and case != UNEVEN
    }


def test_every_case_compiles(found: dict[Case, dict[str, Any]]) -> None:
    errors = {case: facts["error"] for case, facts in compiled(found).items() if "error" in facts}

    assert errors == {}


def test_warps_of_all_partitions_count_where_a_size_is_named(
    found: dict[Case, dict[str, Any]],
) -> None:
    error = found[UNEVEN]["error"]

    assert "buffer_size=4096" in error
    assert "warps of all partitions" in error


def test_records_are_in_the_ir_and_read_back(found: dict[Case, dict[str, Any]]) -> None:
    for (kernel, *rest), facts in compiled(found).items():
        assert facts["records"] == RECORDS[kernel], (kernel, *rest)
        assert len(facts["names"]) == RECORDS[kernel] // 2, (kernel, *rest)
        assert facts["mode"].startswith("proton_bench:"), (kernel, *rest)


def test_each_record_reads_the_clock(found: dict[Case, dict[str, Any]]) -> None:
    for case, facts in compiled(found).items():
        words = 1 if "clock32" in case[2] or case[1].startswith("gfx") else 2
        assert facts["clock_reads"] >= words * facts["records"], case


def test_a_short_clock_is_half_the_reads(found: dict[Case, dict[str, Any]]) -> None:
    wide, short = found["add", "cuda:90", "default"], found["add", "cuda:90", SHORT]

    assert short["clock_reads"] * 2 == wide["clock_reads"]


def test_the_machine_code_reads_the_clock(found: dict[Case, dict[str, Any]]) -> None:
    counted = {
        case: facts
        for case, facts in compiled(found).items()
        if case[1].startswith("cuda") and facts["sass_clock_reads"] is not None
    }
    if not counted:
        pytest.skip("no nvdisasm in this Triton")

    for case, facts in counted.items():
        # More where ptxas unrolls a loop that holds records.
        assert facts["sass_clock_reads"] >= facts["clock_reads"], case
        assert facts["registers"] > 0, case


def test_the_buffer_lies_where_the_mode_says(found: dict[Case, dict[str, Any]]) -> None:
    shared, beside = found["add", "cuda:90", "default"], found["add", "cuda:90", GLOBAL]
    small = found["add", "cuda:90", "default:buffer_size=4096"]

    assert (shared["shared"], shared["scratch"]) == (8192, 8320)
    assert (beside["shared"], beside["scratch"]) == (0, 65664)
    assert (small["shared"], small["scratch"]) == (4096, 4224)


def test_a_kernel_whose_loops_are_known_gets_room_for_its_records_alone(
    found: dict[Case, dict[str, Any]],
) -> None:
    facts = found["gluon_copy", "gfx942", "default"]

    assert (facts["shared"], facts["scratch"]) == (128, 256)


def test_scopes_have_their_parents(found: dict[Case, dict[str, Any]]) -> None:
    facts = found["add", "gfx942", "default"]

    assert facts["names"] == {"0": "loop", "1": "load"}
    assert facts["parents"] == {"1": 0}


def test_warps_of_all_partitions_are_counted(found: dict[Case, dict[str, Any]]) -> None:
    facts = found["specialized", "cuda:100", SHORT]

    assert facts["warps"] == 8
    assert facts["names"] == {"0": "loop"}


def test_names_may_be_constants_of_the_kernel(
    found: dict[Case, dict[str, Any]],
) -> None:
    assert found["maxnreg"]["names"] == {"0": "copy"}  # type: ignore[index]


def test_a_dropped_limit_of_registers_stays_in_the_key(found: dict[Case, dict[str, Any]]) -> None:
    facts = found["maxnreg"]  # type: ignore[index]

    assert (facts["maxnreg"] == 64) is not facts["mode"].endswith(".maxnreg64")


def test_events_work_where_the_compiler_has_them(found: dict[Case, dict[str, Any]]) -> None:
    facts, version = found[EVENTS], str(found["triton"])  # type: ignore[index]

    if "error" in facts:
        assert (
            f"event 'copy': the compiler of this Triton ({version}) has no event" in facts["error"]
        )
    else:
        assert (facts["events"], facts["names"]) == (2, {"0": "copy"})


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_what_does_not_fit_the_kernel_is_said(
    case: tuple[str, str], found: dict[Case, dict[str, Any]]
) -> None:
    error = found[case[0], "cuda:90", case[1]]["error"]

    assert error.startswith("UsageError: ")
    assert REFUSED[case] in error


def test_a_kernel_without_a_session_has_no_trace_of_its_scopes(tmp_path: Path) -> None:
    cases = [["add", "cuda:90", None], ["plain_add", "cuda:90", None]]

    answer = run_on("", tmp_path, "instrumented_compile.py", json.dumps(cases))

    scoped, plain = (_bare(facts["machine"]) for facts in answer["found"])
    assert answer["found"][0]["ttir"] == 0
    assert scoped == plain


def _bare(text: str) -> str:
    """PTX without the names and places of the source."""
    code = text.replace("plain_add", "add").partition(".section")[0]
    return re.sub(r"^\s*(\.loc|\.file|//).*\n|\$L__\w+|//.*$", "", code, flags=re.MULTILINE)
