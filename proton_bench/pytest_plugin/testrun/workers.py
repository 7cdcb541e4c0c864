"""Test runs in the workers of pytest-xdist: each writes a part, and the controller merges them.

The parts are in their own folder beside the output, so that two runs never mix, and are removed
once the merged profile is written.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proton_bench.errors import OutputError, ProtonError, UsageError
from proton_bench.pytest_plugin.testrun.report import RunSession

if TYPE_CHECKING:
    from proton_bench.model.profile import Profile
    from proton_bench.recording.session.session import Session


# Orders of the controller for its workers, as JSON. They are needed before xdist sends anything.
_VARIABLE = "PROTON_BENCH_WORKER"
_WORKER_ID = "PYTEST_XDIST_WORKER"
# Makes children of a profiled program open their own sessions; workers get orders instead.
_AUTOSTART = "PROTON_BENCH_AUTOSTART"
_MAX_STEM = 100
_VISIBLE = "CUDA_VISIBLE_DEVICES"
# Files that workers lock for their GPU.
_DEVICE_LOCK = "device-"
# Suffixes of a worker's part.
_PART_FORMATS = ("proton",)


def is_controller(config: pytest.Config) -> bool:
    """Whether this run distributes its tests to workers of pytest-xdist."""
    option = config.option
    return (
        not hasattr(config, "workerinput")
        and getattr(option, "dist", "no") != "no"
        and bool(getattr(option, "tx", None))
    )


# -- what the controller tells its workers -------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOrders:
    """How the workers record.

    Attributes:
        folder: Folder of the parts, named after the workers.
        context: Context source.
        backend: Names joined by ``+``; None asks the plugins.
        mode: Mode text.
        hook: Name of a launch hook.
        command: Command line of the controller, for the provenance.
        command_line: The run belongs to the ``proton`` command, which ignores a test's own start.
        compat: ``triton.profiler`` resolves to this package.
        interpret: Backends may prepare the process.
        autostart: Options of the controller for other children.
        controller: Process number of the controller.
        devices: GPUs, one per worker, by their CUDA names; empty assigns none.
        trace_formats: Formats of the worker's own timeline; empty for none.
    """

    folder: str
    context: str
    backend: str | None
    mode: str | None
    hook: str | None
    command: tuple[str, ...]
    command_line: bool
    compat: bool
    interpret: bool
    autostart: str | None
    controller: int
    devices: tuple[str, ...] = ()
    trace_formats: tuple[str, ...] = ()

    @classmethod
    def take(cls) -> WorkerOrders | None:
        """Return the controller's orders for this worker, once; None in any other process."""
        text = os.environ.get(_VARIABLE)
        if text is None or _WORKER_ID not in os.environ:
            return None
        fields = json.loads(text)
        listed = {name: tuple(fields[name]) for name in ("command", "devices", "trace_formats")}
        orders = cls(**{**fields, **listed})
        if orders.controller == os.getpid():
            return None
        # The tests may start other programs, or controllers of their own.
        del os.environ[_VARIABLE]
        if orders.autostart is not None:
            os.environ[_AUTOSTART] = orders.autostart
        return orders

    def claim_device(self) -> None:
        """Take a GPU that no other worker has, before anything starts CUDA.

        A file lock holds it until this process ends in any way, so that a replacing worker finds
        one.

        Raises:
            UsageError: All are in use.
        """
        for number, device in enumerate(self.devices):
            lock = os.path.join(self.folder, f"{_DEVICE_LOCK}{number}")
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                continue
            os.environ[_VISIBLE] = device
            return
        if self.devices:
            raise UsageError(f"no GPU is left for worker {os.environ[_WORKER_ID]}")

    def open_part(self) -> RunSession:
        """Open the session of this worker.

        Raises:
            ProtonError: See ``open_session``.
        """
        from proton_bench.flags import flags
        from proton_bench.recording.session.partials import write_partials
        from proton_bench.recording.session.session import SessionOptions, open_session

        session = open_session(
            SessionOptions(
                name=os.path.join(self.folder, os.environ[_WORKER_ID]),
                context=self.context,
                backend=self.backend,
                mode=self.mode,
                hook=self.hook,
                command=self.command,
                data="trace" if self.trace_formats else "tree",
                trace_formats=self.trace_formats,
                samples_host=True,
            )
        )
        formats = (*_PART_FORMATS, *self.trace_formats)
        flags.command_line = self.command_line
        write_partials(session, formats)
        return RunSession(session, formats)


class WorkerEnd:
    """Hooks that write the part of a worker before its controller learns that it finished."""

    def __init__(self, run: RunSession) -> None:
        self._run = run

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        """Write the part."""
        try:
            return (yield)
        finally:
            self._write()

    def pytest_unconfigure(self) -> None:
        """Write the part of a worker that ended early."""
        self._write()

    def _write(self) -> None:
        try:
            self._run.session.finalize(formats=self._run.formats or ())
        except ProtonError as error:
            sys.stderr.write(f"proton: error: {error}\n")


