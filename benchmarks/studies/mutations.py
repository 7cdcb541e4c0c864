"""Changes single lines of our own code at random: python -m benchmarks.studies.mutations.

Each mutation turns one operator, comparison, constant, condition or `return` into another. Unit
tests of the room that it lies in run on it, and then as many files of other folders as `--files`
says: those that import its module, then those whose names have most words of its name. So many
unit tests run as `--unit-files` says, in the same order. The table shows which test caught it. What
no test catches is a hole in the tests, or a change without an effect. Seeded: the same number gives
the same mutations while the code is the same. No file is changed: processes load the mutated text
instead of the file's. Returns 1 where less than `--least` of the mutations are caught.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

TOP = Path(__file__).parents[2]
PACKAGE = TOP / "proton_bench"
OTHER_TESTS = ("integration", "plugins", "architecture")
COMPARED = {
    "==": "!=",
    "!=": "==",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "in": "not in",
    "not in": "in",
    "is": "is not",
    "is not": "is",
}
COMPUTED = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "|": "&", "&": "|"}
JOINED = {"and": "or", "or": "and"}
# Of names of modules and of tests; they say nothing.
COMMON_WORDS = {"init", "file", "base", "of", "plugin", "run", "name", "names", "options"}
# Loaded by each process before the module. The mark says that the mutation was reached at all.
LOADER = """
import importlib.machinery as machinery
usual = machinery.SourceFileLoader.get_code
def get_code(self, name):
    if self.path != {place!r}:
        return usual(self, name)
    open({mark!r}, "w").close()
    return compile({text!r}, self.path, "exec", dont_inherit=True)
