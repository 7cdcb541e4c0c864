"""Messages about passes on stderr: found operations, left-out operations, skipped kernels."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict

from proton_bench.recording.stderr import warn
from proton_bench_plugins.instrumentation.passes.choice import MAX_SCOPES, Scope
from proton_bench_plugins.instrumentation.passes.rule import Rule, at_work

_SHOWN = 4


def list_scopes(kernel: str, scopes: Sequence[Scope], *, as_json: bool) -> None:
    """Print the operations that would be bracketed in a kernel.

    Args:
        kernel: Name of the kernel.
        scopes: Its scopes in program order.
        as_json: One JSON object on one line, for other programs.
    """
    if as_json:
        document = {"kernel": kernel, "scopes": [asdict(scope) for scope in scopes]}
        sys.stderr.write(f"{json.dumps(document)}\n")
        return
    count = f"{len(scopes)} scope{'' if len(scopes) == 1 else 's'}"
    lines = [f"  {scope.name}  {scope.op}" for scope in scopes]
    sys.stderr.write("\n".join([f"proton: {kernel}: {count}", *lines, ""]))


def report_left_out(kernel: str, left_out: Sequence[Scope]) -> None:
    """Warn of operations without room."""
    names = _some([scope.name for scope in left_out])
    warn(
        f"kernel {kernel!r} has more operations to record than the limit of {MAX_SCOPES} scopes; "
        f"left out: {names}; narrow the passes with `:line=` or use fewer"
    )


def report_skipped(kernel: str, reason: str) -> None:
    """Warn of a kernel that was not changed."""
    warn(f"kernel {kernel!r} is compiled without the scopes of passes: {reason}")


def without_scopes(kernels: Sequence[str]) -> str:
    """Return what to do for kernels that ran without a scope and without passes."""
    return (
        f"the kernels that ran ({_some(kernels)}) have no scopes in their source; "
        "--instrument=loops,loads,dots brackets operations without changing the source"
    )


def unused_passes(
    rules: Sequence[Rule], kernels: Sequence[str], taken: Collection[str]
) -> str | None:
    """Return why passes recorded nothing in a whole session, None if each recorded something.

    Args:
        rules: Result of ``parse_passes``.
        kernels: Names of the kernels that ran.
        taken: Rules, as texts, that took an operation.
    """
    unused = [rule for rule in at_work(rules) if str(rule) not in taken]
    if unused and not kernels:
        which = ",".join(str(rule) for rule in unused)
        return f"passes '{which}' recorded nothing: no Triton kernel ran meanwhile"
    return "; ".join(_unused(rule, kernels) for rule in unused) or None


def _unused(rule: Rule, kernels: Sequence[str]) -> str:
    meant = [kernel for kernel in kernels if rule.takes_kernel(kernel)]
    if not meant:
        return f"pass '{rule}' matched no kernel; these ran: {_some(kernels)}"
    return (
        f"pass '{rule}' matched no operation of {_some(meant)}; --instrument=print-ops lists the "
        "operations"
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
