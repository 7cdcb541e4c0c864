"""The contract of backends, as checks for the tests of a plugin.

Example::

    from proton_bench.plugin.contract import assert_backend_contract

    def test_acme_keeps_the_contract():
        assert_backend_contract(acme_backend, open_session=open_acme, workload=run_acme_kernel)

Every check raises ``AssertionError`` with what was expected and what was found.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from proton_bench.errors import UsageError
from proton_bench.plugin.backend import (
    Availability,
    Backend,
    Collector,
    assign_modes,
)

if TYPE_CHECKING:
    from proton_bench.model.profile import Profile


DATA_KINDS = ("tree", "trace")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


class ContractSession(Protocol):
    """The part of a session that the checks use."""

    def profile(self) -> Profile:
        """Flush and return what was recorded so far."""

    def finalize(self, formats: tuple[str, ...]) -> object:
        """End the session and write the given formats, here none."""


def assert_backend_contract(
    backend: Backend,
    *,
    modes: Sequence[str] = ("",),
    open_session: Callable[[], ContractSession] | None = None,
    workload: Callable[[], object] | None = None,
) -> None:
    """Run every check that this machine allows.

    Args:
        backend: The backend to check.
        modes: Mode texts to open collectors in; ``("",)`` is the default mode alone.
        open_session: Opens a session on that backend that writes no file; None skips the checks
            that need a session.
        workload: Does work that the backend records; None checks sessions without records.

    Raises:
        AssertionError: A promise is broken.
    """
    check_description(backend)
    check_availability(backend)
    check_modes(backend)
    if not backend.availability().available:
        return
    for text in modes:
        check_collector(backend, text)
    if open_session is not None:
        check_sessions(backend, open_session, workload)


def check_description(backend: Backend) -> None:
    """Check names and texts: what the user types and reads."""
    _require(
        _NAME.fullmatch(backend.name) is not None,
        f"backend name {backend.name!r} must be lower case letters, digits, - and _",
    )
    _require_line(backend.summary, f"summary of {backend.name!r}")
    _require(bool(backend.data), f"{backend.name!r} supports no kind of data")
    _require_known(backend.data, DATA_KINDS, f"data of {backend.name!r}")
    names = [mode.name for mode in backend.modes]
    _require(len(names) == len(set(names)), f"{backend.name!r} declares a mode twice: {names}")
    for mode in backend.modes:
        _require(
            _NAME.fullmatch(mode.name) is not None or (not mode.name and bool(mode.options)),
            f"mode name {mode.name!r} must be lower case letters, digits, - and _; without options "
            "the default mode is not declared",
        )
        for key, text in mode.options.items():
            _require(_NAME.fullmatch(key) is not None, f"option name {key!r} of mode {mode.name!r}")
            _require_line(text, f"documentation of option {key!r} of mode {mode.name!r}")


def check_availability(backend: Backend) -> None:
    """Check that the availability is a stable answer with a reason, and does not raise."""
    first, second = backend.availability(), backend.availability()
    _require(
        isinstance(first, Availability),
        f"availability of {backend.name!r} must be an Availability, it is {first!r}",
    )
    _require_line(first.reason, f"reason of the availability of {backend.name!r}")
    _require(
        first.available == second.available,
        f"availability of {backend.name!r} changed from one call to the next",
    )


def check_modes(backend: Backend) -> None:
    """Check that declared modes are accepted, and others rejected with the choices."""
    for spec in backend.modes:
        (mode,) = assign_modes([backend], spec.name)
        _require(mode.name == spec.name, f"mode {spec.name!r} is not accepted")
    try:
        assign_modes([backend], "no-such-mode")
    except UsageError as error:
        for spec in backend.modes:
            _require(spec.name in str(error), f"the error does not name {spec.name!r}: {error}")
    else:
        raise AssertionError(f"{backend.name!r} accepts a mode that it does not declare")


def check_collector(backend: Backend, mode: str = "") -> None:
    """Check that a collector starts, flushes and stops, twice, and leaves nothing switched on."""
    (assigned,) = assign_modes([backend], mode)
    collector = backend.open(assigned)
    _require(
        isinstance(collector, Collector),
        f"open() of {backend.name!r} must return start, flush and stop; got {collector!r}",
    )
    before = _process_state()
    for _ in range(2):
        collector.start()
        collector.flush()
        collector.flush()
        collector.stop()
    after = _process_state()
    for what, value in before.items():
        _require(
            after[what] == value,
            f"{backend.name!r} in mode {mode!r} leaves {what} changed after stop()",
        )


def check_sessions(
    backend: Backend,
    open_session: Callable[[], ContractSession],
    workload: Callable[[], object] | None,
) -> None:
    """Check that sessions record valid profiles, also in two sessions at once, and again."""
    for _ in range(2):
        first, second = open_session(), open_session()
        try:
            if workload is not None:
                workload()
            profiles = [first.profile(), second.profile()]
        finally:
            second.finalize(formats=())
            first.finalize(formats=())
        for profile in profiles:
            _check_profile(backend, profile, recorded=workload is not None)
        _require(
            _paths(profiles[0]) == _paths(profiles[1]),
            f"two sessions on {backend.name!r} saw different call paths of the same work",
        )


def _check_profile(backend: Backend, profile: Profile, *, recorded: bool) -> None:
    profile.self_check()
    if recorded:
        _require(len(profile) > 1, f"{backend.name!r} recorded nothing of the workload")
    kinds = {device.kind for device in profile.devices}
    _require_known(kinds, backend.device_kinds, f"device kinds of records of {backend.name!r}")
    for name in ("time (ns)", "count"):
        if name in profile.columns:
            lowest = min(profile.inclusive(name).tolist(), default=0)
            _require(lowest >= 0, f"{name} of {backend.name!r} is negative: {lowest}")


def _paths(profile: Profile) -> set[tuple[str, ...]]:
    return {profile.path(row) for row in range(len(profile))}


def _process_state() -> dict[str, object]:
    return {
        "os.environ": dict(os.environ),
        "sys.meta_path": list(sys.meta_path),
        "the trace function": sys.gettrace(),
        "the profile function": sys.getprofile(),
        "the number of non-daemon threads": sum(
            not thread.daemon for thread in threading.enumerate()
        ),
    }


def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads like assert
    if not holds:
        raise AssertionError(otherwise)


def _require_line(text: str, what: str) -> None:
    _require(bool(text.strip()) and "\n" not in text, f"{what} must be one line, it is {text!r}")


def _require_known(values: Iterable[str], known: Iterable[str], what: str) -> None:
    unknown = sorted(set(values) - set(known))
    _require(not unknown, f"{what}: {unknown} is not one of {sorted(known)}")
