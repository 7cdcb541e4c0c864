"""Ends recordings in every way at random moments: python -m benchmarks.studies.endings.

Its files are checked against ``docs/reference/processes.md``: whole files with every scope that had
ended, or partial ones and how old these are; the exit code; only messages of ours on stderr.
Seeded: the same number gives the same ways and moments, as far as a machine repeats them. Returns 1
if one ending is not as documented.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import time
from bisect import bisect_right
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

import msgspec

from benchmarks.interleaved import print_machine
from benchmarks.studies.ending_program import LOG_WORDS, OVER, RUNNING, SCOPES_PER_TIME, TARGET
from proton_bench.formats.registry import read_profile

# Signals that the driver sends, as often as named.
SIGNALS = {
    "SIGINT": (signal.SIGINT, 1),
    "SIGINT twice": (signal.SIGINT, 2),
    "SIGTERM": (signal.SIGTERM, 1),
    "SIGHUP": (signal.SIGHUP, 1),
    "SIGKILL": (signal.SIGKILL, 1),
    "SIGABRT": (signal.SIGABRT, 1),
}
CODES = {"_exit": 7, "_exit in a thread": 7, "exec": 7, "error": 1, "exit": 7, "abort": -6}
WAYS = (*SIGNALS, *SIGNALS, *CODES, "forks", "exit in a thread", "last line")
KILLED = (-signal.SIGKILL, -signal.SIGABRT)
OLDEST_S = 2.0
# A KeyboardInterrupt within a scope shows that one, as of any library.
NEVER_SAID = (
    *("terminate called", "internal error", "Exception ignored", "Fatal Python error"),
    "proton_bench/recording/",
)
# So Python says of a Ctrl-C in its own shutdown, with any program.
PYTHON_SAYS = "Exception ignored in: <module 'threading'"
_PATIENCE_S = 120


class _Arguments(msgspec.Struct):
    call_stack: list[str] = []


class _Event(msgspec.Struct):
    ph: str
    args: _Arguments = msgspec.field(default_factory=_Arguments)


class _Trace(msgspec.Struct):
    traceEvents: list[_Event]  # noqa: N815 - the format's name


@dataclass
class Ending:
    """One run and its outcome."""

    way: str
    data: str
    seconds: float
    pause: float
    interval: float
    at_end: bool
    delay: float
    code: int = 0
    faults: list[str] = field(default_factory=list)
    age_s: float | None = None
    fork_ms: float | None = None


def plan(seed: int, number: int) -> Ending:
    """Choose a way and a moment."""
    dice = random.Random(f"{seed} {number}")
    way = dice.choice(WAYS)
    is_signal = way in SIGNALS
    at_end = is_signal and dice.random() < 0.5
    # Some run long enough for the oldest possible partial file.
    is_long = way in ("SIGKILL", "SIGABRT", "abort") and dice.random() < 0.3
    seconds = dice.uniform(2.5, 4) if is_long else dice.uniform(0.01, 0.3)
    waits = (0, 0.08) if at_end else (0, seconds * 1.1)
    return Ending(
        way=way,
        data=dice.choice(("tree", "trace")),
        seconds=seconds,
        pause=dice.choice((0, 0.0001, 0.01)),
        interval=2 if is_long else dice.choice((0.05, 2)),
        at_end=at_end,
        delay=dice.uniform(*waits) if is_signal else 0,
    )


class Program:
    """A process that has loaded the profiler, and forks one that ends for each request."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.studies.ending_program"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _line(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def end(self, ending: Ending, folder: Path) -> int:
        """Run it; return how many scopes had ended, by the time of the signal where one is sent."""
        assert self._process.stdin is not None
        (folder / "x.py").write_text(TARGET)
        (folder / "log").touch()
        os.truncate(folder / "log", 8 * LOG_WORDS)
        words = {
            "folder": str(folder),
            "data": ending.data,
            "way": ending.way,
            "seconds": str(ending.seconds),
            "pause": str(ending.pause),
            "interval": str(ending.interval),
        }
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        child = self._line()
        with (folder / "log").open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            log = memoryview(memory).cast("q")
            sent, scopes = self._send(ending, child, log)
            status = self._line()
            if ending.way not in SIGNALS:
                scopes = log[0]
            ending.code = os.waitstatus_to_exitcode(status)
            logged = log[0] // SCOPES_PER_TIME
            times = list(log[3 : 3 + logged])
            log.release()
        if len(times) < logged:  # or the file would look older than it is
            raise RuntimeError(f"the log has no room for the times of {logged} scopes")
        if ending.code in KILLED and not (folder / "x.proton").exists():
            ending.age_s = age_s(ending, folder, (times, sent))
        return scopes

    @staticmethod
    def _send(ending: Ending, child: int, log: memoryview) -> tuple[int, int]:
        """Return when the signal was sent, 0 for none, and how many scopes had ended."""
        if ending.way not in SIGNALS:
            return 0, 0
        wanted = OVER if ending.at_end else RUNNING
        limit = time.monotonic() + _PATIENCE_S
        while log[1] < wanted and time.monotonic() < limit:
            time.sleep(0.0002)
        time.sleep(ending.delay)
        number, times = SIGNALS[ending.way]
        # Before it is sent: the program goes on until it comes, as long as this process waits.
        sent = time.monotonic_ns(), log[0]
        for _ in range(times):
            try:
                os.kill(child, number)
            except ProcessLookupError:
                break
            time.sleep(0.0001 * (times - 1))
        return sent

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def age_s(ending: Ending, folder: Path, known: tuple[list[int], int]) -> float | None:
    """Return how long before the end the newest scope of the partial files ended.

    Args:
        ending: One that killed the process.
        folder: What it left.
        known: When scopes ended, and when the signal was sent; 0: the program did it itself.

    Returns:
        None if the program ended before its first file.
    """
    times, sent = known
    times = times[: bisect_right(times, sent)] if sent else times
    ended = sent or (times[-1] if times else 0)
    begun = times[0] if times else ended
    name = "x.partial.chrome_trace" if ending.data == "trace" else "x.partial.proton"
    # A timeline is there, and empty, a moment before its first bytes are.
    if not (folder / name).exists() or (folder / name).stat().st_size == 0:
        lived_s = (ended - begun) / 1e9
        return lived_s if lived_s > OLDEST_S + 0.5 else None
    known_times = times[: recorded(folder, name) // SCOPES_PER_TIME]
    return max(0, (ended - (known_times[-1] if known_times else begun)) / 1e9)


def recorded(folder: Path, name: str) -> int:
    """Return how many scopes a file has."""
    if name.endswith("trace"):
        content = (folder / name).read_bytes()
        try:
            trace = msgspec.json.decode(content, type=_Trace)
        except msgspec.DecodeError:  # killed between two writes: bytes follow the complete document
            trace = msgspec.convert(json.JSONDecoder().raw_decode(content.decode())[0], _Trace)
        return sum(
            each.ph == "X" and each.args.call_stack[-1:] == ["b"] for each in trace.traceEvents
        )
    profile = read_profile(folder / name)
    rows = [row for row in range(len(profile)) if profile.path(row) == ("a", "b")]
    return sum(int(profile.column("n").get(row) or 0) for row in rows)


def check(ending: Ending, folder: Path, scopes: int) -> list[str]:
    """Check an ending's files against the documentation; return differences."""
    err = (folder / "err").read_text()
    said = f"code {ending.code}; {err.strip()[-400:]}"
    ours = err.replace(PYTHON_SAYS, "")
    faults = [f"stderr: {said}"] if any(text in ours for text in NEVER_SAID) else []
    if ending.code not in codes(ending):
        faults.append(f"exit code: {said}")
    if ending.way == "forks" and ending.code == 0:
        out = (folder / "out").read_text()
        ending.fork_ms = float(out.split("longest_ms=")[1])
        faults += [] if "failed=0 " in out else [f"children: {out.strip()}"]
    if ending.code in KILLED:
        for partial in folder.glob("x*.proton"):
            read_profile(partial)
        is_old = ending.age_s is not None and ending.age_s > OLDEST_S
        return [*faults, f"the partial file is {ending.age_s:.2f} s old"] if is_old else faults
    return faults + [f"{fault}; {said}" for fault in lost(ending, folder, scopes)]


def codes(ending: Ending) -> set[int]:
    """Return the exit codes that an ending may have; a signal may come after the last line."""
    if ending.way not in SIGNALS:
        return {CODES.get(ending.way, 0)}
    number = SIGNALS[ending.way][0]
    if number in (signal.SIGKILL, signal.SIGABRT):
        return {0, -number}
    # By the signal itself once the interpreter is shut down.
    return {0, 128 + number} | ({-number} if number == signal.SIGINT else set())


def lost(ending: Ending, folder: Path, scopes: int) -> list[str]:
    """Return what is missing in files that should be whole."""
    names = ["x.proton", "x.chrome_trace" if ending.data == "trace" else "x.hatchet"]
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        found = sorted(each.name for each in folder.iterdir())
        return [f"no {name} in {found}" for name in missing]
    faults = ["x.proton is partial"] if read_profile(folder / "x.proton").partial else []
    counts = {name: recorded(folder, name) for name in names if not name.endswith("hatchet")}
    short = [
        f"{name} has {kept} of {scopes} scopes" for name, kept in counts.items() if kept < scopes
    ]
    return [*faults, *short]


def run(seed: int, number: int, programs: SimpleQueue[Program]) -> Ending:
    """Plan, run and check one ending."""
    ending = plan(seed, number)
    with TemporaryDirectory(prefix="ending-") as name:
        program = programs.get()
        try:
            scopes = program.end(ending, Path(name))
            ending.faults = check(ending, Path(name), scopes)
        except Exception as error:  # noqa: BLE001 - what cannot be read is a finding
            ending.faults.append(f"{type(error).__name__}: {error}")
        finally:
            programs.put(program)
    return ending


def table(endings: list[Ending]) -> None:
    """Print a row for each way."""
    rows = defaultdict(list)
    for each in endings:
        rows[each.way].append(each)
    for way, each in sorted(rows.items()):
        ages = [one.age_s for one in each if one.age_s is not None]
        forks = [one.fork_ms for one in each if one.fork_ms is not None]
        extra = f"; {len(ages)} partial, the oldest {max(ages):.2f} s" if ages else ""
        extra += f"; the longest fork {max(forks):.1f} ms" if forks else ""
        faults = sum(bool(one.faults) for one in each)
        print(f"{way:18} {len(each):5} endings, {faults} not as documented{extra}")


def main(words: list[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endings", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one ending")
    parser.add_argument("--jobs", type=int, default=4, help="they mostly wait")
    options = parser.parse_args(words)
    print_machine()
    numbers = range(options.endings) if options.only is None else [options.only]
    programs: SimpleQueue[Program] = SimpleQueue()
    made = [Program() for _ in range(options.jobs)]
    for program in made:
        programs.put(program)
    with ThreadPoolExecutor(options.jobs) as pool:
        endings = list(pool.map(lambda number: run(options.seed, number, programs), numbers))
    for program in made:
        program.close()
    for number, ending in zip(numbers, endings, strict=True):
        for fault in ending.faults:
            print(f"ending {number} ({ending.way}, {ending.data}): {fault}")
    table(endings)
    return 1 if any(each.faults for each in endings) else 0


if __name__ == "__main__":
    sys.exit(main())