machinery.SourceFileLoader.get_code = get_code
"""


def run_pytest(
    words: list[str], seconds: float, first: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run pytest, with one folder ahead of all others."""
    path = os.pathsep.join(filter(None, [first, os.environ.get("PYTHONPATH", "")]))
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=TOP,
        env={**os.environ, "COLUMNS": "1000", "PATH": programs, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


@dataclass(frozen=True)
class Mutation:
    """One changed line of a file."""

    path: Path
    line: int
    start: int
    end: int
    new: str

    @property
    def name(self) -> str:
        """Where it is and what becomes of what."""
        before = self._lines()[self.line - 1].encode()[self.start : self.end].decode()
        return f"{self.module}:{self.line}: {before.strip()} → {self.new.strip()}"

    @property
    def module(self) -> str:
        """The module, without the name of the package."""
        return ".".join(self.path.relative_to(PACKAGE).with_suffix("").parts)

    def text(self) -> str:
        """Return the whole file with the line changed."""
        lines = list(self._lines())
        line = lines[self.line - 1].encode()
        line = line[: self.start] + self.new.encode() + line[self.end :]
        lines[self.line - 1] = line.decode()
        return "".join(lines)

    def _lines(self) -> tuple[str, ...]:
        return _lines_of(self.path)


@cache
def _lines_of(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text().splitlines(keepends=True))


class _Finder(ast.NodeVisitor):
    """Collects what may be mutated: (line, start, end, new), offsets in bytes."""

    def __init__(self, text: str) -> None:
        self.lines = [line.encode() for line in text.splitlines(keepends=True)]
        self.found: list[tuple[int, int, int, str]] = []

    def _add(self, line: int, start: int, end: int, *, new: str) -> None:
        self.found.append((line, start, end, new))

    def _between(self, left: ast.expr, right: ast.expr, words: dict[str, str]) -> None:
        """Change what stands between two expressions on one line."""
        if left.end_lineno != right.lineno or left.end_col_offset is None:
            return
        start, end = left.end_col_offset, right.col_offset
        text = self.lines[right.lineno - 1][start:end].decode()
        word = text.strip(" ()")
        if word in words:
            new = text.replace(word, words[word])
            self._add(right.lineno, start, end, new=new)

    def _whole(self, node: ast.expr, new: str) -> None:
        if node.lineno == node.end_lineno and node.end_col_offset is not None:
            self._add(node.lineno, node.col_offset, node.end_col_offset, new=new)

    def _text(self, node: ast.expr) -> str:
        line = self.lines[node.lineno - 1]
        return line[node.col_offset : node.end_col_offset].decode()

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
            self._between(left, right, COMPARED)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._between(node.left, node.right, COMPUTED)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, JOINED)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not) and node.lineno == node.end_lineno:
            self._whole(node, re.sub(r"^not\s+", "", self._text(node)))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._whole(node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._whole(node, f"({self._text(node)} + 1)")

    def visit_If(self, node: ast.If) -> None:
        if node.test.lineno == node.test.end_lineno and not _for_types_only(node):
            self._whole(node.test, f"not ({self._text(node.test)})")
        if not _for_types_only(node):
            self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not _is_none(node.value):
            self._whole(node.value, "None")
            self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Leave out annotations, which are not computed."""
        for each in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(each)
        for each in node.decorator_list:
            self.visit(each)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _for_types_only(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def mutations() -> list[Mutation]:
    """Return all that the package may have, by path and line."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        finder = _Finder(text)
        finder.visit(ast.parse(text))
        found += [Mutation(path, *each) for each in sorted(set(finder.found))]
    return found


def drawn(choices: list[Mutation], seed: int) -> Iterator[Mutation]:
    """Yield different choices until there is none left; larger files have more of them."""
    shuffled = list(choices)
    random.Random(seed).shuffle(shuffled)
    yield from filter(_compiles, shuffled)


def _compiles(mutation: Mutation) -> bool:
    try:
        compile(mutation.text(), str(mutation.path), "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def unit_tests(mutation: Mutation, most: int | None) -> list[Path]:
    """Return unit tests of its room, which is a folder of the package; the nearest ones first."""
    top = TOP / "tests" / "unit"
    room = top / mutation.module.partition(".")[0]
    found = room.rglob("test_*.py") if room.is_dir() else top.glob("test_*.py")
    ordered = sorted((*_distance(mutation, path), path) for path in found)
    return [path for *_, path in ordered[:most]]


def other_tests(mutation: Mutation, most: int) -> list[Path]:
    """Return other test files that import the module, then those with words of its name."""
    found = []
    for folder in OTHER_TESTS:
        for path in (TOP / "tests" / folder).rglob("test_*.py"):
            distance = _distance(mutation, path)
            if distance != (True, 0):
                found.append((*distance, path.stat().st_size, path))
    return [path for *_, path in sorted(found)[:most]]


def _distance(mutation: Mutation, path: Path) -> tuple[bool, int]:
    """Return what sorts test files: whether it does not import the module, and common words."""
    parent, _, name = f"proton_bench.{mutation.module}".removesuffix(".__init__").rpartition(".")
    dotted = re.escape(f"{parent}.{name}")
    imported = re.compile(rf"{dotted}\b|from {re.escape(parent)} import [^\n]*\b{name}\b")
    words = set(re.split("[._]", mutation.module)) - COMMON_WORDS
    same = len(words.intersection(path.stem.split("_")))
    return imported.search(path.read_text()) is None, -same


@dataclass(frozen=True)
class Found:
    """What tests said of a mutation: which of them failed first, or why none did."""

    mutation: Mutation
    caught: bool
    what: str
    seconds: float


def _failing(mutation: Mutation, tests: list[Path], *, folder: Path, seconds: float) -> str | None:
    """Run tests on it; return which one failed, or None."""
    place = str(mutation.path)
    text = LOADER.format(place=place, text=mutation.text(), mark=str(folder / "loaded"))
    (folder / "sitecustomize.py").write_text(text)
    words = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", f"--basetemp={folder}/temp"]
    paths = [str(each.relative_to(TOP)) for each in tests]
    try:
        done = run_pytest([*words, *paths], seconds, first=str(folder))
    except subprocess.TimeoutExpired:
        return f"no end in {seconds:.0f} s"
    if done.returncode in {0, 5}:
        return None
    if done.returncode == 4:
        sys.exit(f"pytest does not start: {done.stderr[-500:]}")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if failed is None:
        return f"pytest ended with {done.returncode}"
    name = failed[1]
    # What fails without the mutation as well says nothing of it.
    alone = ["-q", "-p", "no:cacheprovider", name.partition("[")[0]]
    again = run_pytest(alone, seconds)
    return name if again.returncode == 0 else None


def examine(mutation: Mutation, options: argparse.Namespace) -> Found:
    """Run unit tests of its room, then others."""
    begun = time.monotonic()
    with TemporaryDirectory(prefix="mutation-") as name:
        folder = Path(name)
        unit = unit_tests(mutation, options.unit_files)
        for tests in filter(None, (unit, other_tests(mutation, options.files))):
            failed = _failing(mutation, tests, folder=folder, seconds=options.seconds)
            if failed is not None:
                return Found(mutation, True, failed, time.monotonic() - begun)
        what = "" if (folder / "loaded").exists() else "never loaded"
    return Found(mutation, False, what, time.monotonic() - begun)


def main() -> int:
    """Print a row for each mutation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=4, help="of other folders, for each")
    parser.add_argument("--unit-files", type=int, help="unit tests for each; all by default")
    parser.add_argument("--seconds", type=float, default=600, help="the longest of one run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--least", type=float, default=0.0)
    options = parser.parse_args()
    caught = count = 0
    print("| mutation | | by | s |\n|---|---|---|---:|")
    with ThreadPoolExecutor(options.jobs) as pool:
        chosen = islice(drawn(mutations(), options.seed), options.count)
        for found in pool.map(lambda one: examine(one, options), chosen):
            count += 1
            caught += found.caught
            word = "caught" if found.caught else "missed"
            cells = [f"`{found.mutation.name}`", word, found.what, f"{found.seconds:.0f}"]
            print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\n{caught} of {count} caught")
    return int(caught < options.least * count)


if __name__ == "__main__":
    sys.exit(main())
