from __future__ import annotations

import pytest
from fakes.stored import other_gpu, stored_run

from proton_bench.errors import UsageError
from proton_bench.gate.baseline.key import key_of
from proton_bench.gate.machine.fingerprint import Tier


def test_key_holds_device_driver_and_versions() -> None:
    key = key_of([stored_run(torch="2.9", pid=7, command=("x",))])

    assert (Tier.HARD, "GPU name", "NVIDIA H200") in key.facts
    assert (Tier.TOOL, "GPU driver", "570.1") in key.facts
    assert (Tier.TOOL, "torch", "2.9") in key.facts
    assert "pid" not in {fact for _, fact, _ in key.facts}


def test_the_same_facts_have_the_same_digest() -> None:
    one, same, other = (
        key_of([stored_run(time, **facts)])
        for time, facts in ((1.0, {}), (2.0, {}), (1.0, other_gpu(driver="580.2")))
    )

    assert one.digest == same.digest != other.digest


def test_runs_that_differ_are_no_one_baseline() -> None:
    with pytest.raises(UsageError, match=r"GPU driver is '570\.1' in 'a\.proton' and '580'"):
        key_of([stored_run(), stored_run(source="b.proton", **other_gpu(driver="580"))])


@pytest.mark.parametrize(
    ("facts", "distance"),
    [
        ({}, (0, 0, 0)),
        (other_gpu(name="NVIDIA B200"), (1, 0, 0)),
        (other_gpu(uuid="GPU-2"), (0, 1, 0)),
        ({"host": "there"}, (0, 1, 0)),
        (other_gpu(driver="580"), (0, 0, 1)),
        ({"triton": "3.9"}, (0, 0, 0)),  # what one side does not know is not a difference
    ],
)
def test_distance_counts_what_matters_most_first(
    facts: dict[str, object], distance: tuple[int, ...]
) -> None:
    assert key_of([stored_run()]).distance(key_of([stored_run(**facts)])) == distance
