"""Recordings that end in every way at random moments: the study of endings, without an end."""

from __future__ import annotations

from pathlib import Path
from queue import SimpleQueue

from siege.attack import Attack, BreachError, Trial

from benchmarks.studies import endings


class Endings(Attack):
    """Signals, kills, forks and exits, held against docs/processes.md."""

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
        ending = endings.run(trial.dice.randrange(2**32), 0, self._programs)
        if ending.faults:
            raise BreachError(f"{ending.way}, {ending.data}: {'; '.join(ending.faults)}")

    def close(self) -> None:
        """End the process."""
        self._program.close()
