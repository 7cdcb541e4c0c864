"""When a run is recorded, as its options say."""

from __future__ import annotations

import pytest

from proton_bench.errors import UsageError

pytest.importorskip("proton_bench._native")

from proton_bench.recording.session.windows import Amount, StepCount, WindowPlan


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("10", Amount(10)),
        ("500ms", Amount(0.5, is_time=True)),
        ("1.5s", Amount(1.5, is_time=True)),
        ("2m", Amount(120, is_time=True)),
        ("1h", Amount(3600, is_time=True)),
    ],
)
def test_a_bare_number_is_steps_and_one_with_a_unit_is_time(text: str, amount: Amount) -> None:
    assert Amount.read("--for", text) == amount


@pytest.mark.parametrize(
    ("texts", "after", "every", "length"),
    [
        ({"steps": "10:20"}, Amount(10), None, Amount(10)),
        ({"steps": ":20"}, Amount(0), None, Amount(20)),
        ({"steps": "10:"}, Amount(10), None, None),
        ({"every": "1000", "for": "5"}, Amount(1000), Amount(1000), Amount(5)),
        ({"for": "5", "each": ""}, Amount(0), None, Amount(5)),
        (
            {"after": "3", "every": "1m", "for": "20"},
            Amount(3),
            Amount(60, is_time=True),
            Amount(20),
        ),
    ],
)
def test_options_become_a_plan(
    texts: dict[str, str], after: Amount, every: Amount | None, length: Amount | None
) -> None:
    plan = WindowPlan.read(texts)

    assert plan is not None
    assert (plan.after, plan.every, plan.length) == (after, every, length)


@pytest.mark.parametrize(
    ("texts", "hint"),
    [
        ({"steps": "x"}, "10:20"),
        ({"steps": ":"}, "10:20"),
        ({"steps": "20:10"}, "10:20"),
        ({"steps": "1:2", "after": "3"}, "--after"),
        ({"for": "5x"}, "10s"),
        ({"for": "1.5"}, "10s"),
        ({"for": "0"}, "more than 0"),
        ({"for": "9" * 12}, "at most"),
        ({"every": "5"}, "--for"),
        ({"every": "5", "for": "5"}, "shorter"),
        ({"after": "5", "align": "10"}, "such as 10s"),
        ({"each": ""}, "--steps"),
    ],
)
def test_wrong_options_say_what_to_write(texts: dict[str, str], hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        WindowPlan.read(texts)


def test_the_best_mark_of_a_program_counts_its_steps() -> None:
    count = StepCount()

    counted = [count.add(mark) for mark in ("optimizer", "optimizer", "declared", "optimizer")]

    assert counted == [True, True, True, False]
    assert (count.by, count.over) == ("declared", 1)
