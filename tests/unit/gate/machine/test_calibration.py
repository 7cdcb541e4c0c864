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
from proton_bench.gate.machine.noise import Noise
from proton_bench.gate.policy.policy import Policy

KERNELS = [Kernel(f"k{number}", between=0.004) for number in range(12)]


def same_runs(count: int = 16, seed: int = 5, **facts: Any) -> list[Run]:
    generator = np.random.default_rng(seed)
    return [process(KERNELS, generator, new=False, at=at, **facts) for at in range(count)]


def test_noise_is_that_of_the_processes() -> None:
    noise = measure_noise(same_runs(40), Policy())

    # Between processes 0.4 %, what all kernels of one share 0.1 %, and medians of 20 launches.
    medians = [each for each in noise.paths if each.metric == "median"]
    run, pair = (
        math.sqrt(np.mean([getattr(each, name).variance for each in medians]))
        for name in ("run", "pair")
    )
    assert run == pytest.approx(0.0047, rel=0.15)
    assert pair == pytest.approx(0.0047 * math.sqrt(2), rel=0.15)
    assert len(medians) == 12
    assert medians[0].pair.freedom == pytest.approx(19.0 - 1.0 / 12.0)
    assert noise.machine["host"] == "here"


def test_noise_survives_a_file() -> None:
    noise = measure_noise(same_runs(), Policy())

    document = json.loads(json.dumps(noise.to_document()))

    assert (document["schema"], document["version"]) == ("proton_bench.noise", [1, 1])
    assert Noise.from_document(document, "x") == noise


PATH = {"path": ["a"], "occurrence": 0, "metric": "m", "pair": [1.0, 1.0], "run": [1.0, 1.0]}


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "other"},
        {"version": [2, 0]},
        {"version": []},
        {"paths": 3},
        {"paths": [{"path": ["a"]}]},
        {"paths": [{**PATH, "pair": [-1.0, 1.0]}]},
        {"paths": [{**PATH, "run": [math.inf, 1.0]}]},
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


def test_stored_noise_does_not_replace_runs() -> None:
    noise = measure_noise(same_runs(), Policy())
    slower = [Kernel("k0", slower=0.08), *KERNELS[1:]]

    result = judge(*session(slower, pairs=3, seed=3), Policy(), context=Context(noise=noise))

    assert {row.reasons[0] for row in result.rows} == {Reason.TOO_FEW_RUNS}
    assert result.verdict is SuiteVerdict.INCONCLUSIVE


def test_stored_noise_only_raises_a_variance() -> None:
    calm, loud = (
        [Kernel(each.path, between=between) for each in KERNELS] for between in (0.001, 0.05)
    )
    generator = np.random.default_rng(2)
    noise = measure_noise(
        [process(loud, generator, new=False, at=at) for at in range(16)], Policy()
    )
    base, new = session(calm)

    without = judge(base, new, Policy())
    result = judge(base, new, Policy(), context=Context(noise=noise))
    quieter = judge(
        *session(loud), Policy(), context=Context(noise=measure_noise(same_runs(), Policy()))
    )

    assert without.verdict is SuiteVerdict.PASS
    assert min(row.detectable for row in result.rows) > 0.1
    assert [row.detectable for row in quieter.rows] == [
        row.detectable for row in judge(*session(loud), Policy()).rows
    ]


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


def test_a_path_without_stored_noise_has_none() -> None:
    noise = measure_noise(same_runs(), Policy())

    found = noise.variances([(("a",), 0, "median"), (("k0",), 0, "median")], paired=True)

    assert found[0] == 0.0
    (known,) = [e for e in noise.paths if e.path == ("k0",) and e.metric == "median"]
    assert found[1] == known.pair.variance


def test_noise_of_a_line_that_moved_is_still_its_own() -> None:
    def runs(line: int, count: int) -> list[Run]:
        generator = np.random.default_rng(line)
        kernels = [Kernel(f"m.py:{line}@f/k", between=0.02), Kernel("quiet", between=0.001)]
        return [process(kernels, generator, new=False, at=at) for at in range(count)]

    noise = measure_noise(runs(3, 16), Policy())
    moved = runs(9, 8)

    result = judge(moved[:4], moved[4:], Policy(), context=Context(noise=noise))

    row = next(row for row in result.rows if row.path == ("m.py:9@f", "k"))
    quiet = next(row for row in result.rows if row.path == ("quiet",))
    assert ("m.py@f", "k") in {each.path for each in noise.paths}
    assert row.detectable > 2.0 * quiet.detectable


@pytest.mark.parametrize("runs", [math.inf, "many", None])
def test_noise_of_no_number_of_runs_cannot_be_read(runs: object) -> None:
    noise = measure_noise(same_runs(8), Policy())

    with pytest.raises(ProfileFormatError):
        Noise.from_document({**noise.to_document(), "runs": runs}, "x.json")
