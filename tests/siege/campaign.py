"""Shares the time out among the attacks, and prints the results."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from siege.attack import Attack, Trial
from siege.attacks import ATTACKS

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "siege"
# Of one attack; more findings are counted but not kept.
MOST_KEPT = 20


@dataclass(frozen=True)
class Task:
    """Attempts of one attack that one process makes: each `step`-th from number `first`.

    It ends after some seconds, or after a number of attempts.
    """

    attack: str
    first: int
    step: int
    seed: int
    seconds: float
    attempts: int | None = None
    patience: int = 1

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of attempts until the time is over."""
        ends = time.monotonic() + self.seconds
        made = 0
        while made < self.attempts if self.attempts is not None else time.monotonic() < ends:
            yield self.first + made * self.step
            made += 1


@dataclass
class Outcome:
    """The results of an attack."""

    attack: str
    attempts: int = 0
    seconds: float = 0.0
    failures: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Add another process's results of the same attack."""
        self.attempts += other.attempts
        self.seconds += other.seconds
        self.failures += other.failures


def run(task: Task) -> Outcome:
    """Make the attempts of a task."""
    attack = ATTACKS[task.attack]()
    outcome = Outcome(task.attack)
    begun = time.monotonic()
    with TemporaryDirectory(prefix=f"siege-{task.attack}-") as name:
        shared = Path(name, "shared")
        shared.mkdir()
        attack.prepare(shared)
        try:
            for number in task.numbers():
                left = task.seconds - (time.monotonic() - begun)
                _attempt(attack, outcome, _trial(task, number, Path(name), left), number)
        finally:
            attack.close()
    outcome.seconds = time.monotonic() - begun
    return outcome


def _trial(task: Task, number: int, folder: Path, left: float) -> Trial:
    own = folder / str(number)
    own.mkdir()
    dice = Random(f"{task.seed} {task.attack} {number}")
    return Trial(dice, own, left if task.attempts is None else 1.0, task.patience)


def _attempt(attack: Attack, outcome: Outcome, trial: Trial, number: int) -> None:
    try:
        attack.attempt(trial)
    except Exception as error:  # noqa: BLE001 - an attack that breaks is a finding too
        text = str(error)
        if type(error).__name__ != "BreachError":
            text = "".join(traceback.format_exception(error))
        outcome.failures.append((number, text))
        if len(outcome.failures) <= MOST_KEPT:
            _keep(attack.name, number, trial.folder, text)
    finally:
        outcome.attempts += max(trial.count, 1)
        shutil.rmtree(trial.folder, ignore_errors=True)


def _keep(attack: str, number: int, folder: Path, text: str) -> None:
    place = KEPT / f"{attack}-{number}"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place, symlinks=True)
    (place / "finding.txt").write_text(text + "\n")


def tasks(options: argparse.Namespace) -> list[Task]:
    """Divide the time of all processes among the attacks, the longest first."""
    names = options.attack or list(ATTACKS)
    if options.only is not None:
        return [Task(name, options.only, 1, options.seed, options.seconds, 1) for name in names]
    if options.attempts is not None:
        rest = (options.seed, options.seconds, options.attempts, options.patience)
        return [Task(each, 0, 1, *rest) for each in names]
    shares = sum(ATTACKS[name].share for name in names)
    made = []
    for name in names:
        lanes = min(ATTACKS[name].lanes, options.jobs)
        seconds = options.seconds * options.jobs * ATTACKS[name].share / shares / lanes
        seconds = min(seconds, options.seconds)
        made += [Task(name, lane, lanes, options.seed, seconds) for lane in range(lanes)]
    return sorted(made, key=lambda task: -task.seconds)


def table(outcomes: dict[str, Outcome], seed: int) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield "| attack | what is tried | attempts | failures | seconds |"
    yield "|---|---|---:|---:|---:|"
    for name, each in outcomes.items():
        numbers = f"{each.attempts} | {len(each.failures)} | {each.seconds:.0f}"
        yield f"| {name} | {ATTACKS[name].about} | {numbers} |"
    for name, each in outcomes.items():
        for number, text in each.failures[:MOST_KEPT]:
            yield f"\n{name} {number}: {text}"
            again = f"python -m tests.siege --attack {name} --seed {seed} --only {number}"
            yield f"again: {again}; files: {KEPT.relative_to(ROOT)}/{name}-{number}"


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.siege", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--attack", choices=list(ATTACKS), action="append")
    parser.add_argument("--attempts", type=int, help="of each attack, however long they take")
    parser.add_argument("--patience", type=int, default=1, help="times what a command may take")
    parser.add_argument("--only", type=int, metavar="N", help="the attempt with this number")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Run a campaign."""
    options = _options(words)
    outcomes: dict[str, Outcome] = {}
    # Forked before anything else is loaded; each process loads what its attack needs.
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        for outcome in pool.map(run, tasks(options)):
            outcomes.setdefault(outcome.attack, Outcome(outcome.attack)).add(outcome)
    ordered = {name: outcomes[name] for name in ATTACKS if name in outcomes}
    print(json.dumps({"seed": options.seed, "seconds": options.seconds, "jobs": options.jobs}))
    for line in table(ordered, options.seed):
        print(line)
    sys.stdout.flush()
    return 1 if any(each.failures for each in outcomes.values()) else 0
