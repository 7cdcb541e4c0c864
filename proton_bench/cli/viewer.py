"""``proton-viewer``: upstream's viewer options, without hatchet."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from proton_bench.analysis.choices import DEFAULT_DEPTH, UPSTREAM_FORMS, FrameFormat
from proton_bench.cli.boundary import collect_rarely, exit_code
from proton_bench.cli.files import (
    check_profiles,
    first_file,
    read_metric_names,
)
from proton_bench.plugin.others import register_plugin_formats

_LIST_HELP = """List available metrics. Names are case insensitive and need no unit.
Derived metrics exist when their sources were recorded:
- time/s, time/ms, time/us, time/ns: time
- avg_time/s, avg_time/ms, avg_time/us, avg_time/ns: time / count
- flop[<8/16/32/64>]/s, gflop[<8/16/32/64>]/s, tflop[<8/16/32/64>]/s: flops / time
- byte/s, gbyte/s, tbyte/s: bytes / time
- util: max(sum(flops<width> / peak of the width), bytes / peak bandwidth) / time
- <metric>/%%: share of the root, or of the sum of all rows for exclusive metrics"""


def main(argv: list[str] | None = None) -> int:
    """Run ``proton-viewer`` and return its exit code.

    Args:
        argv: Arguments without the program name; those of the process by default.
    """
    if argv is None:
        collect_rarely()
    return exit_code(lambda: _run(sys.argv[1:] if argv is None else argv))


def _run(arguments: Sequence[str]) -> int:
    parser = _parser()
    options, files = parser.parse_known_args(arguments)
    file = first_file(files)
    from proton_bench.analysis.view.select import Selection
    from proton_bench.cli.show import list_metrics, show

    selection = Selection(
        options.include,
        options.exclude,
        options.threshold,
        options.depth,
        trials=options.trials,
        # As upstream shows them; to subtract two profiles their names have to match.
        raw_names=options.raw_names or options.diff_profile is None,
    )
    check_profiles([file])
    register_plugin_formats()
    if options.list:
        list_metrics(file)
        return 0
    show(
        file,
        metrics=read_metric_names(options.metrics),
        selection=selection,
        frames=FrameFormat(options.format),
        is_sorted=options.print_sorted,
        minus=options.diff_profile,
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="proton-viewer",
        usage="proton-viewer [options] FILE",
        description="Shows profiles of proton as a tree.",
        formatter_class=argparse.RawTextHelpFormatter,
    )
    add = parser.add_argument
    add("-l", "--list", action="store_true", help=_LIST_HELP)
    add("-m", "--metrics", help="Metrics to show, separated by comma.")
    add("-i", "--include", help="Keep paths through frames that match this regular expression.")
    add("-e", "--exclude", help="Leave out frames that match, and those below them.")
    add("-t", "--threshold", type=float, help="Leave out frames whose first metric is below this.")
    add("-d", "--depth", type=int, default=DEFAULT_DEPTH, help="Levels to show.")
    add(
        "-f",
        "--format",
        choices=[each.value for each in UPSTREAM_FORMS],
        default=FrameFormat.FULL.value,
        help="Form of the names of Python frames.",
    )
    add("--print-sorted", action="store_true", help="Also list frames by the first metric.")
    add(
        "--diff-profile",
        "-diff",
        type=Path,
        metavar="FILE2",
        help="Subtract this profile: `-m time -diff file1 file2` shows file2 - file1.",
    )
    add(
        "--trials",
        action="store_true",
        help="Also show launches with which autotuners tried configurations.",
    )
    add(
        "--raw-names",
        action="store_true",
        help="With --diff-profile: do not leave out Inductor's running numbers of kernels.",
    )
    return parser
