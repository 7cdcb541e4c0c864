from __future__ import annotations

from fakes.gated import Kernel, session

from proton_bench.gate.experiment import resample_false_alarms
from proton_bench.gate.policy import Policy
from proton_bench.gate.statistics.arrangement import arrange


def test_false_alarms_of_a_quiet_machine_are_rare_and_repeat() -> None:
    runs = arrange(*session([Kernel(f"k{number}", between=0.004) for number in range(12)]))

    found = resample_false_alarms(runs, Policy(), splits=60, seed=1)

    assert (found.trials, found.events) == (60, 0)
    assert found == resample_false_alarms(runs, Policy(), splits=60, seed=1)


def test_sides_that_differ_fail_in_some_splits() -> None:
    slower = arrange(*session([Kernel(f"k{n}", between=0.001, slower=0.2) for n in range(12)]))

    assert resample_false_alarms(slower, Policy(), splits=400).events
