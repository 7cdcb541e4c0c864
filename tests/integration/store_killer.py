"""Kills writers of a store at any moment, while others write, read and compact.

``python store_killer.py FOLDER WRITERS COMMITS KILLS SEED``. Each writer adds its files commit by
commit, and acknowledges each; a new one goes on after the last acknowledged commit. Processes are
forked by one that has not used the store, so that it has one thread.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from fakes.stored import put, stored_run

from proton_bench.store.adding.ingest import Labels, add_files
from proton_bench.store.questions import Question, path_series
from proton_bench.store.store import Store
from proton_bench.store.upkeep import check, compact

FILES = range(2)
LONGEST_LIFE_S = 1.0
QUESTION = Question("step/kernel", by=("job",))


def write(folder: Path, writer: int, commits: int) -> None:
    """Add the files of all commits that are not acknowledged."""
    store, acknowledged = Store.open(folder / "store"), folder / f"acknowledged{writer}"
    for commit in range(acknowledged.read_text().count("\n"), commits):
        files = sorted((folder / f"files/{writer}/{commit}").iterdir())
        added = add_files(store, files, Labels(job=f"job{writer % 2}"))
        assert not added.failed
        assert len(added.new) + len(added.known) == len(FILES)
        with acknowledged.open("a") as file:
            file.write(f"{commit}\n")


def read(folder: Path) -> None:
    """Ask until a file says that all is written; nothing that was there may vanish."""
    store, before = Store.open(folder / "store"), 0
    while not (folder / "written").exists():
        snapshot = store.snapshot()
        ids = snapshot.profiles()["profile_id"].to_pylist()
        assert len(set(ids)) == len(ids) >= before
        before = len(ids)
        if ids:
            assert sum(path_series(snapshot, QUESTION)["profiles"].to_pylist()) == before


def merge(folder: Path) -> None:
    """Compact until a file says that all is written."""
    while not (folder / "written").exists():
        compact(Store.open(folder / "store"))


def forked(task: Callable[..., None], *arguments: object) -> int:
    """Run a task in a child that never returns, and return its process id."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            task(*arguments)
            code = 0
        finally:
            os._exit(code)
    return child


def kill_writers(folder: Path, writers: int, commits: int, *, kills: int, seed: int) -> int:
    """Run writers to their end, kill and replace some meanwhile, and return the number of kills."""
    chance, killed = random.Random(seed), 0
    running = {writer: forked(write, folder, writer, commits) for writer in range(writers)}
    while running:
        time.sleep(chance.random() * LONGEST_LIFE_S)
        for writer, child in list(running.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                assert status == 0, status
                del running[writer]
        if running and killed < kills:
            writer = chance.choice(list(running))
            os.kill(running[writer], signal.SIGKILL)
            killed += os.waitpid(running[writer], 0)[1] == signal.SIGKILL
            running[writer] = forked(write, folder, writer, commits)
    return killed


def main(place: str, writers: str, commits: str, kills: str, seed: str) -> None:
    """Look at what the store has at the end."""
    folder = Path(place)
    for writer in range(int(writers)):
        (folder / f"acknowledged{writer}").touch()
        for commit in range(int(commits)):
            runs = [stored_run(100.0, writer=writer, commit=commit, file=file) for file in FILES]
            put(folder / f"files/{writer}/{commit}", *runs)
    creator = forked(Store.create, folder / "store")
    assert os.waitpid(creator, 0)[1] == 0
    others = [forked(read, folder), forked(merge, folder)]
    killed = kill_writers(folder, int(writers), int(commits), kills=int(kills), seed=int(seed))
    (folder / "written").touch()
    assert [os.waitpid(each, 0)[1] for each in others] == [0, 0]
    store = Store.open(folder / "store")
    before = path_series(store.snapshot(), QUESTION)
    dead = compact(store, writer_hours=0).dead_rows
    assert path_series(store.snapshot(), QUESTION).equals(before)
    counts = Counter(store.snapshot().profiles()["profile_id"].to_pylist())
    expected = int(writers) * int(commits) * len(FILES)
    assert dict(Counter(counts.values())) == {1: expected}, counts
    assert check(store) == {}
    sys.stdout.write(f"{killed} kills, {expected} profiles once, {dead} dead rows removed\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
