"""Sessions on a simulated driver: launches, Triton's caches, and what is left behind."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from fakes.tritons import TRITONS, run_on

pytest.importorskip("triton")
pytest.importorskip("torch")

LAUNCHED = ["launched", ["add", {"0": "loop", "1": "load"}, 8320]]


@pytest.fixture(scope="module", params=TRITONS, ids=lambda folder: folder or "installed")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """Two runs with one folder of Triton's cache."""
    cache = tmp_path_factory.mktemp("cache")
    return [run_on(request.param, cache, "instrumented_session.py") for _ in range(2)]


@pytest.fixture
def found(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return runs[0]


def test_each_launch_gets_a_buffer_and_is_described_with_its_scopes(found: dict[str, Any]) -> None:
    allocate = ["allocate", 2 * 8320, 128, 7]

    assert found["first"]["seen"] == [
        *("start", allocate, LAUNCHED, allocate, LAUNCHED, "flush", "stop")
    ]


def test_kernels_with_and_without_records_live_side_by_side(found: dict[str, Any]) -> None:
    plain, first = found["plain"], found["first"]

    assert (plain[1], first["records"]) == (0, 4)
    assert first["hash"] != plain[0]
    assert found["variants"] == 2
    assert found["plain again"] == plain[0]


def test_another_option_is_another_kernel(found: dict[str, Any]) -> None:
    hashes = {found[name]["hash"] for name in ("first", "other options", "chained")}

    assert len(hashes) == 3
    assert found["other options"]["facts"]["kernels"][0]["scratch_bytes_per_program"] == 65664


def test_a_later_session_finds_the_kernel_that_is_loaded(found: dict[str, Any]) -> None:
    assert found["second"]["hash"] == found["first"]["hash"]
    assert LAUNCHED in found["second"]["seen"]


def test_the_cache_on_disk_holds_nothing_stale(runs: list[dict[str, Any]]) -> None:
    first, again = runs

    for name in ("first", "other options", "second", "chained"):
        assert again[name]["hash"] == first[name]["hash"], name
        assert again[name]["records"] == 4, name
        assert again[name]["seen"] == first[name]["seen"], name
    assert again["plain"] == first["plain"]


def test_a_program_can_have_the_buffer_of_a_launch(found: dict[str, Any]) -> None:
    before, kept, is_cheap_again, _ = found["host buffer"]

    assert before is None
    size = struct.unpack_from("I", bytes(kept), 8)[0]
    numbers = struct.unpack_from("10I", bytes(kept))
    assert numbers[:6] == (1, 4, size, size, len(b"records"), 1)
    assert bytes(kept)[size:] == b"records"
    assert is_cheap_again is True


def test_the_buffer_of_a_kernel_without_scopes_is_a_header(found: dict[str, Any]) -> None:
    *_, kept = found["host buffer"]

    header = struct.unpack("12I", bytes(kept))  # two warps
    assert header == (1, 4, 48, 48, 0, 1, 0, 2, 0, 2, 0, 1)


def test_everything_is_put_back(found: dict[str, Any]) -> None:
    assert found["after"] == found["before"]
    assert found["after refusals"] == found["before"]


def test_a_hook_for_stages_that_was_there_is_called_and_stays(found: dict[str, Any]) -> None:
    assert ["cubin", "llir", "ptx", "ttgir", "ttir"] in found["older calls"]
    assert found["kept hook"]


def test_facts_say_what_records_cost_the_kernel(found: dict[str, Any]) -> None:
    facts = found["first"]["facts"]
    (kernel,) = facts["kernels"]

    assert facts["instrumentation_mode"].startswith("proton_bench:")
    assert facts["kernel_times_perturbed"] is True
    assert facts["record_cost_cycles"] == 1.5
    assert (kernel["shared_bytes"], kernel["plain_shared_bytes"]) == (8192, 0)
    assert kernel["registers"] > kernel["plain_registers"] > 0


def test_a_language_that_is_not_accepted_is_named(found: dict[str, Any]) -> None:
    said = found["refusals"]["language"]

    assert "Unsupported semantic type: TritonSemantic; accepted: gluon" in said
    assert 'enable_semantic("triton")' in said


def test_sanitizers_and_other_profilers_are_refused(found: dict[str, Any]) -> None:
    said = found["refusals"]

    assert "UsageError: Triton's instrumentation_mode is 'consan' already" in said["sanitizer"]
    assert "UsageError: another profiler instruments Triton's kernels" in said["other"]
