"""Timelines of 120 000 kernels as files: python -m benchmarks.micro.trace_files.

Fresh processes in turn record the same kernels on the double of libcupti, with our profiler in each
of its two formats and with upstream's: kernels without a scope, and four launches to a scope of a
layer, forty to one of a step. Bytes of the file, seconds of `finalize`, and processor time of the
whole recording with everything that is encoded meanwhile. Ours always holds the calls that launched
and a flow from each to its kernel; upstream's holds flows where there are scopes, and only from 3.9
on.

--upstream NAME=FOLDER measures the Triton that is installed there, as often as it is given; without
it the one of this environment.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.interleaved import median, print_machine, print_row, ratio

ROOT = Path(__file__).parents[2]
KERNELS = 120_000
SHAPES = ("kernels", "scopes")
OURS = {"ours, .pftrace": "perfetto", "ours, .chrome_trace": "chrome_trace"}
# Of upstream's version: highest ratio of bytes, and of seconds.
BARS = {"3.6": (1 / 8, 1 / 3), "3.9": (1 / 4, None)}

CHILD = """
import json, os, random, sys, time
from ctypes import byref
from pathlib import Path
tool, shape, out, kernels, root = *sys.argv[1:4], int(sys.argv[4]), sys.argv[5]
sys.path.append(root + "/tests")
from fakes.doubles import Cupti, Launch
if tool == "ours":
    import proton_bench as proton
    version = proton.__version__
    start = lambda: proton.start(out, backend="cupti", data="trace")
    finalize = proton.finalize
    enter, leave = proton.enter_scope, proton.exit_scope
else:
    from triton import __version__ as version
    from triton._C.libproton import proton
    start = lambda: proton.start(out, "shadow", "trace", "cupti", "")
    finalize = lambda session: proton.finalize(session, "chrome_trace")
    numbers = []
    def enter(name):
        numbers.append(proton.record_scope())
        proton.enter_scope(numbers[-1], name)
    def leave(name):
        proton.exit_scope(numbers.pop(), name)

gpu, chance = Cupti(), random.Random(0)
launch, drain = gpu._functions["launch_as"], gpu._functions["drain"]
NAMES = [f"{kind}_kernel_{n}" for kind in ("matmul", "softmax", "layer_norm_backward", "adamw")
         for n in range(6)] + ["void at::native::vectorized_elementwise_kernel<4, at::native::"
         "FillFunctor<float>, std::array<char*, 1ul>>(int, float, char*)"]
made = [Launch(chance.choice(NAMES).encode(), int(chance.lognormvariate(9, 1)), 0, 1,
               chance.choice((7, 7, 7, 13)), (chance.randrange(1, 512), 1, 1), (128, 1, 1),
               0, 16, 652) for _ in range(5003)]
pointers = [byref(each) for each in made]
with_scopes = shape == "scopes"

session = start()
cpu, begin = time.process_time(), time.perf_counter()
for number in range(kernels):
    if with_scopes and number % 4 == 0:
        if number % 40 == 0:
            if number:
                leave("step")
            enter("step")
        enter(f"layer_{number // 4 % 10}")
    launch(pointers[number % 5003])
    if with_scopes and number % 4 == 3:
        leave(f"layer_{number // 4 % 10}")
    if number % 20_000 == 0:
        drain()
if with_scopes:
    leave("step")
drain()
launched = time.perf_counter()
finalize(session)
seconds = time.perf_counter() - launched
path, = Path(out).parent.glob(Path(out).name + ".*")
print(json.dumps({"version": version, "bytes": path.stat().st_size, "finalize_s": seconds,
                  "record_s": launched - begin, "cpu_s": time.process_time() - cpu}))
"""


@dataclass(frozen=True, slots=True)
class Arm:
    """One profiler that writes one format.

    Attributes:
        name: As it is printed.
        tool: "ours" or "upstream".
        variables: Of the environment.
    """

    name: str
    tool: str
    variables: Mapping[str, str]


def record(arm: Arm, shape: str, *, kernels: int, environment: Mapping[str, str]) -> dict[str, Any]:
    """Record in a process of its own, and return what it measured.

    Raises:
        SystemExit: It failed, or wrote another number of files than one.
    """
    with TemporaryDirectory(prefix="trace_files_") as folder:
        words = [arm.tool, shape, f"{folder}/trace", str(kernels), str(ROOT)]
        done = subprocess.run(
            [sys.executable, "-c", CHILD, *words],
            cwd=folder,
            env={**environment, **arm.variables},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise SystemExit(f"{arm.name}: {done.stderr}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def arms_of(upstream: Sequence[str]) -> list[Arm]:
    """Return the arms: ours, and a Triton for each NAME=FOLDER, or the one that is installed."""
    ours = [
        Arm(name, "ours", {"PROTON_BENCH_TRACE_FORMATS": format_name})
        for name, format_name in OURS.items()
    ]
    theirs = [Arm("upstream", "upstream", {})] if not upstream else []
    for text in upstream:
        name, _, folder = text.partition("=")
        if not Path(folder, "triton").is_dir():
            raise SystemExit(f"--upstream {text}: {folder or 'nothing'} holds no package triton")
        path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
        theirs.append(Arm(f"upstream {name}", "upstream", {"PYTHONPATH": path}))
    return [*ours, *theirs]


def print_shape(shape: str, measured: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Print what the arms measured, then ours over each of upstream's."""
    print(f"\n{shape}")
    for name, each in measured.items():
        size, seconds, cpu = (
            median([one[key] for one in each]) for key in ("bytes", "finalize_s", "cpu_s")
        )
        print_row(
            name, f"{size.middle / 1e6:.3f} MB, finalize {seconds:.3f} s, processor {cpu:.2f} s"
        )
    for name, each in measured.items():
        if name in OURS:
            continue
        size_bar, seconds_bar = BARS.get(each[0]["version"].rpartition(".")[0], (None, None))
        for ours in OURS:
            for key, bar in (("bytes", size_bar), ("finalize_s", seconds_bar)):
                figure = ratio([one[key] for one in measured[ours]], [one[key] for one in each])
                print_row(f"{ours} : {name}, {key}", f"{figure:.4f}", f"{bar:.3f}" if bar else "")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both shapes and print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--upstream", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--kernels", type=int, default=KERNELS)
    options = parser.parse_args(arguments)
    sys.path.append(str(ROOT / "tests"))
    from fakes.doubles import doubles

    environment = doubles(ROOT / "build" / "doubles").environment()
    order = arms_of(options.upstream)
    print_machine()
    print(f"{options.rounds} rounds of {options.kernels} kernels")
    for shape in SHAPES:
        measured: dict[str, list[dict[str, Any]]] = {arm.name: [] for arm in order}
        for _ in range(options.rounds):
            for arm in order:
                figures = record(arm, shape, kernels=options.kernels, environment=environment)
                measured[arm.name].append(figures)
            order.reverse()
        print_shape(shape, measured)


if __name__ == "__main__":
    main()
