from __future__ import annotations

from pathlib import Path

import pytest
from fakes.profiles import training_profile

from proton_bench.analysis.derive import available_metrics, derive
from proton_bench.errors import MetricError
from proton_bench.formats.registry import read_profile
from proton_bench.profile import Profile

SAMPLED = Path(__file__).parents[2] / "data" / "upstream" / "matmul-pcsampling.hatchet"


@pytest.fixture
def sampled() -> Profile:
    return read_profile(SAMPLED)


def test_ratio_is_the_part_of_all_samples(sampled: Profile) -> None:
    (ratio,) = derive(sampled, ["num_stalled_samples/samples"])

    stalled, total = sampled.inclusive("num_stalled_samples"), sampled.inclusive("num_samples")
    assert total[0] > 0
    assert ratio.to_list()[0] == pytest.approx(stalled[0] / total[0])


def test_every_reason_is_listed_whatever_its_case(sampled: Profile) -> None:
    names = [n for n in available_metrics(sampled).derivable if n.endswith("/samples")]

    assert {"stalled_long_scoreboard/samples", "stalled_not_selected/samples"} <= set(names)
    values = {metric.name: metric.to_list()[0] for metric in derive(sampled, names)}
    assert all(0.0 <= value <= 1.0 for value in values.values())


def test_unknown_reason_is_named_with_the_known_ones(sampled: Profile) -> None:
    with pytest.raises(MetricError, match=r"known are .*stalled_barrier/samples"):
        derive(sampled, ["stalled_nothing/samples"])


def test_file_without_samples_says_so() -> None:
    with pytest.raises(MetricError, match="this file holds no PC samples"):
        derive(training_profile(), ["stalled_wait/samples"])
