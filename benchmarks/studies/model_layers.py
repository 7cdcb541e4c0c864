"""Kernels of GPT-2 and Llama below their layers: python -m benchmarks.studies.model_layers.

Models of transformers with random weights train and generate on a GPU, eager, compiled, and by CUDA
graphs of "reduce-overhead". We record windows of five steps in one process, and torch.profiler in
another; printed are the share of the kernels' time that stands below a layer, and counts and sums.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.interleaved import print_machine

MODES = ("eager", "compiled", "reduce-overhead", "generate")
STEPS = 5
WINDOWS = 3


class Window(NamedTuple):
    """What a profiler sees of some steps.

    Attributes:
        kernels: Launches of kernels.
        time_us: Sum of their times.
        share: Share of these that stands below a layer or an optimizer's step.
    """

    kernels: int
    time_us: float
    share: float = 0.0


def median_us(windows: list[Window]) -> float:
    """Return the median time of windows."""
    return statistics.median(one.time_us for one in windows)


def models() -> dict[str, Callable[[], Any]]:
    """Return what makes each model."""
    import transformers

    llama = transformers.LlamaConfig(
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=12,
        num_attention_heads=16,
        num_key_value_heads=8,
    )
    return {
        "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config()),
        "llama": lambda: transformers.LlamaForCausalLM(llama),
    }


def work_of(model: Any, mode: str) -> Callable[[], None]:
    """Return a function that trains a step, or generates."""
    import torch

    if mode == "generate":
        model.eval()
        prompt = torch.randint(0, 1000, (2, 16), device="cuda")

        def generate() -> None:
            with torch.no_grad():
                model.generate(prompt, max_new_tokens=8, do_sample=False, pad_token_id=0)

        return generate
    tokens = torch.randint(0, 1000, (4, 256), device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    run = model
    if mode != "eager":
        run = torch.compile(model, mode="default" if mode == "compiled" else mode)

    def step() -> None:
        if mode == "reduce-overhead":
            torch.compiler.cudagraph_mark_step_begin()
        run(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def by_torch(work: Callable[[], None], _file: Path) -> Window:
    """Return what torch.profiler sees of a window."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(STEPS):
            work()
        torch.cuda.synchronize()
    kernels = [
        event.time_range.elapsed_us()
        for event in profiler.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
        and not event.is_user_annotation
        and not event.name.startswith("Mem")
    ]
    return Window(len(kernels), sum(kernels))


def by_us(work: Callable[[], None], file: Path) -> Window:
    """Return what we see of a window."""
    import torch

    import proton_bench as proton
    from proton_bench.model.frame import FrameKind
    from proton_bench.recording.session.recording import known_session

    number = proton.start(file, context="layers")
    for _ in range(STEPS):
        work()
    torch.cuda.synchronize()
    profile = known_session(number or 0).profile()
    proton.finalize()
    times, counts = profile.inclusive("time (ns)"), profile.inclusive("count")
    count = below_ns = all_ns = 0
    for row in range(len(profile)):
        if profile.kind(row) != FrameKind.KERNEL:
            continue
        above = int(profile.parents[row])
        while above > 0 and profile.kind(above) != FrameKind.LAYER:
            above = int(profile.parents[above])
        count += int(counts[row])
        all_ns += int(times[row])
        below_ns += int(times[row]) if above > 0 else 0
    return Window(count, all_ns / 1e3, below_ns / all_ns)


def measured(window_of: Callable[[Callable[[], None], Path], Window], name: str, mode: str) -> Any:
    """Return the windows of a model, in a process in which nobody else has profiled."""
    import torch

    import proton_bench as proton

    torch.manual_seed(0)
    work = work_of(models()[name]().cuda(), mode)
    with TemporaryDirectory(prefix="model_layers_") as folder:
        if window_of is by_us:  # it sees the compilation, from which it knows compiled layers
            proton.start(Path(folder, "warm"), context="layers")
        for _ in range(4):
            work()
        torch.cuda.synchronize()
        if window_of is by_us:
            proton.finalize()
        return [window_of(work, Path(folder, str(window))) for window in range(WINDOWS)]


def main() -> int:
    """Measure the chosen models and modes, and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", action="append", choices=("gpt2", "llama"))
    parser.add_argument("--mode", action="append", choices=MODES)
    options = parser.parse_args()
    print_machine()
    for name, mode in product(options.model or ("gpt2", "llama"), options.mode or MODES):
        with ProcessPoolExecutor(2, get_context("spawn"), max_tasks_per_child=1) as processes:
            theirs, ours = (
                processes.submit(measured, window_of, name, mode).result()
                for window_of in (by_torch, by_us)
            )
        time = median_us(ours) / median_us(theirs)
        print(
            f"{name}, {mode}: {min(one.share for one in ours):.2%} below layers; "
            f"kernels {sorted({one.kernels for one in ours})} of "
            f"{sorted({one.kernels for one in theirs})}, their time {time:.4f} of torch's",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
