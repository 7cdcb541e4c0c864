"""``proton doctor``: what works, what is missing, and how to fix it."""

from __future__ import annotations

from typing import Annotated

import typer

from proton_bench.errors import UsageError

__all__ = ["command"]


def command(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Check the numbers of these profiles instead of the installation. Exits with 2 "
            "if some cannot be true.",
            show_default=False,
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="NAME",
            help="Exit with 69 if this is missing: a backend such as cupti, a package such as "
            "torch, a script such as proton, or native. May be repeated.",
        ),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix-scripts",
            help="First rewrite the scripts proton and proton-viewer of this environment if "
            "another package owns them.",
        ),
    ] = False,
    calibrates: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="First measure what units of this GPU reach at best (DRAM, tensor, fp32, fp64), "
            "in about ten seconds, and keep it for runs with counters.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of text.")
    ] = False,
) -> None:
    """Check this installation (versions, scripts, calibration, backends) or profiles."""
    if files and (require or fix or calibrates):
        raise UsageError(
            "--require, --fix-scripts and --calibrate are about the installation, not about files"
        )
    from proton_bench.cli.work import doctor

    if fix:
        doctor.write_scripts()
    if files:
        doctor.examine_profiles(files, as_json=as_json)
    else:
        doctor.examine_installation(require or [], calibrates=calibrates, as_json=as_json)
