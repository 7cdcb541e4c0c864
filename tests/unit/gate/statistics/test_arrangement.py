from __future__ import annotations

import numpy as np
import pytest
from fakes.gated import Kernel, process, profile_of_times, session

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.gate.policy import Policy
from proton_bench.gate.statistics.arrangement import arrange, paired_as
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.result import Reason, SuiteVerdict, Verdict

KERNELS = [Kernel("k")]


def at(*spans: tuple[int, int], host: object = "here") -> list[Run]:
    return [
        Run(
            profile_of_times(
                {"k": [1.0]},
                provenance={"start_time_ns": start, "end_time_ns": end, "host": host},
            ),
            f"{start}",
        )
        for start, end in spans
    ]


def test_runs_in_turn_pair_in_the_order_of_their_times() -> None:
    base, new = session(KERNELS, pairs=4)

    found = arrange(base[::-1], new)

    assert found.order == (1.0, -1.0, 1.0, -1.0)
    assert [run.source for run in found.base] == [run.source for run in base]
    assert found.is_paired
    assert not found.is_confounded


def test_one_side_always_first_is_confounded() -> None:
    found = arrange(at((0, 1), (4, 5), (8, 9)), at((2, 3), (6, 7), (10, 11)))

    assert found.order == (1.0, 1.0, 1.0)
    assert found.is_confounded


def test_one_pair_has_no_order_to_alternate() -> None:
    assert not paired_as(at((0, 1)), at((2, 3)), [True]).is_confounded


@pytest.mark.parametrize(
    ("base", "new"),
    [
        (at((0, 1), (2, 3)), at((4, 5), (6, 7))),
        (at((0, 1)), at((2, 3))),
        (at((0, 1), (4, 5)), at((2, 3))),
        (at((0, 1), (4, 5)), at((2, 3), (6, 7), host="there")),
        (at((1, 0), (4, 5)), at((2, 3), (6, 7))),
    ],
)
def test_other_runs_are_apart(base: list[Run], new: list[Run]) -> None:
    found = arrange(base, new)

    assert not found.is_paired
    assert (len(found.base), len(found.new)) == (len(base), len(new))


def test_runs_without_times_are_apart() -> None:
    runs = [Run(profile_of_times({"k": [1.0]}), "x") for _ in range(4)]

    assert not arrange(runs[:2], runs[2:]).is_paired


def test_known_pairs_need_a_run_of_each_side() -> None:
    base, new = session(KERNELS, pairs=2)

    assert paired_as(base, new, [True, False]).order == (1.0, -1.0)
    with pytest.raises(UsageError, match="2 base runs, 1 new runs"):
        paired_as(base, new[:1], [True, False])


def test_a_host_that_is_not_a_text_is_unknown() -> None:
    found = arrange(at((0, 1), (4, 5), host={"a": 1}), at((2, 3), (6, 7), host=""))

    assert found.is_paired


def apart(*kernels: Kernel, shift: float = 0.0) -> tuple[list[Run], list[Run]]:
    """Return runs of two sessions, the second of which is slower in everything by ``shift``."""
    generator = np.random.default_rng(1)
    shifted = [Kernel(**{**vars(each), "slower": each.slower + shift}) for each in kernels]
    base = [process(kernels, generator, new=False, at=at) for at in range(6)]
    return base, [process(shifted, generator, new=True, at=at) for at in range(10, 16)]


QUIET = [Kernel(f"k{number}", between=0.003) for number in range(12)]


OWN = Kernel("own", between=0.003, slower=0.08)


def test_a_shift_of_everything_since_a_stored_base_is_undecided() -> None:
    result = gate_result(*apart(*QUIET, shift=0.05), Policy())

    rows = [row for row in result.rows if not row.is_extra]
    assert {row.verdict for row in rows} == {Verdict.INCONCLUSIVE}
    assert {row.reasons[0] for row in rows} == {Reason.MACHINE}
    assert all(row.downgraded for row in rows)
    assert result.verdict is SuiteVerdict.INCONCLUSIVE
    assert {note.reason for note in result.notes} == {Reason.MACHINE}


def test_a_slowdown_beyond_the_shift_is_believed() -> None:
    result = gate_result(*apart(*QUIET, OWN, shift=0.03), Policy())

    assert {row.path for row in result.regressions} == {("own",)}


def test_canaries_that_stood_still_make_the_shift_the_programs() -> None:
    canary = Kernel("<canary>/fma", between=0.0005)
    slower = [Kernel(each.path, between=0.003, slower=0.05) for each in QUIET]

    result = gate_result(*apart(*slower, canary), Policy())

    assert len([row for row in result.regressions if row.path]) == 12
    assert result.verdict is SuiteVerdict.FAIL


def test_everything_faster_could_hide_a_slowdown() -> None:
    result = gate_result(*apart(*QUIET, shift=-0.05), Policy())

    rows = [row for row in result.rows if not row.is_extra]
    assert {row.verdict for row in rows} == {Verdict.INCONCLUSIVE}
    assert not any(row.downgraded for row in result.rows)
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


def test_a_small_shift_is_ignored() -> None:
    assert gate_result(*apart(*QUIET, shift=0.01), Policy()).verdict is SuiteVerdict.PASS


@pytest.mark.parametrize("paths", [1, 7])
def test_few_paths_have_to_exceed_what_sessions_usually_differ_by(paths: int) -> None:
    small = gate_result(*apart(*QUIET[:paths], shift=0.04), Policy())
    large = gate_result(*apart(*QUIET[:paths], shift=0.1), Policy())
    nothing = gate_result(*apart(*QUIET[:paths]), Policy())

    assert {row.reasons[0] for row in small.rows if not row.is_extra} == {Reason.MACHINE}
    assert small.verdict is SuiteVerdict.INCONCLUSIVE
    assert len({row.path for row in large.regressions if row.path}) == paths
    assert nothing.verdict is SuiteVerdict.PASS
