from __future__ import annotations

import numpy as np
import pytest

from proton_bench.gate.statistics.contrast import apart, paired
from proton_bench.gate.statistics.moderation import Prior, moderate
from proton_bench.gate.statistics.states import states_of

PAIRS, QUIET = 6, 0.001
ABBA = np.where(np.arange(PAIRS) % 2 == 0, 1.0, -1.0)


def chances(
    base: np.ndarray, new: np.ndarray, order: np.ndarray | None = ABBA, level: float = 1e-5
) -> list[float]:
    contrast = apart(base, new) if order is None else paired(base, new, order)
    prior = Prior(2.0 * QUIET**2, 10.0)
    noise = moderate(contrast.variance, contrast.freedom, prior, limit=20.0)
    margin = np.full(len(contrast), 0.015)
    tested = np.isfinite(contrast.effect)
    found = states_of(contrast, noise, margin, tested=tested, level=level)
    return [float(each) for each in found.chances]


def quiet(seed: int = 1, paths: int = 1) -> tuple[np.ndarray, np.ndarray]:
    base, new = np.random.default_rng(seed).normal(0.0, QUIET, (2, PAIRS, paths))
    return base, new


def test_quiet_paths_have_no_states_even_if_they_changed() -> None:
    base, new = quiet(paths=20)
    new[:, 3] += 0.1
    new[:, 4] -= 0.1

    assert chances(base, new) == []


@pytest.mark.parametrize(("slow", "chance"), [(1, 1 / 12), (2, 2 / 12), (3, 1 / 4), (5, 1 / 12)])
def test_each_pair_in_another_state_makes_a_false_separation_more_likely(
    slow: int, chance: float
) -> None:
    base, new = quiet(paths=5)
    new[:slow, 0] += 0.1

    assert chances(base, new) == pytest.approx([chance])
    assert chances(new, base) == pytest.approx([chance])


@pytest.mark.parametrize(("slow", "chance"), [(1, 11 / 144), (3, 3 / 16)])
def test_sides_apart_show_how_often_a_process_is_slow(slow: int, chance: float) -> None:
    base, new = quiet()
    base[:slow, 0] += 0.1

    assert chances(base, new, None) == pytest.approx([chance])


def test_wide_noise_is_not_a_state() -> None:
    base, new = np.random.default_rng(3).normal(0.0, 0.05, (2, PAIRS, 50))

    assert chances(base, new) == []


def test_a_state_within_the_margin_does_not_matter() -> None:
    base, new = quiet()
    new[:3, 0] += 0.01

    assert chances(base, new) == []


def test_the_states_of_all_paths_add_up_and_more_pairs_end_their_separations() -> None:
    base, new = quiet(paths=3)
    new[:3, 1] += 0.1
    new[2:5, 2] -= 0.1
    contrast = paired(base, new, ABBA)
    noise = moderate(contrast.variance, contrast.freedom, Prior(2.0 * QUIET**2, 10.0), limit=20.0)

    found = states_of(
        contrast, noise, np.full(3, 0.015), tested=np.ones(3, dtype=bool), level=1e-5
    ).separations(np.array([6.0, 8.0, 10.0]))

    assert found == pytest.approx([3 * 4.0**-6, 3 * 4.0**-8, 3 * 4.0**-10])


def test_what_is_missing_or_not_tested_has_no_states() -> None:
    base, new = quiet(paths=5)
    new[:3, :2] += 0.1
    base[:, 0] = np.nan

    assert len(chances(base, new)) == 1


@pytest.mark.parametrize("chance", [0.1, 0.3, 0.5])
def test_the_expected_separations_are_about_those_that_states_cause(chance: float) -> None:
    generator = np.random.default_rng(11)
    bounds, separated, gates = [], 0, 2000
    for _ in range(gates):
        base, new = (generator.normal(0.0, QUIET, (4, 9)) for _side in range(2))
        for side in (base, new):
            side[:, :5] += 0.1 * (generator.random((4, 5)) < chance)
        bounds.append(sum(each**4 for each in chances(base, new, ABBA[:4])))
        separated += int((paired(base, new, ABBA[:4]).effect > 0.09).sum())

    assert np.mean(bounds) + 4.0**-4 >= 0.6 * separated / gates