# -- the controller ------------------------------------------------------------------------------
class WorkerParts:
    """Hooks of the controller: give orders to the workers and collect their parts.

    Args:
        session: The controller's session, which gets the parts.
        interpret: Backends of the workers may prepare their process.
        devices: GPUs, one per worker; empty assigns none.

    Raises:
        OutputError: The folder of the parts cannot be created.
        UsageError: The session writes phases while it records, which parts do not support.
    """

    def __init__(self, session: Session, *, interpret: bool, devices: tuple[str, ...] = ()) -> None:
        if session.plan.flushing is not None:
            raise UsageError(
                "periodic_flushing does not work with the workers of pytest-xdist, whose "
                "profiles are merged: record without it, or run without -n"
            )
        self._session = session
        self._folder = _make_folder(session.path)
        self._workers: list[str] = []
        self._order: dict[str, int] = {}
        self._tests: dict[str, set[str]] = defaultdict(set)
        self._autostart = os.environ.pop(_AUTOSTART, None)
        self._devices = devices
        self._notes: list[str] | None = None
        os.environ[_VARIABLE] = json.dumps(asdict(self._orders(interpret=interpret)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Expect a part from a starting worker, also from a replacing one."""
        self._workers.append(str(node.gateway.id))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Note the order in which one process would run the tests."""
        from proton_bench.model.frame import escape_surrogates

        for test in ids:
            name = escape_surrogates(test)
            self._order.setdefault(name, len(self._order))
            if "@" in name:  # --dist=loadgroup adds "@group" to the id, but not to the name
                self._order.setdefault(name.rpartition("@")[0], len(self._order))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note which worker ran the test, to report missing tests if it dies."""
        node = getattr(report, "node", None)
        if node is not None:
            self._tests[str(node.gateway.id)].add(report.nodeid)

    def gather(self) -> list[str]:
        """Merge all parts into the session after the workers end; return missing ones."""
        if self._notes is None:
            self._notes = self._gather()
        return self._notes

    def profile(self) -> Profile:
        """Return the profile of the workers after they ended.

        Raises:
            SessionError: The session was finalized.
        """
        self.gather()
        return self._session.profile()

    def _gather(self) -> list[str]:
        os.environ.pop(_VARIABLE, None)
        if self._autostart is not None:
            os.environ[_AUTOSTART] = self._autostart
        if not self._session.is_live:
            return self._kept("the session of this run is over")
        from proton_bench.pytest_plugin.testrun.parts import read_parts

        self._keep_timelines()
        parts = read_parts(self._folder, self._workers)
        lost = {name: len(self._tests[name]) for name in parts.missing if self._tests[name]}
        notes = [*parts.problems, *(_missing(name, count) for name, count in lost.items())]
        if parts.profile is not None or lost:
            self._add_to_session(parts.profile, lost, keep=bool(parts.problems))
        else:
            self._remove()
        return notes

    def _keep_timelines(self) -> None:
        """Move timelines of workers beside the output, also partial ones."""
        from proton_bench.recording.session.output_format import TRACE_FORMATS, suffix_of

        suffixes = [f".{suffix_of(name)}" for name in TRACE_FORMATS]
        found = [path for name in self._workers for path in self._folder.glob(f"{name}.*")]
        for path in found:
            if path.suffix in suffixes:
                with contextlib.suppress(OSError):
                    path.replace(f"{self._session.path}.{path.name}")

    def _add_to_session(self, found: Profile | None, lost: dict[str, int], *, keep: bool) -> None:
        from proton_bench.pytest_plugin.testrun.parts import in_order, no_rows
        from proton_bench.recording.children.child_profiles import AddedProfile

        profile = no_rows() if found is None else in_order(found, self._order)
        reasons = {f"tests of worker {name}, which left no profile": lost[name] for name in lost}
        profile = replace(profile, dropped={**profile.dropped, **reasons})
        release = (lambda: None) if keep else self._remove
        self._session.add_profile(AddedProfile(profile, str(self._folder), release))

    def _orders(self, *, interpret: bool) -> WorkerOrders:
        from proton_bench.flags import flags
        from proton_bench.recording.compat import CompatFinder
        from proton_bench.recording.session.options import STDOUT

        plan = self._session.plan
        return WorkerOrders(
            folder=str(self._folder),
            context=plan.context,
            backend=plan.backend_names,
            mode=None if plan.asked.mode is None else str(plan.asked.mode),
            hook=plan.asked.hook if isinstance(plan.asked.hook, str) else None,
            command=plan.command,
            command_line=flags.command_line,
            compat=any(isinstance(finder, CompatFinder) for finder in sys.meta_path),
            interpret=interpret,
            autostart=self._autostart,
            controller=os.getpid(),
            devices=self._devices,
            # Parts of a run on standard output are in a folder that is removed.
            trace_formats=() if self._session.path == STDOUT else plan.trace_formats,
        )

    def _kept(self, reason: str) -> list[str]:
        return [f"{reason}: the profiles of the workers are kept in {self._folder}"]

    def _remove(self) -> None:
        # Remove only files of workers; other files keep the folder.
        for pattern in (*(f"{name}.*" for name in self._workers), f"{_DEVICE_LOCK}*"):
            for path in self._folder.glob(pattern):
                with contextlib.suppress(OSError):
                    path.unlink()
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def _missing(worker: str, tests: int) -> str:
    noun = "test" if tests == 1 else "tests"
    return f"worker {worker} left no profile: {tests} {noun} missing from this one"


def _make_folder(output: str) -> Path:
    from proton_bench.recording.session.options import STDOUT

    beside, stem = os.path.split(output) if output != STDOUT else (None, "proton")
    try:
        return Path(tempfile.mkdtemp(prefix=f"{stem[:_MAX_STEM]}.parts-", dir=beside))
    except OSError as error:
        raise OutputError(
            f"cannot make a folder for the workers' profiles beside {output!r}: {error.strerror}; "
            "name another output"
        ) from None
