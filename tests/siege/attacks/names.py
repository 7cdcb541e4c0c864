"""Eight processes that write one name while others read it."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from fakes.stored import stored_profile
from siege.attack import Attack, BreachError, Trial

from proton_bench.analysis.run import Run
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.gate.baseline.store import BaselineStore
from proton_bench.support.files import is_scratch

WRITERS = 8
TIMES = 150
QUICK_TIMES = 10


def forked(task: Callable[[], None], said: Path) -> int:
    """Run a task in a fork; its exit code is 1 where it raised something."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        task()
        code = 0
    except BaseException:  # noqa: BLE001 - it is reported
        said.write_text(traceback.format_exc())
    finally:
        sys.stdout.flush()
        os._exit(code)


class Names(Attack):
    """A profile and a baseline."""

    name = "names"
    about = f"{WRITERS} processes that write one name {TIMES} times each, and one that reads it"
    share = 1.0

    def attempt(self, trial: Trial) -> None:
        """Write one name from all of them."""
        times = TIMES if trial.seconds > 1 else QUICK_TIMES
        if trial.dice.random() < 0.2:
            self._store(trial, max(times // 15, 1))
        else:
            self._file(trial, times)

    @staticmethod
    def _file(trial: Trial, times: int) -> None:
        file = trial.folder / "one.proton"
        # Of different lengths, so that a mixture equals none.
        profiles = [stored_profile(100.0 + each, note="x" * 997 * each) for each in range(WRITERS)]
        known = {profile.provenance["note"] for profile in profiles}
        write_profile(profiles[0], file)

        def write(number: int) -> None:
            for _ in range(times):
                write_profile(profiles[number], file)

        children = {
            forked(lambda number=each: write(number), trial.folder / f"said{each}")
            for each in range(WRITERS)
        }
        torn, reads, failed = 0, 0, 0
        while children:
            reads += 1
            torn += read_profile(file).provenance["note"] not in known
            done, status = os.waitpid(-1, os.WNOHANG)
            if done:
                children.discard(done)
                failed += status != 0
        trial.count += WRITERS * times + reads
        left = [name for name in os.listdir(trial.folder) if is_scratch(name)]
        if torn or failed or left:
            raise BreachError(f"{failed} writers failed, {torn} torn reads of {reads}, left {left}")

    @staticmethod
    def _store(trial: Trial, times: int) -> None:
        store = BaselineStore(trial.folder / "store")
        run = Run(stored_profile(), "a.proton")
        store.promote("main", store.save("main", [run]).id)

        def write() -> None:
            for _ in range(times):
                store.promote("main", store.save("main", [run]).id)

        children = {forked(write, trial.folder / f"said{each}") for each in range(WRITERS)}
        failed = 0
        while children:
            store.catalogue.load(store.catalogue.promoted("main")[0][1])
            done, status = os.waitpid(-1, os.WNOHANG)
            if done:
                children.discard(done)
                failed += status != 0
        entries = len(store.catalogue.entries("main"))
        trial.count += WRITERS * times
        if failed or entries != 1 + WRITERS * times or store.catalogue.unreadable():
            raise BreachError(
                f"{failed} writers failed, {entries} entries of {WRITERS * times + 1}"
            )
