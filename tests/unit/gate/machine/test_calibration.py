from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from fakes.gated import Kernel, process, session

from proton_bench.analysis.run import Run
from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.gate.judge.judgement import judge
from proton_bench.gate.judge.questions import Context
from proton_bench.gate.judge.verdict import Reason, SuiteVerdict, Verdict
from proton_bench.gate.machine.calibration import measure_noise, resample_false_alarms
from proton_bench.gate.machine.noise import MetricNoise, Noise, Spread
from proton_bench.gate.policy.policy import Policy
from proton_bench.gate.statistics.prior import Prior

KERNELS = [Kernel(f"k{number}", between=0.004) for number in range(12)]


def same_runs(count: int = 16, seed: int = 5, **facts: Any) -> list[Run]:
    generator = np.random.default_rng(seed)
    return [process(KERNELS, generator, new=False, at=at, **facts) for at in range(count)]


def test_noise_is_that_of_the_processes() -> None:
    noise = measure_noise(same_runs(40), Policy())

    # Between processes 0.4 %, what all kernels of one share 0.1 %, and medians of 20 launches.
    expected = next(each for each in noise.metrics if each.metric == "median")
    assert math.sqrt(expected.run.variance) == pytest.approx(0.0047, rel=0.15)
    assert math.sqrt(expected.pair.variance) == pytest.approx(0.0047 * math.sqrt(2), rel=0.15)
    assert len({each.path for each in noise.paths if each.path}) == 12
    assert noise.paths[0].pair.freedom == 18.0
    assert expected.pair.freedom <= 12 * 18
    assert noise.machine["host"] == "here"


def test_noise_survives_a_file() -> None:
    noise = measure_noise(same_runs(), Policy())

    document = json.loads(json.dumps(noise.to_document()))

    assert (document["schema"], document["version"]) == ("proton_bench.noise", [1, 0])
    assert Noise.from_document(document, "x") == noise


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "other"},
        {"version": [2, 0]},
        {"version": []},
        {"paths": 3},
        {"paths": [{"path": ["a"]}]},
        {"metrics": [{"metric": "m", "pair": {"variance": -1.0, "freedom": 1.0}}]},
        {"metrics": [{"metric": "m", "pair": {"variance": math.inf, "freedom": 1.0}}]},
        {"metrics": [{}]},
        {"machine": None},
    ],
)
def test_strange_files_are_not_noise(change: dict[str, Any]) -> None:
    document = {**measure_noise(same_runs(8), Policy()).to_document(), **change}

    with pytest.raises(ProfileFormatError, match="'x'"):
        Noise.from_document(document, "x")
    for nothing in (None, [], 3, "text"):
        with pytest.raises(ProfileFormatError):
            Noise.from_document(nothing, "x")


def test_stored_noise_decides_with_two_pairs() -> None:
    noise = measure_noise(same_runs(), Policy())
    slower = [Kernel("k0", slower=0.08), *KERNELS[1:]]
    base, new = session(slower, pairs=2, seed=3)

    without = judge(base, new, Policy())
    result = judge(base, new, Policy(), context=Context(noise=noise))

    assert without.verdict is SuiteVerdict.INCONCLUSIVE
    assert result.verdict is SuiteVerdict.FAIL
    assert [row.path for row in result.regressions] == [("k0",)]


def test_noise_of_another_machine_is_not_used() -> None:
    noise = measure_noise(same_runs(host="there"), Policy())
    base, new = session(KERNELS, pairs=2)

    result = judge(base, new, Policy(), context=Context(noise=noise))

    assert Reason.NOTICE in {note.reason for note in result.notes}
    assert {row.verdict for row in result.rows} == {Verdict.INCONCLUSIVE}


def test_noise_that_is_no_longer_true_is_not_believed() -> None:
    noise = measure_noise(same_runs(), Policy())
    loud = [Kernel(each.path, between=0.15) for each in KERNELS]

    alarms = 0
    for seed in range(10):
        base, new = session(loud, pairs=4, seed=seed)
        result = judge(base, new, Policy(), context=Context(noise=noise))
        alarms += result.verdict is SuiteVerdict.FAIL
    assert alarms <= 1


def test_false_alarms_of_a_quiet_machine_are_rare_and_repeat() -> None:
    runs = same_runs(12)

    found = resample_false_alarms(runs, Policy(), splits=60, seed=1)

    assert found.trials == 60
    assert found.value <= 0.05
    assert found == resample_false_alarms(runs, Policy(), splits=60, seed=1)


def test_too_few_runs_or_machines_too_many() -> None:
    with pytest.raises(UsageError, match=r"7 runs .* 8"):
        measure_noise(same_runs(7), Policy())
    with pytest.raises(UsageError, match="host"):
        measure_noise([*same_runs(8), *same_runs(1, host="there")], Policy())


def test_priors_of_nothing_survive_a_file() -> None:
    prior = MetricNoise("median", Prior(math.nan, 0.0), Prior(1.0, math.inf))
    noise = Noise({}, (), (prior,), 0)

    found = Noise.from_document(json.loads(json.dumps(noise.to_document())), "x")

    assert math.isnan(found.priors(paired=True)["median"].variance)
    assert found.priors(paired=False)["median"].freedom == math.inf
    assert found.spreads([(("a",), 0, "median")], paired=True)[0].freedom == 0.0
    assert isinstance(found.spreads([(("a",), 0, "median")], paired=False)[0], Spread)


def test_noise_of_a_line_that_moved_is_still_its_own() -> None:
    def runs(line: int, count: int) -> list[Run]:
        generator = np.random.default_rng(line)
        kernels = [Kernel(f"m.py:{line}@f/k", between=0.02), Kernel("quiet", between=0.001)]
        return [process(kernels, generator, new=False, at=at) for at in range(count)]

    noise = measure_noise(runs(3, 16), Policy())
    moved = runs(9, 4)

    result = judge(moved[:2], moved[2:], Policy(), context=Context(noise=noise))

    row = next(row for row in result.rows if row.path == ("m.py:9@f", "k"))
    quiet = next(row for row in result.rows if row.path == ("quiet",))
    assert ("m.py@f", "k") in {each.path for each in noise.paths}
    assert row.detectable > 2.0 * quiet.detectable


@pytest.mark.parametrize("runs", [math.inf, "many", None])
def test_noise_of_no_number_of_runs_cannot_be_read(runs: object) -> None:
    noise = measure_noise(same_runs(8), Policy())

    with pytest.raises(ProfileFormatError):
        Noise.from_document({**noise.to_document(), "runs": runs}, "x.json")
