"""``proton history``: how long each call path took over time, and when that changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.options import StoreOption

__all__ = ["command"]


def command(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Names of baselines, files with one run, folders of runs that were recorded "
            "together, or STORE?CONDITION; each file, folder, saved entry and run of a store is "
            "one point (default: all baselines).",
            show_default=False,
        ),
    ] = None,
    paths: Annotated[
        list[str] | None,
        typer.Option(
            "--path",
            metavar="GLOB",
            help="Show only these call paths, such as 'fwd/**/softmax*', and the totals around "
            "them; may be repeated.",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            metavar="M",
            help="Show only this metric, such as min, mean, p95, total or cycles (default: one for "
            "each path, and those of the policy).",
        ),
    ] = None,
    store: StoreOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show paths that did not change.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document with all points.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write an HTML page; - prints it instead."),
    ] = None,
    acknowledges: Annotated[
        bool,
        typer.Option(
            "--acknowledge", help="Store that these steps are known: `gate --history` passes them."
        ),
    ] = False,
) -> None:
    """Show how long each call path took over time, and the runs where that changed.

    With --acknowledge, `proton gate --history` fails only on later steps.
    """
    from proton_bench.cli.gating.history import Shown, open_history, read_followed, show
    from proton_bench.gate.policy import PolicyWords

    chosen = read_followed(PolicyWords(None), paths or (), metric)
    opened = open_history(runs or (), chosen, store)
    show(opened, Shown(everything, as_json, html), acknowledges=acknowledges)
