"""A refusal to sample says why and what to do; other failures stay what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench_plugins.cupti.privileges import (
    Permission,
    Privileges,
    explain_refusal,
    read_privileges,
)

REFUSAL = "cuptiPCSamplingEnable failed: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)"
REMEDY = "NVreg_RestrictProfilingToAdminUsers=0"


def known(permission: Permission) -> Privileges:
    return Privileges(permission, permission.value)


@pytest.mark.parametrize(
    "message",
    [REFUSAL, "cuptiPCSamplingEnable: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "cupti: error 35"],
)
def test_a_refusal_names_what_allows_it(message: str) -> None:
    text = explain_refusal(message, known(Permission.REFUSED))

    assert text.startswith(message)
    assert "this process is not one" in text
    assert REMEDY in text
    assert "CAP_SYS_ADMIN" in text


def test_a_container_that_lacks_the_capability_is_thought_of() -> None:
    text = explain_refusal(REFUSAL, known(Permission.EVERY_USER))

    assert "allowed to every user; a container needs the capability too" in text


def test_what_is_not_known_is_not_said() -> None:
    text = explain_refusal(REFUSAL, known(Permission.UNKNOWN))

    assert "unknown" not in text
    assert REMEDY in text


def test_other_failures_are_left_alone() -> None:
    for message in ("cuptiPCSamplingEnable failed: CUPTI_ERROR_OUT_OF_MEMORY (8)", "error 350"):
        assert explain_refusal(message) == message


def test_an_explained_refusal_is_not_explained_twice() -> None:
    once = explain_refusal(REFUSAL, known(Permission.REFUSED))

    assert explain_refusal(once, known(Permission.REFUSED)) == once


@pytest.mark.parametrize(
    ("restricted", "capabilities", "expected"),
    [
        ("0", 0, Permission.EVERY_USER),
        ("1", 0, Permission.REFUSED),
        ("1", 1 << 21, Permission.ADMINISTRATOR),
        ("1", 1 << 38, Permission.MONITOR),
        ("", 1 << 21, Permission.UNKNOWN),
    ],
)
def test_what_the_driver_and_the_kernel_say(
    tmp_path: Path, restricted: str, capabilities: int, expected: Permission
) -> None:
    setting = f"RmProfilingAdminOnly: {restricted}\n" if restricted else ""
    (tmp_path / "params").write_text(f"ResmanDebugLevel: 4294967295\n{setting}")
    (tmp_path / "status").write_text(f"Name:\tpython\nCapEff:\t{capabilities:016x}\n")

    found = read_privileges(tmp_path / "params", tmp_path / "status")

    assert found.permission is expected
