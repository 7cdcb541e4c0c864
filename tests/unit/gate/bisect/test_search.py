"""The search on made-up timings: no process runs, so every revision's truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import how_many

from benchmarks.studies.bisect.simulation import MACHINES, REVISIONS, Bench, ours, plain, simulate
from proton_bench.gate.bisect.history import Candidate, History
from proton_bench.gate.bisect.search import UNLIKELY, Search, Seen, Signal

SLOWER = math.log(1.03)


@st.composite
def histories(draw: st.DrawFn, most: int = 24) -> History:
    """Histories with branches and merges; the last revision contains all others."""
    count = draw(st.integers(2, most))
    parents: list[tuple[int, ...]] = [()]
    for place in range(1, count):
        above = st.integers(max(0, place - 5), place - 1)
        parents.append(tuple(sorted(draw(st.sets(above, min_size=1, max_size=2)))))
    merged = {parent for each in parents for parent in each}
    tips = tuple(place for place in range(count) if place not in merged)
    parents.append(tips)
    return History([Candidate(str(place), parents=each) for place, each in enumerate(parents)])


@dataclass
class Truth:
    """A history with one slower revision, and pairs of a machine without large noise."""

    history: History
    guilty: int
    noise: float = 0.002
    second: float = 0.0
    skipped: frozenset[int] = frozenset()
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def pair(self, revision: int, *, base_first: bool) -> Seen:
        truth = SLOWER if self.history.contains[revision, self.guilty] else 0.0
        second = self.second if base_first else -self.second
        return Seen(truth + second + float(self.rng.normal(0.0, self.noise)), base_first)

    def proof(self) -> list[Seen]:
        return [self.pair(self.history.bad, base_first=n % 2 == 0) for n in range(6)]

    def search(self, prior: Sequence[float] | None = None) -> Search:
        search = Search(self.history, self.proof())
        if prior is not None:
            search.weigh(prior)
        base_first = True
        while (revision := search.next()) is not None:
            if revision in self.skipped:
                search.skip(revision)
                continue
            search.saw(revision, self.pair(revision, base_first=base_first))
            base_first = not base_first
        return search


def line(count: int) -> History:
    return History([Candidate(str(n), parents=(n - 1,) if n else ()) for n in range(count)])


@settings(max_examples=how_many(200, 25), deadline=None)
@given(history=histories(), data=st.data())
def test_the_slower_revision_of_any_history_with_merges_is_found(
    history: History, data: st.DataObject
) -> None:
    guilty = data.draw(st.integers(0, history.bad))

    search = Truth(history, guilty).search()

    assert search.answer() == (guilty,)


@settings(max_examples=how_many(200, 25), deadline=None)
@given(history=histories(), data=st.data())
def test_with_revisions_that_cannot_run_the_answer_holds_the_slower_one(
    history: History, data: st.DataObject
) -> None:
    guilty = data.draw(st.integers(0, history.bad))
    skipped = data.draw(st.frozensets(st.integers(0, history.bad - 1), max_size=history.bad))

    search = Truth(history, guilty, skipped=skipped).search()

    answer = search.answer()
    assert guilty in answer
    # What remains besides it cannot be distinguished from it by any revision that runs.
    runs = [place for place in range(len(history)) if place not in skipped]
    for other in answer:
        assert all(
            history.contains[place, other] == history.contains[place, guilty] for place in runs
        )


@settings(max_examples=how_many(60, 10), deadline=None)
@given(
    guilty=st.integers(0, 63),
    noise=st.floats(0.0, 0.004),
    second=st.floats(-0.02, 0.02),
    seed=st.integers(0, 2**32 - 1),
)
def test_noise_and_the_cost_of_running_second_do_not_mislead(
    guilty: int, noise: float, second: float, seed: int
) -> None:
    truth = Truth(line(64), guilty, noise, second, rng=np.random.default_rng(seed))

    search = truth.search()

    assert guilty in search.answer()
    assert len(search.answer()) <= 2


def test_without_any_noise_each_revision_needs_one_pair_and_the_answer_two() -> None:
    search = Truth(line(64), 40, noise=0.0).search()

    assert search.answer() == (40,)
    assert len(search.seen[40]) == len(search.seen[39]) == 2
    assert sum(map(len, search.seen.values())) <= 9


def test_a_single_revision_needs_no_pair() -> None:
    search = Truth(line(1), 0).search()

    assert search.answer() == (0,)
    assert not search.seen


def test_one_wild_pair_does_not_decide() -> None:
    history = line(8)
    truth = Truth(history, 6)
    search = Search(history, truth.proof())

    search.saw(2, Seen(10 * SLOWER, base_first=True))
    search.saw(2, Seen(0.001, base_first=False))
    search.saw(2, Seen(-0.001, base_first=True))

    assert search.slower()[2] < 0.1


def test_many_pairs_between_good_and_bad_leave_a_revision_open() -> None:
    history = line(8)
    search = Search(history, Truth(history, 6).proof())

    for number in range(30):
        search.saw(3, Seen(SLOWER / 2.0 + 0.0001 * (-1) ** number, base_first=number % 2 == 0))

    assert 0.05 < search.slower()[3] < 0.95


def test_a_regression_in_two_steps_ends_without_a_wrong_certainty() -> None:
    history = line(16)
    search = Search(history, Truth(history, 6).proof())
    rng = np.random.default_rng(5)
    base_first = True

    while (revision := search.next()) is not None:
        steps = (revision >= 4) + (revision >= 11)
        value = SLOWER / 2.0 * steps + float(rng.normal(0.0, 0.002))
        search.saw(revision, Seen(value, base_first))
        base_first = not base_first

    assert {4, 11} & set(search.answer())


def test_revisions_that_change_nothing_that_runs_are_measured_last() -> None:
    prior = [1.0 if place % 8 == 5 else UNLIKELY for place in range(64)]

    search = Truth(line(64), 29).search(prior)

    assert search.answer() == (29,)
    boundaries = {29 + step for step in range(-16, 17, 8)}
    assert all(any(other <= each < other + 8 for other in boundaries) for each in search.seen)
    assert sum(map(len, search.seen.values())) <= 7


def test_an_unlikely_revision_is_found_if_the_pairs_say_so() -> None:
    prior = [1.0 if place % 8 == 5 else UNLIKELY for place in range(64)]

    assert Truth(line(64), 32).search(prior).answer() == (32,)


def test_a_revision_with_the_code_of_a_good_one_is_not_measured() -> None:
    history = line(8)
    search = Search(history, Truth(history, 6).proof())
    first = search.next()
    assert first is not None

    search.same(first, None)

    assert search.slower()[first] < 0.01
    assert search.next() not in (first, None)


def test_an_order_effect_that_is_clear_is_taken_out() -> None:
    truth = Truth(line(4), 2, noise=0.0005, second=0.01)

    signal = Signal.of_proof(truth.proof())

    assert signal.order_effect == pytest.approx(0.01, rel=0.1)
    assert signal.effect == pytest.approx(SLOWER, rel=0.05)


def test_pairs_of_one_order_give_no_order_effect() -> None:
    signal = Signal.of_proof([Seen(0.05, base_first=True)] * 3)

    assert (signal.effect, signal.order_effect) == (pytest.approx(0.05), 0.0)


@settings(max_examples=how_many(50, 10), deadline=None)
@given(st.lists(st.floats(-0.2, 0.2), min_size=1, max_size=6), st.randoms())
def test_the_order_of_pairs_does_not_matter(values: list[float], random: object) -> None:
    history = line(6)
    proof = Truth(history, 3).proof()
    posteriors = []
    for shown in (values, values[::-1]):
        search = Search(history, proof)
        for value in shown:
            search.saw(2, Seen(value, base_first=True))
        posteriors.append(search.posterior())

    np.testing.assert_allclose(posteriors[0], posteriors[1], rtol=1e-6)
    assert posteriors[0].sum() == pytest.approx(1.0)


@pytest.mark.parametrize("machine", MACHINES[:4], ids=lambda each: each.name)
def test_of_forty_seeded_searches_at_least_thirty_eight_are_right(machine: object) -> None:
    found = simulate(machine, ours, 40)  # type: ignore[arg-type]

    assert found.right >= 38
    assert found.wrong <= 1


def test_it_needs_fewer_pairs_than_a_plain_search_with_six() -> None:
    machine = MACHINES[2]

    assert 3 * simulate(machine, ours, 10).pairs < simulate(machine, plain(6), 10).pairs


def test_the_simulation_is_seeded() -> None:
    one, other = (Bench(MACHINES[0], 7) for _ in range(2))

    assert (one.guilty, one.proven()) == (other.guilty, other.proven())
    assert 0 <= one.guilty < REVISIONS


@settings(max_examples=how_many(100, 20), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), noise=st.sampled_from([0.001, 0.003, 0.01]))
def test_the_interval_of_a_change_is_as_wide_as_the_noise_of_all_pairs(
    seed: int, noise: float
) -> None:
    truth = Truth(line(32), 12, noise, rng=np.random.default_rng(seed))

    search = truth.search()

    for revision in search.seen:
        _, reach = search.estimate(revision)
        scaled = reach * math.sqrt(len(search.seen[revision])) / noise
        assert 0.8 < scaled < 8.0


def test_pairs_that_contradict_each_other_have_a_wide_interval() -> None:
    history = History(
        [Candidate(str(each), parents=(each - 1,) if each else ()) for each in (0, 1)]
    )
    search = Search(history, Truth(history, 0, noise=1e-5).proof())
    search.saw(0, Seen(SLOWER, base_first=True))
    search.saw(0, Seen(SLOWER + 0.3, base_first=False))

    change, reach = search.estimate(0)

    assert abs(change - SLOWER) < reach
