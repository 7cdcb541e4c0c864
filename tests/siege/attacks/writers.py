"""Commands that write files, for attacks on writers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fakes.stored import check_whole
from siege import corpus
from siege.attack import BreachError

from proton_bench.formats.registry import read_profile
from proton_bench.gate.baseline.store import BaselineStore
from proton_bench.support.files import is_scratch

OLD = b"what was there before\n"


def ends_as_page(file: Path) -> None:
    """Check that a page has its end."""
    if not file.read_bytes().rstrip().endswith(b"</html>"):
        raise BreachError(f"{file.name} is half a page")


def has_content(file: Path) -> None:
    """Check that a file has something in it."""
    if not file.read_bytes().strip():
        raise BreachError(f"{file.name} is empty")


@dataclass(frozen=True)
class Writer:
    """A command that writes one file, or into the store where it has no name for one.

    Attributes:
        words: The command line; "OUT" stands for the file.
        out: Name of the file; empty for the store.
        check: Raises where the file is not whole.
    """

    words: tuple[str, ...]
    out: str = ""
    check: Callable[[Path], object] = read_profile

    def line(self, out: Path) -> list[str]:
        """Return the command line for one place."""
        return [word.replace("OUT", str(out)) for word in self.words]


_PAIR = ("0.proton", "1.proton")
_STORE = ("--store", "store")
_TIMELINES = ("first.pftrace", "second.pftrace")
WRITERS = (
    Writer(("export", "0.proton", "--to", "json", "-o", "OUT"), "out.json"),
    Writer(("export", "0.proton", "--to", "hatchet", "-o", "OUT"), "out.hatchet"),
    Writer(("export", "0.proton", "--to", "csv", "-o", "OUT"), "out.csv", has_content),
    Writer(("merge", *_PAIR, "-o", "OUT"), "out.proton"),
    Writer(("merge", *_TIMELINES, "-o", "OUT"), "out.pftrace"),
    Writer(("report", "0.proton", "-o", "OUT"), "out.html", ends_as_page),
    Writer(("gate", *_PAIR, "--markdown", "OUT"), "gate.md", has_content),
    Writer(("gate", *_PAIR, "--junit", "OUT"), "gate.xml", has_content),
    Writer(("gate", *_PAIR, "--write", "openmetrics=OUT"), "metrics", has_content),
    Writer(("gate", *_PAIR, *_STORE, "--save", "main")),
    Writer(("baseline", "save", "main", "0.proton", *_STORE)),
    Writer(("baseline", "promote", "main", *_STORE)),
    Writer(("baseline", "rm", "main", "--candidates", *_STORE)),
)


def make_inputs(folder: Path) -> None:
    """Make the inputs of the writers."""
    corpus.runs(folder)
    for name in _TIMELINES:
        corpus.record(folder / "good" / name, "trace")


def lay_out(inputs: Path, folder: Path) -> None:
    """Put inputs and a store into a folder."""
    shutil.copytree(inputs / "good", folder, dirs_exist_ok=True)
    shutil.copytree(inputs / "store", folder / "store")


def check_store(folder: Path) -> None:
    """Check that a store is whole."""
    store = BaselineStore(folder / "store")
    check_whole(store)
    if len(store.catalogue.promoted("main")) != 1:
        raise BreachError("the name main means nothing any more")


def check_inputs(inputs: Path, folder: Path) -> None:
    """Check that inputs are as they were."""
    for file in (inputs / "good").iterdir():
        if (folder / file.name).read_bytes() != file.read_bytes():
            raise BreachError(f"the input {file.name} was changed")


def check_output(writer: Writer, file: Path) -> bool:
    """Check that a file is the old one or a whole new one; return whether it is new."""
    content = file.read_bytes()
    if content == OLD:
        return False
    try:
        writer.check(file)
    except Exception as error:  # noqa: BLE001 - a half file may cause any error
        raise BreachError(f"{writer.words[0]} left half of {file.name}: {error}") from None
    return True


def strangers(folder: Path, expected: set[str]) -> list[str]:
    """Return the unexpected files of a folder, without our own temporary files."""
    return sorted(
        name for name in os.listdir(folder) if name not in expected and not is_scratch(name)
    )
