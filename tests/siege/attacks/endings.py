"""Recordings that end in every way at random moments: the study of endings, without an end."""

from __future__ import annotations

from pathlib import Path
from queue import SimpleQueue

from siege.attack import Attack, BreachError, Trial

from benchmarks.studies import endings

OLD = "the partial file is"


class Endings(Attack):
    """Signals, kills, forks and exits, held against docs/reference/processes.md."""

    name = "endings"
    about = "recordings ended by signals, kills, exits and forks at random moments"
    share = 2.0

    def prepare(self, folder: Path) -> None:
        """Start a process that has loaded the profiler."""
        self._programs: SimpleQueue[endings.Program] = SimpleQueue()
        self._program = endings.Program()
        self._programs.put(self._program)

    def attempt(self, trial: Trial) -> None:
        """End one recording."""
        seed = trial.dice.randrange(2**32)
        ending = endings.run(seed, 0, self._programs)
        if ending.faults and all(OLD in fault for fault in ending.faults):
            # How late a file is written is the machine's matter too: it has to be late twice.
            ending = endings.run(seed, 0, self._programs)
        if ending.faults:
            raise BreachError(f"{ending.way}, {ending.data}: {'; '.join(ending.faults)}")

    def close(self) -> None:
        """End the process."""
        self._program.close()
