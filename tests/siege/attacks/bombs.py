"""Small files that would decode to a lot, in front of every command."""

from __future__ import annotations

import shutil
from pathlib import Path

from siege.attack import Attack, Trial
from siege.attacks.readers import check, load, words_for
from siege.bombs import KINDS
from siege.corpus import profiles


class Bombs(Attack):
    """All kinds in turn."""

    name = "bombs"
    about = f"{len(KINDS)} kinds of small files that decode to a lot, read by every command"
    share = 1.5
    lanes = 2

    def prepare(self, folder: Path) -> None:
        """Load everything."""
        load(folder)
        profiles(folder)
        self._good = folder / "run.proton"

    def attempt(self, trial: Trial) -> None:
        """Have commands read one kind."""
        name = trial.dice.choice(list(KINDS))
        (trial.folder / name).write_bytes(KINDS[name]())
        shutil.copy(trial.folder / name, trial.folder / f"second{name}")
        shutil.copy(self._good, trial.folder / "good.proton")
        check(trial.folder, words_for(trial.dice, name, "good.proton"), trial)
