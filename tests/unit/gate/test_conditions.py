from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweeps import how_many

from proton_bench.gate.machine import CanaryShift, shift_of
from proton_bench.gate.runs import disturbances_now

TWO_CORES = "cpu  1 2 3\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n"


Look = Callable[..., tuple[str, ...]]


@pytest.fixture
def look(tmp_path: Path) -> Look:
    def looked(
        files: Mapping[str, str],
        gpus: Sequence[Mapping[str, Any]] = (),
        environ: Mapping[str, str] | None = None,
    ) -> tuple[str, ...]:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return disturbances_now(tmp_path, lambda: gpus, environ or {})

    return looked


def loaded(average: str, cores: str = TWO_CORES, running: int = 3) -> dict[str, str]:
    return {"proc/loadavg": f"{average} 5.00 3.00 {running}/148 6585\n", "proc/stat": cores}


def stopped(throttled: int, where: str = "sys/fs/cgroup") -> dict[str, str]:
    return {f"{where}/cpu.stat": f"usage_usec 5\nnr_periods 1000\nnr_throttled {throttled}\n"}


def clocks(governor: str, low: str, high: str, policy: str = "policy0") -> dict[str, str]:
    place = f"sys/devices/system/cpu/cpufreq/{policy}"
    return {
        f"{place}/scaling_governor": f"{governor}\n",
        f"{place}/scaling_min_freq": f"{low}\n",
        f"{place}/scaling_max_freq": f"{high}\n",
    }


def test_a_machine_that_shows_nothing_is_quiet(look: Look) -> None:
    assert look({}) == ()


@pytest.mark.parametrize(
    "files",
    [
        loaded("0.90"),
        loaded("0.30", "cpu  1\ncpu0 1\n"),
        {"proc/self/cgroup": "0::/\n", **stopped(5)},
        clocks("performance", "800000", "3900000"),
        clocks("powersave", "2600000", "2600000"),
    ],
)
def test_small_amounts_do_not_matter(look: Look, files: Mapping[str, str]) -> None:
    assert look(files) == ()


@pytest.mark.parametrize(
    "files",
    [
        {"proc/loadavg": "many\n", "proc/stat": TWO_CORES},
        loaded("7.10", "btime 5\n"),
        {"proc/self/cgroup": "what\n:\n"},
        {"proc/self/cgroup": "0::/../../other\n", "other/cpu.stat": "nr_periods 1\n"},
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.stat": "nr_periods 0\nnr_throttled 0\n"},
        clocks("powersave", "<unknown>", "3900000"),
    ],
)
def test_files_that_say_nothing_useful_are_passed_over(
    look: Look, files: Mapping[str, str]
) -> None:
    assert look(files) == ()


def test_load_is_compared_with_cores(look: Look) -> None:
    (said,) = look(loaded("7.10"))

    assert said.startswith("load 7.1 on 2 cores")


def test_load_of_work_that_has_ended_does_not_count(look: Look) -> None:
    assert look(loaded("7.10", running=1)) == ()


@pytest.mark.parametrize(
    ("own", "place"),
    [
        ("0::/job/step", "sys/fs/cgroup/job/step"),
        ("0::/job/step", "sys/fs/cgroup/job"),
        ("3:memory:/m\n2:cpu,cpuacct:/job", "sys/fs/cgroup/cpu,cpuacct/job"),
        ("2:cpu,cpuacct:/of/the/host", "sys/fs/cgroup/cpu"),
        ("0::/../..", "sys/fs/cgroup"),
    ],
)
def test_a_limit_of_any_group_above_counts(look: Look, own: str, place: str) -> None:
    (said,) = look({"proc/self/cgroup": f"{own}\n", **stopped(120, place)})

    assert "12 %" in said


def test_limits_of_other_groups_do_not_count(look: Look) -> None:
    found = look({"proc/self/cgroup": "4:memory:/m\n0::/job\n", **stopped(500, "sys/fs/cgroup/m")})

    assert found == ()


def test_a_governor_that_changes_clocks_names_their_range(look: Look) -> None:
    (said,) = look(
        {
            **clocks("schedutil", "800000", "3900000"),
            **clocks("schedutil", "600000", "2100000", "policy4"),
        }
    )

    assert said.startswith("governor schedutil changes CPU clocks between 0.6 and 3.9 GHz")


def test_gpus_that_heat_slows_or_others_use_are_numbered(look: Look) -> None:
    quiet = {"throttle_reasons": 0x1 | 0x4, "other_processes": []}
    gpus = [quiet, {"throttle_reasons": 0x20}, {"throttle_reasons": 0x20, "other_processes": [7]}]

    assert look({}, gpus) == ("heat limits clocks of GPU 1, 2", "other processes run on GPU 2")


@pytest.mark.parametrize(
    ("listed", "count"), [("0", 0), ("1", 1), ("GPU-ab", 1), ("GPU-cd,0", 0), ("", 0), (" 0, 1", 1)]
)
def test_only_gpus_that_cuda_shows_count(look: Look, listed: str, count: int) -> None:
    gpus = [{"uuid": "GPU-cdef"}, {"uuid": "GPU-abcd", "other_processes": [7, 8]}]

    assert len(look({}, gpus, {"CUDA_VISIBLE_DEVICES": listed})) == count


def test_everything_that_disturbs_is_found_at_once(look: Look) -> None:
    files = {
        **loaded("7.10"),
        **clocks("powersave", "800000", "3900000"),
        "proc/self/cgroup": "0::/\n",
        **stopped(500),
    }

    assert len(look(files, [{"other_processes": [7]}])) == 4


# Of an H100 that boosts to one of several clocks.
BETWEEN = 0.006


MANY = how_many(2000, 300)


def shifts(runs: int, shift: float, between: float = BETWEEN) -> list[CanaryShift]:
    rng = np.random.default_rng(1)
    drawn = rng.normal(12.0, between, (MANY, 2, runs, 1))
    return [shift_of(base, new + shift) for base, new in drawn]


@pytest.mark.parametrize("runs", [1, 2, 4, 6])
def test_a_machine_that_did_not_change_rarely_seems_to(runs: int) -> None:
    allowed = MANY // (100 if runs == 2 else 1000)  # two runs decide nothing else either

    assert sum(each.moved for each in shifts(runs, 0.0)) <= allowed


@pytest.mark.parametrize("shift", [0.03, -0.03])
def test_four_runs_on_each_side_show_three_percent(shift: float) -> None:
    found = shifts(4, shift)

    assert sum(each.moved for each in found) >= 0.95 * MANY
    assert not any(each.is_steady for each in found)


def test_quiet_canaries_show_that_nothing_changed() -> None:
    assert all(each.is_steady for each in shifts(4, 0.0, between=0.0005))


@pytest.mark.parametrize("runs", [1, 4])
def test_few_or_noisy_runs_say_neither(runs: int) -> None:
    (found,) = {(each.moved, each.is_steady) for each in shifts(runs, 0.0, between=0.05)[:50]}

    assert found == (False, False)


def test_several_kernels_count_by_their_mean() -> None:
    base = np.zeros((4, 2))

    found = shift_of(base, base + [0.03, 0.05])

    assert (found.count, found.shift) == (2, pytest.approx(0.04))
    assert found.moved


def test_without_canaries_nothing_is_known() -> None:
    found = shift_of(np.zeros((4, 0)), np.zeros((4, 0)))

    assert (found.count, found.moved, found.is_steady) == (0, False, False)
    assert math.isnan(found.shift)
