"""``proton gate``: whether new runs are slower than base runs, for people and for CI."""

from __future__ import annotations

from typing import Annotated

import typer

from proton_bench.cli.gating.options import (
    BaseOption,
    BisectOption,
    ChartsOption,
    EverythingOption,
    GithubOption,
    InconclusiveOption,
    JunitOption,
    MarkdownOption,
    NewOption,
    NoiseOption,
    NoNoiseOption,
    PolicyOption,
    QuarantineOption,
    RunsOption,
    SetOption,
    SidesArgument,
    StoreOption,
    ThresholdOption,
)
from proton_bench.cli.measured import Recording
from proton_bench.cli.options import BackendOption, ContextOption, HookOption, ModeOption
from proton_bench.cli.project import default_store

__all__ = ["command"]


def command(
    sides: SidesArgument = None,
    base: BaseOption = None,
    new: NewOption = None,
    runs: RunsOption = None,
    threshold: ThresholdOption = None,
    policy: PolicyOption = None,
    settings: SetOption = None,
    quarantine: QuarantineOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail on new and removed paths.")
    ] = False,
    ignore_devices: Annotated[
        bool,
        typer.Option("--ignore-devices", help="Compare runs of different kinds of devices."),
    ] = False,
    raw_names: Annotated[
        bool, typer.Option("--raw-names", help="Names have to match exactly.")
    ] = False,
    inconclusive: InconclusiveOption = None,
    noise: NoiseOption = None,
    no_noise: NoNoiseOption = False,
    store: StoreOption = None,
    save: Annotated[
        str | None,
        typer.Option(
            "--save", metavar="NAME", help="Save the new runs as a candidate of this baseline."
        ),
    ] = None,
    everything: EverythingOption = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document with all rows.")
    ] = False,
    markdown: MarkdownOption = None,
    junit: JunitOption = None,
    github: GithubOption = False,
    bisect: BisectOption = False,
    charts: ChartsOption = None,
    backend: BackendOption = None,
    context_source: ContextOption = "shadow",
    mode: ModeOption = None,
    hook: HookOption = None,
) -> int:
    """Compare new runs with base runs; exits with 0 if nothing got slower and 1 if something did.

    With --runs R, CMD is recorded as with `proton run` in R fresh processes. 2 is wrong usage or a
    corrupt file, 3 undecided, 4 not comparable, 5 no baseline.
    """
    from proton_bench.cli.gating.outputs import Outputs, read_chart_files
    from proton_bench.cli.gating.sides import Words
    from proton_bench.cli.work.gate import Known, Wanted, judge
    from proton_bench.gate.policy.policy_words import PolicyWords

    files = read_chart_files(charts or (), "--write")
    outputs = Outputs(everything, as_json, markdown, junit, github, files)
    flags = {"strict": strict, "ignore-devices": ignore_devices, "raw-names": raw_names}
    words = PolicyWords(
        policy,
        threshold or (),
        settings or (),
        quarantine or (),
        [key for key, is_set in flags.items() if is_set],
        inconclusive,
    )
    asked = Words(
        positional=sides or (),
        base=base or (),
        new=new or (),
        runs=runs,
        recording=Recording(backend, context_source, mode, hook),
        save=save,
    )
    known = Known(noise, store or default_store(), is_refused=no_noise)
    return judge(Wanted(asked, words, known), outputs, skips_failures=bisect)
