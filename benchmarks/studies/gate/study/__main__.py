"""Measure the gate on a device: ``python -m benchmarks.studies.gate.study measure --out FOLDER``.

``measure`` runs fresh processes and keeps their profiles in ``FOLDER/study.zip``; it needs a GPU
with ``--backend cupti``, and torch alone with ``--backend cpu``. ``analyse FOLDER...`` prints
tables and writes ``analysis.json`` beside the first; it runs anywhere.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.studies.gate.study.archive import FILE_NAME, Archive, StudyError
from benchmarks.studies.gate.study.runner import Measuring, measure
from proton_bench.errors import ProtonError

__all__ = ["main", "parse"]

_KINDS = {"cupti": "cuda", "cpu": "operators"}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.studies.gate.study", description=(__doc__ or "").splitlines()[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("measure", help="run fresh processes")
    first.add_argument("--processes", type=int, default=60, help="in all; 60")
    first.add_argument("--out", type=Path, required=True, help="folder of study.zip")
    first.add_argument("--backend", choices=list(_KINDS), default="cupti")
    first.add_argument("--budget-seconds", type=float, default=float("inf"))
    first.add_argument("--limit", type=float, default=300.0, help="seconds for one process; 300")
    first.add_argument("--seed", type=int, default=0, help="of the order of kernels")
    first.add_argument("--resume", action="store_true", help="go on with what the folder has")
    first.add_argument("--dry", action="store_true", help="tiny, without a GPU: does it all run?")
    second = commands.add_parser("analyse", help="print tables of a study")
    second.add_argument("folders", type=Path, nargs="+", help="folders, or study.zip itself")
    second.add_argument("--pairs", type=int, default=6, help="pairs of a gate; 6")
    second.add_argument("--unchanged", action="store_true", help="no gates with a slowed kernel")
    second.add_argument("--gates", type=int, default=500, help="simulated gates; 0 for none")
    second.add_argument("--seed", type=int, default=1, help="of the simulation")
    second.add_argument("--json", type=Path, help="where; analysis.json beside the study otherwise")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return 1 if the study is not complete, 2 for errors."""
    options = parse(arguments)
    try:
        return _measure(options) if options.command == "measure" else _analyse(options)
    except (ProtonError, StudyError, OSError) as error:
        print(f"gate.study: {error}", file=sys.stderr)
        return 2


def _measure(options: argparse.Namespace) -> int:
    if options.processes < 1:
        raise StudyError("--processes has to be 1 or more")
    kind = _KINDS[options.backend]
    settings = {
        "backend": "cpu" if options.dry else options.backend,
        "kind": "interpreter" if options.dry and options.backend == "cupti" else kind,
        "seed": options.seed,
        "tiny": options.dry,
    }
    archive = Archive(settings)
    if (options.out / FILE_NAME).exists():
        if not options.resume:
            raise StudyError(f"{options.out / FILE_NAME} exists: --resume, or another folder")
        archive = Archive.load(options.out)
        if archive.settings != settings:
            raise StudyError(f"{options.out} was measured with {archive.settings}, not {settings}")
    measuring = Measuring(options.processes, options.out, options.budget_seconds, options.limit)
    return 0 if measure(archive, measuring) else 1


def _analyse(options: argparse.Namespace) -> int:
    from benchmarks.studies.gate.study.analysis import analyse  # scipy is not needed to measure

    first: Path = options.folders[0]
    beside = first if first.is_dir() else first.parent
    analyse(options, options.json or beside / "analysis.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
