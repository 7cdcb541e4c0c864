"""Options of the examples of this folder, and the session that they configure.

Import this module before ``triton``: without a GPU it switches the interpreter on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # for device.py if a script runs directly

from device import ON_GPU

# isort: split
import proton_bench as proton
from proton_bench import language, mode

__all__ = ["Options", "parse", "recorded"]

# Plain Triton moves operations past one another, so scopes in it need an option: a scope measures
# when its records ran, and operations between them may have run at other times.
language.enable_semantic("triton")


@dataclass(frozen=True, slots=True)
class Options:
    """What to record of a kernel.

    Attributes:
        op_measure: Sums of cycles per scope (a tree) instead of a timeline.
        warp_sampling: Record only the warps of ``warp_ids``, which leaves them more of the buffer.
        warp_ids: Warps with commas between them.
        increase_accuracy: Read 32 bits of the clock, store the two records of a scope together
            after it, and take the cost of recording off a timeline.
    """

    op_measure: bool = False
    warp_sampling: bool = False
    warp_ids: str = "0,2"
    increase_accuracy: bool = False

    def mode(self) -> mode.Default:
        """Return the mode of the backend ``instrumentation``."""
        accurate = "clock32,time_shift,sched_stores"
        return mode.Default(
            sampling_strategy="selective" if self.warp_sampling else "none",
            sampling_options=self.warp_ids.replace(" ", "") if self.warp_sampling else "",
            optimizations=accurate if self.increase_accuracy else "clock32",
        )


def parse(description: str | None, arguments: Sequence[str] | None = None) -> Options:
    """Read the command line of an example.

    Args:
        description: Docstring of the example; its first line stands in the help.
        arguments: Words of the command line; those of this process by default.
    """
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--op-measure", action="store_true", help="cycles per scope, no timeline")
    parser.add_argument("--warp-sampling", action="store_true", help="record some warps only")
    parser.add_argument("--warp-ids", default="0,2", help="which, with --warp-sampling; 0,2")
    parser.add_argument(
        "--increase-accuracy", action="store_true", help="let recording disturb scopes less"
    )
    return Options(**vars(parser.parse_args(arguments)))


@contextmanager
def recorded(name: str, options: Options) -> Iterator[None]:
    """Record kernels in ``name.hatchet`` or ``name.chrome_trace``; without a GPU, host time.

    Args:
        name: Path of the output without a suffix.
        options: What to record.
    """
    data = "tree" if options.op_measure or not ON_GPU else "trace"
    if ON_GPU:
        session = proton.start(name, backend="instrumentation", mode=options.mode(), data=data)
    else:
        session = proton.start(name, backend="cpu")
    try:
        yield
    finally:
        proton.finalize(session)
