"""Timelines of 120 000 kernels as files: python -m benchmarks.micro.trace_files.

Fresh processes in turn record the same kernels, with our profiler in each of its two formats and
with upstream's on the double of libcupti. Printed are bytes of the file, seconds of `finalize`, and
processor time of the whole recording with its encoding, for each shape:

kernels   without a scope. Ours shows the calls that launch, and a flow from each to its kernel, and
          upstream does not: so ours is there a second time, with the same kernels taken from
          outside, without calls.
scopes    four launches to a scope of a layer, forty to one of a step. Upstream's has flows from
          scopes to kernels from 3.9 on, before that kernels only.

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
FORMATS = {".pftrace": "perfetto", ".chrome_trace": "chrome_trace"}
OURS = {"ours": "ours", "ours, no calls": "outside"}  # name: tool
# (shape, tool, upstream's version): highest ratio of bytes in .pftrace, and of seconds.
BARS = {
    ("kernels", "outside", "3.6"): (1 / 8, 1 / 3),
    ("scopes", "ours", "3.9"): (1 / 4, None),
}

CHILD = """
import json, os, random, sys, time
from ctypes import byref
from pathlib import Path
tool, shape, out, kernels, root = *sys.argv[1:4], int(sys.argv[4]), sys.argv[5]
sys.path.append(root + "/tests")
from fakes.doubles import Cupti, Launch
from_outside = tool == "outside"
if tool != "upstream":
    import proton_bench as proton
    from proton_bench import _native
    version = proton.__version__
    backend = "cpu" if from_outside else "cupti"
    start = lambda: proton.start(out, backend=backend, data="trace")
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
def made():
    kind = chance.randrange(len(NAMES))
    typical_us = 2 + kind * 3 % 17
    return Launch(NAMES[kind].encode(), int(typical_us * 1000 * chance.lognormvariate(0, 0.05)),
                  0, 1, chance.choice((7, 7, 7, 13)), (16 * kind + 1, 1, 1), (128, 1, 1), 0, 16,
                  0, 652)
launches = [made() for _ in range(5003)]
ends_ns = time.monotonic_ns()
def emit(launch):
    global ends_ns
    begins_ns = ends_ns + 100
    ends_ns = begins_ns + launch.duration_ns
    _native.emit_kernel(_native.emit_launch(), launch.name.decode(), begins_ns, ends_ns,
                        "CUDA", 0, launch.stream)
if from_outside:
    launch = emit
pointers = launches if from_outside else [byref(each) for each in launches]
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
        tool: "ours", "outside" or "upstream".
        suffix: Of its file.
        variables: Of the environment.
    """

    name: str
    tool: str
    suffix: str
    variables: Mapping[str, str]


def record(arm: Arm, shape: str, *, kernels: int, environment: Mapping[str, str]) -> dict[str, Any]:
    """Record in a separate process and return its measurements.

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
        Arm(f"{name}, {suffix}", tool, suffix, {"PROTON_BENCH_TRACE_FORMATS": format_name})
        for name, tool in OURS.items()
        for suffix, format_name in FORMATS.items()
    ]
    theirs = [Arm("upstream", "upstream", ".chrome_trace", {})] if not upstream else []
    for text in upstream:
        name, _, folder = text.partition("=")
        if not Path(folder, "triton").is_dir():
            raise SystemExit(f"--upstream {text}: {folder or 'nothing'} holds no package triton")
        path = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
        variables = {"PYTHONPATH": path}
        theirs.append(Arm(f"upstream {name}", "upstream", ".chrome_trace", variables))
    return [*ours, *theirs]


Measured = Mapping[str, Sequence[Mapping[str, Any]]]


def print_shape(shape: str, arms: Sequence[Arm], measured: Measured) -> None:
    """Print the measurements, then the ratio of each of ours to each of upstream's."""
    print(f"\n{shape}")
    for arm in arms:
        size, seconds, cpu = (
            median([one[key] for one in measured[arm.name]])
            for key in ("bytes", "finalize_s", "cpu_s")
        )
        figures = f"{size.middle / 1e6:.3f} MB, finalize {seconds:.3f} s, processor {cpu:.2f} s"
        print_row(arm.name, figures)
    for theirs in (arm for arm in arms if arm.tool == "upstream"):
        version = measured[theirs.name][0]["version"].rpartition(".")[0]
        for ours in (arm for arm in arms if arm.tool != "upstream"):
            size_bar, seconds_bar = BARS.get((shape, ours.tool, version), (None, None))
            bars = {
                "bytes": size_bar if ours.suffix == ".pftrace" else None,
                "finalize_s": seconds_bar,
            }
            for key, bar in bars.items():
                both = ([one[key] for one in measured[arm.name]] for arm in (ours, theirs))
                what = f"{ours.name} : {theirs.name}, {key}"
                print_row(what, f"{ratio(*both):.4f}", f"{bar:.3f}" if bar else "")


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
    arms = arms_of(options.upstream)
    print_machine()
    print(f"{options.rounds} rounds of {options.kernels} kernels")
    for shape in SHAPES:
        # A timeline taken from outside has no scopes; ours without calls represents it.
        chosen = [arm for arm in arms if shape == "kernels" or arm.tool != "outside"]
        measured: dict[str, list[dict[str, Any]]] = {arm.name: [] for arm in chosen}
        order = list(chosen)
        for _ in range(options.rounds):
            for arm in order:
                figures = record(arm, shape, kernels=options.kernels, environment=environment)
                measured[arm.name].append(figures)
            order.reverse()
        print_shape(shape, chosen, measured)


if __name__ == "__main__":
    main()
