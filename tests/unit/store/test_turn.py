from __future__ import annotations

import time
from datetime import date

import pytest

from proton_bench.errors import OutputError
from proton_bench.store import turn as turns
from proton_bench.store.retention import Policy, retain
from proton_bench.store.store import Store
from proton_bench.store.turn import turn
from proton_bench.store.upkeep import compact


def test_upkeep_beside_other_upkeep_says_what_to_do(store: Store) -> None:
    with turn(store):
        with pytest.raises(OutputError, match="try again when it has ended"):
            compact(store)
        with pytest.raises(OutputError, match="try again when it has ended"):
            retain(store, Policy(90), date(2024, 6, 1))

    compact(store)


def test_a_turn_ends_with_an_error(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), turn(store):
        raise ZeroDivisionError

    compact(store)


def test_of_two_that_look_at_once_one_has_its_turn(store: Store) -> None:
    before = store.table("profiles")
    turns._commit(store, store.table("profiles"), 60)

    with pytest.raises(OutputError, match="try again when it has ended"):
        turns._commit(store, before, 60)


def test_the_turn_of_a_killed_command_ends_at_the_time_that_is_said(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns._commit(store, store.table("profiles"), 60)
    with pytest.raises(OutputError, match=r"killed, after 20.* UTC"):
        compact(store)

    later = time.time() + 61
    monkeypatch.setattr(turns.time, "time", lambda: later)
    compact(store)


def test_a_turn_lasts_as_long_as_the_process(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def until() -> int:
        return store.table("profiles").transaction_version(turns._NAME) or 0

    monkeypatch.setattr(turns, "_EVERY_S", 0.01)
    begin, first = time.time(), store.table("profiles").version()

    with turn(store):
        while store.table("profiles").version() < first + 3:  # it goes on by itself
            pass
        assert until() >= int(begin) + turns._LASTS_S
    assert until() <= time.time()
