"""The commands for each kind."""

from __future__ import annotations

from collections.abc import Sequence

from siege.bombs.kinds import Kind

__all__ = ["GOOD", "SECOND", "commands_of"]

GOOD, SECOND = "good.proton", "second"
TREES = (
    *("proton", "hatchet", "hatchet_msgpack", "json"),
    *("speedscope", "folded", "pprof", "csv"),
)


def commands_of(kind: Kind) -> list[Sequence[str]]:
    """Return its own command lines, or all that read the profile."""
    if kind.words:
        return list(kind.words)
    file, second = kind.name, SECOND + kind.name
    return [
        ["view", file],
        ["view", file, "--json"],
        ["view", file, "--list"],
        ["view", file, "--flat", "--bars", "--print-sorted"],
        ["view", file, "--raw-names", "-f", "full", "--frames", "all", "--layers", "all"],
        ["view", file, "--source", "-i", ".*n.*9"],
        ["diff", file, second],
        ["diff", file, GOOD, "--json", "--ignore-devices"],
        ["diff", GOOD, file, "--by", "kernel", "--markdown", "-t", "0", "--ignore-devices"],
        ["gate", file, second, "--all"],
        ["gate", file, second, "--json", "-t", "**/n*@median:5%", "-t", "k*@p95:5%"],
        ["gate", file, second, "--write", "openmetrics:out.txt", "--junit", "out.xml"],
        ["gate", GOOD, file, "--markdown", "-", "--set", "ignore-devices=true"],
        ["gate", file, second, "--set", "strict=true"],
        ["report", file, "-o", "out.html"],
        ["report", file, "--base", second, "-o", "out.html"],
        ["report", GOOD, "--base", file, "-o", "out.html", "--ignore-devices"],
        ["merge", file, second, "-o", "out.proton"],
        ["merge", file, second, "-o", "out.pftrace"],
        ["merge", "--stragglers", file, second],
        *(["export", file, "--to", form, "-o", f"out.{form}"] for form in (*TREES, "kineto")),
        ["query", file, "SELECT * FROM nodes", "--json"],
        ["query", file, "SELECT count(*) FROM metrics, runs"],
        ["baseline", "save", "x", file, "--store", "kept"],
        ["doctor", file, GOOD],
    ]
