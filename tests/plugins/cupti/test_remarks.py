"""Why kernels are missing from a session."""

from __future__ import annotations

from typing import Any

from proton_bench_plugins.cupti.collector import loaded_libraries, remark_on

FACTS: dict[str, Any] = {
    "library": "/a/libcupti.so.12",
    "taken_buffers": 0,
    "foreign_buffers": 0,
    "torch_profiler_pauses": 0,
}


def counts(
    launches: int = 0, records: int = 0, *, failed: int = 0, cleared: int = 0, dropped: int = 0
) -> dict[str, int]:
    return {
        "launches": launches,
        "records": records,
        "failed": failed,
        "cleared": cleared,
        "dropped": dropped,
    }


def test_a_session_with_kernels_has_nothing_to_say() -> None:
    assert remark_on(counts(launches=3, records=3), FACTS, list) is None


def test_launches_whose_data_the_program_cleared_are_not_missing() -> None:
    assert remark_on(counts(launches=3, cleared=3), FACTS, list) is None


def test_losses_without_a_known_reason_are_said_by_others() -> None:
    assert remark_on(counts(launches=3, records=2, dropped=1), FACTS, list) is None


def test_a_session_without_kernels_names_the_likely_reasons() -> None:
    remark = remark_on(counts(), FACTS, lambda: ["/a/libcupti.so.12"])

    assert remark is not None
    assert remark.startswith("no kernel was recorded: the process launched none")
    assert "made before the session started" in remark
    assert "other processes" in remark
    assert "PROTON_BENCH_CUPTI_LIB" not in remark


def test_another_libcupti_in_the_process_is_named() -> None:
    remark = remark_on(counts(), FACTS, lambda: ["/a/libcupti.so.12", "/b/libcupti.so.13"])

    assert "the program has /b/libcupti.so.13" in str(remark)


def test_launches_that_all_failed_are_not_lost_records() -> None:
    assert "the process launched none" in str(remark_on(counts(launches=2, failed=2), FACTS, list))


def test_launches_without_any_record_blame_the_library() -> None:
    remark = remark_on(counts(launches=2), FACTS, list)

    assert "2 launches were seen, but no kernel record arrived" in str(remark)
    assert "PROTON_BENCH_CUPTI_LIB" in str(remark)


def test_buffers_that_were_taken_explain_missing_records() -> None:
    losses = counts(launches=5, records=3, dropped=2)

    remark = remark_on(losses, {**FACTS, "taken_buffers": 1}, list)

    assert "took CUPTI's buffers; 2 records are lost" in str(remark)


def test_buffers_of_others_without_losses_are_not_worth_a_word() -> None:
    facts = {**FACTS, "foreign_buffers": 1}

    assert remark_on(counts(launches=5, records=5), facts, list) is None


def test_a_session_that_stood_aside_all_the_time_says_so() -> None:
    remark = remark_on(counts(), {**FACTS, "torch_profiler_pauses": 1}, list)

    assert remark == "no kernel was recorded: torch.profiler had CUPTI when they ran"


def test_a_process_without_libcupti_has_none_loaded() -> None:
    assert all("libcupti.so" in path for path in loaded_libraries())


def sampled(samples: int, error: str = "") -> dict[str, Any]:
    return {**FACTS, "pc_sampling": {"samples": samples, "error": error, "period_cycles": 4096}}


def test_kernels_without_samples_are_remarked_on_with_the_reason() -> None:
    seen = counts(launches=3, records=3)

    assert remark_on(seen, sampled(9), list) is None
    assert remark_on(seen, sampled(0, "refused"), list) == "no PC sample was taken: refused"
    assert remark_on(seen, sampled(9, "full"), list) == "some PC samples are missing: full"
    assert "less than the period of 4096 cycles" in str(remark_on(seen, sampled(0), list))


def test_without_kernels_their_absence_is_what_is_said() -> None:
    assert "no kernel was recorded" in str(remark_on(counts(), sampled(0), list))
