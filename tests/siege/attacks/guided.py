"""Changed profiles under Atheris, which follows the lines that an input reaches."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from siege import corpus
from siege.attack import Attack, BreachError, Trial

SUFFIXES = (
    ".proton",
    ".json",
    ".hatchet",
    ".hatchet_msgpack",
    ".chrome_trace",
    ".pftrace",
    ".sqlite",
)
# It takes a while to instrument everything that is loaded.
LONGEST = 120
RUNS = re.compile(r"^Done (\d+) runs", re.MULTILINE)


class Guided(Attack):
    """Readers in this process alone, many times a second."""

    name = "guided"
    about = "changed profiles that follow the lines they reach, read in one process"
    share = 3.0

    def prepare(self, folder: Path) -> None:
        """Make a folder of whole files for each suffix."""
        self._folder = folder
        for name, content in corpus.profiles(folder).items():
            for suffix in SUFFIXES:
                if name.endswith(suffix):
                    (folder / suffix[1:]).mkdir(exist_ok=True)
                    (folder / suffix[1:] / name).write_bytes(content)

    def attempt(self, trial: Trial) -> None:
        """Have libFuzzer change the files of one suffix for some time."""
        suffix = trial.dice.choice(SUFFIXES)
        seconds = max(int(min(trial.seconds, LONGEST)), 1)
        options = [
            *(f"-max_total_time={seconds}", f"-seed={trial.dice.randrange(1, 2**31)}"),
            *("-timeout=10", "-rss_limit_mb=1000", f"-artifact_prefix={trial.folder}/"),
        ]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "siege.guided",
                suffix,
                *options,
                str(self._folder / suffix[1:]),
            ],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(trial.folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
        runs = RUNS.search(done.stderr)
        trial.count += int(runs[1]) if runs else 0
        if done.returncode != 0:
            raise BreachError(f"{suffix}: code {done.returncode}; {done.stderr[-2500:]}")
