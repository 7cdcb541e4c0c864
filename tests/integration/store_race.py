"""Compacts, retains and adds at once: ``python store_race.py FOLDER ROUNDS``.

Each round adds late profiles to the same old days, while two processes compact and two retain. One
of these at least has its turn, and the others do nothing. In the end each profile counts once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from fakes.fleet import DAY_NS, START_NS, add, ranked

from proton_bench.errors import OutputError
from proton_bench.store.questions import Question, path_series
from proton_bench.store.retention import Policy, retain
from proton_bench.store.store import Store
from proton_bench.store.upkeep import check, compact

DAYS, RANKS, TIMES = 2, 3, [100.0, 200.0]
TODAY = date(2024, 6, 1)  # profiles of all days are old enough to be removed


def add_late(store: Store, folder: Path, number: int) -> None:
    """Add profiles to the run of each day."""
    for day in range(DAYS):
        start_ns = START_NS + day * DAY_NS
        ranks = [
            ranked(RANKS * number + rank, TIMES, start_time_ns=start_ns) for rank in range(RANKS)
        ]
        add(store, folder / f"{number}/run{day}", *ranks)


def has_turn(work: Callable[[], object]) -> bool:
    """Do some upkeep, and return whether no other was going on."""
    try:
        work()
    except OutputError as error:
        if "try again when it has ended" not in str(error):
            raise
        return False
    return True


def main(place: str, rounds: str) -> None:
    """Run all rounds, and look at what the store has at the end."""
    store = Store.create(Path(place) / "store")
    add_late(store, Path(place), 0)
    upkeep = 2 * [partial(retain, store, Policy(90), TODAY), partial(compact, store)]
    refusals = 0
    with ProcessPoolExecutor(len(upkeep) + 1, get_context("spawn")) as pool:
        for number in range(1, int(rounds) + 1):
            added = pool.submit(add_late, store, Path(place), number)
            had_turns = list(pool.map(has_turn, upkeep))
            added.result()
            assert any(had_turns)
            refusals += had_turns.count(False)
    retain(store, Policy(90), TODAY)
    compact(store, writer_hours=0, reader_hours=0)
    assert check(store) == {}
    profiles = RANKS * (int(rounds) + 1)
    found = path_series(store.snapshot(), Question("fwd/softmax", by=("run",)))
    columns = ("run", "profiles", "total", "count")
    lines = [tuple(line[name] for name in columns) for line in found.to_pylist()]
    assert lines == [
        (f"run{day}", profiles, profiles * sum(TIMES), profiles * len(TIMES)) for day in range(DAYS)
    ], lines
    assert sum(len(each) for each in store.snapshot().profiles()["members"].to_pylist()) == (
        DAYS * profiles
    )
    sys.stdout.write(f"{DAYS * profiles} profiles once, {refusals} refusals\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
