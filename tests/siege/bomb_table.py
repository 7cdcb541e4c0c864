"""Tries every kind with every command: ``python -m tests.siege.bomb_table``.

Prints each command that exceeds its limits when it is found, then a row for each class. Returns 1
if there was one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

# Processes are forked, which libraries that start threads do not survive.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from fakes.stored import put, stored_run  # noqa: E402 - found by the path above
from siege.attacks.readers import SECONDS, fault_of, load  # noqa: E402 - same
from siege.bombs import CLASSES, KINDS  # noqa: E402 - same
from siege.bombs.commands import GOOD, SECOND, commands_of  # noqa: E402 - same
from siege.bounded import bounded  # noqa: E402 - same

# The limit is raised this much, so that the table shows how long slow commands take.
PATIENCE = 5


@dataclass(frozen=True)
class Tried:
    """The result of one command.

    Attributes:
        kind: The kind that it read.
        words: Its command line, shortened.
        seconds: Processor time.
        megabytes: Memory.
        fault: The fault, or "".
    """

    kind: str
    words: str
    seconds: float
    megabytes: float
    fault: str


def attempts(name: str, *, most: int) -> list[Tried]:
    """Have all commands read one kind."""
    kind = KINDS[name]
    with TemporaryDirectory(prefix="siege-bombs-") as place:
        folder = Path(place)
        for file, content in kind.files().items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)
        if not kind.words:
            shutil.copy(folder / name, folder / f"{SECOND}{name}")
        put(folder / "runs", stored_run())
        for file in (GOOD, "run.proton"):
            shutil.copy(folder / "runs" / "0.proton", folder / file)
        return [_tried(folder, name, words) for words in commands_of(kind)[:most]]


def _tried(folder: Path, name: str, words: Sequence[str]) -> Tried:
    ended = bounded(folder, words, SECONDS * PATIENCE)
    fault = fault_of(ended, words)
    if not fault and ended.seconds > SECONDS:
        fault = f"{ended.seconds:.1f} s"
    shown = " ".join(word[:40] for word in words)[:160]
    if fault:  # at once: all of them take long
        print(f"{name}: proton {shown}: {fault}", file=sys.stderr, flush=True)
    return Tried(name, shown, ended.seconds, ended.megabytes, fault)


def table(tried: Sequence[Tried]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield "| class | what is tried | kinds | commands | most s | most MB | misses |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for about, meaning in CLASSES.items():
        rows = [each for each in tried if KINDS[each.kind].about == about]
        if rows:
            kinds = len({each.kind for each in rows})
            seconds = max(each.seconds for each in rows)
            memory = max(each.megabytes for each in rows)
            misses = sum(bool(each.fault) for each in rows)
            numbers = f"{kinds} | {len(rows)} | {seconds:.1f} | {memory:.0f} | {misses}"
            yield f"| `{about}` | {meaning} | {numbers} |"


def main() -> int:
    """Try the requested kinds."""
    parser = argparse.ArgumentParser(prog="python -m tests.siege.bomb_table", description=__doc__)
    parser.add_argument("--about", choices=list(CLASSES), action="append")
    parser.add_argument("--kind", choices=list(KINDS), action="append", metavar="KIND")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--commands", type=int, default=99, help="only the first ones of each")
    options = parser.parse_args()
    wanted = options.about or list(CLASSES)
    names = options.kind or [name for name, kind in KINDS.items() if kind.about in wanted]
    with TemporaryDirectory(prefix="siege-loaded-") as folder:
        context = multiprocessing.get_context("fork")
        loaded = partial(load, Path(folder))
        with ProcessPoolExecutor(options.jobs, mp_context=context, initializer=loaded) as pool:
            found = pool.map(partial(attempts, most=options.commands), names)
            tried = [each for part in found for each in part]
    print("\n".join(table(tried)))
    return 1 if any(each.fault for each in tried) else 0


if __name__ == "__main__":
    sys.exit(main())
