"""Calls each entry of the API while a stream of the doubles is captured: MODE THREAD DATA FOLDER.

Run by test_stream_capture.py in a process of its own. Prints by entry how many kernels the profile
has by path, or a text that says what went wrong.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))

from doubles import Cupti

import proton_bench as proton
from proton_bench.formats.registry import read_profile
from proton_bench.recording.session.recording import find_session

STREAM = 7
MODES = ("global", "thread_local", "relaxed")
cupti = Cupti()


class Case:
    """What entries use.

    Attributes:
        session: The session that records; None while there is none.
        path: Where its profile goes.
    """

    def __init__(self, path: str, data: str, mode: str | None = None) -> None:
        self.path, self.data, self.mode = path, data, mode
        self.session: int | None = None

    def start(self, suffix: str = "") -> int | None:
        """Start a session whose path ends so."""
        path = self.path + suffix
        return proton.start(path, data=self.data, backend="cupti", mode=self.mode)


def scopes(case: Case) -> None:
    """Scopes, states and values."""
    with proton.scope("inner", {"flops": 2.0, "bytes": 3}), proton.state("state"):
        pass
    proton.exit_scope(name=_entered("entered"))
    with proton.cpu_timed_scope("timed"), proton.metadata_state():
        pass


def _entered(name: str) -> str:
    proton.enter_scope(name)
    return name


def pause(case: Case) -> None:
    """A pause, also a second one."""
    for _ in range(2):
        proton.deactivate(case.session)
        proton.activate(case.session)


def pause_flushing(case: Case) -> None:
    """A pause that records everything first."""
    proton.deactivate(case.session, flushing=True)
    proton.activate(case.session)


def deactivate(case: Case) -> None:
    """A pause that ends after the capture."""
    proton.deactivate(case.session)


def activate(case: Case) -> None:
    """The end of a pause."""
    proton.activate(case.session)


def start(case: Case) -> None:
    """The first session of the process."""
    case.session = case.start()


def second(case: Case) -> None:
    """Another session, which ends as well."""
    proton.finalize(case.start(".second"))


def finalize(case: Case) -> None:
    """The end of the only session."""
    proton.finalize(case.session)
    case.session = None


def anew(case: Case) -> None:
    """The end of the only session, and another one."""
    proton.finalize(case.session)
    case.path += ".anew"
    case.session = case.start()


def data(case: Case) -> None:
    """The recording so far."""
    session: Any = case.session
    if case.data == "tree":
        proton.data.get(session)
        proton.data.get_msgpack(session)
    proton.data.is_phase_complete(session, 0)
    known: Any = find_session(session)
    known.profile()


def phases(case: Case) -> None:
    """New phases, of which one is forgotten."""
    number = proton.data.advance_phase(case.session)
    assert number is not None
    proton.data.is_phase_complete(case.session, number - 1)
    proton.data.clear(case.session, number - 1)


def decorated(case: Case) -> None:
    """A function that is a session."""
    options: Any = {"name": f"{case.path}.other", "data": case.data, "backend": "cupti"}
    proton.profile(lambda: None, **options)()


def interrupted(case: Case) -> None:
    """An exception that leaves the capture, and a session that ends on the way."""
    with contextlib.suppress(KeyboardInterrupt):
        try:
            raise KeyboardInterrupt
        finally:
            finalize(case)


ENTRIES: dict[str, Callable[[Case], None]] = {
    entry.__name__: entry
    for entry in (
        *(scopes, pause, pause_flushing, deactivate, activate, start, second, finalize, anew),
        *(data, phases, decorated, interrupted),
    )
}
BEGINS = {"activate": "paused", "start": "without a session"}


def counts(path: str) -> dict[str, int]:
    """Return how many kernels a profile has by path."""
    profile = read_profile(Path(f"{path}.proton")).fold_variants()
    column = profile.columns.get("count")
    rows = [row for row in range(len(profile)) if column is not None and column.valid[row]]
    return {"/".join(profile.path(row)): int(column.get(row)) for row in rows if column}


def run(entry: str, mode: str, thread: str, case: Case) -> dict[str, int] | str:
    """Capture, call the entry meanwhile, and launch the graph."""
    broken = cupti.broken_captures()
    if BEGINS.get(entry) != "without a session":
        case.session = case.start()
        with proton.scope("before"):
            cupti.launch("kernel", 3)
    if BEGINS.get(entry) == "paused":
        proton.deactivate(case.session)
    cupti.capture_begin_as(STREAM, MODES.index(mode))
    with proton.scope("first"):
        cupti.launch("kernel", STREAM)
    call(ENTRIES[entry], case, thread)
    with proton.scope("second"):
        cupti.launch("kernel", STREAM)
    graph = cupti.capture_end(STREAM)
    if cupti.broken_captures() != broken:
        proton.finalize()
        return "the capture was broken"
    executable = cupti.graph_instantiate(graph)
    proton.activate()
    with proton.scope("replay"):
        cupti.graph_launch(executable, STREAM)
    proton.finalize()
    return counts(case.path + (".part_1" if entry == "phases" else ""))


def call(entry: Callable[[Case], None], case: Case, thread: str) -> None:
    """Call it on the thread that captures, or on another one."""
    if thread == "capturing":
        entry(case)
        return
    other = threading.Thread(target=entry, args=(case,))
    other.start()
    other.join()


def main(mode: str, thread: str, data: str, folder: str) -> None:
    """Run all entries, and those that stop a session once more with samples."""
    found = {entry: run(entry, mode, thread, Case(f"{folder}/{entry}", data)) for entry in ENTRIES}
    for entry in ("pause", "finalize") if data == "tree" else ():
        case = Case(f"{folder}/sampled_{entry}", data, "pcsampling")
        found[f"sampled {entry}"] = run(entry, mode, thread, case)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
