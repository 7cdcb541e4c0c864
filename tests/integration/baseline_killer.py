"""Kills writers of a store of baselines at many points, and looks at the store after each.

``python baseline_killer.py STORE KILLS SEED``. Half of the kills come at a chosen line of our code
in a single writer, half from outside at any moment while this process writes too.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from fakes.stored import check_whole, stored_run

from proton_bench.gate.baseline.store import BaselineStore

NAME = "main"
# More lines of ours than one round of a writer executes.
MOST_LINES = 2500
WRITER = f"{os.sep}support{os.sep}files.py"


def write(store: BaselineStore) -> None:
    """Save, promote and remove: everything that changes a store."""
    entry = store.save(NAME, [stored_run(100.0), stored_run(101.0)])
    store.promote(NAME, entry.id)
    old = [each for each in store.catalogue.entries(NAME) if each.id != entry.id]
    if len(old) > 2:
        store.remove(NAME, old[0].id)


def kill_at(line: int) -> None:
    """Kill this process before it executes the n-th line of the code that writes a store."""
    left = itertools.count(line, -1)

    def look(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if f"{os.sep}baseline{os.sep}" not in file and not file.endswith(WRITER):
            return None
        if event == "line" and next(left) <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return look

    sys.settrace(look)


def die_alone(store: BaselineStore, line: int) -> None:
    """Write until the chosen line."""
    kill_at(line)
    while True:
        write(store)


def die_in_company(store: BaselineStore) -> None:
    """Write until another process kills this one."""
    while True:
        write(store)


def forked(task: Any, *arguments: Any) -> int:
    """Run a task in a child that never returns, and return its process id."""
    child = os.fork()
    if child == 0:
        try:
            task(*arguments)
        finally:
            os._exit(99)
    return child


def killings(store: BaselineStore, kills: int, seed: int) -> Iterator[int]:
    """Yield the exit status of one killed writer after the other."""
    chance = random.Random(seed)
    for place in range(kills):
        if place % 2:
            child = forked(die_in_company, store)
            for _ in range(chance.randrange(3)):
                store.promote(NAME, store.save(NAME, [stored_run(102.0)]).id)
            os.kill(child, signal.SIGKILL)
        else:
            child = forked(die_alone, store, chance.randrange(MOST_LINES))
        yield os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: str, kills: str, seed: str) -> None:
    """Kill this many writers; each time the store must be complete and its names valid."""
    store = BaselineStore(Path(folder))
    store.promote(NAME, store.save(NAME, [stored_run()]).id)
    for status in killings(store, int(kills), int(seed)):
        assert status == -signal.SIGKILL, status
        check_whole(store)
        assert len(store.catalogue.promoted(NAME)) == 1
    store.save(NAME, [stored_run()])
    left = [file.name for file in (store.folder / "staging").iterdir()]
    sys.stdout.write(f"{kills} kills, left over: {left}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
