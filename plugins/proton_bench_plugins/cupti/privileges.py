"""Finds out whether this process may sample program counters and read hardware counters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

_SYS_ADMIN, _PERFMON = 21, 38  # numbers of capabilities
ADVICE = (
    "run as root or with CAP_SYS_ADMIN (docker run --cap-add=SYS_ADMIN), or load the driver with "
    "NVreg_RestrictProfilingToAdminUsers=0 (a file in /etc/modprobe.d with `options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0`, then reboot)"
)
_PARAMETERS = Path("/proc/driver/nvidia/params")
_PROCESS = Path("/proc/self/status")
# CUPTI's error for missing privileges, by name and number.
_REFUSAL = re.compile(r"INSUFFICIENT_PRIVILEGES|error 35\b|\(35\)")
# The native core's shorter advice.
_SHORT_ADVICE = re.compile(r"; the driver keeps profiling to administrators: .*", re.DOTALL)


class Permission(Enum):
    """Permissions that the driver gives this process."""

    EVERY_USER = "allowed to every user"
    ADMINISTRATOR = "only for administrators; this process has CAP_SYS_ADMIN"
    MONITOR = "only for administrators; this process has CAP_PERFMON, enough from driver 565 on"
    REFUSED = "only for administrators, and this process is not one"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Privileges:
    """The permission and its origin.

    Attributes:
        permission: What the driver lets this process do.
        text: The same as text, with the reason if it is unknown.
    """

    permission: Permission
    text: str


def read_privileges(parameters: Path = _PARAMETERS, process: Path = _PROCESS) -> Privileges:
    """Return whether this process may sample.

    Args:
        parameters: What the driver was loaded with.
        process: Status of a process, with its capabilities.
    """
    try:
        settings = dict(_pairs(parameters.read_text(encoding="utf-8", errors="replace")))
    except OSError as error:
        return _unknown(f"{parameters}: {error.strerror}")
    restricted = settings.get("RmProfilingAdminOnly", "")
    if restricted not in ("0", "1"):
        return _unknown(f"{parameters} does not say")
    if restricted == "0":
        return _known(Permission.EVERY_USER)
    held = _capabilities(process)
    if held >> _SYS_ADMIN & 1:
        return _known(Permission.ADMINISTRATOR)
    return _known(Permission.MONITOR if held >> _PERFMON & 1 else Permission.REFUSED)


def explain_refusal(
    message: str,
    privileges: Privileges | None = None,
    *,
    doing: str = "sample program counters",
) -> str:
    """Return an error's message, extended by the reason and what to do if privileges are missing.

    Args:
        message: Error of CUPTI's call; other errors are returned unchanged.
        privileges: Privileges of this process; None reads them.
        doing: What was refused.
    """
    if _REFUSAL.search(message) is None or ADVICE in message:
        return message
    found = read_privileges() if privileges is None else privileges
    if found.permission in (Permission.EVERY_USER, Permission.ADMINISTRATOR):
        # The driver allows it: the container's or the host's settings decide.
        known = f"the driver's own settings say: {found.text}; a container needs the capability too"
    else:
        known = f"sampling is {found.text}" if found.permission is not Permission.UNKNOWN else ""
    detail = f" ({known})" if known else ""
    message = _SHORT_ADVICE.sub("", message)
    return f"{message}: this user may not {doing}{detail}; {ADVICE}"


def _known(permission: Permission) -> Privileges:
    return Privileges(permission, permission.value)


def _unknown(why: str) -> Privileges:
    return Privileges(Permission.UNKNOWN, f"unknown: {why}")


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, _, value = line.partition(":")
        yield name.strip(), value.strip()


def _capabilities(process: Path) -> int:
    try:
        lines = dict(_pairs(process.read_text(encoding="utf-8", errors="replace")))
        return int(lines.get("CapEff", "0"), 16)
    except (OSError, ValueError):
        return 0
