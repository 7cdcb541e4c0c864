"""Changed files in front of every command that reads files of their kind."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pkgutil
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from fakes.stored import put, stored_run
from siege import corpus
from siege.attack import Attack, BreachError, Trial
from siege.bounded import MEMORY, Ended, bounded
from siege.mutations import changed, damaged

from proton_bench.cli import main

SECONDS = 2
# Extra time of a fresh process, which loads Python and the package.
START_SECONDS = 2
START_MEGABYTES = 100
# Of a gate: a verdict. 69: an optional package is missing.
CODES = frozenset({0, 1, 2, 3, 4, 5, 69})
SAID = "proton: warning: "
WARNING = re.compile(r"\w*Warning: ")
EXPORTS = (
    "proton",
    "hatchet",
    "hatchet_msgpack",
    "json",
    "speedscope",
    "folded",
    "pprof",
    "csv",
)
_LOADED = (
    *("pandas", "scipy.stats", "numpy", "msgspec", "jinja2", "rich.console", "rich.table"),
    *("sqlite3", "proton_bench.viewer", "proton_bench.diagnosis.profiles"),
)


def load(folder: Path) -> None:
    """Load what commands load, so that a fork of this process need not; caches are in the folder.

    Commands that start no threads and no processes are run once, because libraries load more then.
    """
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    for name in _LOADED:
        importlib.import_module(name)
    for package in ("formats", "analysis", "gate", "report", "cli"):
        found = importlib.import_module(f"proton_bench.{package}")
        for each in pkgutil.walk_packages(found.__path__, f"{found.__name__}."):
            importlib.import_module(each.name)
    with TemporaryDirectory() as folder, open(os.devnull, "w", encoding="utf-8") as nowhere:
        run = str(put(Path(folder), stored_run()) / "0.proton")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            for words in (["view", run], ["diff", run, run], ["gate", run, run], ["doctor", run]):
                main(words)
            main(["report", run, "-o", os.path.join(folder, "out.html")])
    gc.freeze()


def words_for(dice: Random, file: str, good: str) -> list[str]:
    """Return a command line that reads a profile."""
    form = dice.choice(EXPORTS)
    pair = [file, good] if dice.random() < 0.6 else [good, file]
    name = dice.choice((file, file, "./" + file))
    return dice.choice(
        [
            ["view", name],
            ["view", file, "--json"],
            ["view", file, "--list"],
            ["view", file, "--flat", "--bars"],
            ["view", file, "--raw-names", "-f", "full", "--frames", "all", "--layers", "all"],
            ["view", file, "--source", "--print-sorted"],
            ["view", file, "-m", "time/ms,count", "--sort", "count", "--trials"],
            ["view", file, "--why"],
            ["why", name],
            ["why", file, "--json"],
            ["why", file, dice.choice(("kernel", "step/kernel", "0"))],
            ["diff", *pair],
            ["diff", *pair, "--json", "--ignore-devices"],
            ["diff", *pair, "--by", dice.choice(("kernel", "line", "scope", "test"))],
            ["diff", file, file, "--markdown", "-t", "0"],
            ["report", file, "-o", "out.html"],
            ["report", good, "--base", file, "-o", "out.html", "--ignore-devices"],
            ["merge", *pair, "-o", "out.proton", "--by", dice.choice(("rank", "process"))],
            ["merge", file, "second" + file, "-o", "out.pftrace"],
            ["merge", "--stragglers", *pair],
            ["export", file, "--to", form, "-o", f"out.{form}"],
            ["export", file, "--to", "kineto", "-o", "out"],
            ["query", file, "SELECT * FROM nodes", "--json"],
            ["query", file, "SELECT count(*) FROM metrics, distributions"],
            ["gate", *pair, "--all"],
            ["gate", *pair, "--set", "strict=true", "--json", "--set", "ignore-devices=true"],
            ["gate", file, good, "--markdown", "-"],
            ["baseline", "save", "x", file, "--store", "kept"],
            ["history", file, good, "--all", "--html", "out.html", "--store", "kept"],
            ["doctor", file],
            ["doctor", file, good, "--json"],
        ]
    )


def check(folder: Path, words: Sequence[str], trial: Trial) -> None:
    """Run a command in a fork; a fault must also occur in a fresh process."""
    trial.count += 1
    fault = fault_of(bounded(folder, words, SECONDS * trial.patience), words)
    if not fault:
        return
    fresh = fault_of(in_fresh_process(folder, words, trial.patience), words)
    if fresh:
        (folder / "command.txt").write_text(" ".join(words) + "\n")
        raise BreachError(f"proton {' '.join(words)}: {fresh}")


def fault_of(ended: Ended, words: Sequence[str]) -> str:
    """Return what is wrong with the end of a command; empty if nothing is."""
    last = ended.stderr[-1500:]
    if ended.code < 0:
        return f"ended by signal {-ended.code} after {ended.seconds:.1f} s; {last}"
    if "Traceback" in ended.stderr or ended.code not in CODES:
        return f"exit code {ended.code}; {last}"
    if ended.megabytes > MEMORY >> 20:
        return f"it took {ended.megabytes:.0f} MB"
    if WARNING.search(ended.stderr):
        return f"a warning of Python: {last}"
    errors = [line for line in ended.stderr.splitlines() if not line.startswith(SAID)]
    is_survey = words[0] == "doctor" or list(words[:2]) == ["baseline", "check"]
    if ended.code == 2 and len(errors) != 1 and not is_survey:
        return f"{len(errors)} lines on stderr; {last}"
    return ""


def in_fresh_process(folder: Path, words: Sequence[str], patience: int) -> Ended:
    """Run a command as a user does, within the same limits."""

    def limit() -> None:
        seconds = (SECONDS + START_SECONDS) * patience
        resource.setrlimit(resource.RLIMIT_AS, (2 * MEMORY, 2 * MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    errors = folder / "stderr"
    with errors.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "proton_bench", *words],
            cwd=folder,
            preexec_fn=limit,  # noqa: PLW1509 - there are no threads here
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stream,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(
        process.returncode,
        errors.read_text(errors="replace"),
        used.ru_utime + used.ru_stime,
        max(0, used.ru_maxrss / 1024 - START_MEGABYTES),
    )


class Readers(Attack):
    """Files of profiles and timelines."""

    name = "readers"
    about = "changed profiles and timelines, read by every command"
    share = 6.0
    lanes = 16

    def prepare(self, folder: Path) -> None:
        """Load everything and gather whole files."""
        load(folder)
        self._files = corpus.profiles(folder)
        self._names = list(self._files)
        self._good = folder / "run.proton"

    def attempt(self, trial: Trial) -> None:
        """Change a file and have some commands read it."""
        dice = trial.dice
        name = dice.choice(self._names)
        file = f"a{name}"
        (trial.folder / file).write_bytes(changed(dice, name, self._files[name]))
        (trial.folder / f"second{file}").write_bytes(self._files[name])
        shutil.copy(self._good, trial.folder / "good.proton")
        for _ in range(4):
            check(trial.folder, words_for(dice, file, "good.proton"), trial)


class Settings(Attack):
    """Files that commands read beside profiles."""

    name = "settings"
    about = "changed policies, noise, counters and project files"
    share = 1.0

    def prepare(self, folder: Path) -> None:
        """Load everything and gather whole files."""
        load(folder)
        self._files = corpus.settings()
        self._folder = folder
        corpus.runs(folder)

    def attempt(self, trial: Trial) -> None:
        """Change a file and use it."""
        dice = trial.dice
        name = dice.choice(list(self._files))
        content = changed(dice, name, self._files[name])
        shutil.copytree(self._folder / "good", trial.folder, dirs_exist_ok=True)
        gate = ["gate", "0.proton", "1.proton"]
        if name.startswith("counters"):
            lines = [["view", "0.proton", "--counters", name]]
        else:
            lines = [
                [*gate, "--policy", name],
                ["ab", "--policy", name, "--", "missing.py"],
            ]
            if dice.random() < 0.5:
                name = "pyproject.toml"
                lines = [gate, ["baseline", "list"]]
        (trial.folder / name).write_bytes(content)
        for words in lines:
            check(trial.folder, words, trial)


class Stores(Attack):
    """Stores of baselines with changed files."""

    name = "stores"
    about = "stores of baselines with changed, missing and foreign files"
    share = 1.0

    def prepare(self, folder: Path) -> None:
        """Load everything and make a store."""
        load(folder)
        self._folder = folder
        corpus.runs(folder)

    def attempt(self, trial: Trial) -> None:
        """Change files of a store and use it."""
        dice = trial.dice
        shutil.copytree(self._folder / "store", trial.folder / "store")
        shutil.copytree(self._folder / "good", trial.folder, dirs_exist_ok=True)
        files = sorted(each for each in (trial.folder / "store").rglob("*") if each.is_file())
        for file in dice.sample(files, dice.choice((1, 1, 2))):
            content = file.read_bytes()
            way = dice.randrange(6)
            if way == 0:
                file.unlink()
            elif way == 1:
                file.unlink()
                if dice.random() < 0.5:
                    file.mkdir()
                else:
                    file.symlink_to("/etc/passwd")
            elif way == 2:
                file.write_bytes(damaged(dice, content))
            else:
                file.write_bytes(changed(dice, file.name, content))
        store = ["--store", "store"]
        lines = [
            ["baseline", "list", *store],
            ["baseline", "list", "--json", *store],
            ["baseline", "show", "main", *store],
            ["baseline", "check", *store],
            ["gate", "main", "1.proton", *store],
            ["gate", "main", "1.proton", *store, "--save", "main"],
            ["history", *store],
            ["history", "--acknowledge", *store],
            ["gate", "--history", "--json", *store],
            ["baseline", "save", "main", "0.proton", *store],
            ["baseline", "promote", "main", *store],
            ["baseline", "export", "main", "exported", *store],
            ["baseline", "rm", "main", "--candidates", *store],
            ["baseline", "check", "--repair", *store],
        ]
        for words in dice.sample(lines, 5):
            check(trial.folder, words, trial)
