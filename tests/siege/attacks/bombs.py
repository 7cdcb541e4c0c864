"""Small files that would decode to a lot, in front of every command."""

from __future__ import annotations

import shutil
from pathlib import Path

from siege.attack import Attack, Trial
from siege.attacks.readers import check, load, words_for
from siege.bombs import KINDS
from siege.bombs.commands import GOOD, SECOND
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
        kind = KINDS[name]
        for file, content in kind.files().items():
            (trial.folder / file).parent.mkdir(parents=True, exist_ok=True)
            (trial.folder / file).write_bytes(content)
        for file in (GOOD, "run.proton"):
            shutil.copy(self._good, trial.folder / file)
        if kind.words:
            check(trial.folder, trial.dice.choice(kind.words), trial)
            return
        shutil.copy(trial.folder / name, trial.folder / f"{SECOND}{name}")
        check(trial.folder, words_for(trial.dice, name, GOOD), trial)
